"""A folder of tables, as CSV or Parquet: calls, metrics, attribution, devices.

The folder appears when it is whole; one that is there already is never touched. Calls and metrics are written piece by
piece, so that their size is bounded by the disk alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..comparison import EnsembleAttribution
from ..errors import OptionError
from ..files import replacing_folder
from ..model import Answer, Attribution
from . import recording_tables as tables

if TYPE_CHECKING:
    import polars as pl

FORMATS = ("csv", "parquet")


def write_folder(attribution: Answer, target: str, format: str = "parquet", repeats: str = "keep") -> None:
    """Write the tables to a new folder; the runs of an ensemble stand below each other.

    ``repeats="drop"`` leaves out readings that repeat the value before them.
    """
    if format not in FORMATS:
        raise OptionError.unknown("format", format, FORMATS)
    if repeats not in tables.REPEATS:
        raise OptionError.unknown("treatment of repeated readings", repeats, tables.REPEATS)
    save = _save_csv if format == "csv" else _save_parquet
    runs: Mapping[str, Any] = {"": attribution}
    if isinstance(attribution, EnsembleAttribution):
        runs = attribution.parts
    with replacing_folder(target) as folder:
        save(_named(runs, tables.calls), folder / f"calls.{format}")
        save(_named(runs, lambda part: tables.metrics(part, repeats)), folder / f"metrics.{format}")
        save([flat(attribution.rows)], folder / f"attribution.{format}")
        save([attribution.devices], folder / f"devices.{format}")


def _save_csv(pieces: Iterable[pl.DataFrame], path: Path) -> None:
    """Tables below each other under one header."""
    with path.open("wb") as file:
        for number, piece in enumerate(pieces):
            file.write(piece.write_csv(include_header=number == 0).encode("utf-8", errors="replace"))


def _save_parquet(pieces: Iterable[pl.DataFrame], path: Path) -> None:
    """Tables of one schema, a row group each."""
    import pyarrow.parquet as pq

    writer = None
    for piece in pieces:
        table = piece.to_arrow()
        writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd", compression_level=1)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def _named(
    runs: Mapping[str, Attribution], pieces: Callable[[Attribution], Iterator[pl.DataFrame]]
) -> Iterator[pl.DataFrame]:
    """The pieces of all runs, with the run's name in front where there are several."""
    import polars as pl

    for run, part in runs.items():
        for piece in pieces(part):
            yield piece.select(pl.lit(run).alias("run"), pl.exclude("run")) if run else piece


def flat(rows: pl.DataFrame) -> pl.DataFrame:
    """Call paths as text: CSV knows no lists, and both kinds of file shall hold the same."""
    import polars as pl

    return rows.with_columns(pl.col("path").list.join(";")) if "path" in rows.columns else rows
