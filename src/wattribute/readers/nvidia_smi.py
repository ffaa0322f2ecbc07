"""Logs of ``nvidia-smi --query-gpu=timestamp,index,power.draw,… --format=csv -l`` → Recording.

Every column that is a number becomes a signal of its GPU; power and energy belong to the device "GPU <index>", which is
what traces call it too. The log names neither its host nor its zone of time: a log is joined to a trace of one host as
that host's, and its times are taken for local ones.
"""

from __future__ import annotations

import csv
import re
from array import array
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..errors import FormatError
from ..model import Device, Recording
from ..plugins import Selection
from . import naming, times
from .building import Builder
from .files import Text, start

_COLUMN = re.compile(r"^[a-z][a-z0-9_.]*(?: \[[^\]]+\])?$")
_KNOWN = re.compile(
    r"^(?:power\.draw|utilization\.|temperature\.|memory\.(?:used|free|total)|clocks\.|enforced\.power|pstate|fan\.speed)"
)
_VALUE = re.compile(r"^(-?\d+(?:\.\d+)?)\s*(\S*)$")
_LIMIT = re.compile(r"limit|power\.m(?:ax|in)")  # watts that are limits, not use
_WHO = ("index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "serial", "gpu_serial")
_STATIC = ("name", "gpu_name", "driver_version", "vbios_version", "count", "pstate", "power.management", *_WHO)


def detects(path: Path) -> bool:
    """A line of the names that nvidia-smi gives its columns, ``timestamp`` among them."""
    line = start(path, 1 << 14).split("\n", 1)[0]
    names = [name.strip() for name in line.split(",")]
    return "timestamp" in names and all(map(_COLUMN.match, names)) and any(map(_KNOWN.match, names))


def read(path: Path, selection: Selection) -> Recording:
    """Each GPU's columns as signals."""
    out, text = Builder(path, selection, "nvidia_smi"), Text(path)
    log = _rows(out, text)
    out.problems += text.problems
    at = times.texts(log.stamps)
    if at.bad.any():
        out.counts["rows without a valid time"] += int(at.bad.sum())
    for number, (key, columns) in enumerate(log.cells.items()):
        _signals(out, _device(number, log.about[key]), columns, at)
    return out.recording(0, at.clock)


@dataclass
class _Log:
    """The cells of a log by GPU and column, with the row each stands in."""

    stamps: list[str] = field(default_factory=list)
    cells: dict[str, dict[str, list[tuple[int, str]]]] = field(default_factory=dict)
    about: dict[str, dict[str, str]] = field(default_factory=dict)


def _rows(out: Builder, text: Text) -> _Log:
    rows = csv.reader(text.lines(), skipinitialspace=True)
    try:
        header = [name.strip() for name in next(rows, [])]
    except csv.Error as error:
        raise FormatError(out.path, f"its first line is not CSV ({error})") from error
    if "timestamp" not in header:
        raise FormatError(out.path, "has no column 'timestamp'; log with --query-gpu=timestamp,index,power.draw")
    log, who = _Log(), next((name for name in _WHO if name in header), None)
    seen: Counter[str] = Counter()  # rows of one moment, for logs that do not say which GPU
    try:
        for row in rows:
            if len(row) != len(header):
                out.counts["rows that are cut or have too many columns"] += bool(row)
                continue
            named = {name: cell.strip() for name, cell in zip(header, row, strict=True)}
            moment = named["timestamp"]
            key = named[who] if who else str(seen[moment])
            seen[moment] += who is None
            if key not in log.cells:
                log.cells[key] = {name: [] for name in header if name != "timestamp" and name not in _STATIC}
                log.about[key] = {name: named[name] for name in _STATIC if name in named}
            for name, cells in log.cells[key].items():
                cells.append((len(log.stamps), named[name]))
            log.stamps.append(moment)
    except csv.Error as error:
        out.problem("truncated", f"is not CSV from row {len(log.stamps) + 2} on ({error})")
    if who is None and len(log.cells) > 1:
        out.problem("index", "does not say which GPU a row is of; they were numbered in the order of rows")
    return log


def _device(number: int, about: dict[str, str]) -> Device:
    index = about.get("index", "")
    properties = {"model": about.get("name", about.get("gpu_name", "")), "uuid": about.get("uuid", "")}
    properties["pci"] = about.get("pci.bus_id", about.get("gpu_bus_id", ""))
    properties["driver"] = about.get("driver_version", "")
    name = f"GPU {index if index.isdigit() else number}"
    return Device(name, "gpu", "", {key: value for key, value in properties.items() if value})


def _signals(out: Builder, device: Device, columns: dict[str, list[tuple[int, str]]], at: times.Times) -> None:
    for name, cells in columns.items():
        title, unit = naming.unit_of(name)
        moments, values = array("q"), array("d")
        missing = 0
        for row, cell in cells:
            match = _VALUE.match(cell)
            if match is None or at.bad[row]:
                missing += match is None
                continue
            unit = unit or match[2]
            moments.append(int(at.ns[row]))
            values.append(float(match[1]))
        if missing and len(moments):
            out.problem("missing", f"{device.name} {title}: {missing} readings are missing ([N/A] …)")
        if not len(moments):
            continue
        out.signal(
            f"nvidia-smi {device.name} {title}",
            np.frombuffer(moments, np.int64),
            np.array(values),
            naming.declared(unit),
            None if _LIMIT.search(title) else device,
        )
