"""Mean, least and greatest value of a signal while spans ran: from all readings inside, not the end points alone.

The mean is weighted by time (the integral over the covered time, whoever else was active). A gauge's least and greatest
value are those of its readings inside the closed span, or what it last said before, when no reading fell inside. A
counter rises, so its least and greatest value are those at the span's start and end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._core import reference
from ..alignment.energy import Energy
from ..model import Fold, Keys

Floats = npt.NDArray[np.float64]
NAMES = ("mean", "min", "max", "readings")


class Statistics(NamedTuple):
    """Columns of shape (curve, row). ``whole`` is the integral over all of the row's covered time."""

    whole: Floats
    least: Floats
    most: Floats
    readings: npt.NDArray[np.int64]


def of_rows(spans: Any, energies: Sequence[Energy], keys: Keys, fold: Fold) -> Statistics:
    """Statistics per row; the second half of the fold's curves are the devices' whole energies."""
    row, _ = reference.rows(spans, keys)
    kept = row >= 0
    start, end, row = spans.start[kept], spans.end[kept], row[kept]
    shape = (len(energies), fold.total_value.shape[1])
    out = Statistics(
        fold.total_value[len(energies) :],
        np.full(shape, np.inf),
        np.full(shape, -np.inf),
        np.zeros(shape, np.int64),
    )
    for c, energy in enumerate(energies):
        low, high, count = of_spans(energy, start, end)
        np.fmin.at(out.least[c], row, low)
        np.fmax.at(out.most[c], row, high)
        np.add.at(out.readings[c], row, count)
    return out


def of_spans(energy: Energy, start: Any, end: Any) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
    """Least and greatest value and number of readings of each span; NaN outside the readings."""
    signal = energy.signal
    times = np.asarray(signal.times, np.int64)
    first, last = np.searchsorted(times, start, side="left"), np.searchsorted(times, end, side="right")
    count = last - first
    outside = np.full(len(start), np.nan)
    if not len(energy.times):
        return outside, outside, count
    away = (end < energy.times[0]) | (start > energy.times[-1])
    if signal.kind != "gauge":
        low, high = energy.base + energy.at(start), energy.base + energy.at(end)
    else:
        scaled = np.asarray(signal.values, np.float64) * float(signal.scale)
        held = np.maximum(first - 1, 0)
        pairs = np.stack([np.where(count > 0, first, held), np.where(count > 0, last, held + 1)], axis=1).ravel()
        low = np.fmin.reduceat(np.append(scaled, np.nan), pairs)[::2] if len(pairs) else outside
        high = np.fmax.reduceat(np.append(scaled, np.nan), pairs)[::2] if len(pairs) else outside
    return np.where(away, np.nan, low), np.where(away, np.nan, high), count
