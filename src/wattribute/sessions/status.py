"""What the sampler says now → what people are shown now: power from counters, sums, grams so far.

``StatusBuilder`` makes a ``Status`` of each message of the sampler. Only devices that the ledger counts are in the
sums; a node's meter counts in the place of its parts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..meters.files import busy_core_s, text
from ..model import Device
from ..model.constants import DEAD_S, POWER_SPAN_S
from ..model.ledger import Candidate, decide, needless_estimates
from ..model.status import CarbonStatus, DeviceStatus, Status
from ..units import J_PER_KWH
from .processes import ProcessPowers, floors_w

KEPT_S = 600.0  # an intensity by time of day is asked for again after this long
_MESSAGE_KEYS = {"device", "at", "estimated", "power_w", "energy_j", "counted_at"}  # the others are gauges


class Grams:
    """Grams so far: the energy since the last time × the intensity now."""

    def __init__(self, zone: str | None, intensity: float | str | None) -> None:
        self._given = zone, intensity
        self._resolved_at = float("-inf")
        self._energy_j = 0.0
        self._status = CarbonStatus(0.0, 0.0, "")

    def take(self, energy_j: float, epoch_ns: int) -> CarbonStatus:
        from ..carbon.intensity import resolve

        if epoch_ns / 1e9 - self._resolved_at > KEPT_S:
            intensity = resolve(*self._given, epoch_ns, epoch_ns + 1)
            step = intensity.profile.steps[-1]
            self._status = CarbonStatus(
                self._status.co2e_g,
                step.g_per_kwh,
                intensity.name,
                intensity.zone.code if intensity.zone else "",
                intensity.assumed,
                step.fallback,
                step.source,
            )
            self._resolved_at = epoch_ns / 1e9
        # another sum (a sensor began to answer) is a new beginning, not negative energy
        grams = max(0.0, energy_j - self._energy_j) / J_PER_KWH * self._status.g_per_kwh
        self._energy_j = energy_j
        self._status = replace(self._status, co2e_g=self._status.co2e_g + grams)
        return self._status


class CountFolder:
    """What programs that write into a folder (``WATTRIBUTE_REGIONS``) count, from now on."""

    def __init__(self, folder: str | os.PathLike[str], unit: str) -> None:
        self.folder, self.unit = Path(folder), unit
        # of each file: records read for good, their sum, and the records written after them
        self._read: dict[Path, tuple[int, float, int]] = {}
        self._before = self._sum()

    def total(self) -> float:
        """How many were counted since this was made."""
        return self._sum() - self._before

    def _sum(self) -> float:
        whole = 0.0
        for path in self.folder.glob("*.regions"):
            with suppress(OSError):  # its names are not there yet
                whole += self._of(path)
        return whole

    def _of(self, path: Path) -> float:
        """What one process counted: records that were written the last time count for good and are not read again."""
        from ..readers.region_files import load

        first, before, whole = self._read.get(path, (0, 0.0, 0))
        before += load(path, first, whole).counted(self.unit)
        rest = load(path, first + whole)
        self._read[path] = first + whole, before, rest.whole
        return before + rest.counted(self.unit)


class StatusBuilder:
    """Called with each message of the sampler after ``begin_ns``; ``about`` describes its meters."""

    def __init__(
        self,
        about: Mapping[str, Any],
        begin_ns: int,
        zone: str | None = None,
        intensity: float | str | None = None,
        proc: Path = Path("/proc"),
        wall_clock: Callable[[], int] = time.time_ns,
        counted: CountFolder | None = None,
    ) -> None:
        self._counted_work = counted
        self._work: tuple[float, float, float | None] = (0.0, 0.0, None)  # how many, joules then, the last ones' each
        self._host, self._proc, self._wall_clock = str(about.get("host", "")), proc, wall_clock
        self._devices: dict[str, Device] = {}
        self._periods: dict[str, float] = {}
        for meter in about["meters"]:
            for channel in meter["channels"]:
                written = channel["device"]
                properties = {**written["properties"], "meter": meter["name"]}
                device = Device(written["name"], written["kind"], properties=properties)
                self._devices.setdefault(device.name, device)
                self._periods[device.name] = max(self._periods.get(device.name, 0.0), channel["period_s"] or 0.1)
        self._grams = Grams(zone, intensity)
        self._begin_ns = begin_ns
        self._counted: dict[str, tuple[int, float]] = {}  # device → (ns, joules) when its counter last moved
        self._power_w: dict[str, float] = {}
        self._busy = begin_ns, busy_core_s(proc)
        self._processes = ProcessPowers(floors_w(self._devices, self._host), proc)

    def __call__(self, message: Mapping[str, Any]) -> Status:
        at_ns = message["at"]
        elapsed_s = (at_ns - self._begin_ns) / 1e9
        cpu_percent = self._cpu_percent(at_ns)
        devices = _without_needless([self._device(row, elapsed_s) for row in message["live"]])
        devices = sorted(_with_cpu(self._judged(devices), cpu_percent), key=lambda device: not device.counted)
        added = [device for device in devices if device.counted]
        energy_j = sum(device.energy_j or 0.0 for device in added)
        powers = [device.power_w for device in added if device.power_w is not None]
        epoch_ns = self._wall_clock()
        used, total = self._memory()
        return self._with_work(
            at=at_ns,
            epoch_ns=epoch_ns,
            elapsed_s=elapsed_s,
            host=self._host,
            devices=devices,
            carbon=self._grams.take(energy_j, epoch_ns),
            power_w=sum(powers) if powers else None,
            energy_j=energy_j if any(device.energy_j for device in added) else None,
            estimated=any(device.estimated for device in added),
            cpu_percent=cpu_percent,
            cpus=os.cpu_count(),
            memory_bytes=used,
            memory_total_bytes=total,
            problems=message.get("problems", ()),
            folder=message.get("folder", ""),
            processes=self._processes(at_ns, devices),
            static_w=self._processes.static_w(devices),
        )

    def _with_work(self, **values: Any) -> Status:
        """The status with what programs counted meanwhile, if it was asked for."""
        if self._counted_work is None:
            return Status(**values)
        done, energy_j = self._counted_work.total(), values["energy_j"]
        before, before_j, recent = self._work
        if done > before and energy_j is not None:
            recent = (energy_j - before_j) / (done - before)
            self._work = done, energy_j, recent
        return Status(**values, per=self._counted_work.unit, count=done, recent_j_per_unit=recent)

    def _device(self, row: Mapping[str, Any], elapsed_s: float) -> DeviceStatus:
        name = row["device"]
        device = self._devices[name]
        energy_j, note = row.get("energy_j"), ""
        if not energy_j and "counted_at" in row and "power_w" not in row:
            energy_j = None
            if elapsed_s > max(DEAD_S, 3 * self._periods[name]):
                note = "its counter does not move: dead, not 0 J"
        limit = device.properties.get("power_limit_w")
        total = device.properties.get("memory_bytes")
        return DeviceStatus(
            name,
            device.kind,
            at=row["at"],
            energy_j=energy_j,
            power_w=row["power_w"] if "power_w" in row else self._slope(name, row.get("counted_at"), energy_j),
            power_limit_w=None if limit is None else float(limit),
            memory_total_bytes=None if total is None else float(total),
            estimated=bool(row.get("estimated")),
            note=note,
            model=device.properties.get("model", ""),
            source=device.properties.get("source", ""),
            gauges={key: value for key, value in row.items() if key not in _MESSAGE_KEYS},
        )

    def _judged(self, devices: Sequence[DeviceStatus]) -> list[DeviceStatus]:
        """With the ledger's reason for those that do not count. A node counts instead of its parts."""
        known = [self._devices[device.device] for device in devices]
        books = decide(
            [
                Candidate(device, device.properties["meter"], status.estimated, status.note)
                for device, status in zip(known, devices, strict=True)
            ]
        )
        inside = {part: node for node, parts in books.wholes.items() for part in parts}
        judged = []
        for at, (device, entry) in enumerate(zip(devices, books.entries, strict=True)):
            why = ""
            if at in inside:
                why = f"inside {devices[inside[at]].device}"
            elif not entry.counted and at not in books.wholes and not device.note:
                why = entry.why
            judged.append(replace(device, apart=why) if why else device)
        return judged

    def _slope(self, name: str, counted_at: int | None, energy_j: float | None) -> float | None:
        """Power from a counter: between statuses that saw it move, over a while, since update times jitter."""
        if counted_at is None or energy_j is None:
            return None
        before_ns, before_j = self._counted.get(name, (self._begin_ns, 0.0))
        if counted_at - before_ns >= POWER_SPAN_S * 1e9:
            self._power_w[name] = (energy_j - before_j) / ((counted_at - before_ns) / 1e9)
            self._counted[name] = counted_at, energy_j
        return self._power_w.get(name)

    def _cpu_percent(self, at_ns: int) -> float | None:
        """How busy the processors were since the last status, where the kernel says so."""
        (before_ns, before_s), busy_s = self._busy, busy_core_s(self._proc)
        self._busy = at_ns, busy_s
        if busy_s is None or before_s is None or at_ns <= before_ns:
            return None
        return min(100.0, 100 * (busy_s - before_s) / ((at_ns - before_ns) / 1e9 * (os.cpu_count() or 1)))

    def _memory(self) -> tuple[int | None, int | None]:
        """Bytes of memory in use and in all, where the kernel says so."""
        lines = dict(line.split(":", 1) for line in text(self._proc / "meminfo").splitlines() if ":" in line)
        try:
            total, free = (int(lines[name].split()[0]) * 1024 for name in ("MemTotal", "MemAvailable"))
        except (KeyError, ValueError, IndexError):
            return None, None
        return total - free, total


