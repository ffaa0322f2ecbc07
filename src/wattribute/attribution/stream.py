"""Tables, one after another, into one Parquet file that appears only when it is whole."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import OutputError

if TYPE_CHECKING:
    import polars as pl


def to_parquet(tables: Iterable[pl.DataFrame], path: str | os.PathLike[str]) -> int:
    """Write tables of one schema as row groups; the number of rows written."""
    import pyarrow.parquet as pq

    path = Path(path)
    if not path.absolute().parent.is_dir():
        raise OutputError(f"{path}: there is no folder {path.parent}")
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    writer: Any = None
    count = 0
    try:
        for table in tables:
            arrow = table.to_arrow()
            if writer is None:
                writer = pq.ParquetWriter(partial, arrow.schema, compression="zstd", compression_level=1)
            if len(table):
                writer.write_table(arrow.cast(writer.schema))
                count += len(table)
        if writer is not None:
            writer.close()
            os.replace(partial, path)
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror or error}") from error
    finally:
        if writer is not None and writer.is_open:
            writer.close()
        partial.unlink(missing_ok=True)
    return count
