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

from ..journal.layouts import (
    COUNTER_LANE,
    DELAY_LANE,
    MEMORY_LANE,
    NATIVE_LANE,
    NO_STACK,
    REGION_RESUMED,
    STACK_RUNS,
    STACK_WAITS,
)
from ..journal.ranks import rank_of
from ..model import Frames, Locations, Nodes, Problem, Processes, Recording, Signal, Spans, SpanTable
from ..model.constants import CPU_LOAD, CPU_TIME
from ..model.nesting import nest
from . import allocations, region_files, watch_rows
from .stack_spans import called, sampled

NATIVE_THREADS = "(native threads)"
IMPORT = "import"  # role of a frame that is the code of a module, run by an import
RESIDENT, GROWN = "memory resident", "memory grown"
# as in tracebacks: an import is the work of the module that imports; and what we do at the end counts for no frame
_IMPORTERS = ("<frozen importlib", "<frozen zipimport")
_HIDDEN = (*_IMPORTERS, str(Path(__file__).parents[1] / "recorders"))
_USUAL = 0.95  # of the gaps in which a stack changed: how far from its place in the recording a change may have been
_SAMPLE = np.dtype([("time", "<i8"), ("value", "<i8"), ("lane", "<u4"), ("stack", "<u4")])
_CALL = np.dtype([("time", "<i8"), ("frame", "<u4"), ("lane", "<u4")])


@dataclass
class ProfiledProcess:
    """What one process wrote."""

    header: dict[str, Any] = field(default_factory=dict)
    frames: dict[int, dict[str, Any]] = field(default_factory=dict)
    stacks: dict[int, tuple[int, int]] = field(default_factory=dict)  # stack → (its caller's stack, frame)
    lanes: dict[int, dict[str, Any]] = field(default_factory=dict)
    samples: npt.NDArray[Any] = field(default_factory=lambda: np.empty(0, _SAMPLE))
    counters: dict[int, str] = field(default_factory=dict)  # quick energy counters that its watch read: their files
    readings: npt.NDArray[Any] = field(default_factory=lambda: np.empty(0, _SAMPLE))  # … and what they said
    calls: npt.NDArray[Any] = field(default_factory=lambda: np.empty(0, _CALL))
    problems: list[str] = field(default_factory=list)
    is_watched: bool = False  # by recorders.watch: rows are looks, not beginnings

    @property
    def pid(self) -> int:
        return int(self.header.get("pid", 0))

    def edge_readings(self) -> Iterator[region_files.Readings]:
        """The readings of counters that its watch made at its looks."""
        for number, path in self.counters.items():
            rows = self.readings[self.readings["stack"] == number]
            yield path, rows["time"].copy(), rows["value"].copy()

    def last_ns(self) -> int:
        """When it was last seen, and the time that its last stack is held at least."""
        interval = int(self.header.get("interval_s", 0) * 1e9)
        times = [int(rows["time"].max()) for rows in (self.samples, self.calls) if len(rows)]
        ended = len(self.samples) and self.samples["stack"][-1] == NO_STACK and not len(self.calls)
        return max(times, default=0) + (0 if ended else interval)


def load(path: Path) -> ProfiledProcess:
    """One process's files, as far as they were written; a line or row cut by a kill is left out."""
    process = ProfiledProcess()
    for line in path.read_bytes().splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if "stack" in entry:
            process.stacks[entry["stack"]] = entry["parent"], entry["frame"]
        elif "frame" in entry:
            process.frames[entry["frame"]] = entry
        elif "counter" in entry:
            process.counters[entry["counter"]] = entry["path"]
        elif "lane" in entry:
            process.lanes[entry["lane"]] = entry
        elif "sampler" in entry:
            process.is_watched = entry["sampler"] == "watch"
        elif "problem" in entry:
            process.problems.append(entry["problem"])
        else:
            process.header = entry
    samples = _rows(path.with_suffix(".samples"), _SAMPLE)
    is_reading = samples["lane"] == COUNTER_LANE
    process.samples, process.readings = samples[~is_reading], samples[is_reading]
    process.calls = _rows(path.with_suffix(".calls"), _CALL)
    return process


