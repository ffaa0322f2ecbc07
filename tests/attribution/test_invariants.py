"""Random recordings: the books balance, the numbers are those of the definition, and the bounds hold the truth."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.attribution import brute
from tests.recordings import spans
from tests.strategies import START, recordings
from wattribute.engines import attribute
from wattribute.errors import NoDataError
from wattribute.model import (
    Clock,
    Device,
    Frames,
    Locations,
    Nodes,
    Processes,
    Recording,
    Signal,
    SpanTable,
)

SHARES = ["even", "process", "full"]


def solved(recording, **options):
    """The attribution, or None where readings and spans share no time (which is an error, and rightly so).

    None also where the few readings look stale: that curve runs between changes only (test_energy has its numbers).
    """
    try:
        found = attribute(recording, threads=1, **options)
        return None if any(problem.kind == "stale" for problem in found.problems) else found
    except NoDataError as error:
        if "share no time" in str(error):
            return None
        raise


def column(found, name):
    return dict(zip(found.rows["frame"], found.rows[name], strict=True))


def near(found, expected):
    assert set(expected) <= set(found)
    for name, value in found.items():
        assert value == pytest.approx(expected.get(name, 0.0), rel=1e-9, abs=1e-9), name


@settings(max_examples=60, deadline=None)
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


@settings(max_examples=40, deadline=None)
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


@settings(max_examples=60, deadline=None)
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


@settings(max_examples=40, deadline=None)
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


@settings(max_examples=60, deadline=None)
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


@settings(max_examples=25, deadline=None)
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

    recording = Recording(
        Clock(1),
        Frames.of([("f",)]),
        Nodes.of([(0, "n", "node")]),
        Processes.of([(0, "p", "process", 0)]),
        Locations.of([(0, "t", "cpu", 0)]),
        SpanTable({0: spans([(0, 10, 0, -1), (2, 8, 0, 0)])}),
        (Signal("e", "counter", "J", np.array([0, 10]), np.array([0, 10]), host="n", device="package 0"),),
        (Device("package 0", "cpu", "n"),),
    )
    (row,) = attribute(recording, by="frame").rows.to_dicts()
    assert (row["self_j"], row["total_j"], row["calls"]) == (10.0, 10.0, 2)
    paths = attribute(recording, by="path").rows.sort(pl.col("path").list.len())
    assert paths["self_j"].to_list() == [4.0, 6.0]
    assert paths["total_j"].to_list() == [10.0, 6.0]
