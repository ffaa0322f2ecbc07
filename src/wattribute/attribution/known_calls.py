"""Calls of rows as far as they are known: of a trace all, of samples none (a sample sees a stack, not a call).

Rows of statistics (cProfile's) have calls and cumulative times as the file has them, not as spans were laid out.

The reader leaves ``functions`` (file, line, name, primitive calls, calls, self ns, total ns) and ``call_paths``
(numbers of functions, calls) in the recording's metadata. Regions that were marked by hand are counted always.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..model import Question, Recording
from ..model.constants import OTHERS, STATIC

if TYPE_CHECKING:
    import polars as pl

_FUNCTION_KEY_INDEX = {"file": 0, "line": 1, "frame": 2}


def with_known_calls(recording: Recording, question: Question, rows: pl.DataFrame, unit: str) -> pl.DataFrame:
    """The rows with the file's ``calls`` and ``primitive_calls``, and of single functions their cumulative time."""
    functions = recording.metadata.get("functions")
    if not functions:
        return _of_profile(recording, rows)
    if question.sliced or question.begin is not None or question.end is not None:
        return rows
    if "calls" not in rows.columns or rows.is_empty():
        return rows
    if "path" in question.keys:
        return _of_paths(functions, recording.metadata.get("call_paths", ()), rows)
    return _of_functions(functions, [key for key in question.keys if key in _FUNCTION_KEY_INDEX], rows, unit)


def _of_profile(recording: Recording, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with null for calls that were not counted."""
    import polars as pl

    mode = (recording.metadata.get("profile") or {}).get("mode", "trace")
    if "calls" not in rows.columns or (mode == "trace" and not {"frame", "path"} & set(rows.columns)):
        return rows
    unknown = pl.lit(None, pl.Int64)
    name = pl.col("frame") if "frame" in rows.columns else pl.lit("")
    if "path" in rows.columns:
        name = pl.col("path").list.last()
    if mode == "trace":
        return rows.with_columns(calls=pl.when(name.is_in([OTHERS, STATIC])).then(unknown).otherwise(pl.col("calls")))
    frames = recording.frames
    marked = [name for name, paradigm in zip(frames.name, frames.paradigm, strict=True) if paradigm == "user"]
    counted = pl.when(name.is_in(marked)).then(pl.col("calls")).otherwise(unknown)
    profile_rows = recording.metadata.get("calls") or []
    if not profile_rows or not {"frame", "file", "line"} <= set(rows.columns):
        return rows.with_columns(calls=counted)
    kinds = {"file": pl.String, "line": pl.Int64, "short": pl.String, "profiled": pl.Int64}
    known = pl.DataFrame(profile_rows, schema=kinds, orient="row").unique(["file", "line", "short"], keep="first")
    short = pl.col("frame").str.split(".").list.last()
    keys = ["file", "line", "short"]
    joined = rows.with_columns(short=short).join(known, on=keys, how="left", maintain_order="left")
    return joined.with_columns(calls=pl.coalesce("profiled", counted)).select(rows.columns)


def _of_paths(functions: Any, paths: Any, rows: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    calls: dict[tuple[str, ...], int] = {}
    for path, count in paths:
        names = tuple(functions[i][2] for i in path)
        calls[names] = calls.get(names, 0) + count
    known = [calls.get(tuple(path), 1) for path in rows["path"].to_list()]
    return rows.with_columns(calls=pl.Series(known, dtype=pl.Int64))


def _of_functions(functions: Any, keys: list[str], rows: pl.DataFrame, unit: str) -> pl.DataFrame:
    import polars as pl

    groups: dict[tuple[Any, ...], list[int]] = {}
    for file, line, name, primitive, calls, _, total_ns in functions:
        group = groups.setdefault(tuple((file, line, name)[_FUNCTION_KEY_INDEX[key]] for key in keys), [0, 0, 0, 0])
        for at, value in enumerate((primitive, calls, total_ns, 1)):
            group[at] += value
    row_groups = [groups.get(key, [0, 0, 0, 0]) for key in zip(*(rows[key] for key in keys), strict=True)]
    if not keys:
        row_groups = [groups[()]] * len(rows)
    columns = {
        "calls": pl.Series([group[1] for group in row_groups], dtype=pl.Int64),
        "primitive_calls": pl.Series([group[0] for group in row_groups], dtype=pl.Int64),
    }
    single = pl.Series([group[3] == 1 for group in row_groups], dtype=pl.Boolean)  # totals of several overlap
    total_ns = pl.Series([group[2] for group in row_groups], dtype=pl.Int64)
    columns["total_ns"] = pl.select(pl.when(single).then(total_ns).otherwise(rows["total_ns"])).to_series()
    if unit == "s":
        columns["total_value"] = columns["total_ns"] / 1e9
    return rows.with_columns(**columns)
