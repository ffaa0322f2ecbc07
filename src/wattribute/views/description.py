"""What a recording holds, as plain values: the numbers behind ``wattribute info``."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import asdict
from typing import Any

import numpy as np

from .. import _core
from ..engines.middle import Check, Topology, examine, sensor_lines
from ..errors import names_keywords
from ..model import Link, Recording, Signal
from ..reading import as_recording
from ..sensors import known_lines
from . import numbers
from .names import clean


@names_keywords
def describe(
    source: Recording | str | os.PathLike[str], threads: int | None = None, progress: Any = None
) -> dict[str, Any]:
    """What ran where, what was metered, and what is wrong, as plain values.

    ``source`` is a Recording or a path. What was not decoded yet is decoded, to count its events, by ``threads``;
    ``progress`` is called with (done, whole).
    """
    recording = as_recording(source)
    by_kind = _events(recording, threads, progress)
    metadata = recording.metadata
    defined = metadata.get("frames", len(recording.frames))  # without those a reader added, such as copies
    frames = [_plain(recording.frames.row(row)) for row in range(defined)]
    return {
        "name": metadata.get("name", ""),
        "source": metadata.get("source", ""),
        "format": metadata.get("format", ""),
        "core": _core.in_use(),
        "seconds": recording.clock.length_ticks / recording.clock.ticks_per_s,
        "clock": asdict(recording.clock),
        "events": sum(by_kind.values()),
        "events_by_kind": by_kind,
        "frames": defined,
        "frames_by_paradigm": dict(Counter(frame["paradigm"] for frame in frames)),
        "frame_list": frames,
        "nodes": [_plain(recording.nodes.row(row)) for row in range(len(recording.nodes))],
        "hosts": list(recording.hosts()),
        "processes": _processes(recording),
        "locations": [_location(recording, row) for row in range(len(recording.locations))],
        "devices": [asdict(device) for device in recording.devices],
        "signals": _signals(recording),
        "topology": [_link(recording, link) for link in Topology(recording).all_links()],
        "checks": [_check(recording, check) for check in examine(recording)],
        "missing": [
            {
                "location": int(recording.locations.id[one.location]),
                "process": _owner(recording, one.location),
                "events": one.events,
                "reason": one.reason,
            }
            for one in recording.missing
        ],
        "problems": [asdict(problem) for problem in recording.problems],
        **{
            key: metadata[key]
            for key in ("otf2", "plugins", "scorep.cfg", "manifest", "communicators")
            if key in metadata
        },
    }


def _link(recording: Recording, link: Link) -> dict[str, Any]:
    """Who uses a device, and why we think so; locations by the ids of the file."""
    kinds = sorted({recording.locations.kind[row] for row in link.locations})
    ids = [int(recording.locations.id[row]) for row in link.locations]
    return {"host": link.host, "device": link.device, "kinds": kinds, "locations": ids, "reason": link.reason}


def _check(recording: Recording, check: Check) -> dict[str, Any]:
    names = [recording.signals[row].name for row in check.signals]
    return {"kind": check.kind, "message": check.message, "signals": names, "ratio": check.ratio, "warns": check.warns}


def _events(recording: Recording, threads: int | None, progress: Any) -> dict[str, int]:
    """Events by kind as the source counts them; a recording without such counts has spans and readings."""
    count = getattr(recording.spans, "count_events", None)
    if count is not None:
        return dict(count(threads, progress))
    if recording.metadata.get("events"):
        return dict(recording.metadata["events"])
    rows = recording.spans.locations()
    spans = sum(len(recording.spans.spans(row)) for row in rows)
    return {"Span": spans, "Reading": sum(map(len, recording.signals))}


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in row.items()}


def _owner(recording: Recording, location: int) -> str:
    process = recording.owner(location)
    return recording.processes.name[process] if process >= 0 else ""


def _processes(recording: Recording) -> list[dict[str, Any]]:
    processes, locations = recording.processes, recording.locations
    held: dict[int, Counter[str]] = {}
    for kind, process in zip(locations.kind, locations.process, strict=True):
        held.setdefault(int(process), Counter())[kind] += 1
    return [
        {
            "id": int(processes.id[row]),
            "name": processes.name[row],
            "kind": processes.kind[row],
            "host": recording.host(row),
            "creator": processes.name[processes.creator[row]] if processes.creator[row] >= 0 else None,
            "locations": dict(held.get(row, {})),
        }
        for row in range(len(processes))
    ]


def _location(recording: Recording, row: int) -> dict[str, Any]:
    locations = recording.locations
    return {
        "id": int(locations.id[row]),
        "name": locations.name[row],
        "kind": locations.kind[row],
        "process": _owner(recording, row),
        "host": recording.location_host(row),
        "events": int(locations.events[row]),
        "properties": recording.metadata.get("location_properties", {}).get(str(locations.id[row]), {}),
    }


def _signals(recording: Recording) -> list[dict[str, Any]]:
    """Every signal; power and energy with the line of the sensor table that speaks for them."""
    lines = sensor_lines(recording, known_lines())
    labels = {row: "" if line is None else line.label for row, line in lines.items()}
    return [_signal(recording, one) | {"sensor": labels.get(row, "")} for row, one in enumerate(recording.signals)]


def _signal(recording: Recording, signal: Signal) -> dict[str, Any]:
    interval_ns = None
    if len(signal) > 1:
        interval_ns = int(recording.clock.ns(int(np.median(np.diff(signal.times)))))
    return {
        "name": signal.name,
        "kind": signal.kind,
        "unit": signal.unit,
        "device": signal.device,
        "host": signal.host,
        "readings": len(signal),
        "interval_ns": interval_ns,
        "constant": len(signal) > 1 and bool((signal.values == signal.values[0]).all()),
        "location": int(recording.locations.id[signal.location]) if signal.location >= 0 else None,
        "declared": dict(signal.declared),
    }


def missing_events(recording: Recording, why: bool = True) -> str:
    """How much was declared and could not be read (and why), in a sentence; empty when all is there."""
    if not recording.missing:
        return ""
    lost = sum(each.events for each in recording.missing)
    declared = max(lost, int(np.sum(recording.locations.events)))
    files = len(recording.missing)
    text = f"{numbers.count(lost)} of {numbers.count(declared)} events are missing: {numbers.count(files)} "
    text += f"{'file' if files == 1 else 'files'} could not be read"
    return f"{text} ({clean(recording.missing[0].reason)})" if why else text
