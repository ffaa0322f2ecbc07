"""Below the sensor's period (method ``solve``, experimental): joules(t) between two changes of a counter.

A straight line between two changes smears spans that are shorter than the time between them. Instead each frame is
given its own power, and so is idleness; a regression of the counter's rises on the time each frame was innermost
in, with the counter's lag fitted along, finds them (``powers``). Every rise is then laid out in time as those powers
say, so no joule is made or lost (``refined``); ``shares`` and the fold do not change. What the fold finds along the
``low`` and the ``high`` curve are 95 % intervals, which are no rigorous bounds.

A regression always answers, so it has to earn the right to: ``_refuse`` names what makes it guess. The limits are those
at which benchmarks/solve.py finds a median error below 5 % and intervals that hold at least 90 % of the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._core import reference
from ..alignment.energy import Energy
from ..alignment.occupancy import Occupancy, Pieces
from ..errors import NoDataError
from ..model import Intervals

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_LAG_GRID = np.arange(-1.0, 4.0, 0.04)  # of the typical time between two changes: where the lag is looked for
_MAX_RISES_FOR_LAG = 4_000  # rises, evenly spread, that are enough to look for the lag
_SIGMAS = 2.2  # 1.96 for a normal 95 % interval, and some for a variance that is itself estimated
_MIN_ENERGY_SHARE = 0.05  # of the energy: frames with more need a narrow interval
_MIN_RISES_PER_POWER = 10  # rises needed for each power
_MIN_EXPLAINED = 0.8  # share of the rises' variance that the fit explains
_MIN_LAG_CONTRAST = 1.3  # how much worse every other lag has to fit
_MAX_HALF_INTERVAL = 0.25  # of a power: half of its 95 % interval
_MAX_NEIGHBOUR_CORRELATION = 0.25  # of neighbouring residuals: above it the counter low-passes, and solve refuses
_MAX_OVERLAP = 0.05  # share of the busy time in which several users are active


class SolvedCurves(NamedTuple):
    """A device's joules(t) laid out by fitted powers, and the same with the least and the greatest of them."""

    energy: Energy
    low: Energy
    high: Energy


class Powers(NamedTuple):
    """Watts (per tick) of each column of an occupancy, the last one idle, with half their 95 % intervals."""

    lag_ticks: int
    power: Floats
    half: Floats
    explained: float  # part of the rises' variance
    runner_up: float  # squared residuals of the next best lag, relative
    smeared: float  # how much of a rise belongs half a period earlier or later


def refined(energy: Energy, pieces: Sequence[Pieces], device: str) -> SolvedCurves:
    """Lay out the curve of a counter below its period; raise NoDataError if that would be a guess."""
    if not energy.bounded:
        raise _refusal(device, "its energy is not counted by a meter but integrated or estimated")
    occupancy = Occupancy(pieces)
    if not len(occupancy.start):
        return SolvedCurves(energy, energy, energy)
    if occupancy.overlap > _MAX_OVERLAP:
        raise _refusal(device, f"several users were active at once in {occupancy.overlap:.0%} of its busy time")
    times, values = _changes(energy)
    whole = np.diff(reference.covered(energy.pieces, times)) == np.diff(times)
    whole[0] = whole[-1] = False  # a change was not seen at both of their ends
    fit = powers(times, values, whole, occupancy, device)
    _refuse(fit, occupancy, times, device)
    return _laid_out(energy, times, values, fit, occupancy)


def _changes(energy: Energy) -> tuple[Ints, Floats]:
    """The first reading, those at which the counter had moved, and the last."""
    moved = np.diff(energy.values) > 0
    kept = np.concatenate([[True], moved[:-1], [True]])
    return energy.times[kept], energy.values[kept]


