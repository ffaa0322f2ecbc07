"""The functions of a profiled program → whose joules: an Attribution with files, lines, CPU seconds and calls.

``functions`` is the public function; the verb ``profile`` prints or writes what it gives. All numbers come from the one
attribution: joules of the devices, CPU seconds of the signal "cpu time" that each thread recorded about itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..engines import attribute
from ..errors import NoDataError, OptionError
from ..model import Attribution, Recording
from ..recorders.stack_files import CPU_LOAD, CPU_TIME, GROWN

if TYPE_CHECKING:
    import polars as pl

BY = ("device", "frame", "file", "line")
SORTS = {"self": "self_j", "total": "total_j", "time": "self_ns", "cpu": "self_cpu_s", "calls": "calls"}


def functions(recording: Recording, *, by: str | Sequence[str] = BY, sort: str = "self", **options: Any) -> Attribution:
    """Whose joules, of a profiled recording; ``options`` are those of ``attribute``.

    Rows have ``self_cpu_s`` and ``total_cpu_s`` beside what ``attribute`` gives. Threads that run at the same time
    share a device by the CPU time they used, unless ``share`` says otherwise: one that waits pays nothing while
    another works. ``calls`` is null where a profile cannot know it (samples see stacks, not calls).
    """
    if sort not in SORTS:
        raise OptionError.unknown("order", sort, SORTS)
    if not recording.metadata.get("profile"):
        raise NoDataError("this recording has no profile; make one with: wattribute profile SCRIPT.py")
    if "python" not in recording.frames.paradigm:
        raise NoDataError("no stack was seen: the program ended before the first look, or is no Python")
    if "share" not in options and _has_loads(recording):
        options |= {"share": "load", "load": f"^{CPU_LOAD}$"}
    found = attribute(recording, by=by, **options)
    rows = _with_calls(_with_cpu(found), recording)
    order = SORTS[sort]
    if order in rows.columns:
        rows = rows.sort(order, descending=True, nulls_last=True, maintain_order=True)
    return replace(found, rows=rows)


def _has_loads(recording: Recording) -> bool:
    """Whether every location says how busy it was."""
    told = {signal.location for signal in recording.signals if signal.name == CPU_LOAD}
    return set(recording.spans.locations()) <= told


def _with_cpu(found: Attribution) -> pl.DataFrame:
    """The rows with CPU seconds, null where no clock was read."""
    import polars as pl

    keys = [key for key in found.by if key not in ("device", "signal", "of", "host")]
    nothing = found.rows.with_columns(self_cpu_s=pl.lit(None, pl.Float64), total_cpu_s=pl.lit(None, pl.Float64))
    if not keys or not any(signal.name == CPU_TIME for signal in found.recording.signals):
        return nothing
    clocks = attribute(found.recording, by=keys, metric=f"^{CPU_TIME}$", bounds=False).rows
    clocks = clocks.select(*keys, self_cpu_s="self_value", total_cpu_s="total_value")
    return found.rows.join(clocks, on=keys, how="left", maintain_order="left")


def _with_calls(rows: pl.DataFrame, recording: Recording) -> pl.DataFrame:
    """Calls as far as they are known: all of a trace, those of functions beside cProfile, none of samples."""
    import polars as pl

    mode = recording.metadata["profile"]["mode"]
    if mode == "trace" or "calls" not in rows.columns:
        return rows
    counted = recording.metadata.get("calls") or []
    unknown = pl.lit(None, pl.Int64).alias("calls")
    if not counted or not {"frame", "file", "line"} <= set(rows.columns):
        return rows.with_columns(unknown)
    kinds = {"file": pl.String, "line": pl.Int64, "short": pl.String, "calls": pl.Int64}
    known = pl.DataFrame(counted, schema=kinds, orient="row").unique(["file", "line", "short"], keep="first")
    short = pl.col("frame").str.split(".").list.last()
    joined = rows.drop("calls").with_columns(short=short).join(
        known, on=["file", "line", "short"], how="left", maintain_order="left"
    )  # fmt: skip
    return joined.select(rows.columns)


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
