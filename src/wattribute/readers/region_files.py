"""The files that :mod:`.regions` wrote → spans of a Recording.

``join(recording, folder)`` adds a process per file, a location per thread (and per lane of asyncio tasks), a frame per
name, and a signal per lane and unit that was counted. Regions that do not nest (a generator's, ended while its consumer
is inside another) are cut in two: the model wants one span inside the other, and no joule counted twice.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..journal.layouts import COUNT, READING, REGION, REGION_COUNT, REGION_READING, REGION_RESUMED
from ..journal.ranks import rank_of
from ..model import Frames, Locations, Nodes, Problem, Processes, Recording, Signal, Spans, SpanTable, counts
from ..model.nesting import nest

_ROW = np.dtype([("start", "<i8"), ("end", "<i8"), ("frame", "<u4"), ("lane", "<u4")])
_COUNT = np.dtype([("time", "<i8"), ("amount", "<f8"), ("unit", "<u4"), ("lane", "<u4")])
_READING = np.dtype([("time", "<i8"), ("value", "<i8"), ("counter", "<u4"), ("lane", "<u4")])
assert _ROW.itemsize == REGION.size == _COUNT.itemsize == COUNT.size == _READING.itemsize == READING.size


@dataclass
class ProcessRegions:
    """What one process wrote."""

    header: dict[str, Any] = field(default_factory=dict)
    frames: dict[int, dict[str, Any]] = field(default_factory=dict)
    lanes: dict[int, dict[str, Any]] = field(default_factory=dict)
    rows: npt.NDArray[Any] = field(default_factory=lambda: np.empty(0, _ROW))
    units: dict[int, str] = field(default_factory=dict)
    counts: npt.NDArray[Any] = field(default_factory=lambda: np.empty(0, _COUNT))
    counters: dict[int, str] = field(default_factory=dict)  # the files that were read at edges
    readings: npt.NDArray[Any] = field(default_factory=lambda: np.empty(0, _READING))
    whole: int = 0  # records that were loaded before the first that is not written yet

    def last_ns(self) -> int:
        return max(
            int(self.rows["start"].max(initial=0)),
            int(self.rows["end"].max(initial=0)),
            int(self.counts["time"].max(initial=0)),
        )

    def counted(self, unit: str) -> float:
        """How many of a unit were counted."""
        numbers = [number for number, name in self.units.items() if name == unit]
        return float(self.counts["amount"][np.isin(self.counts["unit"], numbers)].sum())

    def signals(self, lanes: Sequence[int], location: int, offset: int) -> list[Signal]:
        """What was counted on some lanes, a signal per unit."""
        mine = self.counts[np.isin(self.counts["lane"], lanes)]
        host = self.header.get("host", "")
        signals = []
        for number in np.unique(mine["unit"]).tolist():
            some = mine[mine["unit"] == number]
            name = self.units.get(number, "?")
            times, values = some["time"] - offset, some["amount"].copy()
            signals.append(Signal(name, "delta", counts.UNIT, times, values, host=host, location=location))
        return signals


def join(recording: Recording, folder: Path, but: Container[int] = ()) -> Recording:
    """The recording with the regions found in a folder; its clock must count monotonic nanoseconds.

    Processes ``but`` are left out: their regions stand among their functions (:mod:`.stack_files`).
    """
    processes = [load(path) for path in sorted(folder.glob("*.regions"))]
    processes = [process for process in processes if len(process.rows) or len(process.counts)]
    processes = [process for process in processes if process.header.get("pid") not in but]
    noticed = [
        Problem("regions", f"process {path.stem} could not record its regions: no room in {folder}")
        for path in sorted(folder.glob("*.lost"))
    ]
    if not processes:
        return replace(recording, noticed=(*recording.noticed, *noticed)) if noticed else recording
    end_ns = max(
        *(process.last_ns() for process in processes), recording.clock.offset_ticks + recording.clock.length_ticks
    )
    builder = _Builder(recording, end_ns)
    for process in _by_process(processes):
        builder.add(process)
    return builder.recording(noticed)


def load(path: Path, first: int = 0, many: int = -1) -> ProcessRegions:
    """One process's regions, as far as they were written; a line or record cut by a crash is left out.

    ``first`` and ``many`` choose records: a server's are too many to be read every second.
    """
    process = ProcessRegions()
    for line in path.with_suffix(".names").read_bytes().splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if "frame" in entry:
            process.frames[entry["frame"]] = entry
        elif "unit" in entry:
            process.units[entry["unit"]] = entry["name"]
        elif "lane" in entry:
            process.lanes[entry["lane"]] = entry
        elif "counter" in entry:
            process.counters[entry["counter"]] = entry["path"]
        else:
            process.header = entry
    rows = np.fromfile(path, _ROW, many, offset=first * _ROW.itemsize)
    written = rows["start"] != 0
    process.whole = len(rows) if written.all() else int(np.argmin(written))
    rows = rows[written]
    is_reading = (rows["frame"] & (REGION_RESUMED | REGION_COUNT | REGION_READING)) == REGION_READING
    process.readings, rows = rows[is_reading].view(_READING).copy(), rows[~is_reading]
    process.readings["counter"] &= REGION_READING - 1
    is_count = (rows["frame"] & REGION_COUNT) != 0
    process.rows, process.counts = rows[~is_count], rows[is_count].view(_COUNT).copy()
    process.counts["unit"] &= REGION_COUNT - 1
    return process


Ints = npt.NDArray[np.int64]
Readings = tuple[str, Ints, Ints]  # a counter's file, times (monotonic ns), values


def edge_readings(folder: Path) -> Iterator[Readings]:
    """The readings of counters that programs made at the edges of regions."""
    for process in map(load, sorted(folder.glob("*.regions"))):
        for number, path in process.counters.items():
            rows = process.readings[process.readings["counter"] == number]
            yield path, rows["time"].copy(), rows["value"].copy()


def aligned(times: Ints, values: Ints, edge_times: Ints, edge_values: Ints) -> Ints:
    """The values of a counter that a program opened for itself, counted from where the sampler's began.

    The two differ by a number that lies, for each reading at an edge, between those of the sampler around it.
    """
    gap = np.searchsorted(times, edge_times, "right") - 1
    inside = (gap >= 0) & (gap < len(times) - 1)
    if not inside.any():
        return edge_values[:0]
    gap, at, value = gap[inside], edge_times[inside], edge_values[inside]
    least, most = int((values[gap] - value).max()), int((values[gap + 1] - value).min())
    part = (at - times[gap]) / np.maximum(times[gap + 1] - times[gap], 1)
    likely = round(float(np.median(values[gap] - value + part * (values[gap + 1] - values[gap]))))
    return edge_values + (min(max(likely, least), most) if least <= most else likely)


def with_edges(
    times: Ints, values: Ints, edge_times: Ints, edge_values: Ints, wraps_at: int | None
) -> tuple[Ints, Ints]:
    """A counter's readings with those made at edges, in the order of time.

    Only what lies between the readings of the sampler around it is believed, and what does not go back: two processes
    read within microseconds of one another, and a decrease would count as a wrap.
    """
    if len(times) < 2 or not len(edge_times):
        return times, values
    order = np.argsort(edge_times, kind="stable")
    at, value = edge_times[order], edge_values[order]
    turn = wraps_at or 2**62
    counted = np.concatenate([[0], np.cumsum(np.diff(values) % turn)])
    gap = np.searchsorted(times, at, "right") - 1
    inside = (gap >= 0) & (gap < len(times) - 1)
    inside[inside] &= times[gap[inside]] < at[inside]
    inside[1:] &= np.diff(at) > 0
    at, value, gap = at[inside], value[inside], gap[inside]
    reached = counted[gap] + (value - values[gap]) % turn
    fits = reached <= counted[gap + 1]
    at, value, reached = at[fits], value[fits], reached[fits]
    rises = reached >= np.maximum.accumulate(reached)
    at, value = at[rises], value[rises]
    where = np.searchsorted(times, at)
    return np.insert(times, where, at), np.insert(values, where, value)


def _by_process(processes: Sequence[ProcessRegions]) -> list[ProcessRegions]:
    """One entry per process: a recording inside another leaves a second file of the same threads."""
    kept: dict[tuple[str, int], ProcessRegions] = {}
    for process in processes:
        first = kept.setdefault((process.header.get("host", ""), process.header.get("pid", 0)), process)
        if first is not process:
            _absorb(first, process)
    return list(kept.values())


def _absorb(first: ProcessRegions, other: ProcessRegions) -> None:
    frames, lanes, units = len(first.frames), len(first.lanes), len(first.units)
    threads = {entry["thread"]: lane for lane, entry in first.lanes.items() if entry.get("thread")}
    rows = other.rows.copy()
    counted = other.counts.copy()
    rows["frame"] += frames
    counted["unit"] += units
    for lane, entry in other.lanes.items():
        mine = threads.get(entry.get("thread"), lane + lanes)
        first.lanes.setdefault(mine, entry)
        rows["lane"][other.rows["lane"] == lane] = mine
        counted["lane"][other.counts["lane"] == lane] = mine
    first.frames |= {number + frames: entry for number, entry in other.frames.items()}
    first.units |= {number + units: name for number, name in other.units.items()}
    first.counts = np.concatenate([first.counts, counted])
    both = np.concatenate([first.rows, rows])
    first.rows = both[np.argsort(both["start"], kind="stable")]


class _Builder:
    """Collects tables row by row and spans location by location."""

    def __init__(self, recording: Recording, end_ns: int) -> None:
        self.base, self.end_ns = recording, end_ns
        self.frames = recording.frames.rows()
        self.known = {(row[0], row[3], row[4]): i for i, row in enumerate(self.frames)}
        self.nodes, self.processes = recording.nodes.rows(), recording.processes.rows()
        self.locations = recording.locations.rows()
        self.spans: dict[int, Spans] = {at: recording.spans.spans(at) for at in recording.spans.locations()}
        self.signals: list[Signal] = []
        self.open = 0

    def add(self, process: ProcessRegions) -> None:
        header = process.header
        row = len(self.processes)
        rank = rank_of(header.get("environment", {}))
        name = f"rank {rank.rank}" if rank else f"{Path(header.get('program', '?')).name} [{header.get('pid')}]"
        self.processes.append((header.get("pid", 0), name, "process", node_of(self.nodes, header.get("host", "")), -1))
        frames = {number: self._frame(entry) for number, entry in process.frames.items()}
        unknown = self._frame({"name": "?"}) if len(frames) == 0 else next(iter(frames.values()))
        for lane in np.union1d(process.rows["lane"], process.counts["lane"]):
            rows = process.rows[process.rows["lane"] == lane]
            ends = np.where(rows["end"] == 0, self.end_ns, rows["end"])
            self.open += int(np.count_nonzero(rows["end"] == 0))
            which = np.array([frames.get(int(f) & (REGION_RESUMED - 1), unknown) for f in rows["frame"]], np.int32)
            name = process.lanes.get(int(lane), {}).get("name", "thread")
            location = len(self.locations)
            self.locations.append((row << 32 | int(lane), name, "cpu", row, 2 * len(rows)))
            offset = self.base.clock.offset_ticks
            self.signals += process.signals([lane], location, offset)
            if not len(rows):
                continue
            self.spans[location] = nest(
                rows["start"] - offset, ends - offset, which, (rows["frame"] & REGION_RESUMED) != 0
            )

    def _frame(self, entry: dict[str, Any]) -> int:
        row = (entry["name"], "user", "region", entry.get("file", ""), entry.get("line", 0))
        key = (row[0], row[3], row[4])
        if key not in self.known:
            self.known[key] = len(self.frames)
            self.frames.append(row)
        return self.known[key]

    def recording(self, noticed: Sequence[Problem]) -> Recording:
        base, more = self.base, list(noticed)
        if self.open:
            more.append(Problem("regions", f"{self.open} regions were still open at the end and are closed there"))
        length = max(base.clock.length_ticks, self.end_ns - base.clock.offset_ticks)
        return replace(
            base,
            clock=replace(base.clock, length_ticks=length),
            frames=Frames.of(self.frames),
            nodes=Nodes.of(self.nodes),
            processes=Processes.of(self.processes),
            locations=Locations.of(self.locations),
            spans=SpanTable(self.spans),
            signals=(*base.signals, *self.signals),
            noticed=(*base.noticed, *more),
        )


def node_of(nodes: list[tuple[Any, ...]], host: str) -> int:
    """The row of a host among the rows of nodes; added if it is new."""
    for i, row in enumerate(nodes):
        if row[1] == host:
            return i
    nodes.append((len(nodes), host, "node", -1, {}))
    return len(nodes) - 1
