"""An experiment in the terminal: statistics per label, mean ± 95 % interval, in kWh, kg and g/s as they are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from .fitted_table import FittedTable
from .names import clean
from .numbers import bounded

WIDE = 120  # columns from which a group is a row
_HEADS = ("time", "energy", "kWh", "kg CO2e", "g CO2e/s")
_STATISTICS = ("mean", "std", "min", "q25", "median", "q75", "max")


def summary_table(summary: Mapping[str, Any], width: int = WIDE) -> RenderableType:
    """The statistics of every group, then what was noticed; in a narrow window a block per group."""
    groups = summary["groups"]
    left_out = summary["runs"] - summary["counted"]
    words = f"{_runs(summary['counted'])}, mean ± 95 % confidence interval of the mean"
    words += f"; {left_out} left out" if left_out else ""
    notes = [Text(f"! {clean(note)}", style="yellow") for note in summary["notes"]]
    notes += [Text(clean(remark), style="dim") for remark in summary["remarks"]]
    per = summary.get("per")
    shown = _table(groups, per) if width >= WIDE else Group(*(_block(group, per) for group in groups))
    return Group(shown, Text(words, style="dim"), *notes)


def statistics_table(summary: Mapping[str, Any]) -> RenderableType:
    """Every statistic of every quantity, a table per group; the unit is in a quantity's name."""
    parts: list[RenderableType] = []
    for group in summary["groups"]:
        table = FittedTable()
        table.add_column("quantity", no_wrap=True)
        for name in _STATISTICS:
            table.add_column(name, justify="right", no_wrap=True)
        for quantity, values in group.items():
            if isinstance(values, Mapping) and "median" in values:
                numbers = (values[name] for name in _STATISTICS)
                table.add_row(quantity, *("–" if number is None else f"{number:.5g}" for number in numbers))
        parts += [_title(group), table]
    return Group(*parts)


def _runs(number: int) -> str:
    return f"{number} run" if number == 1 else f"{number} runs"


def _title(group: Mapping[str, Any]) -> Text:
    return Text(clean(group["group"]), style="bold").append(f"  {_runs(group['n'])}", style="dim")


def _heads(per: str | None) -> tuple[str, ...]:
    return _HEADS if per is None else (*_HEADS[:2], *(f"{what} per {clean(per)}" for what in ("J", "g CO2e", "s")))


def _cells(group: Mapping[str, Any], per: str | None) -> list[str]:
    mark = " est." if group["estimated"] else ""
    quantities = [_interval(group["duration_s"], "s"), _interval(group["energy_j"], "J", mark)]
    if per is not None:
        units = {"energy_j_per_unit": "J", "co2e_g_per_unit": "g", "s_per_unit": "s"}
        return quantities + [_interval(group[key], unit, "" if unit == "s" else mark) for key, unit in units.items()]
    return quantities + [_interval(group[key], "", mark) for key in ("energy_kwh", "co2e_kg", "co2e_g_per_s")]


def _table(groups: Sequence[Mapping[str, Any]], per: str | None) -> FittedTable:
    table = FittedTable()
    table.add_column("runs of", overflow="fold")
    for name in ("n", *_heads(per)):
        table.add_column(name, justify="right", no_wrap=True)
    for group in groups:
        table.add_row(Text(clean(group["group"])), str(group["n"]), *_cells(group, per))
    return table


def _block(group: Mapping[str, Any], per: str | None) -> Group:
    table = Table.grid(padding=(0, 2, 0, 0))
    for name, cell in zip(_heads(per), _cells(group, per), strict=True):
        table.add_row(f"  {name}", cell)
    return Group(_title(group), table)


def _interval(statistics: Mapping[str, Any] | None, unit: str, mark: str = "") -> str:
    if statistics is None:
        return "–"
    if unit:
        return bounded(statistics["mean"], statistics["ci95_low"], statistics["ci95_high"], unit) + mark
    half = None if statistics["ci95_high"] is None else statistics["ci95_high"] - statistics["mean"]
    return plain(statistics["mean"], half) + mark


def plain(value: float, half: float | None) -> str:
    """A value in its own unit, however small, and its error with the same power of ten: "(1.534 ± 0.007)e-05"."""
    if value == 0 or half is None:
        return f"{value:.4g}"
    exponent = math.floor(math.log10(abs(value)))
    if -4 <= exponent < 4:
        places = max(0, 3 - exponent)
        return f"{value:.{places}f} ± {half:.{places}f}"
    return f"({value / 10.0**exponent:.3f} ± {half / 10.0**exponent:.3f})e{exponent:+03d}"
