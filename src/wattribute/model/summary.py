"""Summary of a run: a Summary with a DeviceSummary per device; ``as_dict`` is ``summary.json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from .coverage import is_partial


@dataclass(frozen=True)
class DeviceSummary:
    """One device: its energy with its ranges and their causes, power, and the means of what else it says.

    ``low_j`` and ``high_j`` are a 95 % range, ``hard_low_j`` and ``hard_high_j`` what is possible at all.
    ``energy_j`` is None where the sensor did not move or, with a small ``coverage``, was not read; ``apart`` says why
    the device is not counted in the total.
    """

    device: str
    kind: str
    energy_j: float | None = None
    low_j: float | None = None
    high_j: float | None = None
    hard_low_j: float | None = None
    hard_high_j: float | None = None
    mean_w: float | None = None
    peak_w: float | None = None
    estimated: bool = False
    apart: str = ""
    source: str = ""
    causes: Sequence[str] = ()
    notes: Sequence[str] = ()
    signal: str | None = None
    coverage: float | None = None
    share: float = 1.0
    command_j: float | None = None  # the bill: what the command used above the floor …
    others_j: float | None = None  # … what other processes did, where that is known …
    static_j: float | None = None  # … and floor × time, where the floor is known
    host: str = ""
    gauges: Mapping[str, float] = field(default_factory=dict)  # "utilisation_percent", "max_temperature_celsius" …

    @property
    def counted(self) -> bool:
        return not self.apart and self.energy_j is not None

    @property
    def partial(self) -> bool:
        """Whether its readings leave out a part of the run, so that its energy is a lower limit."""
        return is_partial(self.coverage)

    def as_dict(self) -> dict[str, Any]:
        """Plain values; what the device says besides energy stands beside it."""
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "gauges"}
        if self.signal is None:
            for name in ("signal", "share", *(("coverage",) if self.coverage is None else ())):
                values.pop(name)
        return values | {"causes": list(self.causes), "notes": list(self.notes)} | dict(self.gauges)


@dataclass(frozen=True)
class PerUnit:
    """What a run took per unit of work (token, request, step): ``count`` of them were done."""

    unit: str
    count: float
    duration_s: float | None = None
    energy_j: float | None = None
    low_j: float | None = None
    high_j: float | None = None
    co2e_g: float | None = None
    co2e_low_g: float | None = None
    co2e_high_g: float | None = None

    def as_dict(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name != "unit"}


@dataclass(frozen=True)
class Summary:
    """One run: its command, duration, the sums over the devices that count, carbon, and what looks wrong."""

    duration_s: float
    command: Sequence[str] = ()
    exit_code: int | None = None
    score: float | str | None = None
    energy_j: float | None = None
    low_j: float | None = None
    high_j: float | None = None
    mean_w: float | None = None
    estimated: bool = False
    partial: bool = False  # a part of the run, or a device, was not seen: the energy is a lower limit
    co2e_g: float | None = None
    scope: str = "machine"
    share_rule: str = ""
    command_j: float | None = None  # the bill, as far as it is known; see DeviceSummary
    others_j: float | None = None
    static_j: float | None = None
    busy_mean_w: float | None = None
    devices: Sequence[DeviceSummary] = ()
    cpu_s: float | None = None
    sampler_cpu_s: float | None = None
    max_rss_bytes: int | None = None
    unseen: Sequence[Mapping[str, Any]] = ()  # meters that could be used after a fix
    notes: Sequence[str] = ()
    carbon: Mapping[str, Any] | None = None
    counts: Mapping[str, float] = field(default_factory=dict)  # by unit of work

    def per(self, unit: str) -> PerUnit | None:
        """Time, energy and emissions per unit; None if none was counted."""
        count = self.counts.get(unit, 0.0)
        if not count > 0:
            return None
        names = ("duration_s", "energy_j", "low_j", "high_j", "co2e_g")
        values = {name: getattr(self, name) for name in names}
        values["co2e_low_g"], values["co2e_high_g"] = self.co2e_range_g
        return PerUnit(unit, count, **{n: None if value is None else value / count for n, value in values.items()})

    @property
    def co2e_range_g(self) -> tuple[float | None, float | None]:
        """The range of the emissions; see ``wattribute.carbon.Emissions.range_g``."""
        carbon = self.carbon or {}
        return carbon.get("co2e_low_g"), carbon.get("co2e_high_g")

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as ``summary.json`` has them."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        values |= {"command": list(self.command), "devices": [device.as_dict() for device in self.devices]}
        values |= {"unseen": list(self.unseen), "notes": list(self.notes)}
        if self.carbon is None:
            values.pop("carbon")
        if not self.counts:
            values.pop("counts")
            return values
        each = {unit: self.per(unit) for unit in self.counts}
        return values | {
            "counts": dict(self.counts),
            "per": {unit: one.as_dict() for unit, one in each.items() if one is not None},
        }


@dataclass(frozen=True)
class Interval:
    """Mean, standard deviation and the 95 % confidence interval of the mean (None for fewer than two values)."""

    mean: float
    std: float | None = None
    ci95_low: float | None = None
    ci95_high: float | None = None

    def as_dict(self) -> dict[str, float | None]:
        return asdict(self)
