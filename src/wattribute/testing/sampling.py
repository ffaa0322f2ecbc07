"""The sampler in simulated time: a clock, a master that lets time pass, and meters with known energy.

::

    time = Time()
    script = Script(time, life_s=10.0)
    recording = sample(folder, [SimulatedMeter(time, [Wave(300)], period_s=0.1)], script)
    true_j(Wave(300), script)  # 3000
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from ..journal import file as journal
from ..model import Device, Recording
from ..plugins import Availability, Channel
from ..readers.journal import build
from ..recorders.sampler import Sampler, plain
from .simulation import Power

SECOND = 1_000_000_000


class Time:
    """A clock that stands still until it is moved."""

    def __init__(self, now_ns: int = 1000 * SECOND) -> None:
        self.now_ns = now_ns

    def __call__(self) -> int:
        return self.now_ns


@dataclass
class Script:
    """A master: the child starts ``start_s`` after ready and lives ``life_s``; a wait takes ``late_ns`` too long."""

    time: Time
    life_s: float
    start_s: float = 0.003
    late_ns: int = 0
    lateness: Callable[[], float] = float  # seconds by which one wait more is late: a busy machine
    stalls: dict[float, float] = field(default_factory=dict)  # at this second of the child's life, sleep so long
    vanish: bool = False
    sent: list[dict[str, Any]] = field(default_factory=list)
    messages: list[tuple[int, dict[str, Any] | None]] = field(default_factory=list)
    start_ns: int = 0
    end_ns: int = 0

    def tell(self, message: dict[str, Any]) -> None:
        self.sent.append(message)
        if "ready" in message:
            self.start_ns = self.time.now_ns + int(self.start_s * SECOND)
            self.end_ns = self.start_ns + int(self.life_s * SECOND)
            self.messages = [
                (self.start_ns, {"start": self.start_ns, "pid": 7}),
                (self.end_ns, None if self.vanish else {"end": self.end_ns, "exit_code": 0}),
            ]

    def wait(self, until_ns: int) -> list[dict[str, Any]] | None:
        until_ns = max(until_ns, self.time.now_ns)
        if self.messages and self.messages[0][0] <= until_ns:
            at, message = self.messages.pop(0)
            self.time.now_ns = max(at, self.time.now_ns)
            return None if message is None else [message]
        self.time.now_ns = until_ns + self.late_ns + int(self.lateness() * SECOND)
        for after_s in list(self.stalls):
            if self.messages and self.time.now_ns >= self.start_ns + after_s * SECOND:
                self.time.now_ns += int(self.stalls.pop(after_s) * SECOND)
        return []


class SimulatedMeter:
    """One device per wave, its counter (or gauge) refreshed every ``period_s``; a read takes ``read_ns``."""

    name = "simulated"

    def __init__(
        self,
        time: Time,
        waves: Sequence[Power],
        period_s: float,
        kind: str = "counter",
        wraps_at: int | None = None,
        device_kind: str = "gpu",
        known: float | None = None,
        read_ns: int = 20_000,
        states_latency: bool = True,
    ) -> None:
        self.time, self.waves, self.period_s, self.kind, self.wraps_at = time, waves, period_s, kind, wraps_at
        self.device_kind, self.known, self.read_ns = device_kind, known, read_ns
        self.states_latency = states_latency
        self.reads = 0
        self.base = 0

    def available(self) -> Availability:
        return Availability(True)

    def channels(self) -> list[Channel]:
        name, unit = ("energy", "J") if self.kind == "counter" else ("power", "W")
        return [
            Channel(
                name,
                self.kind,
                unit,
                Device(f"{self.device_kind} {i}", self.device_kind, properties={"uuid": f"{i}"}),
                Fraction(1, 10**6),
                wraps_at=self.wraps_at,
                latency_s=self.period_s if self.states_latency else None,
                period_s=self.known,
            )
            for i in range(len(self.waves))
        ]

    def read(self) -> list[tuple[int, int | float | None]]:
        self.reads += 1
        readings: list[tuple[int, int | float | None]] = []
        for wave in self.waves:
            self.time.now_ns += self.read_ns
            seen_s = self.time.now_ns / SECOND // self.period_s * self.period_s
            if self.kind == "gauge":
                value = round(float(wave.power_w(seen_s)) * 1e6)
            else:
                value = self.base + round(float(wave.energy_j(seen_s)) * 1e6)
                value = value % self.wraps_at if self.wraps_at else value
            readings.append((self.time.now_ns, value))
        return readings

    def close(self) -> None: ...


def prepare(
    folder: Path, meters: Sequence[Any], script: Script, regions: Path | None = None, **how: Any
) -> tuple[Sampler, Callable[[], Recording]]:
    """A sampler that has not run yet, and what makes a recording of its journal."""
    path = folder / "journal"
    book = journal.Journal(path)
    about: dict[str, Any] = {"host": "here", "command": ["sleep"], "monotonic_ns": script.time(), "epoch_ns": 10**18}
    about["meters"] = [{"name": m.name, "channels": [plain(c) for c in m.channels()]} for m in meters]
    book.about(about, [m.channels() for m in meters])

    def finished() -> Recording:
        book.close()
        return build(path.read_bytes(), path, regions)

    return Sampler(meters, book, script, clock=script.time, **how), finished


def sample(folder: Path, meters: Sequence[Any], script: Script, regions: Path | None = None, **how: Any) -> Recording:
    """Run a sampler over meters in simulated time; ``how`` are the sampler's options, ``regions`` a folder of files."""
    sampler, finished = prepare(folder, meters, script, regions, **how)
    sampler.run()
    return finished()


def true_j(power: Power, script: Script) -> float:
    """What a device used while the child lived."""
    return float(power.energy_j(script.end_ns / SECOND) - power.energy_j(script.start_ns / SECOND))
