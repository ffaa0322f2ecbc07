"""Eco2AI's ``emission.csv``: a row per run with its start, kWh and kg → Recording (see ``run_table``).

The energy is of CPU, GPU and memory together and partly a model's figure, so it is one device, estimated. A run that
counts epochs writes a row for each under the same id; those are parts of their run and are added up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ..model import Problem, Recording
from ..plugins import Selection
from . import run_table
from .run_table import RunEnergy, TableRun, moment_ns, number

NAME = "eco2ai"
_ENERGY = ("power_consumption(kWh)", "power_consumption(kWTh)")  # older versions misspell it
_COLUMNS = {"start_time", "duration(s)", "CO2_emissions(kg)"}
_ABOUT = {"id": "run_id", "CPU_name": "cpu_model", "GPU_name": "gpu_model", "OS": "os", "epoch": "epoch"}


def detects(path: Path) -> bool:
    """A CSV file whose first line has Eco2AI's names of columns, units and all."""
    if not path.is_file():
        return False
    names = set(run_table.header(path))
    return names >= _COLUMNS and any(name in names for name in _ENERGY)


def read(path: Path, selection: Selection) -> Recording:
    """All runs of the file on one timeline."""
    rows, problems = _rows(path)
    return run_table.together(path, rows, NAME, problems, selection)


def runs(path: Path, selection: Selection) -> tuple[list[Recording], list[str]]:
    """Each run of the file as a recording of its own; and what was left out."""
    rows, problems = _rows(path)
    return [run_table.alone(path, row, NAME, selection) for row in rows], [p.message for p in problems]


def _rows(path: Path) -> tuple[list[TableRun], list[Problem]]:
    rows, problems = run_table.rows(path, lambda cells: _row(path, cells))
    by_run: dict[str, list[TableRun]] = {}
    for at, row in enumerate(rows):
        epochs = row.about.get("epoch", "N/A") not in ("N/A", "")
        by_run.setdefault(row.about.get("run_id", "") if epochs else f"row {at}", []).append(row)
    return [_whole(parts) for parts in by_run.values()], problems


def _whole(parts: Sequence[TableRun]) -> TableRun:
    """A run from its epochs."""
    if len(parts) == 1:
        return parts[0]
    kwh = sum(part.energy_kwh for part in parts)
    return replace(
        parts[0],
        start_ns=min(part.start_ns for part in parts),
        duration_s=sum(part.duration_s for part in parts),
        energy_kwh=kwh,
        co2e_g=sum(part.co2e_g or 0.0 for part in parts),
        devices=(replace(parts[0].devices[0], energy_kwh=kwh),),
        about={**parts[0].about, "epoch": f"{len(parts)} epochs"},
    )


def _row(path: Path, cells: Mapping[str, str]) -> TableRun:
    energy_kwh = number(cells, next((name for name in _ENERGY if name in cells), _ENERGY[0]))
    project = cells.get("project_name") or NAME
    labels = {"file": path.stem, "project": project, "experiment": cells.get("experiment_description", "")}
    return TableRun(
        name=project,
        start_ns=moment_ns(cells, "start_time"),
        duration_s=number(cells, "duration(s)"),
        energy_kwh=energy_kwh,
        co2e_g=number(cells, "CO2_emissions(kg)") * 1000,
        place=cells.get("region/country", ""),
        devices=(RunEnergy("node", "node", energy_kwh, True),),
        labels={name: value for name, value in labels.items() if value},
        about={ours: cells[name] for name, ours in _ABOUT.items() if cells.get(name)},
    )
