"""The files that :mod:`.stacks` and :mod:`.calls` wrote → spans and signals of a Recording.

``join(recording, folder)`` adds a process per file, a location per thread, a frame per function (or line), and the
regions that such a process marked as spans among its functions. Each location gets its CPU time as a counter
("cpu time") and as the load by which simultaneous users share a device ("cpu load"); a process gets its resident
memory ("memory resident") and how much it has grown ("memory grown").
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..model import Frames, Locations, Nodes, Problem, Processes, Recording, Signal, Spans, SpanTable
from ..model.nesting import nest
from . import allocations, ranks, region_files
from . import regions as marked
from .stack_spans import called, sampled
from .ticker import MEMORY, NO_STACK

CPU_TIME, CPU_LOAD, RESIDENT, GROWN = "cpu time", "cpu load", "memory resident", "memory grown"
# as in tracebacks: an import is the work of the module that imports; and what we do at the end is nobody's
_HIDDEN = ("<frozen importlib", "<frozen zipimport", str(Path(__file__).parent))
_SAMPLE = np.dtype([("time", "<i8"), ("value", "<i8"), ("lane", "<u4"), ("stack", "<u4")])
_CALL = np.dtype([("time", "<i8"), ("frame", "<u4"), ("lane", "<u4")])


@dataclass
class Process:
    """What one process wrote."""

    header: dict[str, Any] = field(default_factory=dict)
    frames: dict[int, dict[str, Any]] = field(default_factory=dict)
    stacks: dict[int, tuple[int, int]] = field(default_factory=dict)  # stack → (its caller's stack, frame)
    lanes: dict[int, dict[str, Any]] = field(default_factory=dict)
    samples: npt.NDArray[Any] = field(default_factory=lambda: np.empty(0, _SAMPLE))
    calls: npt.NDArray[Any] = field(default_factory=lambda: np.empty(0, _CALL))
    problems: list[str] = field(default_factory=list)

    @property
    def pid(self) -> int:
        return int(self.header.get("pid", 0))

    def last_ns(self) -> int:
        """When it was last seen, and the time that its last stack is held at least."""
        interval = int(self.header.get("interval_s", 0) * 1e9)
        times = [int(rows["time"].max()) for rows in (self.samples, self.calls) if len(rows)]
        ended = len(self.samples) and self.samples["stack"][-1] == NO_STACK and not len(self.calls)
        return max(times, default=0) + (0 if ended else interval)


def load(path: Path) -> Process:
    """One process's files, as far as they were written; a line or row cut by a kill is left out."""
    process = Process()
    for line in path.read_bytes().splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if "stack" in entry:
            process.stacks[entry["stack"]] = entry["parent"], entry["frame"]
        elif "frame" in entry:
            process.frames[entry["frame"]] = entry
        elif "lane" in entry:
            process.lanes[entry["lane"]] = entry
        elif "problem" in entry:
            process.problems.append(entry["problem"])
        else:
            process.header = entry
    process.samples = _rows(path.with_suffix(".samples"), _SAMPLE)
    process.calls = _rows(path.with_suffix(".calls"), _CALL)
    return process


