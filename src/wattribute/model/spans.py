"""Spans, and the protocol by which attribution asks for them.

A Recording's spans are a *source*: columns in memory (:class:`SpanTable`), a scanned archive, or an OTF2 folder that is
not decoded yet. Attribution asks it for busy intervals and to ``fold`` spans against curves, and never knows which
it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import accumulate, islice, pairwise
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from .tables import Paths

if TYPE_CHECKING:
    from .recording import Problem

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Spans:
    """The spans of one location in the order they began; a parent stands before its children.

    Closed on the left, open on the right. ``parent`` is a row of this table or −1. A span that a task switch cut in
    two stands as two rows, the later one marked ``resumed`` (it is not another call).
    """

    start: Int64s
    end: Int64s
    frame: Int32s
    parent: Int64s
    depth: Int32s
    resumed: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True)
class Intervals:
    """Disjoint, ascending, non-touching pieces of time [start, end)."""

    start: Int64s
    end: Int64s

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True)
class Curve:
    """What a user has received up to each moment, S(t): piecewise linear, flat outside ``times``.

    ``pieces`` are the stretches of time that the readings cover. With bounds, interval i of the readings is
    (edges[i] − latency, edges[i+1]]; ``low[i]`` and ``high[i]`` are its energy times the least and the greatest share
    the user can have in it.
    """

    times: Int64s  # strictly ascending
    values: Floats
    pieces: Intervals
    edges: Int64s | None = None
    low: Floats | None = None
    high: Floats | None = None
    latency_ticks: int = 0


@dataclass(frozen=True)
class Keys:
    """How spans fall into rows: by ``row[frame]`` (−1: as if the span were not there), or by call path.

    Where depths are known, a span counts in the depth of others unless its row is ABSENT.

    With ``by_path`` a row is a call path of kept frames, made as it is met; ``row`` then only says which frames count.
    """

    row: Int32s
    rows: int
    by_path: bool = False


ABSENT = -2
BOUNDS = ("self_low", "self_high", "total_low", "total_high")  # of a Fold: None where a curve has no bounds


@dataclass(frozen=True)
class Fold:
    """One location rolled up, or several side by side.

    Columns have a value per row; those in joules and ``covered`` one per (curve, row).
    """

    calls: Int64s
    self_ticks: Int64s
    total_ticks: Int64s
    self_covered: Int64s
    total_covered: Int64s
    self_value: Floats
    total_value: Floats
    self_low: Floats | None
    self_high: Floats | None
    total_low: Floats | None
    total_high: Floats | None
    paths: Paths | None = None
    row: Int64s | None = None  # the numbers of the rows, where only those that were entered are here
    ends: Int64s | None = None  # of several locations: where the rows of each end

    @classmethod
    def of(cls, columns: dict[str, Any]) -> Fold:
        """From the columns a kernel of ``_core`` returns, where paths are a pair (frame, parent)."""
        paths = columns.pop("paths", None)
        return cls(**columns, paths=None if paths is None else Paths(*paths))

    def apart(self, sizes: Sequence[int] | None = None) -> list[Fold]:
        """The fold of each location, or of so many neighbours each."""
        if self.ends is None:
            return [self]
        sizes = sizes or [1] * len(self.ends)
        ends, last = [0, *self.ends.tolist()], list(accumulate(sizes, initial=0))
        columns = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in ("paths", "ends")}
        there = {name: column for name, column in columns.items() if column is not None}
        folds = []
        for first, behind in pairwise(last):
            begin, end = ends[first], ends[behind]
            own = {name: column[..., begin:end] for name, column in there.items()}
            paths = None if self.paths is None else Paths(self.paths.frame[begin:end], self.paths.parent[begin:end])
            folds.append(
                replace(self, **own, paths=paths, ends=self.ends[first:behind] - begin if behind - first > 1 else None)
            )
        return folds


@dataclass(frozen=True)
class SpanRows:
    """Some spans of a location against curves; columns from ``self_covered`` on: one value per (curve, span)."""

    start: Int64s
    end: Int64s
    frame: Int32s
    depth: Int32s
    self_ticks: Int64s
    self_covered: Int64s
    total_covered: Int64s
    self_value: Floats
    total_value: Floats
    self_low: Floats | None
    self_high: Floats | None
    total_low: Floats | None
    total_high: Floats | None

    def __len__(self) -> int:
        return len(self.start)


class SpanSource(Protocol):
    """Where spans come from. ``keep[frame]`` says which frames exist for the caller (None: all)."""

    def locations(self) -> Sequence[int]:
        """The rows of Locations that may hold spans, ascending."""
        ...

    def spans(self, location: int) -> Spans:
        """All spans of a location, as columns."""
        ...

    def busy(self, location: int, keep: npt.NDArray[np.bool_] | None = None) -> Intervals:
        """When the location was inside a kept span (of positive length); touching intervals are merged."""
        ...

    def fold(self, location: int, curves: Sequence[Curve], keys: Keys) -> Fold:
        """Roll a location's spans up against curves, in the order in which spans end."""
        ...

    def rows(
        self, location: int, curves: Sequence[Curve], keys: Keys, most: int, take: Callable[[SpanRows], None]
    ) -> None:
        """One row per span that has a row in ``keys``, handed to ``take`` whenever there are ``most`` of them.

        Spans stand in the order they began, except that one which is open when a piece is full comes in a later piece.
        """
        ...

    def problems(self) -> Sequence[Problem]:
        """What decoding has brought to light so far."""
        ...


