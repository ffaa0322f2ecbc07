"""The spans of an OTF2 archive, decoded when asked for: a SpanSource over its files.

Nothing is kept of what was decoded except what it told about the files: events by kind, and problems. One call decodes
one location; callers run them side by side on threads (the C core holds no lock), :func:`each` does that here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
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
_BATCH_EVENTS = 500_000  # some milliseconds of work
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
    _counts: dict[int, npt.NDArray[np.int64]] = field(default_factory=dict)
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
        columns = core.decode(self.files(location), self.tables(location), metrics=False)
        self.note(location, columns)
        return Spans(*(columns[name] for name in _SPAN_COLUMNS))

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
        locations, anchor = self.model.locations, self.anchor
        i = int(locations.id[location])
        return core.Files(
            anchor.location_file(i, ".evt"),
            anchor.location_file(i, ".def"),
            anchor.event_chunk,
            anchor.definition_chunk,
            self.model.clock.offset_ticks,
            int(locations.events[location]),
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

    def metrics(self, location: int, wanted: npt.NDArray[np.uint8] | None) -> dict[str, Any]:
        """The metric events of a location as columns."""
        columns: dict[str, Any] = core.decode(self.files(location), self.tables(location, metric=wanted), spans=False)
        self.note(location, columns, nested=False)
        return columns

    def count_events(self, threads: int | None = None, progress: Any = None) -> dict[str, int]:
        """Events by kind of all locations, after decoding those that were not decoded yet."""
        fresh = [row for row in self.chosen if row not in self._nested]

        def nest(row: int) -> None:
            self.busy(row)  # which keeps nothing of the size of the spans

        self.each(fresh, nest, threads, progress)
        return self.events

    def has_spans(self, location: int) -> bool:
        """Whether a location that was counted holds anything that makes spans."""
        counts = self._counts.get(location)
        return counts is not None and bool(counts[_OPENING].any())

    def each(
        self, locations: Sequence[int], work: Callable[[int], T], threads: int | None, progress: Any = None
    ) -> dict[int, T]:
        """``work(location)`` on threads, the largest location first; the results in the order of the locations."""
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

    def note(self, location: int, columns: Mapping[str, Any], nested: bool = True) -> None:
        """Remember how a location's files were; several decodings of one location tell the same."""
        odd = self._odd(location, columns)
        problems = [Problem(kind, f"{self.label(location)}: {text}", location) for kind, text in odd]
        with self._lock:
            if nested:
                self._nested.add(location)
            if location not in self._counts:
                self._counts[location] = columns["counts"]
                for kind in columns["counts"].nonzero()[0].tolist():
                    name = _kind_name(kind)
                    self.events[name] = self.events.get(name, 0) + int(columns["counts"][kind])
            if problems:
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
    for row in order:
        batch.append(row)
        size += int(events[row])
        if size >= enough:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _all(work: Callable[[int], T], batch: Sequence[int]) -> list[T]:
    return [work(row) for row in batch]


def _on_threads(
    batches: Iterable[list[int]], work: Callable[[int], T], threads: int
) -> Iterator[tuple[list[int], list[T]]]:
    """Each batch worked on, as they are done; a single thread is this one."""
    if threads == 1:
        yield from ((batch, _all(work, batch)) for batch in batches)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting = {pool.submit(_all, work, batch): batch for batch in batches}
        try:
            for future in as_completed(waiting):
                yield waiting.pop(future), future.result()
        except BaseException:  # Ctrl-C: what was not begun is not waited for
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _kind_name(kind: int) -> str:
    at = kind - core.FIRST_KIND
    return core.KINDS[at] if 0 <= at < len(core.KINDS) else f"unknown {kind}"
