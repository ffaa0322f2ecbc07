"""Logs of experiment-impact-tracker (``impacttracker/data.json``) → Recording: power of CPUs and GPUs, use, memory.

A line per sample, with seconds since 1970. The absolute powers are those of meters (RAPL over all packages, NVIDIA over
all GPUs) and count; what the tool ascribes to the experiment is a part of them and stays a reading without a device.
``info.pkl`` beside it is a pickle, which could run anything, and is left alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FormatError
from ..model import Device, Recording
from ..plugins import Selection
from ..sensors import Declaration
from .building import Builder
from .documents import nanoseconds, number, objects
from .files import start

_PLACES = ("data.json", "impacttracker/data.json")  # below the folder that the experiment was given
_CPU, _GPU = ("CPU", "cpu"), ("GPUs", "gpu")


@dataclass(frozen=True)
class _Column:
    """What a name of the log holds; ``times`` turns the log's number into ``unit``."""

    name: str
    unit: str
    device: tuple[str, str] | None = None  # name and kind
    times: float = 1.0


_COLUMNS = {
    "rapl_power_draw_absolute": _Column("CPU power", "W", _CPU),
    "nvidia_draw_absolute": _Column("GPUs power", "W", _GPU),
    "rapl_estimated_attributable_power_draw": _Column("CPU power ascribed to the experiment", "W"),
    "nvidia_estimated_attributable_power_draw": _Column("GPUs power ascribed to the experiment", "W"),
    "absolute_cpu_utilization": _Column("CPU utilisation", "%", _CPU, 100.0),
    "average_gpu_estimated_utilization_absolute": _Column("GPUs utilisation", "%", _GPU, 100.0),
    "absolute_mem_usage": _Column("memory of the experiment", "B"),
}
_KNOWN = tuple(f'"{name}"' for name in (*_COLUMNS, "cpu_count_adjusted_average_load"))


def detects(path: Path) -> bool:
    """A first line with a time and one of the tool's own names; or a folder with such a file."""
    line = start(_file(path), 1 << 16).split("\n", 1)[0]
    return line.startswith("{") and '"timestamp"' in line and any(name in line for name in _KNOWN)


def _file(path: Path) -> Path:
    inside = (path / place for place in _PLACES) if path.is_dir() else ()
    return next((file for file in inside if file.is_file()), path)


def read(path: Path, selection: Selection) -> Recording:
    """The powers and uses as signals; the experiment as one span, so that its joules have a name."""
    file = _file(path)
    out = Builder(file, selection, "impact_tracker")
    readings: dict[str, list[tuple[int, float]]] = {}
    times: list[int] = []
    for row in objects(file, out):
        at = nanoseconds(row.get("timestamp"))
        if at is None:
            out.counts["samples without a valid time"] += 1
            continue
        times.append(at)
        for name, column in _COLUMNS.items():
            value = _value(row, name)
            if value is not None:
                readings.setdefault(name, []).append((at, value * column.times))
    if not readings or len(times) < 2:
        raise FormatError(file, "has fewer than two samples with a time and a power or use of CPU or GPU")
    for name, pairs in readings.items():
        _signal(out, _COLUMNS[name], pairs)
    location = out.thread(0, out.process(0, "experiment"), "experiment")
    out.span(location, min(times), max(times), out.frame("experiment", "command"))
    return out.recording(0, {"uncertainty_ns": 1_000_000})


def _value(row: dict[str, Any], name: str) -> float | None:
    value = number(row.get(name))
    return value if value is not None and value >= 0 else None


def _signal(out: Builder, column: _Column, pairs: list[tuple[int, float]]) -> None:
    at_ns, values = np.array([at for at, _ in pairs], np.int64), np.array([value for _, value in pairs])
    device = Device(*column.device, "", {"source": "experiment-impact-tracker"}) if column.device else None
    out.signal(
        f"impact_tracker {column.name}", at_ns, values, Declaration("gauge", column.unit), device, sure=True,
        of_device=device is not None, estimated=column.unit == "W" and device is None,
    )  # fmt: skip
