"""Journal → Recording, at the end of a run or after its writer was killed (the reader plug-in "journal").

One host, one process, one location "command" with one span (the child's life), every channel a signal, and a topology
that lets the command use every device: attribution works on it unchanged. Regions that the program marked itself, and
stacks that a profile saw, are joined first and then take the place of that span. Counters that never moved are left
out and named as dead; estimates are left out where a sensor measured the same kind of device.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

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
from ..model.select import select
from ..plugins import Selection
from . import journal, region_files, stack_files, sums

DEAD_S = 0.1  # a counter that stood still this long, and three of its periods, is dead
STALE_S = 0.003  # sensors that refresh less often than this repeat their value between readings
_NAME_LENGTH = 200


def detects(path: Path) -> bool:
    """Whether this folder holds a journal, which a finished recording does not (the reader plug-in "journal")."""
    return (path / journal.NAME).is_file()


def read(path: Path, selection: Selection) -> Recording:
    """The reader plug-in "journal": everything that was sampled before the writer was killed."""
    return select(recover(path), selection.process, selection.frame, selection.exclude_frame, selection.metric)


def recover(folder: Path) -> Recording:
    """The Recording in a folder whose writer was killed."""
    file = folder / journal.NAME
    recording = build(file.read_bytes(), file, folder / "regions")
    problem = Problem("partial", f"{folder}: recovered from its journal (the recorder was stopped)")
    return replace(recording, noticed=(*recording.noticed, problem))


@dataclass(frozen=True)
class _Channel:
    """One channel of the journal with its readings."""

    meter: str
    about: dict[str, Any]
    times: Any  # monotonic ns
    values: Any

    @property
    def device(self) -> str:
        return str(self.about["device"]["name"])

    @property
    def kind_of_device(self) -> str:
        return str(self.about["device"]["kind"])

    def is_energy(self) -> bool:
        return self.about["unit"] in ("J", "W")

    def is_dead(self) -> bool:
        if self.about["kind"] != "counter" or len(self.times) < 2:
            return False
        watched_s = (self.times[-1] - self.times[0]) / 1e9
        still = bool((self.values == self.values[0]).all())
        return still and watched_s >= max(DEAD_S, 3 * (self.about["period_s"] or 0.0))


def build(data: bytes, path: Path, regions: Path | None = None) -> Recording:
    """The Recording of a journal's bytes; ``path`` is for messages, ``regions`` the folder of regions' files."""
    content = journal.parse(data, path)
    channels = [channel for number in range(len(content.readings)) for channel in _channels(content, number)]
    problems = [Problem("meter", event["problem"]) for event in content.events if "problem" in event]
    if content.cut:
        problems.append(Problem("cut", f"{path}: ends in the middle of a record; all before it is kept"))
    channels = _living(channels, problems)
    clock = _clock(content, channels)
    host = str(content.about.get("host", ""))
    recording = Recording(
        clock=clock,
        nodes=Nodes.of([(0, host, "node")]),
        devices=_devices(channels, host),
        signals=tuple(_signal(channel, host, clock) for channel in channels),
        noticed=tuple(problems),
        metadata=_metadata(content, clock.offset_ticks),
    )
    return _with_spans(recording, content, regions)


def fields(channels: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The columns of one meter's readings: time and value of each channel."""
    columns: list[tuple[str, str]] = []
    for i, about in enumerate(channels):
        columns += [(f"t{i}", "<i8"), (f"v{i}", "<i8" if about["whole"] else "<f8")]
    return columns


def _channels(content: journal.Content, number: int) -> list[_Channel]:
    """The channels of one meter, readings that failed left out."""
    meter = content.about["meters"][number]
    table = np.frombuffer(b"".join(content.readings[number]), dtype=np.dtype(fields(meter["channels"])))
    found = []
    for i, about in enumerate(meter["channels"]):
        there = table[f"t{i}"] != journal.NO_READING
        found.append(_Channel(meter["name"], about, table[f"t{i}"][there].copy(), table[f"v{i}"][there].copy()))
    return found


