"""Selection of the signal and the users of each device, before any arithmetic."""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..alignment.response import lines
from ..alignment.sanity import missing_ticks
from ..alignment.topology import Topology, users
from ..errors import NoDataError, OptionError
from ..model import Device, Link, Problem, Question, Recording, Signal
from ..model.ledger import Entry
from ..model.tables import IDLE_THREAD
from ..sensors import Line, known_lines
from . import time_sources
from .bill import KIND as ADDED_KIND
from .bill import Division
from .ledger import DID_NOT_MOVE, MeteredDevice, account, fault_of

_MAX_LISTED_FAMILIES = 12  # families of metric names in an error message


@dataclass(frozen=True)
class DeviceView:
    """One device seen through one signal, with the users who count.

    The rest of a node has the node's signal and, in ``parts``, the signals of what is metered inside it.
    """

    device: Device
    signal: Signal
    row: int  # of Recording.signals
    of: str
    users: tuple[int, ...] = ()
    reason: str = ""
    entry: Entry = Entry()
    parts: tuple[Signal, ...] = ()
    parts_metered: bool = True  # a rest: while all parts were metered, or while one was not
    line: Line | None = None  # how the sensor measures
    part_lines: tuple[Line | None, ...] = ()
    division: Division = Division()  # floor, and what other processes used


def is_energy(signal: Signal) -> bool:
    return (signal.kind == "gauge" and signal.unit == "W") or (signal.kind != "gauge" and signal.unit == "J")


def in_seconds(recording: Recording, question: Question) -> bool:
    """Whether rows are seconds: the question says so, or no energy was metered and it leaves that open."""
    if question.quantity is not None or question.metric is not None:
        return question.quantity == "time"
    metered = any(signal.device and is_energy(signal) and len(signal) for signal in recording.signals)
    return not metered and bool(recording.spans.locations())


def chosen(
    recording: Recording, question: Question, known: Mapping[int, Line | None]
) -> tuple[list[tuple[int, Device]], list[Problem]]:
    """The rows of the signals to attribute with their devices, and what was left out."""
    devices = {(device.host, device.name): device for device in recording.devices}
    if question.metric is None:
        return _by_device(recording, devices, known)
    rows = [i for i, s in enumerate(recording.signals) if re.search(question.metric, s.name, re.IGNORECASE)]
    if not rows:
        raise _unknown_metric(question.metric, [signal.name for signal in recording.signals])
    candidates = _with_unique_devices(
        recording, [(row, _device(recording, recording.signals[row], devices)) for row in rows]
    )
    filled = [(row, device) for row, device in candidates if len(recording.signals[row])]
    if not filled:
        raise NoDataError(f"the metric {question.metric!r} has no readings in this recording")
    if "signal" not in question.keys:
        _check_single(recording, filled, question.metric)
    return filled, []


def _unknown_metric(pattern: str, names: Sequence[str]) -> OptionError:
    """Suggest the parts of names that look alike; else list the families of names, numbers left out."""
    parts = {part for name in names for part in (name, *re.split(r"[:\s/.]+", name)) if part}
    close = difflib.get_close_matches(pattern, sorted(parts), n=3, cutoff=0.6)
    families = list(dict.fromkeys(re.sub(r"\d+(?=\D*$)", "N", name) for name in names))
    more = ", …" if len(families) > _MAX_LISTED_FAMILIES else ""
    known = f"known: {', '.join(families[:_MAX_LISTED_FAMILIES])}{more}" if families else "the recording has no metrics"
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else known
    return OptionError(f"no metric matches {pattern!r}; {hint}")


def _check_single(recording: Recording, candidates: Sequence[tuple[int, Device]], metric: str) -> None:
    per_device: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row, device in candidates:
        per_device[device.host, device.name].append(recording.signals[row].name)
    for (_, name), names in per_device.items():
        if len(names) > 1:
            listed = ", ".join(names[:4])
            raise OptionError(
                f"metric {metric!r} fits {len(names)} signals of {name} ({listed}); narrow it, or use --by signal"
            )
    units = sorted({_unit(recording.signals[row]) for row, _ in candidates})
    if len(units) > 1:
        raise OptionError(f"metric {metric!r} fits signals in {', '.join(units)}; narrow it, or use --by signal")


def _unit(signal: Signal) -> str:
    return {"W": "J"}.get(signal.unit, f"{signal.unit}·s") if signal.kind == "gauge" else signal.unit


