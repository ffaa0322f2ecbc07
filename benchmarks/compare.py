"""Does ``compare`` keep its word? 500 simulated ensembles with a known truth: coverage, false alarms, power.

Each run has its own speed (common to all frames), each frame its own noise, skewed as real runs are (a log-normal);
one frame of twelve changes by 10 % or not at all. Run it with ``python benchmarks/compare.py [--ensembles 500]``.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import polars as pl

from wattribute.comparison.groups import Comparison, compare_tables

FRAMES = [f"frame {i}" for i in range(12)]
MEAN_J = 1000.0 / np.arange(1, 13)
POWER_W = np.linspace(80, 400, 12)


def noise(generator: np.random.Generator, spread: float, shape: tuple[int, int]) -> np.ndarray:
    """Log-normal factors whose mean is 1."""
    return np.exp(generator.normal(-(spread**2) / 2, spread, shape))


def runs(generator: np.random.Generator, prefix: str, number: int, changed: float) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Tables of one group of runs; the first frame's mean energy and time are multiplied by ``changed``."""
    energy = MEAN_J * noise(generator, 0.01, (number, 1)) * noise(generator, 0.03, (number, 12))
    energy[:, 0] *= changed
    seconds = energy / POWER_W * noise(generator, 0.005, (number, 12))
    names = [f"{prefix}{i}" for i in range(number)]
    table = pl.DataFrame(
        {
            "run": np.repeat(names, 12),
            "frame": FRAMES * number,
            "energy_j": energy.ravel(),
            "time_s": seconds.ravel(),
            "low_j": energy.ravel(),
            "high_j": energy.ravel(),
        }
    )
    whole = table.group_by("run", maintain_order=True).agg(pl.col("energy_j", "time_s", "low_j", "high_j").sum())
    return table, whole


def compared(seed: int, number: int, changed: float) -> Comparison:
    generator = np.random.default_rng(seed)
    (a, whole_a), (b, whole_b) = runs(generator, "a", number, 1.0), runs(generator, "b", number, changed)
    return compare_tables(a, b, whole_a, whole_b, ("frame",))


def split_gap(rows: pl.DataFrame) -> float:
    """How far P̄·ΔT + T̄·ΔP, both computed afresh, are from ΔE and from the parts given; relative to A's energy."""
    time_a, time_b, power_a, power_b = (
        rows[name].to_numpy() for name in ("time_a_s", "time_b_s", "power_a_w", "power_b_w")
    )
    time_part = (power_a + power_b) / 2 * (time_b - time_a)
    power_part = (time_a + time_b) / 2 * (power_b - power_a)
    gaps = (
        time_part + power_part - rows["delta_j"].to_numpy(),
        time_part - rows["time_part_j"].to_numpy(),
        power_part - rows["power_part_j"].to_numpy(),
    )
    return float(max(np.abs(gap / rows["energy_a_j"].to_numpy()).max() for gap in gaps))


def measure(ensembles: int, number: int, changed: float) -> dict[str, float]:
    """Shares over all ensembles (and keys, where a key is what is asked about)."""
    truth = np.where(np.arange(12) == 0, changed - 1, 0.0)
    true_delta = MEAN_J * truth
    inside = inside_j = alarms = any_alarm = whole_inside = whole_alarm = found = blamed = 0
    worst_split = 0.0
    for seed in range(ensembles):
        comparison = compared(seed * 1000 + number, number, changed)
        rows = comparison.rows.sort(pl.col("frame").str.slice(6).cast(pl.Int64))
        whole = comparison.whole
        inside += np.count_nonzero((rows["change_low"].to_numpy() <= truth) & (truth <= rows["change_high"].to_numpy()))
        low, high = rows["delta_low_j"].to_numpy(), rows["delta_high_j"].to_numpy()
        inside_j += np.count_nonzero((low <= true_delta) & (true_delta <= high))
        marked = rows["changed"].to_numpy()
        false = marked & (truth == 0)
        alarms += np.count_nonzero(false)
        any_alarm += bool(false.any() or (changed == 1 and whole["changed"]))
        whole_alarm += bool(whole["changed"])
        whole_inside += whole["delta_low_j"] <= true_delta.sum() <= whole["delta_high_j"]
        found += bool(marked[0])
        blamed += "frame 0" in comparison.verdict
        worst_split = max(worst_split, split_gap(rows))
    keys = ensembles * 12
    return {
        "interval of the change holds the truth": inside / keys,
        "interval of the joules holds the truth": inside_j / keys,
        "interval of the whole holds the truth": whole_inside / ensembles,
        "false alarms per key": alarms / (keys if changed == 1 else keys - ensembles),
        "comparisons with any false alarm": any_alarm / ensembles,
        "whole called changed": whole_alarm / ensembles,
        "the frame is marked": found / ensembles,
        "the frame is in the verdict": blamed / ensembles,
        "worst gap of the split, relative": worst_split,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ensembles", type=int, default=500)
    ensembles = parser.parse_args().ensembles
    for number in (3, 8, 12):
        for changed in (0.9, 1.0):
            began = time.perf_counter()
            print(f"\n{ensembles} ensembles of {number} + {number} runs, {FRAMES[0]} × {changed}")
            for what, value in measure(ensembles, number, changed).items():
                print(f"  {what:42s} {value:.2e}" if "gap" in what else f"  {what:42s} {100 * value:6.2f} %")
            print(f"  {'per comparison':42s} {(time.perf_counter() - began) / ensembles * 1e3:6.1f} ms")


if __name__ == "__main__":
    main()
