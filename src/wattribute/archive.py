"""Our own format: a folder of Parquet tables and one JSON (``*.watt/``), readable by every engine.

::

    X.watt/wattribute.json       format version, state, clock, devices, signals, topology, problems, metadata
    X.watt/{frames,nodes,processes,locations}.parquet
    X.watt/readings/{int64,uint64,float64}.parquet      signal, ticks, value (raw)
    X.watt/spans/<location>.parquet                     location, start, end, frame, parent, depth, resumed
    X.watt/launches.parquet                             location, start, host, at; if the source records launches

``save`` writes the JSON first with state "partial" and replaces it last with "complete", so a killed process or a full
disk leaves a folder that says what it is; ``load`` then keeps what is readable,
given frames, processes and locations. Spans stay on disk until asked for.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _core
from .errors import FormatError, NotFoundError, OutputError, UnsupportedError, damage_as_format_error
from .files import check_size, new_folder, nonempty_path, write_file
from .model import (
    Clock,
    Curve,
    Device,
    Fold,
    Frames,
    Intervals,
    Keys,
    Launches,
    Link,
    Locations,
    Missing,
    Nodes,
    Problem,
    Processes,
    Recording,
    Signal,
    Spans,
    SpanTable,
)
from .model.select import select_metrics
from .model.spans import joined, launches_of
from .model.stored import MANY_BYTES, StoredSignal
from .model.validity import check, typed
from .plugins import Selection

if TYPE_CHECKING:
    import polars as pl

JSON = "wattribute.json"
FORMAT = "wattribute-recording"
VERSION = 1
LAUNCHES = "launches.parquet"
_TABLES = {"frames": Frames, "nodes": Nodes, "processes": Processes, "locations": Locations}
ROW_GROUP = 1 << 18  # spans, 9 MB of columns: what is held of a location at a time
_SIGNAL_COLUMNS = ("times", "values")
_READINGS = ("signal", "ticks", "value")
_READING_BYTES = 16  # in memory
_JSON_RATIO = 8  # bytes, text and values of a JSON in memory over its size
_VALUE_TYPES = ("int64", "uint64", "float64")
_SPANS = {
    "start": np.int64,
    "end": np.int64,
    "frame": np.int32,
    "parent": np.int64,
    "depth": np.int32,
    "resumed": np.bool_,
}
# writes all spans into a folder; returns the recording with what decoding reported
SpanWriter = Callable[[Path, Recording, int, Any], Recording]


# ---------------------------------------------------------------------------------------------------------- saving


def remove(path: str | os.PathLike[str]) -> None:
    """Remove a recording's folder, if there is one; anything else of that name is an error and stays."""
    folder = Path(path)
    if not folder.exists():
        return
    ours = any((folder / name).is_file() for name in (JSON, "journal"))
    if folder.is_symlink() or not ours:
        raise OutputError(f"{folder} is not a recording: it is not overwritten; choose another name")
    try:
        shutil.rmtree(folder)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be removed: {error.strerror}") from error


def save(
    recording: Recording,
    path: str | os.PathLike[str],
    threads: int = 2,
    progress: Any = None,
    spans: SpanWriter | None = None,
) -> None:
    """Write a recording to a new folder; an existing one is an error, never overwritten.

    ``progress(done, whole)`` is called as locations are written; ``spans`` writes them elsewhere (see engines.convert).
    """
    folder = new_folder(path)
    try:
        fill(recording, folder, threads, progress, spans)
    except KeyboardInterrupt:  # nothing is lost: the recording is still where it came from
        shutil.rmtree(folder, ignore_errors=True)
        raise


def fill(
    recording: Recording, folder: Path, threads: int = 2, progress: Any = None, spans: SpanWriter | None = None
) -> None:
    """Write a recording into a folder that is there already (a recorder made it when the run began)."""
    try:
        _write_json(folder, _describe(recording, "partial"))
        for name in _TABLES:
            _write_table(folder / f"{name}.parquet", getattr(recording, name))
        _write_readings(folder / "readings", recording.signals)
        (folder / "spans").mkdir()
        launches = launches_of(recording.spans)
        recording = (spans or _write_spans)(folder / "spans", recording, threads, progress)
        if launches is not None and len(launches.at):
            _write_table(folder / LAUNCHES, launches)
        _write_json(folder, _describe(recording, "complete") | {"spans": list(_span_files(folder / "spans"))})
    except OSError as error:
        raise OutputError(
            f"{folder}: writing stopped ({error}); what was written is kept and marked partial"
        ) from error


