"""Spans of a lane as bars with joules: one bar per span while they are few, else one per time bin and depth.

Binning keeps sums: a bin holds the energy, busy time and calls of everything in it, the frame that was busy longest,
the three frames with most energy, and the greatest power. Spans are split at bin edges by the curve that attribution
made for this user, so the bars of a lane add up to the lane's joules for any number of bins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt

from ...model import Spans

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
_DENSE = 8_000_000  # codes up to here are counted, not sorted
Received = Callable[[Ints], Floats]  # ticks → the joules the lane has received up to then


@dataclass(frozen=True)
class Bars:
    """Pieces of time in a lane. ``self_j`` adds up to the lane's energy; ``total_j`` includes what ran above."""

    start: Ints
    end: Ints
    depth: Ints
    frame: Ints  # the frame, or the one that was busy longest
    busy: Ints  # ticks inside spans of this depth
    self_j: Floats
    total_j: Floats
    calls: Ints
    top: list[list[tuple[int, float]]]  # (frame, total joules) of the three largest, for binned bars
    binned: bool

    def __len__(self) -> int:
        return len(self.start)


def kept(spans: Spans, keep: npt.NDArray[np.bool_] | None) -> Spans:
    """The spans of kept frames only, depths and parents closed up as if the others were not there."""
    if keep is None or bool(keep.all()):
        return spans
    chosen = keep[spans.frame]
    if not bool((spans.parent >= 0).any()):  # a stream: nothing to close up
        return Spans(*(getattr(spans, field.name)[chosen] for field in fields(Spans)))
    row = np.where(chosen, np.cumsum(chosen) - 1, -1)
    parent, depth = np.full(len(spans), -1, np.int64), np.zeros(len(spans), np.int32)
    for i in range(len(spans)):  # a parent stands before its children
        above = int(spans.parent[i])
        parent[i] = -1 if above < 0 else (row[above] if chosen[above] else parent[above])
        depth[i] = 0 if above < 0 else depth[above] + chosen[above]
    return Spans(
        spans.start[chosen], spans.end[chosen], spans.frame[chosen], parent[chosen], depth[chosen],
        spans.resumed[chosen],
    )  # fmt: skip


def exact(spans: Spans, received: Received, frames: Mask | None = None) -> Bars:
    """One bar per span, of these frames only if they are given."""
    total = received(spans.end) - received(spans.start)
    own = total.copy()
    inner = spans.parent >= 0
    np.subtract.at(own, spans.parent[inner], total[inner])
    calls = (~spans.resumed).astype(np.int64)
    every = Bars(
        spans.start, spans.end, spans.depth.astype(np.int64), spans.frame.astype(np.int64), spans.end - spans.start,
        own, total, calls, [], False,
    )  # fmt: skip
    return every if frames is None else _only(every, frames[spans.frame])


def _only(bars: Bars, mine: Mask) -> Bars:
    columns = ("start", "end", "depth", "frame", "busy", "self_j", "total_j", "calls")
    return replace(bars, **{name: getattr(bars, name)[mine] for name in columns})


def per_call(bars: Bars) -> Bars:
    """One bar per call: the pieces of a call that was left and resumed are added up, from its first to its last."""
    order = np.lexsort((np.arange(len(bars)), bars.depth, bars.frame))
    if not len(order):
        return bars
    frame, depth = bars.frame[order], bars.depth[order]
    first = bars.calls[order] > 0
    first[0] = True
    first[1:] |= (frame[1:] != frame[:-1]) | (depth[1:] != depth[:-1])
    begins = np.flatnonzero(first)
    ends = np.append(begins[1:], len(order)) - 1
    busy, self_j, total_j, calls = (
        np.add.reduceat(column[order], begins) for column in (bars.busy, bars.self_j, bars.total_j, bars.calls)
    )
    return Bars(
        bars.start[order][begins], bars.end[order][ends], depth[begins], frame[begins], busy, self_j, total_j, calls,
        [], False,
    )  # fmt: skip


