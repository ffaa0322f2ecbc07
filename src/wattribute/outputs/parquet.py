"""Parquet: the rows of an attribution; its books and problems stand in the file's metadata under ``wattribute``."""

from __future__ import annotations

import json
from typing import Any

from ..errors import OptionError
from ..files import replacing
from ..model import Answer
from . import folder
from .tables import about as made_by
from .tables import promised_devices, promised_rows

SUFFIXES = (".parquet",)
SEVERAL_RUNS = True


def write(attribution: Answer, target: str, **options: Any) -> None:
    import pyarrow.parquet as pq

    if target == "-":
        raise OptionError("Parquet needs a file to go to: add -o OUT.parquet")
    about = {
        "devices": promised_devices(attribution).to_dicts(),
        "problems": [{"kind": p.kind, "message": p.message} for p in attribution.problems],
        "by": list(attribution.question.by),
        **made_by(attribution),
    }
    table = promised_rows(attribution).to_arrow()
    table = table.replace_schema_metadata({"wattribute": json.dumps(about, ensure_ascii=False)})
    with replacing(target) as file:
        pq.write_table(table, file, compression="zstd")


def write_folder(attribution: Answer, target: str, repeats: str = "keep") -> None:
    """Write a folder of tables: calls, metrics, attribution, devices."""
    folder.write_folder(attribution, target, "parquet", repeats)
