"""A machine → what can be metered on it: every meter, its sensors watched for a moment, what is wrong and its remedy.

``examine_machine`` asks each meter, reads it as fast as it can for a second (which is a load: a counter that stands
still meanwhile is dead), measures update period and jitter, and lets alignment look for mirrored and nested sensors and
for counters that disagree with power. The result is plain values; ``views.console_doctor`` prints them.
"""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from .. import _core
from ..engines.middle import examine, sensor_lines
from ..errors import WattributeError
from ..meters import installed, make
from ..model import Clock, Device, Recording, Signal
from ..model.constants import DEAD_S
from ..plugins import Channel, Meter
from ..sensors import known_lines

WATCH_S = 1.0
_TOLD = ("mirrored", "nested", "power-ratio")  # of what alignment finds; a second is too short to judge the rest
_PACKAGES = ("wattribute", "numpy", "polars", "pyarrow", "nvidia-ml-py")

Readings = list[tuple[int, "int | float | None"]]


def examine_machine(
    names: Sequence[str] = (), watch_s: float = WATCH_S, clock: Callable[[], int] = time.monotonic_ns
) -> dict[str, Any]:
    """Every meter (or those named) with its sensors, findings about them, and what runs here."""
    rows, watched = [], []
    for name in names or installed():
        row, signals = _meter(name, watch_s, clock)
        rows.append(row)
        watched += signals
    recording = Recording(
        clock=Clock(), signals=tuple(s for s, _ in watched), devices=tuple({d.name: d for _, d in watched}.values())
    )
    findings = [
        {"kind": check.kind, "message": check.message}
        for check in examine(recording)
        if check.kind in _TOLD and (check.warns or check.kind == "nested")
    ]
    dead = [
        {"kind": "dead", "message": f"{s['device']}: {s['name']} of {row['meter']} exists but does not move"}
        for row in rows
        for s in row["sensors"]
        if s["state"] == "dead"
    ]
    _say_lines(rows, recording)
    return {"meters": rows, "findings": dead + findings, "core": _core.in_use(), "versions": _versions()}


def _meter(name: str, watch_s: float, clock: Callable[[], int]) -> tuple[dict[str, Any], list[tuple[Signal, Device]]]:
    row: dict[str, Any] = {"meter": name, "ok": False, "reason": "", "fix": "", "sensors": []}
    try:
        meter = make(name, clock)
        availability = meter.available()
    except WattributeError as error:
        return row | {"reason": str(error)}, []
    row |= {"ok": availability.ok, "reason": availability.reason, "fix": availability.fix}
    if not availability.ok:
        return row, []
    channels = list(meter.channels())
    columns, read_s = watch(meter, len(channels), watch_s, clock)
    row["read_s"] = read_s
    row["sensors"] = [_sensor(channel, column) for channel, column in zip(channels, columns, strict=True)]
    host = platform.node()
    signals = [
        (_signal(name, c, column, host), replace(c.device, host=host))
        for c, column in zip(channels, columns, strict=True)
        if column
    ]
    meter.close()
    return row, signals


def watch(meter: Meter, channels: int, watch_s: float, clock: Callable[[], int]) -> tuple[list[Readings], float]:
    """Read as fast as the meter answers; (readings per channel, mean time of one read)."""
    columns: list[Readings] = [[] for _ in range(channels)]
    begin = clock()
    reads = 0
    while clock() < begin + watch_s * 1e9:
        for column, reading in zip(columns, meter.read(), strict=True):
            if reading[1] is not None:
                column.append(reading)
        reads += 1
    return columns, (clock() - begin) / 1e9 / max(reads, 1)


def _sensor(channel: Channel, column: Readings) -> dict[str, Any]:
    """Describe one sensor from a second of its readings."""
    times = np.array([at for at, _ in column], np.int64)
    values = np.array([value for _, value in column], np.float64)
    changes = times[1:][np.diff(values) != 0]
    spacing = np.diff(changes) / 1e9
    watched_s = (times[-1] - times[0]) / 1e9 if len(times) > 1 else 0.0
    sensor: dict[str, Any] = {
        "device": channel.device.name,
        "kind": channel.device.kind,
        "name": channel.name,
        "unit": channel.unit,
        "counter": channel.kind == "counter",
        "estimated": channel.estimated,
        "state": "live",
        "value": float(values[-1] * Fraction(channel.scale)) if len(values) else None,
        "power_w": None,
        "update_period_s": float(np.median(spacing)) if len(spacing) else None,
        "jitter_s": float(np.std(spacing)) if len(spacing) > 1 else None,
        "stated_period_s": channel.period_s,
        "gain_error": channel.gain_error,
        "line": "",
        "apart": channel.device.properties.get("apart", ""),
        "properties": dict(channel.device.properties),
    }
    if not len(values):
        sensor["state"] = "silent"
    elif channel.kind == "counter":
        if not len(changes) and watched_s >= max(DEAD_S, 3 * (channel.period_s or 0.0)):
            sensor["state"] = "dead"
        elif len(changes) > 1:
            first, last = np.searchsorted(times, [changes[0], changes[-1]])
            joules = (values[last] - values[first]) * float(channel.scale)
            sensor["power_w"] = joules / ((changes[-1] - changes[0]) / 1e9) if joules >= 0 else None
    elif channel.unit == "W":
        sensor["power_w"] = float(values.mean() * float(channel.scale))
    return sensor


def _signal(meter: str, channel: Channel, column: Readings, host: str) -> Signal:
    times = np.array([at for at, _ in column], np.int64)
    values = np.array([value for _, value in column], np.int64 if channel.whole else np.float64)
    return Signal(
        f"{meter} {channel.name} of {channel.device.name}",
        channel.kind,
        channel.unit,
        times,
        values,
        Fraction(channel.scale),
        host,
        channel.device.name,
        wraps_at=channel.wraps_at,
        estimated=channel.estimated,
    )


def _say_lines(rows: Sequence[dict[str, Any]], recording: Recording) -> None:
    """Which line of the sensor table speaks for each sensor."""
    known = sensor_lines(recording, known_lines())
    labels = {recording.signals[row].name: line.label for row, line in known.items() if line is not None}
    for row in rows:
        for sensor in row["sensors"]:
            sensor["line"] = labels.get(f"{row['meter']} {sensor['name']} of {sensor['device']}", "")


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version(), "kernel": f"{platform.system()} {platform.release()}"}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return versions | {"executable": sys.executable}
