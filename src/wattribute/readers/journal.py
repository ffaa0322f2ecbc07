"""Journal → Recording, at the end of a run or after its writer was killed (the reader plug-in "journal").

One host, one process, one location "command" with one span (the child's life), every channel a signal, and a topology
that lets the command use every device: attribution works on it unchanged. Regions that the program marked itself, and
stacks that a profile saw, are joined first and then take the place of that span. Counters that never moved are left
out and named as dead, as is the time in which one no longer moved; estimates are left out where a sensor measured the
same kind of device.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib.metadata import version
from itertools import chain
from mmap import mmap
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import damage_as_format_error
from ..journal import file as journal
from ..journal.layouts import PERF_ADDRESS
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
    SpanTable,
)
from ..model.constants import COMMAND_CPU_TIME, COMMAND_SHARE, COMMAND_SLICES, DEAD_S, OTHERS_CPU_TIME
from ..model.ledger import needless_estimates
from ..model.select import select_metrics
from ..model.stored import StoredSignal
from ..model.validity import check
from ..plugins import Selection
from . import region_files, stack_files
from .column_file import ReadingStore, StoredColumns

STALE_S = 0.003  # sensors that refresh less often than this repeat their value between readings
USUAL = 0.9  # of the spacings of changes: the few longer ones are readings that came late
_STOPPED_RATIO = 10  # standing still so many times longer than ever before is a counter's end
_NAME_LENGTH = 200
_SHARES = {COMMAND_SHARE: "shares", COMMAND_SLICES: "slices"}  # by what events name them
_BATCH_LOOKS = 1 << 14


def detects(path: Path) -> bool:
    """Whether this folder holds a journal, which a finished recording does not (the reader plug-in "journal")."""
    return (path / journal.NAME).is_file()


def read(path: Path, selection: Selection) -> Recording:
    """The reader plug-in "journal": everything that was sampled before the writer was killed."""
    return select_metrics(recover(path), selection.metric)


def recover(folder: Path) -> Recording:
    """The Recording in a folder whose writer was killed, or is still at work."""
    file = folder / journal.NAME
    alive = journal.is_being_written(folder)
    recording = build(journal.mapped(file), file, folder / "regions")
    state = (
        "is still being recorded; this is what there is so far"
        if alive
        else "recovered from its journal (the recorder was stopped)"
    )
    problem = Problem("partial", f"{folder}: {state}")
    return replace(recording, noticed=(*recording.noticed, problem))


@dataclass(frozen=True)
class _Channel:
    """One channel of the journal with its readings."""

    meter: str
    about: dict[str, Any]
    columns: StoredColumns

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def times(self) -> Any:
        """Monotonic ns."""
        return self.columns.times()

    @property
    def values(self) -> Any:
        return self.columns.values()

    def holding(self, times: Any, values: Any) -> _Channel:
        """The same channel with other readings."""
        store = self.columns.store
        return replace(self, columns=replace(self.columns, pieces=(store.add(times, values),)))

    @property
    def device(self) -> str:
        return str(self.about["device"]["name"])

    @property
    def kind_of_device(self) -> str:
        return str(self.about["device"]["kind"])

    def is_energy(self) -> bool:
        return self.about["unit"] in ("J", "W")

    def is_dead(self) -> bool:
        if self.about["kind"] != "counter" or len(self) < 2:
            return False
        times, values = self.times, self.values
        watched_s = (times[-1] - times[0]) / 1e9
        still = bool((values == values[0]).all())
        return still and watched_s >= max(DEAD_S, 3 * (self.about["period_s"] or 0.0))

    def last_move(self) -> int | None:
        """The reading after which an energy counter no longer moved, though it was read; None: it moved to the end."""
        if self.about["kind"] != "counter" or self.about["unit"] != "J" or self.about["estimated"]:
            return None
        values = self.values
        moves = np.flatnonzero(values[1:] != values[:-1]) + 1
        if len(moves) <= _STOPPED_RATIO or len(self) - moves[-1] <= _STOPPED_RATIO:
            return None
        times = self.times
        still_ns, longest_ns = times[-1] - times[moves[-1]], np.diff(times[moves]).max()
        return int(moves[-1]) if still_ns >= max(DEAD_S * 1e9, _STOPPED_RATIO * longest_ns) else None


def build(data: bytes | mmap, path: Path, regions: Path | None = None) -> Recording:
    """The Recording of a journal's bytes; ``path`` is for messages, ``regions`` the folder of regions' files."""
    columns = _Columns(path.parent)
    content = journal.parse(data, path, columns)
    with damage_as_format_error(path):
        return _build(content, columns, path, regions)


def _build(content: journal.Content, columns: _Columns, path: Path, regions: Path | None) -> Recording:
    channels = [channel for number in range(len(content.readings)) for channel in columns.channels(content, number)]
    problems = [Problem("meter", event["problem"]) for event in content.events if "problem" in event]
    if content.cut:
        problems.append(Problem("cut", f"{path}: ends in the middle of a record; all before it is kept"))
    profiled = [] if regions is None else stack_files.profiled_processes(regions)
    channels = _living(_with_edges(channels, regions, profiled), problems)
    clock = _clock(content, channels)
    host = str(content.about.get("host", ""))
    recording = Recording(
        clock=clock,
        nodes=Nodes.of([(0, host, "node")]),
        devices=_devices(channels, host),
        signals=(*(_signal(channel, host, clock) for channel in channels), *columns.accounts(host, clock)),
        noticed=tuple(problems),
        metadata=_metadata(content, clock.offset_ticks),
    )
    recording = _with_spans(recording, content, regions, profiled)
    check(recording)
    return recording


def fields(channels: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The columns of one meter's readings: time and value of each channel."""
    columns: list[tuple[str, str]] = []
    for i, about in enumerate(channels):
        columns += [(f"t{i}", "<i8"), (f"v{i}", "<i8" if about["whole"] else "<f8")]
    return columns


