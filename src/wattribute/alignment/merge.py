"""Several recordings of one job → one: the ranks of all nodes on one timeline.

Recordings of a host that follow one another are no such job: between them nothing was metered, and they are refused.

Recordings of one boot share a monotonic clock and are joined exactly; those of different machines by their wall clocks,
whose greatest error is stated. A sensor that two recordings read (two samplers on one node) counts once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import NoDataError, OptionError
from ..model import (
    Clock,
    Device,
    Frames,
    Link,
    Locations,
    Nodes,
    Problem,
    Processes,
    Recording,
    Signal,
    Spans,
    SpanSource,
)
from ..model.spans import SpanColumns

ALIGN = ("clock", "start")
_NS = 1_000_000_000
UNKNOWN_NS = 10_000_000  # assumed error of a wall clock without a known one: NTP on a cluster does better


@dataclass(frozen=True)
class Placement:
    """Where one recording's tick 0 lies on the common timeline, and how far that may be off."""

    start: int  # in ticks of the common clock
    uncertainty_ns: int


def merge(recordings: Sequence[Recording], align: str = "clock") -> Recording:
    """Merge recordings into one; ``align="start"`` lays their beginnings on each other instead of trusting clocks."""
    if not recordings:
        raise NoDataError("nothing to merge: name at least one recording")
    if align not in ALIGN:
        raise OptionError.unknown("alignment", align, ALIGN)
    rates = {recording.clock.ticks_per_s for recording in recordings}
    rate = rates.pop() if len(rates) == 1 else _NS
    placed = _placed(recordings, align, rate)
    merger = _Merger(rate)
    for recording, place in zip(recordings, placed, strict=True):
        merger.add(recording, place.start)
    return merger.recording(recordings, placed)


def _placed(recordings: Sequence[Recording], align: str, rate: int) -> list[Placement]:
    if align == "start":
        return [Placement(0, 0) for _ in recordings]
    first = recordings[0]
    boots = {about_clock(recording).get("boot") or "" for recording in recordings}
    if len(boots) == 1 and "" not in boots and len({recording.clock.ticks_per_s for recording in recordings}) == 1:
        starts = [recording.clock.offset_ticks - first.clock.offset_ticks for recording in recordings]
        return [Placement(start - min(starts), 0) for start in starts]
    if any(recording.clock.epoch_ns is None for recording in recordings):
        raise NoDataError("a recording has no wall clock to be joined by; use --align start if all began together")
    epochs = [recording.clock.epoch_ns or 0 for recording in recordings]
    errors = [about_clock(recording).get("uncertainty_ns") for recording in recordings]
    return [
        Placement(round(Fraction(epoch - min(epochs), _NS) * rate), UNKNOWN_NS if error is None else int(error))
        for epoch, error in zip(epochs, errors, strict=True)
    ]


def about_clock(recording: Recording) -> dict[str, Any]:
    """Facts about a recording's clock: its boot, the greatest error of its wall clock."""
    return dict(recording.metadata.get("clock") or {})


@dataclass(frozen=True)
class _Part:
    """A location of one of the recordings: its source, its row there, and how its spans move."""

    source: SpanSource
    location: int
    scale: Fraction
    start: int
    frames: npt.NDArray[np.int32]


@dataclass(frozen=True)
class MergedSpans(SpanColumns):
    """A span source over the sources of several recordings."""

    parts: dict[int, _Part] = field(default_factory=dict)

    def locations(self) -> Sequence[int]:
        return sorted(self.parts)

    def spans(self, location: int) -> Spans:
        part = self.parts[location]
        spans = part.source.spans(part.location)
        return replace(
            spans,
            start=shifted(spans.start, part.scale, part.start),
            end=shifted(spans.end, part.scale, part.start),
            frame=part.frames[spans.frame],
        )

    def problems(self) -> Sequence[Problem]:
        seen = {id(part.source): part.source for part in self.parts.values()}
        return tuple(problem for source in seen.values() for problem in source.problems())


def shifted(times: npt.NDArray[np.int64], scale: Fraction, start: int) -> npt.NDArray[np.int64]:
    """Ticks of another clock in ours, of which ``scale`` make one of theirs and whose tick 0 is our ``start``."""
    if scale == 1:
        return times + start
    return np.array([round(int(t) * scale) for t in times], np.int64) + start


