"""Definitions → the tables of a Recording, and the look-up tables the decoder needs.

Ids of the file become rows; a reference to an id that is not defined refers to nothing (−1), and rings in the
system tree or among calling contexts are cut, so that every walk upwards ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._core.otf2 import LookUpTables
from ...model import Clock, Frames, Locations, Nodes, Problem, Processes
from .definitions import Definitions, Kind, columns, items

_LARGEST_ID = 1 << 24  # a look-up table of 64 MB; ids above it are reported and stay undefined

_PARADIGMS = """
unknown user compiler openmp mpi cuda measurement_system pthread hmpp ompss hardware gaspi upc shmem winthread
qtthread acethread tbbthread openacc opencl mtapi sampling none hip kokkos
"""
_ROLES = """
unknown function wrapper loop code parallel sections section workshare single single_sblock master critical
critical_sblock atomic barrier implicit_barrier flush ordered ordered_sblock task task_create task_wait
coll_one2all coll_all2one coll_all2all coll_other file_io point2point rma data_transfer artificial thread_create
thread_wait task_untied allocate deallocate reallocate file_io_metadata cancel kernel
"""
_DOMAINS = "machine shared_memory numa socket cache core pu accelerator_device networking_device"
PARADIGMS, ROLES, DOMAINS = _PARADIGMS.split(), _ROLES.split(), _DOMAINS.split()
LOCATION_KINDS = {1: "cpu", 2: "gpu", 3: "metric"}
_ACCELERATOR_CLASS = 3
_COPIES = ("copy (put)", "copy (get)", "copy (atomic)")
_OFF, _FLUSH = "measurement off", "trace buffer flush"


@dataclass(frozen=True)
class DefinitionTables:
    """The tables of a Recording, the rows of the file's ids, and what was odd."""

    clock: Clock
    frames: Frames
    nodes: Nodes
    processes: Processes
    locations: Locations
    node_row: dict[int, int]
    process_row: dict[int, int]
    location_row: dict[int, int]
    stream_tables: LookUpTables  # for accelerator streams, whose RMA operations are copies
    host_tables: LookUpTables
    problems: tuple[Problem, ...]
    recorder_hosts: dict[frozenset[int], Counter[str]] = field(default_factory=dict)  # see metrics.recorders_on


def build(definitions: Definitions) -> DefinitionTables:
    """All tables; frames beyond the file's regions are the pseudo-frames (copies, measurement off, buffer flush)."""
    problems: list[Problem] = []
    node_row = _rows(definitions.of(Kind.NODE))
    process_row = _rows(definitions.of(Kind.PROCESS))
    location_row = _rows(definitions.of(Kind.LOCATION))
    frames, pseudo = _frames(definitions)
    [regions] = columns(definitions.of(Kind.REGION), 0)
    region = _lookup(regions, np.arange(len(regions)), "region", problems)
    context_frame, context_parent = _contexts(definitions, region, problems)
    host = LookUpTables(
        region, context_frame, context_parent, np.ones(len(frames), np.uint8), flush=pseudo[_FLUSH], off=pseudo[_OFF]
    )
    stream = host._replace(put=pseudo[_COPIES[0]], get=pseudo[_COPIES[1]], atomic=pseudo[_COPIES[2]])
    return DefinitionTables(
        _clock(definitions, problems),
        frames,
        _nodes(definitions, node_row, problems),
        _processes(definitions, node_row, process_row),
        _locations(definitions, process_row),
        node_row,
        process_row,
        location_row,
        stream,
        host,
        tuple(problems),
    )


def _rows(records: Sequence[tuple[Any, ...]]) -> dict[int, int]:
    return {record[0]: row for row, record in enumerate(records)}


def _clock(definitions: Definitions, problems: list[Problem]) -> Clock:
    ticks, offset, length, realtime = definitions.clock
    if ticks <= 0:
        problems.append(Problem("definitions", "no clock is defined: ticks are taken for nanoseconds"))
        ticks = 1_000_000_000
    return Clock(ticks, max(offset, 0), max(length, 0), realtime if realtime > 0 else None)


def _name(names: Sequence[str], number: int) -> str:
    return names[number] if number < len(names) else f"number {number}"


def _names(names: Sequence[str], numbers: npt.NDArray[Any]) -> list[str]:
    each, which = np.unique(numbers, return_inverse=True)
    named: list[str] = np.array([_name(names, number) for number in each.tolist()], object)[which].tolist()
    return named


