"""One lane on disk: its bins at every level and its spans, read in pieces with ``pread``.

``Writer`` puts lanes into a folder in one pass; ``Lane`` answers for any stretch of time: how many spans, which ones
(with the spans open around them), bins of a level, bins finer than the finest level, sums per frame. Memory follows
what is asked for, never the length of the lane.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._core import tiles
from ...engines.middle import ClippedSpans
from ...model import Spans, SpanTable
from .energy import Use
from .watts import limits

STRIDE = 4096  # every so many spans the start is kept in memory
KEPT_BLOCKS = 2048  # of so many spans, for all lanes together: 64 MB
FINEST = 16  # at most 2^16 bins: finer bins weigh as much as the spans themselves
_FILES = ("lanes.bins", "lanes.spans", "lanes.index", "lanes.limits")
_COLUMNS = {"start": "<i8", "end": "<i8", "parent": "<i4", "frame": "<i4", "depth": "<i4", "resumed": "|u1"}
SPAN = np.dtype(
    [("start", "<f8"), ("end", "<f8"), ("energy", "<f8"), ("row", "<f8"), ("frame", "<i4"), ("depth", "<i4")]
)
_EMPTY = SpanTable().spans(0)
Energies = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]  # times and values of S(t)


@dataclass(frozen=True)
class Grid:
    """Power-of-two bins over [0, width << depth): the same for all lanes of a recording."""

    width: int  # ticks of a bin of the finest level
    depth: int

    @classmethod
    def over(cls, length_ticks: int) -> Grid:
        depth = FINEST
        while depth and (1 << depth) > length_ticks:
            depth -= 1
        return cls(max(1, -(-length_ticks // (1 << depth))), depth)


def levels_for(spans: int, grid: Grid) -> int:
    """The number of levels for a lane of so many spans: a few spans per bin of the finest one."""
    return min(grid.depth, max(0, spans // 4).bit_length()) + 1


def _own_frames(spans: Spans, keep: Any) -> tuple[Spans, npt.NDArray[np.int64], Any]:
    """Spans whose frames are numbered from 0, the recording's numbers of these, and which of them are kept.

    Kernels need memory per frame: of 10⁶ frames a lane of 500 spans has few.
    """
    if len(spans) >= len(keep):
        return spans, np.arange(len(keep)), keep
    frames, frame = np.unique(spans.frame, return_inverse=True)
    return replace(spans, frame=frame.astype(np.int32)), frames.astype(np.int64), np.asarray(keep)[frames]


def _bins(spans: Spans, keep: Any, energies: Energies | None, t0: int, width: int, depth: int, levels: int) -> Any:
    """``tiles.bins`` of a lane."""
    spans, frames, keep = _own_frames(spans, keep)
    bins = tiles.bins(spans, len(frames), keep, energies, t0, width, depth, levels)
    bins["frame"] = np.append(frames, -1)[bins["frame"]]
    return bins


class LaneWriter:
    """Writer of lanes into a folder: a few files hold them all, so that 10,000 lanes need no 10,000 files."""

    def __init__(self, folder: Path, grid: Grid) -> None:
        self.grid = grid
        files = [open(folder / name, "wb") for name in _FILES]  # noqa: SIM115
        self._bins, self._spans, self._index, self._limits = files

    def add(
        self, location: int, spans: Spans, keep: Any, energies: Energies | None, limited: Sequence[Use] = ()
    ) -> dict[str, Any]:
        """Append a lane; returns what the manifest has to remember of it."""
        levels = levels_for(len(spans), self.grid)
        width = self.grid.width << (self.grid.depth - levels + 1)
        entry = {
            "location": location,
            "spans": len(spans),
            "levels": levels,
            "width": width,
            "deepest": int(spans.depth.max()) if len(spans) else 0,
            "at": [self._bins.tell(), self._spans.tell(), self._index.tell()],
        }
        _bins(spans, keep, energies, 0, width, levels - 1, levels).tofile(self._bins)
        for name, kind in _COLUMNS.items():
            self._spans.write(np.ascontiguousarray(getattr(spans, name), kind).data)
        self._index.write(np.ascontiguousarray(spans.start[::STRIDE], "<i8").data)
        ends = [self._limits.tell()]
        for use in limited:
            self._limits.write(limits(spans, use.keep, use.curve).data)
            ends.append(self._limits.tell())
        return {**entry, "limits": ends}

    def close(self) -> None:
        for file in (self._bins, self._spans, self._index, self._limits):
            file.close()


class LaneFiles:
    """The files of a folder of tiles that hold its lanes, open for reading."""

    def __init__(self, folder: Path) -> None:
        self.bins, self.spans, self.limits = (
            os.open(folder / name, os.O_RDONLY) for name in (_FILES[0], _FILES[1], _FILES[3])
        )
        self.index = np.fromfile(folder / _FILES[2], "<i8")
        self.starts = lru_cache(maxsize=KEPT_BLOCKS)(self._read_starts)

    def _read_starts(self, at: int, count: int) -> Any:
        """When so many spans begin, the first of them at an offset of the file."""
        return np.frombuffer(os.pread(self.spans, 8 * count, at), "<i8")

    def close(self) -> None:
        for file in (self.bins, self.spans, self.limits):
            os.close(file)


class Lane:
    """A lane of a folder of tiles. Safe to use from several threads."""

    def __init__(self, files: LaneFiles, entry: dict[str, Any], keep: Any, energies: Energies | None) -> None:
        self.location, self.spans = int(entry["location"]), int(entry["spans"])
        self.levels, self.width = int(entry["levels"]), int(entry["width"])
        self.keep, self.energies = keep, energies
        self._files = files
        self._bins_at, self._spans_at, index_at = entry["at"]
        self._limits_at: list[int] = entry["limits"]
        self._index = files.index[index_at // 8 : index_at // 8 + -(-self.spans // STRIDE)]

    def limits(self) -> list[npt.NDArray[np.float32]]:
        """Per device with bounds the least and the most of each interval of its readings."""
        ends = zip(self._limits_at, self._limits_at[1:], strict=False)
        return [np.frombuffer(os.pread(self._files.limits, b - a, a), "<f4") for a, b in ends]

    def _column(self, name: str, first: int, last: int) -> Any:
        offset = self._spans_at
        for other, kind in _COLUMNS.items():
            size = np.dtype(kind).itemsize
            if other == name:
                data = os.pread(self._files.spans, (last - first) * size, offset + first * size)
                return np.frombuffer(data, kind)
            offset += size * self.spans
        raise KeyError(name)

    def _block(self, block: int) -> Any:
        """The starts of a block of spans; they are the first column."""
        first = block * STRIDE
        return self._files.starts(self._spans_at + 8 * first, min(STRIDE, self.spans - first))

    def _starts_before(self, t: int, or_at: bool) -> int:
        """How many spans start before (or at) t."""
        side: Any = "right" if or_at else "left"
        block = int(np.searchsorted(self._index, t, side)) - 1
        if block < 0:
            return 0
        return block * STRIDE + int(np.searchsorted(self._block(block), t, side))

    def between(self, a: int, b: int) -> tuple[int, int]:
        """The rows [first, last) from the last that starts before ``a`` to the last that starts before ``b``.

        What is open at ``a`` is the first of them or above it.
        """
        return max(0, self._starts_before(a, or_at=False) - 1), self._starts_before(b, or_at=False)

    def count(self, a: int, b: int) -> int:
        """How many spans [a, b) shows, give or take the open ones."""
        first, last = self.between(a, b)
        return max(0, last - first)

    def piece(self, first: int, last: int) -> tuple[Spans, npt.NDArray[np.int64]]:
        """Spans [first, last) and the ancestors of ``first``, as a table of its own; and their rows in the lane."""
        above: list[int] = []
        at = first
        while first < last and (at := int(self._column("parent", at, at + 1)[0])) >= 0:
            above.insert(0, at)
        columns = {
            name: np.concatenate(
                [*(self._column(name, row, row + 1) for row in above), self._column(name, first, max(first, last))]
            )
            for name in _COLUMNS
        }
        rows = np.concatenate([np.array(above, np.int64), np.arange(first, max(first, last), dtype=np.int64)])
        parent = columns["parent"].astype(np.int64)
        inside = np.where(parent >= first, parent - first + len(above), np.searchsorted(rows[: len(above)], parent))
        parent = np.where(parent < 0, -1, inside)
        spans = Spans(
            columns["start"],
            columns["end"],
            columns["frame"],
            parent,
            columns["depth"],
            columns["resumed"].astype(bool),
        )
        return spans, rows

    def whole(self) -> Spans:
        """All spans."""
        columns = {name: self._column(name, 0, self.spans) for name in _COLUMNS}
        columns |= {"parent": columns["parent"].astype(np.int64), "resumed": columns["resumed"].astype(bool)}
        return Spans(**columns)

    def bins(self, a: int, b: int, most: int) -> tuple[int, int, Any]:
        """At most ``most`` bins (or a few more) that cover [a, b): where they begin, their width, and the bins."""
        need = max(1, -(-(b - a) // most))
        if need < self.width:
            return self._raster(a, b, most)
        level = self.levels - 1
        width = self.width
        while width < need and level > 0:
            width, level = 2 * width, level - 1
        first, last = max(0, a // width), min(1 << level, -(-b // width))
        first = min(first, last)
        size = tiles.BIN.itemsize
        data = os.pread(self._files.bins, (last - first) * size, self._bins_at + ((1 << level) - 1 + first) * size)
        return first * width, width, np.frombuffer(data, tiles.BIN)

    def _raster(self, a: int, b: int, most: int) -> tuple[int, int, Any]:
        """Below the finest level: bins made now, of the spans that are visible."""
        depth = max(0, most.bit_length() - 1)
        width = max(1, -(-(b - a) // (1 << depth)))
        spans, _ = self.piece(*self.between(a, a + (width << depth)))
        return a, width, _bins(spans, self.keep, self.energies, a, width, depth, 1)

    def sums(self, a: int, b: int) -> tuple[Any, Any, Any, Any]:
        """The frames that [a, b) may hold, ascending, and the innermost ticks, calls and energy of each."""
        spans, frames, keep = _own_frames(self.piece(*self.between(a, b))[0], self.keep)
        return frames, *tiles.sums(spans, len(frames), keep, self.energies, a, b)

    def first_of(self, frames: Sequence[int], after: int, before: int) -> int | None:
        """The first row of these frames that starts after one moment and before another."""
        row, last = self._starts_before(after, or_at=True), self._starts_before(before, or_at=False)
        while row < last:
            until = min(last, row + 16 * STRIDE)
            hits = np.flatnonzero(np.isin(self._column("frame", row, until), frames))
            if len(hits):
                return row + int(hits[0])
            row = until
        return None

    def calls(self, frame: int) -> int:
        """How often a frame was called in this lane; the resumed part of a call is not another one."""
        count, step = 0, 256 * STRIDE
        for first in range(0, self.spans, step):
            last = min(self.spans, first + step)
            mine = self._column("frame", first, last) == frame
            count += int(np.count_nonzero(mine & (self._column("resumed", first, last) == 0)))
        return count

    def used(self, start: Any, end: Any) -> Any:
        """S(end) − S(start): NaN where nothing was metered."""
        if self.energies is None or not len(self.energies[0]):
            return np.full(len(start), np.nan)
        return np.interp(end, *self.energies) - np.interp(start, *self.energies)

    def children(self, row: int) -> tuple[Any, Any]:
        """When the direct, kept children of a span began and ended; those of a child not kept count as its own."""
        end = int(self._column("end", row, row + 1)[0])
        last = max(row + 1, self._starts_before(end, or_at=True))
        spans, rows = self.piece(row, last)
        kept = np.asarray(self.keep, bool)[spans.frame]
        chosen, below = np.zeros(len(spans), bool), np.searchsorted(rows, [row])
        while len(below):
            hang = np.isin(spans.parent, below)
            chosen |= hang & kept
            below = np.flatnonzero(hang & ~kept)
        return spans.start[chosen], spans.end[chosen]


@dataclass(frozen=True)
class Window(ClippedSpans):
    """A recording's spans inside [begin, end), read from its lanes on disk: a span source for attribution.

    So a brushed range costs what the range holds, not what the recording holds.
    """

    lanes: Mapping[int, Lane] = field(default_factory=dict)

    def spans(self, location: int) -> Spans:
        lane = self.lanes.get(location)
        return _EMPTY if lane is None else lane.piece(*lane.between(self.begin, self.end))[0]


def exact(lane: Lane, a: int, b: int) -> Any:
    """The spans that touch [a, b), one record each, with the energy each used (with its callees)."""
    spans, rows = lane.piece(*lane.between(a, b))
    touches = (spans.end > a) | (spans.start >= a)
    out = np.zeros(len(rows), SPAN)
    energy = lane.used(spans.start, spans.end)
    out["start"], out["end"], out["row"] = spans.start, spans.end, rows
    out["energy"] = np.where(np.asarray(lane.keep, bool)[spans.frame], energy, np.nan) if len(rows) else energy
    out["frame"], out["depth"] = spans.frame, spans.depth
    return out[touches]
