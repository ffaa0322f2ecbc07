"""Two groups of runs compared, key by key: how much less or more, how sure, and why.

Works on tables alone (a row per run and key, as an ensemble's attribution has them); :mod:`.significance` computes,
:mod:`.verdict` says it in words. With two or more runs on both sides the runs' own spread is the measure (Welch's t
below ten runs, a studentised bootstrap from ten on); a single run is judged by its bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import NoDataError, OptionError
from . import significance as st
from .verdict import describe, percent, sentence

if TYPE_CHECKING:
    import polars as pl

    from ..model import Problem

Floats = st.Floats
VALUES = ("energy_j", "time_s", "low_j", "high_j")


@dataclass(frozen=True)
class Side:
    """One group of runs: a row per run, a column per key, the whole run in column 0; NaN where there are no bounds."""

    energy_j: Floats
    time_s: Floats
    low_j: Floats
    high_j: Floats


@dataclass(frozen=True)
class Comparison:
    """B against A. ``whole`` is the run as a whole; ``rows`` one row per key, the largest difference first.

    Columns: energy_a_j, energy_b_j, delta_j and change (B / A − 1) with their intervals, p, p_adjusted, effect_size,
    changed (None where it is unknown), time and power of both, time_part_j + power_part_j = delta_j,
    noise_floor (relative to A), more_runs, runs_a, runs_b (in how many runs the key occurs), verdict.
    """

    whole: dict[str, Any]
    rows: pl.DataFrame
    by: Sequence[str]
    runs_a: Sequence[str]
    runs_b: Sequence[str]
    test: str  # "welch", "bootstrap" or "bounds"
    confidence: float
    verdict: str
    problems: Sequence[Problem] = field(default=())
    unit: str = "J"  # "s" where no energy was metered: columns of amounts end in _s, and there is no power
    per: str = ""  # the unit of work that energies and times are divided by

    @property
    def amounts(self) -> tuple[str, str]:
        """The columns of what A and B used: energy, or time where none was metered."""
        return ("energy_a_j", "energy_b_j") if self.unit == "J" else ("time_a_s", "time_b_s")

    def exceeds(self, limit: float) -> bool:
        """Whether B surely uses more than A, and by more than this fraction (0.05: five per cent)."""
        return bool(self.whole["changed"]) and (self.whole["change"] or 0.0) > limit

    def check(self, limit: float, strict: bool = False) -> tuple[bool, str]:
        """Whether B passes a limit on how much more it may use, and a line that says so.

        Without two runs on both sides nothing is known of the noise: that passes with a remark, or fails if ``strict``.
        """
        change = self.whole["change"]
        change = "an unknown amount" if change is None else percent(change)
        what, most = f"B against A: {change} energy", f"{100 * limit:g} %"
        if self.exceeds(limit):
            return False, f"failed: {what}, more than the {most} allowed"
        if self.test == "bounds" and strict:
            return False, f"failed: {what}, but a single run cannot show that it is at most {most}; repeat both"
        if self.test == "bounds":
            return True, f"passed: {what}, {most} allowed; a single run shows no noise: repeat both, or use --strict"
        unsure = "" if self.whole["changed"] else ", no certain difference"
        return True, f"passed: {what}{unsure}, {most} allowed"

    def to_dict(self) -> dict[str, Any]:
        """What ``--format json`` prints."""
        return {
            "verdict": self.verdict,
            "unit": self.unit,
            "test": self.test,
            "confidence": self.confidence,
            **({"per": self.per} if self.per else {}),
            "runs": {"a": list(self.runs_a), "b": list(self.runs_b)},
            "whole": self.whole,
            "rows": self.rows.to_dicts(),
            "problems": [problem.message for problem in self.problems],
        }


def compare_tables(
    a: pl.DataFrame,
    b: pl.DataFrame,
    whole_a: pl.DataFrame,
    whole_b: pl.DataFrame,
    by: Sequence[str],
    confidence: float = 0.95,
    problems: Sequence[Problem] = (),
    per: str = "",
    unit: str = "J",
) -> Comparison:
    """Compare tables of ``run``, the keys of ``by`` and energy_j, time_s, low_j, high_j; ``whole_*`` have no keys.

    A run without a row for a key did not do that: 0 J in 0 s. Of ``unit`` "s" energy_j is time_s.
    """
    import polars as pl

    if not 0.5 <= confidence < 1:
        raise OptionError(f"confidence {confidence:g} is not between 0.5 and 1; 0.95 is usual")
    runs_a, runs_b = whole_a["run"].to_list(), whole_b["run"].to_list()
    if not runs_a or not runs_b:
        raise NoDataError(f"group {'A' if not runs_a else 'B'} has no run with energy; compare needs one on each side")
    keys = _keys(a, b, by)
    test = _test(len(runs_a), len(runs_b))
    columns = _columns(_side(a, whole_a, keys, by), _side(b, whole_b, keys, by), test, confidence)
    columns |= _judged(columns, test, confidence, min(len(runs_a), len(runs_b)))
    columns["runs_a"], columns["runs_b"] = _occurs(a, keys, by, len(runs_a)), _occurs(b, keys, by, len(runs_b))
    table = pl.DataFrame(columns, nan_to_null=True).with_columns(pl.col("more_runs").cast(pl.Int64))
    table = table.with_columns(
        verdict=pl.Series([describe(row, test, unit) for row in table.to_dicts()], dtype=pl.String)
    )
    whole = table.row(0, named=True)
    rows = pl.concat([keys, table.slice(1)], how="horizontal").sort(pl.col("delta_j").abs(), descending=True)
    text = sentence(whole, rows.to_dicts(), by, test, len(runs_a), len(runs_b), per, unit)
    if unit == "s":
        rows, whole = _of_time(rows), _of_time(table.head(1)).row(0, named=True)
    return Comparison(whole, rows, tuple(by), runs_a, runs_b, test, confidence, text, tuple(problems), unit=unit)


def _of_time(table: pl.DataFrame) -> pl.DataFrame:
    """Without power and energy, which are none: amounts are seconds."""
    kept = [name for name in table.columns if not name.startswith(("energy_", "power_", "time_part"))]
    return table.select(kept).rename({name: f"{name[:-2]}_s" for name in kept if name.endswith("_j")})


def _test(runs_a: int, runs_b: int) -> str:
    fewer = min(runs_a, runs_b)
    return "bounds" if fewer < 2 else "welch" if fewer < st.BOOTSTRAP_FROM else "bootstrap"


def _keys(a: pl.DataFrame, b: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    import polars as pl

    for table, name in ((a, "A"), (b, "B")):
        for key in by:
            if key not in table.columns:
                raise OptionError.unknown(f"key of group {name}", key, set(table.columns) - {"run", *VALUES})
    return pl.concat([a.select(by), b.select(by)]).unique(maintain_order=True)


def _side(table: pl.DataFrame, whole: pl.DataFrame, keys: pl.DataFrame, by: Sequence[str]) -> Side:
    """The tables as arrays; what a run has no row for is 0 there, bounds included."""
    import polars as pl

    placed = table.join(whole.select("run").with_row_index("_row"), on="run")
    placed = placed.join(keys.with_row_index("_key", offset=1), on=list(by), nulls_equal=True)
    at = (placed["_row"].to_numpy(), placed["_key"].to_numpy())
    arrays = {}
    for name in VALUES:
        arrays[name] = np.zeros((len(whole), 1 + len(keys)))
        arrays[name][:, 0] = whole[name].cast(pl.Float64).fill_null(np.nan).to_numpy()
        np.add.at(arrays[name], at, placed[name].cast(pl.Float64).fill_null(np.nan).to_numpy())
    return Side(**arrays)


def _occurs(table: pl.DataFrame, keys: pl.DataFrame, by: Sequence[str], runs: int) -> list[int]:
    """In how many runs each key occurs; the whole in all of them."""
    import polars as pl

    counted = table.group_by(by).agg(pl.col("run").n_unique().alias("_runs"))
    joined = keys.join(counted, on=list(by), how="left", nulls_equal=True, maintain_order="left")
    return [runs, *joined["_runs"].fill_null(0).to_list()]


def _columns(a: Side, b: Side, test: str, confidence: float) -> dict[str, Any]:
    """Everything about each key but what needs the other keys."""
    difference = _by_bounds(a, b) if test == "bounds" else _by_spread(a, b, test, confidence)
    energy_a, energy_b = a.energy_j.mean(axis=0), b.energy_j.mean(axis=0)
    time_a, time_b = a.time_s.mean(axis=0), b.time_s.mean(axis=0)
    power_a, power_b = _power(energy_a, time_a), _power(energy_b, time_b)
    time_part = split(energy_a, energy_b, time_a, time_b)
    return {
        "energy_a_j": energy_a,
        "energy_b_j": energy_b,
        **difference,
        "time_a_s": time_a,
        "time_b_s": time_b,
        "power_a_w": power_a,
        "power_b_w": power_b,
        "time_part_j": time_part,
        "power_part_j": difference["delta_j"] - time_part,
    }


def split(energy_a: Floats, energy_b: Floats, time_a: Floats, time_b: Floats) -> Floats:
    """The part of the difference that is time: P̄·ΔT; the rest of ΔE = P̄·ΔT + T̄·ΔP is power, exactly.

    Bars are means of A and B. What only one side ran has the power of that side: the difference is all time. What took
    no time at all has none to save: all power.
    """
    power_a, power_b = _power(energy_a, time_a), _power(energy_b, time_b)
    power_a, power_b = np.where(np.isnan(power_a), power_b, power_a), np.where(np.isnan(power_b), power_a, power_b)
    mean = (np.nan_to_num(power_a) + np.nan_to_num(power_b)) / 2
    one_sided = ((energy_a == 0) & (time_a == 0)) != ((energy_b == 0) & (time_b == 0))
    return np.where(one_sided & (time_a + time_b > 0), energy_b - energy_a, mean * (time_b - time_a))


def _power(energy: Floats, time: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(time > 0, energy / np.where(time > 0, time, 1), np.nan)


def _by_spread(a: Side, b: Side, test: str, confidence: float) -> dict[str, Any]:
    """Intervals and p from the runs' own spread."""
    method = st.bootstrap if test == "bootstrap" else st.welch
    difference = method(a.energy_j, b.energy_j, confidence)
    mean_a = a.energy_j.mean(axis=0)
    floor = st.detectable(a.energy_j, b.energy_j, confidence)
    return {
        "delta_j": difference.delta,
        "delta_low_j": difference.delta_low,
        "delta_high_j": difference.delta_high,
        "change": difference.change,
        "change_low": difference.change_range[0],
        "change_high": difference.change_range[1],
        "p": difference.p,
        "effect_size": st.hedges_g(a.energy_j, b.energy_j),
        "noise_floor": np.where(mean_a != 0, floor / np.where(mean_a != 0, np.abs(mean_a), 1), np.nan),
        "spread_a_j": a.energy_j.std(axis=0, ddof=1),
        "spread_b_j": b.energy_j.std(axis=0, ddof=1),
    }