class _Columns:
    """Readings by channel, and the events that say who used the CPUs and GPUs, four a second.

    Readings that failed are left out: most channels of a GPU are read seldom, and most cells are empty.
    """

    def __init__(self, folder: Path) -> None:
        self._store = ReadingStore(folder)
        self._pieces: dict[tuple[int, int], list[Any]] = {}  # by number of the meter and of the channel
        self._accounts, self._looks = Accounts("", Clock(1_000_000_000)), list[dict[str, Any]]()
        self._account_parts: dict[tuple[str, str], list[Signal]] = {}  # by name and device

    def readings(self, meter: dict[str, Any], number: int, block: bytes) -> None:
        table = np.frombuffer(block, dtype=np.dtype(fields(meter["channels"])))
        for i in range(len(meter["channels"])):
            there = table[f"t{i}"] != journal.NO_READING
            piece = self._store.add(table[f"t{i}"][there], table[f"v{i}"][there])
            self._pieces.setdefault((number, i), []).append(piece)

    def takes(self, event: dict[str, Any]) -> bool:
        is_look = "at" in event and not event.keys().isdisjoint(("cpu_s", *_SHARES.values()))
        if is_look or "start" in event or "end" in event:
            self._looks.append(event)
        if len(self._looks) >= _BATCH_LOOKS:
            self._account(last=False)
        return is_look

    def _account(self, last: bool) -> None:
        for part in self._accounts.signals(self._looks, last):
            self._account_parts.setdefault((part.name, part.device), []).append(part)
        self._looks = []

    def accounts(self, host: str, clock: Clock) -> list[Signal]:
        """Who used the CPUs and GPUs, see ``Accounts``."""
        self._account(last=True)
        return [
            replace(
                parts[0],
                times=np.concatenate([part.times for part in parts]) - clock.offset_ticks,
                values=np.concatenate([part.values for part in parts]),
                host=host,
            )
            for parts in self._account_parts.values()
        ]

    def channels(self, content: journal.Content, number: int) -> list[_Channel]:
        """The channels of one meter."""
        meter = content.about["meters"][number]
        channels = []
        for i, about in enumerate(meter["channels"]):
            dtype = np.dtype(np.int64 if about["whole"] else np.float64)
            columns = StoredColumns(self._store, tuple(self._pieces[number, i]), dtype)
            channels.append(_Channel(meter["name"], about, columns))
        return channels


