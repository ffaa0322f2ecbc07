"""The spans of an OTF2 archive, decoded when asked for: a SpanSource over its files.

Nothing is kept of what was decoded except facts about the files: events by kind, and problems. One call decodes
one location, or, where columns are asked for, a batch of them: with thousands of small ones Python would cost more than
decoding. Callers run these calls side by side on threads (the C core holds no lock), :func:`each` does that here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ..._core import otf2 as core
from ...errors import OutputError
from ...model import Curve, Fold, Intervals, Keys, Launches, Problem, SpanRows, Spans
from .anchor import Anchor
from .tables import DefinitionTables

T = TypeVar("T")
_SPAN_COLUMNS = ("start", "end", "frame", "parent", "depth", "resumed")
_BATCH_EVENTS = 1_000_000  # some milliseconds of work, whose columns fill huge pages
_METRIC = core.FIRST_KIND + core.KINDS.index("Metric")
_OPENING = [
    core.FIRST_KIND + core.KINDS.index(kind) for kind in ("Enter", "CallingContextEnter", "CallingContextSample")
]
_NESTING = {  # by place in the decoder's counts
    0: "{} leaves without an enter",
    1: "{} leaves out of order (what was open above was closed)",
    2: "{} regions never left (closed with the last event)",
    4: "{} leaves that name another region than was open (the innermost span was closed and keeps its name)",
}


@dataclass
class OTF2Spans:
    """Decodes locations of an archive; thread-safe."""

    anchor: Anchor
    model: DefinitionTables
    chosen: tuple[int, ...]  # rows of Locations whose spans are wanted and whose files are there
    label: Callable[[int], str]  # location row → "process, location" for messages
    callsites: bool = False  # unsigned parameters are the callsites of kernels
    skipped: frozenset[int] = frozenset()  # locations whose metric events were not decoded
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
        try:
            columns = core.busy(self.files(location), self.tables(location, keep))
        except OSError as error:
            raise OutputError(str(error)) from error
        self.note(location, columns)
        return Intervals(columns["start"], columns["end"])

    def fold(self, location: int, curves: Sequence[Curve], keys: Keys) -> Fold:
        [fold] = self.fold_many([location], [curves], keys).apart()
        return fold

    def guess_busy(
        self, locations: Sequence[int], keep: npt.NDArray[np.bool_] | None = None
    ) -> list[tuple[int, int] | None]:
        return core.guess_busy(self.many(locations), self.tables(locations[0], keep))

    def fold_many(
        self,
        locations: Sequence[int],
        curves: Sequence[Sequence[Curve]],
        keys: Keys,
        busy: Sequence[tuple[int, int]] | None = None,
        entered_only: bool = False,
    ) -> Fold:
        read, fold = core.fold_many(self.many(locations), self.tables(locations[0]), curves, keys, busy, entered_only)
        self._note_many(locations[: len(read.ends)], read, nested=True)
        return Fold.of({**fold, "ends": read.ends[:, 0]})

    def rows(
        self, location: int, curves: Sequence[Curve], keys: Keys, most: int, take: Callable[[SpanRows], None]
    ) -> None:
        def piece(columns: Mapping[str, Any]) -> None:
            take(SpanRows(**columns))

        self.note(location, core.rows(self.files(location), self.tables(location), curves, keys, most, piece))

    def problems(self) -> Sequence[Problem]:
        with self._lock:
            return [problem for row in sorted(self._problems) for problem in self._problems[row]]

    def launches(self) -> Launches | None:
        """Kernels by the calls that launched them, where Score-P recorded callsites.

        A callsite is a number for a call path of a process; its first call on a host thread stands for all.
        """
        if not self.callsites:
            return None
        kind, processes = self.model.locations.kind, self.model.processes
        first: dict[tuple[int, int], tuple[int, int]] = {}
        columns: list[tuple[npt.NDArray[Any], ...]] = []
        for row in sorted(self.chosen, key=lambda row: kind[row] == "gpu"):
            process = int(self.model.locations.process[row])
            noted = core.parameters(self.files(row))
            if kind[row] != "gpu":
                values, at = np.unique(noted["value"], return_index=True)
                for value, time in zip(values.tolist(), noted["time"][at].tolist(), strict=True):
                    first[process, value] = min(first.get((process, value), (time, row)), (time, row))
                continue
            creator = int(processes.creator[process]) if process >= 0 else -1
            values, which = np.unique(noted["value"], return_inverse=True)
            sites = [first.get((creator, value), (0, -1)) for value in values.tolist()]
            times, hosts = np.array(sites, np.int64).reshape(-1, 2)[which].T
            known = hosts >= 0
            columns.append((np.full(int(known.sum()), row), noted["time"][known], hosts[known], times[known]))
        if not columns:
            return None
        location, start, host, at = (np.concatenate(column) for column in zip(*columns, strict=True))
        return Launches(location.astype(np.int32), start, host.astype(np.int32), at)

    # --- for the reader

    def fresh(self) -> OTF2Spans:
        """The same files, of which nothing was decoded yet."""
        return replace(self, events={}, _counted=set(), _opening=set(), _nested=set(), _problems={}, _tables={})

    def resumed(self) -> OTF2Spans:
        """The same files; what was decoded before counts no more, what is decoded from now on does."""
        return replace(self, events={}, _counted=set(self._counted), _opening=set(), _nested=set(), _problems={})

    def decoded(self) -> tuple[dict[str, int], set[int], set[int], dict[int, list[Problem]]]:
        """Facts from decoding so far, for a source of the same files that did not decode these locations."""
        return self.events, self._counted, self._opening, self._problems

    def absorb(self, decoded: tuple[dict[str, int], set[int], set[int], dict[int, list[Problem]]]) -> None:
        events, counted, opening, problems = decoded
        with self._lock:
            self._counted |= counted
            self._opening |= opening
            self._problems |= problems
            for name, count in events.items():
                self.events[name] = self.events.get(name, 0) + count

    def files(self, location: int) -> core.LocationFiles:
        return self.many([location]).files(0)

    def many(self, rows: Sequence[int]) -> core.LocationBatch:
        """The files of several locations."""
        locations, anchor = self.model.locations, self.anchor
        return core.LocationBatch(
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
    ) -> core.LookUpTables:
        """The look-up tables of a location; the same object for the same question, so that the core knows it again."""
        stream = self.model.locations.kind[location] == "gpu"
        known = self._tables.get((stream, id(keep), id(metric)))
        if known is None or known[0] is not keep or known[1] is not metric:
            tables = self.model.stream_tables if stream else self.model.host_tables
            kept = np.ones(len(self.model.frames), np.uint8) if keep is None else keep.view(np.uint8)
            known = keep, metric, tables._replace(keep=kept, metric=metric)
            self._tables[stream, id(keep), id(metric)] = known
        return known[2]

    def spans_of(self, batch: Sequence[int]) -> list[Spans]:
        """The spans of several locations: parts of the same columns."""
        spans = {}
        for rows, read in self.read(batch):
            columns = [read.columns[name] for name in _SPAN_COLUMNS]
            begin = 0
            for row, end in zip(rows, read.ends[:, 0].tolist(), strict=True):
                spans[row] = Spans(*[column[begin:end] for column in columns])
                begin = end
        return [spans[row] for row in batch]

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
        for batch, answers in _on_threads(_batches(order, events, count), work, count):
            results |= zip(batch, answers, strict=True)
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
            self._tell(rows[i], read.details(i))
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
        repaired = [text.format(nesting[at]) for at, text in _NESTING.items() if nesting[at]]
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
