"""CSV: the rows of an attribution (or, with ``table="devices"``, its books); a call path is joined by ``;``."""

from __future__ import annotations

from typing import Any

from ..model import Attribution
from .tables import emit, promised_devices, promised_rows


def text(attribution: Attribution, table: str = "rows") -> str:
    import polars as pl

    frame = promised_devices(attribution) if table == "devices" else promised_rows(attribution)
    if "path" in frame.columns:
        frame = frame.with_columns(pl.col("path").list.join(";"))
    return frame.write_csv()


def write(attribution: Attribution, target: str, **options: Any) -> None:
    emit(text(attribution, **options), target)