def _device(recording: Recording, signal: Signal, devices: dict[tuple[str, str], Device]) -> Device:
    """The device of a signal; a signal that a location recorded about itself is a separate device."""
    if signal.device:
        return devices.get((signal.host, signal.device)) or Device(signal.device, "other", signal.host)
    name = signal.name
    if signal.location >= 0 and recording.locations.kind[signal.location] != "metric":
        owner = recording.owner(signal.location)
        process = recording.processes.name[owner] if owner >= 0 else ""
        name = f"{process} {recording.locations.name[signal.location]}".strip() or name
    return Device(name, "self" if name != signal.name else "other", signal.host)


def _with_unique_devices(recording: Recording, candidates: Sequence[tuple[int, Device]]) -> list[tuple[int, Device]]:
    """Add the location's id to devices whose name repeats, such as the threads of a pool."""
    places: dict[tuple[str, str], set[int]] = defaultdict(set)
    for row, device in candidates:
        if device.kind == "self":
            places[device.host, device.name].add(recording.signals[row].location)
    apart = []
    for row, device in candidates:
        if len(places[device.host, device.name]) > 1:
            device = replace(device, name=f"{device.name} #{recording.locations.id[recording.signals[row].location]}")
        apart.append((row, device))
    return apart


def _by_device(
    recording: Recording, devices: dict[tuple[str, str], Device], known: Mapping[int, Line | None]
) -> tuple[list[tuple[int, Device]], list[Problem]]:
    """One energy source per device: a counter, else integrated power; a measured one before an estimate."""
    candidates: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row, signal in enumerate(recording.signals):
        if signal.device and is_energy(signal) and len(signal):
            candidates[signal.host, signal.device].append(row)
    if not candidates:
        names = ", ".join(dict.fromkeys(signal.name for signal in recording.signals)) or "none"
        others = "choose one with --metric RE, say what one is with --metric-kind RE=counter:uJ, or "
        raise NoDataError(
            f"no energy or power metric with readings here (metrics: {names}); "
            f"{others if recording.signals else ''}join a power log with --signals FILE"
        )
    best = {key: min(rows, key=lambda row: _rank(recording, rows, row, known)) for key, rows in candidates.items()}
    pairs = [(row, devices.get(key) or Device(key[1], "other", key[0])) for key, row in best.items()]
    problems = [problem for key, rows in candidates.items() for problem in _replaced(recording, rows, best[key])]
    problems += [problem for key, row in best.items() for problem in _fastest(recording, candidates[key], row, known)]
    return sorted(pairs, key=lambda item: _order(item[1])), problems


def _replaced(recording: Recording, rows: Sequence[int], best: int) -> list[Problem]:
    """Report which signal replaces a counter that cannot count."""
    problems = []
    for row in rows:
        signal, fault = recording.signals[row], _fault(recording, rows, row)
        if row != best and fault:
            instead = f"{recording.signals[best].name} is used instead"
            problems.append(Problem("replaced", f"{signal.name} of {signal.device} {fault}: {instead}"))
    return problems


def _fastest(recording: Recording, rows: Sequence[int], best: int, known: Mapping[int, Line | None]) -> list[Problem]:
    """Report that one gauge of several was taken, if they differ."""
    signal, line = recording.signals[best], known.get(best)
    others = [recording.signals[row].name for row in rows if recording.signals[row].kind == "gauge" and row != best]
    if signal.kind != "gauge" or not others or line is None or line.kind == "unknown":
        return []
    window = f"{line.window_s.least * 1e3:g} to {line.window_s.most * 1e3:g} ms"
    text = f"{signal.device}: {signal.name} is used, the fastest of its power gauges (window {window})"
    return [Problem("gauge", f"{text}; left out: {', '.join(sorted(others))}")]


def _fault(recording: Recording, rows: Sequence[int], row: int) -> str:
    """Why another signal of the device is better: a counter cannot count, or ends before the power readings do."""
    signal, clock = recording.signals[row], recording.clock
    measured = [recording.signals[one] for one in rows if not recording.signals[one].estimated]
    gauges = [one.extent for one in measured if one.kind == "gauge"]
    if signal.kind == "gauge" or not gauges:
        return fault_of(signal, clock)
    begins, ends = min(first for first, _, _ in gauges), max(last for _, last, _ in gauges)
    short = missing_ticks(signal, min(begins, signal.extent[0]), ends)
    ended = f"ends {short / clock.ticks_per_s:.3g} s before its power" if short else ""
    return fault_of(signal, clock) or ended


def _rank(
    recording: Recording, rows: Sequence[int], row: int, known: Mapping[int, Line | None]
) -> tuple[bool, bool, bool, float, float, bool]:
    """Sort key of the sources of one device, best first: counters before gauges, the fastest gauge before averages."""
    signal, line = recording.signals[row], known.get(row)
    gauge = signal.kind == "gauge"
    window = (0.0, 0.0)
    if gauge:
        unknown = line is None or line.kind == "unknown"
        window = (np.inf, np.inf) if line is None or unknown else (line.window_s.most, line.window_s.likely)
    slow = gauge and "instant" not in signal.name
    return (bool(_fault(recording, rows, row)), signal.estimated, gauge, *window, slow)


