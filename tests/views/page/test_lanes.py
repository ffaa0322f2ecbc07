"""A lane on disk answers for any stretch of time as if all its spans were in memory."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattribute._core import tiles
from wattribute.testing.recordings import spans
from wattribute.testing.strategies import curves, nested_spans
from wattribute.views.page import lanes
from wattribute.views.page.lanes import Grid, Lane, LaneFiles, LaneWriter, exact


def stored(folder, table, keep=None, energies=None, length=None, before=()):
    """The lane as written and read back; ``before``: lanes that stand before it in the same files."""
    keep = np.ones(4, bool) if keep is None else keep
    length = max([1, *table.end.tolist()]) if length is None else length
    writer = LaneWriter(folder, Grid.over(length))
    for i, other in enumerate(before):
        writer.add(100 + i, other, keep, energies)
    entry = writer.add(7, table, keep, energies)
    writer.close()
    return Lane(LaneFiles(folder), entry, keep, energies)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("lanes")


ranges = st.tuples(st.integers(0, 45), st.integers(1, 20)).map(lambda pair: (pair[0], pair[0] + pair[1]))
pairs = curves(bounds=False).map(lambda curve: (curve.times, curve.values))
keeps = st.lists(st.booleans(), min_size=4, max_size=4).map(np.array)


@given(nested_spans(most=30), nested_spans(), pairs, keeps, ranges, st.integers(1, 5), st.sampled_from([0, 60]))
def test_a_stretch_from_disk_is_the_stretch_from_memory(folder, table, other, energies, keep, ab, stride, unused):
    a, b = ab
    table = replace(table, frame=table.frame + unused)  # of more frames than spans a lane counts its own only
    keep = np.append(np.ones(unused, bool), keep)
    old, lanes.STRIDE = lanes.STRIDE, stride  # small blocks, so that a small lane has many
    try:
        lane = stored(folder, table, keep, energies, length=70, before=[other])
        sums = lane.sums(a, b)
        starts, width, bins = lane.bins(a, b, 8)
        shown = exact(lane, a, b)
    finally:
        lanes.STRIDE = old
    for mine, whole in zip(sums[1:], tiles.sums(table, len(keep), keep, energies, a, b), strict=True):
        spread = np.zeros(len(keep))
        spread[sums[0]] = mine
        assert spread.tolist() == pytest.approx(whole.tolist(), rel=1e-12, abs=1e-12)
    assert starts <= a
    assert starts + width * len(bins) >= min(b, 70)
    _, calls, joules = tiles.sums(table, len(keep), keep, energies, starts, starts + width * len(bins))
    assert bins["calls"].sum() == calls.sum()
    assert set(bins["frame"].tolist()) <= {-1, *table.frame.tolist()}
    assert bins["energy"].sum() == pytest.approx(joules.sum(), rel=1e-9, abs=1e-9)
    touch = ((table.end > a) | (table.start >= a)) & (table.start < b)
    assert set(np.flatnonzero(touch)) <= {int(row) for row in shown["row"]}
    assert [int(row["frame"]) for row in shown] == [int(table.frame[int(row["row"])]) for row in shown]


def test_exact_spans_carry_their_energy(folder):
    # S rises by 2 J per tick: the span [3, 9) used 12 J, and its child [4, 5), whose frame is not kept, none of its own
    table = spans([(3, 9, 0, -1), (4, 5, 1, 0)])
    lane = stored(folder, table, np.array([True, False, True, True]), (np.array([0, 10]), np.array([0.0, 20.0])))
    shown = exact(lane, 0, 10)
    assert shown["energy"][0] == 12
    assert np.isnan(shown["energy"][1])
    assert np.isnan(exact(stored(folder, table), 0, 10)["energy"]).all()  # nothing was metered


def test_the_children_of_a_span_skip_frames_that_are_not_kept(folder):
    table = spans([(0, 9, 0, -1), (1, 6, 1, 0), (2, 4, 2, 1), (7, 8, 3, 0)])
    start, end = stored(folder, table, np.array([True, False, True, True])).children(0)
    assert sorted(zip(start.tolist(), end.tolist(), strict=True)) == [(2, 4), (7, 8)]


def test_finding_the_next_span_of_a_frame(folder):
    lane = stored(folder, spans([(0, 1, 0, -1), (2, 3, 1, -1), (4, 5, 1, -1)]))
    assert lane.first_of([1], -1, 99) == 1
    assert lane.first_of([1], 2, 99) == 2
    assert lane.first_of([1], 2, 4) is None
    assert lane.first_of([3], -1, 99) is None


def test_few_spans_get_few_levels():
    grid = Grid.over(10**9)
    assert grid.width << grid.depth >= 10**9
    assert lanes.levels_for(0, grid) == 1
    assert lanes.levels_for(10**6, grid) == grid.depth + 1
    assert Grid.over(1) == Grid(1, 0)
