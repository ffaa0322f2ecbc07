"""Ranges: cases by hand, shares, gains, and simulated sensors whose truth they must hold."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wattribute
from wattribute.alignment.gauges import gauge
from wattribute.attribution.ranges import of_counter, of_pieces, share_of
from wattribute.model import Clock, Signal
from wattribute.sensors.table import Line, Triple
from wattribute.testing.sensors import Load, Simulated, recording

NS = 1_000_000_000


def exact(value):
    return Triple(value, value, value)


def sensor_file(folder, **rows):
    path = folder / "sensor.toml"
    path.write_text(
        "[[sensor]]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in rows.items()), "utf-8"
    )
    return path


def boxcar(window=0.1, **more):
    return Line(kind="boxcar", period_s=exact(0.1), window_s=exact(window), lag_s=exact(0.0), **more)


def by_hand(window, run):
    """A gauge that read 100, 200, 200, 100 W at 0.1 … 0.4 s, every reading a window; floor 0, cap 300 W."""
    times = np.array([0.1, 0.2, 0.3, 0.4])
    signal = Signal("power", "gauge", "W", np.rint(times * NS).astype(np.int64), np.array([100.0, 200.0, 200.0, 100.0]))
    line = Line(kind="boxcar", period_s=exact(0.0), window_s=exact(window), lag_s=exact(0.0), cap_w=300.0)
    found, seen = gauge(signal, Clock(NS, 0, NS), line)
    piece = tuple(np.array([round(at * NS)]) for at in run)
    value = np.array([float(np.diff(found.at(np.concatenate(piece)))[0])])
    covered = int(found.times[0]), int(found.times[-1])
    made = of_pieces((*piece, np.zeros(1, np.int64)), 1, seen, share_of(None, seen), value, covered, NS)
    return [float(end[0]) for end in made]


def test_hard_range_of_whole_windows_by_hand():
    # all time is seen: windows 2 and 3 lie in 0.1 … 0.3 s and read 200 W each: 40 J, no more and no less
    *_, low, high = by_hand(0.1, (0.1, 0.3))
    assert (low, high) == pytest.approx((40, 40))


def test_hard_range_of_a_part_of_a_window_by_hand():
    # 0.1 … 0.25 s: window 2 whole, 20 J. Of window 3 (20 J in 0.1 s) 50 ms are another's, who takes 0.05 · 300 = 15 J
    # at most and 0 at least: 5 … 15 J (the cap of 50 ms) are left
    *_, low, high = by_hand(0.1, (0.1, 0.25))
    assert (low, high) == pytest.approx((25, 35))


def test_hard_range_of_unseen_time_by_hand():
    # a window of 50 ms of every 100: 0.1 … 0.3 s holds 0.15 … 0.2 and 0.25 … 0.3 s, 10 J each; 0.1 s was not seen and
    # holds 0 … 30 J
    low, high, hard_low, hard_high = by_hand(0.05, (0.1, 0.3))
    assert (hard_low, hard_high) == pytest.approx((20, 50))
    assert hard_low <= low <= high <= hard_high


def test_gain_of_a_counter_widens_both_ways():
    ends = [np.array([value]) for value in (80.0, 120.0, 100.0)]
    line = Line(kind="counter", pairs=((0.9, 0.0), (1.0, 0.0)), hard_pairs=((0.8, 0.0), (1.25, 0.0)))
    found = of_counter(ends[0], ends[1], ends[2], line)
    assert (found.low[0], found.high[0]) == pytest.approx((80, 120 / 0.9))
    assert (found.hard_low[0], found.hard_high[0]) == pytest.approx((80 / 1.25, 120 / 0.8))


def test_rows_of_an_attribution_have_both_ranges_and_the_books_balance(tmp_path):
    load = Load.of_spans([(3.0, 6.0, 300.0), (6.0, 9.0, 150.0)], 60.0, 0.0, 12.0)
    times, watts = Simulated("boxcar", 0.1, 0.025, lag_s=0.01, gain=0.95, poll_s=0.01).readings(load)
    made = recording([(3.0, 6.0, "a"), (6.0, 9.0, "b")], [("nvidia-smi GPU 0 power.draw.instant", times, watts)])
    found = wattribute.attribute(made)
    for row in found.rows.iter_rows(named=True):
        truth = {"a": 900.0, "b": 450.0}[row["frame"]]
        assert row["self_hard_low_j"] <= row["self_low_j"] <= truth <= row["self_high_j"] <= row["self_hard_high_j"]
        assert (row["self_high_j"] - row["self_low_j"]) / 2 < 0.15 * truth
        assert row["total_low_j"] == pytest.approx(row["self_low_j"])
    book = found.devices.row(0, named=True)
    assert found.rows["self_j"].sum() + book["idle_j"] == pytest.approx(book["measured_j"], rel=1e-9)
    whole = load.between(book["measured_j"] * 0, 12.0)
    assert book["measured_low_j"] < book["measured_j"] < book["measured_high_j"] < 3 * whole
    assert "arXiv 2312.02741" in book["sensor"]
    each = wattribute.attribute(made, spans=True).rows
    assert each["self_hard_low_j"].to_list() == pytest.approx(found.rows.sort("frame")["self_hard_low_j"].to_list())


@pytest.mark.parametrize("card", ["Tesla V100-SXM2-16GB", "NVIDIA GeForce GTX 1080 Ti", "Tesla P100-PCIE-16GB"])
@pytest.mark.parametrize("truth_over_reading", [0.95, 1.0, 1.05])
def test_ranges_of_pascal_and_volta_hold_within_what_nvidia_promises(card, truth_over_reading):
    load = Load.of_spans([(3.0, 9.0, 240.0)], 60.0, 0.0, 18.0, ramp_s=0.01)
    sensor = Simulated("boxcar", 0.02, 0.01, lag_s=0.005, gain=1 / truth_over_reading, poll_s=0.01)
    spans = [(3.0, 9.0, "load"), (9.0, 15.0, "rest")]
    made = recording(spans, [("nvidia-smi GPU 0 power.draw", *sensor.readings(load))], model=card)
    for row in wattribute.attribute(made).rows.iter_rows(named=True):
        truth = next(load.between(start, end) for start, end, name in spans if name == row["frame"])
        assert row["self_low_j"] <= truth <= row["self_high_j"]
        assert (row["self_high_j"] - row["self_low_j"]) / 2 < 0.15 * truth


def test_the_fastest_gauge_speaks_and_it_is_said():
    load = Load.of_spans([(3.0, 6.0, 300.0)], 60.0, 0.0, 9.0)
    fast = Simulated("boxcar", 0.1, 0.1).readings(load)
    slow = Simulated("running mean", 0.1, 1.0).readings(load)
    names = [f"nvidia-smi GPU 0 power.draw{end}" for end in ("", ".average", ".instant")]
    made = recording([(3.0, 6.0, "a")], [(names[0], *slow), (names[1], *slow), (names[2], *fast)])
    found = wattribute.attribute(made)
    assert found.devices["signal"].to_list() == [names[2]]
    said = [problem.message for problem in found.problems if problem.kind == "gauge"]
    assert len(said) == 1
    assert "power.draw.instant is used" in said[0]


def test_two_users_share_time_and_range():
    """Two streams, one of them all the time: each gets half of what was used while both ran."""
    from dataclasses import replace

    from wattribute.model import Link, Locations, SpanTable

    load = Load.of_spans([(2.0, 8.0, 200.0)], 50.0, 0.0, 10.0)
    times, watts = Simulated("boxcar", 0.1, 0.1, poll_s=0.01).readings(load)
    made = recording([(2.0, 8.0, "a"), (4.0, 6.0, "b")], [("nvidia-smi GPU 0 power.draw.instant", times, watts)])
    both = made.spans.columns[0]
    parts = [type(both)(*(getattr(both, name)[at : at + 1] for name in both.__dataclass_fields__)) for at in (0, 1)]
    made = replace(
        made,
        locations=Locations.of([(0, "s0", "gpu", 0, 0), (1, "s1", "gpu", 0, 0)]),
        spans=SpanTable(dict(enumerate(parts))),
        topology=(Link("n", "GPU 0", (0, 1), "test"),),
    )
    found = wattribute.attribute(made)
    truth = {"a": 4 * 200 + 2 * 100, "b": 2 * 100}  # alone for 4 s, half of 2 s
    for row in found.rows.iter_rows(named=True):
        assert row["self_hard_low_j"] <= row["self_low_j"] <= truth[row["frame"]] <= row["self_high_j"]
        assert row["self_j"] == pytest.approx(truth[row["frame"]], rel=0.03)


@given(
    st.sampled_from(["boxcar", "running mean", "low pass"]),
    st.sampled_from([0.25, 1.0]),
    st.floats(0.02, 2.0),
    st.integers(0, 2**31),
)
def test_hard_ranges_hold_whatever_ran(tmp_path_factory, kind, part, pace, seed):
    draw = np.random.default_rng(seed)
    edges = np.cumsum(np.concatenate([[2.0], draw.uniform(0.3, 1.5, int(min(6 / pace, 120))) * pace]))
    spans = [(float(a), float(b), "ab"[i % 2]) for i, (a, b) in enumerate(itertools.pairwise(edges))]
    drawn = [(a, b, float(draw.uniform(50, 500))) for a, b, _ in spans]
    load = Load.of_spans(drawn, 50.0, 0.0, float(edges[-1]) + 3)
    window = {"boxcar": 0.1 * part, "running mean": 0.5, "low pass": 0.1}[kind]
    sensor = Simulated(kind, 0.1, window, lag_s=0.02, gain=0.97, poll_s=0.01, quantum_w=0.1, generator=draw)
    path = sensor_file(
        tmp_path_factory.mktemp("sensor"), field="simulated", kind=kind, period_s=0.1,
        window_s=[0.95 * window, window, 1.05 * window], lag_s=[0.01, 0.02, 0.03], gain=[0.95, 0.97, 0.99],
        floor_w=20, cap_w=550,
    )  # fmt: skip
    made = recording(spans, [("simulated power", *sensor.readings(load))])
    found = wattribute.attribute(made, sensors=path)
    for row in found.rows.iter_rows(named=True):
        truth = sum(load.between(a, b) for a, b, name in spans if name == row["frame"])
        assert row["self_hard_low_j"] - 1e-6 <= truth <= row["self_hard_high_j"] + 1e-6
    book = found.devices.row(0, named=True)
    assert found.rows["self_j"].sum() + book["idle_j"] == pytest.approx(book["measured_j"], rel=1e-9)
