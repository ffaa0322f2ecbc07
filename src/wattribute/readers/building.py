"""What readers of other tools' files share: tables that grow row by row and become a Recording at the end.

A reader calls ``frame``, ``process``, ``thread``, ``gpu``, ``span``, ``signal`` in the order of its file,
and then ``recording``. Times are integers in nanoseconds of the file's own clock. Until then a span costs 24 bytes.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import sensors, units
from ..errors import FormatError
from ..model import (
    Clock,
    Device,
    Frames,
    Launches,
    Locations,
    Nodes,
    Problem,
    Processes,
    Recording,
    Signal,
    Spans,
    SpanTable,
)
from ..model.nesting import nest
from ..model.select import select_metrics
from ..plugins import Selection

NS = 1_000_000_000
FARTHEST = 1 << 62  # times beyond this (146 years) are no times
MOST_LOCATIONS = 1 << 17
_ROUNDING_NS = 1_000  # files that count in µs may overlap by as much
_OPEN = -(1 << 63)
Ints = npt.NDArray[np.int64]


class Builder:
    """A recording under construction."""

    def __init__(self, path: Path, selection: Selection, format: str) -> None:
        self.path, self.selection, self.format = path, selection, format
        self.host, self.metadata = "", dict[str, Any]()
        self.problems: list[Problem] = []
        self.counts: Counter[str] = Counter()  # events that could not be used, by what is wrong with them
        self.processes: list[list[Any]] = []
        self.locations: list[list[Any]] = []
        self._frames: dict[tuple[Any, ...], int] = {}
        self._nodes: list[tuple[Any, ...]] = []
        self._by_key: dict[Any, int] = {}
        self._overrides = [sensors.Override.parse(text) for text in selection.metric_kinds]
        self._signals: dict[tuple[str, str], Signal] = {}
        self._devices: dict[tuple[str, str], Device] = {}
        self._location, self._frame = array("i"), array("i")
        self._start, self._end = array("q"), array("q")
        self._launches, self._launched = array("q"), array("q")  # (correlation, location, time) of each

    # ---- tables

    def frame(self, name: str, paradigm: str = "unknown", role: str = "function", file: str = "", line: int = 0) -> int:
        key = (name, paradigm, role, file, line)
        row = self._frames.get(key)
        if row is None:
            row = self._frames[key] = len(self._frames)
        return row

    def node(self, host: str) -> int:
        """The row of another host than the recording's own, which is row 0."""
        if host == self.host:
            return 0
        at = self._by_key.get(("host", host))
        if at is None:
            at = self._by_key["host", host] = len(self._nodes) + 1
            self._nodes.append((at, host, "node", -1, {}))
        return at

    def process(self, key: Any, name: str, id: Any = 0, node: int = 0) -> int:
        """The row of a process; the first call makes it."""
        at = self._by_key.get(("process", key))
        if at is None:
            at = self._by_key["process", key] = len(self.processes)
            self.processes.append([_id(id, at), name, "process", node, -1])
        return at

    def gpu(
        self,
        number: int,
        owner: int = -1,
        kind: str = "CUDA device",
        about: Mapping[str, str] | None = None,
        node: int = 0,
    ) -> int:
        """The row of the context of a GPU, which stands below a device node of its number."""
        at = self._by_key.get(("gpu", node, number, owner))
        if at is None:
            at = self._by_key["gpu", node, number, owner] = len(self.processes)
            die = self._by_key.setdefault(("die", node, number), len(self._nodes) + 1)
            if die > len(self._nodes):
                self._nodes.append((die, str(number), kind, node, dict(about or {})))
            self.processes.append([at, f"GPU {number}", "accelerator", die, owner])
        return at

    def thread(self, key: Any, process: int, name: str, id: Any = 0, kind: str = "cpu") -> int:
        """The row of a thread or (``kind="gpu"``) a stream; the first call makes it."""
        at = self._by_key.get(("location", kind, process, key))
        if at is None:
            if len(self.locations) >= MOST_LOCATIONS:
                raise FormatError(self.path, f"names more than {MOST_LOCATIONS:,} threads; is tid a running number?")
            at = self._by_key["location", kind, process, key] = len(self.locations)
            self.locations.append([_id(id, at), name, kind, process, 0])
        return at

    # ---- spans

    def span(self, location: int, start: int, end: int, frame: int) -> None:
        self._location.append(location)
        self._start.append(start)
        self._end.append(end)
        self._frame.append(frame)

    def launch(self, correlation: Any, location: int, time: int) -> None:
        """Note that a call of a thread launches the work with this number; what is no number is passed over."""
        if type(correlation) is int and 0 < correlation < FARTHEST:
            self._launches.extend((correlation, location, time))

    def launched(self, correlation: Any, location: int, start: int) -> None:
        """Note that the work with this number starts on a stream."""
        if type(correlation) is int and 0 < correlation < FARTHEST:
            self._launched.extend((correlation, location, start))

    def _correlated(self, first: int) -> Launches | None:
        """Work by the calls that launched it: those of the same number, if only one call has it."""
        calls, work = (_column(rows).reshape(-1, 3) for rows in (self._launches, self._launched))
        number, row, count = np.unique(calls[:, 0], return_index=True, return_counts=True)
        number, row = number[count == 1], row[count == 1]  # several processes may count alike
        if not len(number) or not len(work):
            return None
        at = np.minimum(np.searchsorted(number, work[:, 0]), len(number) - 1)
        known = number[at] == work[:, 0]
        caller = calls[row[at[known]]]
        times = work[known, 2] - first, caller[:, 2] - first
        return Launches(work[known, 1].astype(np.int32), times[0], caller[:, 1].astype(np.int32), times[1])

    def begin(self, location: int, start: int, frame: int) -> int:
        """Open a span; ``finish`` gives it its end, else the end of the recording is it."""
        self.span(location, start, _OPEN, frame)
        return len(self._start) - 1

    def finish(self, span: int, end: int) -> None:
        self._end[span] = max(end, self._start[span])

    def stacks(self, location: int, seen: Sequence[tuple[int, int, Sequence[int]]]) -> None:
        """Spans of (from, to, frames from the root on): what two stacks without a gap have in common goes on."""
        under_way: list[tuple[int, int]] = []  # frame, span
        before: int | None = None
        for start, end, frames in seen:
            same = 0
            if start == before:
                while same < min(len(under_way), len(frames)) and under_way[same][0] == frames[same]:
                    same += 1
            for _, span in under_way[same:]:
                self.finish(span, start if before is None else before)
            del under_way[same:]
            under_way += [(frame, self.begin(location, start, frame)) for frame in frames[same:]]
            before = end
        for _, span in under_way:
            self.finish(span, before or 0)

    # ---- signals

    def signal(
        self,
        name: str,
        times: Any,
        values: Any,
        declared: sensors.Declaration | None = None,
        device: Device | None = None,
        sure: bool = False,
        of_device: bool = True,
        **more: Any,
    ) -> Signal:
        """Readings of a metric; what it is says its name, or the file, or the user, as in ``sensors``.

        ``sure``: the file says the unit of these very numbers, so that it counts more than the name. Not
        ``of_device``: a figure that no meter gave (the power a tool ascribes to a process), never part of a total.
        """
        name = clean(name)
        about = sensors.describe(name, declared or sensors.Declaration(), self._overrides)
        if sure and declared is not None and not any(one.pattern.search(name) for one in self._overrides):
            unit = units.parse(declared.unit)
            about = replace(about, kind=declared.kind, unit=unit.symbol, scale=unit.scale)
        if device is None and about.device and of_device:
            device = Device(about.device, about.device_kind, str(more.get("host", self.host)))
        if device is not None:
            more.setdefault("host", device.host)
            self._devices.setdefault((device.host, device.name), device)
        known: dict[str, Any] = {
            "host": self.host,
            "latency_s": about.latency_s,
            "stale": about.stale,
            "gain_error": about.gain_error,
            "declared": {"unit": declared.unit, "mode": declared.kind} if declared else {},
        }
        signal = Signal(
            name,
            about.kind,
            about.unit,
            np.asarray(times, np.int64),
            np.asarray(values),
            about.scale,
            device="" if device is None else device.name,
            **(known | more),
        )
        self._signals[signal.host + "\0" + signal.device, f"{name}\0{signal.location}"] = signal
        return signal

    # ---- the end

    def timeless(self, weights: str) -> None:
        """The spans were laid end to end: their weights are "times", or "samples" of unknown length."""
        self.metadata["timeline"] = {"times": "none", "samples": "samples"}[weights]
        self.problem("timeline", f"has {weights} and no timeline; a power log's mean is split by them")

    def problem(self, kind: str, text: str) -> None:
        self.problems.append(Problem(kind, f"{self.path}: {text}"))

    def recording(self, epoch_ns: int | None = None, clock: Mapping[str, Any] | None = None) -> Recording:
        """The recording; ``epoch_ns`` is the wall clock at the file's time 0, ``clock`` what else is known of it."""
        if len(self._location) == 0 and not self._signals:
            reasons = "; ".join(f"{count} × {what}" for what, count in self.counts.items())
            raise FormatError(self.path, f"it holds nothing that can be used{': ' if reasons else ''}{reasons}")
        for what, count in self.counts.items():
            self.problem("left-out", f"{count} × {what}")
        first, last = self._extent()
        spans = self._spans(first, last)
        moved = [replace(signal, times=signal.times - first) for signal in self._signals.values()]
        recording = Recording(
            clock=Clock(NS, first, last - first, None if epoch_ns is None else epoch_ns + first),
            frames=Frames.of((clean(row[0]), row[1], row[2], clean(row[3]), row[4]) for row in self._frames),
            nodes=Nodes.of([(0, self.host, "node", -1, {}), *self._nodes]),
            processes=Processes.of([row[0], clean(row[1]), *row[2:]] for row in self.processes),
            locations=Locations.of([row[0], clean(row[1]), *row[2:]] for row in self.locations),
            spans=spans,
            signals=tuple(moved),
            devices=tuple(self._devices.values()),
            noticed=tuple(self.problems),
            metadata={
                "name": self.path.name or self.path.resolve().name,  # of "." too
                "source": str(self.path),
                "format": self.format,
                **self.metadata,
                "clock": dict(clock or {}),
            },
        )
        s = self.selection
        return select_metrics(recording, s.metric)

    def first_ns(self) -> int:
        """The earliest time so far."""
        return self._extent()[0]

    def _extent(self) -> tuple[int, int]:
        start, end = _column(self._start), _column(self._end)
        times = [column for column in (start, end[end != _OPEN]) if len(column)]
        times += [signal.times for signal in self._signals.values() if len(signal)]
        if not times:
            return 0, 0
        return min(int(t.min()) for t in times), max(int(t.max()) for t in times)

    def _spans(self, first: int, last: int) -> SpanTable:
        """Intervals sorted, nested and cut into locations; those that overlap without nesting are cut in two."""
        location = np.frombuffer(self._location, np.int32)
        start, end = _column(self._start) - first, _column(self._end)
        unclosed = int((end == _OPEN).sum())
        if unclosed:
            self.problem("unclosed", f"{unclosed} spans have no end; they end with the recording")
        end = np.where(end == _OPEN, last, end) - first
        order = np.lexsort((-end, start, location))
        start, end, frame = start[order], end[order], np.frombuffer(self._frame, np.int32)[order]
        edges = np.searchsorted(location[order], np.arange(len(self.locations) + 1))
        events = np.diff(edges)
        for row, count in enumerate(events.tolist()):
            self.locations[row][4] = 2 * count
        parent, depth = np.empty(len(start), np.int64), np.empty(len(start), np.int32)
        cut: dict[int, Spans] = {}
        for at in np.flatnonzero(events).tolist():
            mine = slice(int(edges[at]), int(edges[at + 1]))
            if not _nest_into(start[mine], end[mine], parent[mine], depth[mine]):
                cut[at] = nest(start[mine], end[mine], frame[mine], np.zeros(events[at], np.bool_))
        if cut:
            names = ", ".join(self.locations[at][1] for at in list(cut)[:3])
            text = f"spans of {len(cut)} threads ({names}) overlap without nesting; they were cut where another ends"
            self.problem("overlap", text)
        return SpanTable(_Slices(start, end, frame, parent, depth, edges, cut), self._correlated(first))


