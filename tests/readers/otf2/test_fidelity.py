"""A Recording holds what the official reader gives: spans with their frames and times, signals with their readings."""

from pathlib import Path

import numpy as np
import pytest

import wattribute

from ..._core.oracle import Oracle

TRACES = (
    "cloverleaf-openacc-cuda frontier-hpl-partial jacobi-mpi-omp-cuda mpi-otf2-3 ompt-nested opencl-cubex "
    "ping-pong-papi simple-mi300"
)
ENTER, LEAVE, METRIC = 12, 13, 31


def nested(kinds, times, refs):
    """(start, end, region, parent) of each call in the order of their enters; real traces here are well nested."""
    calls, stack = [], []
    for kind, time, ref in zip(kinds, times, refs, strict=True):
        if kind == ENTER:
            stack.append(len(calls))
            calls.append([int(time), 0, int(ref), stack[-2] if len(stack) > 1 else -1])
        elif kind == LEAVE:
            call = calls[stack.pop()]
            assert call[2] == ref
            call[1] = int(time)
    assert not stack
    return np.array(calls, np.int64).reshape(-1, 4)


def same_spans(recording, row, events, regions):
    times = (events["time"] - np.uint64(recording.clock.offset_ticks)).view(np.int64)
    expected = nested(events["kind"], times, events["ref"])
    spans = recording.spans.spans(row)
    called = np.array([role != "copy" for role in recording.frames.role])[spans.frame]
    assert (called | (recording.locations.kind[row] == "gpu")).all()  # copies are made on streams alone
    np.testing.assert_array_equal(spans.start[called], expected[:, 0])
    np.testing.assert_array_equal(spans.end[called], expected[:, 1])
    np.testing.assert_array_equal([regions[frame] for frame in spans.frame[called]], expected[:, 2])
    if called.all():
        np.testing.assert_array_equal(spans.parent, expected[:, 3])


def same_signals(recording, row, events):
    mine = [signal for signal in recording.signals if signal.location == row]
    times = (events["time"][events["kind"] == METRIC] - np.uint64(recording.clock.offset_ticks)).view(np.int64)
    first = np.cumsum(events["metric_n"]) - events["metric_n"]
    at = 0
    for metric in np.unique(events["metric_id"]):
        of = np.flatnonzero(events["metric_id"] == metric)
        for member in range(int(events["metric_n"][of[0]])):
            signal = mine[at]
            np.testing.assert_array_equal(signal.times, times[of])
            bits = events["metric_bits"][(first[of] + np.uint64(member)).astype(np.int64)]
            np.testing.assert_array_equal(signal.values.view(np.uint64), bits)
            at += 1
    assert at == len(mine)


@pytest.mark.parametrize("name", TRACES.split())
def test_real_traces(shared: Path, name: str):
    oracle = Oracle(shared / "traces" / name / "traces.otf2")
    recording = wattribute.read(shared / "traces" / name)
    rows = {int(number): row for row, number in enumerate(recording.locations.id)}
    assert [recording.frames.name[i] for i in range(len(oracle.regions))] == region_names(oracle)
    seen = 0
    for location, events in oracle.events().items():
        row = rows[location]
        same_signals(recording, row, events)
        if recording.locations.kind[row] != "metric":
            same_spans(recording, row, events, oracle.regions)
        seen += len(events["time"])
    assert seen == sum(oracle.locations.values()) > 0


def region_names(oracle):
    with oracle.otf2.reader.open(str(oracle.anchor)) as trace:
        return [region.name for region in trace.definitions.regions]
