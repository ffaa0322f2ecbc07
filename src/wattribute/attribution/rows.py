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
from . import ranges, statistics
from .join import DeviceCurves, Map, Plan, curves, folded_users, masks
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
    names = (recording.location_labels, recording.process_labels)
    for group in groups:
        by_row = curves(recording, plan, group)
        for row in group:
            for location in folded_users(plan.sources[row], by_row[row]):
                _rows(recording, plan, by_row[row], location, names, take)


def write_rows(
    recording: Recording,
    plan: Plan,
    by_row: Mapping[int, DeviceCurves],
    locations: Sequence[int],
    folder: SpanFolder,
    each: Map[Any, Any] = map,
) -> None:
    """The span rows of some locations of a group, a file per device and location."""
    chosen = set(locations)
    pairs = [
        (row, location)
        for row in by_row
        for location in folded_users(plan.sources[row], by_row[row])
        if location in chosen
    ]

    def write(pair: tuple[int, int]) -> None:
        row, location = pair
        with parquet(folder.part(row, location)) as take:
            _rows(recording, plan, by_row[row], location, (folder.locations, folder.processes), take)

    list(each(write, pairs))


def _rows(recording: Recording, plan: Plan, device: DeviceCurves, location: int, names: Any, take: Take) -> None:
    """The span rows of one location and device; ``take`` gets a table per piece, at least one."""
    mask = masks(recording, device.source.of)(location)
    keys = Keys(np.where(mask, 0, -1).astype(np.int32), 1)
    both = [device.split.curves[location], alone(device.energy, [location], False).curves[location]]
    both += [one.curves[location] for one in device.static]
    recording.spans.rows(
        location, both, keys, CHUNK, lambda spans: take(_table(recording, plan, device, location, spans, names))
    )


def _table(
    recording: Recording, plan: Plan, device: DeviceCurves, location: int, spans: SpanRows, names: Any
) -> pl.DataFrame:
    import polars as pl

    source, clock = device.source, recording.clock
    owner = recording.owner(location)
    unit = "j" if device.energy.unit == "J" else "value"
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
    for name, bound in _ranges(plan, device, location, spans).items():
        finite = np.where(np.isfinite(bound), bound, np.nan)
        columns[f"{name}_{unit}"] = pl.Series(finite, dtype=pl.Float64, nan_to_null=True)
    if plan.has_floors:
        own = spans.self_value[0]
        ends = ranges.static_ends(spans.self_value[2:])
        static, low, high = (np.full(len(own), np.nan) if end is np.nan else end for end in ends)
        named = {"static": static, "static_low": low, "static_high": high, "dynamic": own - static}
        columns |= {f"{name}_{unit}": pl.Series(column, nan_to_null=True) for name, column in named.items()}
    columns |= {
        "self_ns": clock.ns(spans.self_ticks),
        "total_ns": clock.ns(spans.end - spans.start),
        "covered_ns": clock.ns(spans.total_covered[0]),
    }
    columns |= _rates(plan, device, spans, clock.ticks_per_s, unit)
    table = pl.DataFrame(columns)
    fixed = [pl.lit(value, dtype=pl.String).alias(name) for name, value in constants.items()]
    return table.select(*fixed, pl.all(), pl.lit(device.energy.unit).alias("unit"))


def _ranges(plan: Plan, device: DeviceCurves, location: int, spans: SpanRows) -> dict[str, Any]:
    """Columns named as RANGES: of a gauge from each span's time; its self has one where it called nothing."""
    ends: dict[str, ranges.Range] = {}
    unknown = ranges.Range(*np.full((4, len(spans)), np.nan))
    for which in ("self", "total"):
        value = getattr(spans, f"{which}_value")[0]
        low, high = getattr(spans, f"{which}_low"), getattr(spans, f"{which}_high")
        if device.seen is not None:
            clock = None if device.clock is None else device.clock.curves[location]
            share = ranges.share_of(clock, device.seen)
            pieces = (spans.start, spans.end, np.arange(len(spans)))
            ends[which] = ranges.of_pieces(
                pieces, len(spans), device.seen, share, value, device.covered, device.ticks_per_s
            )
        elif low is not None and high is not None:
            ends[which] = device.with_gain(low[0], high[0], value)
        else:
            ends[which] = unknown
    if device.seen is not None:
        leaf = spans.self_ticks == spans.end - spans.start
        ends["self"] = ranges.Range(*(np.where(leaf, column, np.nan) for column in ends["total"]))
    return {name: column[0] for name, column in ranges.columns({key: [one] for key, one in ends.items()}).items()}


def _rates(plan: Plan, device: DeviceCurves, spans: SpanRows, ticks_per_s: int, unit: str) -> Any:
    """Power over the covered self time and, if asked for, statistics of the readings inside each span."""
    import polars as pl

    def over(amount: Any, ticks: Any) -> pl.Series:
        ratio = np.divide(amount * ticks_per_s, ticks, out=np.full(len(spans), np.nan), where=ticks > 0)
        return pl.Series(ratio, dtype=pl.Float64, nan_to_null=True)

    own, whole = spans.self_covered[0], spans.total_covered[0]
    columns = {"power_w" if unit == "j" else "self_rate": over(spans.self_value[0], own)}
    if plan.question.statistics:
        low, high, count = statistics.of_spans(
            device.energy, spans.start, spans.end, ticks_per_s, plan.question.integrate
        )
        columns |= {
            "total_rate": over(spans.total_value[0], whole),
            "mean": over(spans.total_value[1], whole),
            "min": pl.Series(low, dtype=pl.Float64, nan_to_null=True),
            "max": pl.Series(high, dtype=pl.Float64, nan_to_null=True),
            "readings": pl.Series(count, dtype=pl.Int64),
        }
    return columns
