"""Topology: which locations use which device, each link with its reason.

The user's word comes first (``overrides.py``), then what the source of the recording says (``Recording.topology``),
then what can be inferred: an accelerator context stands below a device node with UUID and PCI address, knows the
process that created it, and a metric's name holds the number of its device.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..model import Device, Link, Recording, Signal
from .overrides import TopologyOverride

_BOARD_OF_TWO = re.compile(r"MI250", re.IGNORECASE)
# "CUDA[0:7]" and "HIP[1:0]" of Score-P, "GPU [0:1]" of APEX: the device's number comes first
_STREAM_DEVICE = re.compile(r"\b(?:CUDA|HIP|GPU|device|accel)\s*(?:\[\s*|#|\s|_)?(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class Die:
    """An accelerator as the trace knows it: a device node with the contexts on it."""

    index: int | None  # the number a metric would call it by; None where no name says
    node: int
    contexts: tuple[int, ...]
    reason: str
    uuid: str = ""
    two_per_board: bool = False
    streams: tuple[int, ...] = ()  # those that belong to their process, without a context


class Topology:
    """The users of every device of a recording."""

    def __init__(self, recording: Recording, overrides: Sequence[TopologyOverride] = ()) -> None:
        self.recording, self.overrides = recording, tuple(overrides)

    def declared_links(self, device: Device, signal: Signal | None = None) -> tuple[Link, ...]:
        """Links that the user gave for a device, else those of the recording's source."""
        for override in self.overrides:
            locations = override.locations(self.recording, device, signal)
            if locations is not None:
                return (Link(device.host, device.name, tuple(sorted(locations)), override.reason),)
        return tuple(self.recording.links_of(device))

    def links(self, device: Device, signal: Signal | None = None) -> tuple[Link, ...]:
        """Links of a device: the declared ones, and inferred ones for kinds of location without a declaration."""
        declared = self.declared_links(device, signal)
        kinds = {self.recording.locations.kind[row] for link in declared for row in link.locations}
        if any(link.reason == override.reason for link in declared for override in self.overrides):
            return declared  # the user's word is final
        inferred = [
            link
            for kind, link in (("gpu", self._streams(device)), ("cpu", self._threads(device)))
            if link is not None and kind not in kinds
        ]
        return (*declared, *inferred)

    def all_links(self) -> tuple[Link, ...]:
        """All links of every device, for display."""
        return tuple(link for device in self.recording.devices for link in self.links(device))

    @cached_property
    def _by_host(self) -> dict[tuple[str, str], list[int]]:
        """(host, kind of location) → locations."""
        rows: dict[tuple[str, str], list[int]] = defaultdict(list)
        for row, where in enumerate(zip(self.recording.location_hosts, self.recording.locations.kind, strict=True)):
            rows[where].append(row)
        return rows

    def _on(self, host: str, kind: str) -> list[int]:
        """The locations of a kind on a host; a device without a host belongs to all hosts."""
        if host:
            return self._by_host.get((host, kind), [])
        return sorted(row for (_, k), rows in self._by_host.items() if k == kind for row in rows)

    def _streams(self, device: Device) -> Link | None:
        if device.kind != "gpu":
            rows = self._on(device.host, "gpu")
            return self._link(device, rows, f"all streams of {device.host or 'the recording'}") if rows else None
        dies = self._dies_of(device)
        rows = [row for die in dies for context in die.contexts for row in self._by_context.get(context, ())]
        rows += [row for die in dies for row in die.streams]
        return self._link(device, rows, "; ".join(die.reason for die in dies)) if rows else None

    def _threads(self, device: Device) -> Link | None:
        where = device.host or "the recording"
        everyone = self._on(device.host, "cpu")
        if device.kind == "gpu":
            dies = self._dies_of(device)
            owners = {int(self.recording.processes.creator[context]) for die in dies for context in die.contexts}
            owners |= {int(self.recording.locations.process[row]) for die in dies for row in die.streams}
            owners -= {-1}
            rows = [row for row in everyone if int(self.recording.locations.process[row]) in owners]
            if rows:
                names = ", ".join(self.recording.processes.name[owner] for owner in sorted(owners))
                return self._link(device, rows, f"threads of the processes that own a context on it: {names}")
            return (
                self._link(device, everyone, f"all threads of {where}: no process owns a context on it")
                if everyone
                else None
            )
        return self._link(device, everyone, f"all threads of {where}") if everyone else None

    def _link(self, device: Device, rows: Sequence[int], reason: str) -> Link:
        return Link(device.host, device.name, tuple(sorted(rows)), reason)

    @cached_property
    def _by_context(self) -> dict[int, list[int]]:
        """Accelerator context → its streams."""
        rows: dict[int, list[int]] = defaultdict(list)
        of = self.recording.locations
        for row, (kind, process) in enumerate(zip(of.kind, of.process.tolist(), strict=True)):
            if kind == "gpu":
                rows[process].append(row)
        return rows

    def _dies_of(self, device: Device) -> list[Die]:
        """The accelerators whose energy a GPU device meters."""
        dies = self._dies.get(device.host, []) if device.host else [die for some in self._dies.values() for die in some]
        uuid = device.properties.get("uuid", "")
        same = [die for die in dies if uuid and die.uuid == uuid]
        if same:
            return same
        index = device_index(device)
        if index is None:
            return dies if self._gpus[device.host] == 1 else []
        if self._gpus[device.host] == 1 and any(die.index is None for die in dies):
            return dies  # the streams do not say which GPU, and there is only one
        numbered = [(die, die.index) for die in dies if die.index is not None]
        if device.name.startswith("accel") and any(die.two_per_board for die in dies):
            return [die for die, number in numbered if number // 2 == index]
        if any(die.two_per_board for die in dies) or device.host in self._odd_ones_dead:
            return [die for die, number in numbered if number - number % 2 == index]
        return [die for die, number in numbered if number == index]

    @cached_property
    def _gpus(self) -> Counter[str]:
        """host → number of metered GPUs."""
        return Counter(device.host for device in self.recording.devices if device.kind == "gpu")

    @cached_property
    def _odd_ones_dead(self) -> set[str]:
        """Hosts on which every odd GPU's counter stands still while an even one moves: one counter for two dies."""
        moves: dict[str, dict[int, bool]] = defaultdict(dict)
        for signal in self.recording.signals:
            index = _number(signal.device) if signal.device.startswith("GPU") else None
            if index is not None and signal.kind == "counter" and signal.unit == "J":
                moved = signal.moves
                moves[signal.host][index] = moves[signal.host].get(index, False) or moved
        odd = {host: [moved for index, moved in some.items() if index % 2] for host, some in moves.items()}
        return {host for host, some in moves.items() if odd[host] and not any(odd[host]) and any(some.values())}

    @cached_property
    def _dies(self) -> dict[str, list[Die]]:
        """host → its accelerators, numbered as metrics number them."""
        contexts: dict[int, list[int]] = defaultdict(list)
        processes = self.recording.processes
        for row, kind in enumerate(processes.kind):
            if kind == "accelerator":
                contexts[int(processes.node[row])].append(row)
        by_host: dict[str, list[int]] = defaultdict(list)
        for node, rows in contexts.items():
            by_host[self.recording.host(rows[0])].append(node)
        dies = {host: self._numbered(nodes, contexts) for host, nodes in by_host.items()}
        for host, more in self._without_context().items():
            dies[host] = dies.get(host, []) + more
        return dies

    def _without_context(self) -> dict[str, list[Die]]:
        """host → accelerators of streams that stand in their process, as lo2s and Score-P before 8 write them."""
        streams: dict[str, dict[int | None, list[int]]] = defaultdict(lambda: defaultdict(list))
        locations, processes = self.recording.locations, self.recording.processes
        for row, (kind, process) in enumerate(zip(locations.kind, locations.process.tolist(), strict=True)):
            if kind == "gpu" and (process < 0 or processes.kind[process] != "accelerator"):
                number = stream_device(locations.name[row])
                streams[self.recording.location_host(row)][number].append(row)
        return {
            host: [Die(number, -1, (), self._stream_reason(number, rows), streams=tuple(rows)) for number, rows in some]
            for host, some in ((host, numbers.items()) for host, numbers in streams.items())
        }

    def _stream_reason(self, number: int | None, rows: Sequence[int]) -> str:
        name = self.recording.locations.name[rows[0]]
        if number is None:
            return f"the only GPU metered; stream {name!r} does not say which it uses"
        owners = {self.recording.owner(row) for row in rows}
        seen = f"; {len(owners)} processes call it so, each may count the GPUs it sees" if len(owners) > 1 else ""
        return f"stream {name!r} says device {number}{seen}"

    def _numbered(self, nodes: list[int], contexts: dict[int, list[int]]) -> list[Die]:
        """Dies of one host. A node's name is its number unless PCI order contradicts it or names repeat."""
        if -1 in nodes or all(self.recording.nodes.kind[node].lower() in ("node", "") for node in nodes):
            return self._by_context_name(nodes, contexts)
        name = [self.recording.nodes.name[node] for node in nodes]
        pci = [_pci(self.recording.nodes.properties[node]) for node in nodes]
        by_pci = len(set(pci)) == len(pci) and () not in pci
        if by_pci:
            order = sorted(range(len(nodes)), key=lambda i: pci[i])
        else:
            order = list(range(len(nodes)))
        numbers = [_number(text) for text in name]
        rank = {which: place for place, which in enumerate(order)}
        named = None not in numbers and len(set(numbers)) == len(numbers)
        ordered = [numbers[i] for i in order]
        trust_names = named and (not by_pci or ordered == sorted(ordered, key=lambda n: n or 0))
        dies = []
        for i, node in enumerate(nodes):
            properties = self.recording.nodes.properties[node]
            number = numbers[i] if trust_names else rank[i]
            how = f"PCI bus {pci[i][1]}" if by_pci else "numbered as named"
            two = bool(_BOARD_OF_TWO.search(properties.get("Device name", "")))
            kind = self.recording.nodes.kind[node]
            reason = f"{kind} {name[i]} ({how}{'; one counter for two dies' if two else ''})"
            dies.append(Die(number or 0, node, tuple(contexts[node]), reason, properties.get("UUID", ""), two))
        return sorted(dies, key=lambda die: die.index or 0)

    def _by_context_name(self, nodes: list[int], contexts: dict[int, list[int]]) -> list[Die]:
        """Find accelerators by the number in a stream's or context's name: older traces have no device nodes."""
        by_number: dict[int, list[int]] = defaultdict(list)
        reasons: dict[int, str] = {}
        for context in (context for node in nodes for context in contexts[node]):
            name = self.recording.processes.name[context]
            streams = [self.recording.locations.name[row] for row in self._by_context.get(context, ())]
            numbers = {stream_device(stream) for stream in streams}
            number, reason = _number(name), f"context {name!r}"
            if len(numbers) == 1 and None not in numbers:
                number, reason = numbers.pop(), f"stream {streams[0]!r}"
            by_number[number or 0].append(context)
            reasons.setdefault(number or 0, f"{reason} says device {number or 0}")
        return [Die(number, -1, tuple(rows), reasons[number]) for number, rows in sorted(by_number.items())]


def stream_device(name: str) -> int | None:
    """The number of the device in a stream's name, as the process counts its devices."""
    match = _STREAM_DEVICE.search(name)
    return int(match[1]) if match else None


def device_index(device: Device) -> int | None:
    """The number at the end of a device's name."""
    return _number(device.name)


def _number(text: str) -> int | None:
    match = re.search(r"(\d+)\s*$", text)
    return int(match[1]) if match else None


def _pci(properties: object) -> tuple[int, ...]:
    """(domain, bus, device) as Score-P's properties or a plain ``pci`` tell them; () when they do not."""
    get = properties.get  # type: ignore[attr-defined]
    try:
        if "PCI Bus ID" in properties:  # type: ignore[operator]
            return tuple(int(get(f"PCI {part} ID", "0")) for part in ("Domain", "Bus", "Device"))
        return tuple(int(part, 16) for part in re.split(r"[:.]", get("pci", ""))[:3] if part)
    except ValueError:
        return ()


def users(recording: Recording, links: Sequence[Link], kinds: Sequence[str], there: Container[int]) -> tuple[int, ...]:
    """The linked locations of these kinds that may hold spans (``there``), ascending and without repeats."""
    of = recording.locations.kind
    return tuple(sorted({row for link in links for row in link.locations if of[row] in kinds and row in there}))
