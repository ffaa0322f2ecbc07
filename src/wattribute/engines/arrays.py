"""Attribution as array operations, written once: the same lines run on NumPy's arrays and on those of a server.

The locations that are folded against the same curves are *lanes* of one long table of spans (``Lanes``). Energy is a
lookup in a curve (``rise``), what is asked for are sums by (lane, row), so nothing but readings, busy intervals of
shared devices and those sums passes through the client. ``_core.reference`` says what every step means; where it walks
through spans in the order they end, sums by row do the same: a row's self is its spans' totals minus those of their
children, and time between children is found by sorting siblings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..model import Curve, Fold, Intervals, Paths
from .verbs import Numbers, Verbs


@dataclass(frozen=True)
class Lanes:
    """Spans of several locations, one location after another; ``parent`` is a row of this table or −1."""

    verbs: Verbs
    count: int
    lane: Any
    start: Any
    end: Any
    frame: Any
    parent: Any
    resumed: Any

    def __len__(self) -> int:
        return int(self.start.size)

    def only(self, kept: Any, parent: Any) -> Lanes:
        """Some spans; ``parent`` names kept rows only."""
        verbs = self.verbs
        number = verbs.cumsum(verbs.where(kept, 1, 0)) - 1
        above = parent[kept]
        above = verbs.where(above < 0, -1, number[verbs.where(above < 0, 0, above)])
        names = ("lane", "start", "end", "frame", "resumed")
        return replace(self, parent=above, **{name: getattr(self, name)[kept] for name in names})


def lanes(verbs: Verbs, columns: dict[str, Any], sizes: Sequence[int]) -> Lanes:
    """Columns of locations one after another, each with so many spans and parents counted from its own first."""
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    lane = verbs.search(verbs.put(first[1:]), verbs.arange(int(first[-1])), "right")
    parent = columns["parent"]
    shifted = verbs.where(parent < 0, -1, parent + verbs.put(first)[lane])
    named = {name: columns[name] for name in ("start", "end", "frame", "resumed")}
    return Lanes(verbs, len(sizes), lane, parent=shifted, **named)


def between(spans: Lanes, begin: int, end: int) -> Lanes:
    """Spans cut to [begin, end)."""
    start, stop = spans.start, spans.end
    kept = ((start < end) & (stop > begin)) | ((start == stop) & (start >= begin) & (start < end))
    where = spans.verbs.where
    cut = replace(spans, start=where(start < begin, begin, start), end=where(stop > end, end, stop))
    return cut.only(kept, spans.parent) if spans.verbs.any(~kept) else cut


def kept(spans: Lanes, row_of: npt.NDArray[np.int64], kind: Sequence[int]) -> tuple[Lanes, Any]:
    """Without the spans whose ``row_of[kind of the lane, frame]`` is −1; their children move up. The rest's rows."""
    verbs, frames = spans.verbs, row_of.shape[1]
    row = verbs.put(row_of.ravel())[verbs.put(np.array(kind, np.int64))[spans.lane] * frames + spans.frame]
    if (row_of >= 0).all() or not verbs.any(row < 0):
        return spans, row
    above = spans.parent
    while True:
        here = verbs.where(above < 0, 0, above)
        gone = (above >= 0) & (row[here] < 0)
        if not verbs.any(gone):
            break
        above = verbs.where(gone, spans.parent[here], above)
    stays = row >= 0
    return spans.only(stays, above), row[stays]


def busy(spans: Lanes) -> list[Intervals]:
    """Per lane when it was inside a span of positive length; touching intervals are merged."""
    outer = (spans.parent < 0) & (spans.end > spans.start)
    start, end, lane = _runs(spans.verbs, spans.start[outer], spans.end[outer], spans.lane[outer])
    get = spans.verbs.get
    start, end, edges = get(start), get(end), np.searchsorted(get(lane), np.arange(spans.count + 1))
    return [Intervals(start[a:b], end[a:b]) for a, b in pairwise(edges)]


