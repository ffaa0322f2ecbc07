"""OTF2 archives (Score-P, lo2s, …) → Recording.

::

    anchor → definitions → tables ┐
                     metrics ─────┼→ Recording(spans = source: files decoded when asked for)
    scorep.cfg, MANIFEST.md ──────┘

Signals are read at once, from the locations that may hold metrics; spans stay in the files. Missing and damaged files
never stop the rest: what is there is read, what is not is named.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..._core import otf2 as core
from ...errors import NotFoundError
from ...model import Missing, Problem, Recording, Signal
from ...model.select import frame_mask, pattern, unmatched
from ...plugins import Selection
from . import anchor as anchors
from . import definitions, metrics, scorep, tables
from .definitions import Kind
from .source import Source

__all__ = ["detects", "read"]


def detects(path: Path) -> bool:
    """A folder with an anchor in it, an anchor under any name, or a part that lies beside its anchor."""
    if anchors.beside(path).is_file():
        return True
    return any(path.glob("*.otf2")) if path.is_dir() else anchors.is_anchor(path)


def read(path: Path, selection: Selection) -> Recording:
    """Read an archive; damaged parts become problems, an unreadable whole an error."""
    at = anchors.find(path)
    if at is None:
        raise NotFoundError(f"{path}: no OTF2 anchor (*.otf2) here")
    anchor = anchors.read(at)
    defined = definitions.read(anchor.definitions_path, anchor.definition_chunk, anchor.definitions)
    model = tables.build(defined)
    known = metrics.resolve(defined, selection.metric, selection.metric_kinds)
    recording = Recording(model.clock, model.frames, model.nodes, model.processes, model.locations)
    wanted = _wanted(recording, selection.process)
    keep = frame_mask(model.frames.name, selection.frame, selection.exclude_frame)
    label = partial(_label, recording)
    source = Source(anchor, model, (), keep, label)
    readers_of_metrics = _metric_locations(recording, model, known, wanted, selection)
    missing = _missing(source, sorted(wanted | readers_of_metrics))
    gone = {one.location for one in missing}
    signals = _signals(recording, source, known, readers_of_metrics - gone, selection)
    source.chosen = tuple(
        row for row in sorted(wanted - gone) if model.locations.kind[row] != "metric" or source.has_spans(row)
    )
    source.skipped = frozenset(wanted - readers_of_metrics) if selection.metric is None else frozenset()
    return replace(
        recording,
        spans=source,
        signals=tuple(signals),
        devices=metrics.devices(signals, known),
        missing=tuple(missing),
        noticed=(
            *unmatched("process", model.processes.name, selection.process),
            *unmatched("frame", model.frames.name, selection.frame),
            *defined.problems,
            *model.problems,
            *_missing_problems(missing, label),
            *_wrong_declarations(known),
        ),
        metadata=_metadata(anchor, defined, source),
    )


def _label(recording: Recording, row: int) -> str:
    process = recording.owner(row)
    names = [recording.processes.name[process] if process >= 0 else "", recording.locations.name[row]]
    return f"{', '.join(name for name in names if name)} (location {recording.locations.id[row]})"


def _wanted(recording: Recording, process: str | None) -> set[int]:
    """The rows of the locations of the chosen processes."""
    rows = set(range(len(recording.locations)))
    if process is None:
        return rows
    regex, names = pattern(process), recording.processes.name
    return {row for row in rows if recording.owner(row) >= 0 and regex.search(names[recording.owner(row)])}


def _metric_locations(
    recording: Recording, model: tables.Model, known: metrics.Metrics, wanted: set[int], selection: Selection
) -> set[int]:
    """The rows of the locations that may hold wanted metrics which apply to the chosen processes.

    A node's energy is recorded by its first rank, so leaving that rank out must not leave the energy out.
    """
    rows, every = set(range(len(recording.locations))), selection.metric is None
    if known.recorders is not None:
        told = {model.location_row[i] for i in known.recorders if i in model.location_row}
        rows = {row for row in rows if row in told or (every and recording.locations.kind[row] == "metric")}
    if selection.process is None:
        return rows
    processes = {recording.owner(row) for row in wanted} | {int(recording.locations.process[row]) for row in wanted}
    nodes = set()
    for process in processes:
        node = int(recording.processes.node[process])
        while node >= 0:
            nodes.add(node)
            node = int(recording.nodes.parent[node])
    return {
        row
        for row in rows
        if row in wanted
        or (recording.locations.kind[row] == "metric" and metrics.concerns(known, model, row, processes, nodes))
    }


def _missing(source: Source, rows: Sequence[int]) -> list[Missing]:
    """The locations whose event file cannot be opened, or is empty though events are declared."""
    found = []
    suspects = np.array(rows, np.int64)[~core.find_many(source.many(rows))]
    for row in suspects.tolist():
        files = source.files(row)
        reason = _unreadable(files.evt)
        if reason and files.declared:
            found.append(Missing(row, files.declared, f"{files.evt}: {reason}"))
    return found


def _unreadable(path: str) -> str:
    """Why a file cannot be read, or nothing."""
    try:
        about = os.stat(path)
    except FileNotFoundError:
        return "the file is not there"
    except OSError as error:
        return f"{error.strerror}"
    if not stat.S_ISREG(about.st_mode):
        return "not a regular file"
    if about.st_size == 0:
        return "the file is empty"
    return "" if os.access(path, os.R_OK) else "no permission to read it"


def _missing_problems(missing: Sequence[Missing], label: Callable[[int], str]) -> list[Problem]:
    return [
        Problem("missing", f"{label(one.location)}: {one.reason}; {one.events} events are declared", one.location)
        for one in missing
    ]


def _signals(
    recording: Recording, source: Source, known: metrics.Metrics, rows: set[int], selection: Selection
) -> list[Signal]:
    def some(batch: Sequence[int]) -> list[list[Signal]]:
        found: dict[int, list[Signal]] = {}
        for rows, read in source.read(batch, spans=False, metric=known.wanted):
            found |= zip(rows, metrics.signals_of(known, recording, source.model, rows, read), strict=True)
        return [found[row] for row in batch]

    found = source.each_batch(sorted(rows), some, selection.threads, selection.progress)
    signals = [signal for row in found for signal in found[row]]
    if selection.metric is not None:
        regex = pattern(selection.metric)
        signals = [signal for signal in signals if regex.search(signal.name)]
    return signals


def _wrong_declarations(known: metrics.Metrics) -> list[Problem]:
    """Files that declare an energy counter as a plain number, or in another scale; said once, with the first name."""
    plain = [m for m in known.members if m.sensor.known and m.sensor.unit != "#" and m.declared["unit"] in ("", "#")]
    problems = []
    if plain:
        mode = plain[0].declared["mode"]
        text = f"{_first(plain)}: declared without a unit ({mode}); kind and unit were taken from the name"
        problems.append(Problem("declared", text))
    disputed = [m for m in known.members if m.disputed]
    if disputed:
        text = f"{_first(disputed)}: declared in another scale than the name stands for, which was believed"
        problems.append(Problem("declared", f"{text}; --metric-kind has the last word"))
    return problems


def _first(members: Sequence[metrics.Member]) -> str:
    return f"{members[0].name!r}" + (f" and {len(members) - 1} more" if len(members) > 1 else "")


def _metadata(anchor: anchors.Anchor, defined: definitions.Definitions, source: Source) -> dict[str, Any]:
    folder = anchor.path.parent
    groups = {record[0]: record for record in defined.of(Kind.GROUP)}
    communicators = [
        {"id": i, "name": defined.text(name), "size": len(groups[group][3]) if group in groups else 0, "parent": parent}
        for i, name, group, parent, _ in defined.of(Kind.COMMUNICATOR)
    ]
    return {
        "name": folder.resolve().name,
        "source": str(anchor.path),
        "format": "otf2",
        "otf2": {
            "version": ".".join(map(str, anchor.version)),
            "creator": anchor.creator,
            "machine": anchor.machine,
            "description": anchor.description,
            "trace_id": f"{anchor.trace_id:016x}",
            "event_chunk": anchor.event_chunk,
            "definition_chunk": anchor.definition_chunk,
            "properties": anchor.properties,
        },
        "frames": len(defined.of(Kind.REGION)),
        "events": source.events,
        "communicators": communicators,
        "location_properties": {str(i): own for i, own in defined.properties(Kind.LOCATION_PROPERTY).items()},
        "process_properties": {str(i): own for i, own in defined.properties(Kind.PROCESS_PROPERTY).items()},
        "attributes": [defined.text(name) for _, name, _, _ in defined.of(Kind.ATTRIBUTE)],
        "windows": [defined.text(name) for _, name, _, _ in defined.of(Kind.WINDOW)],
        **scorep.beside(folder),
    }
