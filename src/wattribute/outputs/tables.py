"""What the table formats share: the columns that are promised, and where text goes."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from ..model import Attribution
from .files import replacing

if TYPE_CHECKING:
    import polars as pl

_DEVICE = ("device", "signal", "host", "of")
_INTERNAL = ("power_w",)  # follows from the others


def promised_devices(attribution: Attribution) -> pl.DataFrame:
    """One row per (device, of): names, the books, coverage; a unit where it is not joules."""
    table = attribution.devices
    books = [name for name in table.columns if name.startswith(("measured_", "attributed_", "idle_"))]
    unit = [] if "measured_j" in table.columns else ["unit"]
    run = [name for name in ("run",) if name in table.columns]  # an ensemble's
    return table.select(*run, *_DEVICE, *books, "coverage", *unit)


def promised_rows(attribution: Attribution) -> pl.DataFrame:
    return attribution.rows.drop(_INTERNAL, strict=False)


def top_rows(attribution: Attribution, top: int | None) -> Attribution:
    """The first rows of each device (of all rows, when they are not by device)."""
    if top is None:
        return attribution
    rows = attribution.rows
    keys = [name for name in ("run", "host", "device", "of") if name in rows.columns]
    kept = rows.group_by(keys, maintain_order=True).head(top) if "device" in keys else rows.head(top)
    order = "self_j" if "self_j" in rows.columns else "self_value"
    return replace(attribution, rows=kept.sort(order, descending=True, maintain_order=True))


def emit(text: str, target: str) -> None:
    """Text to a file, or to standard output for ``-``."""
    if target == "-":
        sys.stdout.write(text)
        return
    with replacing(target) as file:
        file.write(text.encode("utf-8", "backslashreplace"))