def _column(values: array[int]) -> Ints:
    return np.frombuffer(values, np.int64)


def clean(text: Any) -> str:
    """Text that can be written: JSON may hold halves of characters that no encoding knows."""
    plain = str(text)
    return plain if plain.isascii() else plain.encode("utf-8", "replace").decode("utf-8")


def _id(given: Any, row: int) -> int:
    return given if isinstance(given, int) and 0 < given < 1 << 63 else row


def _nest_into(start: Ints, end: Ints, parent: Ints, depth: npt.NDArray[np.int32]) -> bool:
    """Fill in parents and depths of intervals sorted by (start, −end); False if some overlap without nesting.

    Overlaps within rounding are fixed: the earlier one ends where the later begins, or the inner with the outer.
    """
    stack: list[int] = []
    ends: list[int] = []  # of the rows on the stack
    for first in range(0, len(start), 65_536):  # Python integers are large: some at a time
        part = slice(first, first + 65_536)
        parents, depths = [], []
        for row, (begins, stops) in enumerate(zip(start[part].tolist(), end[part].tolist(), strict=True), first):
            while ends and ends[-1] <= begins:
                ends.pop()
                stack.pop()
            while ends and stops > ends[-1]:
                over = ends[-1] - begins
                if over <= _ROUNDING_NS and 2 * over < stops - begins:
                    end[stack.pop()] = begins
                    ends.pop()
                elif stops - ends[-1] <= _ROUNDING_NS:
                    end[row] = stops = ends[-1]
                else:
                    return False
            parents.append(stack[-1] if stack else -1)
            depths.append(len(stack))
            stack.append(row)
            ends.append(stops)
        parent[part], depth[part] = parents, depths
    return True


@dataclass(frozen=True)
class _Slices(Mapping[int, Spans]):
    """Location → its part of columns that all locations share, so that many small locations cost little."""

    start: Ints
    end: Ints
    frame: npt.NDArray[np.int32]
    parent: Ints
    depth: npt.NDArray[np.int32]
    edges: npt.NDArray[np.intp]
    cut: Mapping[int, Spans] = field(default_factory=dict)

    def __getitem__(self, location: int) -> Spans:
        if location in self.cut:
            return self.cut[location]
        if not 0 <= location < len(self.edges) - 1 or self.edges[location] == self.edges[location + 1]:
            raise KeyError(location)
        mine = slice(int(self.edges[location]), int(self.edges[location + 1]))
        columns = (self.start[mine], self.end[mine], self.frame[mine], self.parent[mine], self.depth[mine])
        return Spans(*columns, np.zeros(mine.stop - mine.start, np.bool_))

    def __iter__(self) -> Iterator[int]:
        return iter(np.flatnonzero(np.diff(self.edges)).tolist())

    def __len__(self) -> int:
        return int((np.diff(self.edges) > 0).sum())