def _frames(definitions: Definitions) -> tuple[Frames, dict[str, int]]:
    """Frames in the order of the regions, then the pseudo-frames that have no region of their own."""
    strings = definitions.strings
    ids, names, files, lines, canonical, roles, paradigms = columns(definitions.of(Kind.REGION), 0, 1, 4, 5, 7, 8, 9)
    named = [
        strings.get(name) or strings.get(other) or f"region {i}"
        for i, name, other in zip(items(ids), items(names), items(canonical), strict=True)
    ]
    frames: dict[str, list[str]] = {
        "name": named,
        "paradigm": _names(PARADIGMS, paradigms),
        "role": _names(ROLES, roles),
        "file": [strings.get(file, "") for file in items(files)],
    }

    def add(name: str, paradigm: str, role: str) -> int:
        for column, value in zip(frames.values(), (name, paradigm, role, ""), strict=True):
            column.append(value)
        return len(named) - 1

    known = {named[at].lower(): at for at, role in enumerate(frames["role"]) if role == "artificial"}
    pseudo: dict[str, int] = {}
    accelerators = [
        _name(PARADIGMS, number) for number, _, kind in definitions.of(Kind.PARADIGM) if kind == _ACCELERATOR_CLASS
    ]
    paradigm = accelerators[0] if accelerators else "unknown"
    for name in _COPIES:
        pseudo[name] = add(name, paradigm, "copy")
    for name in (_OFF, _FLUSH):
        pseudo[name] = known[name] if name in known else add(name, "measurement_system", "artificial")
    line = np.zeros(len(named), np.int64)
    line[: len(lines)] = lines
    fields: dict[str, Any] = {name: tuple(frames.pop(name)) for name in list(frames)}
    return Frames(**fields, line=line), pseudo


def _lookup(ids: npt.NDArray[Any], rows: npt.NDArray[Any], what: str, problems: list[Problem]) -> npt.NDArray[np.int32]:
    """id → row as an array, −1 where nothing is defined; of an id that comes again the last counts."""
    too_large = list(dict.fromkeys(ids[ids >= _LARGEST_ID].tolist()))
    if too_large:
        problems.append(
            Problem("definitions", f"{len(too_large)} {what} ids are too large (the first is {too_large[0]})")
        )
    usable = (ids >= 0) & (ids < _LARGEST_ID)
    at = ids[usable].astype(np.int64)
    table = np.full(int(at.max(initial=-1)) + 1, -1, np.int32)
    table[at] = rows[usable]
    return table


def _contexts(
    definitions: Definitions, region: npt.NDArray[np.int32], problems: list[Problem]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    contexts = definitions.of(Kind.CONTEXT)
    ids, regions = columns(contexts, 0, 1)
    known = (regions >= 0) & (regions < len(region))
    frames = np.full(len(regions), -1, np.int32)
    frames[known] = region[regions[known].astype(np.int64)]
    frame = _lookup(ids, frames, "calling context", problems)
    parents = {i: parent for i, _, _, parent in contexts}
    _cut_rings(parents, "calling contexts", problems)
    parent = np.full(len(frame), -1, np.int32)
    for i, above in parents.items():
        if 0 <= i < len(parent):
            parent[i] = above if 0 <= above < len(parent) else -1
    return frame, parent


def _cut_rings(parents: dict[int, int], what: str, problems: list[Problem]) -> None:
    """Make walking upwards end: a member of a ring loses its parent."""
    safe: set[int] = set()
    for start in list(parents):
        walked: dict[int, None] = {}
        at = start
        while at in parents and at not in safe and at not in walked:
            walked[at] = None
            at = parents[at]
        if at in walked:
            problems.append(Problem("definitions", f"{what}: {at} is above itself; it is taken as a root"))
            parents[at] = -1
        safe.update(walked)


def _nodes(definitions: Definitions, node_row: dict[int, int], problems: list[Problem]) -> Nodes:
    properties = definitions.properties(Kind.NODE_PROPERTY)
    domains: dict[int, list[str]] = {}
    for node, domain in definitions.of(Kind.DOMAIN):
        domains.setdefault(node, []).append(_name(DOMAINS, domain))
    parents = {i: parent for i, _, _, parent in definitions.of(Kind.NODE)}
    _cut_rings(parents, "system tree", problems)
    rows = []
    for i, name, kind, _ in definitions.of(Kind.NODE):
        own = dict(properties.get(i, {}))
        if i in domains:
            own["domain"] = ",".join(domains[i])
        rows.append((i, definitions.text(name), definitions.text(kind), node_row.get(parents[i], -1), own))
    return Nodes.of(rows)


def _processes(definitions: Definitions, node_row: dict[int, int], process_row: dict[int, int]) -> Processes:
    ids, names, kinds, nodes, creators = columns(definitions.of(Kind.PROCESS), 0, 1, 2, 3, 4)
    return Processes(
        ids.astype(np.uint64),
        tuple(map(definitions.text, items(names))),
        tuple("accelerator" if kind == 2 else "process" for kind in items(kinds)),
        _rows_of(nodes, node_row),
        _rows_of(creators, process_row),
    )


def _locations(definitions: Definitions, process_row: dict[int, int]) -> Locations:
    ids, names, kinds, events, groups = columns(definitions.of(Kind.LOCATION), 0, 1, 2, 3, 4)
    return Locations(
        ids.astype(np.uint64),
        tuple(map(definitions.text, items(names))),
        tuple(LOCATION_KINDS.get(kind, "cpu") for kind in items(kinds)),
        _rows_of(groups, process_row),
        np.clip(events, 0, 2**63 - 1).astype(np.int64),
    )


def _rows_of(ids: npt.NDArray[Any], row: dict[int, int]) -> npt.NDArray[np.int64]:
    return np.array([row.get(i, -1) for i in items(ids)], np.int64)
