"""Reports of Scaphandre (``scaphandre json``) → Recording: power of the host, its sockets, their domains and processes.

A report's power, in microwatts, is the mean since the report before, so it becomes the energy of that time; the first
report has none before it and only marks the beginning. What Scaphandre gave to processes stays a reading of power
without a device: it is a part of the sockets' energy, not energy beside it. Some versions wrote no brackets around the
reports; those files are read, too.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FormatError
from ..model import Device, Recording
from ..plugins import Selection
from ..sensors import Declaration
from .building import NS, Builder
from .documents import listed, nanoseconds, number, objects
from .files import start

_HEAD = re.compile(r'\[?\s*\{\s*"host"\s*:\s*\{\s*"consumption"\s*:')
_DOMAINS = {"core": ("cores", "core"), "uncore": ("integrated GPU", "igpu"), "dram": ("memory", "dram")}
_W_PER_UW = 1e-6


def detects(path: Path) -> bool:
    """A report begins with the consumption of the host."""
    return path.is_file() and _HEAD.match(start(path, 1 << 10)) is not None


def read(path: Path, selection: Selection) -> Recording:
    """A device per host, socket and domain; a reading of power per process."""
    out = Builder(path, selection, "scaphandre")
    devices: dict[tuple[str, str], dict[int, float]] = {}  # (name, kind) → watts by time
    processes: dict[str, dict[int, float]] = {}
    for report in objects(path, out):
        for key, row in _metered(report):
            _add(devices.setdefault(key, {}), row, out)
        for row in listed(report, "consumers"):
            _add(processes.setdefault(_process(row), {}), row, out)
    if not any(len(watts) > 1 for watts in devices.values()):
        raise FormatError(path, "has fewer than two reports with a time and a power; let Scaphandre run for longer")
    for (name, kind), watts in devices.items():
        if not watts:
            continue
        times = np.array(sorted(watts), np.int64)
        joules = np.diff(times, prepend=times[0]) / NS * np.array([watts[at] for at in times.tolist()])
        device = Device(name, kind, "", {"source": "scaphandre"})
        out.signal(f"scaphandre {name} energy", times, joules, Declaration("delta", "J"), device, sure=True)
    for name, watts in processes.items():
        if not watts:
            continue
        times = np.array(sorted(watts), np.int64)
        values = np.array([watts[at] for at in times.tolist()])
        declaration = Declaration("gauge", "W")
        out.signal(
            f"scaphandre power of {name}", times, values, declaration, sure=True, of_device=False, estimated=True
        )
    return out.recording(0, {"uncertainty_ns": 1_000_000})


def _metered(report: dict[str, Any]) -> list[tuple[tuple[str, str], Any]]:
    """The devices (name, kind) of a report, each with the object that has its power.

    The host's figure is that of RAPL's psys, or the sum of the sockets: no meter at the wall, so it counts only alone.
    """
    rows: list[tuple[tuple[str, str], Any]] = []
    for at, socket in enumerate(listed(report, "sockets")):
        number = socket.get("id", at) if isinstance(socket, dict) else at
        rows.append(((f"package {number}", "cpu"), socket))
        for domain in listed(socket, "domains"):
            label = str(domain.get("name", "")) if isinstance(domain, dict) else ""
            name, kind = _DOMAINS.get(label, (label or "domain", "other"))
            rows.append(((f"{name} {number}", kind), domain))
    rows.append((("host", "psys"), report.get("host")))
    return rows


def _process(row: Any) -> str:
    """A process as people know it: its program and number."""
    about = row if isinstance(row, dict) else {}
    return f"{Path(str(about.get('exe') or 'process')).name} ({about.get('pid', '?')})"


def _add(watts: dict[int, float], row: Any, out: Builder) -> None:
    """Note the power and its time, if both are numbers."""
    at = nanoseconds(row.get("timestamp")) if isinstance(row, dict) else None
    microwatts = number(row.get("consumption")) if isinstance(row, dict) else None
    if at is None or microwatts is None or microwatts < 0:
        out.counts["powers without a valid time or value"] += 1
    else:
        watts[at] = microwatts * _W_PER_UW
