"""``wattribute compare`` in the terminal: the verdict, a line per key, what to mind."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ..comparison.groups import Comparison
from ..comparison.verdict import change_with_range
from .console import problem_line
from .fitted_table import FittedTable
from .names import clean, labels
from .numbers import amount, si

_PROBLEMS = 12
_TESTS = {
    "welch": "Welch's t",
    "bootstrap": "a studentised bootstrap",
    "bounds": "the readings' bounds, since a side has a single run",
}


def comparison_table(comparison: Comparison, top: int | None = 20) -> RenderableType:
    """Largest differences first; unsettled ones are dim."""
    rows = comparison.rows.to_dicts()
    shown = rows[:top]
    table = FittedTable(drop=("p", "by power", "by time"))
    for key in comparison.by:
        table.add_column(key, no_wrap=True)
    parts_of_it = ("by time", "by power") if comparison.unit == "J" else ()
    for name in ("A", "B", "change", *parts_of_it, "p"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict")
    short = {key: labels([str(row[key]) for row in shown], 50) for key in comparison.by}
    for row in shown:
        style = "" if row["changed"] else "dim"
        names = [Text(short[key][str(row[key])], style=style) for key in comparison.by]
        table.add_row(*names, *(Text(text, style=style) for text in _cells(row, comparison)))
    first = [one for one in comparison.problems if one.kind == "metrics"]  # what is compared comes before the verdict
    others = [one for one in comparison.problems if one.kind != "metrics"]
    parts: list[RenderableType] = [problem_line(one.kind, clean(one.message)) for one in first]
    parts += [Text(clean(comparison.verdict), style="bold"), Text(_how(comparison)), Text(), table]
    if len(rows) > len(shown):
        parts.append(Text(f"… and {len(rows) - len(shown)} more (--top 0 shows all)", style="dim"))
    parts += [problem_line(one.kind, clean(one.message)) for one in others[:_PROBLEMS]]
    if len(others) > _PROBLEMS:
        parts.append(Text(f"! … and {len(others) - _PROBLEMS} more (--format json lists them)", style="yellow"))
    return Group(*parts)


def _how(comparison: Comparison) -> str:
    sides = f"A: {_runs(len(comparison.runs_a))}, B: {_runs(len(comparison.runs_b))}"
    sides += f", all figures per {clean(comparison.per)}" if comparison.per else ""
    if comparison.test == "bounds":
        return f"{sides}; judged by {_TESTS['bounds']}"
    return f"{sides}; {comparison.confidence:.0%} intervals by {_TESTS[comparison.test]}; p after Holm over all keys"


def _runs(number: int) -> str:
    return f"{number} run" if number == 1 else f"{number} runs"


def _cells(row: dict[str, Any], comparison: Comparison) -> list[str]:
    p = row["p_adjusted"]
    parts = [_signed(row[name]) for name in ("time_part_j", "power_part_j")] if comparison.unit == "J" else []
    return [
        *(amount(row[column], comparison.unit) for column in comparison.amounts),
        change_with_range(row),
        *parts,
        "–" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}",
        row["verdict"],
    ]


def _signed(joules: float) -> str:
    return f"{'+' if joules > 0 else ''}{si(joules, 'J')}"
