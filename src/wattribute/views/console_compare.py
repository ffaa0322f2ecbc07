"""``wattribute compare`` in the terminal: the verdict, a line per key, what to mind."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..attribution.compare import Comparison
from ..attribution.verdict import percent
from .names import clean, labels
from .numbers import si

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
    table = Table(box=None, pad_edge=False)
    for key in comparison.by:
        table.add_column(key, overflow="fold", max_width=50)
    for name in ("A", "B", "change", "by time", "by power", "p"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict")
    short = {key: labels([str(row[key]) for row in shown], 50) for key in comparison.by}
    for row in shown:
        style = "" if row["changed"] else "dim"
        names = [Text(short[key][str(row[key])], style=style) for key in comparison.by]
        table.add_row(*names, *(Text(text, style=style) for text in _cells(row)))
    parts: list[RenderableType] = [Text(clean(comparison.verdict), style="bold"), Text(_how(comparison)), Text(), table]
    if len(rows) > len(shown):
        parts.append(Text(f"… and {len(rows) - len(shown)} more (--top 0 shows all)", style="dim"))
    parts += [Text(f"! {clean(problem.message)}", style="yellow") for problem in comparison.problems[:_PROBLEMS]]
    if len(comparison.problems) > _PROBLEMS:
        parts.append(
            Text(f"! … and {len(comparison.problems) - _PROBLEMS} more (--format json lists them)", style="yellow")
        )
    return Group(*parts)


def _how(comparison: Comparison) -> str:
    sides = f"A: {_runs(len(comparison.runs_a))}, B: {_runs(len(comparison.runs_b))}"
    if comparison.test == "bounds":
        return f"{sides}; judged by {_TESTS['bounds']}"
    return f"{sides}; {comparison.confidence:.0%} intervals by {_TESTS[comparison.test]}; p after Holm over all keys"


def _runs(number: int) -> str:
    return f"{number} run" if number == 1 else f"{number} runs"


def _cells(row: dict[str, Any]) -> list[str]:
    low, high = row["change_low"], row["change_high"]
    half = "" if low is None or high is None else f" ± {50 * (high - low):.1f} %"
    p = row["p_adjusted"]
    return [
        si(row["energy_a_j"], "J"),
        si(row["energy_b_j"], "J"),
        f"{percent(row['change'])}{half}",
        _signed(row["time_part_j"]),
        _signed(row["power_part_j"]),
        "–" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}",
        row["verdict"],
    ]


def _signed(joules: float) -> str:
    return f"{'+' if joules > 0 else ''}{si(joules, 'J')}"