def _rows(path: Path, kind: Any) -> npt.NDArray[Any]:
    try:
        data = path.read_bytes()
    except OSError:
        return np.empty(0, kind)
    rows: npt.NDArray[Any] = np.frombuffer(data[: len(data) // kind.itemsize * kind.itemsize], kind)
    written: npt.NDArray[Any] = rows[rows["time"] != 0]  # pieces of a trace may end in rows that nobody used
    return written


def found(folder: Path) -> list[Process]:
    """The processes that recorded anything, in the order in which they began."""
    paths = sorted(folder.glob("*.stacknames"), key=lambda path: int(path.stem.rpartition("-")[2]))
    loaded = [load(path) for path in paths]
    return [process for process in loaded if len(process.samples) or len(process.calls)]


def join(recording: Recording, folder: Path, processes: list[Process]) -> Recording:
    """The recording with the stacks of these processes; its clock must count monotonic nanoseconds."""
    if not processes:
        return recording
    builder = _Builder(recording, folder)
    for process in processes:
        builder.add(process)
    return builder.recording()


class _Builder:
    """Collects tables row by row, spans and signals location by location."""

    def __init__(self, recording: Recording, folder: Path) -> None:
        self.base, self.folder, self.offset = recording, folder, recording.clock.offset_ticks
        run = recording.metadata.get("run", {})
        self.run_pid, self.run_end = run.get("pid"), run.get("end_ticks")
        self.frames, self.nodes = recording.frames.rows(), recording.nodes.rows()
        self.known: dict[tuple[Any, ...], int] = {}
        self.suspending: set[tuple[str, int]] = set()  # (file, line) of generators and coroutines
        self.processes, self.locations = recording.processes.rows(), recording.locations.rows()
        self.spans: dict[int, Spans] = {at: recording.spans.spans(at) for at in recording.spans.locations()}
        self.signals: list[Signal] = []
        self.problems: list[Problem] = []
        self.end = recording.clock.length_ticks
        self.regions = {
            process.header.get("pid"): process for process in map(region_files.load, sorted(folder.glob("*.regions")))
        }

    def add(self, process: Process) -> None:
        header, row = process.header, len(self.processes)
        rank = ranks.of(header.get("environment", {}))
        name = f"rank {rank.rank}" if rank else f"{Path(header.get('program') or 'python').name} [{process.pid}]"
        node = region_files.node_of(self.nodes, header.get("host", ""))
        self.processes.append((process.pid, name, "process", node, -1))
        self.problems += [Problem("stacks", f"process {process.pid}: {text}") for text in process.problems]
        end = process.last_ns() - self.offset
        if process.pid == self.run_pid and self.run_end is not None and not _said_end(process):
            end = max(end, self.run_end)  # killed, or os._exit: its last stack held until then
        self.end = max(self.end, end)
        frames = np.full(max(process.frames, default=0) + 1, -1, np.int32)
        for number, entry in process.frames.items():
            if not entry["file"].startswith(_HIDDEN):
                frames[number] = self._frame(entry, "python", "function")
            if entry.get("suspends"):
                self.suspending.add((entry["file"], entry["line"]))
        regions = self.regions.get(process.pid)
        first = len(self.locations)
        code = {number: entry.get("code") for number, entry in process.frames.items()}
        for thread, lanes in _threads(process):
            spans = self._traced(process, lanes, frames, end) if len(process.calls) else None
            samples = process.samples[np.isin(process.samples["lane"], lanes)]
            if spans is None:
                spans = sampled(samples, process.stacks, code, frames, self.offset, end)
            if regions is not None:
                spans = self._with_regions(spans, regions, thread, end)
            self._location(process, row, lanes, spans, samples)
        self._memory(process, first)

    def _location(self, process: Process, row: int, lanes: list[int], spans: Spans, samples: Any) -> None:
        if not len(spans):
            return
        at = len(self.locations)
        name = process.lanes.get(lanes[0], {}).get("name", "thread")
        self.locations.append((row << 32 | lanes[0], name, "cpu", row, 2 * len(spans)))
        self.spans[at] = spans
        inside = (samples["time"] >= spans.start[0] + self.offset) & (samples["time"] <= spans.end.max() + self.offset)
        seen, counts = np.unique(samples["lane"][inside], return_counts=True)
        mine = samples[samples["lane"] == seen[counts.argmax()]] if len(seen) else samples[:0]
        self.signals += _cpu_signals(mine, self.offset, at, process.header.get("host", ""))

    def _memory(self, process: Process, location: int) -> None:
        rows = process.samples[process.samples["lane"] == MEMORY]
        if not len(rows) or location >= len(self.locations):
            return
        grown = np.concatenate([[0], np.cumsum(np.maximum(np.diff(rows["value"]), 0))])
        about: dict[str, Any] = {"host": process.header.get("host", ""), "location": location}
        times = rows["time"] - self.offset
        self.signals.append(Signal(RESIDENT, "gauge", "B", times, rows["value"].copy(), **about))
        self.signals.append(Signal(GROWN, "counter", "B", times, grown.astype(np.int64), **about))

    def _traced(self, process: Process, lanes: list[int], frames: Any, end: int) -> Spans:
        events = process.calls[np.isin(process.calls["lane"], lanes)]
        return called(events["time"] - self.offset, events["frame"], frames, end)

    def _with_regions(self, spans: Spans, regions: region_files.ProcessRegions, thread: int, end: int) -> Spans:
        """Regions among the functions that marked them; a sampled call that reaches over a region's edge is cut."""
        lanes = [lane for lane, entry in regions.lanes.items() if entry.get("thread") == thread]
        rows = regions.rows[np.isin(regions.rows["lane"], lanes)]
        if not len(rows):
            return spans
        mask = marked.RESUMED - 1
        frames = [
            self._frame(regions.frames.get(int(f) & mask, {"name": "?"}), "user", "region") for f in rows["frame"]
        ]
        stops = np.where(rows["end"] == 0, end, rows["end"] - self.offset)
        start = np.concatenate([spans.start, rows["start"] - self.offset])
        order = np.lexsort((np.concatenate([spans.depth, np.full(len(rows), 1 << 30)]), start))
        return nest(
            start[order],
            np.concatenate([spans.end, stops])[order],
            np.concatenate([spans.frame, np.array(frames, np.int32)])[order],
            np.concatenate([spans.resumed, (rows["frame"] & marked.RESUMED) != 0])[order],
        )

    def _frame(self, entry: dict[str, Any], paradigm: str, role: str) -> int:
        row = (entry["name"], paradigm, role, entry.get("file", ""), entry.get("line", 0))
        if row not in self.known:
            self.known[row] = len(self.frames)
            self.frames.append(row)
        return self.known[row]

    def recording(self) -> Recording:
        base = self.base
        told = {"calls": _counted(self.folder, self.suspending), "allocations": allocations.held(self.folder)}
        return replace(
            base,
            metadata={**base.metadata, **{key: rows for key, rows in told.items() if rows}},
            clock=replace(base.clock, length_ticks=max(base.clock.length_ticks, self.end)),
            frames=Frames.of(self.frames),
            nodes=Nodes.of(self.nodes),
            processes=Processes.of(self.processes),
            locations=Locations.of(self.locations),
            spans=SpanTable(self.spans),
            signals=(*base.signals, *self.signals),
            noticed=(*base.noticed, *self.problems),
        )


def _said_end(process: Process) -> bool:
    """Whether its last tick said that every thread is gone, as one at a proper end does."""
    threads = process.samples[process.samples["lane"] != MEMORY]
    return bool(len(threads)) and bool(threads["stack"][-1] == NO_STACK) and process.header.get("mode") != "trace"


def _threads(process: Process) -> Iterator[tuple[int, list[int]]]:
    """(thread, its lanes): the tracer and the ticker number threads apart; an ident that comes again is another."""
    traced = {int(lane) for lane in np.unique(process.calls["lane"])}
    for lane, entry in process.lanes.items():
        if traced and lane not in traced:
            continue
        same = [n for n, it in process.lanes.items() if n not in traced and it["thread"] == entry["thread"]]
        yield entry["thread"], [lane, *same] if traced else [lane]


def _cpu_signals(samples: Any, offset: int, location: int, host: str) -> list[Signal]:
    rows = samples[samples["value"] >= 0]
    times = rows["time"] - offset
    if len(rows) < 2:  # a thread too short to say: it counts as busy
        times, load = np.zeros(1, np.int64), np.ones(1)
        return [Signal(CPU_LOAD, "gauge", "#", times, load, host=host, location=location)]
    spent, lasted = np.diff(rows["value"]), np.diff(times)
    load = np.divide(spent, lasted, out=np.zeros(len(spent)), where=lasted > 0)
    return [
        Signal(CPU_TIME, "counter", "s", times, rows["value"].copy(), Fraction(1, 10**9), host, location=location),
        Signal(CPU_LOAD, "gauge", "#", times[:-1], np.clip(load, 0.0, 1.0), host=host, location=location),
    ]


def statistics(folder: Path) -> Any:
    """What cProfile counted in all processes, as one ``pstats.Stats``; None where it did not run."""
    import pstats

    whole = None
    for path in sorted(folder.glob("*.prof")):
        with suppress(EOFError, ValueError, TypeError, OSError):  # cut by a kill
            found = pstats.Stats(str(path))
            whole = found if whole is None else whole.add(found)
    return whole


def _counted(folder: Path, suspending: set[tuple[str, int]]) -> list[list[Any]]:
    """[file, line, name, calls] of every Python function that cProfile counted; names are not qualified.

    Of generators and coroutines cProfile counts every time they go on, which is no call: nobody knows theirs.
    """
    whole = statistics(folder)
    stats = {} if whole is None else whole.stats
    return [
        [*where, calls] for where, (_, calls, *_) in stats.items() if where[0] != "~" and where[:2] not in suspending
    ]


def keep(parts: Path, folder: Path) -> None:
    """Keep what other tools read: ``profile.prof`` (SnakeViz, gprof2dot) and memray's files."""
    whole = statistics(parts)
    if whole is not None:
        whole.dump_stats(folder / "profile.prof")
    for path in parts.glob("*.memray"):
        path.replace(folder / f"memory-{path.stem.partition('-')[0]}.memray")
