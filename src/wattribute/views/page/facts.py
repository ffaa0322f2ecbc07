"""Facts that the page needs before it draws, besides its frames: lanes, devices, signals, totals.

Made once, when the tiles are built, and kept with them; plain values that become JSON. Names are other people's text:
they are cleaned of control characters here and only ever set as text by the page.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from ...engines.middle import HOW_TO_ADD, examine
from ...model import Recording, Signal
from .. import kinds, names, numbers
from ..description import missing_events
from .energy import PageEnergy, addable

SPARK = 120  # points of a signal's small picture
MOST_SIGNALS = 400
KEY_SEPARATOR = "\x1f"


def facts(recording: Recording, metered: PageEnergy, source: str) -> dict[str, Any]:
    """Everything about a recording but its spans and curves."""
    devices = _devices(metered)
    per_s = recording.clock.ticks_per_s
    steepest = [float(np.max(np.diff(c.values) / np.diff(c.times))) for c in metered.drawn if len(c.times) > 1]
    return {
        "title": names.clean(str(recording.metadata.get("name") or Path(source).name or "recording")),
        "source": source,
        "clock": {"ticks_per_s": per_s, "epoch_ns": recording.clock.epoch_ns},
        "kinds": {name: {"label": label, "colour": colour} for name, (label, colour) in kinds.KINDS.items()},
        "processes": {str(i): names.clean(name) for i, name in enumerate(recording.process_labels)},
        "lanes": (lanes := _lanes(recording, metered)),
        "hosts": list(dict.fromkeys(lane["host"] for lane in lanes)),
        "devices": devices,
        "apart": metered.apart(),  # devices whose idle time has a row of its own
        "most_w": max(steepest, default=0.0) * per_s,
        "summary": _summary(recording, devices),
        "signals": _signals(recording, metered),
        "signals_more": max(0, len(recording.signals) - MOST_SIGNALS),
        "missing": missing_events(recording),
        "problems": list(dict.fromkeys(names.clean(text) for text in _noticed(recording))),
    }


def _noticed(recording: Recording) -> list[str]:
    """What reading brought to light, and what looks wrong with the sensors."""
    return [problem.message for problem in recording.problems] + [check.message for check in examine(recording)]


def _lanes(recording: Recording, metered: PageEnergy) -> list[dict[str, Any]]:
    """One entry per location that may hold spans, those of a process (and of the streams it created) together."""
    out = []
    for location in recording.spans.locations():
        owner = recording.owner(location)
        lane = {
            "location": location,
            "name": names.clean(recording.locations.name[location]),
            "kind": recording.locations.kind[location],
            "process": owner,
            "owner": names.clean(recording.processes.name[owner]) if owner >= 0 else "",  # as --process knows it
            "host": names.clean(recording.location_host(location)) if owner >= 0 else "",
            "devices": metered.counted(location),
            "alone": metered.alone(location),
        }
        out.append(lane)
    hosts = {host: i for i, host in enumerate(dict.fromkeys(lane["host"] for lane in out))}
    return sorted(out, key=lambda lane: (hosts[lane["host"]], lane["process"], lane["kind"] != "cpu", lane["location"]))


def _devices(metered: PageEnergy) -> list[dict[str, Any]]:
    many = len({book["host"] for book in metered.books}) > 1
    views = len({book["of"] for book in metered.books if book["device"] == metered.books[0]["device"]}) > 1
    added = {id(book) for book in addable(metered.books)}
    out = []
    for i, book in enumerate(metered.books):
        label = names.clean(book["device"])
        label = f"{names.clean(book['host'])} · {label}" if many else label
        entry = {
            **book,
            "key": key(book),
            "added": id(book) in added,
            "label": f"{label} · {book['of']}" if views else label,
            "users": metered.users()[i],
        }
        out.append({**entry, "readings": len(metered.burned[i].times) if i < len(metered.burned) else 0})
    return out


def key(row: Any) -> str:
    """The key of a book, in rows and in books alike."""
    return KEY_SEPARATOR.join(str(row[name]) for name in ("host", "device", "of"))


def labels(devices: list[dict[str, Any]]) -> dict[str, str]:
    """What a book is called, by its key; the host's view of a device too, which only the flame graph shows."""
    hosted = {key({**device, "of": "host"}): device["label"] for device in devices}
    return hosted | {device["key"]: device["label"] for device in devices}


