"""A Recording: what ran and what was metered, on one clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ..errors import OptionError, printable
from . import display, labels
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

    def moment(self, text: str | float | None) -> int | None:
        """Ticks of a moment: seconds since the start, or ISO 8601 when the recording knows its wall clock."""
        if text is None:
            return None
        try:
            return self.ticks(float(text))
        except (ValueError, OverflowError):
            pass
        ns = epoch_ns(str(text))
        if self.epoch_ns is None:
            raise OptionError(f"time {text!r}: this recording has no wall clock; give seconds since its start")
        return round(Fraction((ns - self.epoch_ns) * self.ticks_per_s, 10**9))


def epoch_ns(text: str) -> int:
    """Nanoseconds since 1970 of an ISO 8601 time; without a zone it is UTC."""
    try:
        at = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError as error:
        raise OptionError(f"time {text!r} is neither seconds nor ISO 8601 (2026-01-31T12:00:00+00:00)") from error
    since = (at if at.tzinfo else at.replace(tzinfo=timezone.utc)) - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000


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
    estimated: bool = False  # by a model, not a meter
    gain_error: float | None = None  # relative systematic error, e.g. 0.05
    declared: Mapping[str, Any] = field(default_factory=dict)  # mode, unit, value type as the file says
    clock_error_s: float | None = None  # how far its times may be off those of the spans, either way
    polled: bool = False  # read on a schedule of ours: a change was made after the reading before the one that shows it

    def __len__(self) -> int:
        return len(self.times)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the values."""
        return self.values.dtype

    @cached_property
    def extent(self) -> tuple[int, int, float]:
        """The times of the first and the last reading, and the median time between two."""
        times = self.times
        return int(times[0]), int(times[-1]), median_step(times) if len(times) > 1 else 0.0

    @cached_property
    def moves(self) -> bool:
        """Whether any reading differs from the first."""
        return bool((self.values != self.values[:1]).any())


