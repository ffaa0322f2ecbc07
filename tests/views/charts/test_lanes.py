"""Bars of a lane add up to its joules, one by one or binned."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattribute.model import Spans
from wattribute.views.charts.lanes import bars, binned, exact, kept, per_call


def spans_of(rows):
    """Rows (start, end, frame, parent, depth)."""
    start, end, frame, parent, depth = (np.array(c) for c in zip(*rows, strict=True))
    return Spans(
        start.astype(np.int64), end.astype(np.int64), frame.astype(np.int32), parent.astype(np.int64),
        depth.astype(np.int32), np.zeros(len(rows), bool),
    )  # fmt: skip


# main 0…100 calls a 10…30 and b 30…70, b calls c 40…50; 2 J per tick
NESTED = spans_of([(0, 100, 0, -1, 0), (10, 30, 1, 0, 1), (30, 70, 2, 0, 1), (40, 50, 3, 2, 2)])


def twice(ticks):
    return 2.0 * np.asarray(ticks, float)


def test_each_span_has_its_self_and_total_energy():
    found = exact(NESTED, twice)
    assert found.total_j.tolist() == [200, 40, 80, 20]
    assert found.self_j.tolist() == [80, 40, 60, 20]  # 200 - 40 - 80; 80 - 20


def test_the_pieces_of_a_call_are_one_call():
    # a 0…10, cut and resumed 20…25; b 10…20 once; a again 30…40: two calls of a, of 2 × 15 J and 2 × 10 J
    rows = spans_of([(0, 10, 0, -1, 0), (10, 20, 1, -1, 0), (20, 25, 0, -1, 0), (30, 40, 0, -1, 0)])
    found = per_call(exact(replace(rows, resumed=np.array([False, False, True, False])), twice))
    assert found.frame.tolist() == [0, 0, 1]
    assert found.self_j.tolist() == [30, 20, 20]
    assert found.busy.tolist() == [15, 10, 10]
    assert found.calls.tolist() == [1, 1, 1]
    assert (found.start[0], found.end[0]) == (0, 25)


def test_bins_hold_what_ran_in_them():
    found = binned(NESTED, twice, np.array([0, 50, 100]), deepest=10)
    cells = {(int(d), int(s)): i for i, (d, s) in enumerate(zip(found.depth, found.start, strict=True))}
    # first half: main is there 50 ticks, of which a 20 and b 20 (c 10 of those); so self 10 ticks = 20 J
    assert found.self_j[cells[0, 0]] == 20
    assert found.total_j[cells[1, 0]] == 80
    assert found.self_j[cells[1, 0]] == 60  # a 20 ticks and b 10 ticks without c
    assert found.self_j[cells[2, 0]] == 20
    assert found.total_j[cells[1, 50]] == 40
    assert found.busy[cells[1, 50]] == 20
    assert found.calls.sum() == 4  # a span is counted in the bin where it begins
    assert found.top[cells[1, 0]] == [(1, 40.0), (2, 40.0)]
    assert found.self_j.sum() == 200


def test_levels_too_deep_to_draw_leave_their_joules_with_the_ancestor():
    found = binned(NESTED, twice, np.array([0, 100]), deepest=1)
    assert found.depth.max() == 1
    assert found.self_j.sum() == 200


def test_frames_left_out_leave_their_children_to_the_next_ancestor():
    found = kept(NESTED, np.array([True, True, False, True]))
    assert found.frame.tolist() == [0, 1, 3]
    assert found.parent.tolist() == [-1, 0, 0]
    assert found.depth.tolist() == [0, 1, 1]


def test_a_long_lane_is_binned_and_a_short_one_is_not():
    assert not bars(NESTED, twice, (0, 100), limit=4, bins=8).binned
    assert bars(NESTED, twice, (0, 100), limit=3, bins=8).binned
    assert len(bars(NESTED, twice, (0, 0), limit=3, bins=8)) == 3  # no time at all: one bin per depth


@st.composite
def lanes(draw):
    """Spans side by side with children, among them zero-length ones and ties."""
    rows, at = [], 0
    for _ in range(draw(st.integers(1, 12))):
        at += draw(st.integers(0, 5))
        end = at + draw(st.integers(0, 30))
        rows.append((at, end, draw(st.integers(0, 4)), -1, 0))
        parent, inner = len(rows) - 1, at
        while inner < end and draw(st.booleans()):
            start = draw(st.integers(inner, end))
            stop = draw(st.integers(start, end))
            rows.append((start, stop, draw(st.integers(0, 4)), parent, 1))
            inner = stop
        at = end
    return spans_of(rows)


@given(lanes(), st.integers(1, 40), st.integers(0, 2))
def test_binning_keeps_energy_time_and_calls(spans, bins, deepest):
    knots = np.array([-5, 20, 60, 500])
    values = np.array([0.0, 3.0, 50.0, 70.0])

    def received(ticks):
        return np.interp(ticks, knots, values)

    whole = exact(spans, received)
    edges = np.unique(np.linspace(0, int(spans.end.max()) + 1, bins + 1).astype(np.int64))
    found = binned(spans, received, edges, deepest)
    assert found.self_j.sum() == pytest.approx(whole.self_j.sum(), abs=1e-9)
    shown = spans.depth <= deepest
    assert found.calls.sum() == shown.sum()
    assert found.busy.sum() == (spans.end - spans.start)[shown].sum()
