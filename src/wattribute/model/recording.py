"""A Recording: what ran and what was metered, on one clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .devices import Device
from .spans import SpanSource, SpanTable
from .tables import Frames, Locations, Nodes, Processes

KINDS = ("counter", "gauge", "delta")
_HOST_KINDS = ("node", "host", "shared memory")


@dataclass(frozen=True)
class Clock:
    """Time is int64 ticks since ``offset_ticks`` of the source's own clock; ``epoch_ns`` is the wall clock there."""

    ticks_per_s: int = 1_000_000_000
    offset_ticks: int = 0
    length_ticks: int = 0
    epoch_ns: int | None = None

    def seconds(self, ticks: Any) -> Any:
        return ticks / self.ticks_per_s

    def ns(self, ticks: Any) -> Any:
        """Nanoseconds, rounded to the nearest; exact integers for scalars, float64 arithmetic for arrays."""
        if isinstance(ticks, np.ndarray):
            return np.rint(ticks * (1e9 / self.ticks_per_s)).astype(np.int64)
        return round(Fraction(int(ticks) * 10**9, self.ticks_per_s))

    def ticks(self, seconds: float) -> int:
        return round(Fraction(seconds) * self.ticks_per_s)


@dataclass(frozen=True)
class Signal:
    """One device's readings over time. Values are raw: multiply by ``scale`` (exact) for ``unit``.

    ``times`` are ticks in file order and may repeat; making them a curve is alignment's work.
    """

    name: str
    kind: str  # one of KINDS
    unit: str  # SI symbol after scaling: "J", "W", "°C", "Hz", "%", "B", "#"
    times: npt.NDArray[np.int64]
    values: npt.NDArray[Any]  # int64, uint64 or float64
    scale: Fraction = Fraction(1)
    host: str = ""
    device: str = ""  # a Device.name on that host, or "" when the signal belongs to none
    location: int = -1  # the row of Locations that recorded it
    latency_s: float | None = None  # update period + delay of the sensor, when known
    wraps_at: int | None = None  # raw modulus of the counter, when known
    stale: bool = False  # known to repeat its value between updates
    estimated: bool = False  # a model said so, not a meter
    gain_error: float | None = None  # relative systematic error, e.g. 0.05
    declared: Mapping[str, Any] = field(default_factory=dict)  # mode, unit, value type as the file says
    clock_error_s: float | None = None  # how far its times may be off those of the spans, either way

    def __len__(self) -> int:
        return len(self.times)


@dataclass(frozen=True)
class Problem:
    """Something that went wrong or looks wrong, in a sentence that says where."""

    kind: str  # a short word to filter on: "truncated", "missing", "nesting", "stale", "mirrored", "wrap", …
    message: str
    location: int | None = None


@dataclass(frozen=True)
class Missing:
    """A location that was declared but could not be read."""

    location: int
    events: int  # as declared
    reason: str


@dataclass(frozen=True)
class Link:
    """These locations use this device, and why we think so."""

    host: str
    device: str
    locations: tuple[int, ...]
    reason: str


@dataclass(frozen=True)
class Recording:
    """One run: frames, locations, spans, signals, topology, clock."""

    clock: Clock = Clock()
    frames: Frames = field(default_factory=lambda: Frames.of([]))
    nodes: Nodes = field(default_factory=lambda: Nodes.of([]))
    processes: Processes = field(default_factory=lambda: Processes.of([]))
    locations: Locations = field(default_factory=lambda: Locations.of([]))
    spans: SpanSource = field(default_factory=lambda: SpanTable({}))
    signals: tuple[Signal, ...] = ()
    devices: tuple[Device, ...] = ()
    topology: tuple[Link, ...] = ()  # what the source or the user says; alignment infers the rest
    missing: tuple[Missing, ...] = ()
    noticed: tuple[Problem, ...] = ()  # while reading; see ``problems``
    metadata: Mapping[str, Any] = field(default_factory=dict)  # "name", "source", "command", "scorep.cfg", "events"…

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What was noticed while reading, and what decoding spans has brought to light so far."""
        return (*self.noticed, *self.spans.problems())

    def host(self, process: int) -> str:
        """The name of the host a process (or a context) runs on."""
        return self.node_host(int(self.processes.node[process]) if process >= 0 else -1)

    def node_host(self, node: int) -> str:
        """The name of the host a system node is, or belongs to: the nearest one with shared memory, else the root."""
        if node not in self._node_hosts:
            self._node_hosts[node] = self._walk_to_host(node)
        return self._node_hosts[node]

    @cached_property
    def _node_hosts(self) -> dict[int, str]:
        """Hosts by node as far as anybody asked: thousands of locations ask for the same."""
        return {}

    def _walk_to_host(self, node: int) -> str:
        at = root = node
        while at >= 0:
            domains = self.nodes.properties[at].get("domain", "").split(",")
            if "shared_memory" in domains or self.nodes.kind[at].lower() in _HOST_KINDS:
                return self.nodes.name[at]
            at, root = int(self.nodes.parent[at]), at
        return self.nodes.name[root] if root >= 0 else ""

    def location_host(self, location: int) -> str:
        return self.host(int(self.locations.process[location]))

    def owner(self, location: int) -> int:
        """The process of a location: for a stream the process that created its context."""
        process = int(self.locations.process[location])
        creator = int(self.processes.creator[process]) if process >= 0 else -1
        return creator if creator >= 0 else process

    def hosts(self) -> Sequence[str]:
        return list(dict.fromkeys(self.host(p) for p in range(len(self.processes))))
