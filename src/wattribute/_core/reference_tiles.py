"""The NumPy twin of tiles.c: bins at every level, sums per frame and per block, of one lane. Slower, its meaning."""

from __future__ import annotations

from typing import Any

import numpy as np

BIN = np.dtype([("energy", "<f8"), ("busy", "<f4"), ("peak", "<f4"), ("frame", "<i4"), ("calls", "<u4")])


def segments(lane: Any, keep: Any, t0: int, t1: int) -> tuple[Any, Any, Any, Any]:
    """The innermost pieces of time inside [t0, t1): begin, end, the frame, and the innermost frame that is kept."""
    pieces: list[tuple[int, int, int, int]] = []
    stack: list[tuple[int, int]] = []  # row, kept frame
    now = t0
    start, end, frame, parent = (column.tolist() for column in (lane.start, lane.end, lane.frame, lane.parent))

    def emit(a: int, b: int) -> None:
        a, b = max(a, t0), min(b, t1)
        if stack and a < b:
            pieces.append((a, b, frame[stack[-1][0]], stack[-1][1]))

    for i in range(len(start) + 1):
        while stack and (i == len(start) or stack[-1][0] != parent[i]):
            emit(now, end[stack[-1][0]])
            now = max(now, end[stack[-1][0]])
            stack.pop()
        if i < len(start):
            emit(now, start[i])
            now = max(now, start[i])
            stack.append((i, frame[i] if keep[frame[i]] else (stack[-1][1] if stack else -1)))
    columns = np.array(pieces, np.int64).reshape(-1, 4).T
    return columns[0], columns[1], columns[2], columns[3]


def cut(a: Any, b: Any, edges: Any) -> tuple[Any, Any, Any]:
    """Pieces [a, b) cut at ascending edges: begin, end, and which piece each came from."""
    first, last = np.searchsorted(edges, a, "right"), np.searchsorted(edges, b, "left")
    many = last - first + 1
    origin = np.repeat(np.arange(len(a)), many)
    inner = np.arange(len(origin)) - np.repeat(np.cumsum(many) - many, many)
    at = first[origin] + inner
    padded = np.append(edges, 0)
    begin = np.where(inner == 0, a[origin], padded[at - 1])
    return begin, np.where(inner == many[origin] - 1, b[origin], padded[np.minimum(at, len(edges))]), origin


def _energy(time: Any, value: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """S(b) − S(a) and the slope of pieces that no knot cuts."""
    if len(time) < 2:
        return np.zeros(len(a)), np.zeros(len(a))
    slopes = np.append(np.diff(value) / np.diff(time), 0.0)
    at = np.searchsorted(time, a, "right") - 1
    slope = np.where(at >= 0, slopes[at], 0.0)
    return slope * (b - a), slope


def bins(lane: Any, frames: int, keep: Any, curve: Any, t0: int, width: int, depth: int, levels: int) -> Any:
    """The bins of the ``levels`` finest levels, coarsest first; the finest has 2**depth bins of ``width`` ticks."""
    t1 = t0 + (width << depth)
    time, value = curve
    begin, end, frame, kept = segments(lane, keep, t0, t1)
    edges = t0 + np.arange(1, 1 << depth, dtype=np.int64) * width
    begin, end, origin = cut(begin, end, np.union1d(edges, time))
    frame, kept = frame[origin], kept[origin]
    energy, slope = _energy(time, value, begin, end)
    energy, slope = np.where(kept >= 0, energy, 0.0), np.where(kept >= 0, slope, 0.0)
    called = lane.start[~lane.resumed & (lane.start >= t0) & (lane.start < t1)]
    out = []
    for level in range(depth - levels + 1, depth + 1):
        wide = width << (depth - level)
        table = np.zeros(1 << level, BIN)
        table["frame"] = -1
        at = (begin - t0) // wide
        np.add.at(table["energy"], at, energy)
        np.maximum.at(table["peak"], at, slope.astype(np.float32))
        busy = np.bincount(at, end - begin, 1 << level)
        table["busy"] = busy / wide
        table["calls"] = np.bincount((called - t0) // wide, minlength=1 << level)
        pairs, inverse = np.unique(at * max(frames, 1) + frame, return_inverse=True)
        spent = np.bincount(inverse, end - begin, len(pairs))
        order = np.lexsort((-pairs, spent))  # the longest last; of equals the lowest frame last
        table["frame"][pairs[order] // max(frames, 1)] = pairs[order] % max(frames, 1)
        out.append(table)
    return np.concatenate(out)


def sums(lane: Any, frames: int, keep: Any, curve: Any, t0: int, t1: int) -> tuple[Any, Any, Any]:
    """Innermost ticks, calls and energy per frame inside [t0, t1)."""
    time, value = curve
    begin, end, frame, kept = segments(lane, keep, t0, t1)
    ticks = np.zeros(frames, np.int64)
    np.add.at(ticks, frame, end - begin)
    begin, end, origin = cut(begin, end, np.asarray(time))
    joules, kept = _energy(time, value, begin, end)[0], kept[origin]
    energy = np.bincount(kept[kept >= 0], joules[kept >= 0], frames)[:frames]
    called = ~lane.resumed & (lane.start >= t0) & (lane.start < t1)
    return ticks, np.bincount(lane.frame[called], minlength=frames)[:frames], energy


def add_blocks(lane: Any, keep: Any, curve: Any, t0: int, width: int, covered: Any, energy: Any) -> None:
    """Add a lane's innermost energy, and its time that the curve covers, per block of time and kept frame."""
    time, value = curve
    blocks = len(energy)
    begin, end, _, kept = segments(lane, keep, t0, t0 + blocks * width)
    edges = t0 + np.arange(1, blocks, dtype=np.int64) * width
    begin, end, origin = cut(begin, end, np.union1d(edges, time))
    joules, kept = _energy(time, value, begin, end)[0], kept[origin]
    at = ((begin - t0) // width, kept)
    inside = np.minimum(end, time[-1]) - np.maximum(begin, time[0]) if len(time) else np.zeros(len(begin), np.int64)
    rows = kept >= 0
    np.add.at(energy, (at[0][rows], at[1][rows]), joules[rows])
    np.add.at(covered, (at[0][rows], at[1][rows]), np.maximum(inside, 0)[rows])