def powers(
    times: Ints, values: Floats, whole: npt.NDArray[np.bool_], occupancy: Occupancy, device: str = "device"
) -> Powers:
    """The regression: rises of a counter between ``times`` on the time spent in each column, the lag fitted along."""
    rows = np.flatnonzero(whole)
    needed = _MIN_RISES_PER_POWER * (occupancy.columns + 1)
    if len(rows) < needed:
        raise _refusal(device, f"its counter changed {len(rows)} times, and {needed} are needed for so many frames")
    period = float(np.median(np.diff(times)[rows]))
    some = rows[:: -(-len(rows) // _MAX_RISES_FOR_LAG)]
    rises = np.diff(values)

    def spent(lag: float, which: Ints) -> Floats:
        back = round(lag)
        return occupancy.before(times[which + 1] - back) - occupancy.before(times[which] - back)

    def misfit(lag: float) -> float:
        matrix = spent(lag, some)
        return float(np.square(rises[some] - matrix @ _least_squares(matrix, rises[some])).sum())

    lags = _LAG_GRID * period
    misfits = np.array([misfit(lag) for lag in lags])
    best = int(np.argmin(misfits))
    lag = _lowest(misfit, lags[max(best - 1, 0)], lags[min(best + 1, len(lags) - 1)])
    least = max(misfit(lag), 1e-300)
    elsewhere = float(misfits[np.abs(lags - lag) > period / 2].min()) / least
    matrices = {step: spent(lag + step * period, rows) for step in (-0.5, -0.01, 0.0, 0.01, 0.5)}
    power = _least_squares(matrices[0.0], rises[rows])
    series = {step: matrix @ power for step, matrix in matrices.items()}
    residuals = rises[rows] - series[0.0]
    slope = (series[0.01] - series[-0.01]) / 0.02  # by the lag, in periods, which is uncertain as well
    error = _errors(np.column_stack([matrices[0.0], slope]), residuals)[:-1]
    mean = rises[rows].sum() / np.diff(times)[rows].sum()
    variance = float(np.square(rises[rows] - mean * np.diff(times)[rows]).sum())
    explained = 1 - float(residuals @ residuals) / variance if variance > 0 else 0.0
    shifted = np.column_stack([matrices[0.0], slope, series[-0.5] - series[0.0], series[0.5] - series[0.0]])
    smeared = float(np.abs(_least_squares(shifted, rises[rows])[-2:]).sum())
    # a reading whose moment is uncertain pulls powers towards their mean; at worst as much as was left unexplained
    half = _SIGMAS * error + (1 - explained) * np.abs(power - mean)
    return Powers(round(lag), power, half, explained, elsewhere, smeared)


def _least_squares(matrix: Floats, right: Floats) -> Floats:
    scale = np.maximum(np.abs(matrix).max(axis=0), 1e-300)
    solution: Floats = np.linalg.lstsq(matrix / scale, right, rcond=None)[0] / scale
    return solution


def _lowest(function: Any, low: float, high: float) -> float:
    """Find the minimum of a function by golden-section search."""
    for _ in range(20):
        left, right = low + 0.382 * (high - low), low + 0.618 * (high - low)
        low, high = (low, right) if function(left) < function(right) else (left, high)
    return (low + high) / 2


def _errors(matrix: Floats, residuals: Floats) -> Floats:
    """Standard errors that allow for noise that differs between rises and is shared by neighbours (Newey and West)."""
    scale = np.maximum(np.abs(matrix).max(axis=0), 1e-300)
    matrix = matrix / scale
    bread = np.linalg.pinv(matrix.T @ matrix)
    scores = matrix * residuals[:, None]
    meat = scores.T @ scores
    for apart in (1, 2):
        cross = scores[apart:].T @ scores[:-apart]
        meat += (1 - apart / 3) * (cross + cross.T)
    rows, columns = matrix.shape
    errors: Floats = np.sqrt(np.maximum(np.diag(bread @ meat @ bread), 0) * rows / (rows - columns)) / scale
    return errors


def _refusal(device: str, reason: str) -> NoDataError:
    return NoDataError(f"method solve refuses {device}: {reason}; use method linear, whose bounds hold")


def _refuse(fit: Powers, occupancy: Occupancy, times: Ints, device: str) -> None:
    """Raise NoDataError if the fitted powers would be a guess."""
    if fit.explained < _MIN_EXPLAINED:
        known = f"{max(fit.explained, 0):.0%} of how its counter rose"
        raise _refusal(device, f"what ran explains {known}, not {_MIN_EXPLAINED:.0%}")
    if fit.runner_up < _MIN_LAG_CONTRAST:
        raise _refusal(
            device, "its lag cannot be determined, other lags fit as well (does the work repeat too evenly?)"
        )
    if fit.smeared > _MAX_NEIGHBOUR_CORRELATION:
        raise _refusal(device, "its counter smears energy over time, so that neighbours cannot be told apart")
    window = times[[0, -1]] - fit.lag_ticks
    used = fit.power * np.diff(occupancy.before(window), axis=0)[0]
    matters = used[:-1] > _MIN_ENERGY_SHARE * used[:-1].clip(min=0).sum()
    width = fit.half[:-1][matters] / fit.power[:-1][matters]
    if (fit.power[:-1] + fit.half[:-1] < 0).any():
        raise _refusal(device, "a frame would have to draw negative power")
    if not len(width) or width.max() > _MAX_HALF_INTERVAL:
        known = f"±{max(width, default=1.0):.0%}"
        raise _refusal(device, f"a frame's power is known to {known} only, not to ±{_MAX_HALF_INTERVAL:.0%}")


def _laid_out(energy: Energy, times: Ints, values: Floats, fit: Powers, occupancy: Occupancy) -> SolvedCurves:
    """Spread every rise over the time in which it was used, in proportion to the powers."""
    floor = 1e-9 * float(np.abs(fit.power).max())  # no user draws exactly 0, so that each rise has a place
    power = np.maximum(fit.power, floor)
    edges = times - fit.lag_ticks
    changed, drawn = occupancy.knots(power)
    inside = changed[(changed > edges[0]) & (changed < edges[-1])]
    knots = np.unique(np.concatenate([edges, inside]))

    def along(each: Floats, column: Floats) -> Floats:
        at = np.searchsorted(changed, knots[:-1], side="right") - 1
        return np.where(at >= 0, column[np.maximum(at, 0)], each[-1])

    work = along(power, drawn) * np.diff(knots)
    interval = np.searchsorted(edges, knots[:-1], side="right") - 1
    rises = np.diff(values)[interval] * work / np.bincount(interval, weights=work)[interval]
    ratio = {
        name: along(bent, occupancy.knots(bent)[1]) / along(power, drawn)
        for name, bent in (("low", np.maximum(power - fit.half, 0)), ("high", power + fit.half))
    }
    pieces = Intervals(energy.pieces.start - fit.lag_ticks, energy.pieces.end - fit.lag_ticks)

    def curve(steps: Floats) -> Energy:
        heights = np.concatenate([[0.0], np.cumsum(steps)])
        return replace(
            energy, times=knots, values=heights, pieces=pieces, least=steps, most=steps, bounded=False, latency_ticks=0
        )

    return SolvedCurves(curve(rises), curve(rises * ratio["low"]), curve(rises * ratio["high"]))
