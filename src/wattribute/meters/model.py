"""No sensor: an estimate from CPU time and installed memory, always marked *estimated*.

Power = cores × (idle + load × (busy − idle)) with watts per logical core by processor generation, and 0.392 W per GB
of memory: figures published by Cloud Carbon Footprint (Apache-2.0; derived from SPECpower_ssj2008 results). Its
author warns of servers that differ by a factor; we state ± 50 %. The estimate is a counter, so a short run costs
something: idle power over its time. ``root`` is a /proc.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

from ..model import Device
from ..plugins import Availability, Channel
from .files import BusyCores, text
from .sources import Row, Sources

UNCERTAINTY = 0.5
MEMORY_W_PER_GB = 0.392
PERIOD_S = 0.2  # the kernel counts CPU time in steps of 10 ms; nothing is gained by looking often
# generation → (idle, busy) watts per logical core
_WATTS = {
    "average": (0.74, 3.5),
    "sandy bridge": (2.17, 8.58),
    "ivy bridge": (3.04, 8.25),
    "haswell": (1.00, 4.74),
    "broadwell": (0.71, 3.69),
    "skylake": (0.65, 4.26),
    "cascade lake": (0.64, 3.97),
    "coffee lake": (1.14, 5.42),
    "epyc 1": (0.82, 2.55),
    "epyc 2": (0.47, 1.69),
    "epyc 3": (0.45, 2.02),
}
# (vendor, family) → model → generation
_GENERATIONS = {
    ("GenuineIntel", 6): {
        42: "sandy bridge", 45: "sandy bridge", 58: "ivy bridge", 62: "ivy bridge", 60: "haswell", 63: "haswell",
        69: "haswell", 70: "haswell", 61: "broadwell", 71: "broadwell", 79: "broadwell", 86: "broadwell",
        78: "coffee lake", 94: "coffee lake", 142: "coffee lake", 158: "coffee lake", 85: "skylake",
    },
    ("AuthenticAMD", 23): {1: "epyc 1", 49: "epyc 2"},
    ("AuthenticAMD", 25): {0: "epyc 3", 1: "epyc 3"},
}  # fmt: skip
_CASCADE_LAKE_STEPPING = 5


class PowerModel:
    """The meter ``model``."""

    name = "model"

    def __init__(self, root: str | None = None, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._proc, self._clock = Path(root or "/proc"), clock
        self._start_ns = clock()
        self._cores = os.cpu_count() or 1
        self.generation = _generation(self._proc)
        self.idle_w, self.busy_w = _WATTS[self.generation]
        self.memory_w = MEMORY_W_PER_GB * _memory_gb(self._proc)
        self._busy = BusyCores(self._proc)
        self._first_busy_s = self._busy_s()
        self._last = self._start_ns, 0.0  # when it was last read, and the core-seconds counted by then
        self.sources = Sources(clock)
        if self._busy.ticks is not None:
            self.sources.add(self._busy.ticks)

    def available(self) -> Availability:
        return Availability(True, f"CPU time × {self.busy_w} W per busy core ({self.generation})")

    def channels(self) -> Sequence[Channel]:
        source = f"CPU time × published power per core ({self.generation})"
        common = {
            "scale": Fraction(1, 10**6),
            "period_s": PERIOD_S,
            "estimated": True,
            "gain_error": UNCERTAINTY,
        }
        about = {"source": source, "model": _name(self._proc), "floor_w": f"{self._cores * self.idle_w:.6g}"}
        cpu = Device("CPU", "cpu", properties=about)
        installed = f"{MEMORY_W_PER_GB} W per GB installed"
        memory = Device("memory", "dram", properties={"source": installed, "floor_w": f"{self.memory_w:.9g}"})
        return [
            Channel("energy", "counter", "J", cpu, **common),  # type: ignore[arg-type]
            Channel("energy", "counter", "J", memory, **common),  # type: ignore[arg-type]
        ]

    def read(self) -> Row:
        if self.sources:
            return self.readings(self.sources.read())
        busy_s = self._busy_s()
        return self._spent(self._clock(), busy_s)

    def readings(self, row: Row) -> Row:
        """Turn the readings of the sources (CPU time) into energy."""
        ((now, ticks),) = row
        if ticks is None:
            return [(now, None), (now, None)]
        return self._spent(now, ticks / self._busy.ticks_per_s)

    def _spent(self, now: int, busy_s: float) -> Row:
        elapsed_s = (now - self._start_ns) / 1e9
        # the kernel counts in steps: what no core can have done since the last reading waits for the next one
        before_ns, before_s = self._last
        most_s = before_s + self._cores * max(now - before_ns, 0) / 1e9
        load_s = max(min(busy_s - self._first_busy_s, most_s), before_s)
        self._last = max(now, before_ns), load_s
        cpu_j = self._cores * self.idle_w * elapsed_s + load_s * (self.busy_w - self.idle_w)
        return [(now, int(cpu_j * 1e6)), (now, int(self.memory_w * elapsed_s * 1e6))]

    def _busy_s(self) -> float:
        busy_s = self._busy.seconds()
        if busy_s is None:  # no /proc: the load average, held over the time since we began
            elapsed_s = (self._clock() - self._start_ns) / 1e9
            return min(os.getloadavg()[0], self._cores) * elapsed_s
        return busy_s

    def close(self) -> None:
        self._busy.close()


def _fields(proc: Path) -> dict[str, str]:
    """The first processor's entry in cpuinfo."""
    entry = text(proc / "cpuinfo").split("\n\n", 1)[0]
    pairs = (line.partition(":") for line in entry.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def _generation(proc: Path) -> str:
    fields = _fields(proc)
    try:
        family, model = int(fields["cpu family"]), int(fields["model"])
        generation = _GENERATIONS.get((fields["vendor_id"], family), {}).get(model, "average")
        if generation == "skylake" and int(fields["stepping"]) >= _CASCADE_LAKE_STEPPING:
            return "cascade lake"
    except (KeyError, ValueError):
        return "average"
    return generation


def _name(proc: Path) -> str:
    name = _fields(proc).get("model name", "")
    if not name:
        import platform

        name = platform.processor() or platform.machine()
    return name


def _memory_gb(proc: Path) -> float:
    for line in text(proc / "meminfo").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024 / 1e9
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    except (OSError, ValueError):
        return 8.0
