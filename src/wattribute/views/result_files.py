"""Result files of a run for people, beside its recording: ``summary.txt`` and ``metrics_plot.png``.

What programs read (``metrics.json``, ``metrics.yml``, ``timeseries.*``) ``run`` writes itself; these need Rich and
Altair, so ``cli`` asks for them once the run is saved.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ..errors import OutputError
from ..model import Recording, Summary
from ..units import SUFFIXES
from .console_run import run_screen
from .live_plot import PLOT
from .numbers import seconds, si
from .save import save
from .terminal import Console

SUMMARY = "summary.txt"
WIDTH = 110
_UNITS = {suffix: unit for unit, suffix in SUFFIXES.items()}
_LIMITS = {"power_w": "power_limit_w", "memory_bytes": "memory_total_bytes"}


def write_summary(summary: Summary, metrics: Mapping[str, Any], folder: Path) -> Path:
    """The run as text: what ``run`` prints, then a table of the run, its carbon and each device."""
    path = folder / SUMMARY
    try:
        with path.open("w", encoding="utf-8") as file:
            console = Console(file=file, width=WIDTH, color_system=None, highlight=False)
            console.print(run_screen(summary), _run(metrics), _carbon(metrics), _devices(metrics), sep="\n\n")
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror or error}") from error
    return path


def write_plot(recording: Recording, folder: Path) -> Path:
    """Power, utilisation, temperature and memory over time; the file appears whole or not at all."""
    from . import plot

    return save(plot.panels(recording), folder / PLOT)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="", box=box.ASCII)
    for name in columns:
        table.add_column(name)
    return table


def _run(metrics: Mapping[str, Any]) -> RenderableType:
    table = _table("Run", "metric", "value")
    estimated = " (estimated)" if metrics["estimated"] else ""
    energy = "below resolution" if metrics["devices"] else "not metered here"
    if metrics["energy_j"] is not None:
        energy = f"{si(metrics['energy_j'], 'J')} = {metrics['energy_kwh']:.6g} kWh{estimated}"
    score = "–" if metrics["score"] is None else str(metrics["score"])
    rows = {"benchmark": metrics["benchmark"], "score": score, "exit code": str(metrics["exit_code"])}
    rows |= {"start": metrics["start"] or "–", "end": metrics["end"] or "–"}
    for name, value in (rows | {"elapsed": seconds(metrics["elapsed_s"]), "energy": energy}).items():
        table.add_row(name, Text(value))
    return table


def _carbon(metrics: Mapping[str, Any]) -> RenderableType:
    carbon = metrics["carbon"]
    if carbon is None:
        return Text("Carbon: unknown, as there is no energy")
    table = _table("Carbon", "metric", "value")
    code = f" ({carbon['zone']})" if carbon["zone"] else ""  # a given figure has none
    zone = f"{carbon['name']}{code}" + (", assumed" if carbon["assumed"] else "")
    rows = {"emissions": f"{si(carbon['co2e_g'], 'g')} CO2e", "intensity": f"{carbon['g_per_kwh']:.4g} g/kWh"}
    rows |= {"zone": zone, "from": carbon["start"] or "–", "to": carbon["end"] or "–"}
    for name, value in rows.items():
        table.add_row(name, Text(value))
    return table


def _devices(metrics: Mapping[str, Any]) -> RenderableType:
    """A column per device; averages are over the readings taken while it was in use."""
    devices = metrics["devices"]
    if not devices:
        return Text("Devices: none was metered")
    table = _table("Devices (averages while in use)", "metric")
    for device in devices:
        table.add_column(Text(device["device"]))
    table.add_row("model", *(Text(device["model"] or "–") for device in devices))
    table.add_row("energy", *(si(device["energy_j"], "J") for device in devices))
    for name in dict.fromkeys(name for device in devices for name in device["busy_average"]):
        quantity, _, unit = name.rpartition("_")
        table.add_row(quantity.replace("_", " "), *(_average(device, name, _UNITS[unit]) for device in devices))
    return table


def _average(device: Mapping[str, Any], name: str, unit: str) -> str:
    value, limit = device["busy_average"].get(name), device.get(_LIMITS.get(name, ""))
    text = si(value, unit)
    return text if limit is None or value is None else f"{text} (of {si(limit, unit)})"
