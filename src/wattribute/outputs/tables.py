"""Shared parts of the table formats: the promised columns, and writing text."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from ..errors import OptionError
from ..files import replacing
from ..model import Answer

if TYPE_CHECKING:
    import polars as pl

A = TypeVar("A", bound=Answer)
SORTS = ("self", "total", "time", "power", "calls")  # orders of rows
_DEVICE = ("device", "signal", "host", "of")


def promised_devices(attribution: Answer) -> pl.DataFrame:
    """One row per (device, of): names, the books, coverage; a unit where it is not joules."""
    table = attribution.devices
    books = [name for name in table.columns if name.startswith(("measured_", "attributed_", "idle_"))]
    unit = [] if attribution.suffix == "j" else ["unit"]
    run, gain = ([name] if name in table.columns else [] for name in ("run", "gain_error"))  # an ensemble's have a run
    return table.select(*run, *_DEVICE, *books, "coverage", "counted", "why", "estimated", *gain, *unit)


def promised_rows(attribution: Answer) -> pl.DataFrame:
    """The rows, each with ``estimated``: whether a model gave the energy of any of its devices."""
    import polars as pl

    rows = attribution.rows
    if "estimated" in rows.columns or not len(rows):
        return rows
    both = {*rows.columns} & {*attribution.devices.columns}  # devices have a run in an ensemble only
    keys = [name for name in ("run", "host", "device", "of") if name in both]
    keys = keys if "device" in keys else [name for name in keys if name != "host"]
    counted = attribution.devices.filter("counted") if "device" not in keys else attribution.devices
    models = counted.group_by(keys).agg(pl.col("estimated").any())
    return rows.join(models, on=keys, how="left", maintain_order="left").with_columns(
        pl.col("estimated").fill_null(value=False)
    )


def about(attribution: Answer) -> dict[str, str]:
    """The rules that an answer follows, and the version of wattribute."""
    from .. import __version__

    return {
        "method": attribution.question.method,
        "share": attribution.question.share or "even",
        "version": __version__,
    }


_DIGITS = 5  # of numbers in tables for people


def printed(attribution: Answer) -> list[list[str]]:
    """The rows as texts below a line of headings with units, for tables in papers and issues."""
    unit, rows = attribution.suffix, promised_rows(attribution)
    shown = {*attribution.by}
    if "device" in shown and "host" in rows.columns and rows["host"].n_unique() > 1:
        shown.add("host")  # devices of several hosts have the same names
    keys = [name for name in rows.columns[: rows.columns.index(f"self_{unit}")] if name in shown]
    symbol = attribution.unit
    headings = {
        f"self_{unit}": ("self", symbol), f"self_low_{unit}": ("low", symbol), f"self_high_{unit}": ("high", symbol),
        f"total_{unit}": ("total", symbol), "self_ns": ("time", "s"), "power_w": ("power", "W"), "calls": ("calls", ""),
        "co2e_g": ("CO2e", "g"),
    }  # fmt: skip
    values = [name for name in headings if name in rows.columns]
    several = ["unit"] if not symbol and "unit" in rows.columns else []
    modelled = ["estimated"] if "estimated" in rows.columns and rows["estimated"].any() else []
    heads = (f"{word} ({of})" if of else word for word, of in map(headings.get, values))  # type: ignore[misc]
    lines = [[*keys, *several, *modelled, *heads]]
    for row in rows.to_dicts():
        texts = [" > ".join(row[key]) if isinstance(row[key], list) else str(row[key]) for key in (*keys, *several)]
        texts += ["yes" if row[name] else "" for name in modelled]
        lines.append([*texts, *(_number(row[name], name) for name in values)])
    return lines


def _number(value: float | None, name: str) -> str:
    if value is None:
        return "–"
    if name == "calls":
        return str(value)
    return f"{value / 1e9 if name == 'self_ns' else value:.{_DIGITS}g}"


def top_rows(attribution: A, top: int | None, sort: str | None = None) -> A:
    """The first rows of each device (of all rows, when they are not by device), most first; see ``SORTS``."""
    rows = attribution.rows
    if sort is not None:
        rows = _sorted(rows, attribution.suffix, sort)
    if top is not None:
        keys = [name for name in ("run", "host", "device", "of") if name in rows.columns]
        kept = rows.group_by(keys, maintain_order=True).head(top) if "device" in keys else rows.head(top)
        rows = _sorted(kept, attribution.suffix, sort or "self")
    return replace(attribution, rows=rows)


def _sorted(rows: pl.DataFrame, suffix: str, sort: str) -> pl.DataFrame:
    columns = {"time": "self_ns", "calls": "calls", "power": "power_w" if suffix == "j" else "self_rate"}
    order = columns.get(sort, f"{sort}_{suffix}")
    if order not in rows.columns:
        raise OptionError(f"these rows have no {sort} to sort by")
    return rows.sort(order, descending=True, nulls_last=True, maintain_order=True)


def emit(text: str, target: str) -> None:
    """Write text to a file, or to standard output for ``-``."""
    if target == "-":
        sys.stdout.write(text)
        return
    with replacing(target) as file:
        file.write(text.encode("utf-8", "backslashreplace"))
