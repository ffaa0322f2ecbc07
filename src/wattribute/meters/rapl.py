"""Intel and AMD CPUs: the RAPL counters, by ``perf_event_open`` if the kernel lets us, else by powercap, per device.

A package does not include its DRAM although powercap lists DRAM below it, so a run's total is Σ package + Σ dram. psys
sees the whole board, packages included: it is recorded and shown, and never counted beside them. Counters of
dies that mirror one another are found later, by equal increments (alignment). ``root`` is a /sys.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

from ..model import Device
from ..plugins import Availability, Channel
from . import perf
from .files import CounterFile, WordSum, number, text
from .sources import Row, Sources

PERIOD_S = 0.001  # the MSRs are refreshed about every millisecond
_KINDS = {"pkg": "cpu", "ram": "dram", "psys": "psys"}  # the other domains lie inside a package
_NAMES = {"cpu": "package", "dram": "dram"}
_PERF_FIX = "sudo sysctl kernel.perf_event_paranoid=0"
_POWERCAP_FIX = "sudo chmod -R a+r /sys/class/powercap/intel-rapl*"


class Rapl:
    """The meter ``rapl``."""

    name = "rapl"

    def __init__(self, root: str | None = None, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._sys = Path(root or "/sys")
        self.sources = Sources(clock)
        self._channels: list[Channel] = []

    def available(self) -> Availability:
        if self.sources:
            return Availability(True)
        perf_says = self._open_perf()
        by_perf = len(self._channels)
        powercap_says = self._open_powercap()  # for the devices that perf does not have
        if self.sources:
            by_powercap = len(self._channels) - by_perf
            ways = [way for way, count in (("perf_event_open", by_perf), ("powercap", by_powercap)) if count]
            return Availability(True, ", ".join(ways))
        for refused in (perf_says, powercap_says):
            if refused.fix:
                return refused
        return Availability(False, f"{perf_says.reason}; {powercap_says.reason}")

    def _open_perf(self) -> Availability:
        wanted = [event for event in perf.events(self._sys) if event.domain in _KINDS]
        if not wanted:
            return Availability(False, "this kernel offers no RAPL events (no PMU 'power': a virtual machine?)")
        reason, fix = "", ""
        for event in wanted:
            try:
                self.sources.add(perf.PerfCounter(event))
            except OSError as error:
                denied = error.errno in (errno.EACCES, errno.EPERM)
                reason, fix = f"perf_event_open: {error.strerror}", _PERF_FIX if denied else ""
                continue
            source = f"perf energy-{event.domain}"
            self._add(_KINDS[event.domain], event.package, event.scale, None, source, event.address)
        return Availability(bool(self.sources), reason, fix)

    def _open_powercap(self) -> Availability:
        zones = sorted((self._sys / "class/powercap").glob("intel-rapl:*"))
        if not zones:
            return Availability(False, "no RAPL zones in /sys/class/powercap")
        reason, fix = "no package among the RAPL zones", ""
        for zone in zones:
            kind, package = _zone(zone)
            if not kind or _name(kind, package) in {channel.device.name for channel in self._channels}:
                continue
            try:
                counter = CounterFile(zone / "energy_uj")
            except PermissionError:
                reason, fix = f"{zone / 'energy_uj'} may be read by root only", _POWERCAP_FIX
                continue
            except OSError as error:
                reason = f"{zone / 'energy_uj'}: {error.strerror}"
                continue
            self.sources.add(WordSum(counter))
            source, most = f"powercap {zone.name}", number(zone / "max_energy_range_uj")
            self._add(kind, package, Fraction(1, 10**6), most, source, str(counter.path.absolute()))
        return Availability(bool(self.sources), reason, fix)

    def _add(self, kind: str, package: str, scale: Fraction, wraps_at: int | None, source: str, file: str = "") -> None:
        device = Device(_name(kind, package), kind, properties={"source": source})
        self._channels.append(
            Channel(
                "energy", "counter", "J", device, scale, wraps_at=wraps_at, latency_s=PERIOD_S, period_s=PERIOD_S,
                declared={"source": source} | ({"file": file} if file else {}),
            )
        )  # fmt: skip

    def channels(self) -> Sequence[Channel]:
        return self._channels

    def read(self) -> Row:
        return self.sources.read()

    def close(self) -> None:
        self.sources.close()
        self._channels = []


def _name(kind: str, package: str) -> str:
    return f"{_NAMES[kind]} {package}" if kind in _NAMES else kind


def _zone(zone: Path) -> tuple[str, str]:
    """(kind of device, package) of a powercap zone; ("", "") for one that lies inside another."""
    name = text(zone / "name")
    if name.startswith("package-"):
        package = name.removeprefix("package-").replace("-die-", " die ")
        return "cpu", package.removesuffix(" die 0")
    if name == "psys":
        return "psys", ""
    if name == "dram":
        parent = zone.with_name(zone.name.rpartition(":")[0])
        return "dram", _zone(parent)[1] or zone.name
    return "", ""
