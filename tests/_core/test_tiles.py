"""The bins of a lane: sums survive at every level, C and its twin agree, and a case worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattribute._core import reference_tiles, tiles
from wattribute.testing.recordings import spans
from wattribute.testing.strategies import curves, nested_spans

pairs = curves(bounds=False).map(lambda curve: (curve.times, curve.values))
keeps = st.lists(st.booleans(), min_size=4, max_size=4).map(np.array)


def test_by_hand():
    # main [0, 16) holds f [2, 10), which holds g [4, 6); bins of 4 ticks; S rises by 2 J per tick up to t = 8, then 1.
    lane = spans([(0, 16, 0, -1), (2, 10, 1, 0), (4, 6, 2, 1)])
    curve = (np.array([0, 8, 16]), np.array([0.0, 16.0, 24.0]))
    out = tiles.bins(lane, 3, np.ones(3, bool), curve, 0, 4, 2, 3)
    root, halves, quarters = out[:1], out[1:3], out[3:]
    # quarter 0: main 2, f 2 (the tie goes to the lower frame); 1: g 2, f 2 -> f; 2: f 2, main 2 -> main; 3: main 4
    assert quarters["frame"].tolist() == [0, 1, 0, 0]
    assert quarters["energy"].tolist() == [8, 8, 4, 4]
    assert quarters["calls"].tolist() == [2, 1, 0, 0]
    assert quarters["peak"].tolist() == [2, 2, 1, 1]
    # halves: f 4, main 2, g 2 -> f, though it was the longest in one quarter only; main 6, f 2 -> main
    assert halves["frame"].tolist() == [1, 0]
    assert halves["energy"].tolist() == [16, 8]
    assert root["frame"][0] == 0
    assert root["busy"][0] == 1
    ticks, calls, energy = tiles.sums(lane, 3, np.ones(3, bool), curve, 3, 9)
    # inside [3, 9): f [3, 4) and [6, 9), g [4, 6); joules: f 2 + 2·2 + 1, g 2·2
    assert (ticks.tolist(), calls.tolist(), energy.tolist()) == ([0, 4, 2], [0, 0, 1], [0, 7, 4])


def test_a_frame_that_is_not_kept_leaves_its_energy_to_the_one_around_it():
    lane = spans([(0, 8, 0, -1), (2, 4, 1, 0), (8, 10, 1, -1)])
    curve = (np.array([0, 10]), np.array([0.0, 10.0]))
    ticks, _, energy = tiles.sums(lane, 2, np.array([True, False]), curve, 0, 10)
    assert ticks.tolist() == [6, 4]
    assert energy.tolist() == [8, 0]  # [8, 10) has no kept span around it


@given(nested_spans(), pairs, keeps, st.integers(1, 7), st.integers(0, 5), st.integers(0, 20), st.data())
def test_c_says_what_the_twin_says(lane, curve, keep, width, depth, t0, data):
    levels = data.draw(st.integers(1, depth + 1))
    one = tiles.bins(lane, 4, keep, curve, t0, width, depth, levels)
    two = reference_tiles.bins(lane, 4, keep, curve, t0, width, depth, levels)
    for name in ("frame", "calls", "busy"):
        assert one[name].tolist() == two[name].tolist()
    for name in ("energy", "peak"):
        assert one[name].tolist() == pytest.approx(two[name].tolist(), rel=1e-9, abs=1e-9)
    for left, right in zip(
        tiles.sums(lane, 4, keep, curve, t0, t0 + width * 9),
        reference_tiles.sums(lane, 4, keep, curve, t0, t0 + width * 9),
        strict=True,
    ):
        assert left.tolist() == pytest.approx(right.tolist(), rel=1e-9, abs=1e-9)


def test_blocks_by_hand():
    # main [0, 16) calls f [2, 10); 1 J per tick from 4 on; blocks of 8 ticks; f is not kept in the second case
    lane = spans([(0, 16, 0, -1), (2, 10, 1, 0)])
    curve = (np.array([4, 16]), np.array([0.0, 12.0]))
    for keep, joules, ticks in (
        ([True, True], [[0, 4], [6, 2]], [[0, 4], [6, 2]]),
        ([True, False], [[4, 0], [8, 0]], [[4, 0], [8, 0]]),
    ):
        covered, energy = np.zeros((2, 2), np.int64), np.zeros((2, 2))
        tiles.add_blocks(lane, np.array(keep), curve, 0, 8, covered, energy)
        assert (energy.tolist(), covered.tolist()) == (joules, ticks)


@given(nested_spans(), pairs, keeps, st.integers(1, 9), st.integers(1, 6))
def test_blocks_of_c_are_those_of_the_twin(lane, curve, keep, width, blocks):
    sums = []
    for core in (tiles, reference_tiles):
        covered, energy = np.zeros((blocks, 4), np.int64), np.zeros((blocks, 4))
        core.add_blocks(lane, keep, curve, 0, width, covered, energy)
        sums.append((covered.tolist(), energy))
    assert sums[0][0] == sums[1][0]
    assert sums[0][1] == pytest.approx(sums[1][1], rel=1e-9, abs=1e-9)


@given(nested_spans(), pairs, keeps, st.integers(0, 5))
def test_no_energy_vanishes_at_any_level(lane, curve, keep, depth):
    whole = int(max([1, *lane.end.tolist()])) + 1  # what lies before 0 is outside the bins and the sums alike
    width = -(-whole // (1 << depth))
    out = tiles.bins(lane, 4, keep, curve, 0, width, depth, depth + 1)
    ticks, calls, energy = tiles.sums(lane, 4, keep, curve, 0, width << depth)
    for level in range(depth + 1):
        bins = out[(1 << level) - 1 : (2 << level) - 1]
        assert bins["energy"].sum() == pytest.approx(energy.sum(), rel=1e-9, abs=1e-9)
        assert bins["calls"].sum() == calls.sum()
        wide = width << (depth - level)
        assert float(bins["busy"].astype(float).sum()) * wide == pytest.approx(ticks.sum(), rel=1e-5)


def test_a_frame_out_of_range_is_refused():
    with pytest.raises(ValueError, match="frame"):
        tiles.bins(spans([(0, 8, 5, -1)]), 2, np.ones(2, bool), None, 0, 1, 3, 4)


def test_the_c_core_was_built():
    """Otherwise the comparison above would compare the twin with itself."""
    assert tiles.LIBRARY is not None
