"""HPE Cray nodes: ``pm_counters``, out-of-band sensors of the whole node and its parts, refreshed ten times a second.

Every file carries the time at which its value was taken; that time is used. ``freshness`` counts refreshes: while it
stands still there is nothing new to read, and a change between two looks at it means the files are of two refreshes.
The node's energy includes that of its parts, so the ledger counts parts and rest. ``root`` is the pm_counters folder.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ..model import Device
from ..plugins import Availability, Channel
from .files import CounterFile, number

_PARTS = {"": ("node", "node"), "cpu": ("cpu", "cpu"), "memory": ("memory", "dram")}
_UNITS = {"energy": ("counter", "J"), "power": ("gauge", "W")}
_FAR_NS = 10_000_000_000  # a time further off than this is a wrong clock, not a late reading


class CrayPm:
    """The meter ``craypm``."""

    name = "craypm"

    def __init__(
        self,
        root: str | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
        wall: Callable[[], int] = time.time_ns,
    ) -> None:
        self._root, self._clock, self._wall = Path(root or "/sys/cray/pm_counters"), clock, wall
        self._files: list[CounterFile] = []
        self._channels: list[Channel] = []
        self._freshness: CounterFile | None = None
        self._seen: int | None = None

    def available(self) -> Availability:
        if self._files:
            return Availability(True)
        if not self._root.is_dir():
            return Availability(False, f"no {self._root} here (not a Cray node)")
        period_s = 1 / (number(self._root / "raw_scan_hz") or 10)
        for path in sorted(self._root.glob("*energy")) + sorted(self._root.glob("*power")):
            part, _, quantity = path.name.rpartition("_")
            device = _device(part)
            try:
                file = CounterFile(path)
                file.words()
            except OSError:
                continue
            kind, unit = _UNITS[quantity]
            self._files.append(file)
            latency_s = 2 * period_s  # read by the controller, then published
            self._channels.append(Channel(quantity, kind, unit, device, latency_s=latency_s, period_s=period_s))
        if (self._root / "freshness").exists():
            self._freshness = CounterFile(self._root / "freshness")
        if self._files:
            return Availability(True)
        return Availability(False, f"no counter in {self._root} can be read", f"sudo chmod a+r {self._root}/*")

    def channels(self) -> Sequence[Channel]:
        return self._channels

    def read(self) -> Sequence[tuple[int, int | float | None]]:
        fresh = self._freshness.value() if self._freshness else None
        if fresh is not None and fresh == self._seen:
            now = self._clock()
            return [(now, None)] * len(self._files)
        readings = self._all()
        if self._freshness and (again := self._freshness.value()) != fresh:
            fresh, readings = again, self._all()
        self._seen = fresh
        return readings

    def _all(self) -> list[tuple[int, int | float | None]]:
        now, wall = self._clock(), self._wall()
        readings: list[tuple[int, int | float | None]] = []
        for file in self._files:
            try:
                words = file.words()
                value = int(words[0])
                taken = wall - int(words[2]) * 1000 if len(words) > 2 else 0
            except (OSError, ValueError, IndexError):
                readings.append((now, None))
                continue
            readings.append((now - taken if 0 <= taken < _FAR_NS else now, value))
        return readings

    def close(self) -> None:
        for file in [*self._files, *([self._freshness] if self._freshness else [])]:
            file.close()
        self._files, self._channels, self._freshness = [], [], None


def _device(part: str) -> Device:
    if part in _PARTS:
        name, kind = _PARTS[part]
    else:
        name, kind = part, "gpu" if part.startswith("accel") else part.rstrip("0123456789")
    return Device(name, kind, properties={"source": "pm_counters"})
