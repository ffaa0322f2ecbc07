"""Parquet: the rows of an attribution; its books and problems stand in the file's metadata under ``wattribute``."""

from __future__ import annotations

import json
from typing import Any

from ..errors import OptionError
from ..model import Attribution
from .files import replacing
from .tables import promised_devices


def write(attribution: Attribution, target: str, **options: Any) -> None:
    import pyarrow.parquet as pq

    if target == "-":
        raise OptionError("Parquet needs a file to go to: add -o OUT.parquet")
    about = {
        "devices": promised_devices(attribution).to_dicts(),
        "problems": [{"kind": p.kind, "message": p.message} for p in attribution.problems],
        "by": list(attribution.by),
        "method": attribution.method,
        "share": attribution.share,
    }
    table = attribution.rows.to_arrow()
    table = table.replace_schema_metadata({"wattribute": json.dumps(about, ensure_ascii=False)})
    with replacing(target) as file:
        pq.write_table(table, file, compression="zstd")
