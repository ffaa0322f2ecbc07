"""The spans of an OTF2 archive, decoded when asked for: a SpanSource over its files.

Nothing is kept of what was decoded except what it told about the files: events by kind, and problems. One call decodes
one location, or, where columns are asked for, a batch of them: with thousands of small ones Python would cost more than
decoding. Callers run these calls side by side on threads (the C core holds no lock), :func:`each` does that here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ..._core import otf2 as core
from ...model import Curve, Fold, Intervals, Keys, Problem, SpanRows, Spans
from .anchor import Anchor
from .tables import Model

T = TypeVar("T")
_SPAN_COLUMNS = ("start", "end", "frame", "parent", "depth", "resumed")
_FOLD_EXTRAS = ("counts", "program", "nesting", "undefined", "backward", "status")
_BATCH_EVENTS = 1_000_000  # some milliseconds of work, whose columns fill huge pages
_METRIC = core.FIRST_KIND + core.KINDS.index("Metric")
_OPENING = [
    core.FIRST_KIND + core.KINDS.index(kind) for kind in ("Enter", "CallingContextEnter", "CallingContextSample")
]
_NESTING = (
    "{} leaves without an enter",
    "{} leaves out of order (what was open above was closed)",
    "{} regions never left (closed with the last event)",
)


@dataclass
class Source:
    """Decodes locations of an archive; thread-safe."""

    anchor: Anchor
    model: Model
    chosen: tuple[int, ...]  # rows of Locations whose spans are wanted and whose files are there
    keep: npt.NDArray[np.bool_]  # frames that are wanted
    label: Callable[[int], str]  # location row → "process, location" for messages
    skipped: frozenset[int] = frozenset()  # locations whose metric events nobody looked at
    events: dict[str, int] = field(default_factory=dict)  # by kind, of the locations decoded so far
    _counted: set[int] = field(default_factory=set)  # locations that were decoded
    _opening: set[int] = field(default_factory=set)  # those of them that hold anything that makes spans
    _nested: set[int] = field(default_factory=set)  # locations whose events were nested into spans
    _problems: dict[int, list[Problem]] = field(default_factory=dict)
    _tables: dict[Any, Any] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def __getstate__(self) -> dict[str, Any]:
        """Without the lock, and what is known by address: sources travel to other processes."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_lock", "_tables")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=Lock(), _tables={})

    # --- SpanSource

    def locations(self) -> Sequence[int]:
        return self.chosen

    def spans(self, location: int) -> Spans:
        [spans] = self.spans_of([location])
        return spans

    def busy(self, location: int, keep: npt.NDArray[np.bool_] | None = None) -> Intervals:
        columns = core.busy(self.files(location), self.tables(location, keep))
        self.note(location, columns)
        return Intervals(columns["start"], columns["end"])

    def fold(self, location: int, curves: Sequence[Curve], keys: Keys) -> Fold:
        found = self._fold(location, curves, keys)
        assert found is not None  # nothing was expected
        return found

    def guess_busy(self, location: int, keep: npt.NDArray[np.bool_] | None = None) -> Intervals | None:
        found = core.guess_busy(self.files(location), self.tables(location, keep))
        return None if found is None else Intervals(*(np.array([moment], np.int64) for moment in found))

    def fold_if(self, location: int, curves: Sequence[Curve], keys: Keys, busy: Intervals) -> Fold | None:
        return self._fold(location, curves, keys, (int(busy.start[0]), int(busy.end[0])))

    def _fold(
        self, location: int, curves: Sequence[Curve], keys: Keys, expected: tuple[int, int] | None = None
    ) -> Fold | None:
        columns = core.fold(self.files(location), self.tables(location), curves, keys, expected)
        if columns is None:
            return None
        self.note(location, columns)
        return Fold.of({name: column for name, column in columns.items() if name not in _FOLD_EXTRAS})

    def rows(
        self, location: int, curves: Sequence[Curve], keys: Keys, most: int, take: Callable[[SpanRows], None]
    ) -> None:
        def piece(columns: Mapping[str, Any]) -> None:
            take(SpanRows(**columns))

        self.note(location, core.rows(self.files(location), self.tables(location), curves, keys, most, piece))

    def problems(self) -> Sequence[Problem]:
        with self._lock:
            return [problem for row in sorted(self._problems) for problem in self._problems[row]]

    # --- for the reader

    def files(self, location: int) -> core.Files:
        return self.many([location]).files(0)

    def many(self, rows: Sequence[int]) -> core.Many:
        """The files of several locations."""
        locations, anchor = self.model.locations, self.anchor
        return core.Many(
            anchor.folder,
            locations.id[rows],
            locations.events[rows].view(np.uint64),
            anchor.event_chunk,
            anchor.definition_chunk,
            self.model.clock.offset_ticks,
        )

    def tables(
        self,
        location: int,
        keep: npt.NDArray[np.bool_] | None = None,
        metric: npt.NDArray[np.uint8] | None = None,
    ) -> core.Tables:
        """The look-up tables of a location; the same object for the same question, so that the core knows it again."""
        stream = self.model.locations.kind[location] == "gpu"
        known = self._tables.get((stream, id(keep), id(metric)))
        if known is None or known[0] is not keep or known[1] is not metric:
            tables = self.model.stream_tables if stream else self.model.host_tables
            kept = (self.keep if keep is None else self.keep & keep).view(np.uint8)
            known = keep, metric, tables._replace(keep=kept, metric=metric)
            self._tables[stream, id(keep), id(metric)] = known
        return known[2]

    def spans_of(self, batch: Sequence[int]) -> list[Spans]:
        """The spans of several locations: parts of the same columns."""
        found = {}
        for rows, read in self.read(batch):
            columns = [read.columns[name] for name in _SPAN_COLUMNS]
            begin = 0
            for row, end in zip(rows, read.ends[:, 0].tolist(), strict=True):
                found[row] = Spans(*[column[begin:end] for column in columns])
                begin = end
        return [found[row] for row in batch]

    def read(
        self, batch: Sequence[int], spans: bool = True, metric: npt.NDArray[np.uint8] | None = None
    ) -> Iterator[tuple[list[int], core.Read]]:
        """The spans, or the metric events, of locations, all that share their tables in one call."""
        kind = self.model.locations.kind
        for stream in (False, True):
            rows = [row for row in batch if (kind[row] == "gpu") is stream]
            if rows:
                read = core.decode_many(self.many(rows), self.tables(rows[0], metric=metric), spans)
                self._note_many(rows, read, nested=spans)
                yield rows, read

    def count_events(self, threads: int | None = None, progress: Any = None) -> dict[str, int]:
        """Events by kind of all locations, after decoding those that were not decoded yet."""
        fresh = [row for row in self.chosen if row not in self._nested]

        def nest(row: int) -> None:
            self.busy(row)  # which keeps nothing of the size of the spans

        self.each(fresh, nest, threads, progress)
        return self.events

    def has_spans(self, location: int) -> bool:
        """Whether a location that was counted holds anything that makes spans."""
        return location in self._opening

    def each(
        self, locations: Sequence[int], work: Callable[[int], T], threads: int | None, progress: Any = None
    ) -> dict[int, T]:
        """``work(location)`` on threads, the largest location first; the results in the order of the locations."""
        return self.each_batch(locations, partial(_all, work), threads, progress)

    def each_batch(
        self,
        locations: Sequence[int],
        work: Callable[[list[int]], Sequence[T]],
        threads: int | None,
        progress: Any = None,
    ) -> dict[int, T]:
        """The same for work on several locations in one go, which gives a result for each."""
        events = self.model.locations.events
        rows = np.array(sorted(locations), np.int64)
        order = rows[np.argsort(-events[rows], kind="stable")].tolist()
        count = threads or os.cpu_count() or 1
        whole, done = int(events[rows].sum()), 0
        results: dict[int, T] = {}
        for batch, found in _on_threads(_batches(order, events, count), work, count):
            results |= zip(batch, found, strict=True)
            done += int(events[batch].sum())
            if progress is not None:
                progress(done, whole)
        return {row: results[row] for row in rows.tolist()}

    def note(self, location: int, columns: Mapping[str, Any]) -> None:
        """Remember how a location's files were; several decodings of one location tell the same."""
        self._tell(location, columns)
        self._count([location], columns["counts"][np.newaxis], nested=True)

    def _note_many(self, rows: Sequence[int], read: core.Read, nested: bool) -> None:
        unread = read.counts[:, _METRIC] > 0 if self.skipped else False
        for i in np.flatnonzero(~read.plain | unread).tolist():
            self._tell(rows[i], read.told(i))
        self._count(rows, read.counts, nested)

    def _count(self, rows: Sequence[int], counts: npt.NDArray[np.int64], nested: bool) -> None:
        """Remember which events locations hold, once."""
        opening = counts[:, _OPENING].any(axis=1)
        with self._lock:
            if nested:
                self._nested.update(rows)
            if not self._counted.isdisjoint(rows):
                counts = counts[[row not in self._counted for row in rows]]
            self._counted.update(rows)
            self._opening.update(rows[i] for i in opening.nonzero()[0].tolist())
            whole = counts[0] if len(counts) == 1 else counts.sum(axis=0)
            for kind in whole.nonzero()[0].tolist():
                name = _kind_name(kind)
                self.events[name] = self.events.get(name, 0) + int(whole[kind])

    def _tell(self, location: int, columns: Mapping[str, Any]) -> None:
        """Remember what is odd about a location."""
        odd = self._odd(location, columns)
        problems = [Problem(kind, f"{self.label(location)}: {text}", location) for kind, text in odd]
        if problems:
            with self._lock:
                known = self._problems.setdefault(location, [])
                known.extend(problem for problem in problems if problem not in known)

    def _odd(self, location: int, columns: Mapping[str, Any]) -> list[tuple[str, str]]:
        status, counts, declared = columns["status"], columns["counts"], int(self.model.locations.events[location])
        read, nesting = status["events"], columns["nesting"].tolist()
        odd = []
        if status["code"]:
            odd.append((status["code"], f"{status['message']}; {read} of {declared} declared events were read"))
        elif read != declared:
            odd.append(("count", f"holds {read} events, {declared} are declared"))
        repaired = [text.format(n) for text, n in zip(_NESTING, nesting, strict=False) if n]
        if repaired:
            odd.append(("nesting", ", ".join(repaired)))
        if nesting[3]:
            odd.append(("unknown", f"{nesting[3]} events of unknown kinds were skipped"))
        if columns["undefined"]:
            odd.append(("undefined", f"{columns['undefined']} events refer to regions that are not defined"))
        if columns["backward"]:
            odd.append(("backward", f"{columns['backward']} events go back in time and were moved forward"))
        if location in self.skipped and counts[_METRIC]:
            odd.append(("metrics", f"{counts[_METRIC]} metric events were not expected here and were not read"))
        return odd


