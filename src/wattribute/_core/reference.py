"""The NumPy twin of the C kernels: slower, readable, the meaning of each of them.

``busy`` and ``fold`` take the span columns of one location (see ``model/spans.py`` for Spans, Curve, Keys and Fold).
The C kernels give the same bits, because both keep to these rules:

* a span whose ``row[frame]`` is −1 is not there: its children become its nearest kept ancestor's;
* S(t) = values[j] + slope_j · (t − times[j]) with slope_j = (values[j+1] − values[j]) / (times[j+1] − times[j]), time
  differences taken as integers first; flat outside the knots, exact on them;
* a span's total is S(end) − S(start); its self is that minus the sum of its children's totals, added up in the order in
  which they end; a row's sums are added up in the order in which spans end (a parent ends after its children);
* a row's total counts outermost activations only; a resumed span is not another call;
* bounds: a row's *runs* are the stretches of time it holds (self: as the innermost span; total: its outermost
  activations), of positive length, merged where they touch. Window i is (edges[i] − latency, edges[i+1]]. A run touches
  it when start < edges[i+1] and end > edges[i] − latency, covers it when start ≤ edges[i] − latency and
  end ≥ edges[i+1]. Every window counts once per row: in time order, low[i] of those that a run covers and high[i] of
  those that a run touches are added up one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def busy(spans: Any, keep: Any = None) -> tuple[Ints, Ints]:
    """When the location was inside a kept span of positive length: starts and ends, touching intervals merged."""
    there = spans.end > spans.start
    if keep is not None:
        there = there & np.asarray(keep, bool)[spans.frame]
    start, end = spans.start[there], spans.end[there]
    if not len(start):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    reach = np.maximum.accumulate(end)
    begins = np.concatenate([[True], start[1:] > reach[:-1]])
    return start[begins].astype(np.int64), reach[np.concatenate([begins[1:], [True]])].astype(np.int64)


def fold(spans: Any, curves: Sequence[Any], keys: Any) -> dict[str, Any]:
    """Roll one location up: the columns of ``model.Fold``, those per curve as arrays (curve, row)."""
    tree = _tree(spans, np.asarray(keys.row))
    rows, paths = keys.rows, None
    if keys.by_path:
        tree, paths = _by_path(tree)
        rows = len(paths[0])
    outer = _outermost(tree)
    ticks = tree.end - tree.start
    columns: dict[str, Any] = {
        "calls": _count(tree.row[~tree.resumed], None, rows),
        "self_ticks": _count(tree.row, ticks - _children(tree, ticks), rows),
        "total_ticks": _count(tree.row[outer], ticks[outer], rows),
    }
    parts = [_against(tree, outer, curve, rows) for curve in curves]
    for name, dtype in (("covered", np.int64), ("value", np.float64)):
        for which in ("self", "total"):
            values = [part[f"{which}_{name}"] for part in parts]
            columns[f"{which}_{name}"] = np.array(values, dtype).reshape(len(curves), rows)
    columns |= _bounds(tree, outer, curves, rows)
    return columns | {"paths": paths}


def segments(spans: Any, row: Any) -> dict[str, tuple[Ints, Ints, Ints]]:
    """A location as pieces of time (start, end, row), in the order they end: each row's own, and its activations.

    ``self`` are those of the innermost span, ``total`` the outermost activations of a row, ``calls`` all calls.
    """
    tree = _tree(spans, np.asarray(row))
    outer = _outermost(tree)
    new = tree.ended[~tree.resumed[tree.ended]]
    return {
        "self": _innermost(tree),
        "total": (tree.start[outer], tree.end[outer], tree.row[outer]),
        "calls": (tree.start[new], tree.end[new], tree.row[new]),
    }


def rows(spans: Any, keys: Any) -> tuple[Ints, tuple[Ints, Ints] | None]:
    """The row each span falls into (−1: none), and with ``by_path`` the paths as (frame, parent)."""
    tree, paths = _tree(spans, np.asarray(keys.row)), None
    if keys.by_path:
        tree, paths = _by_path(tree)
    row = np.full(len(spans.frame), -1, np.int64)
    if len(row):
        row[np.asarray(keys.row)[spans.frame] >= 0] = tree.row
    return row, paths


class _Tree(NamedTuple):
    """The kept spans in the order they began, with what nesting says about them."""

    start: Ints
    end: Ints
    row: Ints
    frame: Ints
    parent: Ints
    depth: Ints
    size: Ints  # spans in the subtree, itself included
    ended: Ints  # the spans in the order in which they end
    resumed: npt.NDArray[np.bool_]


def _levels(depth: Ints) -> Iterator[Ints]:
    """Indices of equal depth, outermost first."""
    order = np.argsort(depth, kind="stable")
    cuts = np.flatnonzero(np.diff(depth[order])) + 1
    return iter(np.split(order, cuts)) if len(order) else iter(())


def _tree(spans: Any, row_of_frame: Any) -> _Tree:
    frame = np.asarray(spans.frame, np.int64)
    row = row_of_frame[frame].astype(np.int64) if len(frame) else frame
    kept = row >= 0
    above = np.full(len(row), -1, np.int64)  # nearest kept ancestor
    depth = np.zeros(len(row), np.int64)
    for level in _levels(np.asarray(spans.depth, np.int64)):
        parent = spans.parent[level]
        held = kept[parent] & (parent >= 0)
        above[level] = np.where(parent < 0, -1, np.where(held, parent, above[parent]))
        depth[level] = np.where(above[level] < 0, 0, depth[above[level]] + 1)
    renumber = np.cumsum(kept) - 1
    parent = np.where(above < 0, -1, renumber[above])[kept] if len(row) else above
    depth = depth[kept]
    size = np.ones(len(depth), np.int64)
    for level in reversed(list(_levels(depth))):
        inner = level[parent[level] >= 0]
        np.add.at(size, parent[inner], size[inner])
    ended = np.empty(len(depth), np.int64)
    ended[np.arange(len(depth)) - depth + size - 1] = np.arange(len(depth))
    resumed = np.asarray(spans.resumed, bool)[kept]
    return _Tree(spans.start[kept], spans.end[kept], row[kept], frame[kept], parent, depth, size, ended, resumed)


def _by_path(tree: _Tree) -> tuple[_Tree, tuple[Ints, Ints]]:
    """The tree with call paths for rows, numbered as they are first entered, and the paths as (frame, parent)."""
    path = np.empty(len(tree.row), np.int64)  # provisional numbers, level by level
    first: list[Ints] = []
    width = int(tree.frame.max()) + 1 if len(tree.frame) else 1
    count = 0
    for level in _levels(tree.depth):
        above = np.where(tree.parent[level] < 0, -1, path[tree.parent[level]])
        _, at, which = np.unique((above + 1) * width + tree.frame[level], return_index=True, return_inverse=True)
        path[level] = count + which
        first.append(level[at])
        count += len(at)
    met = np.concatenate(first) if first else np.empty(0, np.int64)
    order = np.argsort(met)
    number = np.empty(count, np.int64)
    number[order] = np.arange(count)
    row = number[path]
    met = met[order]
    above = tree.parent[met]
    return tree._replace(row=row), (tree.frame[met], np.where(above < 0, -1, row[above]) if count else above)


def _outermost(tree: _Tree) -> Ints:
    """The spans without an ancestor of their own row, in the order in which they end."""
    by_row = np.argsort(tree.row, kind="stable")
    n = len(by_row)
    lane = tree.row[by_row] * (n + 1)  # keeps the running maximum of one row below the next row's
    reach = np.maximum.accumulate(lane + by_row + tree.size[by_row]) if n else by_row
    outer = np.ones(n, bool)
    outer[by_row[1:]] = lane[1:] + by_row[1:] >= reach[:-1]
    return tree.ended[outer[tree.ended]]


def _count(rows: Ints, amounts: Ints | None, length: int) -> Ints:
    """Integer sums per row."""
    out = np.zeros(length, np.int64)
    np.add.at(out, rows, 1 if amounts is None else amounts)
    return out


def _children(tree: _Tree, amounts: Ints) -> Ints:
    """Per span the integer sum over its children."""
    inner = tree.parent >= 0
    return _count(tree.parent[inner], amounts[inner], len(tree.parent))


def _against(tree: _Tree, outer: Ints, curve: Any, rows: int) -> dict[str, Any]:
    """One curve: values and covered time per row, summed in the order in which spans end."""
    total = evaluate(curve, tree.end) - evaluate(curve, tree.start)
    inner = tree.ended[tree.parent[tree.ended] >= 0]
    below = np.bincount(tree.parent[inner], weights=total[inner], minlength=len(total)) if len(total) else total
    self_ = total - below
    inside = covered(curve.pieces, tree.end) - covered(curve.pieces, tree.start)
    return {
        "self_value": np.bincount(tree.row[tree.ended], weights=self_[tree.ended], minlength=rows),
        "total_value": np.bincount(tree.row[outer], weights=total[outer], minlength=rows),
        "self_covered": _count(tree.row, inside - _children(tree, inside), rows),
        "total_covered": _count(tree.row[outer], inside[outer], rows),
    }


def evaluate(curve: Any, at: Ints) -> Floats:
    """S(t) at integer times."""
    times, values = curve.times, np.asarray(curve.values, np.float64)
    if len(times) < 2:
        return np.full(len(at), values[0] if len(values) else 0.0)
    slope = np.diff(values) / np.diff(times)
    j = np.clip(np.searchsorted(times, at, side="right") - 1, 0, len(slope) - 1)
    between: Floats = slope[j] * (at - times[j]) + values[j]
    return np.where(at <= times[0], values[0], np.where(at >= times[-1], values[-1], between))


def covered(pieces: Any, at: Ints) -> Ints:
    """Ticks inside the pieces before each moment."""
    if not len(pieces.start):
        return np.zeros(len(at), np.int64)
    before = np.concatenate([[0], np.cumsum(pieces.end - pieces.start)])
    j = np.searchsorted(pieces.start, at, side="right")
    last = np.maximum(j - 1, 0)
    inside = np.clip(at - pieces.start[last], 0, pieces.end[last] - pieces.start[last])
    return np.where(j > 0, before[last] + inside, 0)


def _bounds(tree: _Tree, outer: Ints, curves: Sequence[Any], rows: int) -> dict[str, Any]:
    names = ("self_low", "self_high", "total_low", "total_high")
    if all(curve.edges is None for curve in curves):
        return dict.fromkeys(names)
    runs = {"self": _runs(*_innermost(tree)), "total": _runs(tree.start[outer], tree.end[outer], tree.row[outer])}
    out = {name: np.full((len(curves), rows), np.nan) for name in names}
    for i, curve in enumerate(curves):
        if curve.edges is not None:
            for which, run in runs.items():
                out[f"{which}_low"][i], out[f"{which}_high"][i] = _windows(curve, *run, rows)
    return out


def _innermost(tree: _Tree) -> tuple[Ints, Ints, Ints]:
    """Pieces of time by the row of the innermost span: (start, end, row), in time order."""
    n = len(tree.row)
    entered = 2 * np.arange(n) - tree.depth  # the place of each enter and leave in the stream of events
    left = np.empty(n, np.int64)
    left[tree.ended] = np.arange(n)
    left += np.arange(n) + tree.size
    time = np.empty(2 * n, np.int64)
    time[entered], time[left] = tree.start, tree.end
    row = np.empty(2 * n, np.int64)
    row[entered] = tree.row
    row[left] = np.where(tree.parent < 0, -1, tree.row[tree.parent]) if n else tree.row
    start, end, row = time[:-1], time[1:], row[:-1]
    there = row >= 0
    return start[there], end[there], row[there]


def _runs(start: Ints, end: Ints, row: Ints) -> tuple[Ints, Ints, Ints]:
    """Pieces of positive length sorted by row, then time; merged where they touch."""
    order = np.argsort(row, kind="stable")
    order = order[end[order] > start[order]]
    start, end, row = start[order], end[order], row[order]
    begins = np.ones(len(row), bool)
    begins[1:] = (row[1:] != row[:-1]) | (start[1:] > end[:-1])
    ends = np.concatenate([begins[1:], [True]])[: len(row)]
    return start[begins], end[ends], row[begins]


def _windows(curve: Any, start: Ints, end: Ints, row: Ints, rows: int) -> tuple[Floats, Floats]:
    """The least and the greatest value of each row's runs."""
    opens, closes = curve.edges[:-1] - curve.latency_ticks, curve.edges[1:]
    j0 = np.searchsorted(opens, start, side="left")
    j1 = np.maximum(np.searchsorted(closes, end, side="right"), j0)
    k0 = np.searchsorted(closes, start, side="right")
    k1 = np.searchsorted(opens, end, side="left")
    same = np.zeros(len(row), bool)
    same[1:] = row[1:] == row[:-1]
    k0 = np.where(same, np.maximum(k0, np.concatenate([[0], k1[:-1]])[: len(row)]), k0)
    k1 = np.maximum(k1, k0)
    return _each_window(row, j0, j1, curve.low, rows), _each_window(row, k0, k1, curve.high, rows)


def _each_window(row: Ints, first: Ints, last: Ints, amounts: Floats, rows: int) -> Floats:
    """Per row the sum of amounts[first … last − 1] of all its runs, one by one."""
    many = last - first
    window = np.arange(int(many.sum())) + np.repeat(first - np.cumsum(many) + many, many)
    sums: Floats = np.bincount(np.repeat(row, many), weights=amounts[window], minlength=rows).astype(np.float64)
    return sums
