"""Energy per region over all devices that count: attribution's rows, added up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..carbon.recordings import counted
from ..engines import attribute
from ..model import Recording

WHOLE = "(all)"


@dataclass(frozen=True)
class RegionEnergy:
    """The energy of a region, callees included; bounds are None where no meter counted it."""

    name: str
    calls: int
    seconds: float
    energy_j: float
    low_j: float | None
    high_j: float | None
    estimated: bool
    period_s: float  # between two updates of the slowest sensor

    @property
    def power_w(self) -> float | None:
        return self.energy_j / self.seconds if self.seconds else None

    @property
    def short(self) -> bool:
        """Whether a call is over before the sensor has moved."""
        return self.calls > 0 and self.seconds / self.calls < self.period_s


def used(recording: Recording, include: str = "") -> list[RegionEnergy]:
    """The whole recording first, then its regions, the hungriest first; ``include`` keeps names that contain it."""
    devices = [(one, energy.between(*recording.life)) for one, energy in counted(recording)]
    estimated = any(energy.signal.estimated for _, energy in devices)
    period_s = max((_period_s(energy.times, recording) for _, energy in devices), default=0.0)
    joules = sum(energy.measured for _, energy in devices)
    length = [energy.times[[0, -1]] for _, energy in devices if len(energy.times)]
    seconds = recording.clock.seconds(max(t[1] for t in length) - min(t[0] for t in length)) if length else 0.0
    whole = RegionEnergy(WHOLE, 1, float(seconds), joules, None, None, estimated, period_s)
    if not recording.spans.locations():
        return [whole]
    rows = attribute(recording, by=("device", "frame"), quantity="energy").rows
    grouped: dict[str, list[dict[str, Any]]] = {}
    for row in rows.iter_rows(named=True):
        if include in row["frame"]:
            grouped.setdefault(row["frame"], []).append(row)
    regions = [_used(name, group, estimated, period_s) for name, group in grouped.items()]
    return [whole, *sorted(regions, key=lambda one: -one.energy_j)]


def _used(name: str, rows: Sequence[dict[str, Any]], estimated: bool, period_s: float) -> RegionEnergy:
    hosts: dict[str, dict[str, Any]] = {row["host"]: row for row in rows}  # the devices of a host saw the same calls
    return RegionEnergy(
        name,
        sum(row["calls"] for row in hosts.values()),
        sum(row["total_ns"] for row in hosts.values()) / 1e9,
        sum(row["total_j"] for row in rows),
        _sum([row["total_low_j"] for row in rows]),
        _sum([row["total_high_j"] for row in rows]),
        estimated,
        period_s,
    )


def _sum(values: Sequence[float | None]) -> float | None:
    """None when one is unknown: a sum of some bounds bounds nothing."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _period_s(times: Any, recording: Recording) -> float:
    return float(recording.clock.seconds(np.median(np.diff(times)))) if len(times) > 1 else 0.0