def _batches(order: Sequence[int], events: npt.NDArray[np.int64], threads: int) -> Iterator[list[int]]:
    """Locations in one go: so few that threads end together, so many that handing them over costs nothing."""
    enough = min(int(events[order].sum()) // (8 * threads), _BATCH_EVENTS)
    batch, size = [], 0
    for row, own in zip(order, events[order].tolist(), strict=True):
        batch.append(row)
        size += own
        if size >= enough:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _all(work: Callable[[int], T], batch: Sequence[int]) -> list[T]:
    return [work(row) for row in batch]


def _on_threads(
    batches: Iterable[list[int]], work: Callable[[list[int]], Sequence[T]], threads: int
) -> Iterator[tuple[list[int], Sequence[T]]]:
    """Each batch worked on, as they are done; a single thread is this one."""
    if threads == 1:
        yield from ((batch, work(batch)) for batch in batches)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting = {pool.submit(work, batch): batch for batch in batches}
        try:
            for future in as_completed(waiting):
                yield waiting.pop(future), future.result()
        except BaseException:  # Ctrl-C: what was not begun is not waited for
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _kind_name(kind: int) -> str:
    at = kind - core.FIRST_KIND
    return core.KINDS[at] if 0 <= at < len(core.KINDS) else f"unknown {kind}"
