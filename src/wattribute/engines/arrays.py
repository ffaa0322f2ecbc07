"""Attribution as array operations, written once: the same lines run on NumPy's arrays and on those of a server.

The locations of some groups are *lanes* of one long table of spans (``Lanes``). Energy is a lookup in a curve, and the
curves of all lanes lie one behind the other in one table (``ArrayCurves``): a step is one command to a server, however
many groups, devices and locations take part. What is asked for are sums by (lane, row), so nothing but readings, busy
intervals of shared devices and those sums passes through the client. ``_core.reference`` says what every step means;
where it walks through spans in the order they end, sums by row do the same: a row's self is its spans' totals minus
those of their children, and the time between children comes from sorting siblings.
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


def busy(spans: Lanes, lanes: Sequence[int] | None = None) -> list[Intervals]:
    """Per lane when it was inside a span of positive length, of these lanes only; touching intervals are merged."""
    verbs = spans.verbs
    outer = (spans.parent < 0) & (spans.end > spans.start)
    if lanes is not None and len(lanes) < spans.count:
        outer = outer & (verbs.put(np.isin(np.arange(spans.count), lanes))[spans.lane])
    start, end, lane = _runs(verbs, spans.start[outer], spans.end[outer], spans.lane[outer])
    start, end, edges = verbs.get(start), verbs.get(end), np.searchsorted(verbs.get(lane), np.arange(spans.count + 1))
    return [Intervals(start[a:b], end[a:b]) for a, b in pairwise(edges)]


def fold(
    spans: Lanes, row: Any, rows: int, curves: Sequence[Sequence[Curve]], paths_of: int | None = None
) -> list[Fold]:
    """Each lane rolled up against its own curves; with ``paths_of`` frames call paths are the rows."""
    verbs, paths = spans.verbs, None
    if paths_of is not None:
        row, paths = _paths(spans, paths_of)
        rows = len(paths)
    code, size = spans.lane * rows + row, spans.count * rows
    inner = spans.parent >= 0
    nested = verbs.any(inner)
    outer = None if paths is not None or not nested else _outermost(spans, row)
    columns = [verbs.where(spans.resumed, 0, 1), spans.end - spans.start]
    tables = ArrayCurves.of(spans, curves)
    for slot in tables.slots:
        columns += [slot.rise(slot.covered), slot.rise(slot.values)]
    own = verbs.sums(code, size, columns)
    below = [np.zeros_like(sums) for sums in own]
    if nested:
        below[1:] = verbs.sums(code[spans.parent[inner]], size, [column[inner] for column in columns[1:]])
    whole = own if outer is None else verbs.sums(code[outer], size, [column[outer] for column in columns])
    bounds = _bounds(spans, tables, code, rows, outer, nested)
    tables.slots.clear()  # they name each other: the server would keep their arrays until the next garbage collection

    def of(lane: int) -> Fold:
        part, count = slice(lane * rows, (lane + 1) * rows), len(curves[lane])
        self_ = [(a - b)[part] for a, b in zip(own, below, strict=True)]
        total = [sums[part] for sums in whole]
        bounded = any(curve.edges is not None for curve in curves[lane])
        return Fold(
            calls=own[0][part],
            self_ticks=self_[1],
            total_ticks=total[1],
            self_covered=_stack(self_[2::2][:count], rows, np.int64),
            total_covered=_stack(total[2::2][:count], rows, np.int64),
            self_value=_stack(self_[3::2][:count], rows, np.float64),
            total_value=_stack(total[3::2][:count], rows, np.float64),
            paths=paths,
            **{name: sums[:count, part] if bounded else None for name, sums in bounds.items()},
        )

    return [of(lane) for lane in range(spans.count)]


def _stack(columns: Sequence[Numbers], rows: int, like: type) -> Any:
    return np.stack(columns) if len(columns) else np.zeros((0, rows), like)


class ArrayKnots(NamedTuple):
    """Piecewise linear functions one behind the other, flat before their first and after their last knot."""

    times: list[Numbers]
    values: list[Numbers]
    slopes: list[Numbers]  # from each knot on to the next


class Slot:
    """The first curve of each lane, or the second …: lanes of one device have the same one."""

    def __init__(self, lines: ArrayCurves, curves: Sequence[Curve | None]) -> None:
        self.lines = lines
        number: dict[int, int] = {}
        self.curves: list[Curve | None] = []
        for curve in curves:
            if id(curve) not in number:
                number[id(curve)] = len(number)
                self.curves.append(curve)
        self.curve_of_lane = np.array([number[id(curve)] for curve in curves], np.int64)
        spans, verbs = lines.spans, lines.spans.verbs
        self.which = verbs.put(self.curve_of_lane)
        curve = self.which[spans.lane]
        self.curve = verbs.join([curve, curve])  # of each span's start, then of each span's end
        self.moments = self.curve * lines.width + lines.moments

    @property
    def values(self) -> ArrayKnots:
        """What users received: with the arithmetic of ``reference.evaluate``."""
        knots = ArrayKnots([], [], [])
        for curve in self.curves:
            whole = curve is not None and len(curve.times) > 1
            times = np.asarray(curve.times, np.int64) if curve is not None and whole else np.empty(0, np.int64)
            values = np.asarray(curve.values, np.float64) if curve is not None and whole else np.empty(0)
            knots.times.append(times)
            knots.values.append(values)
            knots.slopes.append(np.diff(values) / np.diff(times))
        return knots

    @property
    def covered(self) -> ArrayKnots:
        """Ticks inside of the pieces of time that readings cover."""
        knots = ArrayKnots([], [], [])
        for curve in self.curves:
            none = np.empty(0, np.int64)
            start, end = (none, none) if curve is None else (curve.pieces.start, curve.pieces.end)
            before = np.cumsum(end - start)
            knots.times.append(np.stack([start, end], axis=1).ravel())
            knots.values.append(np.stack([before - (end - start), before], axis=1).ravel())
            knots.slopes.append(np.tile([1, 0], len(start))[:-1])
        return knots

    def rise(self, knots: ArrayKnots) -> Any:
        """What the functions rise by during each span."""
        lines, verbs = self.lines, self.lines.spans.verbs
        one, like = np.zeros(1, np.int64), np.float64 if any(v.dtype.kind == "f" for v in knots.values) else np.int64
        time = np.concatenate([np.concatenate([t[:1] if len(t) else one + lines.base, t]) for t in knots.times])
        value = np.concatenate([np.concatenate([v[:1] if len(v) else one, v]) for v in knots.values])
        pairs = zip(knots.slopes, knots.times, strict=True)
        slope = np.concatenate([np.concatenate([one, slopes, one[: len(times)]]) for slopes, times in pairs])
        keys = lines.keys(knots.times)
        place = verbs.search(verbs.put(keys), self.moments, "right") + self.curve  # each function has a row in front
        since = lines.moments - verbs.put(time - lines.base)[place]
        at = verbs.put(slope.astype(like))[place] * since + verbs.put(value.astype(like))[place]
        count = len(lines.spans)
        return at[count:] - at[:count]


class ArrayCurves:
    """The curves of all lanes on one axis: a moment of curve n lies at n · width + time."""

    def __init__(self, spans: Lanes, base: int, width: int) -> None:
        self.spans, self.base, self.width = spans, base, width
        self.moments = spans.verbs.join([self.since(spans.start), self.since(spans.end)])
        self.slots: list[Slot] = []

    @classmethod
    def of(cls, spans: Lanes, curves: Sequence[Sequence[Curve]]) -> ArrayCurves:
        times = [time for some in curves for curve in some for time in _times(curve)]
        low, high = min((int(t.min()) for t in times), default=0), max((int(t.max()) for t in times), default=0)
        instance = cls(spans, low - 1, high - low + 3)
        for slot in range(max(map(len, curves), default=0)):
            instance.slots.append(Slot(instance, [some[slot] if slot < len(some) else None for some in curves]))
        return instance

    def since(self, moments: Any) -> Any:
        """Ticks since the beginning of the axis; moments outside of all curves lie at its ends."""
        where, last = self.spans.verbs.where, self.base + self.width - 1
        moments = where(moments < self.base, self.base, moments)
        return where(moments > last, last, moments) - self.base

    def keys(self, times: Sequence[Numbers]) -> Numbers:
        return np.concatenate([n * self.width + (t - self.base) for n, t in enumerate(times)]).astype(np.int64)


def _times(curve: Curve) -> list[Numbers]:
    """The moments of a curve that a span is compared with."""
    moments = [np.asarray(curve.times), curve.pieces.start, curve.pieces.end]
    if curve.edges is not None:
        moments += [np.asarray(curve.edges), np.asarray(curve.edges) - curve.latency_ticks]
    return [times for times in moments if len(times)]


def most_curves(curves: Sequence[Curve]) -> int:
    """How many curves fit on one axis of int64."""
    times = [time for curve in curves for time in _times(curve)]
    length = max((int(t.max()) for t in times), default=0) - min((int(t.min()) for t in times), default=0) + 3
    return int(2**62 // length)


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
    """Which spans have no ancestor in the same row; None if all."""
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
    numbered = level = 0
    while verbs.any(depth == level):
        at = verbs.arange(len(spans))[depth == level]
        above = spans.parent[at]
        key = verbs.where(above < 0, 0, path[verbs.where(above < 0, 0, above)] + 1) * frames + spans.frame[at]
        keys, which = verbs.distinct(key)
        path[at] = which + numbered
        frame.append(keys % frames)
        parent.append(keys // frames - 1)
        numbered, level = numbered + len(keys), level + 1
    none = np.empty(0, np.int64)
    return path, Paths(np.concatenate([*frame, none]), np.concatenate([*parent, none]))


# ---------------------------------------------------------------------------------------------------------- bounds


def _bounds(spans: Lanes, lines: ArrayCurves, code: Any, rows: int, outer: Any, nested: bool) -> dict[str, Any]:
    """The least and the greatest value of each (curve, code); NaN where a curve has no bounds."""
    names, size = ("self_low", "self_high", "total_low", "total_high"), spans.count * rows
    bounds = {name: np.full((len(lines.slots), size), np.nan) for name in names}
    bounded = [any(curve is not None and curve.edges is not None for curve in slot.curves) for slot in lines.slots]
    if not any(bounded):
        return bounds
    whole = (spans.start, spans.end, code) if outer is None else (spans.start[outer], spans.end[outer], code[outer])
    pieces = {"self": _innermost(spans, code), "total": whole} if nested else {"total": whole}
    for which, those in pieces.items():
        start, end, run = _by_code(spans.verbs, *those)
        runs = _Runs(lines.since(start), lines.since(end), run, run // rows)
        slots = [slot for slot, has in zip(lines.slots, bounded, strict=True) if has]
        sums = iter(spans.verbs.sums(run, size, [column for slot in slots for column in _windows(slot, runs)]))
        for number, slot in enumerate(lines.slots):
            if bounded[number]:
                low, high = next(sums), next(sums)
                has = np.array([curve is not None and curve.edges is not None for curve in slot.curves], bool)
                kept = np.repeat(has[slot.curve_of_lane], rows)
                for name in (which,) if nested else ("self", "total"):  # without children self is total
                    bounds[f"{name}_low"][number] = np.where(kept, low, np.nan)
                    bounds[f"{name}_high"][number] = np.where(kept, high, np.nan)
    return bounds


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


class _Runs(NamedTuple):
    """Pieces of time by code and time; ``start`` and ``end`` since the beginning of the axis of ``ArrayCurves``."""

    start: Any
    end: Any
    code: Any
    lane: Any


def _windows(slot: Slot, runs: _Runs) -> tuple[Any, Any]:
    """The least and the greatest value of each run, as ``reference._windows``."""
    lines, verbs, none = slot.lines, slot.lines.spans.verbs, np.empty(0, np.int64)
    if not int(runs.start.size):
        return verbs.zeros(0, float), verbs.zeros(0, float)
    edges, low, high = [], [], []
    for curve in slot.curves:
        bounds = None if curve is None or curve.edges is None else (curve.edges, curve.low, curve.high)
        own = [np.asarray(column) for column in bounds or (none, none, none)]
        edges.append(own[0])
        low.append(np.concatenate([[0.0], np.cumsum(own[1])]))
        high.append(np.concatenate([[0.0], np.cumsum(own[2])]))
    late = [curve.latency_ticks if curve is not None else 0 for curve in slot.curves]
    opens = verbs.put(lines.keys([some[:-1] - ticks for some, ticks in zip(edges, late, strict=True)]))
    closes = verbs.put(lines.keys([some[1:] for some in edges]))
    least, greatest = verbs.put(np.concatenate(low)), verbs.put(np.concatenate(high))
    which = slot.which[runs.lane]  # each curve has one running sum more than windows
    first = which * lines.width
    begin, stop = first + runs.start, first + runs.end
    j0, j1 = verbs.search(opens, begin, "left"), verbs.search(closes, stop, "right")
    j1 = verbs.where(j1 < j0, j0, j1)
    k0, k1 = verbs.search(closes, begin, "right"), verbs.search(opens, stop, "left")
    zero = verbs.zeros(1, int)
    before = verbs.join([zero, k1[:-1]])
    same = verbs.join([zero == 1, runs.code[1:] == runs.code[:-1]])
    k0 = verbs.where(same & (before > k0), before, k0)
    k1 = verbs.where(k1 < k0, k0, k1)
    return least[j1 + which] - least[j0 + which], greatest[k1 + which] - greatest[k0 + which]
