"""Regions in the terminal: energy with its bounds, and honest words where the sensor is too slow."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from .numbers import bounded, count, seconds, si
from .regions import Used


def region_table(rows: Sequence[Used], what: str = "region") -> Table:
    """One line per region; ``what`` heads the first column."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(what, overflow="fold")
    for name in ("calls", "time", "energy", "power"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    for row in rows:
        table.add_row(Text(row.name), count(row.calls), seconds(row.seconds), _energy(row), _power(row), _note(row))
    return table


def _energy(row: Used) -> str:
    if row.short and row.high_j is not None:
        return f"< {si(row.high_j, 'J')}" if not row.low_j else f"{si(row.low_j, 'J')} … {si(row.high_j, 'J')}"
    return bounded(row.energy_j, row.low_j, row.high_j)


def _power(row: Used) -> str:
    return "–" if row.short else si(row.power_w, "W")


def _note(row: Used) -> str:
    notes = ["estimated"] if row.estimated else []
    if row.short:
        notes.append(f"shorter than the sensor's period of {si(row.period_s, 's')}")
    return "; ".join(notes)
