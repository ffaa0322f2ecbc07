"""Random recordings: the books balance, the numbers are those of the definition, and the bounds hold the truth."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.attribution import brute
from wattribute.engines import attribute
from wattribute.errors import NoDataError
from wattribute.model import Device, Frames, Link
from wattribute.testing.recordings import RecordingBuilder
from wattribute.testing.strategies import START, recordings

SHARES = ["even", "process", "full"]


def solved(recording, **options):
    """The attribution, or None where readings and spans share no time, or a counter never moved (which are errors).

    None also where the few readings look stale: that curve runs between changes only (test_energy has its numbers).
    """
    try:
        found = attribute(recording, threads=1, **options)
        return None if any(problem.kind == "stale" for problem in found.problems) else found
    except NoDataError as error:
        if "share no time" in str(error) or "the counter never moved" in str(error):
            return None
        raise


def column(found, name):
    return dict(zip(found.rows["frame"], found.rows[name], strict=True))


def near(found, expected):
    assert set(expected) <= set(found)
    for name, value in found.items():
        assert value == pytest.approx(expected.get(name, 0.0), rel=1e-9, abs=1e-9), name


@given(recordings(), st.sampled_from(SHARES))
def test_linear_is_the_definition(made, share):
    recording, _, _ = made
    signal = recording.signals[0]
    found = solved(recording, share=share)
    if found is None:
        return
    times, values, _ = brute.readings(signal)
    own, whole, idle = brute.attribute(recording, brute.linear(times, values), share)
    near(column(found, "self_j"), own)
    near(column(found, "total_j"), whole)
    (books,) = found.devices.to_dicts()
    assert books["measured_j"] == pytest.approx(values[-1], rel=1e-12)
    assert books["idle_j"] == pytest.approx(idle, rel=1e-9, abs=1e-9)
    if share != "full":
        assert found.rows["self_j"].sum() + books["idle_j"] == pytest.approx(books["measured_j"], rel=1e-9, abs=1e-9)


@given(recordings())
def test_window_is_the_definition_and_lies_within_the_bounds(made):
    recording, _, _ = made
    signal = recording.signals[0]
    found = solved(recording, method="window")
    if found is None:
        return
    own, idle = brute.window(recording, *brute.readings(signal)[:2])
    near(column(found, "self_j"), own)
    (books,) = found.devices.to_dicts()
    assert books["idle_j"] == pytest.approx(idle, rel=1e-9, abs=1e-9)
    assert found.rows["self_j"].sum() + books["idle_j"] == pytest.approx(books["measured_j"], rel=1e-9, abs=1e-9)
    within(found)


def within(found):
    for row in found.rows.to_dicts():
        for name in ("self", "total"):
            slack = 1e-9 * (1 + row[f"{name}_j"])
            assert row[f"{name}_low_j"] - slack <= row[f"{name}_j"] <= row[f"{name}_high_j"] + slack


@given(recordings(), st.sampled_from(SHARES))
def test_bounds_hold_the_truth(made, share):
    """The same share rule on the true curve, of which the readings told only a few points, perhaps late."""
    recording, truth, told = made
    found = solved(recording, share=share)
    if found is None:
        return
    rows = brute.readings(recording.signals[0])[2]
    rises = {tick: float(truth[tick - START]) for tick in range(int(told[rows[0]]), int(told[rows[-1]]))}
    own, whole, _ = brute.attribute(recording, rises, share)
    within(found)
    for name, true in (("self", own), ("total", whole)):
        low, high = column(found, f"{name}_low_j"), column(found, f"{name}_high_j")
        for frame in low:
            slack = 1e-9 * (1 + true[frame])
            assert low[frame] - slack <= true[frame] <= high[frame] + slack, (name, frame)


@given(recordings(), st.sampled_from(["reading", "bin=3s", "path", "process", "location", "paradigm", "host,role"]))
def test_every_grouping_adds_up_to_the_same(made, by):
    recording, _, _ = made
    whole = solved(recording, by="of")
    if whole is None:
        return
    found = solved(recording, by=f"device,{by}")
    assert found.rows["self_j"].sum() == pytest.approx(whole.rows["self_j"].sum(), rel=1e-9, abs=1e-9)
    assert found.rows["calls"].sum() == whole.rows["calls"].sum()
    assert found.rows["self_ns"].sum() == whole.rows["self_ns"].sum()
    each = attribute(recording, spans=True, threads=1)
    assert each.rows["self_j"].sum() == pytest.approx(whole.rows["self_j"].sum(), rel=1e-9, abs=1e-9)


KEYS = ("host", "process", "location", "frame", "path", "paradigm", "role", "file", "line", "run", "signal", "device")
ADDED = ("self_j", "self_ns", "calls")


@given(
    recordings(),
    st.lists(st.sampled_from(KEYS), min_size=1, max_size=4, unique=True),
    st.sampled_from(["", "", "bin=3s", "reading"]),
    st.booleans(),
)
def test_rows_of_any_keys_add_up_to_the_finest_rows(made, keys, slices, twice):
    """Frames b, c and d share a name, as methods of several classes do; ``twice``: two devices of the same users."""
    recording = _same_names(made.recording, twice)
    by = [*keys, *([slices] if slices else [])]
    fine = [*(key for key in KEYS if key not in ("signal", "device") or key in keys), *by[len(keys) :]]
    finest, coarse = solved(recording, by=",".join(fine)), solved(recording, by=",".join(by))
    if finest is None or coarse is None:
        return
    names = [name for name in coarse.rows.columns if name in finest.rows.columns[: len(fine) + 4]]
    groups = [name for name in names if name in (*keys, "of", "bin", "reading")]
    expected = finest.rows.group_by(groups).agg(pl.col(ADDED).sum())
    both = coarse.rows.join(expected, on=groups, how="full", nulls_equal=True, suffix="_fine")
    assert len(both) == len(coarse.rows)
    for name in ADDED:
        exact = {} if name != "self_ns" else {"abs": len(finest.rows)}  # each row is rounded to nanoseconds
        assert both[name].to_list() == pytest.approx(both[f"{name}_fine"].to_list(), rel=1e-9, **exact), name


def _same_names(recording, twice):
    frames = Frames.of([(name, "hip", "kernel", file, 1) for name, file in zip("abbb", "wxyy", strict=True)])
    more = {}
    if twice:
        (signal,) = recording.signals
        more["signals"] = (signal, replace(signal, device="GPU 1", values=signal.values))
        more["devices"] = (*recording.devices, Device("GPU 1", "gpu", recording.devices[0].host))
        users = tuple(range(len(recording.locations)))
        more["topology"] = tuple(Link(recording.devices[0].host, f"GPU {i}", users, "given") for i in (0, 1))
    return replace(recording, frames=frames, **more)


def test_equally_named_paths_add_times_and_calls():
    # forward of two classes, 4 s and 6 s at 10 W: one row of 100 J, 10 s, 10 W and 2 calls
    made = RecordingBuilder().frames("first", "second").thread([(0, 4, "first"), (4, 10, "second")])
    frames = Frames.of([("forward", "python", "function", "a.py", 1), ("forward", "python", "function", "b.py", 1)])
    recording = made.counter("package 0", [0, 100], every=10).recording(frames=frames)
    for by in ("path", "frame"):
        (row,) = attribute(recording, by=by, threads=1).rows.to_dicts()
        assert (row["self_j"], row["self_ns"], row["power_w"], row["calls"]) == (100, 10 * 10**9, 10, 2)


@given(recordings(), st.integers(-5, 30), st.integers(1, 20))
def test_a_part_of_the_time(made, begin, length):
    recording, _, _ = made
    signal = recording.signals[0]
    if solved(recording) is None:
        return
    end = begin + length
    found = attribute(recording, begin=begin, end=end, threads=1)
    rises = brute.linear(*brute.readings(signal)[:2])
    own, _, idle = brute.attribute(recording, {t: e for t, e in rises.items() if begin <= t < end})
    near(column(found, "self_j"), own)
    assert found.devices["idle_j"][0] == pytest.approx(idle, rel=1e-9, abs=1e-9)
    within(found)


@given(recordings(), st.sampled_from(SHARES), st.sampled_from(["linear", "window"]))
def test_threads_and_repeats_give_the_same_bits(made, share, method):
    recording, _, _ = made
    if solved(recording) is None:
        return
    several = [attribute(recording, share=share, method=method, by="device,process,path", threads=n) for n in (1, 3, 1)]
    for other in several[1:]:
        assert several[0].rows.equals(other.rows)
        assert several[0].devices.equals(other.devices)


def test_recursion_counts_once():
    """f calls itself: 10 J in all, of which f's total is 10 and not 16."""
    recording = RecordingBuilder().thread("f 0..10, f 2..8").counter("package 0", [0, 10], every=10).recording()
    (row,) = attribute(recording, by="frame").rows.to_dicts()
    assert (row["self_j"], row["total_j"], row["calls"]) == (10.0, 10.0, 2)
    paths = attribute(recording, by="path").rows.sort(pl.col("path").list.len())
    assert paths["self_j"].to_list() == [4.0, 6.0]
    assert paths["total_j"].to_list() == [10.0, 6.0]


def test_paths_of_the_same_names_are_one_row_whatever_the_files_of_their_callers():
    # main calls run of a.py for 4 s and run of b.py for 6 s, at 10 W; both call step of c.py all the time
    made = RecordingBuilder().frames("main", "first", "second", "step")
    made.thread([(0, 10, "main"), (0, 4, "first"), (0, 4, "step"), (4, 10, "second"), (4, 10, "step")])
    files = [("main", "m.py"), ("run", "a.py"), ("run", "b.py"), ("step", "c.py")]
    frames = Frames.of([(name, "python", "function", file, 1) for name, file in files])
    recording = made.counter("package 0", [0, 100], every=10).recording(frames=frames)
    rows = attribute(recording, by="path,file", threads=1).rows
    found = {(*row["path"], row["file"]): (row["self_j"], row["total_j"], row["calls"]) for row in rows.to_dicts()}
    assert len(rows) == len(found)
    assert found == {
        ("main", "m.py"): (0, 100, 1),
        ("main", "run", "a.py"): (0, 40, 1),
        ("main", "run", "b.py"): (0, 60, 1),
        ("main", "run", "step", "c.py"): (100, 100, 2),
    }
