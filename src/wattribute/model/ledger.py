"""The ledger: which devices make a total, and why the others do not.

Decided once per recording, and while meters are read, by the same rules (docs/attribution.md has them with an example):

1. a node's meter counts as the whole: its metered parts count, and what is left of it, the *rest*;
2. a sensor of unknown place (psys, unknown hwmon, a "combined" line) counts only where it is alone on its host;
3. mirrored counters, and two families of sensors of the same devices, count once unless ids prove two devices;
4. estimates never count beside measurements;
5. a counter that did not move, or was reset, does not count.

No NumPy in here: the table that ``run`` and ``monitor`` show follows it, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..sensors import contains
from .devices import Device

UNKNOWN_PLACE = ("psys", "soc", "hwmon", "board", "other")
_FAMILY_PREFERENCE = (
    "nvml",
    "rocm_smi",
    "amdsmi",
    "rapl",
    "",
    "craypm",
    "hwmon",
)  # the first one counts
_SHARED_KINDS = ("gpu", "cpu", "dram")  # kinds that several families meter


@dataclass(frozen=True)
class Candidate:
    """A metered device as the ledger sees it."""

    device: Device
    family: str = ""  # of its sensor: "nvml", "rapl", "craypm" …
    estimated: bool = False
    fault: str = ""  # why its readings cannot count: "did not move", "was reset"
    mirrors: str = ""  # the device whose counter it repeats

    @property
    def ids(self) -> frozenset[str]:
        own = self.device.properties
        return frozenset(own[name] for name in ("uuid", "pci", "serial") if own.get(name))


@dataclass(frozen=True)
class Entry:
    """Whether a device counts in a total, and why not."""

    counted: bool = True
    why: str = ""


@dataclass(frozen=True)
class Ledger:
    """An entry per candidate, in order; ``wholes`` are the meters of nodes with the rows of their metered parts."""

    entries: tuple[Entry, ...]
    wholes: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


def decide(candidates: Sequence[Candidate]) -> Ledger:
    """Decide which of these devices count."""
    why = [_own_reason(candidate) for candidate in candidates]
    by_host: dict[str, list[int]] = {}
    for row, candidate in enumerate(candidates):
        by_host.setdefault(candidate.device.host, []).append(row)
    for rows in by_host.values():
        for rule in (_families, _places, _insides, _second_nodes):
            alive = [row for row in rows if not why[row]]
            why_not = rule([candidates[row] for row in alive])
            for row, reason in zip(alive, why_not, strict=True):
                why[row] = reason
    if any(not reason and not candidates[row].estimated for row, reason in enumerate(why)):
        for row, candidate in enumerate(candidates):
            if candidate.estimated and not why[row]:
                why[row] = "an estimate beside measurements"
    wholes = {
        row: parts
        for row, candidate in enumerate(candidates)
        if candidate.device.kind == "node"
        and not why[row]
        and (parts := _parts(candidates, row, by_host[candidate.device.host], why))
    }
    entries = [Entry(not reason, reason) for reason in why]
    for row in wholes:
        entries[row] = Entry(False, "counts as its parts and the rest of it")
    return Ledger(tuple(entries), wholes)


def needless_estimates(measured: Iterable[str]) -> set[str]:
    """The kinds of devices that need no estimate when these kinds are measured."""
    kinds = set(measured)
    if "node" in kinds:  # it includes them
        kinds |= {"cpu", "dram"}
    if "cpu" in kinds:  # AMD has no DRAM counter; an estimate beside a measurement would look like one
        kinds.add("dram")
    return kinds


def _own_reason(candidate: Candidate) -> str:
    if candidate.fault:
        return candidate.fault
    return f"mirrors {candidate.mirrors}" if candidate.mirrors else candidate.device.properties.get("apart", "")


def _families(here: Sequence[Candidate]) -> list[str]:
    """Of several families that meter devices of one kind the best one counts, unless ids tell their devices apart."""
    why = [""] * len(here)
    for kind in _SHARED_KINDS:
        of_kind = [row for row, one in enumerate(here) if one.device.kind == kind and not one.estimated]
        families = list(dict.fromkeys(here[row].family for row in of_kind))
        if "craypm" not in families and "" in families:
            families.remove("")  # a sensor of no known family may well meter another device
        if len(families) < 2:
            continue
        counts = {name: sum(here[row].family == name for row in of_kind) for name in families}
        best = min(families, key=lambda name: (-counts[name], _rank(name)))
        ids = frozenset().union(*(here[row].ids for row in of_kind if here[row].family == best))
        for row in of_kind:
            other = here[row]
            proven = bool(ids) and bool(other.ids) and not ids & other.ids
            if other.family in families and other.family != best and not proven:
                why[row] = f"metered by {best or 'another sensor'}, too"
    if any(one.device.properties.get("scope") == "module" for one in here):
        for row, one in enumerate(here):
            if one.family == "hwmon" and one.device.kind == "cpu":
                why[row] = why[row] or "the GPU's counter sees the module"
    return why


def _rank(family: str) -> int:
    return _FAMILY_PREFERENCE.index(family) if family in _FAMILY_PREFERENCE else len(_FAMILY_PREFERENCE)


def _places(here: Sequence[Candidate]) -> list[str]:
    """Sensors of unknown place may repeat others: they count only where nothing else can be counted twice."""
    measured = [one for one in here if not one.estimated]
    placed = any(one.device.kind not in UNKNOWN_PLACE for one in measured)
    own = any(one.device.kind == "other" for one in measured)
    why = []
    for one in here:
        kind = one.device.kind
        alone = len(measured) == 1 or (kind == "other" and not placed) or (kind == "soc" and not placed and not own)
        why.append("" if kind not in UNKNOWN_PLACE or alone else "what it sees is not known: it may repeat others")
    return why


def _insides(here: Sequence[Candidate]) -> list[str]:
    """Parts of a part (the cores of a package) are shown, not counted."""
    first: dict[str, str] = {}  # kind → the first device of it
    for one in here:
        first.setdefault(one.device.kind, one.device.name)
    outer = {
        kind: next((name for around, name in first.items() if around != "node" and contains(around, kind)), "")
        for kind in first
    }
    return [f"inside {outer[one.device.kind]}" if outer[one.device.kind] else "" for one in here]


def _second_nodes(here: Sequence[Candidate]) -> list[str]:
    """One meter of the whole node counts, a measured one before an estimate."""
    nodes = [row for row, one in enumerate(here) if one.device.kind == "node"]
    nodes.sort(key=lambda row: here[row].estimated)
    reason = f"{here[nodes[0]].device.name} meters the whole node, too" if nodes else ""
    second = set(nodes[1:])
    return [reason if row in second else "" for row in range(len(here))]


def _parts(candidates: Sequence[Candidate], node: int, here: Sequence[int], why: Sequence[str]) -> tuple[int, ...]:
    """The metered parts of a node among the devices of its host."""
    return tuple(row for row in here if row != node and not why[row] and contains("node", candidates[row].device.kind))