def median_step(times: npt.NDArray[np.int64]) -> float:
    """The median of the differences of two times or more; ``np.median`` takes ten times as long for few."""
    if len(times) == 2:
        return float(times[1] - times[0])
    steps = np.sort(np.diff(times))
    return (float(steps[(len(steps) - 1) // 2]) + float(steps[len(steps) // 2])) / 2


REMARKS = frozenset(("declared", "timeline", "gauge", "joined", "no-energy"))  # kinds of problems that are no alarm


@dataclass(frozen=True)
class Problem:
    """Something that went wrong or looks wrong, in a sentence that says where."""

    kind: str  # a short word to filter on: "truncated", "missing", "nesting", "stale", "mirrored", "wrap", …
    message: str
    location: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", printable(self.message))


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


@dataclass(frozen=True, repr=False)
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

    def __repr__(self) -> str:
        return display.text(*self._described())

    def _repr_html_(self) -> str:
        return display.html(*self._described())

    def _described(self) -> tuple[str, dict[str, str]]:
        """A title and facts; nothing is decoded for them."""
        kinds = {kind: self.locations.kind.count(kind) for kind in dict.fromkeys(self.locations.kind)}
        places = ", ".join(f"{n:,} {kind}" for kind, n in kinds.items()) or "none"
        facts = {
            "time": f"{self.clock.seconds(self.clock.length_ticks):.6g} s",
            "hosts": display.listed(self.hosts()),
            "processes": f"{len(self.processes):,}: {display.listed(self.processes.name)}",
            "locations": places,
            "frames": f"{len(self.frames):,}",
            "metered": f"{display.listed(device.name for device in self.devices)} ({len(self.signals):,} signals)",
        }
        if self.noticed:
            facts["problems"] = f"{len(self.noticed):,}, the first: {self.noticed[0].message}"
        return f"Recording {str(self.metadata.get('name', ''))!r}", facts

    @property
    def energy_j(self) -> float | None:
        """The joules that the devices of the ledger measured; None where no energy was metered."""
        # the ledger is made above this layer, so that it is looked up when asked for
        middle = import_module("wattribute.engines.middle")
        return cast("float | None", middle.measured_j(self))

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What was noticed while reading, and what decoding spans has brought to light so far."""
        return (*self.noticed, *self.spans.problems())

    @property
    def life(self) -> tuple[int | None, int | None]:
        """From the start to the end of the command that was run, in ticks; None where it is not known."""
        run = self.metadata.get("run", {})
        return run.get("start_ticks"), run.get("end_ticks")

    def host(self, process: int) -> str:
        """The name of the host a process (or a context) runs on."""
        return self.process_hosts[process] if process >= 0 else ""

    @cached_property
    def process_hosts(self) -> list[str]:
        """The host of each process."""
        return list(map(self.node_host, self.processes.node.tolist()))

    def node_host(self, node: int) -> str:
        """The name of the host a system node is, or belongs to: the nearest one with shared memory, else the root."""
        if node not in self._node_hosts:
            self._node_hosts[node] = self._walk_to_host(node)
        return self._node_hosts[node]

    @cached_property
    def _node_hosts(self) -> dict[int, str]:
        """Cache of hosts by node: thousands of locations ask for the same."""
        return {}

    def _walk_to_host(self, node: int) -> str:
        at = root = node
        while at >= 0:
            if self.is_host(at):
                return self.nodes.name[at]
            at, root = int(self.nodes.parent[at]), at
        return self.nodes.name[root] if root >= 0 else ""

    def is_host(self, node: int) -> bool:
        """Whether a system node is a host: memory is shared in it."""
        domains = self.nodes.properties[node].get("domain", "").split(",")
        return "shared_memory" in domains or self.nodes.kind[node].lower() in _HOST_KINDS

    def processes_below(self, node: int) -> set[int]:
        """The processes and contexts that run on a system node or on one below it."""
        below = {node}
        children: dict[int, list[int]] = {}
        for child, parent in enumerate(self.nodes.parent.tolist()):
            children.setdefault(parent, []).append(child)
        waiting = [node]
        while waiting:
            for child in children.get(waiting.pop(), ()):
                if child not in below:
                    below.add(child)
                    waiting.append(child)
        return {process for process, at in enumerate(self.processes.node.tolist()) if at in below}

    def locations_of(self, processes: Iterable[int]) -> tuple[int, ...]:
        """The locations of some processes and contexts that may hold spans, ascending."""
        return tuple(sorted(row for process in processes for row in self._by_process.get(process, ())))

    @cached_property
    def _by_process(self) -> dict[int, list[int]]:
        rows: dict[int, list[int]] = {}
        for row, (kind, process) in enumerate(zip(self.locations.kind, self.locations.process.tolist(), strict=True)):
            if kind != "metric":
                rows.setdefault(process, []).append(row)
        return rows

    def signals_on(self, host: str) -> Sequence[Signal]:
        """The signals of a host."""
        return self._by_host.get(host, ())

    def signals_of(self, device: Device) -> Sequence[Signal]:
        """The signals of a device: names of devices repeat from host to host."""
        return [signal for signal in self.signals_on(device.host) if signal.device == device.name]

    def links_of(self, device: Device) -> Sequence[Link]:
        """The links of a device that the source declares."""
        return self._links.get((device.host, device.name), ())

    @cached_property
    def _links(self) -> dict[tuple[str, str], list[Link]]:
        links: dict[tuple[str, str], list[Link]] = {}
        for link in self.topology:
            links.setdefault((link.host, link.device), []).append(link)
        return links

    @cached_property
    def _by_host(self) -> dict[str, list[Signal]]:
        signals: dict[str, list[Signal]] = {}
        for signal in self.signals:
            signals.setdefault(signal.host, []).append(signal)
        return signals

    def location_host(self, location: int) -> str:
        """The name of the host a location runs on."""
        return self.location_hosts[location]

    @cached_property
    def location_hosts(self) -> list[str]:
        """The host of each location."""
        return list(map(self.host, self.locations.process.tolist()))

    def owner(self, location: int) -> int:
        """The process of a location: for a stream the process that created its context."""
        return self.owners[location]

    @cached_property
    def owners(self) -> list[int]:
        """The process of each location, see ``owner``."""
        creators = [*self.processes.creator.tolist(), -1]  # of process −1 behind all others
        processes = self.locations.process.tolist()
        return [creators[process] if creators[process] >= 0 else process for process in processes]

    @cached_property
    def process_labels(self) -> list[str]:
        """A name per process, each once."""
        return labels.process_labels(self)

    @cached_property
    def location_labels(self) -> list[str]:
        """A name per location, each once."""
        return labels.location_labels(self)

    @cached_property
    def node_labels(self) -> list[str]:
        """A name per system node, each once."""
        return labels.node_labels(self)

    def hosts(self) -> Sequence[str]:
        """The names of all hosts, in the order of processes."""
        return list(dict.fromkeys(self.process_hosts))