class _Merger:
    """Collects the tables of recordings one after the other."""

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self.frames: dict[tuple[Any, ...], int] = {}
        self.nodes: list[tuple[Any, ...]] = []
        self.node_names: dict[tuple[str, str, int], int] = {}
        self.processes: list[tuple[Any, ...]] = []
        self.locations: list[tuple[Any, ...]] = []
        self.parts: dict[int, _Part] = {}
        self.signals: dict[tuple[str, str, str, int], Signal] = {}
        self.devices: dict[tuple[str, str], Device] = {}
        self.links: dict[tuple[str, str], Link] = {}
        self.silent: dict[str, list[int]] = {}  # host → threads of ranks that say nothing of its devices
        self.missing: list[Any] = []
        self.noticed: list[Problem] = []
        self.length = 0

    def add(self, recording: Recording, start: int) -> None:
        scale = Fraction(self.rate, recording.clock.ticks_per_s)
        frames = np.array([self.frames.setdefault(row, len(self.frames)) for row in recording.frames.rows()], np.int32)
        processes, locations = len(self.processes), len(self.locations)
        nodes = self._add_nodes(recording)
        for row in recording.processes.rows():
            node, creator = (int(at) for at in row[3:5])
            name = _rank_name(recording, row[1]) if row[2] == "process" else row[1]
            above = creator + processes if creator >= 0 else -1
            self.processes.append((row[0], name, row[2], nodes[node] if node >= 0 else -1, above))
        for row in recording.locations.rows():
            at = len(self.locations)  # ids of different recordings are the same
            self.locations.append((at, row[1], row[2], int(row[3]) + processes if row[3] >= 0 else -1, row[4]))
        for location in recording.spans.locations():
            self.parts[location + locations] = _Part(recording.spans, location, scale, start, frames)
        for device in recording.devices:
            self.devices.setdefault((device.host, device.name), device)
        for signal in recording.signals:
            self._add_signal(signal, scale, start, locations)
        self._add_links(recording, locations)
        self.missing += [replace(lost, location=lost.location + locations) for lost in recording.missing]
        self.noticed += [
            replace(problem, location=None if problem.location is None else problem.location + locations)
            for problem in recording.noticed
        ]
        self.length = max(self.length, start + round(recording.clock.length_ticks * scale))

    def _add_nodes(self, recording: Recording) -> list[int]:
        """Add nodes; those of the same name, kind and parent become one node."""
        mapped: list[int] = []
        for row in recording.nodes.rows():
            parent = mapped[int(row[3])] if 0 <= row[3] < len(mapped) else -1
            key = (row[1], row[2], parent)
            if key not in self.node_names:
                self.node_names[key] = len(self.nodes)
                self.nodes.append((len(self.nodes), row[1], row[2], parent, row[4]))
            mapped.append(self.node_names[key])
        return mapped

    def _add_links(self, recording: Recording, locations: int) -> None:
        for link in recording.topology:
            key = (link.host, link.device)
            users = tuple(at + locations for at in link.locations)
            known = self.links.get(key)
            self.links[key] = replace(link, locations=(*(known.locations if known else ()), *users))
        linked_hosts = {link.host for link in recording.topology}
        for at in recording.spans.locations():
            host = recording.location_host(at)
            if recording.locations.kind[at] == "cpu" and host not in linked_hosts:
                self.silent.setdefault(host, []).append(at + locations)

    def _links(self) -> list[Link]:
        """Extend links to the ranks of a node that did not sample: they use its devices like the one that did."""
        links = []
        for link in self.links.values():
            others = self.silent.get(link.host, [])
            reason = f"{link.reason}; so do the other ranks of {link.host}" if others else link.reason
            links.append(replace(link, locations=(*link.locations, *others), reason=reason))
        return links

    def _add_signal(self, signal: Signal, scale: Fraction, start: int, locations: int) -> None:
        location = signal.location + locations if signal.location >= 0 else -1
        moved = replace(signal, times=shifted(signal.times, scale, start), location=location)
        # what a location says about itself is its own; a device's sensor is one sensor, whoever read it
        key = (signal.host, signal.device, signal.name, -1 if signal.device else location)
        other = self.signals.get(key)
        if other is not None:
            kept, left = (moved, other) if _span(moved) > _span(other) else (other, moved)
            if len(left) and _follow(kept, left):
                raise OptionError(
                    f"{signal.name} of {signal.device or 'no device'} on {signal.host} was read by two recordings, one "
                    "after the other: merge joins recordings of one time; compare them, or attribute them one by one"
                )
            if len(left):
                what = f"{signal.name} of {signal.device or 'no device'} on {signal.host}"
                self.noticed.append(
                    Problem("counted-once", f"{what} was read by two recordings; the longer one counts")
                )
            moved = kept
        self.signals[key] = moved

    def recording(self, recordings: Sequence[Recording], placed: Sequence[Placement]) -> Recording:
        first = min(range(len(placed)), key=lambda i: placed[i].start)
        base = recordings[first].clock
        worst = max(place.uncertainty_ns for place in placed)
        if worst:
            text = f"joined by wall clocks, which may differ by up to {2 * worst / 1e6:g} ms between nodes"
            self.noticed.append(Problem("clock", text))
        return Recording(
            clock=Clock(
                self.rate, base.offset_ticks if self.rate == base.ticks_per_s else 0, self.length, base.epoch_ns
            ),
            frames=Frames.of(self.frames),
            nodes=Nodes.of(self.nodes),
            processes=Processes.of(self.processes),
            locations=Locations.of(self.locations),
            spans=MergedSpans(self.parts),
            signals=tuple(self.signals.values()),
            devices=tuple(self.devices.values()),
            topology=tuple(self._links()),
            missing=tuple(self.missing),
            noticed=tuple(self.noticed),
            metadata={
                "name": "merged",
                "merged": [str(recording.metadata.get("name", "")) for recording in recordings],
                "clock": {**about_clock(recordings[first]), "uncertainty_ns": 2 * worst},
            },
        )


def _rank_name(recording: Recording, name: str) -> str:
    """The name of a process with its rank in front, where the recording is that of a rank."""
    rank = (recording.metadata.get("rank") or {}).get("rank")
    return name if rank is None or name.startswith("rank ") else f"rank {rank} {name}".strip()


def _follow(one: Signal, other: Signal) -> bool:
    """Whether the readings of one end before those of the other begin."""
    (first, last, _), (begin, end, _) = one.extent, other.extent
    return last < begin or end < first


def _span(signal: Signal) -> int:
    return int(signal.times[-1] - signal.times[0]) if len(signal) else -1