def _summary(recording: Recording, devices: list[dict[str, Any]]) -> list[str]:
    """The headline: joules that may be added (disjoint devices of one view), never nested ones."""
    added = addable(devices)
    hosts = len(recording.hosts())
    parts = [f"{hosts} hosts"] if hosts > 1 else []
    processes = sum(kind == "process" for kind in recording.processes.kind)
    parts += [f"{numbers.count(processes)} processes"] if processes > 1 else []
    if not added:
        return [*parts, f"no energy metered; for joules {HOW_TO_ADD}"]
    total = {name: math.fsum(book[name] for book in added) for name in ("measured_j", "attributed_j", "idle_j")}
    place = "kernels" if all(book["of"] == "kernels" for book in added) else "spans"
    sure = {bool(book["estimated"]) for book in added}
    word = "measured and estimated" if len(sure) > 1 else "estimated" if True in sure else "measured"
    whole = numbers.at_least(total["measured_j"], *numbers.measured_range(added))
    parts.append(f"{whole} {word}")
    return [*parts, f"{numbers.si(total['attributed_j'], 'J')} in {place}", f"{numbers.si(total['idle_j'], 'J')} idle"]


def _signals(recording: Recording, metered: PageEnergy) -> list[dict[str, Any]]:
    """Those that speak for a device first, then in the order of the recording."""
    known = [{"number": i, **_signal(recording, signal, metered)} for i, signal in enumerate(recording.signals)]
    return sorted(known, key=lambda signal: not signal["used"])[:MOST_SIGNALS]


def _signal(recording: Recording, signal: Signal, metered: PageEnergy) -> dict[str, Any]:
    raw = signal.values
    if signal.kind == "counter" and len(raw):
        raw = raw - raw[0]  # while they are integers: a counter may be too large for a float
    values = np.asarray(raw, np.float64) * float(signal.scale)
    seconds = np.asarray(signal.times, np.float64) / recording.clock.ticks_per_s
    finite = values[np.isfinite(values)]
    gaps = np.diff(seconds)
    return {
        "name": names.clean(signal.name),
        "device": names.clean(f"{signal.host} · {signal.device}" if signal.device else signal.host or "–"),
        "kind": signal.kind,
        "unit": signal.unit,
        "readings": len(values),
        "period_s": float(np.median(gaps)) if len(gaps) else None,
        "least": float(finite.min()) if len(finite) else None,
        "most": float(finite.max()) if len(finite) else None,
        "latency_s": signal.latency_s,
        "estimated": signal.estimated,
        "stale": signal.stale,
        "used": any(book["signal"] == signal.name and book["host"] == signal.host for book in metered.books),
        "spark": _spark(signal.kind, seconds, values),
    }


def signal_track(signal: Signal, a: int, b: int, width: int, per_s: float) -> Any:
    """A signal from a to b: [mean, least, greatest] per bin, a counter as its rate; NaN where nothing was read."""
    bins = max(1, min(1024, width, b - a))
    edges = np.linspace(a, b, bins + 1)
    raw = signal.values - signal.values[0] if signal.kind == "counter" and len(signal.values) else signal.values
    values, times = np.asarray(raw, np.float64) * float(signal.scale), np.asarray(signal.times, np.float64)
    if signal.kind == "counter":
        if len(times) < 2:
            return np.full((bins, 3), np.nan, np.float32)
        values, times = np.diff(values) / np.diff(times) * per_s, times[1:]
    out = np.full((bins, 3), np.nan, np.float32)
    if not len(times):
        return out
    # the reading that holds at the start of a bin, and those inside it
    first = np.maximum(
        0,
        np.searchsorted(times, edges[:-1], "left" if signal.kind == "counter" else "right")
        - (signal.kind != "counter"),
    )
    last = np.maximum(first + 1, np.searchsorted(times, edges[1:], "left") + (signal.kind == "counter"))
    last = np.minimum(last, len(times))
    for i in np.flatnonzero((edges[1:] > signal.times[0]) & (edges[:-1] <= signal.times[-1]) & (last > first)):
        part = values[first[i] : last[i]]
        part = part[np.isfinite(part)]
        if len(part):
            out[i] = part.mean(), part.min(), part.max()
    return out


def _spark(kind: str, seconds: Any, values: Any) -> list[float | None]:
    """A small picture of a signal: a counter as its rate (a ramp says nothing), anything else as its mean per bin."""
    if len(seconds) < 2 or seconds[-1] <= seconds[0]:
        return []
    edges = np.linspace(seconds[0], seconds[-1], min(SPARK, len(seconds)) + 1)
    if kind == "counter":
        level = np.interp(edges, seconds, values)
        out = np.diff(level) / np.diff(edges)
    else:
        at = np.clip(np.searchsorted(edges, seconds, "right") - 1, 0, len(edges) - 2)
        filled = np.bincount(at, minlength=len(edges) - 1)
        with np.errstate(invalid="ignore"):
            out = np.bincount(at, np.nan_to_num(values), len(edges) - 1) / filled
    return [float(f"{value:.4g}") if math.isfinite(value) else None for value in out.tolist()]
