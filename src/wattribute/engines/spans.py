"""Where one row per span goes: into the result, into one Parquet file, or into a folder with a file per device and
location, which every engine fills as it solves (see ``attribution.rows.write_rows``).

A folder carries ``_wattribute.json`` (readers of Parquet datasets pass over names that begin with ``_``): its state is
"partial" until everything is there, so that a stopped run cannot be mistaken for a short one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..attribution.join import Plan
from ..attribution.rows import SpanFolder, each_row
from ..attribution.stream import parquet
from ..errors import OptionError, OutputError
from ..files import write_file
from ..model import Recording

if TYPE_CHECKING:
    import polars as pl

JSON = "_wattribute.json"
FORMAT = "wattribute-spans"


@dataclass
class Destination:
    """What was asked for: ``folder`` is for the engine to fill, ``rows`` are for the result."""

    folder: SpanFolder | None = None
    rows: pl.DataFrame | None = None
    parts: int = 0

    def finish(self, whole: bool) -> None:
        """Mark the folder as complete if the engine finished all of it; else it stays partial."""
        if self.folder is not None and whole:
            _mark(Path(self.folder.path), "complete", self.parts)


@contextmanager
def destination(
    recording: Recording,
    plan: Plan,
    groups: Sequence[Sequence[int]],
    spans: bool | str | os.PathLike[str],
    engine: str,
) -> Iterator[Destination]:
    """Check where span rows are to go before the work begins."""
    if not spans:
        yield Destination()
        return
    path = None if spans is True else Path(os.fspath(spans))
    if path is not None and path.suffix != ".parquet":
        parts = sum(len(source.users) for source in plan.sources)
        _make(path, parts)
        names = (recording.location_labels, recording.process_labels)
        yield Destination(SpanFolder(str(path.absolute()), *names), parts=parts)
        return
    if engine != "local":
        raise OptionError(
            f"engine {engine!r} writes one row per span to a folder; give one that does not end in .parquet"
        )
    target = Destination()
    yield target
    if path is None:
        import polars as pl

        tables: list[pl.DataFrame] = []
        each_row(recording, plan, groups, tables.append)
        target.rows = pl.concat(tables, how="diagonal_relaxed")
    else:
        with parquet(path) as take:
            each_row(recording, plan, groups, take)


def _make(folder: Path, parts: int) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise OutputError(f"{folder} is not empty; choose another name or remove it")
        _mark(folder, "partial", parts)
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"{folder}: cannot be made: {error.strerror}") from error


def _mark(folder: Path, state: str, parts: int) -> None:
    content: dict[str, Any] = {"format": FORMAT, "version": 1, "state": state, "parts": parts}
    write_file(folder / JSON, json.dumps(content))
