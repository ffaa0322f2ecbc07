"""Live status of a machine: a Status with a DeviceStatus per device; ``as_dict`` is what ``--format json`` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(frozen=True)
class DeviceStatus:
    """One device now: energy since the start, power, and what else it says.

    ``apart`` says why the device is not added to the sums, ``note`` what is wrong with its sensor.
    """

    device: str
    kind: str
    at: int = 0  # when it was read, in the recording's nanoseconds
    energy_j: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    memory_total_bytes: float | None = None
    estimated: bool = False
    apart: str = ""
    note: str = ""
    model: str = ""
    source: str = ""
    gauges: Mapping[str, float] = field(default_factory=dict)  # "utilisation_percent", "temperature_c" …

    @property
    def counted(self) -> bool:
        return not self.apart and not self.note

    def as_dict(self) -> dict[str, Any]:
        """Plain values; what the device says besides energy stands beside it."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name != "gauges"} | dict(self.gauges)


@dataclass(frozen=True)
class CarbonStatus:
    """Grams so far and the intensity now."""

    co2e_g: float
    g_per_kwh: float
    name: str
    zone: str = ""
    assumed: bool = False
    fallback: bool = False
    source: str = ""


@dataclass(frozen=True)
class ProcessStatus:
    """Processes of one name now: how many, the CPU they use (100 % is a core), and the watts above the floor."""

    name: str
    count: int
    cpu_percent: float
    power_w: float | None = None


@dataclass(frozen=True)
class Status:
    """The machine now; the sums are over the devices that count."""

    at: int
    epoch_ns: int
    elapsed_s: float
    host: str
    devices: Sequence[DeviceStatus]
    carbon: CarbonStatus
    power_w: float | None = None
    energy_j: float | None = None
    estimated: bool = False
    cpu_percent: float | None = None
    cpus: int | None = None
    memory_bytes: int | None = None
    memory_total_bytes: int | None = None
    problems: Sequence[str] = ()
    folder: str = ""  # the recording in progress, if one is kept
    processes: Sequence[ProcessStatus] = ()  # those that use most; what they share is above the floor
    static_w: float | None = None  # the floors of the devices that count, as far as they are known
    per: str = ""  # a unit of work that programs count meanwhile
    count: float | None = None  # how many of it since the start
    recent_j_per_unit: float | None = None  # between the last two statuses in which some was done

    @property
    def j_per_unit(self) -> float | None:
        """Energy per unit since the start."""
        return self.energy_j / self.count if self.energy_j is not None and self.count else None

    def as_dict(self) -> dict[str, Any]:
        """Plain values; the devices are under ``live``."""
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "devices"}
        values |= {"live": [device.as_dict() for device in self.devices], "problems": list(self.problems)}
        values["processes"] = [dict(vars(process)) for process in self.processes]
        values |= {"j_per_unit": self.j_per_unit}
        if not self.per:
            values = {k: v for k, v in values.items() if k not in ("per", "count", "recent_j_per_unit", "j_per_unit")}
        return values | {"carbon": dict(vars(self.carbon))}