def _span_files(folder: Path) -> tuple[int, ...]:
    """The locations whose spans have a file in this folder."""
    return tuple(sorted(int(file.stem) for file in folder.glob("*.parquet") if file.stem.isdecimal()))


def _describe(recording: Recording, state: str) -> dict[str, Any]:
    signals = [
        {f.name: getattr(s, f.name) for f in fields(s) if f.name not in _SIGNAL_COLUMNS} | {"type": str(s.dtype)}
        for s in recording.signals
    ]
    return {
        "format": FORMAT,
        "version": VERSION,
        "state": state,
        "clock": asdict(recording.clock),
        "devices": [asdict(d) for d in recording.devices],
        "signals": signals,
        "topology": [asdict(link) for link in recording.topology],
        "missing": [asdict(m) for m in recording.missing],
        "problems": [asdict(p) for p in recording.problems],
        "metadata": dict(recording.metadata),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return f"{value.numerator}/{value.denominator}"
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"metadata of type {type(value).__name__} cannot be stored in an archive")


def _write_json(folder: Path, content: dict[str, Any]) -> None:
    write_file(folder / JSON, json.dumps(content, default=_plain, indent=1))


def _write_table(path: Path, table: Any) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {}
    for f in fields(table):
        values = getattr(table, f.name)
        if f.name == "properties":
            columns[f.name] = pa.array([json.dumps(dict(p)) for p in values], pa.string())
        elif isinstance(values, tuple):
            columns[f.name] = pa.array(values, pa.string())
        else:
            columns[f.name] = pa.array(values)
    pq.write_table(pa.table(columns), path)


