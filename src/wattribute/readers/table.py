"""Tables of spans or of readings, CSV (also ``;`` or tabs, also gzip) or Parquet, or a folder of them → Recording.

The names of the columns say what a table holds, in any case and order:

- spans: a name, a start, an end or a duration; perhaps depth, thread, process, host. Among them the call intervals
  (``Thread,Group,Depth,Name,Start Time,End Time,Duration``) that earlier trace tools exchange, depth from 0 or 1.
- readings, one per row: a metric's name, a time, a value (``Group,Metric Name,Time,Value``); perhaps unit, kind …
- readings, a column per metric: a time, and columns whose names hold a unit (``gpu0_power_w``, ``CPU Energy [uJ]``).

A text in a column ``mark`` of readings makes a mark of that row, by which the table can be joined to a trace. Times are
numbers (in seconds, or as their column says) or dates. The folders of ``wattribute export --to csv`` are such tables.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .. import sensors
from ..archive import detects as is_archive
from ..errors import FormatError
from ..model import Device, Recording
from ..plugins import Selection
from . import naming, nvidia_smi, times
from .building import Builder
from .files import Text, head, start

if TYPE_CHECKING:
    import polars as pl

_ALIASES = {
    "name": ("name", "frame", "function", "region", "kernel", "metric name", "metric", "signal", "sensor"),
    "start": ("start", "start time", "begin", "begin time", "starttime"),
    "end": ("end", "end time", "stop", "stop time", "endtime"),
    "duration": ("duration", "dur", "elapsed", "length"),
    "time": ("time", "timestamp", "datetime", "date", "t"),
    "value": ("value", "reading"),
    "depth": ("depth", "level"),
    "thread": ("thread", "location", "tid", "stream", "lane"),
    "process": ("group", "process", "rank", "pid"),
    "host": ("host", "node", "hostname"),
    "unit": ("unit", "units"),
    "kind": ("kind", "mode"),
    "device": ("device", "gpu"),
    "mark": ("mark", "marker", "event", "label", "annotation"),
}
_ROLES = {alias: role for role, aliases in _ALIASES.items() for alias in aliases}
_STREAM = re.compile(r"^(HIP|CUDA)\[(\d+):(\d+)\]")
_IN_NS = ("Start Time", "End Time", "Duration", "Time")  # in the Parquet tables of the earlier tools, whole numbers
_TIMES = ("start", "end", "duration", "time")


@dataclass(frozen=True)
class _Columns:
    """Which column plays which role, the units of time in their names, and the metrics of a wide table."""

    kind: str  # "spans", "readings", "wide" or "" for no table of ours
    roles: dict[str, str]
    units: dict[str, str]
    metrics: tuple[str, ...] = ()


def _classified(names: list[str]) -> _Columns:
    roles: dict[str, str] = {}
    units: dict[str, str] = {}
    for name in names:
        unit = times.unit_in(name)
        plain = re.sub(r"[\s_.]+", " ", name.strip().lower()).strip()
        role = _ROLES.get(plain)
        if role is None and unit:  # "start_ns", "Time (s)"
            role = _ROLES.get(re.sub(r"[\s(\[]*\w+[\])]?$", "", plain).strip())
            role = role if role in _TIMES else None
        if role is not None and role not in roles:
            roles[role], units[role] = name, unit
    has = roles.keys()
    if {"name", "start"} <= has and has & {"end", "duration"}:
        return _Columns("spans", roles, units)
    if {"name", "time", "value"} <= has:
        return _Columns("readings", roles, units)
    taken = {roles[role] for role in has & {"time", "mark", "host"}}
    metrics = tuple(name for name in names if name not in taken)
    if "time" in has and any(naming.unit_of(name)[1] or sensors.identify(name) for name in metrics):
        return _Columns("wide", roles, units, metrics)
    return _Columns("", roles, units)


def detects(path: Path) -> bool:
    """A table whose columns say spans or readings, or a folder of such tables that is no archive of ours."""
    if path.is_dir():
        return not is_archive(path) and any(_header(file).kind for file in _files(path))
    return bool(_header(path).kind) and not nvidia_smi.detects(path)


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(p for p in folder.iterdir() if p.name.lower().endswith((".csv", ".csv.gz", ".tsv", ".parquet")))
    except OSError:
        return []


def _header(path: Path) -> _Columns:
    if head(path, 4) == b"PAR1":
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return _classified(list(pq.read_schema(path).names))
        except (OSError, pa.ArrowException):
            return _classified([])
    line = start(path).split("\n", 1)[0].rstrip("\r")
    if "\0" in line or line[:1] in ("{", "[", "<"):
        return _classified([])
    return _classified([name.strip().strip('"') for name in line.split(_separator(line))])


def _separator(line: str) -> str:
    return max(",;\t", key=line.count)


def read(path: Path, selection: Selection) -> Recording:
    """All tables of a path in one recording."""
    out = Builder(path, selection, "table")
    files = [file for file in _files(path) if _header(file).kind] if path.is_dir() else [path]
    tables = [(file, _load(out, file)) for file in files]
    classified = [(file, table, _classified(table.columns)) for file, table in tables]
    groups = {
        group for _, table, about in classified if about.kind == "readings" for group in _texts(table, about, "process")
    }
    clocks = []
    for file, table, about in classified:
        if not about.kind:
            raise FormatError(file, f"no columns of spans or readings; it has {', '.join(table.columns[:12])}")
        clocks.append(_Table(out, table, about, len(groups) > 1).add())
    wall = all(clock.wall for clock in clocks) if clocks else False
    about_clock = {key: value for clock in clocks for key, value in clock.clock.items()}
    return out.recording(0 if wall else None, about_clock)


def _load(out: Builder, path: Path) -> pl.DataFrame:
    import polars as pl

    try:
        if head(path, 4) == b"PAR1":
            return pl.read_parquet(path)
        text = Text(path)
        data = text.whole()
        out.problems += text.problems
        line = data.lstrip().split("\n", 1)[0]
        frame = pl.read_csv(
            io.BytesIO(data.encode("utf-8", "replace")),
            separator=_separator(line),
            infer_schema=False,
            truncate_ragged_lines=True,
        )
    except (pl.exceptions.PolarsError, OSError) as error:
        raise FormatError(path, f"is not a table ({str(error).splitlines()[0]})") from error
    return frame.rename({name: name.strip() for name in frame.columns})


def _texts(table: pl.DataFrame, about: _Columns, role: str, default: str = "") -> list[str]:
    import polars as pl

    if role not in about.roles:
        return [default] * len(table)
    column = table[about.roles[role]].cast(pl.String).fill_null(default)
    return list(column.str.strip_chars())


def _numbers(column: pl.Series) -> npt.NDArray[Any]:
    """Integers as such, anything else as floats: what is no number is NaN."""
    import polars as pl

    column = column.str.strip_chars() if column.dtype == pl.String else column
    whole = column.cast(pl.Int64, strict=False) if not column.dtype.is_float() else None
    if whole is not None and whole.null_count() == 0:
        return np.asarray(whole)
    return np.asarray(column.cast(pl.Float64, strict=False).fill_null(float("nan")))


class _Table:
    """One table on its way into a recording; ``grouped``: readings of several groups are of several hosts."""

    def __init__(self, out: Builder, table: pl.DataFrame, about: _Columns, grouped: bool) -> None:
        self.out, self.table, self.about, self.grouped = out, table, about, grouped

    def add(self) -> times.Times:
        """Add the rows; returns the clock of the table."""
        return {"spans": self._spans, "readings": self._readings, "wide": self._wide}[self.about.kind]()

    def _texts(self, role: str, default: str = "") -> list[str]:
        return _texts(self.table, self.about, role, default)

    def _times(self, role: str) -> times.Times:
        import polars as pl

        column, unit = self.table[self.about.roles[role]], self.about.units[role]
        if column.dtype.is_temporal():
            stamps = column.cast(pl.Datetime("ns", getattr(column.dtype, "time_zone", None))).to_physical()
            zone = {} if getattr(column.dtype, "time_zone", None) else {"zone": "assumed"}
            ns = stamps.fill_null(0).to_numpy()
            return times.Times(ns, column.is_null().to_numpy(), True, {"uncertainty_ns": 1_000_000, **zone})
        if column.dtype == pl.String:
            values = _numbers(column)
            if values.dtype.kind == "f" and np.isnan(values).mean() > 0.5:
                return times.texts(column.fill_null("").to_list(), unit)
            return times.numbers(values, unit)
        values = _numbers(column)
        if column.dtype.is_integer() and column.name in _IN_NS:
            unit = "ns"
        return times.numbers(values, unit)

    def _spans(self) -> times.Times:
        out, begins = self.out, self._times("start")
        if "end" in self.about.roles:
            ends = self._times("end")
            end, endless = ends.ns, ends.bad
        else:
            lasts = self._times("duration")
            end, endless = begins.ns + lasts.ns, lasts.bad
        depth = _numbers(self.table[self.about.roles["depth"]]) if "depth" in self.about.roles else np.zeros(len(end))
        names = self._texts("name")
        places = list(
            zip(self._texts("host"), self._texts("process", "process"), self._texts("thread", "thread"), strict=True)
        )
        hosts = {host for host, _, _ in places if host}
        out.host = out.host or (hosts.pop() if len(hosts) == 1 else "")
        for row in np.argsort(depth, kind="stable").tolist():  # of two that begin together the outer one comes first
            if begins.bad[row]:
                out.counts["rows without a valid start"] += 1
            elif end[row] < begins.ns[row] and not endless[row]:
                out.counts["spans of negative duration"] += 1
            else:
                location, stream = self._place(*places[row])
                frame = out.frame(names[row], stream.lower(), "kernel") if stream else out.frame(names[row])
                span = out.begin(location, int(begins.ns[row]), frame)
                if not endless[row]:
                    out.finish(span, int(end[row]))
        return begins

    def _place(self, host: str, process: str, thread: str) -> tuple[int, str]:
        """The location of a row, and "HIP" or "CUDA" if it is a stream."""
        node = self.out.node(host) if host else self.out.node(process) if self.grouped else 0
        if match := _STREAM.match(thread):
            gpu = self.out.gpu(int(match[2][:6]), -1, f"{match[1]} device", node=node)
            return self.out.thread((process, thread), gpu, thread, kind="gpu"), match[1]
        owner = self.out.process((host, process), process, node=node)
        return self.out.thread(thread, owner, thread), ""

    def _readings(self) -> times.Times:
        at = self._times("time")
        names, units, kinds = self._texts("name"), self._texts("unit"), self._texts("kind")
        devices, groups = self._texts("device"), self._texts("process")
        hosts = [
            host or (group if self.grouped else "") for host, group in zip(self._texts("host"), groups, strict=True)
        ]
        values = _numbers(self.table[self.about.roles["value"]])
        good = self._good(at, values)
        rows: dict[tuple[str, ...], list[int]] = {}
        for row, key in enumerate(zip(names, units, kinds, devices, hosts, strict=True)):
            if good[row]:
                rows.setdefault(key, []).append(row)
        for (name, unit, kind, device, host), mine in rows.items():
            known = naming.device_of(device, host) if device else None
            known = Device(device, known.kind if known else "other", host) if device else None
            self._signal(name, unit, at.ns[mine], values[mine], kind if kind in sensors.KINDS else "", known, host)
        self._marks(at)
        return at

    def _wide(self) -> times.Times:
        at = self._times("time")
        hosts = set(self._texts("host")) - {""}
        host = hosts.pop() if len(hosts) == 1 else ""
        for column in self.about.metrics:
            values = _numbers(self.table[column])
            if values.dtype.kind == "f" and np.isnan(values).all():
                continue  # a column of words
            name, unit = naming.unit_of(column)
            good = self._good(at, values)
            self._signal(name, unit, at.ns[good], values[good], "", None, host)
        self._marks(at)
        return at

    def _good(self, at: times.Times, values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Rows with a time and a value; the others are counted."""
        good: npt.NDArray[np.bool_] = ~at.bad & (np.isfinite(values) if values.dtype.kind == "f" else True)
        if not good.all():
            self.out.counts["readings without a valid time or value"] += int((~good).sum())
        return good

    def _signal(
        self,
        name: str,
        unit: str,
        at: npt.NDArray[np.int64],
        values: npt.NDArray[Any],
        kind: str,
        device: Device | None,
        host: str,
    ) -> None:
        declared = naming.declared(unit, kind)
        if device is None and declared.unit and naming.is_energy(declared.unit) and sensors.identify(name) is None:
            device = naming.device_of(name, host)
        self.out.signal(name, at, values, declared, device, sure=bool(unit), host=host)

    def _marks(self, at: times.Times) -> None:
        if "mark" not in self.about.roles:
            return
        for row, text in enumerate(self._texts("mark")):
            if text and not at.bad[row]:
                location = self.out.thread("marks", -1, "marks", kind="metric")
                time = int(at.ns[row])
                self.out.span(location, time, time, self.out.frame(text, "user", "mark"))
