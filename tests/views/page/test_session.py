"""A session's answers: energy that no level loses, sums that are attribution's, states without data."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from tests.views.page.hand import recording
from wattribute import attribute, read, save
from wattribute.model import Clock, Device, Missing, Recording, SpanTable
from wattribute.testing.recordings import RecordingBuilder, counter, gauge
from wattribute.views.page import selfcontained
from wattribute.views.page.server import ReplacedError
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
    (row,) = table["rows"]
    assert (table["more"], row["self_j"] + table["more_j"]) == (1, pytest.approx(1400))


def test_flame_heatmap_and_comparison_have_ranges(opened):
    session = opened(recording(), compare=recording())
    by_frame = {row["frame"]: row for row in session.table()["rows"]}
    (group,) = [group for group in session.flame()["groups"] if group["label"].endswith("kernels")]
    for name, _, self_j, total, low, high in group["nodes"][1:]:  # kernels call nothing
        assert self_j == total == pytest.approx(by_frame[name]["self_j"])
        assert (low, high) == (by_frame[name]["self_low_j"], by_frame[name]["self_high_j"])
    for cell in session.heat()["cells"]:
        assert cell["self_low_j"] <= cell["self_j"] <= cell["self_high_j"]
    for row in session.compare()["rows"]:
        assert (row["a_low_j"], row["b_high_j"]) == tuple(
            by_frame[row["frame"]][f"self_{end}_j"] for end in ("low", "high")
        )


def test_the_self_of_a_span_has_a_range_without_that_of_its_children(opened):
    made = RecordingBuilder(1000, length_ticks=10_000).host("h").process("p").thread("f 0s..10s, g 2s..4s")
    made.counter("package 0", [100 * i for i in range(11)], every=1000)  # 100 W
    span = opened(made.recording()).tiles.span(0, 0)
    (use,) = span["devices"]
    assert (use["total_j"], use["self_j"], span["calls"]) == (pytest.approx(1000), pytest.approx(800), 1)
    assert use["self_low_j"] <= 800 <= use["self_high_j"] < use["high_j"]


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
    assert [part["mode"] for part in parts] == ["spans", "spans", "bins", "over"]
    parts = header(session.tiles.view([0, 1, 2], 0, 1000, 1400))["parts"]
    assert [part["mode"] for part in parts] == ["spans", "spans", "spans", "pieces", "idle", "band"]
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


def test_a_node_counts_as_its_parts_and_the_rest(opened):
    made = recording()
    cpu = [
        counter([0, joules], every=10_000, name=name, device=device, host="node01")
        for name, joules, device in (("node:energy", 5000, "node"), ("rapl:package-0", 1000, "package 0"))
    ]
    devices = (*made.devices, Device("node", "node", "node01"), Device("package 0", "cpu", "node01"))
    session = opened(replace(made, signals=(*made.signals, *cpu), devices=devices, topology=()))
    counted = {session.tiles.facts["devices"][i]["device"] for i in session.tiles.metered.counted(0)}
    assert counted == {"package 0", "rest of node"}
    assert "5.00 kJ measured" in session.tiles.facts["summary"]  # the node's: GPU 2, package 1, rest 2 kJ
    energies = session.tiles.lanes[0].energies
    assert energies[1][-1] == pytest.approx(1500)  # both ranks' threads were busy all the time: half of 1 + 2 kJ each


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
    assert (book["measured_j"], book["idle_j"]) == (2000, 2000)
    (book,) = session.table((4000, 6000))["devices"]
    assert book["measured_j"] == pytest.approx(400)  # 100 W for a second, 300 W for another
    assert len(session.tiles.metered.burned) == 1


def test_thousands_of_lanes(opened):
    count = 3_000
    made = RecordingBuilder(1000)
    for i in range(count):
        made.thread("f 0..1000", f"thread {i}")
    session = opened(made.recording())
    assert len(session.facts()["lanes"]) == count
    assert len(header(session.tiles.view(range(0, count, 30), 0, 1000, 800))["parts"]) == 100


def test_a_metric_that_is_no_energy_is_refused(opened):
    made = recording()
    heat = gauge([20.0, 80.0], every=10_000, name="temp", unit="°C", host="node01")
    with pytest.raises(ValueError, match="the page shows energy"):
        opened(replace(made, signals=(heat,)), {"metric": "temp"})


def modes(folder):
    return folder.stat().st_mode & 0o777, {file.stat().st_mode & 0o777 for file in folder.iterdir()}


def test_tiles_have_the_permissions_of_the_recording(opened, tmp_path):
    path = tmp_path / "run.watt"
    save(recording(), path)
    for folder, file in ((0o755, 0o644), (0o750, 0o640), (0o700, 0o600)):
        for each in path.rglob("*"):
            each.chmod(folder if each.is_dir() else file)
        path.chmod(folder)
        next(path.glob("*.json")).touch()  # a new fingerprint: made again
        opened(path)
        assert modes(tmp_path / "run.watt.tiles") == (folder, {file})


def test_tiles_in_the_cache_are_the_users(opened, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "closed").mkdir()
    save(recording(), tmp_path / "closed" / "run.watt")
    (tmp_path / "closed").chmod(0o500)
    opened(tmp_path / "closed" / "run.watt")
    (folder,) = (tmp_path / "cache" / "wattribute" / "tiles").iterdir()
    assert modes(folder) == (0o700, {0o600})
    (tmp_path / "closed").chmod(0o700)


def replace_recording(path, other):
    shutil.rmtree(path)
    save(other, path)


def test_a_question_about_a_replaced_recording_is_refused(opened, tmp_path):
    path = tmp_path / "run.watt"
    save(recording(), path)
    session = opened(path)
    query = {"revision": "0", "from": "0", "to": "5000"}
    assert session.answer("table", query)["devices"][0]["measured_j"] == pytest.approx(500)
    replace_recording(path, recording(kernels=7, length_s=6))
    with pytest.raises(ReplacedError):  # at once, before anyone looked whether it changed
        session.answer("table", query | {"to": "4000"})
    status = session.answer("status", {})
    assert (status["revision"], session.facts()["identity"], status["live"]) == (1, 1, False)
    with pytest.raises(ReplacedError):
        session.answer("view", {"revision": "0", "lanes": "2", "from": "0", "to": "5", "width": "9"})


def test_a_longer_recording_of_the_same_run_is_growth(opened, tmp_path):
    path = tmp_path / "run.watt"
    save(recording(), path)
    session = opened(path)
    replace_recording(path, recording(length_s=20))
    session.answer("status", {})
    assert (session.revision, session.identity) == (1, 0)


def test_a_recording_is_live_as_long_as_its_recorder_is_alive(opened, tmp_path, monkeypatch):
    monkeypatch.setattr("wattribute.views.page.session._QUIET_S", 0.0)
    command = [sys.executable, "-m", "wattribute", "run", "-o", str(tmp_path / "run.watt"), "--", "sleep", "600"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        while not has_readings(tmp_path / "run.watt"):
            time.sleep(0.1)
        session = opened(tmp_path / "run.watt")
        assert session.facts()["live"]
        assert "stopped" not in json.dumps([session.facts(), session.table()])
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    while session.live:  # the sampler ends by itself when its parent has gone
        time.sleep(0.1)
    session.answer("status", {})


def has_readings(path):
    try:
        return bool(read(path).signals) and len(read(path).signals[0].times) > 1
    except (OSError, ValueError, LookupError):
        return False


def test_a_function_on_a_stream_is_a_kernel(opened):
    made = RecordingBuilder(1000).frames(("saxpy", "cuda", "function")).host("h")
    made.process("p").thread("saxpy 0s..1s").stream([(0, 1000, "saxpy")], "stream", context="c")
    frames = opened(made.recording()).tiles.frames
    assert [frames.palette[look]["kind"] for look in (frames.look[0], frames.gpu[0])] == ["other", "kernel"]


def test_an_estimate_carries_the_error_of_its_model(opened):
    made = recording()
    signals = tuple(replace(signal, estimated=True, gain_error=0.5) for signal in made.signals)
    session = opened(replace(made, signals=signals))
    (book,), row = session.table()["devices"], session.table()["rows"][0]
    assert (book["measured_low_j"], book["measured_high_j"]) == (1000, 3000)  # 2 kJ ± 50 %
    assert (row["self_low_j"], row["self_high_j"]) == (
        pytest.approx(0.5 * row["self_j"]),
        pytest.approx(1.5 * row["self_j"]),
    )
    assert "2.00 kJ ± 1.0 estimated" in session.facts()["summary"]
    (use,) = session.tiles.span(2, 2)["devices"]
    assert (use["low_j"], use["high_j"]) == (pytest.approx(200), pytest.approx(600))


def test_what_is_missing_is_said_in_a_sentence(opened):
    made = recording()
    gone = tuple(Missing(location, 1_000_000, "file not found") for location in (0, 1))
    events = np.array([1_000_000, 1_000_000, 500_000, 0], np.int64)[: len(made.locations)]
    session = opened(replace(made, missing=gone, locations=replace(made.locations, events=events)))
    assert (
        session.facts()["missing"] == "2.00 M of 2.50 M events are missing: 2 files could not be read (file not found)"
    )


def test_rows_by_device_process_and_role(opened):
    session = opened(recording())
    rows = {
        by: {row["frame"]: row["self_j"] for row in session.table((0, 6000), by)["rows"]}
        for by in ("device", "process", "role")
    }
    # kernels of rank 0 up to 6 s: 100 W for 5 s and 300 W for 1 s
    assert rows["device"] == {"GPU 0": pytest.approx(800)}
    assert rows["process"] == {"node01 · MPI Rank 0": pytest.approx(800)}
    assert sum(rows["role"].values()) == pytest.approx(800)
    key = session.facts()["devices"][0]["key"]
    assert sum(row["self_j"] for row in session.table((0, 6000), "frame", key)["rows"]) == pytest.approx(800)
    with pytest.raises(ValueError, match="by has to be one of"):
        session.table(None, "colour")


def test_sums_of_a_range_come_from_the_curves(opened):
    session = opened(recording(), {"zone": "FR", "intensity": 360})
    found = session.answer("burned", {"from": "4000", "to": "6000"})
    # 100 J and 300 J in 2 s; 360 g/kWh is 0.1 mg/J
    assert found["measured_j"] == [pytest.approx(400)]
    assert (found["energy_j"], found["power_w"], found["co2e_g"]) == (
        pytest.approx(400),
        pytest.approx(200),
        pytest.approx(0.04),
    )


def test_an_older_question_that_still_waits_is_not_answered(opened):
    session = opened(recording())
    answers = {}

    def ask(ticket, end):
        try:
            answers[ticket] = session.answer("table", {"page": "x", "ticket": str(ticket), "from": "0", "to": str(end)})
        except ValueError as error:
            answers[ticket] = str(error)

    with session._lock:  # an attribution is under way
        older = threading.Thread(target=ask, args=(1, 3000))
        older.start()
        while session._tickets.get("x") != 1:
            time.sleep(0.01)
        newer = threading.Thread(target=ask, args=(2, 4000))
        newer.start()
        while session._tickets.get("x") != 2:
            time.sleep(0.01)
    older.join()
    newer.join()
    assert "newer question" in answers[1]
    assert answers[2]["devices"][0]["measured_j"] == pytest.approx(400)


def test_folded_lanes_keep_their_joules(opened):
    session = opened(recording(kernels=700))
    for name in ("h0", "p0"):
        for a, b in ((0, 10000), (2500, 7500)):
            bins, over = session.tiles.group(name, a, b, 250)
            book = attribute(recording(kernels=700), begin=a / 1000, end=b / 1000).devices.to_dicts()[0]
            assert bins["data"]["energy"].sum() == pytest.approx(
                book["attributed_j"], rel=2e-3
            )  # bins at the ends are cut
            assert over["data"]["idle"].sum() == pytest.approx(book["idle_j"], rel=2e-3, abs=1)
    with pytest.raises(KeyError):
        session.tiles.group("h9", 0, 10, 5)