def _by_bounds(a: Side, b: Side) -> dict[str, Any]:
    """Intervals from what the readings allow; nothing is known of run-to-run noise."""
    energy_a, energy_b = a.energy_j.mean(axis=0), b.energy_j.mean(axis=0)
    low_a, high_a = a.low_j.mean(axis=0), a.high_j.mean(axis=0)
    low_b, high_b = b.low_j.mean(axis=0), b.high_j.mean(axis=0)
    unknown = np.full(len(energy_a), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            "delta_j": energy_b - energy_a,
            "delta_low_j": low_b - high_a,
            "delta_high_j": high_b - low_a,
            "change": np.where(energy_a > 0, energy_b / energy_a - 1, np.nan),
            "change_low": np.where(high_a > 0, low_b / high_a - 1, np.nan),
            "change_high": np.where(low_a > 0, high_b / low_a - 1, np.nan),
            "p": unknown,
            "effect_size": unknown,
            "noise_floor": unknown,
            "spread_a_j": unknown,
            "spread_b_j": unknown,
        }


def _judged(columns: dict[str, Any], test: str, confidence: float, runs: int) -> dict[str, Any]:
    """p_adjusted, changed, and how many more runs of each side would settle a difference of the size seen.

    The whole run and its keys are one family, so that a comparison of equal runs raises any alarm in at most one case
    of twenty. The whole weighs as much as all keys together; a single key is the whole, and no second question.
    """
    p, low, high = columns["p"], columns["delta_low_j"], columns["delta_high_j"]
    if test == "bounds":
        changed = [None if np.isnan(lo + hi) else bool(lo > 0 or hi < 0) for lo, hi in zip(low, high, strict=True)]
        return {"p_adjusted": p, "changed": changed, "more_runs": p}
    keys = len(p) - 1
    adjusted = st.holm(p, np.array([float(keys), *[1.0] * keys])) if keys > 1 else p
    settled = adjusted <= 1 - confidence
    needed = st.runs_needed(columns["spread_a_j"], columns["spread_b_j"], columns["delta_j"], confidence)
    return {
        "p_adjusted": adjusted,
        "changed": settled.tolist(),
        "more_runs": np.where(settled, np.nan, np.maximum(needed - runs, 1)),
    }
