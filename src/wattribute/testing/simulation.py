"""Devices and sensors with a known truth: what a machine drew, what its sensors reported, and which work drew it.

Power over time is a :class:`Wave`, :class:`Steps` or a sum of such; all know their exact integral. A
:class:`Simulation` holds devices, the spans that draw power on them, tenants that are not in the recording, and sensors
with known weaknesses (:class:`SimulatedSensor`). ``run`` gives a Recording and the true energy of every span, frame,
tenant and device. The same seed gives the same bits::

    machine = Simulation(length_s=10, seed=1)
    gpu = machine.device("GPU 0", floor_w=50).counter(period_s=0.1, lag_s=0.02, quantum=0.001)
    machine.stream(gpu, [("gemm", 1.0, 3.0, 250.0), ("reduce", 3.0, 4.0, 60.0)])
    run = machine.run()
    run.frames_j["GPU 0", "gemm"]   # 500 J above the floor
    run.recording
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import OptionError
from ..model import Recording, Signal, Spans
from ..model.constants import COMMAND_CPU_TIME, CPU_TIME, OTHERS_CPU_TIME
from .recordings import HOST, RecordingBuilder, counter, signal, spans

Floats: TypeAlias = npt.NDArray[np.float64]
Task: TypeAlias = tuple[str, float, float, float]  # frame, start and end in seconds, watts while it is innermost
SHAPES = ("boxcar", "running mean", "low pass")  # of a gauge; the first two are means over a window
FAULTS = ("dead", "frozen", "reset", "backwards", "gap", "lost")


class Power(Protocol):
    """Watts over time with their exact integral; times in seconds, scalars or arrays."""

    def power_w(self, s: Any) -> Any: ...

    def energy_j(self, s: Any) -> Any:
        """Joules from 0 to ``s``."""
        ...


@dataclass(frozen=True)
class Wave:
    """Constant power, or a square wave that is high for ``duty`` of each period."""

    high_w: float
    low_w: float | None = None
    period_s: float = 1.0
    duty: float = 1.0

    def power_w(self, s: Any) -> Any:
        low = self.high_w if self.low_w is None else self.low_w
        return np.where(np.asarray(s) / self.period_s % 1 < self.duty, self.high_w, low)[()]

    def energy_j(self, s: Any) -> Any:
        low = self.high_w if self.low_w is None else self.low_w
        whole, on = np.floor(np.asarray(s) / self.period_s), self.duty * self.period_s
        phase = s - whole * self.period_s
        part = self.high_w * np.minimum(phase, on) + low * np.maximum(phase - on, 0)
        return (whole * (self.high_w * on + low * (self.period_s - on)) + part)[()]


class Steps:
    """Power that changes at ``edges_s`` only: ``watts[i]`` from edge i to the next; the ends reach on beyond."""

    def __init__(self, edges_s: npt.ArrayLike, watts: npt.ArrayLike) -> None:
        self.edges_s, self.watts = np.asarray(edges_s, np.float64), np.asarray(watts, np.float64)
        if len(self.edges_s) != len(self.watts) + 1 or not (np.diff(self.edges_s) > 0).all() or not len(self.watts):
            raise OptionError("steps need one edge more than watts, and edges that ascend")
        self._joules = np.concatenate([[0.0], np.cumsum(np.diff(self.edges_s) * self.watts)])
        self._joules -= self._integral(0.0)

    @classmethod
    def of(cls, function: Callable[[Floats], npt.ArrayLike], length_s: float, step_s: float) -> Steps:
        """A function of seconds, constant for each step at what it is in the middle of it."""
        edges = np.append(np.arange(0.0, length_s - step_s / 2, step_s), length_s)
        return cls(edges, function((edges[1:] + edges[:-1]) / 2))

    def power_w(self, s: Any) -> Any:
        return self.watts[np.clip(np.searchsorted(self.edges_s, s, "right") - 1, 0, len(self.watts) - 1)]

    def energy_j(self, s: Any) -> Any:
        return self._integral(s)

    def _integral(self, s: Any) -> Any:
        at = np.clip(np.searchsorted(self.edges_s, s, "right") - 1, 0, len(self.watts) - 1)
        return self._joules[at] + (s - self.edges_s[at]) * self.watts[at]


class Sum:
    """Powers added up."""

    def __init__(self, *parts: Power) -> None:
        self.parts = parts

    def power_w(self, s: Any) -> Any:
        return sum((part.power_w(s) for part in self.parts), np.zeros(np.shape(s)))[()]

    def energy_j(self, s: Any) -> Any:
        return sum((part.energy_j(s) for part in self.parts), np.zeros(np.shape(s)))[()]


# -------------------------------------------------------------------------------------------------------------- sensors


@dataclass(frozen=True)
class Fault:
    """What a sensor does wrong from ``begin_s`` until ``end_s``.

    ``dead``: a counter stays where it is for good, a gauge says 0. ``frozen``: the last value is repeated, then the
    right one comes back. ``reset``: the counter starts again from 0. ``backwards``: the counter falls as fast as it
    should rise. ``gap``: no readings. ``lost``: no readings until the end.
    """

    kind: str
    begin_s: float = 0.0
    end_s: float = float("inf")

    def __post_init__(self) -> None:
        if self.kind not in FAULTS:
            raise OptionError.unknown("fault", self.kind, FAULTS)


@dataclass(frozen=True)
class SimulatedSensor:
    """Model of a sensor of a device.

    It updates every ``period_s`` (0: always), ``phase_s`` after zero, give or take ``update_jitter_s``. An update holds
    what was true ``lag_s`` before: a counter the energy up to there, a gauge the mean power over the ``window_s`` that
    ended there (0: the power at that moment; where ``shape`` is "low pass" the window is a time constant). The value is
    gain × truth + offset_w + noise, in steps of ``quantum`` joules or watts. It is read every ``read_s`` (0: once per
    update), each time up to ``jitter_s`` later, and once more at the end. A counter of ``wraps_at_j`` joules starts
    again from 0 there.
    """

    kind: str  # "counter" or "gauge"
    name: str
    period_s: float = 0.0
    phase_s: float = 0.0
    update_jitter_s: float = 0.0
    read_s: float = 0.0
    jitter_s: float = 0.0
    lag_s: float = 0.0
    window_s: float = 0.0
    shape: str = "boxcar"  # of a gauge: one of SHAPES
    gain: float = 1.0
    offset_w: float = 0.0
    noise_w: float = 0.0  # standard deviation; per update
    quantum: float = 1e-6
    wraps_at_j: float | None = None
    start_j: float = 1000.0  # what a counter had counted before
    faults: tuple[Fault, ...] = ()
    estimated: bool = False
    signal: Mapping[str, Any] = field(default_factory=dict)  # other fields of the Signal: gain_error, declared, …

    def read_times_s(self, length_s: float, generator: np.random.Generator) -> Floats:
        """When it is read, at the end once more; ascending, without gaps of its faults."""
        every = self.read_s or self.period_s
        if every <= 0:
            raise OptionError(f"sensor {self.name!r} needs period_s or read_s")
        at = np.arange(self.phase_s if not self.read_s else 0.0, length_s + every / 2, every)
        at = at + generator.uniform(0, self.jitter_s, len(at)) if self.jitter_s else at
        at = np.append(np.sort(at[at < length_s]), length_s)
        for fault in self.faults:
            if fault.kind in ("gap", "lost"):
                end = float("inf") if fault.kind == "lost" else fault.end_s
                at = at[(at < fault.begin_s) | (at >= end)]
        return at

    def updates_s(self, at: Floats, generator: np.random.Generator) -> Floats:
        """The moment of the update that each reading shows; a frozen sensor shows the last one before it froze."""
        asked = at.copy()
        for fault in self.faults:
            if fault.kind == "frozen":
                asked[(at >= fault.begin_s) & (at < fault.end_s)] = np.nextafter(fault.begin_s, -np.inf)
        if not self.period_s or not len(at):
            return np.asarray(asked)
        first, last = (np.floor((s - self.phase_s) / self.period_s) for s in (asked.min(), asked.max()))
        moments = np.arange(first - 1, last + 2) * self.period_s + self.phase_s
        if self.update_jitter_s:
            moments = np.sort(moments + generator.uniform(-self.update_jitter_s, self.update_jitter_s, len(moments)))
        # an update that is read at that very moment is seen: rounding must not move the reading before it
        return np.asarray(moments[np.searchsorted(moments, asked + 1e-9 * self.period_s, "right") - 1])

    def raw(self, power: Power, at: Floats, generator: np.random.Generator) -> npt.NDArray[np.int64]:
        """What it says at these moments, in whole quanta."""
        updates, which = np.unique(self.updates_s(at, generator), return_inverse=True)
        noise = generator.normal(0.0, self.noise_w, len(updates)) if self.noise_w else 0.0
        seen = updates - self.lag_s
        if self.kind == "counter":
            value = self._counted(power, seen) + np.cumsum(noise * np.diff(updates, prepend=updates[:1]))
        else:
            value = self.gain * self._shown(power, seen) + self.offset_w + noise
            value = np.where(_inside(updates, self.faults, "dead"), 0.0, value)
        whole = np.floor(value / self.quantum + 1e-6).astype(np.int64)[which.reshape(-1)]
        return whole % self.wraps_at if self.wraps_at is not None else whole

    @property
    def wraps_at(self) -> int | None:
        return None if self.wraps_at_j is None else round(self.wraps_at_j / self.quantum)

    def _counted(self, power: Power, seen: Floats) -> Floats:
        def true_j(s: Any) -> Any:
            return self.gain * power.energy_j(s) + self.offset_w * s

        value = self.start_j + true_j(seen)
        for fault in self.faults:
            begin, end = fault.begin_s - self.lag_s, fault.end_s - self.lag_s
            since = true_j(np.clip(seen, begin, end)) - true_j(begin)
            if fault.kind == "dead":
                value = value - np.where(seen > begin, true_j(np.maximum(seen, begin)) - true_j(begin), 0.0)
            elif fault.kind == "backwards":
                value = value - 2 * since
            elif fault.kind == "reset":
                value = value - np.where(seen >= begin, self.start_j + true_j(begin), 0.0)
        return np.asarray(value)

    def _shown(self, power: Power, seen: Floats) -> Floats:
        if self.shape not in SHAPES:
            raise OptionError.unknown("shape of a sensor", self.shape, SHAPES)
        if not self.window_s:
            return np.asarray(power.power_w(seen), np.float64)
        if self.shape == "low pass":
            return _low_pass(power, seen, self.window_s)
        return np.asarray((power.energy_j(seen) - power.energy_j(seen - self.window_s)) / self.window_s)


def _inside(at: Floats, faults: Iterable[Fault], kind: str) -> npt.NDArray[np.bool_]:
    inside = np.zeros(len(at), bool)
    for fault in faults:
        if fault.kind == kind:
            inside |= (at >= fault.begin_s) & (at < fault.end_s)
    return inside


def _low_pass(power: Power, seen: Floats, constant_s: float, slices: int = 400, block: int = 4096) -> Floats:
    """∫ P(t − a) e^(−a/τ) da / τ over 20 τ, from exact means over slices of τ/20; in blocks, to be small."""
    edges = np.linspace(0.0, 20.0, slices + 1)
    weight = np.exp(-edges[:-1]) - np.exp(-edges[1:])
    weight /= weight.sum() * np.diff(edges) * constant_s
    pieces = (seen[at : at + block, None] - edges * constant_s for at in range(0, len(seen), block))
    return np.concatenate([np.empty(0), *(-np.diff(power.energy_j(piece), axis=1) @ weight for piece in pieces)])


# -------------------------------------------------------------------------------------------------------------- machine


@dataclass
class SimulatedDevice:
    """A device of a simulation: a floor and what draws power above it, parts, and the sensors on it."""

    name: str
    host: str
    floor_w: float = 0.0
    parts: tuple[SimulatedDevice, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    mirror_of: SimulatedDevice | None = None
    sensors: list[SimulatedSensor] = field(default_factory=list)
    lanes: list[Power] = field(default_factory=list)  # drawn by spans
    tenants: list[tuple[str, Power]] = field(default_factory=list)
    others: list[Power] = field(default_factory=list)  # drawn by no span and no tenant

    @property
    def power(self) -> Power:
        """All it draws: floor (of a node: what no part draws), spans, tenants, others and parts."""
        if self.mirror_of is not None:
            return self.mirror_of.power
        tenants = (power for _, power in self.tenants)
        return Sum(Wave(self.floor_w), *self.lanes, *tenants, *self.others, *(part.power for part in self.parts))

    def draw(self, power: Power) -> SimulatedDevice:
        """Add power that belongs to no span and no tenant."""
        self.others.append(power)
        return self

    def counter(self, period_s: float = 0.0, name: str = "energy", **how: Any) -> SimulatedDevice:
        """Add an energy counter; ``how`` are fields of :class:`SimulatedSensor`."""
        self.sensors.append(SimulatedSensor("counter", name, period_s, **how))
        return self

    def gauge(self, period_s: float = 0.0, name: str = "power", **how: Any) -> SimulatedDevice:
        """Add a power gauge; ``how`` are fields of :class:`SimulatedSensor`."""
        self.sensors.append(SimulatedSensor("gauge", name, period_s, **how))
        return self


@dataclass(frozen=True)
class SimulatedRun:
    """A Recording and the truth behind it, in joules from the start to the end of the simulation.

    A device is named "GPU 0", on a host that is not the simulation's first "HOST/GPU 0". For each device without parts
    that is no mirror: Σ frames_j + Σ tenants_j + floor_j + others_j = energy_j.
    """

    recording: Recording
    powers: Mapping[str, Power]  # by device
    spans_j: Mapping[int, Floats]  # location → joules of each span itself, above the floor
    frames_j: Mapping[tuple[str, str], float]  # (device, frame) → the same, added up
    tenants_j: Mapping[tuple[str, str], float]  # (device, tenant)
    floor_j: Mapping[str, float]
    others_j: Mapping[str, float]  # drawn by no span and no tenant
    length_s: float

    def energy_j(self, device: str, begin_s: float = 0.0, end_s: float | None = None) -> float:
        """True energy of a device."""
        return _used_j(self.powers[device], begin_s, self.length_s if end_s is None else end_s)

    def ideal(self, every_s: float = 1e-3) -> Recording:
        """The recording with one counter per device that is always right, read where a span starts or ends and every
        ``every_s``: what ``attribute`` answers for it is the truth under the rule that was asked for."""
        recording = self.recording
        rate, last = recording.clock.ticks_per_s, recording.clock.length_ticks
        ends = [getattr(recording.spans.spans(at), name) for at in self.spans_j for name in ("start", "end")]
        grid = np.append(np.arange(0, last, max(1, round(every_s * rate))), last)
        times = np.unique(np.clip(np.concatenate([grid, *ends]), 0, last))
        exact = (
            counter(power.energy_j(times / rate), times, device=device.name, host=device.host)
            for device, power in zip(recording.devices, self.powers.values(), strict=True)
        )
        return replace(recording, signals=tuple(exact))


@dataclass(frozen=True)
class _Lane:
    """A thread or stream: the device it loads, its spans and the watts of each."""

    device: SimulatedDevice
    tasks: tuple[Task, ...]  # in the order they began
    spans: Spans  # frames are numbered within the lane
    process: str
    name: str | None
    kind: str  # of the location: "cpu" or "gpu"
    cores: float = 0.0  # CPU seconds per second inside a span
    sleeping: tuple[str, ...] = ()  # frames in which it uses none


class Simulation:
    """A machine and the programs on it; see the module's first lines."""

    def __init__(
        self, length_s: float, seed: int = 0, ticks_per_s: int = 10**9, host: str = HOST, **metadata: Any
    ) -> None:
        self.length_s, self.ticks_per_s, self.host = length_s, ticks_per_s, host
        self._seed, self._metadata = seed, metadata
        self._devices: list[SimulatedDevice] = []
        self._lanes: list[_Lane] = []
        self._cores: list[tuple[SimulatedDevice, Power]] = []  # of tenants: device, core-seconds over time
        self._frames: list[str | Sequence[Any]] = []

    def frames(self, *rows: str | Sequence[Any]) -> Simulation:
        """Declare frames, as ``RecordingBuilder.frames`` does: their order, and what they are."""
        self._frames += rows
        return self

    def device(
        self,
        name: str,
        floor_w: float = 0.0,
        contains: Sequence[SimulatedDevice] = (),
        host: str | None = None,
        **properties: str,
    ) -> SimulatedDevice:
        """Add a device; one that ``contains`` others draws what they draw and its own floor (fans, boards)."""
        self._devices.append(SimulatedDevice(name, host or self.host, floor_w, tuple(contains), properties))
        return self._devices[-1]

    def mirror(self, of: SimulatedDevice, name: str) -> SimulatedDevice:
        """Add a second name of a device: its sensors say what the first one's say."""
        self._devices.append(SimulatedDevice(name, of.host, mirror_of=of))
        return self._devices[-1]

    def thread(
        self,
        device: SimulatedDevice,
        tasks: Iterable[Task],
        process: str = "process",
        name: str = "main thread",
        cores: float = 1.0,
        sleeping: Sequence[str] = (),
    ) -> Simulation:
        """Add a thread whose spans (nested by time) draw power on a device above its floor, and use CPU time.

        Its CPU time is a signal of the recording unless ``cores`` is 0; in frames that are ``sleeping`` it uses none.
        """
        return self._add(device, tasks, process, name, "cpu", cores, sleeping)

    def stream(
        self, device: SimulatedDevice, tasks: Iterable[Task], process: str = "process", name: str | None = None
    ) -> Simulation:
        """Add a GPU stream whose kernels draw power on a device above its floor."""
        return self._add(device, tasks, process, name, "gpu")

    def _add(
        self,
        device: SimulatedDevice,
        tasks: Iterable[Task],
        process: str,
        name: str | None,
        kind: str,
        cores: float = 0.0,
        sleeping: Sequence[str] = (),
    ) -> Simulation:
        rows = tuple(sorted(tasks, key=lambda task: (task[1], -task[2])))
        number = {frame: i for i, frame in enumerate(dict.fromkeys(row[0] for row in rows))}
        rate = self.ticks_per_s
        columns = spans((round(start * rate), round(end * rate), number[frame]) for frame, start, end, _ in rows)
        self._lanes.append(_Lane(device, rows, columns, process, name, kind, cores, tuple(sleeping)))
        if rows:
            edges, innermost = _pieces(columns)
            watts = np.array([*(row[3] for row in rows), 0.0])  # −1, no span, is the last
            padded = np.concatenate([[edges[0] - rate], edges, [edges[-1] + rate]]) / rate
            device.lanes.append(Steps(padded, np.concatenate([[0.0], watts[innermost], [0.0]])))
        return self

    def tenant(self, device: SimulatedDevice, name: str, power: Power, cores: float | Power = 0.0) -> Simulation:
        """Add a program that is not in the recording: it draws power and keeps cores busy."""
        device.tenants.append((name, power))
        if cores:
            self._cores.append((device, Wave(cores) if isinstance(cores, int | float) else cores))
        return self

    def run(self) -> SimulatedRun:
        """The recording and the truth; a second call gives the same."""
        last = round(self.length_s * self.ticks_per_s)
        builder = RecordingBuilder(self.ticks_per_s, length_ticks=last, **self._metadata).frames(*self._frames)
        spans_j, frames_j = {}, defaultdict[tuple[str, str], float](float)
        for at, lane in enumerate(self._lanes):
            self._record(builder, lane)
            edges, innermost = _pieces(lane.spans)
            self_ticks = np.bincount(innermost + 1, np.diff(edges), len(lane.spans) + 1)[1:]
            spans_j[at] = self_ticks / self.ticks_per_s * np.array([task[3] for task in lane.tasks])
            for (frame, *_), joules in zip(lane.tasks, spans_j[at].tolist(), strict=True):
                frames_j[self._key(lane.device), frame] += joules
        self._meter(builder)
        builder.signals(*self._cpu_times(last))
        leaves = [device for device in self._devices if device.mirror_of is None and not device.parts]
        used = partial(_used_j, begin_s=0.0, end_s=self.length_s)
        return SimulatedRun(
            builder.recording(),
            {self._key(device): device.power for device in self._devices},
            spans_j,
            dict(frames_j),
            {(self._key(device), name): used(power) for device in leaves for name, power in device.tenants},
            {self._key(device): device.floor_w * self.length_s for device in leaves},
            {self._key(device): used(Sum(*device.others)) for device in leaves},
            self.length_s,
        )

    def _key(self, device: SimulatedDevice) -> str:
        return device.name if device.host == self.host else f"{device.host}/{device.name}"

    def _record(self, builder: RecordingBuilder, lane: _Lane) -> None:
        rows = [(int(lane.spans.start[i]), int(lane.spans.end[i]), task[0]) for i, task in enumerate(lane.tasks)]
        builder.host(lane.device.host).process(lane.process)
        if lane.kind == "cpu":
            builder.thread(rows, lane.name or "main thread")
        else:
            builder.stream(rows, lane.name, gpu=lane.device.name.removeprefix("GPU "))

    def _meter(self, builder: RecordingBuilder) -> None:
        readings: dict[int, list[Signal]] = {}
        streams = iter(np.random.SeedSequence(self._seed).spawn(sum(len(device.sensors) for device in self._devices)))
        for device in self._devices:
            builder.host(device.host).device(device.name, **device.properties)
            users = [at for at, lane in enumerate(self._lanes) if lane.device is device]
            if users:
                builder.link(device.name, *users)
            if device.mirror_of is not None:
                signals = [replace(one, device=device.name) for one in readings[id(device.mirror_of)]]
            else:
                signals = [self._read(device, one, np.random.default_rng(next(streams))) for one in device.sensors]
            readings[id(device)] = signals
            builder.signals(*signals)

    def _read(self, device: SimulatedDevice, sensor: SimulatedSensor, generator: np.random.Generator) -> Signal:
        at = sensor.read_times_s(self.length_s, generator)
        ticks = np.rint(at * self.ticks_per_s).astype(np.int64)
        fields: dict[str, Any] = {
            "scale": Fraction(repr(sensor.quantum)),
            "wraps_at": sensor.wraps_at,
            "estimated": sensor.estimated,
            "latency_s": sensor.period_s + sensor.lag_s or None,
        }
        return signal(
            sensor.kind,
            sensor.raw(device.power, ticks / self.ticks_per_s, generator),
            ticks,
            sensor.name,
            "J" if sensor.kind == "counter" else "W",
            device=device.name,
            host=device.host,
            **fields | dict(sensor.signal),
        )

    def _cpu_times(self, last: int) -> Iterator[Signal]:
        """CPU seconds of each thread, read every 10 ms and where a span starts or ends (as profiles place them), and of
        each host's tenants together; where several packages of a host are used, those of the threads and of the tenants
        of each."""
        times = np.append(np.arange(0, last, max(1, self.ticks_per_s // 100)), last)
        micro: dict[str, Any] = {"unit": "s", "scale": Fraction(1, 10**6)}
        used: list[tuple[SimulatedDevice, Floats]] = []
        for at, lane in enumerate(self._lanes):
            if lane.cores and len(lane.spans):
                edges, innermost = _pieces(lane.spans)
                works = np.array([*(task[0] not in lane.sleeping for task in lane.tasks), False])  # −1: no span
                busy = np.concatenate([[0], np.cumsum(np.diff(edges) * works[innermost])])
                used.append((lane.device, np.interp(times, edges, busy) / self.ticks_per_s * lane.cores))
                name, host = CPU_TIME, lane.device.host
                knots = np.union1d(times, edges[(edges >= 0) & (edges <= last)])
                spent = _micro(np.interp(knots, edges, busy) / self.ticks_per_s * lane.cores)
                yield counter(spent, knots, name, device="", host=host, location=at, **micro)
        tenants = [(device, cores.energy_j(times / self.ticks_per_s)) for device, cores in self._cores]
        for host in dict.fromkeys(device.host for device, _ in tenants):
            names = {device.name for device, _ in (*used, *tenants) if device.host == host}
            packages = sorted(name for name in names if name.startswith("package "))
            each = [*packages, ""] if len(packages) > 1 else [""]  # "" has what is no package's
            both = ((COMMAND_CPU_TIME, used), (OTHERS_CPU_TIME, tenants))
            for name, clocks in both if len(packages) > 1 else both[1:]:
                for package in each:
                    here = (c for d, c in clocks if d.host == host and (d.name if d.name in each else "") == package)
                    whole = sum(here, np.zeros(len(times)))
                    yield counter(_micro(whole), times, name, device=package, host=host, **micro)


def _micro(seconds: Any) -> npt.NDArray[np.int64]:
    return np.rint(np.asarray(seconds) * 1e6).astype(np.int64)


def _used_j(power: Power, begin_s: float, end_s: float) -> float:
    return float(power.energy_j(end_s) - power.energy_j(begin_s))


def _pieces(columns: Spans) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The ticks at which a span starts or ends, and in between the row of the innermost open span (−1: none)."""
    edges = np.unique(np.concatenate([columns.start, columns.end]))
    innermost = np.full(max(0, len(edges) - 1), -1, np.int64)
    first, last = np.searchsorted(edges, columns.start), np.searchsorted(edges, columns.end)
    for depth in range(int(columns.depth.max()) + 1 if len(columns) else 0):  # spans of one depth do not overlap
        rows = np.flatnonzero(columns.depth == depth)
        lengths = last[rows] - first[rows]
        begins = np.repeat(first[rows] - np.cumsum(lengths) + lengths, lengths)
        innermost[begins + np.arange(lengths.sum())] = np.repeat(rows, lengths)
    return edges, innermost