def _order(device: Device) -> tuple[str, str, int, str]:
    number = re.search(r"(\d+)\s*$", device.name)
    return device.host, device.kind, int(number[1]) if number else -1, device.name


def sources(recording: Recording, question: Question, topology: Topology) -> tuple[list[DeviceView], list[Problem]]:
    """Every (device, of) with its users; an error only when no location uses any of them."""
    there = [row for row in sorted(recording.spans.locations()) if not _is_idle_thread(recording, row)]
    if in_seconds(recording, question):
        notes = [] if question.quantity == "time" else [time_sources.not_metered(recording)]
        clocks = time_sources.clocks(recording, question, there)
        reason = "every thread and stream has its own time"
        return [DeviceView(device, clock, -1, of, users, reason) for device, clock, of, users in clocks], notes
    known = lines(recording, known_lines(question.sensors))
    rows, notes = chosen(recording, question, known)
    metered, problems = account(recording, rows, question.integrate, known)
    notes += problems
    streams = any(recording.locations.kind[row] == "gpu" for row in there)
    everybody = {*there}
    views = []
    for one in metered:
        device, signal, row = one.device, recording.signals[one.row], one.row
        if not _has_rows(one, metered, question):
            of = ",".join(_default_of(recording, device, streams, ()))
            views.append(DeviceView(device, signal, row, of, entry=one.entry, line=known.get(row)))
            continue
        links = topology.links(device, signal)
        for words in question.views or (
            _default_of(recording, device, streams, topology.declared_links(device, signal)),
        ):
            kinds = [kind for kind, count in (("gpu", {"kernels", "copies"}), ("cpu", {"host"})) if count & {*words}]
            parts = tuple(recording.signals[part] for part in one.parts)
            source = DeviceView(device, signal, row, ",".join(words), (), "", one.entry, parts, one.parts_metered)
            source = replace(source, line=one.lines[0], part_lines=one.lines[1:])
            if device.kind == "self":
                views.append(replace(source, users=(signal.location,), reason="recorded by the location itself"))
                continue
            who = users(recording, links, kinds, everybody)
            reasons = [k.reason for k in links if {*k.locations} & {*who}]
            views.append(replace(source, users=who, reason="; ".join(reasons)))
    if there and not any(source.users for source in views):
        listed = ", ".join(dict.fromkeys(source.device.name for source in views))
        asked = ", ".join(dict.fromkeys(source.of for source in views))
        lost = f" ({len(recording.missing)} locations could not be read)" if recording.missing else ""
        raise NoDataError(f"no location uses {listed} (of {asked}){lost}; try another --of, or say who does with --map")
    return views, notes


def _is_idle_thread(recording: Recording, location: int) -> bool:
    process = recording.owner(location)
    names = (recording.locations.name[location], recording.processes.name[process] if process >= 0 else "")
    return any(map(IDLE_THREAD.fullmatch, names))


def _has_rows(one: MeteredDevice, metered: Sequence[MeteredDevice], question: Question) -> bool:
    """Whether a device gets rows: it counts, rows are by signal, or there is nothing but counters that did not move."""
    if one.entry.counted or "signal" in question.keys:
        return True
    return one.entry.why == DID_NOT_MOVE and not any(other.entry.counted for other in metered)


def _default_of(recording: Recording, device: Device, streams: bool, links: Sequence[Link]) -> tuple[str, ...]:
    """Default view: kernels for a GPU if there are streams, unless only threads are declared to use it; else host."""
    kinds = {recording.locations.kind[row] for link in links for row in link.locations}
    return ("kernels",) if device.kind == "gpu" and streams and kinds != {"cpu"} else ("host",)


def keep(recording: Recording, of: str, kind: str) -> npt.NDArray[np.bool_]:
    """Which frames count on a location of this kind; a cpu in the idle thread does nothing, an added one is busy."""
    known = recording.frames.masks
    if (of, kind) not in known:
        known[of, kind] = _keep(recording, of, kind)
    return known[of, kind]


def _keep(recording: Recording, of: str, kind: str) -> npt.NDArray[np.bool_]:
    if kind == ADDED_KIND:
        return np.ones(len(recording.frames), bool)
    words = set(of.split(","))
    if kind != "gpu":
        return ~recording.frames.is_idle & ("host" in words)
    copies = recording.frames.is_copy
    return (copies & ("copies" in words)) | (~copies & ("kernels" in words))