def fold(spans: Lanes, row: Any, rows: int, curves: Sequence[Curve], paths_of: int | None = None) -> list[Fold]:
    """Each lane rolled up against curves; with ``paths_of`` frames call paths are the rows."""
    verbs, paths = spans.verbs, None
    if paths_of is not None:
        row, paths = _paths(spans, paths_of)
        rows = len(paths)
    code, size = spans.lane * rows + row, spans.count * rows
    inner = spans.parent >= 0
    outer = None if paths is not None or not verbs.any(inner) else _outermost(spans, row)
    columns = [verbs.where(spans.resumed, 0, 1), spans.end - spans.start]
    for curve in curves:
        columns += [covered(verbs, curve.pieces, spans), rise(verbs, curve, spans)]
    own = verbs.sums(code, size, columns)
    below = [np.zeros_like(sums) for sums in own]
    if verbs.any(inner):
        below[1:] = verbs.sums(code[spans.parent[inner]], size, [column[inner] for column in columns[1:]])
    whole = own if outer is None else verbs.sums(code[outer], size, [column[outer] for column in columns])
    bounds = _bounds(spans, code, size, outer, curves)

    def of(lane: int) -> Fold:
        part = slice(lane * rows, (lane + 1) * rows)
        self_ = [(a - b)[part] for a, b in zip(own, below, strict=True)]
        total = [sums[part] for sums in whole]
        return Fold(
            calls=own[0][part],
            self_ticks=self_[1],
            total_ticks=total[1],
            self_covered=_stack(self_[2::2], rows, np.int64),
            total_covered=_stack(total[2::2], rows, np.int64),
            self_value=_stack(self_[3::2], rows, np.float64),
            total_value=_stack(total[3::2], rows, np.float64),
            paths=paths,
            **{name: None if found is None else found[:, part] for name, found in bounds.items()},
        )

    return [of(lane) for lane in range(spans.count)]


def _stack(columns: Sequence[Numbers], rows: int, like: type) -> Any:
    return np.stack(columns) if len(columns) else np.zeros((0, rows), like)


class Line(NamedTuple):
    """A piecewise linear function on the server; flat before its first and after its last knot."""

    verbs: Verbs
    times: Any  # to search in
    knots: tuple[Any, Any, Any]  # time, value and slope from each knot on, and one more in front for what is before

    def at(self, moments: Any) -> Any:
        place = self.verbs.search(self.times, moments, "right")
        time, value, slope = (column[place] for column in self.knots)
        return slope * (moments - time) + value

    def over(self, spans: Lanes) -> Any:
        """What it rises by during each span."""
        return self.at(spans.end) - self.at(spans.start)


def _line(verbs: Verbs, times: Numbers, values: Numbers, slopes: Numbers) -> Line:
    knots = (times[:1], times), (values[:1], values), (slopes[:0], [0], slopes, [0])
    return Line(verbs, verbs.put(times), tuple(verbs.put(np.concatenate(parts)) for parts in knots))


def rise(verbs: Verbs, curve: Curve, spans: Lanes) -> Any:
    """What a curve rose by during each span, with the arithmetic of ``reference.evaluate``."""
    times, values = np.asarray(curve.times, np.int64), np.asarray(curve.values, np.float64)
    if len(times) < 2:
        return verbs.zeros(len(spans), float)
    return _line(verbs, times, values, np.diff(values) / np.diff(times)).over(spans)


def covered(verbs: Verbs, pieces: Intervals, spans: Lanes) -> Any:
    """Ticks of each span inside pieces of time."""
    if not len(pieces.start):
        return verbs.zeros(len(spans), int)
    before = np.cumsum(pieces.end - pieces.start)
    times = np.stack([pieces.start, pieces.end], axis=1).ravel()
    values = np.stack([before - (pieces.end - pieces.start), before], axis=1).ravel()
    return _line(verbs, times, values, np.tile([1, 0], len(pieces))[:-1]).over(spans)


def _walk(spans: Lanes) -> Iterator[tuple[Any, Any]]:
    """Each span with each of its ancestors: (places of spans, places of their ancestors), a generation at a time."""
    who = spans.verbs.arange(len(spans))
    above = spans.parent
    while True:
        has = above >= 0
        if not spans.verbs.any(has):
            return
        who, above = who[has], above[has]
        yield who, above
        above = spans.parent[above]


def _outermost(spans: Lanes, row: Any) -> Any:
    """Which spans have no ancestor of their own row; None if all."""
    inside = spans.verbs.zeros(len(spans), int)
    for who, above in _walk(spans):
        inside[who] = inside[who] + spans.verbs.where(row[above] == row[who], 1, 0)
    return None if not spans.verbs.any(inside > 0) else inside == 0


