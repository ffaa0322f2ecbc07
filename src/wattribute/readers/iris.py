"""Recorded runs of iris-gpubench: ``timeseries.csv``, with what the ``metrics.yml`` beside it says → Recording.

A row per GPU and moment; power in W, memory in MiB, clocks in MHz. Times are those in the file: the tool's own energies
took the interval that was asked for instead, and came out too low. They are whole seconds of local time; readings that
share one are spread over it. The run is one span, so that its joules have a name.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..errors import FormatError
from ..model import Device, Recording
from ..plugins import Selection
from . import naming, times
from .building import NS, Builder
from .files import Text, start

BESIDE = "metrics.yml"
_GPU = ("gpu_index", "gpu_idx")
# column → what it is called here, and its unit; both spellings that the tool has had
_COLUMNS = {
    "power": ("power", "W"),
    "utilization": ("utilisation", "%"),
    "util": ("utilisation", "%"),
    "temperature": ("temperature", "°C"),
    "temp": ("temperature", "°C"),
    "memory": ("memory", "MiB"),
    "mem": ("memory", "MiB"),
    "clk_speed": ("sm_clock", "MHz"),
    "mem_clk_speed": ("memory_clock", "MHz"),
}
_TOLD = re.compile(r"^(\w+): *'?([^'\n]*?)'?$", re.MULTILINE)  # metrics.yml is flat: "name: value" lines


def detects(path: Path) -> bool:
    """A first line of this tool's columns and no others; or a folder of results that has such a file."""
    names = start(_file(path), 1 << 10).split("\n", 1)[0].strip().split(",")
    return names[0] == "timestamp" and names[1:2] != [] and names[1] in _GPU and set(names[2:]) <= set(_COLUMNS)


def _file(path: Path) -> Path:
    return path / "timeseries.csv" if path.is_dir() else path


def read(path: Path, selection: Selection) -> Recording:
    """Each GPU's columns as signals, and the run as a span."""
    file = _file(path)
    out, text = Builder(file, selection, "iris"), Text(file)
    rows = _rows(out, text)
    out.problems += text.problems
    at = times.texts([row["timestamp"] for row in rows])
    if at.bad.all() or not at.wall:
        raise FormatError(file, "has no valid times (some versions of the tool wrote one character of each)")
    if at.bad.any():
        out.counts["rows without a valid time"] += int(at.bad.sum())
    kept = [row for row, bad in zip(rows, at.bad, strict=True) if not bad]
    reported = _beside(file)
    gpus = np.array([row["gpu"] for row in kept])
    for gpu in sorted(set(gpus.tolist())):
        _signals(out, gpu, [row for row in kept if row["gpu"] == gpu], _spread(at.ns[~at.bad][gpus == gpu]), reported)
    name = reported.get("benchmark") or "benchmark"
    location = out.thread(0, out.process(0, name), "benchmark")
    out.span(location, int(at.ns[~at.bad].min()), int(at.ns[~at.bad].max()), out.frame(name, "command"))
    out.metadata |= {"name": name, "reported": reported} if reported else {"name": name}
    return out.recording(0, at.clock)


def _rows(out: Builder, text: Text) -> list[dict[str, str]]:
    reader = csv.reader(text.lines())
    header = ["gpu" if name in _GPU else name for name in next(reader, [])]
    if not {"timestamp", "gpu"} <= set(header):
        raise FormatError(out.path, "has no columns timestamp and gpu_index")
    rows = []
    try:
        for row in reader:
            if len(row) != len(header):
                out.counts["rows that are cut or have too many columns"] += bool(row)
                continue
            rows.append(dict(zip(header, row, strict=True)))
    except csv.Error as error:
        out.problem("truncated", f"is not CSV from row {len(rows) + 2} on ({error})")
    if not rows:
        raise FormatError(out.path, "has no rows")
    return rows


def _signals(
    out: Builder, gpu: str, rows: list[dict[str, str]], at_ns: npt.NDArray[np.int64], reported: dict[str, str]
) -> None:
    properties = {"model": reported.get("name", ""), "power_limit_w": reported.get("max_power_limit", "")}
    device = Device(f"GPU {gpu}", "gpu", "", {key: value for key, value in properties.items() if value})
    for column in rows[0]:
        if column not in _COLUMNS:
            continue
        quantity, unit = _COLUMNS[column]
        values = np.array([_number(row[column]) for row in rows])
        known = np.isfinite(values)
        if not known.all():
            out.problem("missing", f"{device.name} {quantity}: {int((~known).sum())} readings are not numbers")
        if known.any():
            declaration = naming.declared(unit, "gauge")
            out.signal(f"iris {device.name} {quantity}", at_ns[known], values[known], declaration, device, sure=True)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _spread(at_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Readings of one second, which the file cannot tell apart, evenly over that second."""
    _, which, counts = np.unique(at_ns, return_inverse=True, return_counts=True)
    place = np.empty(len(at_ns), np.int64)  # of a reading among those of its second, in file order
    place[np.argsort(which, kind="stable")] = np.concatenate([np.arange(count) for count in counts])
    return at_ns + place * NS // counts[which]


def _beside(file: Path) -> dict[str, str]:
    """Read the tool's own summary of the run, if its file is there."""
    return dict(_TOLD.findall(start(file.parent / BESIDE)))
