"""A sampler in simulated time: a clock, a line to its master that lets time pass, and meters with known energy."""

from dataclasses import dataclass, field
from fractions import Fraction

from tests.meters.fakes import Wave
from wattribute.model import Device
from wattribute.plugins import Availability, Channel
from wattribute.recorders import build, journal
from wattribute.recorders.sampler import Sampler, plain

SECOND = 1_000_000_000


class Time:
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
    stalls: dict[float, float] = field(default_factory=dict)  # at this second of the child's life, sleep so long
    vanish: bool = False
    said: list = field(default_factory=list)
    messages: list = field(default_factory=list)

    def tell(self, message: dict) -> None:
        self.said.append(message)
        if "ready" in message:
            self.start_ns = self.time.now_ns + int(self.start_s * SECOND)
            self.end_ns = self.start_ns + int(self.life_s * SECOND)
            self.messages = [
                (self.start_ns, {"start": self.start_ns, "pid": 7}),
                (self.end_ns, None if self.vanish else {"end": self.end_ns, "exit_code": 0}),
            ]

    def wait(self, until_ns: int):
        until_ns = max(until_ns, self.time.now_ns)
        if self.messages and self.messages[0][0] <= until_ns:
            at, message = self.messages.pop(0)
            self.time.now_ns = max(at, self.time.now_ns)
            return None if message is None else [message]
        self.time.now_ns = until_ns + self.late_ns
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
        waves: list[Wave],
        period_s: float,
        kind="counter",
        wraps_at=None,
        device_kind="gpu",
        known=None,
        read_ns=20_000,
    ):
        self.time, self.waves, self.period_s, self.kind, self.wraps_at = time, waves, period_s, kind, wraps_at
        self.device_kind, self.known, self.read_ns = device_kind, known, read_ns
        self.reads = 0
        self.base = 0

    def available(self):
        return Availability(True)

    def channels(self):
        name, unit = ("energy", "J") if self.kind == "counter" else ("power", "W")
        devices = [
            Device(f"{self.device_kind} {i}", self.device_kind, properties={"uuid": f"{i}"})
            for i in range(len(self.waves))
        ]
        return [
            Channel(
                name, self.kind, unit, device, Fraction(1, 10**6), wraps_at=self.wraps_at, latency_s=self.period_s,
                period_s=self.known,
            )
            for device in devices
        ]  # fmt: skip

    def read(self):
        self.reads += 1
        readings = []
        for wave in self.waves:
            self.time.now_ns += self.read_ns
            seen_s = self.time.now_ns / SECOND // self.period_s * self.period_s
            if self.kind == "gauge":
                value = round(wave.power_w(seen_s) * 1e6)
            else:
                value = self.base + round(wave.energy_j(seen_s) * 1e6)
                value = value % self.wraps_at if self.wraps_at else value
            readings.append((self.time.now_ns, value))
        return readings

    def close(self): ...


def simulate(tmp_path, meters, script, **how):
    """Run a sampler over simulated meters; the Recording that comes of it."""
    path = tmp_path / "journal"
    book = journal.Journal(path)
    about = {"host": "here", "command": ["sleep"], "monotonic_ns": script.time(), "epoch_ns": 10**18}
    about["meters"] = [{"name": m.name, "channels": [plain(c) for c in m.channels()]} for m in meters]
    book.about(about, [m.channels() for m in meters])
    Sampler(meters, book, script, clock=script.time, **how).run()
    book.close()
    return build.build(path.read_bytes(), path)


def truth_j(wave: Wave, script: Script) -> float:
    return wave.energy_j(script.end_ns / SECOND) - wave.energy_j(script.start_ns / SECOND)
