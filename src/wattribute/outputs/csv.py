"""CSV: the rows of an attribution (or, with ``table="devices"``, its books); a call path is joined by ``;``."""

from __future__ import annotations

from typing import Any

from ..model import Answer
from . import folder
from .tables import about, emit, promised_devices, promised_rows

SUFFIXES = (".csv",)
SEVERAL_RUNS = True


def text(attribution: Answer, table: str = "rows") -> str:
    import polars as pl

    frame = promised_devices(attribution) if table == "devices" else promised_rows(attribution)
    if "path" in frame.columns:
        frame = frame.with_columns(pl.col("path").list.join(";"))
    return frame.with_columns(pl.lit(value).alias(name) for name, value in about(attribution).items()).write_csv()


def write(attribution: Answer, target: str, **options: Any) -> None:
    emit(text(attribution, **options), target)


def write_folder(attribution: Answer, target: str, repeats: str = "keep") -> None:
    """Write a folder of tables: calls, metrics, attribution, devices."""
    folder.write_folder(attribution, target, "csv", repeats)
