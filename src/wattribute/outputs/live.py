"""What the sampler says now → what people are shown now: power from counters, sums, grams so far.

``Live`` takes the sampler's statuses one by one and gives each back richer, in the same form that observers of ``run``
get, so whatever shows or sends one can show or send the other::

    {"live": [{"device", "kind", "estimated", "apart", "note", "power_w", "energy_j", "utilisation_percent", …}],
     "at": ns, "epoch_ns", "elapsed_s", "host", "power_w", "energy_j", "estimated", "carbon": {"co2e_g", …},
     "cpu_percent", "memory_bytes", "memory_total_bytes", "problems"}

Only devices that may be added are in the sums, and a sum is measured or estimated, never a mixture.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..meters.files import busy_core_s, text
from ..model import Device
from ..recorders import sums
from ..units import J_PER_KWH

DEAD_S = 1.0  # a counter that has not moved after this long, and three of its periods, is called dead
SLOPE_NS = 200_000_000  # power from a counter is a mean over at least this long
KEPT_S = 600.0  # an intensity by time of day is asked for again after this long
Status = dict[str, Any]


class Grams:
    """Grams so far: the energy since the last time × the intensity now."""

    def __init__(self, zone: str | None, intensity: float | str | None) -> None:
        self._given = zone, intensity
        self._resolved_at = float("-inf")
        self._energy_j = 0.0
        self._now: dict[str, Any] = {}
        self.co2e_g = 0.0

    def take(self, energy_j: float, epoch_ns: int) -> dict[str, Any]:
        from ..carbon.intensity import resolve

        if epoch_ns / 1e9 - self._resolved_at > KEPT_S:
            found = resolve(*self._given, epoch_ns, epoch_ns + 1)
            step = found.profile.steps[-1]
            self._now = {"g_per_kwh": step.g_per_kwh, "name": found.name, "zone": found.zone.code if found.zone else ""}
            self._now |= {"assumed": found.assumed, "fallback": step.fallback, "source": step.source}
            self._resolved_at = epoch_ns / 1e9
        # another sum (a sensor began to answer) is a new beginning, not negative energy
        self.co2e_g += max(0.0, energy_j - self._energy_j) / J_PER_KWH * self._now["g_per_kwh"]
        self._energy_j = energy_j
        return {"co2e_g": self.co2e_g, **self._now}


class Live:
    """Called with each status of the sampler after ``begin_ns``; ``about`` is what it said of its meters."""

    def __init__(
        self,
        about: Mapping[str, Any],
        begin_ns: int,
        zone: str | None = None,
        intensity: float | str | None = None,
        proc: Path = Path("/proc"),
        wall_clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._host, self._proc, self._wall_clock = str(about.get("host", "")), proc, wall_clock
        self._devices: dict[str, Device] = {}
        self._periods: dict[str, float] = {}
        for meter in about["meters"]:
            for channel in meter["channels"]:
                told = channel["device"]
                device = Device(told["name"], told["kind"], properties={**told["properties"], "meter": meter["name"]})
                self._devices.setdefault(device.name, device)
                self._periods[device.name] = max(self._periods.get(device.name, 0.0), channel["period_s"] or 0.1)
        self._apart = sums.apart(list(self._devices.values()))
        self._grams = Grams(zone, intensity)
        self._begin_ns = begin_ns
        self._counted: dict[str, tuple[int, float]] = {}  # device → (ns, joules) when its counter last moved
        self._power_w: dict[str, float] = {}
        self._busy = begin_ns, busy_core_s(proc)

    def __call__(self, status: Status) -> Status:
        """The status, richer."""
        elapsed_s = (status["at"] - self._begin_ns) / 1e9
        rows = self._without_needless([self._row(row, elapsed_s) for row in status["live"]])
        added = [row for row in rows if not row["apart"] and not row["note"]]
        measured = [row for row in added if not row["estimated"]]
        for row in added:
            if measured and row["estimated"]:
                row["apart"] = "an estimate beside measurements"
        added = measured or added
        rows.sort(key=lambda row: bool(row["apart"] or row["note"]))  # what counts first
        machine = self._machine(status["at"])
        cpus = [row for row in rows if row["kind"] == "cpu"]
        if len(cpus) == 1 and machine["cpu_percent"] is not None:
            cpus[0].setdefault("utilisation_percent", machine["cpu_percent"])
        energy_j = sum(row["energy_j"] or 0.0 for row in added)
        powers = [row["power_w"] for row in added if row["power_w"] is not None]
        epoch_ns = self._wall_clock()
        return {
            **status,
            "live": rows,
            "epoch_ns": epoch_ns,
            "elapsed_s": elapsed_s,
            "host": self._host,
            "power_w": sum(powers) if powers else None,
            "energy_j": energy_j if any(row["energy_j"] for row in added) else None,
            "estimated": bool(added) and not measured,
            "carbon": self._grams.take(energy_j, epoch_ns),
            **machine,
        }

    def _row(self, row: Mapping[str, Any], elapsed_s: float) -> dict[str, Any]:
        name = row["device"]
        device = self._devices[name]
        energy_j, note = row.get("energy_j"), ""
        if not energy_j and "counted_at" in row and "power_w" not in row:
            energy_j = None
            if elapsed_s > max(DEAD_S, 3 * self._periods[name]):
                note = "its counter does not move: dead, not 0 J"
        limit = device.properties.get("power_limit_w")
        total = device.properties.get("memory_bytes")
        return {
            **row,
            "kind": device.kind,
            "model": device.properties.get("model", ""),
            "source": device.properties.get("source", ""),
            "estimated": bool(row.get("estimated")),
            "apart": self._apart.get(name, ""),
            "note": note,
            "energy_j": energy_j,
            "power_w": row["power_w"] if "power_w" in row else self._slope(name, row.get("counted_at"), energy_j),
            "power_limit_w": None if limit is None else float(limit),
            "memory_total_bytes": None if total is None else float(total),
        }

    def _slope(self, name: str, counted_at: int | None, energy_j: float | None) -> float | None:
        """Power from a counter: between statuses that saw it move, over a while, since update times jitter."""
        if counted_at is None or energy_j is None:
            return None
        before_ns, before_j = self._counted.get(name, (self._begin_ns, 0.0))
        if counted_at - before_ns >= SLOPE_NS:
            self._power_w[name] = (energy_j - before_j) / ((counted_at - before_ns) / 1e9)
            self._counted[name] = counted_at, energy_j
        return self._power_w.get(name)

    def _without_needless(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Without estimates of what a sensor measures."""
        living = (row for row in rows if not row["estimated"] and not row["note"])
        measured = sums.measured_too(row["kind"] for row in living)
        return [row for row in rows if not (row["estimated"] and row["kind"] in measured)]

    def _machine(self, at_ns: int) -> dict[str, Any]:
        """How busy the machine is, where the kernel says so: its processors since the last status, its memory."""
        before_ns, before_s = self._busy
        busy_s = busy_core_s(self._proc)
        self._busy = at_ns, busy_s
        found: dict[str, Any] = {"cpu_percent": None, "cpus": os.cpu_count(), "memory_bytes": None}
        if busy_s is not None and before_s is not None and at_ns > before_ns:
            whole_s = (at_ns - before_ns) / 1e9 * (os.cpu_count() or 1)
            found["cpu_percent"] = min(100.0, 100 * (busy_s - before_s) / whole_s)
        fields = dict(line.split(":", 1) for line in text(self._proc / "meminfo").splitlines() if ":" in line)
        try:
            total, free = (int(fields[name].split()[0]) * 1024 for name in ("MemTotal", "MemAvailable"))
        except (KeyError, ValueError, IndexError):
            return found
        return found | {"memory_bytes": total - free, "memory_total_bytes": total}
