"""The functions of a profiled program → whose joules: an Attribution with files, lines, CPU seconds and calls.

``functions`` is the public function; the verb ``profile`` prints or writes what it gives. All numbers come from the one
attribution: joules of the devices, CPU seconds of the signal "cpu time" that each thread recorded about itself.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..engines import attribute
from ..errors import NoDataError, OptionError
from ..model import Attribution, Frames, Recording, Spans, SpanTable
from ..model.constants import CPU_TIME
from ..readers.stack_files import GROWN, IMPORT
from ..reading import as_recording

if TYPE_CHECKING:
    import polars as pl

BY = ("device", "frame", "file", "line")
SORTS = {"self": "self_j", "total": "total_j", "time": "self_ns", "cpu": "self_cpu_s", "calls": "calls"}


def functions(
    recording: Recording | str | os.PathLike[str],
    *,
    by: str | Sequence[str] = BY,
    sort: str = "self",
    imports: bool = True,
    **options: Any,
) -> Attribution:
    """Whose joules, of a profiled recording; ``options`` are those of ``attribute``, ``sort`` is the order of the rows.

    Rows have ``self_cpu_s`` and ``total_cpu_s`` beside what ``attribute`` gives. Threads that run at the same time
    share a device by the CPU time they used, unless ``share`` says otherwise: one that waits pays nothing while
    another works. ``calls`` is null where a profile cannot know it (samples see stacks, not calls). Without
    ``imports`` all that imports did is one row ("imports, 214 modules").
    """
    if sort not in SORTS:
        raise OptionError.unknown("order", sort, SORTS)
    recording = as_recording(recording)
    if not recording.metadata.get("profile"):
        raise NoDataError("this recording has no profile; make one with: wattribute profile SCRIPT.py")
    if "python" not in recording.frames.paradigm:
        raise NoDataError("no stack was seen: the program ended before the first sample, or is not Python")
    if not imports:
        recording = _with_imports_folded(recording)
    attribution = attribute(recording, by=by, **options)
    rows = _with_cpu(attribution)
    order = SORTS[sort]
    if order in rows.columns:
        rows = rows.sort(order, descending=True, nulls_last=True, maintain_order=True)
    return replace(attribution, rows=rows)


def function_table(attribution: Attribution, sort: str = "self") -> pl.DataFrame:
    """One row per function: the sums over devices, and a column of self energy per device, named as it."""
    import polars as pl

    keys = ["frame", "file", "line"]
    ranges = [f"self_{end}_j" for end in ("low", "high")]
    once = [pl.col(name).max() for name in ("self_ns", "total_ns", "self_cpu_s", "total_cpu_s", "calls")]
    sums = [pl.col("self_j").sum(), pl.col("total_j").sum(), *map(_sum_of_all, ranges), *once]
    names = _device_names(attribution)
    rows = attribution.rows.with_columns(device=pl.struct("host", "device", "of").map_elements(
        lambda row: names[row["host"], row["device"], row["of"]], return_dtype=pl.String
    ))  # fmt: skip
    own = [pl.col("self_j").filter(pl.col("device") == name).sum().alias(name) for name in names.values()]
    table = rows.group_by(keys, maintain_order=True).agg(*sums, *own)
    power = pl.when(pl.col("self_ns") > 0).then(pl.col("self_j") / pl.col("self_ns") * 1e9)
    return table.with_columns(power_w=power).sort(SORTS[sort], descending=True, nulls_last=True, maintain_order=True)


def _sum_of_all(name: str) -> pl.Expr:
    """The sum of a column, null where one value is not known."""
    import polars as pl

    return pl.when(pl.col(name).null_count() == 0).then(pl.col(name).sum()).alias(name)


def _device_names(attribution: Attribution) -> dict[tuple[str, str, str], str]:
    """(host, device, of) of the rows → a column's name, the device's where that is enough."""
    here = attribution.rows.select("host", "device", "of").unique(maintain_order=True).rows()
    short = [device for _, device, _ in here]
    return {key: key[1] if short.count(key[1]) == 1 else " ".join(filter(None, key)) for key in sorted(here)}


def _with_imports_folded(recording: Recording) -> Recording:
    """The recording in which what an import does is one span: that of the outermost module it runs."""
    import numpy as np

    frames = recording.frames
    is_module = np.array([role == IMPORT for role in frames.role], np.bool_)
    if not is_module.any():
        return recording
    number = len(frames.name)
    spans = {}
    for location in recording.spans.locations():
        whole = recording.spans.spans(location)
        imports = is_module[whole.frame]
        is_inside = np.zeros(len(whole), np.bool_)
        for row, parent in enumerate(whole.parent.tolist()):  # parents come first
            is_inside[row] = parent >= 0 and (is_inside[parent] or imports[parent])
        kept = ~is_inside
        moved = np.append(np.cumsum(kept) - 1, -1)  # where the parent of a row that stays has gone; −1 stays −1
        spans[location] = Spans(
            whole.start[kept],
            whole.end[kept],
            np.where(imports, number, whole.frame)[kept].astype(np.int32),
            moved[whole.parent[kept]],
            whole.depth[kept],
            whole.resumed[kept],
        )
    files = {file for file, imported in zip(frames.file, is_module, strict=True) if imported}
    name = f"imports, {len(files):,} module{'s' * (len(files) != 1)}"
    rows = [*frames.rows(), (name, "python", IMPORT, "", 0)]
    return replace(recording, frames=Frames.of(rows), spans=SpanTable(spans))


def _with_cpu(attribution: Attribution) -> pl.DataFrame:
    """The rows with CPU seconds, null where no clock was read."""
    import polars as pl

    keys = [key for key in attribution.by if key not in ("device", "signal", "of", "host")]
    nothing = attribution.rows.with_columns(self_cpu_s=pl.lit(None, pl.Float64), total_cpu_s=pl.lit(None, pl.Float64))
    if not keys or not any(signal.name == CPU_TIME for signal in attribution.recording.signals):
        return nothing
    clocks = attribute(attribution.recording, by=keys, metric=f"^{CPU_TIME}$", bounds=False).rows
    clocks = clocks.select(*keys, self_cpu_s="self_value", total_cpu_s="total_value")
    return attribution.rows.join(clocks, on=keys, how="left", maintain_order="left")


def memory_lines(recording: Recording, top: int = 10) -> Sequence[Mapping[str, Any]]:
    """The lines in which resident memory grew most: frame, file, line, bytes."""
    if not any(signal.name == GROWN for signal in recording.signals):
        return []
    rows = attribute(recording, by=("frame", "file", "line"), metric=f"^{GROWN}$", bounds=False).rows
    best = rows.filter(rows["self_value"] > 0).sort("self_value", descending=True).head(top)
    return best.select("frame", "file", "line", bytes="self_value").to_dicts()


def held_lines(recording: Recording, top: int = 10) -> Sequence[Mapping[str, Any]]:
    """The lines that held most at the peak, as memray saw their allocations: frame, file, line, bytes, allocations."""
    names = ("frame", "file", "line", "bytes", "allocations")
    rows = recording.metadata.get("allocations") or []
    return [dict(zip(names, row, strict=True)) for row in rows[:top]]
