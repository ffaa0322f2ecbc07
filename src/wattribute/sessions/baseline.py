"""The baseline of this machine: the power of its devices at rest, measured while nothing runs.

``measure`` watches the meters for some quiet seconds and refuses while the machine works; ``recorders.baselines`` keeps
the result, and every later recording on this host carries it as the floor of its devices.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ..engines.middle import REST, metered_devices, utilisation_of
from ..errors import MeterError, NoDataError, OptionError
from ..meters.files import busy_core_s
from ..model import Recording
from ..recorders import baselines
from ..recorders.record import record

SECONDS = 10.0
LOOK_S = 1.0
PARTS = 5  # of the time, whose means differ by the spread


@dataclass(frozen=True)
class DeviceFloor:
    """The power of one device at rest: the mean, and the least and the most of the means over parts of the time."""

    floor_w: float
    low_w: float
    high_w: float


@dataclass(frozen=True)
class Baseline:
    """The floors of a host's devices; ``as_dict`` is its file."""

    host: str
    date: str  # ISO 8601
    seconds: float
    utilisation: float | None  # of the CPUs meanwhile, 0 to 1
    devices: dict[str, DeviceFloor]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def measure(
    seconds: float = SECONDS,
    *,
    meters: Sequence[str] = (),
    busy_s: Callable[[], float | None] = busy_core_s,
    wait: Callable[[float], None] = time.sleep,
) -> Baseline:
    """Watch a machine at rest; raises MeterError as soon as it works. ``busy_s`` are core-seconds so far."""
    if not 1 <= seconds <= 3600:
        raise OptionError(f"--seconds {seconds:g}: choose from 1 to 3600")
    cores, began = os.cpu_count() or 1, time.monotonic()
    first, used = busy_s(), None
    with record(meters=meters) as recorder:
        before, start = busy_s(), time.monotonic()
        while (left := seconds - (time.monotonic() - start)) > 0:
            look = min(LOOK_S, left)
            wait(look)
            after = busy_s()
            if before is not None and after is not None:
                _check((after - before) / (cores * look), look)
            before = after
    if first is not None and before is not None:
        used = (before - first) / (cores * (time.monotonic() - began))
    return _baseline(recorder.recording, seconds, used)


def _check(used: float, look_s: float) -> None:
    """Refuse a machine that works; a look that is cut short sees too few of the kernel's ticks to say."""
    if used > REST and look_s >= LOOK_S / 2:
        raise MeterError(
            f"the machine is busy ({used:.0%} of its CPUs are in use, a baseline needs less than {REST:.0%}): "
            "try again when nothing else runs"
        )


def _baseline(recording: Recording, seconds: float, used: float | None) -> Baseline:
    import numpy as np

    floors: dict[str, DeviceFloor] = {}
    for one in metered_devices(recording):
        curve = one.energy(recording).between(*recording.life)
        if curve.signal.estimated or one.parts or len(curve.times) < 2:
            continue
        use = utilisation_of(recording, one.device) if one.device.kind == "gpu" else None  # of CPUs: ``used``
        if use is not None and len(use.parts) and float(use.parts.mean()) > REST:
            raise MeterError(f"{one.device.name} is busy (utilisation {use.parts.mean():.0%}): try again when it rests")
        edges = np.linspace(int(curve.times[0]), int(curve.times[-1]), PARTS + 1).astype(np.int64)
        rate = recording.clock.ticks_per_s
        means = np.diff(curve.at(edges)) / np.maximum(np.diff(edges), 1) * rate
        mean = curve.measured / max(int(edges[-1] - edges[0]), 1) * rate
        floors[one.device.name] = DeviceFloor(mean, min(mean, float(means.min())), max(mean, float(means.max())))
    if not floors:
        raise NoDataError("no sensor of this machine moved, so there is no power at rest; run: wattribute doctor")
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    host = str(recording.metadata.get("host", ""))
    return Baseline(host, now, seconds, used, floors)


def save(baseline: Baseline) -> Path:
    """Keep it for later recordings on this host."""
    return baselines.save(baseline.as_dict())


def known(host: str | None = None) -> dict[str, Any]:
    """The baseline that recordings on a host (this one) carry, or nothing."""
    return baselines.of_host(os.uname().nodename if host is None else host)
