"""Any Polars frame as a Rich table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from .fitted_table import FittedTable
from .names import clean

if TYPE_CHECKING:
    import polars as pl

_ROWS = 100


def frame_table(frame: pl.DataFrame, rows: int = _ROWS) -> RenderableType:
    """The first rows, numbers on the right and never cut, and how many more there are."""
    table = FittedTable()
    for name, kind in frame.schema.items():
        numeric = kind.is_numeric()
        table.add_column(clean(name), justify="right" if numeric else "left", no_wrap=numeric, overflow="fold")
    for row in frame.head(rows).iter_rows():
        table.add_row(*(Text(_cell(value)) for value in row))
    if len(frame) <= rows:
        return table
    return Group(table, Text(f"… and {len(frame) - rows:,} more rows (--format csv or json prints them all)", "dim"))


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.9g}"
    if isinstance(value, list):
        return clean(" → ".join(map(str, value)))
    return clean(str(value)) if value != "" else ""