def _with_edges(
    channels: Sequence[_Channel], regions: Path | None, profiled: Sequence[stack_files.ProfiledProcess]
) -> list[_Channel]:
    """The same with the readings that programs made of quick counters, at the edges of their regions and at looks."""
    edges: dict[str, list[Any]] = {}
    for path, *columns in chain(
        () if regions is None else region_files.edge_readings(regions), *(one.edge_readings() for one in profiled)
    ):
        edges.setdefault(path, []).append(columns)
    joined = []
    for channel in channels:
        path = channel.about["declared"].get("file")
        if path in edges and channel.about["kind"] == "counter" and channel.about["whole"]:
            channel = channel.holding(*_joined(channel, edges[path], path.startswith(PERF_ADDRESS)))
        joined.append(channel)
    return joined


def _joined(channel: _Channel, edges: Sequence[tuple[Any, Any]], own_origin: bool) -> tuple[Any, Any]:
    """A channel's readings with those of several programs; with ``own_origin`` each of them counted from 0."""
    times, values = channel.times, channel.values
    if own_origin:
        fitting = [(at, region_files.aligned(times, values, at, value)) for at, value in edges]
        edges = [(at, value) for at, value in fitting if len(value)]
    if not edges:
        return times, values
    at, value = (np.concatenate(column) for column in zip(*edges, strict=True))
    return region_files.with_edges(times, values, at, value, channel.about["wraps_at"])


def _living(channels: list[_Channel], problems: list[Problem]) -> list[_Channel]:
    """Without dead counters, and without estimates of what a sensor measured."""
    kept = []
    for channel in channels:
        source = channel.about["device"]["properties"].get("source", channel.meter)
        if channel.is_dead():
            text = f"{channel.device}: its energy counter ({source}) exists but does not move; it is dead, not 0 J"
            problems.append(Problem("dead", text))
        elif (last := channel.last_move()) is not None:
            times = channel.times
            still_s = (times[-1] - times[last]) / 1e9
            text = f"{channel.device}: its energy counter ({source}) did not move in the last {still_s:.3g} s"
            problems.append(Problem("dead", f"{text}; what was used in them is not known"))
            kept.append(channel.holding(times[: last + 1], channel.values[: last + 1]))
        elif len(channel):
            kept.append(channel)
    measured = needless_estimates(c.kind_of_device for c in kept if c.is_energy() and not c.about["estimated"])
    return [c for c in kept if not (c.about["estimated"] and c.kind_of_device in measured)]


def _clock(content: journal.Content, channels: Sequence[_Channel]) -> Clock:
    times = [event[key] for event in content.events for key in ("start", "end") if key in event]
    times += [at for c in channels for at in _extremes(c.times)]
    begin = min([content.about["monotonic_ns"], *times])
    end = max([content.about["monotonic_ns"], *times])
    epoch_ns = content.about["epoch_ns"] + begin - content.about["monotonic_ns"]
    return Clock(1_000_000_000, offset_ticks=begin, length_ticks=end - begin, epoch_ns=epoch_ns)


def _extremes(times: Any) -> tuple[int, int]:
    return int(times.min()), int(times.max())


def _signal(channel: _Channel, host: str, clock: Clock) -> Signal:
    about = channel.about
    period_s = about["period_s"] or 0.1
    columns = replace(channel.columns, origin=clock.offset_ticks)
    in_file = columns.store.is_full
    signal = Signal(
        name=f"{channel.meter} {about['name']}",
        kind=about["kind"],
        unit=about["unit"],
        times=np.empty(0, np.int64) if in_file else columns.times(),
        values=np.empty(0, columns.dtype) if in_file else columns.values(),
        scale=Fraction(about["scale"]),
        host=host,
        device=channel.device,
        latency_s=_latency_s(channel),
        wraps_at=about["wraps_at"],
        stale=about["kind"] == "counter" and not about["estimated"] and period_s >= STALE_S,
        estimated=about["estimated"],
        gain_error=about["gain_error"],
        declared=about["declared"] | _most_w(about),
        polled=True,
    )
    return StoredSignal.of(signal, columns) if in_file else signal


