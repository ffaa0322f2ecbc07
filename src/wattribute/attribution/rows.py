"""One row per span, location by location, so that billions of them do not fill memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from ..model import Keys, Recording
from ..model.spans import BOUNDS
from . import labels, statistics
from .join import DeviceCurves, Map, Plan, curves, masks
from .shares import alone
from .stream import to_parquet

if TYPE_CHECKING:
    import polars as pl


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


def span_rows(recording: Recording, plan: Plan, groups: Sequence[Sequence[int]]) -> Iterator[pl.DataFrame]:
    """A table per location and device; ordered by group, device and location, spans in the order they began."""
    names = (labels.location_labels(recording), labels.process_labels(recording))
    for group in groups:
        found = curves(recording, plan, group)
        for row in group:
            mask = masks(recording, plan.sources[row].of)
            for location in plan.sources[row].users:
                yield _table(recording, plan, found[row], location, mask(location), names)


def write_rows(
    recording: Recording,
    plan: Plan,
    found: Mapping[int, DeviceCurves],
    locations: Sequence[int],
    folder: SpanFolder,
    each: Map[Any, Any] = map,
) -> None:
    """The span rows of some locations of a group, a file per device and location."""
    names = (folder.locations, folder.processes)
    mask = masks(recording, plan.sources[next(iter(found))].of)
    pairs = [(row, location) for row in found for location in plan.sources[row].users if location in set(locations)]

    def write(pair: tuple[int, int]) -> None:
        row, location = pair
        to_parquet([_table(recording, plan, found[row], location, mask(location), names)], folder.part(row, location))

    list(each(write, pairs))


def _table(recording: Recording, plan: Plan, found: DeviceCurves, location: int, mask: Any, names: Any) -> pl.DataFrame:
    import polars as pl

    spans = recording.spans.spans(location)
    kept = np.flatnonzero(mask[spans.frame]) if len(spans) else np.empty(0, np.int64)
    own_row = np.full(len(spans), -1, np.int32)
    own_row[kept] = np.arange(len(kept))
    # a frame of its own for each span makes a fold tell one span from another
    each = replace(spans, frame=np.arange(len(spans), dtype=np.int32))
    both = [found.split.curves[location], alone(found.energy, [location], False).curves[location]]
    fold = _core.fold(each, both, Keys(own_row, len(kept)))
    source, clock = found.source, recording.clock
    owner = recording.owner(location)
    frame = spans.frame[kept]
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
        "frame": pl.Series(recording.frames.name, dtype=pl.String).gather(frame),
        "depth": spans.depth[kept],
        "start_ns": clock.ns(spans.start[kept]),
        "end_ns": clock.ns(spans.end[kept]),
        f"self_{unit}": fold["self_value"][0],
        f"total_{unit}": fold["total_value"][0],
    }
    for name in BOUNDS:
        bound = np.full(len(kept), np.nan) if fold[name] is None else fold[name][0]
        columns[f"{name}_{unit}"] = pl.Series(bound, dtype=pl.Float64, nan_to_null=True)
    columns |= {
        "self_ns": clock.ns(fold["self_ticks"]),
        "total_ns": clock.ns(fold["total_ticks"]),
        "covered_ns": clock.ns(fold["total_covered"][0]),
    }
    columns |= _rates(plan, found, spans, kept, fold, clock.ticks_per_s, unit)
    table = pl.DataFrame(columns)
    fixed = [pl.lit(value, dtype=pl.String).alias(name) for name, value in constants.items()]
    return table.select(*fixed, pl.all(), pl.lit(found.energy.unit).alias("unit"))


def _rates(plan: Plan, found: DeviceCurves, spans: Any, kept: Any, fold: Any, ticks_per_s: int, unit: str) -> Any:
    """Power over the covered self time and, if asked for, statistics of the readings inside each span."""
    import polars as pl

    def over(amount: Any, ticks: Any) -> pl.Series:
        ratio = np.divide(amount * ticks_per_s, ticks, out=np.full(len(kept), np.nan), where=ticks > 0)
        return pl.Series(ratio, dtype=pl.Float64, nan_to_null=True)

    own, whole = fold["self_covered"][0], fold["total_covered"][0]
    columns = {"power_w" if unit == "j" else "self_rate": over(fold["self_value"][0], own)}
    if plan.options.statistics:
        low, high, count = statistics.of_spans(found.energy, spans.start[kept], spans.end[kept])
        columns |= {
            "total_rate": over(fold["total_value"][0], whole),
            "mean": over(fold["total_value"][1], whole),
            "min": pl.Series(low, dtype=pl.Float64, nan_to_null=True),
            "max": pl.Series(high, dtype=pl.Float64, nan_to_null=True),
            "readings": pl.Series(count, dtype=pl.Int64),
        }
    return columns
