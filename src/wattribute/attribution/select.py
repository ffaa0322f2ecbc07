"""Which signal speaks for which device, and who its users are: the questions before any arithmetic."""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..alignment.topology import Topology, users
from ..errors import NoDataError, OptionError
from ..model import Device, Link, Problem, Recording, Signal
from .options import Options

_FAMILIES = 12
_AUXILIARY = ("hwmon", "other", "core", "igpu")  # meters that repeat what a better one says, or a part of it


@dataclass(frozen=True)
class Source:
    """One device seen through one signal, with the users who count."""

    device: Device
    signal: Signal
    row: int  # of Recording.signals
    of: str
    users: tuple[int, ...] = ()
    reason: str = ""


def is_energy(signal: Signal) -> bool:
    return (signal.kind == "gauge" and signal.unit == "W") or (signal.kind != "gauge" and signal.unit == "J")


def chosen(recording: Recording, options: Options) -> tuple[list[tuple[int, Device]], list[Problem]]:
    """The rows of the signals to attribute with their devices, and what was left out."""
    devices = {(device.host, device.name): device for device in recording.devices}
    if options.metric is None:
        return _by_device(recording, devices)
    rows = [i for i, s in enumerate(recording.signals) if re.search(options.metric, s.name, re.IGNORECASE)]
    if not rows:
        raise _unknown_metric(options.metric, [signal.name for signal in recording.signals])
    found = _told_apart(recording, [(row, _device(recording, recording.signals[row], devices)) for row in rows])
    filled = [(row, device) for row, device in found if len(recording.signals[row])]
    if not filled:
        raise NoDataError(f"the metric {options.metric!r} has no readings in this recording")
    if "signal" not in options.by:
        _check_single(recording, filled, options.metric)
    return filled, []


def _unknown_metric(pattern: str, names: Sequence[str]) -> OptionError:
    """Suggests the parts of names that look alike; else lists the families of names, numbers left out."""
    parts = {part for name in names for part in (name, *re.split(r"[:\s/.]+", name)) if part}
    close = difflib.get_close_matches(pattern, sorted(parts), n=3, cutoff=0.6)
    families = list(dict.fromkeys(re.sub(r"\d+(?=\D*$)", "N", name) for name in names))
    more = ", …" if len(families) > _FAMILIES else ""
    known = f"known: {', '.join(families[:_FAMILIES])}{more}" if families else "the recording has no metrics"
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else known
    return OptionError(f"no metric matches {pattern!r}; {hint}")


def _check_single(recording: Recording, found: Sequence[tuple[int, Device]], metric: str) -> None:
    per_device: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row, device in found:
        per_device[device.host, device.name].append(recording.signals[row].name)
    for (_, name), names in per_device.items():
        if len(names) > 1:
            listed = ", ".join(names[:4])
            raise OptionError(
                f"metric {metric!r} fits {len(names)} signals of {name} ({listed}); narrow it, or use --by signal"
            )
    units = sorted({_unit(recording.signals[row]) for row, _ in found})
    if len(units) > 1:
        raise OptionError(f"metric {metric!r} fits signals in {', '.join(units)}; narrow it, or use --by signal")


def _unit(signal: Signal) -> str:
    return {"W": "J"}.get(signal.unit, f"{signal.unit}·s") if signal.kind == "gauge" else signal.unit


def _device(recording: Recording, signal: Signal, devices: dict[tuple[str, str], Device]) -> Device:
    """The device of a signal; one that a location recorded about itself is a device of its own."""
    if signal.device:
        return devices.get((signal.host, signal.device)) or Device(signal.device, "other", signal.host)
    name = signal.name
    if signal.location >= 0 and recording.locations.kind[signal.location] != "metric":
        owner = recording.owner(signal.location)
        process = recording.processes.name[owner] if owner >= 0 else ""
        name = f"{process} {recording.locations.name[signal.location]}".strip() or name
    return Device(name, "self" if name != signal.name else "other", signal.host)