class Accounts:
    """Clocks of the command's CPU time and of everything else's, per package, and the command's part of each GPU.

    Made of a journal's events, batch by batch: each batch goes on where the last one ended.
    """

    def __init__(self, host: str, clock: Clock) -> None:
        self._host, self._clock = host, clock
        self._start: dict[str, Any] = {}
        self._spent: float | None = None  # by the command, as the kernel says at its end
        self._looks: list[Mapping[str, Any]] = []  # the last of which may have come after the command's end
        self._zero: Any = None  # (the command's, the machine's) seconds at the start
        self._last: Any = None  # … and since then, at the last look of the batch before: the command's, others'

    def signals(self, events: Sequence[Mapping[str, Any]], last: bool = True) -> list[Signal]:
        """The signals of a batch of events; with ``last`` also what was kept back."""
        for event in events:
            if "start" in event and not self._start:
                self._start = dict(event)
            if "end" in event and self._spent is None:
                self._spent = event.get("cpu_s")
            if "cpu_s" in event and "at" in event:
                self._looks.append(event)
        return [*self._clocks(last), *self._gpus(events)]

    def _clocks(self, last: bool) -> list[Signal]:
        if "start" not in self._start or len(self._looks) < (1 if last and self._last else 2):
            return []
        looks, self._looks = (self._looks, []) if last else (self._looks[:-1], self._looks[-1:])
        own, machine = (np.array([look["cpu_s"][side] for look in looks]) for side in (0, 1))
        times = np.array([look["at"] for look in looks], np.int64) - self._clock.offset_ticks
        if self._last is None:
            before = own[0] if self._start.get("running") else np.zeros(own.shape[1])
            self._zero, self._last = (before, machine[0]), (0 * before, 0 * before)
            times = np.append(self._start["start"] - self._clock.offset_ticks, times)
            own, machine = np.vstack([before, own]), np.vstack([machine[:1], machine])
        own = np.maximum(np.maximum.accumulate(own - self._zero[0]), self._last[0])
        whole = own[-1].sum()
        if last and self._spent is not None and self._spent > whole:  # the last look came after its end
            own[-1] += (self._spent - whole) * (own[-1] / whole if whole > 0 else 1 / own.shape[1])
        others = np.maximum(np.maximum.accumulate(machine - self._zero[1] - own), self._last[1])
        self._last = own[-1], others[-1]
        kept = np.append(np.diff(times) > 0, True)
        signals = []
        for name, clocks in ((COMMAND_CPU_TIME, own), (OTHERS_CPU_TIME, others)):
            for package in range(clocks.shape[1]):
                device = f"package {package}" if clocks.shape[1] > 1 else ""
                micro = np.rint(clocks[kept, package] * 1e6).astype(np.int64)
                clock = Signal(name, "counter", "s", times[kept], micro, Fraction(1, 10**6), self._host, device)
                signals.append(clock)
        return signals

    def _gpus(self, events: Sequence[Mapping[str, Any]]) -> list[Signal]:
        signals = []
        for name, key in _SHARES.items():
            looks = [event for event in events if event.get(key)]
            for device in sorted({device for look in looks for device in look[key]}):
                # a device that no process used in a second says nothing about who used it
                mine = [(look["at"], look[key][device]) for look in looks if device in look[key]]
                at = np.array([at for at, _ in mine], np.int64) - self._clock.offset_ticks
                parts = 100 * np.array([part for _, part in mine], np.float64)
                signals.append(Signal(name, "gauge", "%", at, parts, host=self._host, device=device))
        return signals


