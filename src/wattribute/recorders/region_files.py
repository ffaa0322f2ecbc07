"""The files that :mod:`.regions` wrote → spans of a Recording.

``join(recording, folder)`` adds a process per file, a location per thread (and per lane of asyncio tasks), a frame per
name. Regions that do not nest (a generator's, ended while its consumer is inside another) are cut in two: the model
wants one span inside the other, and no joule counted twice.
"""

from __future__ import annotations

import json
from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..model import Frames, Locations, Nodes, Problem, Processes, Recording, Spans, SpanTable
from ..model.nesting import nest
from . import ranks
from .regions import RECORD, RESUMED

_ROW = np.dtype([("start", "<i8"), ("end", "<i8"), ("frame", "<u4"), ("lane", "<u4")])
assert _ROW.itemsize == RECORD.size


@dataclass
class ProcessRegions:
    """What one process wrote."""

    header: dict[str, Any] = field(default_factory=dict)
    frames: dict[int, dict[str, Any]] = field(default_factory=dict)
    lanes: dict[int, dict[str, Any]] = field(default_factory=dict)
    rows: npt.NDArray[Any] = field(default_factory=lambda: np.empty(0, _ROW))


def join(recording: Recording, folder: Path, but: Container[int] = ()) -> Recording:
    """The recording with the regions found in a folder; its clock must count monotonic nanoseconds.

    Processes ``but`` are left out: their regions stand among their functions (:mod:`.stack_files`).
    """
    found = [process for path in sorted(folder.glob("*.regions")) if len((process := load(path)).rows)]
    found = [process for process in found if process.header.get("pid") not in but]
    noticed = [
        Problem("regions", f"process {path.stem} could not record its regions: no room in {folder}")
        for path in sorted(folder.glob("*.lost"))
    ]
    if not found:
        return replace(recording, noticed=(*recording.noticed, *noticed)) if noticed else recording
    last = max(int(max(process.rows["start"].max(), process.rows["end"].max())) for process in found)
    end_ns = max(last, recording.clock.offset_ticks + recording.clock.length_ticks)
    builder = _Builder(recording, end_ns)
    for process in _by_process(found):
        builder.add(process)
    return builder.recording(noticed)


def load(path: Path) -> ProcessRegions:
    """One process's regions, as far as they were written; a line or record cut by a crash is left out."""
    process = ProcessRegions()
    for line in path.with_suffix(".names").read_bytes().splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if "frame" in entry:
            process.frames[entry["frame"]] = entry
        elif "lane" in entry:
            process.lanes[entry["lane"]] = entry
        else:
            process.header = entry
    data = path.read_bytes()
    rows = np.frombuffer(data[: len(data) // _ROW.itemsize * _ROW.itemsize], _ROW)
    process.rows = rows[rows["start"] != 0]
    return process


def _by_process(found: Sequence[ProcessRegions]) -> list[ProcessRegions]:
    """One entry per process: a recording inside another leaves a second file of the same threads."""
    kept: dict[tuple[str, int], ProcessRegions] = {}
    for process in found:
        first = kept.setdefault((process.header.get("host", ""), process.header.get("pid", 0)), process)
        if first is not process:
            _absorb(first, process)
    return list(kept.values())


def _absorb(first: ProcessRegions, other: ProcessRegions) -> None:
    frames, lanes = len(first.frames), len(first.lanes)
    threads = {entry["thread"]: lane for lane, entry in first.lanes.items() if entry.get("thread")}
    rows = other.rows.copy()
    rows["frame"] += frames
    for lane, entry in other.lanes.items():
        mine = threads.get(entry.get("thread"), lane + lanes)
        first.lanes.setdefault(mine, entry)
        rows["lane"][other.rows["lane"] == lane] = mine
    first.frames |= {number + frames: entry for number, entry in other.frames.items()}
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
        self.open = 0

    def add(self, process: ProcessRegions) -> None:
        header = process.header
        row = len(self.processes)
        rank = ranks.of(header.get("environment", {}))
        name = f"rank {rank.rank}" if rank else f"{Path(header.get('program', '?')).name} [{header.get('pid')}]"
        self.processes.append((header.get("pid", 0), name, "process", node_of(self.nodes, header.get("host", "")), -1))
        frames = {number: self._frame(entry) for number, entry in process.frames.items()}
        unknown = self._frame({"name": "?"}) if len(frames) == 0 else next(iter(frames.values()))
        for lane in np.unique(process.rows["lane"]):
            rows = process.rows[process.rows["lane"] == lane]
            ends = np.where(rows["end"] == 0, self.end_ns, rows["end"])
            self.open += int(np.count_nonzero(rows["end"] == 0))
            which = np.array([frames.get(int(f) & (RESUMED - 1), unknown) for f in rows["frame"]], np.int32)
            name = process.lanes.get(int(lane), {}).get("name", "thread")
            location = len(self.locations)
            self.locations.append((row << 32 | int(lane), name, "cpu", row, 2 * len(rows)))
            offset = self.base.clock.offset_ticks
            self.spans[location] = nest(rows["start"] - offset, ends - offset, which, (rows["frame"] & RESUMED) != 0)

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
            noticed=(*base.noticed, *more),
        )


def node_of(nodes: list[tuple[Any, ...]], host: str) -> int:
    """The row of a host among the rows of nodes; added if it is new."""
    for i, row in enumerate(nodes):
        if row[1] == host:
            return i
    nodes.append((len(nodes), host, "node", -1, {}))
    return len(nodes) - 1
