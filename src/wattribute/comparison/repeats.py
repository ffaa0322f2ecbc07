"""Several runs of one command: each run, and mean and confidence interval of what they have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..model import Interval, Summary
from .significance import t_quantile


def interval(values: Sequence[float]) -> Interval:
    """Mean, standard deviation and 95 % confidence interval of the mean, cut at 0 where no value is negative."""
    count, mean = len(values), float(np.mean(values))
    if count < 2:
        return Interval(mean)
    std = float(np.std(values, ddof=1))
    half = float(t_quantile(0.975, count - 1)) * std / count**0.5
    low = mean - half if min(values) < 0 else max(mean - half, 0.0)
    return Interval(mean, std, low, mean + half)


@dataclass(frozen=True)
class Repeats:
    """Several runs of one command: each run, and what they have in common."""

    runs: Sequence[Summary]

    @property
    def statistics(self) -> dict[str, Interval]:
        """By quantity: duration_s, energy_j, mean_w, co2e_g."""
        values = {
            name: [value for run in self.runs if (value := getattr(run, name)) is not None]
            for name in ("duration_s", "energy_j", "mean_w", "co2e_g")
        }
        return {name: interval(column) for name, column in values.items() if column}

    def per(self, unit: str) -> dict[str, Interval]:
        """The same per unit of work, over the runs that counted it, and their ``count``."""
        each = [one for run in self.runs if (one := run.per(unit)) is not None]
        values = {
            name: [value for one in each if (value := getattr(one, name)) is not None]
            for name in ("count", "duration_s", "energy_j", "co2e_g")
        }
        return {name: interval(column) for name, column in values.items() if column}

    @property
    def units(self) -> list[str]:
        return list(dict.fromkeys(unit for run in self.runs for unit in run.counts))

    def as_dict(self) -> dict[str, Any]:
        return {
            "command": list(self.runs[0].command),
            "repeats": len(self.runs),
            "statistics": {name: one.as_dict() for name, one in self.statistics.items()},
            **(
                {"per": {unit: {n: i.as_dict() for n, i in self.per(unit).items()} for unit in self.units}}
                if self.units
                else {}
            ),
            "runs": [run.as_dict() for run in self.runs],
        }