def _living(channels: list[_Channel], problems: list[Problem]) -> list[_Channel]:
    """Without dead counters, and without estimates of what a sensor measured."""
    kept = []
    for channel in channels:
        if channel.is_dead():
            source = channel.about["device"]["properties"].get("source", channel.meter)
            text = f"{channel.device}: its energy counter ({source}) exists but does not move; it is dead, not 0 J"
            problems.append(Problem("dead", text))
        elif len(channel.times):
            kept.append(channel)
    measured = sums.measured_too(c.kind_of_device for c in kept if c.is_energy() and not c.about["estimated"])
    return [c for c in kept if not (c.about["estimated"] and c.kind_of_device in measured)]


def _clock(content: journal.Content, channels: Sequence[_Channel]) -> Clock:
    times = [event[key] for event in content.events for key in ("start", "end") if key in event]
    times += [at for c in channels for at in (int(c.times.min()), int(c.times.max()))]
    begin = min([content.about["monotonic_ns"], *times])
    end = max([content.about["monotonic_ns"], *times])
    epoch_ns = content.about["epoch_ns"] + begin - content.about["monotonic_ns"]
    return Clock(1_000_000_000, offset_ticks=begin, length_ticks=end - begin, epoch_ns=epoch_ns)


def _signal(channel: _Channel, host: str, clock: Clock) -> Signal:
    about = channel.about
    period_s = about["period_s"] or 0.1
    return Signal(
        name=f"{channel.meter} {about['name']}",
        kind=about["kind"],
        unit=about["unit"],
        times=channel.times - clock.offset_ticks,
        values=channel.values,
        scale=Fraction(about["scale"]),
        host=host,
        device=channel.device,
        latency_s=about["latency_s"],
        wraps_at=about["wraps_at"],
        stale=about["kind"] == "counter" and not about["estimated"] and period_s >= STALE_S,
        estimated=about["estimated"],
        gain_error=about["gain_error"],
        declared=about["declared"],
    )


def _devices(channels: Sequence[_Channel], host: str) -> tuple[Device, ...]:
    """Each device once; those whose energy another one includes are marked ``apart``, whoever metered them."""
    found: dict[str, Device] = {}
    for channel in channels:
        about = channel.about["device"]
        properties = {**about["properties"], "meter": channel.meter}
        found.setdefault(channel.device, Device(about["name"], about["kind"], host, properties))
    why = sums.apart(list(found.values()))
    return tuple(
        replace(d, properties={**d.properties, "apart": why[d.name]}) if d.name in why else d for d in found.values()
    )


def _metadata(content: journal.Content, origin: int) -> dict[str, Any]:
    about = {k: v for k, v in content.about.items() if k not in ("meters", "monotonic_ns", "epoch_ns")}
    start: dict[str, Any] = next((event for event in content.events if "start" in event), {})
    end: dict[str, Any] = next((event for event in content.events if "end" in event), {})
    run: dict[str, Any] = {k: end[k] for k in ("exit_code", "cpu_s", "max_rss_bytes") if k in end}
    if "start" in start:
        run |= {"start_ticks": start["start"] - origin, "pid": start.get("pid", 0)}
    if "end" in end:
        run |= {"end_ticks": end["end"] - origin}
    if start.get("busy_s") is not None and end.get("busy_s") is not None:
        run["busy_s"] = end["busy_s"] - start["busy_s"]
    shares = [event["shares"] for event in content.events if "shares" in event]
    if shares:
        devices = sorted({name for share in shares for name in share})
        # a device nobody used in a second says nothing about who used it
        run["shares"] = {name: float(np.mean([s[name] for s in shares if name in s])) for name in devices}
    versions = {"wattribute": version("wattribute"), **about.pop("versions", {})}
    return {"name": _title(about), "source": "wattribute run", "versions": versions, **about, "run": run}


def _title(about: dict[str, Any]) -> str:
    title = about.get("name") or shlex.join(about.get("command", ())) or "recording"
    return title if len(title) <= _NAME_LENGTH else title[: _NAME_LENGTH - 1] + "…"


def _with_spans(recording: Recording, content: journal.Content, regions: Path | None) -> Recording:
    """The program's own regions, or else one span for its whole life; and who uses the devices."""
    if regions is not None:
        profiled = stack_files.found(regions)
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
        )
    users = tuple(recording.spans.locations())
    links = tuple(Link(d.host, d.name, users, "the command uses the machine's devices") for d in recording.devices)
    return replace(recording, topology=links if users else ())


def _process(about: dict[str, Any]) -> str:
    return Path((about.get("command") or ["process"])[0]).name