def _latency_s(channel: _Channel) -> float | None:
    """How old a reading may be: as its meter states it, else from the spacing of a counter's changes.

    A change seen at c was made after b, the reading before it. Between two changes the value can therefore be as old as
    c' − b, and is never older than the sensor's period by more than the spacing of readings.
    """
    about = channel.about
    if about["latency_s"] is not None or about["kind"] != "counter" or len(channel) < 2:
        latency_s: float | None = about["latency_s"]
        return latency_s
    times, values = channel.times, channel.values
    changes = np.flatnonzero(values[1:] != values[:-1]) + 1
    ages = times[changes[1:]] - times[changes[:-1] - 1]
    watched = times[-1] - times[0]
    return float(np.quantile(ages, USUAL) if len(ages) else watched) / 1e9


def _most_w(about: Mapping[str, Any]) -> dict[str, float]:
    """The most that the device draws, where its driver says so: by it impossible readings are known."""
    try:
        return {"most_w": float(about["device"]["properties"]["power_limit_w"])}
    except (KeyError, ValueError):
        return {}


def _devices(channels: Sequence[_Channel], host: str) -> tuple[Device, ...]:
    """Each device once, with the meter it comes from."""
    devices: dict[str, Device] = {}
    for channel in channels:
        about = channel.about["device"]
        properties = {**about["properties"], "meter": channel.meter}
        devices.setdefault(channel.device, Device(about["name"], about["kind"], host, properties))
    return tuple(devices.values())


def _metadata(content: journal.Content, origin: int) -> dict[str, Any]:
    about = {k: v for k, v in content.about.items() if k not in ("meters", "monotonic_ns", "epoch_ns")}
    start: dict[str, Any] = next((event for event in content.events if "start" in event), {})
    end: dict[str, Any] = next((event for event in content.events if "end" in event), {})
    run: dict[str, Any] = {k: end[k] for k in ("exit_code", "cpu_s", "max_rss_bytes") if k in end}
    if "start" in start:
        run |= {"start_ticks": start["start"] - origin, "pid": start.get("pid", 0)}
    if "end" in end:
        run |= {"end_ticks": end["end"] - origin}
    versions = {"wattribute": version("wattribute"), **about.pop("versions", {})}
    return {"name": _title(about), "source": "wattribute run", "versions": versions, **about, "run": run}


def _title(about: dict[str, Any]) -> str:
    title = about.get("name") or shlex.join(about.get("command", ())) or "recording"
    return title if len(title) <= _NAME_LENGTH else title[: _NAME_LENGTH - 1] + "…"


def _with_spans(
    recording: Recording,
    content: journal.Content,
    regions: Path | None,
    profiled: list[stack_files.ProfiledProcess],
) -> Recording:
    """The program's own regions, or else one span for its whole life; and who uses the devices."""
    if regions is not None:
        recording = region_files.join(recording, regions, but={process.pid for process in profiled})
        recording = stack_files.join(recording, regions, profiled)
    run = recording.metadata["run"]
    if "start_ticks" in run and not recording.spans.locations():
        spans = Spans(
            np.array([run["start_ticks"]]),
            np.array([run.get("end_ticks", recording.clock.length_ticks)]),
            np.zeros(1, np.int32),
            np.array([-1]),
            np.zeros(1, np.int32),
            np.zeros(1, np.bool_),
        )
        recording = replace(
            recording,
            frames=Frames.of([(recording.metadata["name"], "command", "function")]),
            processes=Processes.of([(run["pid"], _process(content.about), "process", 0)]),
            locations=Locations.of([(run["pid"], "command", "cpu", 0)]),
            spans=SpanTable({0: spans}),
            signals=tuple(replace(s, location=0) if s.location >= 0 else s for s in recording.signals),
        )
    users = tuple(recording.spans.locations())
    links = tuple(Link(d.host, d.name, users, "the command uses the machine's devices") for d in recording.devices)
    return replace(recording, topology=links if users else ())


def _process(about: dict[str, Any]) -> str:
    return Path((about.get("command") or ["process"])[0]).name