def binned(spans: Spans, received: Received, edges: Ints, deepest: int, frames: Mask | None = None) -> Bars:
    """One bar per depth and bin, of these frames only if they are given.

    Spans deeper than ``deepest`` are counted with the ancestor that is drawn.
    """
    shown = spans.depth <= deepest
    row, bin_, start, end = _split(spans.start[shown], spans.end[shown], edges)
    depth, frame = spans.depth[shown][row].astype(np.int64), spans.frame[shown][row].astype(np.int64)
    total = received(end) - received(start)
    bins = len(edges) - 1
    is_first = np.concatenate([[True], row[1:] != row[:-1]]) if len(row) else np.empty(0, bool)
    counts = is_first & ~spans.resumed[shown][row]
    codes, parent = depth * bins + bin_, spans.parent[shown][row]
    inner = parent >= 0
    if frames is not None:
        mine = frames[frame]
        inner &= frames[spans.frame[parent]]
    else:
        mine = np.ones(len(row), np.bool_)
    passed, passed_j = codes[inner] - bins, total[inner]
    codes, frame, start, end, total = codes[mine], frame[mine], start[mine], end[mine], total[mine]
    cells, place = _numbered(codes)
    self_j: Floats = np.bincount(place, total, len(cells)).astype(np.float64)
    total_j = self_j.copy()
    np.subtract.at(self_j, np.searchsorted(cells, passed), passed_j)  # what a piece's callees took in its bin
    busy = np.bincount(place, end - start, len(cells))
    calls = np.bincount(place, counts[mine], len(cells))
    dominant, top = _leading(place, frame, end - start, total, len(cells))
    at = cells % bins
    return Bars(
        edges[at], edges[at + 1], cells // bins, dominant, np.rint(busy).astype(np.int64), self_j, total_j,
        np.rint(calls).astype(np.int64), top, True,
    )  # fmt: skip


def _numbered(codes: Ints) -> tuple[Ints, Ints]:
    """The distinct codes, ascending, and the place of each code among them; by counting where codes are small."""
    most = int(codes.max(initial=-1)) + 1
    if most > _DENSE:
        unique, place = np.unique(codes, return_inverse=True)
        return unique, place
    present = np.bincount(codes, minlength=most) > 0
    return np.flatnonzero(present), (np.cumsum(present) - 1)[codes]


def _split(start: Ints, end: Ints, edges: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Spans cut at the edges of bins: (row, bin, start, end) of each piece, in order."""
    last_bin = len(edges) - 2
    first = np.clip(np.searchsorted(edges, start, side="right") - 1, 0, last_bin)
    last = np.clip(np.searchsorted(edges, end, side="left") - 1, first, last_bin)
    count = last - first + 1
    row = np.repeat(np.arange(len(start)), count)
    bin_ = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count) + first[row]
    # the outermost pieces keep what lies beyond the edges, so that nothing is lost
    begins = np.where(bin_ == first[row], start[row], edges[bin_])
    ends = np.where(bin_ == last[row], end[row], edges[bin_ + 1])
    return row, bin_, begins, ends


def _leading(
    place: Ints, frame: Ints, busy: Ints, total: Floats, cells: int
) -> tuple[Ints, list[list[tuple[int, float]]]]:
    """Per cell the frame that was busy longest, and the three that received most."""
    if not cells:
        return np.empty(0, np.int64), []
    frames = int(frame.max()) + 1
    key, inverse = _numbered(place * frames + frame)
    time, joules = np.bincount(inverse, busy, len(key)), np.bincount(inverse, total, len(key))
    cell, which = key // frames, key % frames
    order = np.lexsort((which, -time, cell))
    begins = np.searchsorted(cell[order], np.arange(cells))
    dominant = which[order][begins]
    by_energy = np.lexsort((which, -joules, cell))
    ends = np.append(begins[1:], len(key))
    top = [
        [(int(which[i]), float(joules[i])) for i in by_energy[a : min(a + 3, b)]]
        for a, b in zip(begins, ends, strict=True)
    ]
    return dominant, top


def bars(
    spans: Spans, received: Received, window: tuple[int, int], limit: int, bins: int, deepest: int = 24,
    frames: Mask | None = None,
) -> Bars:  # fmt: skip
    """Bars of one lane: its spans if at most ``limit``, else bins over ``window`` (start, end in ticks).

    With ``frames`` only bars of these frames; what the others took is not theirs.
    """
    if len(spans) <= limit:
        return exact(spans, received, frames)
    edges = np.unique(np.linspace(window[0], window[1], bins + 1).astype(np.int64))
    if len(edges) < 2:
        edges = np.array([window[0], window[0] + 1], np.int64)
    return binned(spans, received, edges, deepest, frames)
