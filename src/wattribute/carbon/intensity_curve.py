"""Intensity of a zone over time, as steps that each carry the source of their figure (class ``Profile``).

Sources make profiles, :mod:`.grams` multiplies them with energy. A constant is a profile of one endless step. Time
is int64 nanoseconds since the Unix epoch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Set
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ..errors import FormatError, NotFoundError, OptionError

BEGINNING, END = -(2**63), 2**63 - 1
_TIMES = ("start", "time", "datetime", "from", "timestamp", "date", "start_ns", "time_ns")
_FIGURES = ("g_per_kwh", "intensity", "carbon_intensity", "carbonintensity", "gco2_per_kwh", "forecast", "actual")


@dataclass(frozen=True)
class Step:
    """An intensity from ``start_ns`` (included) to ``end_ns`` (not)."""

    start_ns: int
    end_ns: int
    g_per_kwh: float
    source: str  # in words, with the year: "Ember … 2024 for FR"
    fallback: bool = False  # stands in for a figure that could not be had


@dataclass(frozen=True)
class Profile:
    """Steps in ascending order that do not overlap; they may leave gaps."""

    steps: tuple[Step, ...]

    @classmethod
    def of(cls, steps: Iterable[Step]) -> Profile:
        """From steps in any order; of two that overlap the later one begins where the earlier ends."""
        kept: list[Step] = []
        for step in sorted(steps, key=lambda step: (step.start_ns, step.end_ns)):
            start = max(step.start_ns, kept[-1].end_ns) if kept else step.start_ns
            if start < step.end_ns:
                kept.append(Step(start, step.end_ns, step.g_per_kwh, step.source, step.fallback))
        return cls(tuple(kept))

    def filled(self, start_ns: int, end_ns: int, g_per_kwh: float, source: str, fallback: bool) -> Profile:
        """This profile between two moments, its gaps filled with one figure."""
        steps: list[Step] = []
        at = start_ns
        for step in self.steps:
            low, high = max(step.start_ns, start_ns), min(step.end_ns, end_ns)
            if low >= high:
                continue
            if at < low:
                steps.append(Step(at, low, g_per_kwh, source, fallback))
            steps.append(Step(low, high, step.g_per_kwh, step.source, step.fallback))
            at = high
        if at < end_ns or not steps:
            steps.append(Step(at, end_ns, g_per_kwh, source, fallback))
        return Profile(tuple(steps))

    def covers(self, start_ns: int, end_ns: int) -> bool:
        """Whether there is a figure for every moment in between."""
        at = start_ns
        for step in self.steps:
            if step.start_ns <= at < step.end_ns:
                at = step.end_ns
        return at >= end_ns


def constant(g_per_kwh: float, source: str = "given", fallback: bool = False) -> Profile:
    return Profile((Step(BEGINNING, END, checked(g_per_kwh), source, fallback),))


def checked(g_per_kwh: float) -> float:
    """Return a figure if it can be an intensity, else raise."""
    if not math.isfinite(g_per_kwh) or not 0 <= g_per_kwh <= 10_000:
        raise OptionError(f"an intensity of {g_per_kwh} g/kWh is impossible; give grams of CO2e per kWh, e.g. 237")
    return g_per_kwh


def parse_time(value: Any) -> int:
    """Nanoseconds since the epoch of an ISO 8601 text (UTC unless it says otherwise), a datetime or a number.

    A number counts seconds, milliseconds, microseconds or nanoseconds: its size tells which.
    """
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=timezone.utc)
        whole = int(aware.replace(microsecond=0).timestamp())  # a float of 1.7e9 s is only exact to 0.2 µs
        return whole * 10**9 + aware.microsecond * 1000
    if isinstance(value, str):
        text = value.strip()
        if not text.replace(".", "", 1).isdigit():
            return parse_time(datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text))
        value = float(text) if "." in text else int(text)
    for limit, factor in ((10**11, 10**9), (10**14, 10**6), (10**17, 10**3)):
        if value < limit:
            return int(value * factor)
    return int(value)


def from_table(path: Path, zones: Set[str] = frozenset()) -> Profile:
    """A profile from a CSV or Parquet table of times and intensities; of ``zones`` when it has a column of them.

    A row holds from its time to its ``end`` or ``to``; without such a column to the next row, the last one as long as
    the one before it.
    """
    rows = _rows(path, {zone.casefold() for zone in zones})
    if not rows:
        raise FormatError(path, "holds no intensity" + (f" for zone {' or '.join(sorted(zones))}" if zones else ""))
    rows.sort(key=lambda row: row[0])
    name = f"table {path.name}"
    steps = []
    for i, (start, end, figure) in enumerate(rows):
        if end is None:
            end = rows[i + 1][0] if i + 1 < len(rows) else _last_end(rows)
        steps.append(Step(start, end, figure, name))
    return Profile.of(steps)


def _last_end(rows: list[tuple[int, int | None, float]]) -> int:
    return 2 * rows[-1][0] - rows[-2][0] if len(rows) > 1 else END


def _rows(path: Path, zones: Set[str]) -> list[tuple[int, int | None, float]]:
    table = _table(path)
    columns = {name.strip().casefold(): name for name in table.columns}
    time = next((columns[name] for name in _TIMES if name in columns), None)
    figure = next((columns[name] for name in _FIGURES if name in columns), None)
    if time is None or figure is None:
        raise FormatError(path, f"needs a column {_TIMES[0]!r} and a column {_FIGURES[0]!r}; it has {table.columns}")
    end = columns.get("end") or columns.get("to") or columns.get("end_ns")
    rows = []
    for number, row in enumerate(table.iter_rows(named=True), 1):
        if zones and "zone" in columns and str(row[columns["zone"]]).casefold() not in zones:
            continue
        try:
            until = parse_time(row[end]) if end and row[end] is not None else None
            rows.append((parse_time(row[time]), until, checked(float(row[figure]))))
        except (ValueError, TypeError, OverflowError) as error:
            raise FormatError(path, f"row {number}: {error}") from error
    return rows


def _table(path: Path) -> Any:
    import polars as pl

    if not path.is_file():
        raise NotFoundError(f"{path}: file not found; give a table of intensities (.csv or .parquet)")
    try:
        if path.suffix.casefold() in (".parquet", ".pq"):
            return pl.read_parquet(path)
        return pl.read_csv(path, infer_schema=False, separator="\t" if path.suffix.casefold() == ".tsv" else ",")
    except (pl.exceptions.PolarsError, OSError) as error:
        raise FormatError(path, f"cannot be read as a table ({str(error).splitlines()[0]})") from error
