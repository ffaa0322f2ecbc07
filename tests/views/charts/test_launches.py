"""Kernels below the calls that launched them: hand-made launches, real callsites, and traces that record none."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import wattribute
from tests.views.stories import streams
from wattribute.model import Clock, Device, Frames, Launches, Link, Locations, Nodes, Processes, Recording, Signal
from wattribute.model.spans import SpanTable, launches_of
from wattribute.testing.recordings import spans
from wattribute.views import plot
from wattribute.views.charts.launches import UNKNOWN, launched


def job(told):
    """A thread: main [0, 100) calls a [10, 40) and b [50, 90). Its stream runs k at 20, 60 and 80, for 10 ticks each.

    1 J per tick, so 10 J a call.
    """
    names = [("main", "compiler", "function"), ("a", "compiler", "function"), ("b", "compiler", "function")]
    table = {
        0: spans([(0, 100, 0, -1), (10, 40, 1, 0), (50, 90, 2, 0)]),
        1: spans([(20, 30, 3, -1), (60, 70, 3, -1), (80, 90, 3, -1)]),
    }
    return Recording(
        clock=Clock(ticks_per_s=1, length_ticks=100),
        frames=Frames.of([*names, ("k", "hip", "kernel")]),
        nodes=Nodes.of([(0, "n", "node")]),
        processes=Processes.of([(0, "rank", "process", 0), (1, "context", "accelerator", 0, 0)]),
        locations=Locations.of([(0, "thread", "cpu", 0, 6), (1, "stream", "gpu", 1, 6)]),
        spans=SpanTable(table, told),
        signals=(Signal("e", "counter", "J", np.array([0, 100]), np.array([0, 100]), host="n", device="GPU 0"),),
        devices=(Device("GPU 0", "gpu", "n"),),
        topology=(Link("n", "GPU 0", (0, 1), "made so"),),
    )


def rows(*launches):
    """(stream, start, thread, moment) of each launch."""
    location, start, host, at = np.array(launches, np.int64).T
    return Launches(location.astype(np.int32), start, host.astype(np.int32), at)


def paths(recording, **options):
    table = wattribute.attribute(recording, by="path", **{"of": "kernels"} | options)
    return {leaf.path: (leaf.self_j, leaf.calls) for leaf in launched(table, unknown=True)}


def test_a_kernel_stands_below_the_call_in_which_it_was_launched():
    # at 15 in main → a, at 55 in main → b, at 95 in main, after b has returned
    told = rows((1, 20, 0, 15), (1, 60, 0, 55), (1, 80, 0, 95))
    assert paths(job(told)) == {
        ("main", "a", "k"): (pytest.approx(10), 1),
        ("main", "b", "k"): (pytest.approx(10), 1),
        ("main", "k"): (pytest.approx(10), 1),
    }


def test_what_no_launch_is_recorded_of_is_launched_by_unknown():
    assert paths(job(None)) == {(UNKNOWN, "k"): (pytest.approx(30), 3)}
    some = rows((1, 20, 0, 15), (1, 60, 0, 200))  # the second points behind the end of the thread
    assert paths(job(some)) == {("main", "a", "k"): (pytest.approx(10), 1), (UNKNOWN, "k"): (pytest.approx(20), 2)}


def test_rows_of_host_threads_stay_as_they_are():
    table = wattribute.attribute(job(rows((1, 20, 0, 15))), by="path", of="host")
    assert {leaf.path for leaf in launched(table, unknown=True)} == {("main",), ("main", "a"), ("main", "b")}


def test_a_part_of_the_time_keeps_its_launches():
    told = rows((1, 20, 0, 15), (1, 60, 0, 55), (1, 80, 0, 95))
    found = paths(job(told), begin=50.0, end=100.0)
    assert found == {("main", "b", "k"): (pytest.approx(10), 1), ("main", "k"): (pytest.approx(10), 1)}


def test_the_graph_has_the_root_and_the_flame_has_none():
    recording = job(None)
    boxes = [r for r in plot.draw("callgraph", [recording], of="kernels").to_dict()["datasets"].values() if r]
    assert {row["name"] for rows in boxes for row in rows if "name" in row} == {UNKNOWN, "k"}
    flame = [r for r in plot.draw("flame", [recording], of="kernels").to_dict()["datasets"].values() if r]
    assert {row["frame"] for rows in flame for row in rows if "depth2" in row and "frame" in row} == {"k", "idle"}


def test_callsites_of_score_p(shared):
    recording = wattribute.read(shared / "traces" / "simple-mi300")
    told = launches_of(recording.spans)
    assert [recording.locations.name[row] for row in told.location] == ["HIP[0:0]", "HIP[1:0]"]
    assert (told.at < told.start).all()  # launched before it ran
    found = paths(recording)
    for kernel, energy in (("heavy_kernel", 1842.495723400), ("light_kernel", 1119.269555645)):  # the oracle's joules
        signature = f"{kernel}(float*, float const*)"
        path = ("main", f"__device_stub__{signature}", "hipLaunchKernel", signature)
        assert found.pop(path) == (pytest.approx(energy, rel=1e-9), 1)
    assert not found


def test_callsites_whose_threads_are_missing_are_unknown(shared):
    recording = wattribute.read(shared / "traces" / "frontier-hpl-partial")
    assert len(launches_of(recording.spans).at) == 0
    table = wattribute.attribute(recording, by="path", of="kernels")
    leaves = launched(table, unknown=True)
    assert {leaf.path[0] for leaf in leaves} == {UNKNOWN}
    assert sum(leaf.self_j for leaf in leaves) == pytest.approx(table.rows["self_j"].sum())


def test_a_recording_without_launches_says_none():
    assert launches_of(streams(["a"]).spans) is None


@pytest.mark.parametrize(
    ("sample", "stack"),
    [("nsys-small.sql", ["train", "epoch 1", "cudaLaunchKernel_v7000"]),
     ("chrome-pytorch.json", ["train", "step", "aten::mm", "cudaLaunchKernel"])],
)  # fmt: skip
def test_correlations_of_other_tools_are_read_and_archived(tmp_path, sample, stack):
    source = Path(__file__).parents[2] / "data" / "readers" / sample
    if source.suffix == ".sql":
        with closing(sqlite3.connect(tmp_path / "x.sqlite")) as database:
            database.executescript(source.read_text())
        source = tmp_path / "x.sqlite"
    recording = wattribute.read(source)
    told = launches_of(recording.spans)
    wattribute.save(recording, tmp_path / "x.watt")
    again = launches_of(wattribute.load(tmp_path / "x.watt").spans)
    for name in ("location", "start", "host", "at"):
        assert np.array_equal(getattr(told, name), getattr(again, name))
    assert len(told.at) == 1  # the other kernels have no number, or that of no call
    on_stream, on_thread = recording.spans.spans(told.location[0]), recording.spans.spans(told.host[0])
    kernel = int(np.flatnonzero(on_stream.start == told.start[0])[0])
    assert recording.frames.role[on_stream.frame[kernel]] == "kernel"
    inside = (on_thread.start <= told.at[0]) & (told.at[0] < on_thread.end)
    assert [recording.frames.name[row] for row in on_thread.frame[inside]] == stack


def test_a_number_that_two_calls_have_says_nothing(tmp_path):
    # two processes count alike: 5 is launched twice, 6 once
    calls = [("cuda_runtime", pid, "launch", 10 * pid, number) for pid in (1, 2) for number in (5, 5 + pid)]
    kernels = [("kernel", 0, "k", 100 + 10 * number, number) for number in (5, 6, 7, 8)]
    events = [
        {"ph": "X", "cat": cat, "pid": pid, "tid": 1, "name": name, "ts": at, "dur": 1, "args": {"correlation": number}}
        for cat, pid, name, at, number in (*calls, *kernels)
    ]
    (tmp_path / "x.json").write_text(json.dumps({"traceEvents": events}))
    told = launches_of(wattribute.read(tmp_path / "x.json").spans)
    assert (told.start - told.start.min()).tolist() == [0, 10_000]  # 6 and 7: neither 5 nor 8
