"""Files of other tools, small: those in ``tests/data/readers`` (named FORMAT-what), and what is made of them here."""

from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path

import polars as pl

DATA = Path(__file__).parent.parent / "data" / "readers"
SAMPLES = sorted(path for path in DATA.iterdir() if not path.name.startswith(".") and path.suffix != ".golden")


def format_of(path: Path) -> str:
    return path.name.partition("-")[0]


def made(sample: Path, folder: Path) -> Path:
    """The file itself; an .sql is the text of a database."""
    if sample.suffix != ".sql":
        return sample
    path = folder / f"{sample.stem}.sqlite"
    with sqlite3.connect(path) as database:
        database.executescript(sample.read_text(encoding="utf-8"))
    database.close()
    return path


def as_parquet(sample: Path, folder: Path) -> Path:
    """A CSV table as Parquet, its times as the earlier tools write them there: integers in nanoseconds."""
    table = pl.read_csv(sample)
    for name in ("Start Time", "End Time", "Duration", "Time"):
        if name in table.columns and table[name].dtype.is_float():
            table = table.with_columns((pl.col(name) * 1e9).cast(pl.Int64, strict=False))
    path = folder / f"{sample.stem}.parquet"
    table.write_parquet(path)
    return path


def as_gzip(sample: Path, folder: Path) -> Path:
    path = folder / "zipped"
    path.write_bytes(gzip.compress(sample.read_bytes()))
    return path


def as_utf16(sample: Path, folder: Path) -> Path:
    path = folder / "utf16"
    path.write_bytes(sample.read_text(encoding="utf-8").encode("utf-16"))
    return path