def _write_readings(folder: Path, signals: Sequence[Signal]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    for kind in _VALUE_TYPES:
        chosen = [(i, s) for i, s in enumerate(signals) if str(s.dtype) == kind]
        schema = pa.schema([("signal", pa.uint32()), ("ticks", pa.int64()), ("value", pa.type_for_alias(kind))])
        with pq.ParquetWriter(
            folder / f"{kind}.parquet", schema, compression="zstd", compression_level=1,
            use_dictionary=["signal", "value"], column_encoding={"ticks": "DELTA_BINARY_PACKED"},
        ) as writer:  # fmt: skip
            for i, s in chosen:
                times, values = s.times, s.values
                for at in range(0, len(times), ROW_GROUP):
                    part = slice(at, at + ROW_GROUP)
                    rows = [np.full(len(times[part]), i, np.uint32), times[part], values[part]]
                    writer.write_table(pa.table(rows, schema=schema))


def _write_spans(folder: Path, recording: Recording, threads: int, progress: Any) -> Recording:
    locations = list(recording.spans.locations())
    done = 0
    with ThreadPoolExecutor(max(1, threads)) as pool:
        for _ in pool.map(lambda at: write_location(folder, at, recording.spans.spans(at)), locations):
            done += 1
            if progress:
                progress(done, len(locations))
    return recording


def write_location(folder: Path, location: int, spans: Spans) -> None:
    """Write the spans of a location to a file; no file without spans."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not len(spans):
        return
    columns = {"location": np.full(len(spans), location, np.int32)}
    columns |= {f.name: getattr(spans, f.name) for f in fields(spans)}
    delta = {"start": "DELTA_BINARY_PACKED", "end": "DELTA_BINARY_PACKED", "parent": "DELTA_BINARY_PACKED"}
    pq.write_table(
        pa.table(columns),
        folder / f"{location}.parquet",
        compression="zstd",
        compression_level=1,
        row_group_size=ROW_GROUP,
        use_dictionary=["location", "frame", "depth"],
        column_encoding=delta,
        write_statistics=["start", "end", "frame"],
    )


# --------------------------------------------------------------------------------------------------------- loading


def detects(path: Path) -> bool:
    """Whether this folder is an archive of ours (the reader plug-in "watt")."""
    return (path / JSON).is_file()


def read(path: Path, selection: Selection) -> Recording:
    """Load a recording and keep what was selected (the reader plug-in "watt")."""
    s = selection
    return select_metrics(load(path), s.metric)


def load(path: str | os.PathLike[str]) -> Recording:
    """Load the recording at ``path``; a partial one loads as far as it goes and lists that among its problems."""
    folder = Path(nonempty_path(os.fspath(path)))
    content = _read_json(folder)
    with damage_as_format_error(folder / JSON):
        return _load(folder, content)


def _load(folder: Path, content: dict[str, Any]) -> Recording:
    problems = [typed(Problem, p) for p in content.get("problems", ())]
    if content.get("state") != "complete":
        problems.append(Problem("partial", f"{folder}: the archive is partial (its writer was stopped)"))
    tables = {name: _read_table(folder / f"{name}.parquet", kind, problems) for name, kind in _TABLES.items()}
    if not len(tables["nodes"]):  # lost
        tables["processes"] = replace(tables["processes"], node=np.full(len(tables["processes"]), -1))
    for lost in sorted(set(content.get("spans", ())) - set(_span_files(folder / "spans"))):
        problems.append(Problem("missing", f"{folder / 'spans' / f'{lost}.parquet'}: is missing", int(lost)))
    recording = Recording(
        clock=typed(Clock, content["clock"]),
        spans=ArchivedSpans.of(folder / "spans", len(tables["frames"])),
        signals=_read_signals(folder / "readings", content["signals"], problems),
        devices=tuple(typed(Device, d) for d in content["devices"]),
        topology=tuple(typed(Link, link | {"locations": tuple(link["locations"])}) for link in content["topology"]),
        missing=tuple(typed(Missing, m) for m in content["missing"]),
        noticed=tuple(problems),
        metadata=content["metadata"],
        **tables,
    )
    check(recording)
    return recording


def about(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The header of an archive (state, clock, devices, metadata …), without opening its tables."""
    return _read_json(Path(path))


def _read_json(folder: Path) -> dict[str, Any]:
    file = folder / JSON
    if not file.is_file():
        raise NotFoundError(f"{folder}: no {JSON} in it, so it is not an archive of wattribute")
    with file.open("rb") as begin:
        if not begin.read(64).lstrip().startswith(b"{"):  # a file with holes may be of any size
            raise FormatError(file, f"is not a {FORMAT}")
    check_size(file, _JSON_RATIO * file.stat().st_size)
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise FormatError(file, f"is not valid JSON ({error})") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise FormatError(file, f"is not a {FORMAT}")
    if content.get("version") != VERSION:
        raise UnsupportedError(
            f"{folder}: format version {content.get('version')} is not {VERSION}; install a newer wattribute"
        )
    missing = {"clock", "devices", "signals", "topology", "missing", "metadata"} - content.keys()
    if missing:
        raise FormatError(file, f"lacks {', '.join(sorted(missing))}")
    with damage_as_format_error(file):
        unknown = {str(signal["type"]) for signal in content["signals"]} - set(_VALUE_TYPES)
    if unknown:  # it names a file of readings
        raise FormatError(file, f"signals of type {', '.join(map(repr, sorted(unknown)))}; known: {_VALUE_TYPES}")
    return content


def _parquet(path: Path, problems: list[Problem]) -> Any:
    """The table in a file, or None and a problem when it is absent or cut."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as parquet:
            check_size(path, _decoded_bytes(parquet.metadata, range(parquet.num_row_groups)))
            return parquet.read()
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        problems.append(_unreadable(path, error))
        return None


def _decoded_bytes(metadata: Any, groups: Iterable[int]) -> int:
    """What row groups take in memory: 8 bytes per number, however well they were packed, or what their text takes."""
    size = 0
    for group in groups:
        rows = metadata.row_group(group)
        size += max(8 * rows.num_rows * rows.num_columns, rows.total_byte_size)
    return size


def _unreadable(path: Path, error: Exception, location: int | None = None) -> Problem:
    missing = not path.exists()
    reason = "is missing" if missing else f"cannot be read ({str(error).splitlines()[0]})"
    return Problem("missing" if missing and location is not None else "partial", f"{path}: {reason}", location)


def _read_table(path: Path, kind: Any, problems: list[Problem]) -> Any:
    table = _parquet(path, problems)
    if table is None and kind is not Nodes:  # everything else points into these
        raise FormatError(
            path, "is missing or cut (its writer was stopped); without it there is nothing: make it again"
        )
    if table is None:
        return kind.of([])
    columns: dict[str, Any] = {}
    with damage_as_format_error(path):
        for f in fields(kind):
            column = table.column(f.name)
            if f.name == "properties":
                columns[f.name] = tuple(json.loads(text) for text in column.to_pylist())
            elif f.metadata["dtype"] is object:
                columns[f.name] = tuple(str(text) for text in column.to_pylist())
            else:
                columns[f.name] = _numbers(column, f.metadata["dtype"])
    return kind(**columns)


def _numbers(column: Any, dtype: Any) -> npt.NDArray[Any]:
    """A column as numbers of this type; raises ValueError for one that does not hold such."""
    values = column.to_numpy()
    if values.dtype.kind not in "iufb" or not np.can_cast(values.dtype, dtype, "same_kind"):
        raise ValueError(f"a column of {column.type}, where {np.dtype(dtype)} was expected")
    return np.asarray(values, dtype)


def _read_signals(folder: Path, described: list[dict[str, Any]], problems: list[Problem]) -> tuple[Signal, ...]:
    types = [d.pop("type") for d in described]
    stored: dict[int, ParquetColumns] = {}
    readings: dict[int, tuple[Any, Any]] = {}
    for kind in sorted(set(types)):
        file = folder / f"{kind}.parquet"
        columns = _stored_columns(file, np.dtype(kind), len(types))
        if columns is not None:
            stored |= columns
        else:
            readings |= _read_columns(file, kind, len(types), problems)
    signals: list[Signal] = []
    for i, d in enumerate(described):
        times, values = readings.get(i, (np.empty(0, np.int64), np.empty(0, types[i])))
        signal = typed(Signal, d | {"scale": Fraction(d["scale"]), "times": times, "values": values})
        signals.append(StoredSignal.of(signal, stored[i]) if i in stored else signal)
    return tuple(signals)


def _read_columns(file: Path, kind: str, count: int, problems: list[Problem]) -> dict[int, tuple[Any, Any]]:
    """Times and values by signal."""
    table = _parquet(file, problems)
    if table is None:
        return {}
    with damage_as_format_error(file):
        wanted = {"signal": np.uint32, "ticks": np.int64, "value": kind}
        owner, ticks, values = (_numbers(table.column(name), dtype) for name, dtype in wanted.items())
        if (np.diff(owner.astype(np.int64)) < 0).any():
            raise ValueError("readings of signals that are out of order")
    edges = np.searchsorted(owner, np.arange(count + 1))
    return {
        int(at): (ticks[edges[at] : edges[at + 1]], values[edges[at] : edges[at + 1]])
        for at in np.flatnonzero(np.diff(edges))
    }


def _stored_columns(file: Path, dtype: np.dtype[Any], count: int) -> dict[int, ParquetColumns] | None:
    """Columns by signal, to be read when they are used; None where there are few readings, or the file is unusual."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    groups: dict[int, list[int]] = {}
    try:
        with pq.ParquetFile(file) as parquet:
            metadata = parquet.metadata
            if metadata.num_rows * _READING_BYTES <= MANY_BYTES or parquet.schema_arrow.names != list(_READINGS):
                return None
            for group in range(metadata.num_row_groups):
                known = metadata.row_group(group).column(0).statistics
                if known is None or not known.has_min_max or known.min != known.max or not 0 <= known.min < count:
                    return None
                groups.setdefault(known.min, []).append(group)
            lengths = {
                signal: sum(metadata.row_group(group).num_rows for group in some) for signal, some in groups.items()
            }
    except (OSError, pa.ArrowException, UnicodeDecodeError):
        return None
    latest: dict[tuple[int, str], npt.NDArray[Any]] = {}
    return {
        signal: ParquetColumns(file, tuple(some), lengths[signal], dtype, latest) for signal, some in groups.items()
    }


@dataclass(frozen=True)
class ParquetColumns:
    """Times and values of one signal: row groups of a file of readings."""

    file: Path
    groups: tuple[int, ...]
    length: int
    dtype: np.dtype[Any]
    latest: dict[tuple[int, str], npt.NDArray[Any]]  # columns of the signal that was read last, shared by all

    def __len__(self) -> int:
        return self.length

    def times(self) -> npt.NDArray[np.int64]:
        return self._column("ticks", np.dtype(np.int64))

    def values(self) -> npt.NDArray[Any]:
        return self._column("value", self.dtype)

    def _column(self, name: str, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        kept = self.latest.get((self.groups[0], name))
        if kept is not None:
            return kept
        check_size(self.file, self.length * dtype.itemsize)
        try:
            column, at = np.empty(self.length, dtype), 0
            with pq.ParquetFile(self.file) as parquet, damage_as_format_error(self.file):
                for group in self.groups:
                    check_size(self.file, _decoded_bytes(parquet.metadata, [group]))
                    part = _numbers(parquet.read_row_group(group, columns=[name]).column(0), dtype)
                    column[at : at + len(part)] = part
                    at += len(part)
        except (OSError, MemoryError, pa.ArrowException, UnicodeDecodeError) as error:
            raise FormatError(self.file, f"cannot be read ({str(error).splitlines()[0]})") from error
        if at != self.length:
            raise FormatError(self.file, f"has {at:,} of {self.length:,} readings")
        if len(self.latest) > 1:
            self.latest.clear()
        self.latest[self.groups[0], name] = column
        return column


@dataclass(frozen=True)
class ArchivedSpans(SpanTable):
    """A source whose spans are read from the archive when asked for: a location, or a row group of it, at a time."""

    folder: Path = Path()
    there: tuple[int, ...] = ()  # the locations that have spans
    _problems: list[Problem] = field(default_factory=list)

    frames: int = 1 << 31  # spans of frames beyond that are damage

    @classmethod
    def of(cls, folder: Path, frames: int = 1 << 31) -> ArchivedSpans:
        return cls(folder=folder, there=_span_files(folder), frames=frames)

    def locations(self) -> Sequence[int]:
        return self.there

    def spans(self, location: int) -> Spans:
        pieces = list(self.pieces(location, 0))
        if not pieces:
            return super().spans(location)
        return Spans(*(np.concatenate([getattr(piece, f.name) for piece in pieces]) for f in fields(Spans)))

    def busy(self, location: int, keep: npt.NDArray[np.bool_] | None = None) -> Intervals:
        return joined([Intervals(*_core.busy(piece, keep)) for piece in self.pieces(location, ROW_GROUP)])

    def fold(self, location: int, curves: Sequence[Curve], keys: Keys) -> Fold:
        from ._core.stream import stream

        rolled, first = stream(curves, keys), 0
        for piece in self.pieces(location, ROW_GROUP):
            rolled.feed(piece, first)
            first += len(piece)
        rolled.end()
        return Fold.of(rolled.close())

    def pieces(self, location: int, most: int) -> Iterator[Spans]:
        """Row group by row group; ``most`` is ignored, because a file is read as it was written."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if location not in self.there:
            return
        file, first = self.folder / f"{location}.parquet", 0
        try:
            with pq.ParquetFile(file) as parquet:
                for group in range(parquet.num_row_groups):
                    check_size(file, _decoded_bytes(parquet.metadata, [group]))
                    with damage_as_format_error(file):
                        table = parquet.read_row_group(group, columns=[f.name for f in fields(Spans)])
                        spans = Spans(**{f.name: _numbers(table.column(f.name), _SPANS[f.name]) for f in fields(Spans)})
                        self._check(spans, first)
                        first += len(spans)
                    yield spans
        except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
            self._problems.append(_unreadable(file, error, location))

    def _check(self, spans: Spans, first: int) -> None:
        """Raise ValueError for spans that point outside: the core follows them without looking."""
        if not len(spans):
            return
        rows = np.arange(first, first + len(spans))
        if int(spans.frame.min()) < 0 or int(spans.frame.max()) >= self.frames:
            raise ValueError(
                f"spans of frames {spans.frame.min()} to {spans.frame.max()}, of which {self.frames} exist"
            )
        if (spans.parent >= rows).any() or int(spans.parent.min()) < -1 or int(spans.depth.min()) < 0:
            raise ValueError("spans whose parents come after them, or that are none")
        if (spans.end < spans.start).any():
            raise ValueError("spans that end before they start")

    def launches(self) -> Launches | None:
        file = self.folder.parent / LAUNCHES
        table = _parquet(file, self._problems) if file.exists() else None
        if table is None:
            return None
        return Launches(**{f.name: table.column(f.name).to_numpy() for f in fields(Launches)})

    def problems(self) -> Sequence[Problem]:
        return tuple(dict.fromkeys(self._problems))


def scan(path: str | os.PathLike[str]) -> dict[str, pl.LazyFrame]:
    """The tables at ``path`` as lazy Polars frames: spans, frames, nodes, processes, locations, signals, readings."""
    import polars as pl

    folder = Path(path)
    content = _read_json(folder)
    tables = {name: pl.scan_parquet(folder / f"{name}.parquet").with_row_index(name[:-1]) for name in _TABLES}
    tables["spans"] = pl.scan_parquet(folder / "spans" / "*.parquet")
    tables["signals"] = pl.LazyFrame(
        [
            {"signal": i, "scale": s["scale"]} | {k: s[k] for k in ("name", "kind", "unit", "host", "device")}
            for i, s in enumerate(content["signals"])
        ]
    )
    values = [
        pl.scan_parquet(folder / "readings" / f"{kind}.parquet").with_columns(pl.col("value").cast(pl.Float64))
        for kind in sorted({s["type"] for s in content["signals"]})
    ]
    tables["readings"] = pl.concat(values) if values else pl.LazyFrame()
    return tables
