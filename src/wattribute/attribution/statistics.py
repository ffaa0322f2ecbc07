"""Mean, least and greatest rate of a whole signal while spans ran: watts of energy, else a gauge's own unit.

The mean is weighted by time (the integral over the covered time). Least and greatest are those of the same curve: of a
gauge its readings inside the closed span and what it says at the span's ends (between two readings on the line between
them, or with integration "step" its last reading), of a counter its slopes between readings. So least ≤ mean ≤ most.
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


def of_rows(
    spans: Any, energies: Sequence[Energy], keys: Keys, fold: Fold, ticks_per_s: int, integrate: str
) -> Statistics:
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
        low, high, count = of_spans(energy, start, end, ticks_per_s, integrate)
        np.fmin.at(out.least[c], row, low)
        np.fmax.at(out.most[c], row, high)
        np.add.at(out.readings[c], row, count)
    return out


def of_spans(
    energy: Energy, start: Any, end: Any, ticks_per_s: int, integrate: str
) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
    """Least and greatest rate and number of readings of each span; NaN outside the readings."""
    signal = energy.signal
    times = np.asarray(signal.times, np.int64)
    first, last = np.searchsorted(times, start, side="left"), np.searchsorted(times, end, side="right")
    count = last - first
    outside = np.full(len(start), np.nan)
    if len(energy.times) < 2 or not len(start):
        return outside, outside, count
    begin, finish = (np.clip(moment, energy.times[0], energy.times[-1]) for moment in (start, end))
    if signal.kind != "gauge":
        low, high = _extremes(_slopes(energy, ticks_per_s), energy.times, begin, finish)
    else:
        values = np.asarray(signal.values, np.float64) * float(signal.scale)
        edges = _edges(times, values, begin, finish, integrate)
        pairs = np.stack([first, np.maximum(last, first + 1)], axis=1).ravel()
        padded = np.append(values, [np.nan, np.nan])
        low, high = (
            each.reduce([*edges, np.where(count > 0, each.reduceat(padded, pairs)[::2], np.nan)])
            for each in (np.fmin, np.fmax)
        )
    away = (end < energy.times[0]) | (start > energy.times[-1])
    return np.where(away, np.nan, low), np.where(away, np.nan, high), count


def _edges(times: Any, values: Floats, begin: Any, finish: Any, integrate: str) -> list[Floats]:
    """What a gauge says where spans begin and end."""
    if integrate == "step":
        return [values[np.maximum(np.searchsorted(times, begin, side="right") - 1, 0)]]
    return [np.interp(moment, times, values) for moment in (begin, finish)]


def _slopes(energy: Energy, ticks_per_s: int) -> Floats:
    """The rise per second between knots; NaN in the gaps between pieces."""
    slopes: Floats = np.diff(energy.values) * ticks_per_s / np.maximum(np.diff(energy.times), 1)
    piece = np.searchsorted(energy.pieces.start, energy.times[:-1], side="right") - 1
    return np.where(energy.times[:-1] < energy.pieces.end[np.maximum(piece, 0)], slopes, np.nan)


def _extremes(slopes: Floats, times: Any, begin: Any, finish: Any) -> tuple[Floats, Floats]:
    """The least and the greatest slope between two moments."""
    first = np.clip(np.searchsorted(times, begin, side="right") - 1, 0, len(slopes) - 1)
    last = np.maximum(np.searchsorted(times, finish, side="left"), first + 1)
    pairs, padded = np.stack([first, last], axis=1).ravel(), np.append(slopes, np.nan)
    return np.fmin.reduceat(padded, pairs)[::2], np.fmax.reduceat(padded, pairs)[::2]