def _told_apart(recording: Recording, found: Sequence[tuple[int, Device]]) -> list[tuple[int, Device]]:
    """Locations of one name (threads of a pool) are devices of their own: they get their ids as well."""
    places: dict[tuple[str, str], set[int]] = defaultdict(set)
    for row, device in found:
        if device.kind == "self":
            places[device.host, device.name].add(recording.signals[row].location)
    apart = []
    for row, device in found:
        if len(places[device.host, device.name]) > 1:
            device = replace(device, name=f"{device.name} #{recording.locations.id[recording.signals[row].location]}")
        apart.append((row, device))
    return apart


def _by_device(
    recording: Recording, devices: dict[tuple[str, str], Device]
) -> tuple[list[tuple[int, Device]], list[Problem]]:
    """One energy source per device: a counter, else integrated power; what a meter said before what a model did."""
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
    kind = {key: devices[key].kind if key in devices else "other" for key in candidates}
    served = {key[0] for key in candidates if kind[key] not in _AUXILIARY}
    left_out: dict[str, list[str]] = defaultdict(list)
    found = []
    for key, rows in candidates.items():
        if kind[key] in _AUXILIARY and key[0] in served:
            left_out[key[0]].append(key[1])
            continue
        best = min(rows, key=lambda row: _rank(recording.signals[row]))
        found.append((best, devices.get(key) or Device(key[1], "other", key[0])))
    told = [
        Problem("left-out", f"{_listed(names)} on {host}: left out, as they may repeat other meters of it")
        for host, names in left_out.items()
    ]
    return sorted(found, key=lambda item: _order(item[1])), told


def _listed(names: Sequence[str], most: int = 4) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(sorted(names)[:most]) + more


def _rank(signal: Signal) -> tuple[bool, bool, bool]:
    """Sorts the sources of one device, best first."""
    dead = signal.kind == "counter" and not bool((signal.values != signal.values[:1]).any())
    return dead, signal.estimated, signal.kind == "gauge"


def _order(device: Device) -> tuple[str, str, int, str]:
    number = re.search(r"(\d+)\s*$", device.name)
    return device.host, device.kind, int(number[1]) if number else -1, device.name


def sources(recording: Recording, options: Options, topology: Topology) -> tuple[list[Source], list[Problem]]:
    """Every (device, of) with its users; an error only when nobody uses any of them."""
    rows, told = chosen(recording, options)
    there = set(recording.spans.locations())
    streams = any(recording.locations.kind[row] == "gpu" for row in there)
    found = []
    for row, device in rows:
        signal = recording.signals[row]
        links = topology.links(device, signal)
        for words in options.of or (_default_of(recording, device, streams, topology.said(device, signal)),):
            kinds = [kind for kind, count in (("gpu", {"kernels", "copies"}), ("cpu", {"host"})) if count & {*words}]
            source = Source(device, signal, row, ",".join(words))
            if device.kind == "self":
                found.append(replace(source, users=(signal.location,), reason="recorded by the location itself"))
                continue
            who = users(recording, links, kinds, there)
            reasons = [k.reason for k in links if {*k.locations} & {*who}]
            found.append(replace(source, users=who, reason="; ".join(reasons)))
    if not any(source.users for source in found):
        listed = ", ".join(dict.fromkeys(source.device.name for source in found))
        asked = ", ".join(dict.fromkeys(source.of for source in found))
        lost = f" ({len(recording.missing)} locations could not be read)" if recording.missing else ""
        raise NoDataError(f"no location uses {listed} (of {asked}){lost}; try another --of, or say who does with --map")
    return found, told


def _default_of(recording: Recording, device: Device, streams: bool, said: Sequence[Link]) -> tuple[str, ...]:
    """GPU counters go to kernels if there are streams at all, unless we were told that only threads use the device."""
    told = {recording.locations.kind[row] for link in said for row in link.locations}
    return ("kernels",) if device.kind == "gpu" and streams and told != {"cpu"} else ("host",)


def keep(recording: Recording, of: str, kind: str) -> npt.NDArray[np.bool_]:
    """Which frames count on a location of this kind."""
    words = set(of.split(","))
    if kind != "gpu":
        return np.full(len(recording.frames), "host" in words)
    copies = np.array([role == "copy" for role in recording.frames.role], bool)
    return (copies & ("copies" in words)) | (~copies & ("kernels" in words))