def _paths(spans: Lanes, frames: int) -> tuple[Any, Paths]:
    """Call paths, numbered a generation at a time."""
    verbs = spans.verbs
    depth = verbs.zeros(len(spans), int)
    for who, _ in _walk(spans):
        depth[who] = depth[who] + 1
    path = verbs.zeros(len(spans), int)
    frame: list[Numbers] = []
    parent: list[Numbers] = []
    made = level = 0
    while verbs.any(depth == level):
        at = verbs.arange(len(spans))[depth == level]
        above = spans.parent[at]
        key = verbs.where(above < 0, 0, path[verbs.where(above < 0, 0, above)] + 1) * frames + spans.frame[at]
        keys, which = verbs.distinct(key)
        path[at] = which + made
        frame.append(keys % frames)
        parent.append(keys // frames - 1)
        made, level = made + len(keys), level + 1
    none = np.empty(0, np.int64)
    return path, Paths(np.concatenate([*frame, none]), np.concatenate([*parent, none]))


# ---------------------------------------------------------------------------------------------------------- bounds


def _bounds(spans: Lanes, code: Any, size: int, outer: Any, curves: Sequence[Curve]) -> dict[str, Any]:
    names = ("self_low", "self_high", "total_low", "total_high")
    if all(curve.edges is None for curve in curves):
        return dict.fromkeys(names)
    found = {name: np.full((len(curves), size), np.nan) for name in names}
    whole = (spans.start, spans.end, code) if outer is None else (spans.start[outer], spans.end[outer], code[outer])
    pieces = _innermost(spans, code)
    runs = {which: _by_code(spans.verbs, *those) for which, those in (("self", pieces), ("total", whole))}
    for c, curve in enumerate(curves):
        if curve.edges is not None:
            for which, run in runs.items():
                low, high = _windows(spans.verbs, curve, *run, size)
                found[f"{which}_low"][c], found[f"{which}_high"][c] = low, high
    return found


def _innermost(spans: Lanes, code: Any) -> tuple[Any, Any, Any]:
    """Pieces of time by the innermost span's code: up to its first child, and from each child's end to the next one."""
    verbs, count = spans.verbs, len(spans)
    inner = spans.parent >= 0
    if not verbs.any(inner):
        return spans.start, spans.end, code
    is_first = verbs.join([spans.parent[1:] == verbs.arange(count - 1), verbs.zeros(1, bool)])
    after = verbs.join([spans.start[1:], verbs.zeros(1, int)])
    nested = verbs.arange(count)[inner]
    nested = nested[verbs.order(spans.parent[nested], nested)]
    above = spans.parent[nested]
    sibling = verbs.join([above[1:] == above[:-1], verbs.zeros(1, bool)])
    begins = verbs.join([spans.start[nested][1:], verbs.zeros(1, int)])
    return (
        verbs.join([spans.start, spans.end[nested]]),
        verbs.join([verbs.where(is_first, after, spans.end), verbs.where(sibling, begins, spans.end[above])]),
        verbs.join([code, code[above]]),
    )


def _by_code(verbs: Verbs, start: Any, end: Any, code: Any) -> tuple[Any, Any, Any]:
    """Pieces of positive length sorted by code, then time; merged where they touch."""
    there = end > start
    start, end, code = start[there], end[there], code[there]
    order = verbs.order(code, start)
    return _runs(verbs, start[order], end[order], code[order])


def _runs(verbs: Verbs, start: Any, end: Any, code: Any) -> tuple[Any, Any, Any]:
    """Neighbours of one code that touch are merged."""
    if not int(start.size):
        return start, end, code
    one = ~verbs.zeros(1, bool)
    begins = verbs.join([one, (code[1:] != code[:-1]) | (start[1:] > end[:-1])])
    ends = verbs.join([begins[1:], one])
    return start[begins], end[ends], code[begins]


def _windows(verbs: Verbs, curve: Curve, start: Any, end: Any, code: Any, size: int) -> list[Numbers]:
    """The least and the greatest value of each code's runs, as ``reference._windows``."""
    if not int(start.size):
        return [np.zeros(size), np.zeros(size)]
    edges, low, high = (np.asarray(part) for part in (curve.edges, curve.low, curve.high))
    opens, closes = verbs.put(edges[:-1] - curve.latency_ticks), verbs.put(edges[1:])
    low, high = (verbs.put(np.concatenate([[0.0], np.cumsum(part)])) for part in (low, high))
    j0, j1 = verbs.search(opens, start, "left"), verbs.search(closes, end, "right")
    j1 = verbs.where(j1 < j0, j0, j1)
    k0, k1 = verbs.search(closes, start, "right"), verbs.search(opens, end, "left")
    none = verbs.zeros(1, int)
    before = verbs.join([none, k1[:-1]])
    same = verbs.join([none == 1, code[1:] == code[:-1]])
    k0 = verbs.where(same & (before > k0), before, k0)
    k1 = verbs.where(k1 < k0, k0, k1)
    return verbs.sums(code, size, [low[j1] - low[j0], high[k1] - high[k0]])
