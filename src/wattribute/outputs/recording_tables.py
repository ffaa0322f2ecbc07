"""A recording and its attribution as plain tables, for files and for SQL: spans, readings and what they refer to.

Rows refer to each other by the row numbers ``frame``, ``location`` and ``signal``. Times are in nanoseconds since the
recording's start. A counter's values start at 0, since only differences mean anything; ``signals.first`` was added to
none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import OptionError
from ..model import Attribution, Recording, Signal
from .timeline import Timeline

if TYPE_CHECKING:
    import polars as pl

REPEATS = ("keep", "drop")


def frames(recording: Recording) -> pl.DataFrame:
    import polars as pl

    table = recording.frames
    return pl.DataFrame(
        {
            "frame": np.arange(len(table)),
            "name": _strings(table.name),
            "paradigm": _strings(table.paradigm),
            "role": _strings(table.role),
            "file": _strings(table.file),
            "line": table.line,
        }
    )


def locations(recording: Recording) -> pl.DataFrame:
    import polars as pl

    table, rows = recording.locations, range(len(recording.locations))
    owners = [recording.owner(row) for row in rows]
    return pl.DataFrame(
        {
            "location": np.arange(len(table)),
            "id": table.id,
            "name": _strings(table.name),
            "kind": _strings(table.kind),
            "process": _strings([recording.processes.name[owner] if owner >= 0 else "" for owner in owners]),
            "host": _strings([recording.location_host(row) for row in rows]),
        }
    )


def signals(recording: Recording) -> pl.DataFrame:
    import polars as pl

    columns = ("name", "kind", "unit", "device", "host")
    table = {name: _strings([getattr(signal, name) for signal in recording.signals]) for name in columns}
    rest = {
        "estimated": pl.Series([s.estimated for s in recording.signals], dtype=pl.Boolean),
        "readings": pl.Series([len(s) for s in recording.signals], dtype=pl.Int64),
        "first": pl.Series([_first(s) for s in recording.signals], dtype=pl.Float64),
    }
    return pl.DataFrame({"signal": np.arange(len(recording.signals)), **table, **rest})


def readings(recording: Recording, repeats: str = "keep") -> Iterator[pl.DataFrame]:
    """The readings, signal by signal; ``drop`` leaves out a reading whose value is that of the one before."""
    import polars as pl

    if repeats not in REPEATS:
        raise OptionError.unknown("treatment of repeated readings", repeats, REPEATS)
    for row, signal in enumerate(recording.signals):
        kept = np.ones(len(signal), np.bool_)
        if repeats == "drop":
            kept[1:] = signal.values[1:] != signal.values[:-1]
        yield pl.DataFrame(
            {
                "signal": np.full(np.count_nonzero(kept), row, np.int64),
                "time_ns": np.asarray(recording.clock.ns(np.asarray(signal.times[kept], np.int64))),
                "value": _values(signal)[kept],
            }
        )


def spans(recording: Recording) -> Iterator[pl.DataFrame]:
    """The spans, location by location, in the order they began; ``parent`` counts within the location."""
    import polars as pl

    for location in recording.spans.locations():
        columns = recording.spans.spans(location)
        yield pl.DataFrame(
            {
                "location": np.full(len(columns), location, np.int64),
                "frame": columns.frame.astype(np.int64),
                "start_ns": recording.clock.ns(columns.start),
                "end_ns": recording.clock.ns(columns.end),
                "depth": columns.depth.astype(np.int64),
                "parent": columns.parent,
            }
        )


def calls(attribution: Attribution) -> Iterator[pl.DataFrame]:
    """Spans with names instead of numbers and with their joules: what people want of a file."""
    import polars as pl

    recording = attribution.recording
    places = locations(recording).rename({"name": "location_name"})
    run = str(recording.metadata.get("name", ""))
    timeline = Timeline(attribution)
    names = pl.Series(recording.frames.name, dtype=pl.String)
    for table in spans(recording):
        if table.is_empty():
            continue
        location = int(table["location"][0])
        place = places.row(location, named=True)
        device, self_j, total_j = timeline.summed(location, recording.spans.spans(location))
        yield table.select(
            pl.lit(run).alias("run"),
            pl.lit(place["host"]).alias("host"),
            pl.lit(place["process"]).alias("process"),
            pl.lit(place["location_name"]).alias("location"),
            names.gather(table["frame"]).alias("frame"),
            "depth",
            "start_ns",
            "end_ns",
            pl.lit(device).alias("device"),
            pl.Series("self_j", self_j, pl.Float64, nan_to_null=True),
            pl.Series("total_j", total_j, pl.Float64, nan_to_null=True),
        )


def metrics(attribution: Attribution, repeats: str = "keep") -> Iterator[pl.DataFrame]:
    """Readings with names instead of numbers."""
    import polars as pl

    recording = attribution.recording
    for signal, table in zip(recording.signals, readings(recording, repeats), strict=True):
        fixed = {"metric": signal.name, "kind": signal.kind, "device": signal.device, "host": signal.host}
        yield table.select(
            *(pl.lit(value).alias(name) for name, value in fixed.items()),
            "time_ns",
            "value",
            pl.lit(signal.unit).alias("unit"),
        )


def by_name(attribution: Callable[[], Attribution], recording: Recording) -> dict[str, Callable[[], Any]]:
    """The tables of SQL, each made when asked for."""
    import polars as pl

    def whole(parts: Iterator[pl.DataFrame]) -> pl.DataFrame:
        tables = list(parts)
        return pl.concat(tables) if tables else pl.DataFrame()

    profiled = bool(recording.metadata.get("functions"))
    return {
        "frames": lambda: frames(recording),
        "locations": lambda: locations(recording),
        "signals": lambda: signals(recording),
        "readings": lambda: whole(readings(recording)),
        "spans": lambda: whole(spans(recording)),
        "attribution": lambda: attribution().rows,
        "devices": lambda: attribution().devices,
    } | ({"functions": lambda: functions(recording), "callers": lambda: callers(recording)} if profiled else {})


def functions(recording: Recording) -> pl.DataFrame:
    """The statistics of a profiler such as cProfile, a row per function; times in seconds."""
    import polars as pl

    rows = [(*row[:5], row[5] / 1e9, row[6] / 1e9) for row in recording.metadata.get("functions", ())]
    kinds = {"file": pl.String, "line": pl.Int64, "name": pl.String, "primitive_calls": pl.Int64, "calls": pl.Int64}
    return pl.DataFrame(rows, schema=kinds | {"self_s": pl.Float64, "total_s": pl.Float64}, orient="row")


def callers(recording: Recording) -> pl.DataFrame:
    """Who called whom, how often and for how long, as the profiler counted it."""
    import polars as pl

    names = [row[2] for row in recording.metadata.get("functions", ())]
    rows = [
        (names[caller], names[callee], primitive, calls, self_ns / 1e9, total_ns / 1e9)
        for caller, callee, primitive, calls, self_ns, total_ns in recording.metadata.get("callers", ())
    ]
    kinds = {"caller": pl.String, "callee": pl.String, "primitive_calls": pl.Int64, "calls": pl.Int64}
    return pl.DataFrame(rows, schema=kinds | {"self_s": pl.Float64, "total_s": pl.Float64}, orient="row")


def _values(signal: Signal) -> Any:
    """Values in the signal's unit; a counter's from 0 on, subtracted before it becomes a float."""
    raw = signal.values
    if signal.kind == "counter" and len(raw):
        # unsigned raw values wrap around when subtracted; back as signed they are the true difference
        raw = (raw - raw[0]).astype(np.int64) if raw.dtype.kind == "u" else raw - raw[0]
    return raw.astype(np.float64) * signal.scale.numerator / signal.scale.denominator


def _first(signal: Signal) -> float | None:
    return float(signal.values[0]) * float(signal.scale) if len(signal) else None


def _strings(values: Any) -> pl.Series:
    import polars as pl

    return pl.Series(list(values), dtype=pl.String)
