"""Journal → Recording: what attribution needs is there; dead, estimated and overlapping sensors are sorted out."""

import json
import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import wattribute
from wattribute import archive
from wattribute.engines.middle import metered_devices
from wattribute.journal import file as journal
from wattribute.model import Device, Signal
from wattribute.model.constants import COMMAND_CPU_TIME, OTHERS_CPU_TIME
from wattribute.model.stored import StoredSignal
from wattribute.plugins import Channel
from wattribute.readers import column_file
from wattribute.readers import journal as build
from wattribute.readers.column_file import ReadingStore
from wattribute.recorders.sampler import plain
from wattribute.sessions.summary import summarise

SECOND = 1_000_000_000


def channel(name, kind, meter="rapl", estimated=False, unit="J", **properties):
    return Channel(
        "energy",
        "counter" if unit == "J" else "gauge",
        unit,
        Device(name, kind, properties=properties),
        estimated=estimated,
    )


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "run.watt"
    path.mkdir()
    return path


def record(folder, meters, events, rows=20, moving=True, until=None):
    """A journal of meters {name: channels}; counters rise by 10 a tenth of a second from 100 s on, ``until`` a row."""
    book = journal.Journal(folder / "journal")
    about = {"host": "node1", "command": ["train", "--fast"], "monotonic_ns": 100 * SECOND, "epoch_ns": 10**18}
    about["meters"] = [{"name": name, "channels": [plain(c) for c in channels]} for name, channels in meters.items()]
    book.about(about, list(meters.values()))
    for i in range(rows):
        for number, channels in enumerate(meters.values()):
            at = 100 * SECOND + i * SECOND // 10
            steps = i if until is None else min(i, until)
            book.readings(number, [(at, 10 * steps if moving else 5) for _ in channels])
    for event in events:
        book.event(event)
    book.flush()
    book.close()
    return build.recover(folder)


