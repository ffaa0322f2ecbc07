"""Atomic Parquet writer: tables are appended to one file that appears only when it is complete."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..files import replacing

if TYPE_CHECKING:
    import polars as pl


@contextmanager
def parquet(path: str | os.PathLike[str]) -> Iterator[Callable[[pl.DataFrame], None]]:
    """Return a function that writes tables of one schema as row groups of a file.

    Two processes may write the same file (a cluster may do a task twice): each its own, and the last one whole wins.
    """
    import pyarrow.parquet as pq

    writer: Any = None
    with replacing(path) as file:

        def write(table: pl.DataFrame) -> None:
            nonlocal writer
            arrow = table.to_arrow()
            if writer is None:
                writer = pq.ParquetWriter(file, arrow.schema, compression="zstd", compression_level=1)
            if len(table):
                writer.write_table(arrow.cast(writer.schema))

        try:
            yield write
        finally:
            if writer is not None:
                writer.close()
