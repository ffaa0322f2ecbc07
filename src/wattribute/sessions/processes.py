"""The processes of a machine now: the CPU time each used since the last look, and the watts that is worth.

All of /proc is read at most once a second. Of the power of CPUs and memory what lies above their floors goes to
processes by CPU time, as ``attribution.bill`` does it; no process gets the floor. Processes of one name are one row.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..model import Device
from ..model.status import DeviceStatus, ProcessStatus
from ..recorders import baselines

SCAN_NS = 1_000_000_000
SHOWN = 8
REST_NAME = "others"
_TICKS = os.sysconf("SC_CLK_TCK")
_SHARED_KINDS = ("cpu", "dram", "node")  # whose energy follows CPU time


def floors_w(devices: Mapping[str, Device], host: str) -> dict[str, float]:
    """The floors that are known: of the machine's baseline, or of a model."""
    known = baselines.of_host(host).get("devices", {})
    floors = {
        name: float(device.properties["floor_w"]) for name, device in devices.items() if "floor_w" in device.properties
    }
    return floors | {name: float(one["floor_w"]) for name, one in known.items() if name in devices}


class ProcessPowers:
    """Called with each status; gives the processes of the last second, those that used most first."""

    def __init__(self, floors: Mapping[str, float], proc: Path = Path("/proc")) -> None:
        self._floors, self._proc = floors, str(proc)
        self._spent: dict[int, int] = {}  # ticks
        self._at = 0
        self._last: tuple[ProcessStatus, ...] = ()

    def static_w(self, devices: Sequence[DeviceStatus]) -> float | None:
        """The floors of the devices that count, as far as they are known."""
        known = [self._floors[one.device] for one in devices if one.counted and one.device in self._floors]
        return sum(known) if known else None

    def __call__(self, at_ns: int, devices: Sequence[DeviceStatus]) -> tuple[ProcessStatus, ...]:
        if self._at and at_ns - self._at < SCAN_NS:
            return self._last
        names, spent = self._look()
        is_first, lasted_s = not self._at, (at_ns - self._at) / 1e9
        used: dict[str, list[int]] = {}
        for pid, ticks in spent.items():
            sums = used.setdefault(names[pid], [0, 0])
            sums[0] += max(ticks - self._spent.get(pid, ticks if is_first else 0), 0)
            sums[1] += 1
        self._spent, self._at = spent, at_ns
        if not is_first:
            self._last = self._rows(used, lasted_s, devices)
        return self._last

    def _look(self) -> tuple[dict[int, str], dict[int, int]]:
        names, spent = {}, {}
        try:
            entries = os.listdir(self._proc)
        except OSError:
            return {}, {}
        for entry in entries:
            if entry.isdigit():
                try:
                    with open(f"{self._proc}/{entry}/stat", "rb", buffering=0) as file:
                        head, _, tail = file.read(1024).rpartition(b")")
                    words = tail.split()
                    spent[int(entry)] = int(words[11]) + int(words[12])
                    names[int(entry)] = head.partition(b"(")[2].decode("utf-8", "replace")
                except (OSError, ValueError, IndexError):
                    continue
        return names, spent

    def _rows(
        self, used: Mapping[str, Sequence[int]], lasted_s: float, devices: Sequence[DeviceStatus]
    ) -> tuple[ProcessStatus, ...]:
        whole = sum(ticks for ticks, _ in used.values())
        shared = [one for one in devices if one.counted and one.kind in _SHARED_KINDS and one.power_w is not None]
        dynamic_w = sum(max((one.power_w or 0.0) - self._floors.get(one.device, 0.0), 0.0) for one in shared)

        def row(name: str, ticks: int, count: int) -> ProcessStatus:
            watts = dynamic_w * ticks / whole if shared and whole else None
            return ProcessStatus(name, count, 100 * ticks / _TICKS / lasted_s, watts)

        order = sorted(used.items(), key=lambda item: -item[1][0])
        rows = [row(name, *sums) for name, sums in order if sums[0]]
        first, rest = rows[:SHOWN], order[len(rows[:SHOWN]) :]
        if any(sums[0] for _, sums in rest):
            first.append(row(REST_NAME, sum(sums[0] for _, sums in rest), sum(sums[1] for _, sums in rest)))
        return tuple(first)