LIFE = [{"start": 100 * SECOND + SECOND // 2, "pid": 42}, {"end": 101 * SECOND, "exit_code": 0}]


def test_a_run_is_one_span_on_one_location_that_uses_every_device(folder):
    recording = record(folder, {"rapl": [channel("package 0", "cpu"), channel("dram 0", "dram")]}, LIFE)
    assert recording.hosts() == ["node1"]
    assert list(recording.frames.name) == ["train --fast"]
    spans = recording.spans.spans(0)
    assert (spans.start[0], spans.end[0]) == (SECOND // 2, SECOND)
    assert [(link.device, link.locations) for link in recording.topology] == [("package 0", (0,)), ("dram 0", (0,))]
    assert recording.clock.epoch_ns == 10**18
    attribution = wattribute.attribute(recording, by=("device", "frame"))
    rows = {row["device"]: row["total_j"] for row in attribution.rows.to_dicts()}
    # 100 J a second for half a second
    assert rows == {"package 0": pytest.approx(50), "dram 0": pytest.approx(50)}


def test_a_folder_with_a_journal_is_read_as_a_recording(folder):
    record(folder, {"rapl": [channel("package 0", "cpu")]}, LIFE[:1])
    recording = wattribute.read(folder)
    assert "recovered from its journal" in recording.problems[-1].message
    # without an end the span goes to the last reading
    assert recording.spans.spans(0).end[0] == recording.clock.length_ticks == 19 * SECOND // 10


def test_a_cut_journal_is_told(folder):
    record(folder, {"rapl": [channel("package 0", "cpu")]}, LIFE)
    data = (folder / "journal").read_bytes()
    (folder / "journal").write_bytes(data[:-3])
    assert "cut" in [p.kind for p in wattribute.read(folder).problems]


def test_a_dead_counter_is_left_out_and_the_estimate_stays(folder):
    meters = {"rapl": [channel("psys", "psys")], "model": [channel("CPU", "cpu", estimated=True)]}
    recording = record(folder, meters, LIFE, moving=False)
    assert [p.kind for p in recording.problems] == ["dead", "dead", "partial"]
    assert recording.devices == ()


def test_a_counter_that_had_no_time_to_move_is_not_called_dead(folder):
    recording = record(folder, {"rapl": [channel("package 0", "cpu")]}, LIFE, rows=1, moving=False)
    assert [d.name for d in recording.devices] == ["package 0"]


def test_what_a_counter_did_not_see_after_it_stopped_is_not_0_joules(folder):
    """20 readings that move, and 20 that repeat the last."""
    recording = record(folder, {"rapl": [channel("package 0", "cpu")]}, LIFE, rows=40, until=20)
    (signal,) = recording.signals
    assert len(signal) == 21
    (problem,) = (problem for problem in recording.problems if problem.kind == "dead")
    assert "did not move in the last 1.9 s; what was used in them is not known" in problem.message


@pytest.mark.parametrize("rows", [24, 29])
def test_a_counter_that_stands_still_for_a_while_is_not_at_its_end(folder, rows):
    recording = record(folder, {"rapl": [channel("package 0", "cpu")]}, LIFE, rows=rows, until=20)
    assert len(recording.signals[0]) == rows


def test_what_a_program_did_before_its_recording_is_not_its_part(folder):
    """5 s of CPU time before, 0.5 s since; the machine spent 3 s since."""
    looks = [
        {"cpu_s": [[5.0], [90.0]], "at": 100 * SECOND + SECOND // 2},
        {"cpu_s": [[5.5], [93.0]], "at": 101 * SECOND},
    ]
    start = {"start": 100 * SECOND + SECOND // 2 - 1000, "pid": 42, "running": True}
    recording = record(folder, {"rapl": [channel("package 0", "cpu")]}, [start, *looks, LIFE[1]])
    spent = {s.name: float(s.values[-1] - s.values[0]) / 1e6 for s in recording.signals if s.unit == "s"}
    assert spent == {COMMAND_CPU_TIME: 0.5, OTHERS_CPU_TIME: 2.5}


def test_estimates_give_way_to_a_sensor_of_the_same_thing(folder):
    model = [channel("CPU", "cpu", estimated=True), channel("memory", "dram", estimated=True)]
    recording = record(folder, {"rapl": [channel("package 0", "cpu")], "model": model}, LIFE)
    assert [d.name for d in recording.devices] == ["package 0"]


def test_estimates_stay_beside_a_gpu(folder):
    model = [channel("CPU", "cpu", estimated=True)]
    recording = record(folder, {"nvml": [channel("GPU 0", "gpu")], "model": model}, LIFE)
    assert [(s.device, s.estimated) for s in recording.signals] == [("GPU 0", False), ("CPU", True)]


@pytest.mark.parametrize(
    ("meters", "apart"),
    [
        ({"craypm": [channel("node", "node")], "amdsmi": [channel("GPU 0", "gpu")]}, {"node"}),
        ({"nvml": [channel("GPU 0", "gpu", scope="module")], "hwmon": [channel("Grace 0", "cpu")]}, {"Grace 0"}),
        ({"nvml": [channel("GPU 0", "gpu")], "hwmon": [channel("Grace 0", "cpu")]}, set()),
        ({"amdsmi": [channel("GPU 0", "gpu")], "hwmon": [channel("amdgpu 3", "gpu")]}, {"amdgpu 3"}),
        ({"rapl": [channel("package 0", "cpu"), channel("psys", "psys", apart="x")]}, {"psys"}),
    ],
)
def test_what_another_device_includes_stands_apart(folder, meters, apart):
    recording = record(folder, meters, LIFE)
    assert {one.device.name for one in metered_devices(recording) if not one.entry.counted} == apart


def test_everything_survives_the_archive(folder, tmp_path):
    recording = record(folder, {"rapl": [channel("package 0", "cpu")]}, LIFE)
    wattribute.save(recording, tmp_path / "saved.watt")
    again = wattribute.load(tmp_path / "saved.watt")
    assert again.metadata == json.loads(json.dumps(recording.metadata))
    assert np.array_equal(again.signals[0].times, recording.signals[0].times)
    assert again.signals[0].scale == recording.signals[0].scale


def test_a_very_long_command_has_a_name_that_can_be_shown(folder):
    book = journal.Journal(folder / "journal")
    about = {"host": "h", "command": ["x" * 10_000], "monotonic_ns": 0, "epoch_ns": 0, "meters": []}
    book.about(about, [])
    book.flush()
    book.close()
    assert len(build.recover(folder).metadata["name"]) == 200


def test_readings_handed_on_in_blocks_make_the_same_recording(tmp_path, monkeypatch):
    """A day's journal is parsed block by block, so that it need not lie in memory."""
    from wattribute.journal import file
    from wattribute.readers.journal import build
    from wattribute.testing.sampling import Script, SimulatedMeter, Time, sample
    from wattribute.testing.simulation import Wave

    time = Time()
    whole = sample(tmp_path, [SimulatedMeter(time, [Wave(300), Wave(100)], 0.1)], Script(time, 5.0))
    monkeypatch.setattr(file, "BLOCK_BYTES", 100)
    path = tmp_path / "journal"
    for data in (path.read_bytes(), file.mapped(path)):
        again = build(data, path)
        assert len(again.signals) == 2
        for one, other in zip(whole.signals, again.signals, strict=True):
            assert one.times.tolist() == other.times.tolist()
            assert one.values.tolist() == other.values.tolist()


def test_readings_of_a_long_journal_stay_in_a_file_and_are_the_same(folder, tmp_path, monkeypatch):
    looks = [{"at": 100 * SECOND + i * SECOND // 4, "cpu_s": [[i / 8], [i / 2]]} for i in range(8)]
    shares = [{"at": 100 * SECOND + i * SECOND, "shares": {"package 0": 0.25 * i}} for i in range(3)]
    meters = {"rapl": [channel("package 0", "cpu"), channel("dram 0", "dram")], "hw": [channel("board", "node")]}
    whole = record(folder, meters, [*LIFE, *looks, *shares], rows=500, until=400)
    assert not any(isinstance(signal, StoredSignal) for signal in whole.signals)
    monkeypatch.setattr(journal, "BLOCK_BYTES", 1000)  # many pieces
    monkeypatch.setattr(build, "ReadingStore", partial(ReadingStore, limit_bytes=2000))
    files = set(folder.iterdir())
    stored = build.recover(folder)
    assert set(folder.iterdir()) == files  # theirs has no name
    assert sum(isinstance(signal, StoredSignal) for signal in stored.signals) == 3
    for before, after in zip(whole.signals, stored.signals, strict=True):
        assert {name: value for name, value in vars(before).items() if name not in ("times", "values")}.items() <= (
            vars(after).items()
        )
        assert len(after) == len(before)
        assert (after.times.tolist(), after.values.tolist()) == (before.times.tolist(), before.values.tolist())
        assert (after.dtype, after.extent, after.moves) == (before.dtype, before.extent, before.moves)
    monkeypatch.setattr(archive, "MANY_BYTES", 0)
    archive.save(whole, tmp_path / "whole.watt")
    archive.save(stored, tmp_path / "stored.watt")
    for file in (tmp_path / "whole.watt").rglob("*.*"):
        if file.is_file():
            assert (tmp_path / "stored.watt" / file.relative_to(tmp_path / "whole.watt")).read_bytes() == (
                file.read_bytes()
            )
    assert summarise(stored).as_dict() == summarise(whole).as_dict()
    opened = wattribute.read(tmp_path / "stored.watt")
    assert all(isinstance(signal, StoredSignal) for signal in opened.signals)
    assert wattribute.attribute(opened).rows.equals(wattribute.attribute(whole).rows)
    one = pickle.loads(pickle.dumps(opened.signals[0]))
    assert (type(one), one.values.tolist()) == (Signal, whole.signals[0].values.tolist())
    assert replace(opened.signals[0], host="other").times.tolist() == whole.signals[0].times.tolist()


def test_readings_stay_in_memory_where_no_file_can_be_written(folder, monkeypatch):
    whole = record(folder, {"rapl": [channel("package 0", "cpu")]}, LIFE)
    monkeypatch.setattr(build, "ReadingStore", partial(ReadingStore, limit_bytes=0))

    def refused(**_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(column_file.tempfile, "TemporaryFile", refused)
    assert build.recover(folder).signals[0].values.tolist() == whole.signals[0].values.tolist()
