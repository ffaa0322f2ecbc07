"""A session's answers: energy that no level loses, sums that are attribution's, states without data."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tests.recordings import spans
from tests.views.page.hand import recording
from wattribute import attribute
from wattribute.model import Clock, Device, Frames, Locations, Nodes, Processes, Recording, Signal, SpanTable
from wattribute.views.page import selfcontained
from wattribute.views.page.session import Session
from wattribute.views.page.tiles import power


def header(answer):
    return json.loads(answer[4 : 4 + int.from_bytes(answer[:4], "little")])


@pytest.fixture
def opened():
    sessions = []

    def open_(*arguments, **options):
        sessions.append(Session(*arguments, **options))
        return sessions[-1]

    yield open_
    for session in sessions:
        session.close()


def test_the_bins_of_all_lanes_hold_what_was_attributed(opened):
    session = opened(recording(kernels=7000))
    lane = session.tiles.lanes[2]
    for most in (1, 7, 64, 1024):
        assert lane.bins(0, session.tiles.length, most)[2]["energy"].sum() == pytest.approx(1400, rel=1e-9)
    assert session.table()["devices"][0]["attributed_j"] == pytest.approx(1400, rel=1e-9)


@pytest.mark.parametrize("range_", [(0, 10000), (1234, 5678), (2000, 2001), (9000, 10000)])
@pytest.mark.parametrize("by", [("device", "frame"), ("device", "path"), ("device", "process", "frame")])
def test_a_brushed_range_is_what_attribute_says(opened, range_, by):
    made = recording(kernels=600)
    mine = opened(made).attribution(by, range_)
    whole = attribute(made, by=by, begin=range_[0] / 1000, end=range_[1] / 1000)
    assert mine.rows.to_dicts() == whole.rows.to_dicts()
    assert mine.devices.to_dicts() == whole.devices.to_dicts()


def test_a_long_table_is_cut_and_keeps_its_sum(opened, monkeypatch):
    monkeypatch.setattr("wattribute.views.page.answers.MOST_ROWS", 1)
    table = opened(recording()).table()
    (row,), (rest,) = table["rows"], table["more_j"].values()
    assert (table["more"], row["self_j"] + rest) == (1, pytest.approx(1400))


def test_a_comparison_adds_what_may_be_added(opened, monkeypatch):
    monkeypatch.setattr("wattribute.views.page.answers.MOST_ROWS", 1)
    rows = opened(recording(), compare=recording(kernels=1)).compare()["rows"]
    # A: 800 J of one kernel, and 600 J in rows that were cut; B: one heavy_kernel of 1400 J
    found = {row["frame"]: (row["a_j"], row["b_j"]) for row in rows}
    assert found["(smaller rows)"] == (pytest.approx(600), 0)
    assert found["heavy_kernel(float*, float const*)"] == (0, pytest.approx(1400))


def test_a_view_prefers_exact_spans_in_the_lanes_with_few(opened):
    session = opened(recording(kernels=7000))
    parts = header(session.tiles.view([0, 1, 2], 0, 10000, 1400))["parts"]
    assert [part["mode"] for part in parts] == ["spans", "spans", "bins"]
    parts = header(session.tiles.view([0, 1, 2], 0, 1000, 1400))["parts"]
    assert [part["mode"] for part in parts] == ["spans", "spans", "spans"]
    assert len(session.tiles.view([0, 1, 2], 0, 10000, 10**9)) < 2_000_000


def test_a_span_in_full(opened):
    # the third of four kernels, [4 s, 6 s): 100 J up to 5 s, then 300 J
    span = opened(recording()).tiles.span(2, 2)
    (use,) = span["devices"]
    assert (use["total_j"], use["self_j"]) == (pytest.approx(400), pytest.approx(400))
    assert use["low_j"] <= 400 <= use["high_j"]
    assert use["share"] == pytest.approx(400 / 2000)


def test_power_is_the_slope_with_its_extremes(opened):
    (curve,) = opened(recording()).tiles.metered.burned
    # 4 s … 6 s: half at 100 W, half at 300 W; then nothing was read after 10 s
    out = power(curve, np.array([4000, 6000, 10000, 12000]), 1000)
    assert out[0].tolist() == [200, 100, 300]
    assert out[1].tolist() == [300, 300, 300]
    assert np.isnan(out[2]).all()


def test_nested_meters_are_never_added(opened):
    made = recording()
    times = np.array([0, 10000])
    cpu = [
        Signal(name, "counter", "J", times, np.array([0, joules]), Fraction(1), "node01", device)
        for name, joules, device in (("node:energy", 5000, "node"), ("rapl:package-0", 1000, "package 0"))
    ]
    devices = (*made.devices, Device("node", "node", "node01"), Device("package 0", "cpu", "node01"))
    session = opened(replace(made, signals=(*made.signals, *cpu), devices=devices, topology=()))
    counted = {session.tiles.facts["devices"][i]["device"] for i in session.tiles.metered.counted(0)}
    assert counted == {"package 0"}
    assert "3.00 kJ measured" in session.tiles.facts["summary"]  # 2 kJ of the GPU and 1 kJ of the package
    energies = session.tiles.lanes[0].energies
    assert energies[1][-1] == pytest.approx(500)  # both ranks' threads were busy all the time: half of 1 kJ each


EMPTY = Recording(Clock(1000, 0, 0), metadata={"name": "nothing"})
NO_SIGNALS = replace(recording(), signals=(), devices=(), topology=())
NO_SPANS = replace(recording(), spans=SpanTable({}))
ONE_READING = replace(
    recording(), signals=tuple(replace(s, times=s.times[:1], values=s.values[:1]) for s in recording().signals)
)


@pytest.mark.parametrize(
    "made", [EMPTY, NO_SIGNALS, NO_SPANS, ONE_READING], ids=["empty", "no signals", "no spans", "one reading"]
)
def test_states_without_data(opened, made, tmp_path):
    session = opened(made)
    facts = session.facts()
    json.dumps(facts, allow_nan=False)
    length = facts["length_ticks"]
    session.tiles.view([lane["location"] for lane in facts["lanes"]], 0, length, 800)
    session.tiles.power(range(len(facts["devices"])), 0, length, 800)
    for answer in (session.table(), session.flame(), session.heat(), session.compare(), session.table((0, length))):
        json.dumps(answer, allow_nan=False)
    selfcontained.write(session, tmp_path / "page.html")


def test_grams_only_where_the_zone_is_said(opened):
    # 2 kJ = 2000 / 3.6e6 kWh, at 360 g/kWh 0.2 g
    assert "200 mg CO₂e" in opened(recording(), {"zone": "FR", "intensity": 360}).facts()["summary"][-1]
    assert "CO₂e" not in " ".join(opened(recording()).facts()["summary"])


def test_power_that_nobody_used_is_shown(opened):
    session = opened(NO_SPANS)
    (book,) = session.table()["devices"]
    assert (book["of"], book["measured_j"], book["idle_j"]) == ("nobody", 2000, 2000)
    (book,) = session.table((4000, 6000))["devices"]
    assert book["measured_j"] == pytest.approx(400)  # 100 W for a second, 300 W for another
    assert len(session.tiles.metered.burned) == 1


def test_ten_thousand_lanes(opened):
    count = 10_000
    made = Recording(
        Clock(1000, 0, 1000),
        Frames.of([("f", "user", "function")]),
        Nodes.of([(0, "node01", "node", -1)]),
        Processes.of([(0, "job", "process", 0)]),
        Locations.of([(i, f"thread {i}", "cpu", 0) for i in range(count)]),
        SpanTable({i: spans([(0, 1000, 0, -1)]) for i in range(count)}),
    )
    session = opened(made)
    assert len(session.facts()["lanes"]) == count
    assert len(header(session.tiles.view(range(0, count, 100), 0, 1000, 800))["parts"]) == 100


def test_a_metric_that_is_no_energy_is_refused(opened):
    made = recording()
    heat = Signal("temp", "gauge", "°C", np.array([0, 10000]), np.array([20.0, 80.0]), Fraction(1), "node01", "GPU 0")
    with pytest.raises(ValueError, match="the page shows energy"):
        opened(replace(made, signals=(heat,)), {"metric": "temp"})
