"""One row per span, a piece of a location at a time, so that billions of them do not fill memory.

Spans stand in the order they began, except that one which is open when a piece is full comes with a later piece.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..model import Keys, Recording, SpanRows
from ..model.spans import BOUNDS
from . import labels, statistics
from .join import DeviceCurves, Map, Plan, curves, masks
from .shares import alone
from .stream import parquet

if TYPE_CHECKING:
    import polars as pl

CHUNK = 1 << 15  # spans: what is held of a location, some 10 MB


@dataclass(frozen=True)
class SpanFolder:
    """A Parquet dataset of one row per span: a file per device and location, each there only when it is whole."""

    path: str
    locations: Sequence[str]  # labels by row
    processes: Sequence[str]
    sources: tuple[int, ...] | None = None  # the numbers of a part of a plan's sources in the whole plan

    def part(self, source: int, location: int) -> Path:
        number = source if self.sources is None else self.sources[source]
        return Path(self.path) / f"{number:05}-{location:07}.parquet"


Take = Callable[["pl.DataFrame"], None]


def each_row(recording: Recording, plan: Plan, groups: Sequence[Sequence[int]], take: Take) -> None:
    """All span rows, a piece of a location after the other; ordered by group, device and location."""
    names = (labels.location_labels(recording), labels.process_labels(recording))
    for group in groups:
        found = curves(recording, plan, group)
        for row in group:
            for location in plan.sources[row].users:
                _rows(recording, plan, found[row], location, names, take)


def write_rows(
    recording: Recording,
    plan: Plan,
    found: Mapping[int, DeviceCurves],
    locations: Sequence[int],
    folder: SpanFolder,
    each: Map[Any, Any] = map,
) -> None:
    """The span rows of some locations of a group, a file per device and location."""
    chosen = set(locations)
    pairs = [(row, location) for row in found for location in plan.sources[row].users if location in chosen]

    def write(pair: tuple[int, int]) -> None:
        row, location = pair
        with parquet(folder.part(row, location)) as take:
            _rows(recording, plan, found[row], location, (folder.locations, folder.processes), take)

    list(each(write, pairs))


def _rows(recording: Recording, plan: Plan, found: DeviceCurves, location: int, names: Any, take: Take) -> None:
    """The span rows of one location and device; ``take`` gets a table per piece, at least one."""
    mask = masks(recording, found.source.of)(location)
    keys = Keys(np.where(mask, 0, -1).astype(np.int32), 1)
    both = [found.split.curves[location], alone(found.energy, [location], False).curves[location]]
    recording.spans.rows(
        location, both, keys, CHUNK, lambda spans: take(_table(recording, plan, found, location, spans, names))
    )


def _table(
    recording: Recording, plan: Plan, found: DeviceCurves, location: int, spans: SpanRows, names: Any
) -> pl.DataFrame:
    import polars as pl

    source, clock = found.source, recording.clock
    owner = recording.owner(location)
    unit = "j" if found.energy.unit == "J" else "value"
    constants = {
        "run": str(recording.metadata.get("name", "")),
        "host": source.device.host,
        "device": source.device.name,
        "signal": source.signal.name,
        "of": source.of,
        "process": names[1][owner] if owner >= 0 else "",
        "location": names[0][location],
    }
    columns: dict[str, Any] = {
        "frame": pl.Series(recording.frames.name, dtype=pl.String).gather(spans.frame),
        "depth": spans.depth,
        "start_ns": clock.ns(spans.start),
        "end_ns": clock.ns(spans.end),
        f"self_{unit}": spans.self_value[0],
        f"total_{unit}": spans.total_value[0],
    }
    for name in BOUNDS:
        bounds = getattr(spans, name)
        bound = np.full(len(spans), np.nan) if bounds is None else bounds[0]
        columns[f"{name}_{unit}"] = pl.Series(bound, dtype=pl.Float64, nan_to_null=True)
    columns |= {
        "self_ns": clock.ns(spans.self_ticks),
        "total_ns": clock.ns(spans.end - spans.start),
        "covered_ns": clock.ns(spans.total_covered[0]),
    }
    columns |= _rates(plan, found, spans, clock.ticks_per_s, unit)
    table = pl.DataFrame(columns)
    fixed = [pl.lit(value, dtype=pl.String).alias(name) for name, value in constants.items()]
    return table.select(*fixed, pl.all(), pl.lit(found.energy.unit).alias("unit"))


def _rates(plan: Plan, found: DeviceCurves, spans: SpanRows, ticks_per_s: int, unit: str) -> Any:
    """Power over the covered self time and, if asked for, statistics of the readings inside each span."""
    import polars as pl

    def over(amount: Any, ticks: Any) -> pl.Series:
        ratio = np.divide(amount * ticks_per_s, ticks, out=np.full(len(spans), np.nan), where=ticks > 0)
        return pl.Series(ratio, dtype=pl.Float64, nan_to_null=True)

    own, whole = spans.self_covered[0], spans.total_covered[0]
    columns = {"power_w" if unit == "j" else "self_rate": over(spans.self_value[0], own)}
    if plan.options.statistics:
        low, high, count = statistics.of_spans(found.energy, spans.start, spans.end)
        columns |= {
            "total_rate": over(spans.total_value[0], whole),
            "mean": over(spans.total_value[1], whole),
            "min": pl.Series(low, dtype=pl.Float64, nan_to_null=True),
            "max": pl.Series(high, dtype=pl.Float64, nan_to_null=True),
            "readings": pl.Series(count, dtype=pl.Int64),
        }
    return columns