def _rows(path: Path, kind: Any) -> npt.NDArray[Any]:
    try:
        data = path.read_bytes()
    except OSError:
        return np.empty(0, kind)
    rows: npt.NDArray[Any] = np.frombuffer(data[: len(data) // kind.itemsize * kind.itemsize], kind)
    written: npt.NDArray[Any] = rows[rows["time"] != 0]  # pieces of a trace may end in unused rows
    return written


def profiled_processes(folder: Path) -> list[ProfiledProcess]:
    """List the processes that recorded anything, in the order in which they began."""
    paths = sorted(folder.glob("*.stacknames"), key=lambda path: int(path.stem.rpartition("-")[2]))
    loaded = [load(path) for path in paths]
    return [process for process in loaded if len(process.samples) or len(process.calls)]


def join(recording: Recording, folder: Path, processes: list[ProfiledProcess]) -> Recording:
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
        self.samples = 0  # stacks that were seen
        self.gaps: list[npt.NDArray[np.int64]] = []  # between two looks that saw different stacks
        files = map(region_files.load, sorted(folder.glob("*.regions")))
        self.regions = {
            process.header.get("pid"): process for process in files if len(process.rows) or len(process.counts)
        }

    def add(self, process: ProfiledProcess) -> None:
        header, row = process.header, len(self.processes)
        rank = rank_of(header.get("environment", {}))
        name = f"rank {rank.rank}" if rank else f"{Path(header.get('program') or 'python').name} [{process.pid}]"
        node = region_files.node_of(self.nodes, header.get("host", ""))
        self.processes.append((process.pid, name, "process", node, -1))
        self.problems += [Problem("stacks", f"process {process.pid}: {text}") for text in process.problems]
        end = process.last_ns() - self.offset
        if process.pid == self.run_pid and self.run_end is not None and not _said_end(process):
            end = max(end, self.run_end)  # killed, or os._exit: its last stack held until then
        self.end = max(self.end, end)
        frames, imported = np.full(max(process.frames, default=0) + 1, -1, np.int32), _imported(process)
        for number, entry in process.frames.items():
            if not entry["file"].startswith(_HIDDEN):
                frames[number] = self._frame(entry, "python", IMPORT if number in imported else "function")
            if entry.get("suspends"):
                self.suspending.add((entry["file"], entry["line"]))
        regions = self.regions.get(process.pid)
        first, seen = len(self.locations), set[int]()
        code = {number: entry.get("code") for number, entry in process.frames.items()}
        native = watch_rows.native(process.samples) if process.is_watched else {}
        for thread, lanes in _threads(process):
            spans = self._traced(process, lanes, frames, end) if len(process.calls) else None
            samples = process.samples[np.isin(process.samples["lane"], lanes)]
            clock = None
            if spans is None:
                self.gaps.append(_gaps(samples))
                if process.is_watched:
                    samples, clock = watch_rows.placed(process.samples, lanes[0])
                spans = sampled(samples, process.stacks, code, frames, self.offset, end)
                self.samples += int((samples["stack"] != NO_STACK).sum())
            if regions is not None:
                spans = self._with_regions(spans, regions, thread, end)
            if clock is None:
                clock = self._clock(spans, samples)
            for lane in lanes:
                clock = clock.plus(native.pop(lane, watch_rows.NOTHING))
            if self._location(process, row, lanes[0], spans, clock) and regions is not None:
                own = [lane for lane, entry in regions.lanes.items() if entry.get("thread") == thread]
                self.signals += regions.signals(own, len(self.locations) - 1, self.offset)
                seen.update(own)
        if regions is not None:  # tasks of asyncio, and threads of which no stack was seen
            others = [lane for lane in np.unique(regions.counts["lane"]).tolist() if lane not in seen]
            self.signals += regions.signals(others, -1, self.offset)
        for clock in native.values():
            self._native(process, row, clock)
        self._memory(process, first)

    def _location(
        self, process: ProfiledProcess, row: int, lane: int, spans: Spans, clock: watch_rows.CpuTime, name: str = ""
    ) -> bool:
        """Add a thread; whether it has spans."""
        if not len(spans):
            return False
        at = len(self.locations)
        name = name or process.lanes.get(lane, {}).get("name", "thread")
        self.locations.append((row << 32 | lane, name, "cpu", row, 2 * len(spans)))
        self.spans[at] = spans
        self.signals += _cpu_signals(clock, self.offset, at, process.header.get("host", ""))
        return True

    def _native(self, process: ProfiledProcess, row: int, clock: watch_rows.CpuTime) -> None:
        """A location of its own for CPU time of native threads that no Python thread waited for."""
        frame = self._frame({"name": NATIVE_THREADS}, "native", "function")
        times, rises = clock.times - self.offset, np.diff(clock.spent) > 0
        start, stop = times[:-1][rises], times[1:][rises]
        joins = np.append(False, start[1:] == stop[:-1])
        start, stop = start[~joins], stop[np.append(~joins[1:], True)] if len(stop) else stop
        frames = np.full(len(start), frame, np.int32)
        spans = nest(start, stop, frames, np.zeros(len(start), np.bool_))
        self._location(process, row, NATIVE_LANE, spans, clock, NATIVE_THREADS)

    def _clock(self, spans: Spans, samples: Any) -> watch_rows.CpuTime:
        """The CPU time of the lane that was looked at most while there were spans."""
        if not len(spans):
            return watch_rows.NOTHING
        inside = (samples["time"] >= spans.start[0] + self.offset) & (samples["time"] <= spans.end.max() + self.offset)
        seen, counts = np.unique(samples["lane"][inside], return_counts=True)
        mine = samples[samples["lane"] == seen[counts.argmax()]] if len(seen) else samples[:0]
        known = mine[mine["value"] >= 0]
        return watch_rows.CpuTime(known["time"], known["value"])

    def _memory(self, process: ProfiledProcess, location: int) -> None:
        rows = process.samples[process.samples["lane"] == MEMORY_LANE]
        if not len(rows) or location >= len(self.locations):
            return
        grown = np.concatenate([[0], np.cumsum(np.maximum(np.diff(rows["value"]), 0))])
        about: dict[str, Any] = {"host": process.header.get("host", ""), "location": location}
        times = rows["time"] - self.offset
        self.signals.append(Signal(RESIDENT, "gauge", "B", times, rows["value"].copy(), **about))
        self.signals.append(Signal(GROWN, "counter", "B", times, grown.astype(np.int64), **about))

    def _traced(self, process: ProfiledProcess, lanes: list[int], frames: Any, end: int) -> Spans:
        events = process.calls[np.isin(process.calls["lane"], lanes)]
        return called(events["time"] - self.offset, events["frame"], frames, end)

    def _with_regions(self, spans: Spans, regions: region_files.ProcessRegions, thread: int, end: int) -> Spans:
        """Regions among the functions that marked them; a sampled call that reaches over a region's edge is cut."""
        lanes = [lane for lane, entry in regions.lanes.items() if entry.get("thread") == thread]
        rows = regions.rows[np.isin(regions.rows["lane"], lanes)]
        if not len(rows):
            return spans
        mask = REGION_RESUMED - 1
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
            np.concatenate([spans.resumed, (rows["frame"] & REGION_RESUMED) != 0])[order],
        )

    def _frame(self, entry: dict[str, Any], paradigm: str, role: str) -> int:
        row = (entry["name"], paradigm, role, entry.get("file", ""), entry.get("line", 0))
        if row not in self.known:
            self.known[row] = len(self.frames)
            self.frames.append(row)
        return self.known[row]

    def recording(self) -> Recording:
        base = self.base
        calls, held = _counted(self.folder, self.suspending), allocations.held(self.folder)
        extra = {"calls": calls, "allocations": held, "samples": self.samples}
        return replace(
            base,
            metadata={**base.metadata, **{key: value for key, value in extra.items() if value}},
            clock=replace(base.clock, length_ticks=max(base.clock.length_ticks, self.end)),
            frames=Frames.of(self.frames),
            nodes=Nodes.of(self.nodes),
            processes=Processes.of(self.processes),
            locations=Locations.of(self.locations),
            spans=SpanTable(self.spans),
            signals=(*self._metered(), *self.signals),
            noticed=(*base.noticed, *self.problems),
        )

    def _metered(self) -> list[Signal]:
        """The signals of devices; the clock error of counters is the usual time between two samples of a stack."""
        gaps = np.concatenate(self.gaps) if self.gaps else np.empty(0, np.int64)
        if not len(gaps):
            return list(self.base.signals)
        error_s = float(np.quantile(gaps, _USUAL)) / 1e9
        return [
            replace(one, clock_error_s=error_s) if one.unit == "J" and one.kind == "counter" else one
            for one in self.base.signals
        ]


def _gaps(samples: Any) -> npt.NDArray[np.int64]:
    """How long each change of a thread's stack went unseen at most, in nanoseconds."""
    stacks = samples["stack"] & ~np.uint32(STACK_RUNS | STACK_WAITS)
    gaps: npt.NDArray[np.int64] = np.diff(samples["time"])[stacks[1:] != stacks[:-1]]
    return gaps


def _imported(process: ProfiledProcess) -> set[int]:
    """The frames that are modules' own code, run by an import."""
    modules = {number for number, entry in process.frames.items() if entry["name"] == "<module>"}
    importers = {number for number, entry in process.frames.items() if entry["file"].startswith(_IMPORTERS)}
    above = {stack: frame for stack, (_, frame) in process.stacks.items()}
    imported = {frame for parent, frame in process.stacks.values() if above.get(parent) in importers}
    for lane in np.unique(process.calls["lane"]):
        events = process.calls["frame"][process.calls["lane"] == lane]
        by_importer = np.isin(events[:-1], list(importers))  # a call, and the next thing that happened was another
        imported |= set(events[1:][by_importer].tolist())
    return imported & modules


def _said_end(process: ProfiledProcess) -> bool:
    """Whether its last tick notes that every thread is gone, as at a proper end."""
    threads = process.samples[process.samples["lane"] < DELAY_LANE]
    return bool(len(threads)) and bool(threads["stack"][-1] == NO_STACK) and process.header.get("mode") != "trace"


def _threads(process: ProfiledProcess) -> Iterator[tuple[int, list[int]]]:
    """(thread, its lanes): the tracer and the ticker number threads apart; an ident that comes again is another."""
    traced = {int(lane) for lane in np.unique(process.calls["lane"])}
    for lane, entry in process.lanes.items():
        if traced and lane not in traced:
            continue
        same = [n for n, it in process.lanes.items() if n not in traced and it["thread"] == entry["thread"]]
        yield entry["thread"], [lane, *same] if traced else [lane]


def _cpu_signals(clock: watch_rows.CpuTime, offset: int, location: int, host: str) -> list[Signal]:
    """The counter, and the load: 0 to 1, and more where native threads computed for it too."""
    times = clock.times - offset
    if len(times) < 2:  # a thread too short to say: it counts as busy
        times, load = np.zeros(1, np.int64), np.ones(1)
        return [Signal(CPU_LOAD, "gauge", "#", times, load, host=host, location=location)]
    spent, lasted = np.diff(clock.spent), np.diff(times)
    load = np.divide(spent, lasted, out=np.zeros(len(spent)), where=lasted > 0)
    return [
        Signal(CPU_TIME, "counter", "s", times, clock.spent.copy(), Fraction(1, 10**9), host, location=location),
        Signal(CPU_LOAD, "gauge", "#", times[:-1], np.maximum(load, 0.0), host=host, location=location),
    ]


def statistics(folder: Path) -> Any:
    """What cProfile counted in all processes, as one ``pstats.Stats``; None where it did not run."""
    import pstats

    whole = None
    for path in sorted(folder.glob("*.prof")):
        with suppress(EOFError, ValueError, TypeError, OSError):  # cut by a kill
            counted = pstats.Stats(str(path))
            whole = counted if whole is None else whole.add(counted)
    return whole


def _counted(folder: Path, suspending: set[tuple[str, int]]) -> list[list[Any]]:
    """[file, line, name, calls] of every Python function that cProfile counted; names are not qualified.

    Of generators and coroutines cProfile counts every time they go on, which is no call: theirs is unknown.
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
