"""The ledger of a recording: which metered devices count, why others do not, and the rests of nodes.

The rules are those of :mod:`wattribute.model.ledger`; here they meet the readings, which say what is dead, mirrored or
larger than its whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from ..alignment.energy import Energy, energy
from ..alignment.gauges import metered
from ..alignment.rest import excess, rest
from ..alignment.sanity import mirrored
from ..model import Clock, Device, Problem, Recording, Signal
from ..model.ledger import UNKNOWN_PLACE, Candidate, Entry, decide
from ..sensors import Line, family

NO_LINES: Mapping[int, Line | None] = MappingProxyType({})
Sensed = tuple[Signal, Line | None]  # a signal, and how its sensor measures

DID_NOT_MOVE = "did not move"


class MeteredDevice(NamedTuple):
    """A device, the row of the signal that speaks for it, and its entry in the ledger.

    The rest of a node has the node's signal, and in ``parts`` the rows of the signals that are taken from it.
    """

    row: int
    device: Device
    entry: Entry
    parts: tuple[int, ...] = ()
    parts_metered: bool = True
    lines: tuple[Line | None, ...] = ()  # how the sensors of its signal and of its parts measure
    integrate: str = "trapezoid"  # how power becomes energy

    def sensed(self, recording: Recording) -> list[Sensed]:
        """Its signal and those of its parts, each with how its sensor measures."""
        rows = (self.row, *self.parts)
        lines = self.lines or (None,) * len(rows)
        return [(recording.signals[row], line) for row, line in zip(rows, lines, strict=True)]

    def energy(self, recording: Recording) -> Energy:
        """Its joules(t)."""
        return device_energy(self.sensed(recording), self.parts_metered, recording.clock, self.integrate)


def device_energy(sensed: Sequence[Sensed], parts_metered: bool, clock: Clock, integrate: str = "trapezoid") -> Energy:
    """The joules(t) of a device; with parts behind it those of the rest of a node."""
    curve, *curves = (metered(signal, clock, line, integrate).energy for signal, line in sensed)
    return rest(curve, curves)[0 if parts_metered else 1] if curves else curve


def account(
    recording: Recording,
    rows: Sequence[tuple[int, Device]],
    integrate: str = "trapezoid",
    lines: Mapping[int, Line | None] = NO_LINES,
) -> tuple[list[MeteredDevice], list[Problem]]:
    """The ledger of the chosen signals with their devices, the rests of nodes behind them."""
    devices, problems = list(rows), []
    books = decide(_candidates(recording, devices))
    entries = list(books.entries)
    rests = []
    for node, parts in books.wholes.items():
        row, whole = devices[node]
        part_rows = tuple(devices[part][0] for part in parts)
        curve, *curves = (
            metered(recording.signals[one], recording.clock, lines.get(one), integrate).energy
            for one in (row, *part_rows)
        )
        more, error = excess(curve, curves)
        if more > 0:
            names = ", ".join(devices[part][1].name for part in parts)
            text = f"{names} on {whole.host or 'the host'} used more than {whole.name}, which should contain them"
            if more > error:
                problems.append(Problem("nested", f"{text}; the parts count, {whole.name} does not"))
            entries[node] = Entry(False, "its parts exceed it")
            continue
        for together, left in zip((True, False), rest(curve, curves), strict=True):
            if together or left.measured > 0:
                name = f"rest of {whole.name}" if together else f"{whole.name}, parts not metered"
                rests.append(MeteredDevice(row, Device(name, "rest", whole.host), Entry(), part_rows, together))
    counted = [MeteredDevice(row, device, entry) for (row, device), entry in zip(devices, entries, strict=True)]
    devices_and_rests = (*counted, *rests)
    with_lines = [
        one._replace(lines=tuple(lines.get(row) for row in (one.row, *one.parts)), integrate=integrate)
        for one in devices_and_rests
    ]
    return with_lines, problems


def _candidates(recording: Recording, devices: Sequence[tuple[int, Device]]) -> list[Candidate]:
    names = dict(devices)
    originals: dict[int, str] = {}
    for check in mirrored(recording):
        first, second = check.signals
        if first in names and second in names and _alike(names[first], names[second]):
            if names[first].kind in UNKNOWN_PLACE and names[second].kind not in UNKNOWN_PLACE:
                first, second = second, first
            originals[second] = names[first].name
    seen: set[tuple[str, str]] = set()
    candidates = []
    for row, device in devices:
        signal = recording.signals[row]
        own = family(signal.name) or device.properties.get("meter", "") or family(device.name)
        fault = fault_of(signal, recording.clock)
        if (device.host, device.name) in seen:
            fault = fault or "another signal of the same device"
        seen.add((device.host, device.name))
        candidates.append(Candidate(device, own, signal.estimated, fault, originals.get(row, "")))
    return candidates


def _alike(a: Device, b: Device) -> bool:
    """Whether two devices may be one thing metered twice."""
    return a != b and (a.kind == b.kind or a.kind in UNKNOWN_PLACE or b.kind in UNKNOWN_PLACE)


def fault_of(signal: Signal, clock: Clock) -> str:
    """Why a counter cannot count; gauges have no faults of this kind."""
    if signal.kind != "counter" or len(signal) < 2:
        return ""
    digest = getattr(signal, "digest", None)
    if digest is not None:  # known from where its readings are, see engines.readings
        return str(digest.fault)
    if not signal.moves:
        return DID_NOT_MOVE
    values = np.asarray(signal.values)
    falls = bool((values[1:] < values[:-1]).any())
    if falls and any(problem.kind == "reset" for problem in energy(signal, clock).problems):
        return "was reset"
    return ""
