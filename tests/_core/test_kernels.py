"""busy and fold in C have the bits of their NumPy twin: over columns, and fused with decoding."""

from __future__ import annotations

import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattribute import samples
from wattribute._core import kernels, library, otf2, reference, reference_otf2
from wattribute._core.records import LocationFiles, LookUpTables
from wattribute.model import Curve, Intervals, Keys
from wattribute.readers.otf2.writer import Writer
from wattribute.testing.strategies import curves, nested_spans

from .oracle import Oracle
from .test_fidelity import TRACES, busy_tables, same

pytestmark = pytest.mark.skipif(library.LIBRARY is None, reason="the C core was not compiled")

FRAMES = 4


@st.composite
def keys(draw: Any) -> Keys:
    row = [draw(st.integers(-1, 2)) for _ in range(FRAMES)]
    return Keys(np.array(row, np.int32), 3, draw(st.booleans()))


def same_fold(expected: dict[str, Any], found: dict[str, Any]) -> None:
    assert expected.keys() == found.keys()
    for name, values in expected.items():
        if name == "paths":
            assert (values is None) == (found[name] is None)
            for a, b in zip(values or (), found[name] or (), strict=True):
                np.testing.assert_array_equal(a, b)
        elif isinstance(values, np.ndarray):
            assert (found[name].dtype, found[name].shape) == (values.dtype, values.shape), name
            np.testing.assert_array_equal(values, found[name], err_msg=name)  # NaN equals NaN
        else:
            assert found[name] == values, name


@given(nested_spans(frames=FRAMES), st.none() | st.lists(st.booleans(), min_size=FRAMES, max_size=FRAMES))
def test_busy_over_columns(spans: Any, keep: Any) -> None:
    kept = None if keep is None else np.array(keep)
    for a, b in zip(reference.busy(spans, kept), kernels.busy(spans, kept), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@given(nested_spans(frames=FRAMES, most=20), st.lists(curves(), max_size=3), keys())
def test_fold_over_columns(spans: Any, several: list[Curve], chosen: Keys) -> None:
    same_fold(reference.fold(spans, several, chosen), kernels.fold(spans, several, chosen))


def _curves_around(files: Any, seed: int) -> list[Curve]:
    """Irregular readings around a location's time, as a counter with bounds and latency, and as a plain curve."""
    random = np.random.default_rng(seed)
    time = otf2.events(files)["time"].astype(np.int64) - files.offset_ticks
    first, last = (int(time.min()), int(time.max())) if len(time) else (0, 1)
    span = max(last - first, 10)
    several = []
    for n, latency in ((300, span // 50), (7, 0)):
        times = np.unique(random.integers(first - span // 9, last + span // 9, n))
        values = np.cumsum(random.exponential(3.3, len(times)))
        middle = len(times) // 2
        pieces = Intervals(times[[0, middle + 1]], times[[middle, -1]])
        high = np.diff(values)
        several.append(Curve(times, values, pieces, times, high / 3, high, latency))
    return [*several, Curve(times, values, pieces)]


def trace_of(request: pytest.FixtureRequest, name: str) -> Path:
    """The sample that every clone has, or a real trace."""
    folder = samples.path("trace") if name == "samples" else request.getfixturevalue("shared") / "traces" / name
    return Path(folder / "traces.otf2")


@pytest.mark.parametrize("name", ["samples", *TRACES])
def test_fused_equals_decode_then_numpy(request: pytest.FixtureRequest, name: str) -> None:
    oracle = Oracle(trace_of(request, name))
    tables = busy_tables(oracle)
    frames = len(tables.keep)
    random = np.random.default_rng(7)
    row = random.integers(-1, 9, frames).astype(np.int32)
    for location in oracle.locations:
        files = oracle.files(location)
        spans = otf2.decode(files, tables, metrics=False)
        around = _curves_around(files, location % 1000)
        view = type("Spans", (), spans)
        for by_path, several in product((False, True), (around, around[:1], around[1:2], around[2:])):
            chosen = Keys(row, 9, by_path)  # one curve, with bounds and without, has loops of its own
            found = otf2.fold(files, tables, several, chosen)
            rest = {key: found.pop(key) for key in ("counts", "program", "nesting", "undefined", "backward", "status")}
            same(rest, {key: spans[key] for key in rest})
            same_fold(reference.fold(view, several, chosen), found)
        busy = otf2.busy(files, tables)
        for a, b in zip(reference.busy(view), (busy["start"], busy["end"]), strict=True):
            np.testing.assert_array_equal(a, b)


@given(nested_spans(frames=FRAMES, most=30), st.lists(curves(), min_size=1, max_size=2), keys())
def test_fused_over_a_written_file(spans: Any, several: list[Curve], chosen: Keys) -> None:
    """The same spans from a file; a resumed one is a call like any other there."""
    with tempfile.TemporaryDirectory() as folder:
        with Writer(Path(folder), offset_ticks=1000) as trace:
            for number in range(FRAMES):
                trace.region(f"function {number}")
            location = trace.location("thread", trace.process("rank", trace.node("host", "node")))
            for time, entering, row in _in_order(spans):
                (location.enter if entering else location.leave)(1000 + time, int(spans.frame[row]))
        files = LocationFiles(f"{folder}/traces/0.evt", f"{folder}/traces/0.def", 1 << 20, 1 << 18, 1000, 0)
        none = np.empty(0, np.int32)
        tables = LookUpTables(np.arange(FRAMES, dtype=np.int32), none, none, np.ones(FRAMES, np.uint8))
        found = otf2.fold(files, tables, several, chosen)
        read = type("Spans", (), otf2.decode(files, tables, metrics=False))
    np.testing.assert_array_equal(read.start, spans.start)
    expected = reference.fold(read, several, chosen)
    same_fold(expected, {name: found[name] for name in expected})


def _in_order(spans: Any) -> list[tuple[int, bool, int]]:
    """Enters and leaves as a program would make them: a parent's around those of its children."""
    below: dict[int, list[int]] = {}
    for row, parent in enumerate(spans.parent.tolist()):
        below.setdefault(parent, []).append(row)

    def of(row: int) -> list[tuple[int, bool, int]]:
        inside = [event for child in below.get(row, []) for event in of(child)]
        return [(int(spans.start[row]), True, row), *inside, (int(spans.end[row]), False, row)]

    return [event for row in below.get(-1, []) for event in of(row)]


@pytest.mark.parametrize("name", ["samples", "ping-pong-papi"])
def test_the_twin_over_files_is_the_same(request: pytest.FixtureRequest, name: str) -> None:
    oracle = Oracle(trace_of(request, name))
    tables = busy_tables(oracle)
    chosen = Keys(np.arange(len(tables.keep), dtype=np.int32), len(tables.keep))
    for location in oracle.locations:
        files = oracle.files(location)
        around = _curves_around(files, 3)
        same_fold(reference_otf2.fold(files, tables, around, chosen), otf2.fold(files, tables, around, chosen))
        same(reference_otf2.busy(files, tables), otf2.busy(files, tables))
