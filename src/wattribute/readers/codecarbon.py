"""codecarbon's ``emissions.csv``: a row per run, in kWh and kg → Recording (see ``run_table``).

A row is written when its run ends, so ``timestamp`` is the end. Memory is always a model's figure; the file does not
say whether the CPU was metered or reckoned from its rated power, so it counts as estimated; GPUs are metered (NVML).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..model import Recording
from ..plugins import Selection
from . import run_table
from .run_table import RunEnergy, TableRun, moment_ns, number

NAME = "codecarbon"
_COLUMNS = {"timestamp", "duration", "emissions", "energy_consumed"}
_KINDS = {"cpu": ("CPU", "cpu", True), "gpu": ("GPUs", "gpu", False), "ram": ("memory", "dram", True)}
_ABOUT = ("run_id", "os", "python_version", "codecarbon_version", "cpu_model", "gpu_model", "tracking_mode", "pue")


def detects(path: Path) -> bool:
    """A CSV file whose first line has the names that all versions of codecarbon give their columns."""
    return path.is_file() and set(run_table.header(path)) >= _COLUMNS


def read(path: Path, selection: Selection) -> Recording:
    """All runs of the file on one timeline."""
    rows, problems = run_table.rows(path, lambda cells: _row(path, cells))
    return run_table.together(path, rows, NAME, problems, selection)


def runs(path: Path, selection: Selection) -> tuple[list[Recording], list[str]]:
    """Each run of the file as a recording of its own; and what was left out."""
    rows, problems = run_table.rows(path, lambda cells: _row(path, cells))
    return [run_table.alone(path, row, NAME, selection) for row in rows], [p.message for p in problems]


def _row(path: Path, cells: Mapping[str, str]) -> TableRun:
    duration_s, energy_kwh = number(cells, "duration"), number(cells, "energy_consumed")
    devices = [
        RunEnergy(
            name,
            kind,
            number(cells, f"{part}_energy", 0.0),
            estimated,
            number(cells, f"{part}_power", 0.0) or None,
        )
        for part, (name, kind, estimated) in _KINDS.items()
    ]
    if not any(device.energy_kwh for device in devices):  # versions before 2 know only the sum
        devices = [RunEnergy("node", "node", energy_kwh, True)]
    project = cells.get("project_name") or NAME
    return TableRun(
        name=project,
        start_ns=moment_ns(cells, "timestamp") - round(duration_s * 1e9),
        duration_s=duration_s,
        energy_kwh=energy_kwh,
        co2e_g=number(cells, "emissions") * 1000,
        place=cells.get("cloud_region") or cells.get("country_name") or "",
        devices=tuple(devices),
        labels={"file": path.stem, "project": project},
        about={name: cells[name] for name in _ABOUT if cells.get(name)},
    )
