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
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..._core import otf2 as core
from ...errors import NotFoundError
from ...model import Missing, Problem, Recording, Signal
from ...model.select import pattern
from ...plugins import Selection
from . import anchor as anchors
from . import definitions, metrics, scorep, tables
from .definitions import Kind
from .source import OTF2Spans

__all__ = ["detects", "read"]
_UNSIGNED = 2  # the type of a parameter


def detects(path: Path) -> bool:
    """A folder with an anchor in it, an anchor under any name, or a part that lies beside its anchor."""
    if anchors.beside(path) is not None:
        return True
    return any(path.glob("*.otf2")) if path.is_dir() else anchors.is_anchor(path)


def _are_callsites(defined: definitions.Definitions) -> bool:
    """Whether Score-P numbered the callsites of kernels, and no other unsigned parameter can be taken for them."""
    unsigned = [defined.text(name) for _, name, kind in defined.of(Kind.PARAMETER) if kind == _UNSIGNED]
    return unsigned == ["callsite id"]


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
    rows = set(range(len(recording.locations)))
    label = partial(_label, recording)
    source = OTF2Spans(anchor, model, (), label)
    readers_of_metrics = _metric_locations(recording, model, known, selection)
    missing = _missing(source, sorted(rows))
    gone = {one.location for one in missing}
    signals = _signals(Otf2Readings(recording, source, known), readers_of_metrics - gone, selection)
    source.chosen = tuple(
        row for row in sorted(rows - gone) if model.locations.kind[row] != "metric" or source.has_spans(row)
    )
    source.callsites = _are_callsites(defined)
    source.skipped = frozenset(rows - readers_of_metrics) if selection.metric is None else frozenset()
    return replace(
        recording,
        spans=source,
        signals=signals,
        devices=metrics.devices(signals, known),
        topology=tuple(metrics.links(signals, known, recording, model)),
        missing=tuple(missing),
        noticed=(
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


def _metric_locations(
    recording: Recording, model: tables.DefinitionTables, known: metrics.Otf2Metrics, selection: Selection
) -> set[int]:
    """The rows of the locations that may hold wanted metrics."""
    rows, every = set(range(len(recording.locations))), selection.metric is None
    if known.recorders is None:
        return rows
    declared = {model.location_row[i] for i in known.recorders if i in model.location_row}
    return {row for row in rows if row in declared or (every and recording.locations.kind[row] == "metric")}


def _missing(source: OTF2Spans, rows: Sequence[int]) -> list[Missing]:
    """The locations whose event file cannot be opened, or is empty though events are declared."""
    missing = []
    suspects = np.array(rows, np.int64)[~core.find_many(source.many(rows))]
    for row in suspects.tolist():
        files = source.files(row)
        reason = _unreadable(files.evt)
        if reason and files.declared:
            missing.append(Missing(row, files.declared, f"{files.evt}: {reason}"))
    return missing


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


@dataclass(frozen=True)
class Otf2Readings:
    """The readings of an archive, by location; they can be read again, and elsewhere."""

    recording: Recording  # without signals
    source: OTF2Spans
    known: metrics.Otf2Metrics

    def signals(self, locations: Sequence[int]) -> list[list[Signal]]:
        by_location: dict[int, list[Signal]] = {}
        for rows, read in self.source.read(locations, spans=False, metric=self.known.wanted):
            by_location |= zip(
                rows, metrics.signals_of(self.known, self.recording, self.source.model, rows, read), strict=True
            )
        return [by_location[row] for row in locations]

    def fresh(self) -> Otf2Readings:
        """The same, of which nothing was decoded yet."""
        return replace(self, source=self.source.fresh())


def _signals(readings: Otf2Readings, rows: set[int], selection: Selection) -> tuple[Signal, ...]:
    if selection.survey is not None and selection.metric is None:
        surveyed: tuple[Signal, ...] = selection.survey(readings, sorted(rows))
        return surveyed
    by_location = readings.source.each_batch(sorted(rows), readings.signals, selection.threads, selection.progress)
    signals = [signal for row in by_location for signal in by_location[row]]
    if selection.metric is not None:
        regex = pattern(selection.metric)
        signals = [signal for signal in signals if regex.search(signal.name)]
    return tuple(signals)


def _wrong_declarations(known: metrics.Otf2Metrics) -> list[Problem]:
    """Report energy counters declared as plain numbers or in another scale; one problem each, with the first name."""
    plain = [m for m in known.members if m.sensor.known and m.sensor.unit != "#" and m.declared["unit"] in ("", "#")]
    problems = []
    if plain:
        mode = plain[0].declared["mode"]
        text = f"{_first(plain)}: declared without a unit ({mode}); kind and unit were taken from the name"
        problems.append(Problem("declared", text))
    disputed = [m for m in known.members if m.disputed]
    if disputed:
        text = f"{_first(disputed)}: declared in another scale than the name stands for, which was believed"
        problems.append(Problem("declared", f"{text}; --metric-kind overrides it"))
    return problems


def _first(members: Sequence[metrics.Member]) -> str:
    return f"{members[0].name!r}" + (f" and {len(members) - 1} more" if len(members) > 1 else "")


def _metadata(anchor: anchors.Anchor, defined: definitions.Definitions, source: OTF2Spans) -> dict[str, Any]:
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
