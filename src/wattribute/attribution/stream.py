"""Tables, one after another, into one Parquet file that appears only when it is whole."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ..errors import OutputError

if TYPE_CHECKING:
    import polars as pl


@contextmanager
def parquet(path: str | os.PathLike[str]) -> Iterator[Callable[[pl.DataFrame], None]]:
    """A function that writes tables of one schema as row groups of a file.

    Two processes may write the same file (a cluster may do a task twice): each its own, and the last one whole wins.
    """
    import pyarrow.parquet as pq

    path = Path(path)
    if not path.absolute().parent.is_dir():
        raise OutputError(f"{path}: there is no folder {path.parent}")
    partial = path.with_name(f".{path.name}.{uuid4().hex}.partial")
    writer: Any = None

    def write(table: pl.DataFrame) -> None:
        nonlocal writer
        arrow = table.to_arrow()
        if writer is None:
            writer = pq.ParquetWriter(partial, arrow.schema, compression="zstd", compression_level=1)
        if len(table):
            writer.write_table(arrow.cast(writer.schema))

    try:
        yield write
        if writer is not None:
            writer.close()
            os.replace(partial, path)
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror or error}") from error
    finally:
        if writer is not None and writer.is_open:
            writer.close()
        partial.unlink(missing_ok=True)
