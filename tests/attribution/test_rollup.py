"""Lines become rows: groups by number are those that NumPy finds row by row; long call paths are cut."""

from __future__ import annotations

import weakref
from collections import deque

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tests.views.stories import ranks
from wattribute import attribute
from wattribute.attribution.join import GroupResult, Part
from wattribute.attribution.key_columns import grouped
from wattribute.attribution.rollup import merged
from wattribute.engines import work
from wattribute.model import (
    Clock,
    Device,
    Fold,
    Frames,
    Locations,
    Nodes,
    Processes,
    Recording,
    Signal,
    SpanTable,
)
from wattribute.model.spans import BOUNDS
from wattribute.testing.recordings import spans


@pytest.mark.parametrize("columns", [1, 3, 6])  # six of 10^4 values: more combinations than a number of 64 bits has
@pytest.mark.parametrize("values", [3, 10_000])
def test_groups_are_those_of_rows(columns, values):
    random = np.random.default_rng(columns)
    lines = np.concatenate([np.arange(values), random.integers(-values, values, 20_000)])
    table = [np.append(lines, lines[:500])[random.permutation(len(lines) + 500)] for _ in range(columns)]
    table = [np.concatenate([column, column[:100]]) for column in table]
    _, first, group = np.unique(np.stack(table, axis=1), axis=0, return_index=True, return_inverse=True)
    found = grouped(table, len(table[0]))
    np.testing.assert_array_equal(found[0], first)
    np.testing.assert_array_equal(found[1], group.reshape(-1))


@pytest.mark.parametrize("values", [2, 50, 10**9])  # all tied, most, hardly any
def test_lines_stand_in_the_order_of_their_columns(values):
    from wattribute.attribution.rollup import _sorted

    random = np.random.default_rng(values)
    lead, second = (np.where(random.random(5000) < 0.1, np.nan, random.integers(0, values, 5000)) for _ in range(2))
    third = random.integers(0, 3, 5000)
    np.testing.assert_array_equal(
        _sorted(lead, [second.__getitem__, third.__getitem__]), np.lexsort((third, second, lead))
    )


@pytest.mark.parametrize("by", ["path", "path,bin=1s"])
def test_paths_beyond_the_longest_count_in_it(by, monkeypatch):
    # a stack of 6, one tick of 1 J per level on the way in and on the way out: level i holds 2 J itself, the last 1
    from wattribute.attribution import rollup

    depth = 6
    levels = spans([(i, 2 * depth - 1 - i, i, i - 1) for i in range(depth)])
    times = np.array([0, 2 * depth - 1])
    recording = Recording(
        clock=Clock(ticks_per_s=1_000),
        frames=Frames.of([(f"level {i}",) for i in range(depth)]),
        nodes=Nodes.of([(0, "n", "node")]),
        processes=Processes.of([(0, "p", "process", 0)]),
        locations=Locations.of([(0, "t", "cpu", 0)]),
        spans=SpanTable({0: levels}),
        signals=(Signal("energy", "counter", "J", times, times, host="n", device="package 0"),),
        devices=(Device("package 0", "cpu", "n"),),
    )
    whole = attribute(recording, by=by)
    monkeypatch.setattr(rollup, "MAX_PATH_FRAMES", 3)
    found = attribute(recording, by=by)
    assert [len(path) for path in found.rows.sort("total_j", descending=True)["path"]] == [1, 2, 3]
    # 2 J, 2 J, and 11 − 4 J of the third level and all below it
    assert found.rows.sort("total_j", descending=True)["self_j"].to_list() == [2, 2, 7]
    assert found.rows["self_j"].sum() == whole.rows["self_j"].sum() == 11
    last = found.rows.filter(pl.col("path").list.len() == 3)
    assert last["self_high_j"].to_list() == last["total_high_j"].to_list()
    assert last["calls"].to_list() == [1]
    assert [one.message for one in found.problems] == [
        "3 call paths have more than 3 frames; they count in the path of the first 3"
    ]
    assert not whole.problems


@pytest.mark.parametrize("keys", [{"by": "frame"}, {"by": "path"}, {"by": "device,frame", "statistics": True}])
def test_groups_merged_one_after_the_other_give_the_same_bits(keys, monkeypatch):
    recording = ranks(hosts=4)
    whole, merges = attribute(recording, **keys), []
    monkeypatch.setattr(work, "LINES", 1)
    monkeypatch.setattr(work, "MAX_GROUPS", 1)
    monkeypatch.setattr(work, "merged", lambda *given: merges.append(given) or merged(*given))
    assert_frame_equal(attribute(recording, **keys).rows, whole.rows, check_exact=True)
    assert merges


def test_parts_are_freed_while_their_lines_are_built(monkeypatch):
    from wattribute.attribution import rollup

    def part(location):
        numbers = np.arange(3)
        floats = np.full((1, 3), 0.5)
        covered, bounds = numbers[np.newaxis], dict.fromkeys(BOUNDS)
        fold = Fold(numbers, numbers, numbers, covered, covered, floats, floats.copy(), **bounds)
        return Part((location,), (0,), fold)

    monkeypatch.setattr(rollup, "_BLOCK_ROWS", 3)  # a part each
    queue = deque([GroupResult([part(0), part(1)], []), GroupResult([part(2)], [])])
    alive = [weakref.ref(one.fold.self_value) for group in queue for one in group.parts]
    parts = deque(one for group in rollup.drained(queue) for one in group.parts)
    assert not queue
    held = []
    for block in rollup._blocks(parts):
        held.append(sum(one() is not None for one in alive))
        del block
    assert held == [3, 2, 1]
    assert not any(one() is not None for one in alive)
