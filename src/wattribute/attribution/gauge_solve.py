"""Below a gauge's window (method ``solve``, experimental): one power per frame from what each window averaged.

A window of W ticks that ended L before its update reads Σ p_k · x_k, where x_k is the part of it in which frame k was
innermost and p_k what the chip draws then; the chip itself follows its code with a time constant. W and L are not
free: the line of the sensor table is their prior (a free lag swaps the on and the off phase of a sensor that sees a
quarter of the time). ``powers`` fits p for a grid of them and resamples blocks of windows, drawing from the grid as
well as it fits: the intervals hold what window, lag, ramp and scatter leave open; the gain widens them.

Least squares always give an answer, so ``_refuse`` checks how much the windows' occupancy can show, however good the
fit is. ``benchmarks/gauges.py`` counts how often it answers and how often the interval holds the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..alignment.energy import Energy
from ..alignment.gauges import Windows, pairs
from ..alignment.occupancy import Occupancy, Pieces
from ..errors import NoDataError
from ..model import Intervals
from .ranges import of_pieces, share_of
from .solve import SolvedCurves

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MOST_WINDOWS = 2_000  # evenly spread, that are enough for the fit
RAMPS_S = (0.0, 0.003, 0.006, 0.01, 0.016, 0.03)  # time constants of a chip's own response that are tried
USUAL_RAMP_S = 0.004  # measured on A100 and RTX 3090: within 6 ms (arXiv 2312.02741, its meter at 4.8 kHz)
QUANTILES = 5  # delays that stand for one exponential response
ROUNDS = 3  # of halving the step around the best lag
REFINED_CANDIDATES = 6  # candidates that are tried with other windows as well
LAGS, MOST_LAGS = 9, 21  # steps of the grid across the prior
LAG_STEP = 0.12  # of the window: no step of the grid is longer, as far as there are enough of them
AGE = 0.1  # of the window: polls that are further apart leave open when an update came
AGES: tuple[tuple[float, ...], ...] = (
    (0.5,),
    (1 / 6, 1 / 2, 5 / 6),
)  # of the time between two polls: always the same (a lag), or anywhere in it
REPLICATES = 300
BLOCKS = 24  # at least so many blocks are resampled
WIDTHS = 7  # windows of the prior at which it is asked what occupancy tells
EFFECTIVE_WINDOWS = 60.0  # windows that all of them are worth when candidates are weighed: misfit is not white noise
INTERVAL_WIDENING = 1.25  # of the bootstrap's interval: its windows and its grid are not all there are
PER_POWER = 8  # windows needed for each power
MIN_ENERGY_SHARE = 0.05  # of the energy: frames with more have to be known well
MAX_ERROR = 0.12  # standard error of a power that matters, relative: above it windows do not tell it
MAX_HALF = 0.35  # half an interval, relative
LEAST_SCATTER = 0.03  # of the mean reading: no model of a chip is better
MIN_EXPLAINED = 0.4  # of the readings' variance: less, and something else draws the power
NAMED_FRAMES = 4  # whose hard ranges a refusal names
MAX_OVERLAP = 0.05  # of the busy time in which several users are active


class GaugePowers(NamedTuple):
    """Mean watts of each column of an occupancy while it ran (the last one idle), and a 95 % interval in true watts."""

    power: Floats
    low: Floats
    high: Floats
    error: Floats  # standard errors, of what the windows' occupancy tells
    explained: float


class _Candidate(NamedTuple):
    """A window, lag and ramp: its design, and how it fits."""

    matrix: Floats
    mean: Floats  # (column, column): powers of the model → mean power while each column ran
    misfit: float
    power: Floats
    where: tuple[float, float, float, tuple[float, ...]]  # ramp, window, lag (seconds), ages


def refined(
    energy: Energy, seen: Windows, pieces: Sequence[Pieces], device: str, frames: Sequence[str], ticks_per_s: int
) -> SolvedCurves:
    """Lay out the curve of a gauge by fitted powers; raise NoDataError if that would be a guess.

    ``frames`` are the names of what the pieces hold.
    """
    if seen.line.kind not in ("boxcar", "running mean"):
        raise refusal(device, f"it has no model of a sensor of the kind {seen.line.kind!r}; {_LINEAR_HINT}")
    occupancy = Occupancy(pieces)
    if not len(occupancy.start):
        return SolvedCurves(energy, energy, energy)
    if occupancy.overlap > MAX_OVERLAP:
        raise refusal(
            device, f"several users were active at once in {occupancy.overlap:.0%} of its busy time; {_LINEAR_HINT}"
        )
    spent = np.diff(occupancy.before(energy.times[[0, -1]]), axis=0)[0]
    try:
        fit = powers(seen, occupancy, device, ticks_per_s)
        _refuse(fit, spent, device)
    except NoDataError as error:
        raise NoDataError(f"{error}: {_possible(energy, seen, pieces, frames, ticks_per_s)}") from None
    return _laid_out(energy, occupancy, fit, spent, ticks_per_s)


def _possible(energy: Energy, seen: Windows, pieces: Sequence[Pieces], frames: Sequence[str], ticks_per_s: int) -> str:
    """The hard ranges of the frames that got most, in words."""
    start, end, frame = (np.concatenate(column) for column in zip(*pieces, strict=True))
    ran = frame >= 0
    start, end, frame = start[ran], end[ran], frame[ran]
    value = np.bincount(frame, energy.at(end) - energy.at(start), len(frames)).astype(np.float64)
    covered = int(energy.times[0]), int(energy.times[-1])
    rule = (seen, share_of(None, seen))
    ranges = of_pieces((start, end, frame), len(frames), *rule, value, covered, ticks_per_s)
    all_time = (np.array(covered[:1]), np.array(covered[1:]), np.zeros(1, np.int64))
    whole = of_pieces(all_time, 1, *rule, np.array([energy.measured]), covered, ticks_per_s)
    texts = []
    for row in np.argsort(-value, kind="stable")[:NAMED_FRAMES].tolist():
        most = float(np.minimum(ranges.hard_high[row], whole.hard_high[0]))  # as rows: no more than the device
        high = f"{most:.4g}" if np.isfinite(most) else "any number of"
        texts.append(f"{frames[row]} {ranges.hard_low[row]:.4g} to {high} J")
    return ", ".join(texts)


_LINEAR_HINT = "use method linear, which prints what is known, and as the hard range what is possible"


def refusal(device: str, reason: str) -> NoDataError:
    return NoDataError(f"method solve refuses {device}: {reason}")


def powers(seen: Windows, occupancy: Occupancy, device: str, ticks_per_s: int) -> GaugePowers:
    """Least squares over a grid of windows, lags and ramps, and a block bootstrap over windows and grid."""
    stride = -(-len(seen) // MOST_WINDOWS)
    rows = np.arange(0, len(seen), stride)
    needed = PER_POWER * (occupancy.columns + 1)
    if len(rows) < needed:
        raise refusal(
            device, f"it was updated {len(rows)} times, and {needed} are needed for so many frames; {_LINEAR_HINT}"
        )
    reading = seen.mean[rows]
    design = _Design(seen, occupancy, rows, reading, ticks_per_s)
    grid = _grid(design)
    best = min(grid, key=lambda candidate: candidate.misfit)
    columns = best.matrix.shape[1]
    freedom = max(len(rows) - columns - 3, 1)
    variance = best.misfit / freedom
    error = _errors(best, design, np.sqrt(variance))
    spread = float(np.var(reading))
    explained = 1 - best.misfit / len(rows) / spread if spread > 0 else 0.0
    draws = _bootstrap(grid, best, reading)
    low, power, high = np.percentile(draws, [2.5, 50, 97.5], axis=0)
    widen = INTERVAL_WIDENING + 1.0 / np.sqrt(max(len(rows) / columns, 1.0))  # few windows: the bootstrap is too narrow
    low, high = power - widen * (power - low), power + widen * (high - power)
    gains = pairs(seen.line, hard=False)
    truths = [(power - offset) / gain for gain, offset in gains]
    least = power - np.hypot(power - low, power - np.minimum(np.min(truths, axis=0), power))  # independent errors
    most = power + np.hypot(high - power, np.maximum(np.max(truths, axis=0), power) - power)
    return GaugePowers(power, least, most, error, explained)


def _errors(best: _Candidate, design: _Design, scatter: float) -> Floats:
    """Standard errors of the powers, of windows away from long rests: what the chip draws between two runs is not what
    it draws long after, so that rest before and after the work must not decide. No power is less known than its size.
    """
    ramp, _, lag, parts = best.where
    until = design.time - design.age // 2 - round(lag * design.rate)
    usual = float(np.mean(design.reading))
    scatter = max(scatter, LEAST_SCATTER * usual)
    window = design.seen.line.window_s
    worst = np.zeros(best.matrix.shape[1])
    for width in np.linspace(window.least, window.most, WIDTHS):  # the true one may be in step with the work
        ticks = max(1, round(float(width) * design.rate))
        there = ~design.occupancy.in_rests(until - ticks, until, 2 * ticks)
        matrix = design.at(ramp, float(width), lag, parts).matrix[there]
        worth = min(1.0, EFFECTIVE_WINDOWS / max(len(matrix), 1))
        known = worth * matrix.T @ matrix / scatter**2 + np.eye(matrix.shape[1]) / max(usual, 1e-9) ** 2
        worst = np.maximum(worst, np.sqrt(np.diag(np.linalg.inv(known))))
    return worst


class _Design:
    """The regression at any window, lag and ramp."""

    def __init__(self, seen: Windows, occupancy: Occupancy, rows: Ints, reading: Floats, ticks_per_s: int) -> None:
        self.seen, self.occupancy, self.reading, self.rate = seen, occupancy, reading, ticks_per_s
        self.time, self.age = seen.updates.time[rows], seen.updates.age[rows]
        self._ramps: dict[float, tuple[Callable[[Ints], Floats], Floats]] = {}

    def at(self, ramp_s: float, width_s: float, lag_s: float, parts: Sequence[float]) -> _Candidate:
        if ramp_s not in self._ramps:
            delays = _delays(ramp_s, self.rate)
            self._ramps[ramp_s] = self.occupancy.delayed(delays), _mean_powers(self.occupancy, delays, self.seen)
        before, means = self._ramps[ramp_s]
        ticks, back = max(1, round(width_s * self.rate)), round(lag_s * self.rate)
        moments = [self.time - np.rint(self.age * part).astype(np.int64) for part in parts]
        until = np.concatenate([moment - back for moment in moments])
        spent = before(until) - before(until - ticks)
        matrix = spent.reshape(-1, len(self.time), spent.shape[1]).mean(axis=0) / ticks
        power = np.linalg.lstsq(matrix, self.reading, rcond=1e-6)[0]
        residual = self.reading - matrix @ power
        where = (ramp_s, width_s, lag_s, tuple(parts))
        return _Candidate(matrix, means, float(residual @ residual), power, where)


def _grid(design: _Design) -> list[_Candidate]:
    """Candidates across the prior of window and lag and the ramps of chips, finer around the best of them."""
    seen, rate = design.seen, design.rate
    line, error = seen.line, seen.error / rate
    age = float(np.median(design.age)) / 2 / rate  # polls in step with updates are late by any part of it
    first, last = line.lag_s.least - error - age, line.lag_s.most + error + age
    count = int(np.clip(np.ceil((last - first) / (LAG_STEP * max(line.window_s.likely, 1e-6))), LAGS, MOST_LAGS))
    lags = np.linspace(first, last, count)
    widths = sorted({line.window_s.least, line.window_s.likely, line.window_s.most})
    modes = AGES if 2 * age > AGE * line.window_s.likely else AGES[:1]
    candidates = []
    for ramp in RAMPS_S:
        for parts in modes:
            candidates += _along_lags(design, ramp, line.window_s.likely, parts, lags)
    best = sorted(candidates, key=lambda candidate: candidate.misfit)[:REFINED_CANDIDATES]
    for ramp, _, lag, parts in {candidate.where for candidate in best}:
        candidates += [design.at(ramp, width, lag, parts) for width in widths if width != line.window_s.likely]
    ramp, width, lag, parts = min(candidates, key=lambda candidate: candidate.misfit).where
    for factor in (0.75, 0.87, 1.15, 1.3) if ramp else (0.001, 0.0017):
        candidates += _along_lags(design, ramp * factor if ramp else factor, width, parts, lags)
    return candidates


def _along_lags(design: _Design, ramp: float, width: float, parts: Sequence[float], lags: Floats) -> list[_Candidate]:
    """A window and a ramp at every lag of the grid, and around the best of them."""
    candidates = [design.at(ramp, width, float(lag), parts) for lag in lags]
    step = float(lags[1] - lags[0])
    for _ in range(ROUNDS):
        step /= 2
        lag = min(candidates, key=lambda candidate: candidate.misfit).where[2]
        nearby = [one for one in (lag - step, lag + step) if lags[0] <= one <= lags[-1]]
        candidates += [design.at(ramp, width, one, parts) for one in nearby]
    return candidates


def _delays(ramp_s: float, ticks_per_s: int) -> list[int]:
    """Delays whose mean stands for the response of a chip with this time constant."""
    if ramp_s <= 0:
        return [0]
    middle = (np.arange(QUANTILES) + 0.5) / QUANTILES
    return [round(float(delay)) for delay in -ramp_s * np.log1p(-middle) * ticks_per_s]


def _mean_powers(occupancy: Occupancy, delays: Sequence[int], seen: Windows) -> Floats:
    """What each column draws while it runs, of the powers of all: the chip is still at what ran before."""
    columns = occupancy.columns
    drawn = np.zeros((columns + 1, columns + 1))
    for delay in delays:
        before = occupancy.before(occupancy.end - delay) - occupancy.before(occupancy.start - delay)
        for column in range(columns):
            drawn[column] += before[occupancy.column == column].sum(axis=0) / len(delays)
    ends = seen.cell[[0, -1]]
    drawn[columns] = np.maximum(np.diff(occupancy.before(ends), axis=0)[0] - drawn[:columns].sum(axis=0), 0.0)
    whole = drawn.sum(axis=1, keepdims=True)
    means: Floats = np.divide(drawn, whole, out=np.eye(columns + 1), where=whole > 0)
    return means


def _bootstrap(grid: Sequence[_Candidate], best: _Candidate, reading: Floats) -> Floats:
    """Mean powers of columns, a row per replicate: blocks of windows resampled, candidates drawn as they fit."""
    draw = np.random.default_rng(0)  # the same readings give the same interval
    misfit = np.array([candidate.misfit for candidate in grid])
    ramps = np.array([candidate.where[0] for candidate in grid])
    weight = np.exp(-EFFECTIVE_WINDOWS / 2 * (misfit / max(best.misfit, 1e-12) - 1) - ramps / USUAL_RAMP_S)
    chosen = draw.choice(len(grid), REPLICATES, p=weight / weight.sum())
    count = len(reading)
    length = max(1, min(count // BLOCKS, round(count ** (1 / 3) * 1.5)))
    block = np.arange(count) // length
    blocks = int(block[-1]) + 1
    times = draw.multinomial(blocks, np.full(blocks, 1 / blocks), REPLICATES).astype(np.float64)
    replicates = np.empty((REPLICATES, best.matrix.shape[1]))
    for which in np.unique(chosen):
        matrix, mean = grid[which].matrix, grid[which].mean
        products = per_block(matrix[:, :, None] * matrix[:, None, :], block)
        right = per_block(matrix * reading[:, None], block)
        for replicate in np.flatnonzero(chosen == which):
            left = np.tensordot(times[replicate], products, 1)
            ridge = 1e-9 * np.trace(left) * np.eye(len(left))
            replicates[replicate] = mean @ np.linalg.solve(left + ridge, times[replicate] @ right)
    return replicates


def per_block(values: Floats, block: Ints) -> Floats:
    """Sums of rows with the same block; ``block`` ascends."""
    sums: Floats = np.add.reduceat(values, np.flatnonzero(np.diff(block, prepend=-1)), axis=0)
    return sums


def _refuse(fit: GaugePowers, spent: Floats, device: str) -> None:
    """Raise NoDataError if the powers would be a guess: above all, if all windows look alike."""
    used = np.maximum(fit.power, 0.0) * spent
    matters = np.append(used[:-1] > MIN_ENERGY_SHARE * used[:-1].sum(), False)
    if not matters.any():
        raise refusal(device, f"no frame would draw any power; {_LINEAR_HINT}")
    power = np.maximum(fit.power[matters], 1e-9)
    error = float((fit.error[matters] / power).max())
    if error > MAX_ERROR:
        text = (
            f"its windows see too much the same mixture to tell frames from each other and from rest (±{2 * error:.0%})"
        )
        raise refusal(device, f"{text}; {_LINEAR_HINT}")
    if fit.explained < MIN_EXPLAINED:
        raise refusal(device, f"what ran explains {max(fit.explained, 0):.0%} of its readings; {_LINEAR_HINT}")
    half = float(((fit.high - fit.low)[matters] / 2 / power).max())
    if half > MAX_HALF:
        raise refusal(device, f"window, lag and scatter leave a frame's power open to ±{half:.0%}; {_LINEAR_HINT}")
    if (fit.high[:-1][matters[:-1]] <= 0).any():
        raise refusal(device, f"a frame would have to draw negative power; {_LINEAR_HINT}")


def _laid_out(energy: Energy, occupancy: Occupancy, fit: GaugePowers, spent: Floats, ticks_per_s: int) -> SolvedCurves:
    """Spread the measured energy over time by the powers; the low and high curves by their intervals."""
    power = np.maximum(fit.power, 1e-9 * float(np.abs(fit.power).max()))
    scale = energy.measured * ticks_per_s / float(power @ spent)
    changed, _ = occupancy.knots(power)
    first, last = int(energy.times[0]), int(energy.times[-1])
    knots = np.unique(np.concatenate([[first, last], changed[(changed > first) & (changed < last)]]))
    at = np.searchsorted(changed, knots[:-1], side="right") - 1

    def curve(watts: Floats) -> Energy:
        drawn = occupancy.knots(watts)[1]
        along = np.where(at >= 0, drawn[np.maximum(at, 0)], watts[-1])
        steps = along * np.diff(knots) / ticks_per_s
        heights = np.concatenate([[0.0], np.cumsum(steps)])
        return replace(
            energy, times=knots, values=heights, pieces=Intervals(knots[:1], knots[-1:]), least=steps, most=steps,
            bounded=False, latency_ticks=0,
        )  # fmt: skip

    value = power * scale
    low, high = np.minimum(np.maximum(fit.low, 0.0), value), np.maximum(fit.high, value)
    return SolvedCurves(curve(value), curve(low), curve(high))