@runtime_checkable
class Guesses(Protocol):
    """A source that can guess when a location is busy, and finds out while it folds whether it guessed right.

    Where a program's outermost span lasts from the first event to the last, one pass over the events does for two.
    """

    def guess_busy(
        self, locations: Sequence[int], keep: npt.NDArray[np.bool_] | None = None
    ) -> list[tuple[int, int] | None]:
        """For each of these locations, which are of one kind, the one interval that ``busy`` may say, without looking
        at more than the ends; None: no idea."""
        ...

    def fold_many(
        self,
        locations: Sequence[int],
        curves: Sequence[Sequence[Curve]],
        keys: Keys,
        busy: Sequence[tuple[int, int]] | None = None,
        entered_only: bool = False,
    ) -> Fold:
        """``fold`` of several locations of one kind, up to the first that is not ``busy`` as expected, side by side.

        Each has curves of its own: as many, and with bounds or without, as the others have. ``entered_only`` leaves out
        rows that were never entered: see ``Fold.row``.
        """
        ...


@dataclass(frozen=True)
class Launches:
    """Which calls of host threads launched what ran on streams: a row per span whose launch was recorded."""

    location: Int32s  # the stream
    start: Int64s  # of the span on it
    host: Int32s  # the thread that launched it
    at: Int64s  # a moment inside the call that did


_EMPTY = Spans(
    np.empty(0, np.int64),
    np.empty(0, np.int64),
    np.empty(0, np.int32),
    np.empty(0, np.int64),
    np.empty(0, np.int32),
    np.empty(0, np.bool_),
)


class SpanColumns:
    """Base of sources whose ``spans`` are columns already: all else is computed from them."""

    def spans(self, location: int) -> Spans:
        raise NotImplementedError

    def busy(self, location: int, keep: npt.NDArray[np.bool_] | None = None) -> Intervals:
        from .. import _core

        return Intervals(*_core.busy(self.spans(location), keep))

    def fold(self, location: int, curves: Sequence[Curve], keys: Keys) -> Fold:
        from .. import _core

        return Fold.of(_core.fold(self.spans(location), curves, keys))

    def fold_entered(self, location: int, curves: Sequence[Curve], keys: Keys) -> Fold:
        """``fold``, without rows that were never entered (see ``Fold.row``) where there are more rows than spans.

        So many locations with few spans each cost what they hold, however many frames the recording has.
        """
        pieces = [] if keys.by_path or not keys.rows else [*islice(self.pieces(location, keys.rows), 2)] or [_EMPTY]
        if len(pieces) != 1 or len(pieces[0]) >= keys.rows:
            return self.fold(location, curves, keys)
        from .. import _core

        frames, frame = np.unique(pieces[0].frame, return_inverse=True)
        row = keys.row[frames]
        rows = np.unique(row[row >= 0])
        few = Keys(np.where(row >= 0, np.searchsorted(rows, row), row).astype(np.int32), len(rows))
        spans = replace(pieces[0], frame=frame.astype(np.int32))
        return replace(Fold.of(_core.fold(spans, curves, few)), row=rows.astype(np.int64))

    def rows(
        self, location: int, curves: Sequence[Curve], keys: Keys, most: int, take: Callable[[SpanRows], None]
    ) -> None:
        rows_of(self.pieces(location, most), curves, keys, take)

    def pieces(self, location: int, most: int) -> Iterator[Spans]:
        """The spans of a location in pieces of at most so many."""
        return cut(self.spans(location), most)


@dataclass(frozen=True)
class SpanTable(SpanColumns):
    """A source whose spans are columns in memory."""

    columns: Mapping[int, Spans] = field(default_factory=dict)
    launched: Launches | None = None

    def launches(self) -> Launches | None:
        return self.launched

    def locations(self) -> Sequence[int]:
        return sorted(self.columns)

    def spans(self, location: int) -> Spans:
        return self.columns.get(location, _EMPTY)

    def problems(self) -> Sequence[Problem]:
        return ()


def spans_of(source: SpanSource, locations: Sequence[int]) -> list[Spans]:
    """The spans of several locations; a source that reads them faster together has a method of this name."""
    together = getattr(source, "spans_of", None)
    return list(together(locations)) if together else [source.spans(location) for location in locations]


def launches_of(source: SpanSource) -> Launches | None:
    """The launches that a source has recorded; such a source has a method ``launches``."""
    method = getattr(source, "launches", None)
    launches: Launches | None = method() if method else None
    return launches


def cut(spans: Spans, most: int) -> Iterator[Spans]:
    """Columns in pieces; ``parent`` keeps the numbers of the whole."""
    for at in range(0, len(spans), most):
        yield Spans(*(getattr(spans, f.name)[at : at + most] for f in fields(spans)))


def joined(pieces: Sequence[Intervals]) -> Intervals:
    """Busy intervals of neighbouring pieces of a location as those of the whole: what touches or overlaps is one."""
    if len(pieces) <= 1:
        return pieces[0] if pieces else Intervals(np.empty(0, np.int64), np.empty(0, np.int64))
    start, end = (np.concatenate([getattr(piece, name) for piece in pieces]) for name in ("start", "end"))
    reach = np.maximum.accumulate(end)  # a span of an earlier piece may reach over later ones
    begins = np.ones(len(start), bool)
    begins[1:] = start[1:] > reach[:-1]
    return Intervals(start[begins], reach[np.append(begins[1:], True)[: len(start)]])


def rows_of(pieces: Iterable[Spans], curves: Sequence[Curve], keys: Keys, take: Callable[[SpanRows], None]) -> None:
    """``SpanSource.rows`` for spans that are columns already."""
    from .._core.stream import stream

    each, first = stream(curves, keys, each=True), 0
    for piece in pieces:
        if first:
            take(SpanRows(**each.take()))
        each.feed(piece, first)
        first += len(piece)
    each.end()
    take(SpanRows(**each.take()))
    each.close()
