"""A comparison in words: what changed, by how much, how sure, which part of the code, and what to do if unsure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
_MAX_NAME = 60  # characters


def percent(fraction: float | None, digits: int | None = None) -> str:
    """A signed change: "−12.4 %", "+3 %"; finer below 1 %."""
    if fraction is None:
        return "new"
    value = 100 * fraction
    digits = digits if digits is not None else (1 if abs(value) < 100 else 0)
    text = f"{abs(value):.{digits}f} %"
    return f"{'−' if value < 0 and float(f'{value:.{digits}f}') != 0 else '+'}{text}"


def change_with_range(row: Mapping[str, Any]) -> str:
    """B against A of a row, with half of its interval: "+12.3 % ± 4.5 %"."""
    low, high = row["change_low"], row["change_high"]
    half = None if low is None or high is None else 50 * (high - low)
    return percent(row["change"]) + (f" ± {half:.1f} %" if half is not None and half >= 0.05 else "")


def describe(row: Row, test: str, unit: str = "J") -> str:
    """One key in two or three words."""
    if row["runs_a"] == 0 or row["runs_b"] == 0:
        return "only in B" if row["runs_a"] == 0 else "only in A"
    if row["changed"] is None:
        return "no bounds, cannot tell"
    if not row["changed"]:
        return "bounds overlap" if test == "bounds" else "no difference found"
    more = "less" if row["delta_j"] < 0 else "more"
    return more if unit == "s" else f"{more}, {_why(row)}"


def sentence(
    whole: Row,
    rows: Sequence[Row],
    by: Sequence[str],
    test: str,
    runs_a: int,
    runs_b: int,
    per: str = "",
    unit: str = "J",
) -> str:
    """The whole comparison: "−12.4 % ± 1.1 % energy, −15.0 % time, +3.1 % power; 82 % of the saving is dgemm"."""
    parts = [_energy(whole, test, unit)]
    if unit == "J":
        parts = [f"{parts[0]}, {_ratio(whole, 'time', 's')} time, {_ratio(whole, 'power', 'w')} power"]
    if per:
        parts[0] += f", all per {per}"
    if test == "bounds":
        parts.append(_single(whole, runs_a, runs_b))
    elif not whole["changed"]:
        parts.append(_unsettled(whole))
    blame = _blame(whole, rows, by)
    return "; ".join([*parts, *([blame] if blame else [])])


def _energy(whole: Row, test: str, unit: str) -> str:
    what = "time" if unit == "s" else "energy"
    change, low, high = whole["change"], whole["change_low"], whole["change_high"]
    if change is None:
        return f"{whole['delta_j']:+.4g} {unit} {what} (A used none)"
    if low is None or high is None or test == "bounds":
        return f"{percent(change)} {what}"
    half = 100 * (high - low) / 2
    return f"{percent(change)} ± {half:.{1 if half >= 0.05 else 2}f} % {what}"


def _ratio(whole: Row, what: str, unit: str) -> str:
    before, after = whole[f"{what}_a_{unit}"], whole[f"{what}_b_{unit}"]
    return percent(after / before - 1) if before and after is not None else "unknown"


def _single(whole: Row, runs_a: int, runs_b: int) -> str:
    which = "one run each" if runs_a == runs_b == 1 else f"{'A' if runs_a == 1 else 'B'} is a single run"
    if whole["changed"] is None:
        return f"{which} and no bounds: cannot tell; repeat both at least twice"
    return f"{which}: run-to-run noise is unknown, so this is what the meters saw, not yet a finding"


def _unsettled(whole: Row) -> str:
    if whole["delta_j"] == 0 and whole["spread_a_j"] == 0:
        return "the runs are equal to the last digit: are they copies of one?"
    floor = "" if whole["noise_floor"] is None else f" above the noise floor of {100 * whole['noise_floor']:.1f} %"
    more = whole["more_runs"]
    if more is None:
        return f"no difference found{floor}, and no sensible number of runs would settle one this small"
    runs = "run" if more == 1 else "runs"
    return f"no difference found{floor}; {more:,} more {runs} of each would settle one of this size"


def _why(row: Row) -> str:
    """What most of a difference comes from."""
    time, power = row["time_part_j"], row["power_part_j"]
    shorter = "shorter" if time < 0 else "longer"
    lower = "lower power" if power < 0 else "higher power"
    delta = row["delta_j"]
    pushing = [word for part, word in ((time, shorter), (power, lower)) if part * delta > 0.2 * delta * delta]
    return " and ".join(pushing) or "time and power"


def _short(name: str) -> str:
    """A name that leaves room for the sentence around it."""
    return name if len(name) <= _MAX_NAME else f"{name[: _MAX_NAME // 2]}…{name[-_MAX_NAME // 2 + 1 :]}"


def _blame(whole: Row, rows: Sequence[Row], by: Sequence[str]) -> str:
    """The key that most of the difference belongs to, or, when the whole did not change, those keys that did."""
    changed = [row for row in rows if row["changed"]]
    if not changed or len(rows) < 2:
        return ""
    name = _short(" · ".join(str(changed[0][key]) for key in by))
    delta = whole["delta_j"]
    if not whole["changed"] or changed[0]["delta_j"] * delta <= 0:
        return f"{name} changed by {percent(changed[0]['change'])}"
    share = changed[0]["delta_j"] / delta
    what = "saving" if delta < 0 else "increase"
    if share > 1.005:
        return f"{name} accounts for more than all of the {what}"
    return f"{100 * share:.0f} % of the {what} is {name}"
