"""Regions in the terminal: energy with its bounds, and honest words where the sensor is too slow."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from .fitted_table import FittedTable
from .numbers import bounded, count, seconds, si
from .regions import RegionEnergy


def region_table(rows: Sequence[RegionEnergy], what: str = "region") -> FittedTable:
    """One line per region; ``what`` heads the first column."""
    table = FittedTable(drop=("calls", "power"))
    table.add_column(what, overflow="fold")
    for name in ("calls", "time", "energy", "power"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    for row in rows:
        table.add_row(
            Text(row.name),
            count(row.calls),
            seconds(row.seconds),
            bounded(row.energy_j, row.low_j, row.high_j),
            _power(row),
            _note(row),
        )
    return table


def _power(row: RegionEnergy) -> str:
    return "–" if row.short else si(row.power_w, "W")


def _note(row: RegionEnergy) -> str:
    notes = ["estimated"] if row.estimated else []
    if row.short:
        notes.append(f"shorter than the sensor's period of {si(row.period_s, 's')}")
    return "; ".join(notes)