class StatusObservers:
    """The sampler's one observer, in its thread: makes a status of each message and hands it to all the others.

    An observer that raises is not called again, and ``trouble`` says why: a screen that fails must not end a recording.
    """

    def __init__(
        self,
        observers: Sequence[Callable[[Status], None]],
        zone: str | None = None,
        intensity: float | str | None = None,
        counted: CountFolder | None = None,
    ) -> None:
        self._observers, self._how, self._counted = list(observers), (zone, intensity), counted
        self._begin_ns: int | None = None
        self._builder: StatusBuilder | None = None
        self.last: Status | None = None
        self.trouble: list[str] = []

    def begin(self, begin_ns: int) -> None:
        """Let statuses begin here; messages of before are left out."""
        self._begin_ns = begin_ns

    def __call__(self, message: Mapping[str, Any]) -> None:
        if self._begin_ns is None or message["at"] < self._begin_ns:
            return
        if self._builder is None:
            self._builder = StatusBuilder(message["about"], self._begin_ns, *self._how, counted=self._counted)
        self.last = self._builder(message)
        for observer in tuple(self._observers):
            try:
                observer(self.last)
            except Exception as error:
                self._observers.remove(observer)
                self.trouble.append(f"showing or sending failed: {error!r}")


def _without_needless(devices: Sequence[DeviceStatus]) -> list[DeviceStatus]:
    """Without estimates of what a sensor measures."""
    measured = needless_estimates(device.kind for device in devices if not device.estimated and not device.note)
    return [device for device in devices if not (device.estimated and device.kind in measured)]


def _with_cpu(devices: Sequence[DeviceStatus], cpu_percent: float | None) -> list[DeviceStatus]:
    """With the machine's use as that of its only CPU, where the meter does not say it."""
    if cpu_percent is None or sum(device.kind == "cpu" for device in devices) != 1:
        return list(devices)
    use = {"utilisation_percent": cpu_percent}
    return [replace(each, gauges={**use, **each.gauges}) if each.kind == "cpu" else each for each in devices]
