"""Readings of a gauge → what each update saw, and joules(t) with every reading at the time it speaks of.

A reading is gain × (mean power over a window) + offset, and stays until the next update. ``updates`` finds the updates
behind polled readings, ``windows`` lays the hull around the time each may have averaged (window, lag, polling and clock
are known only within limits), ``curve`` integrates the updates over the cells around their windows: shifted by the lag
and, for running means and low passes, deconvolved. A sensor of which nothing is known stays where it was read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..model import Clock, Intervals, Problem, Signal
from ..sensors.table import Line
from .energy import Energy, energy, tidy

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MIN_READINGS_PER_UPDATE = 2.0  # readings that come so many times as often as updates show when an update came
SIMILAR_RATIO = (0.7, 1.4)  # a period that is seen is believed if it is so near to what the line says
SPARSE_PERIODS = 2.0  # readings that are so many periods or windows apart gain nothing from being moved by less
LOW_PASS_MEMORY = 4.0  # time constants after which a low pass has forgotten 98 %
STEPS = 60  # of Landweber's iteration
_GAP_PERIODS = 6.0  # periods without a reading: the curve has a hole there


@dataclass(frozen=True)
class Updates:
    """When the sensor's value was renewed: ``time`` is when it was first seen, up to ``age`` ticks later."""

    time: Ints
    age: Ints
    value: Floats  # in the signal's unit, corrected where the line corrects
    period: float  # ticks
    poll: float  # ticks between readings


@dataclass(frozen=True)
class Windows:
    """The time each update of a gauge speaks of, ascending.

    The window lies somewhere in [start, end) and is at least ``sure`` ticks long; ``cell`` are the edges of the cells
    around the windows' likely centres (one more than there are windows), which together cover the curve.
    """

    start: Ints
    end: Ints
    mean: Floats  # reading, watts
    cell: Ints
    sure: float
    likely: float  # ticks of the likely window
    line: Line
    updates: Updates
    error: int = 0  # ticks: of the clock, either way

    def truth(self, hard: bool) -> tuple[Floats, Floats]:
        """The least and the most true watts behind each mean, as gain and offset allow, between floor and cap."""
        gains = pairs(self.line, hard)
        least = np.min([(self.mean - offset) / gain for gain, offset in gains], axis=0)
        most = np.max([(self.mean - offset) / gain for gain, offset in gains], axis=0)
        cap = np.inf if self.line.cap_w is None else self.line.cap_w
        return np.clip(least, self.line.floor_w, cap), np.clip(most, self.line.floor_w, cap)

    def __len__(self) -> int:
        return len(self.start)


class Gauge(NamedTuple):
    """A gauge's joules(t) and the windows behind it."""

    energy: Energy
    windows: Windows | None


def seen_period_s(signal: Signal, clock: Clock) -> float | None:
    """The time between updates where readings come much more often than updates do."""
    times, values = tidy(signal)
    if len(times) < 3:
        return None
    changes = np.diff(times[1:][np.diff(values) != 0])
    if len(changes) < 2:
        return None
    period = float(np.median(changes))
    return period / clock.ticks_per_s if period >= MIN_READINGS_PER_UPDATE * float(np.median(np.diff(times))) else None


def corrected(line: Line, values: Floats) -> Floats:
    """Readings as a user's line corrects them."""
    gain, offset = line.likely
    return (values - offset) / gain if line.corrects else values


def pairs(line: Line, hard: bool) -> tuple[tuple[float, float], ...]:
    """(gain, offset) from truth to reading, after correction."""
    chosen = line.hard_pairs if hard else line.pairs
    if not line.corrects:
        return (*chosen, (1.0, 0.0))
    gain, offset = line.likely
    return tuple((g / gain, (o - offset) / gain) for g, o in chosen)


def updates(signal: Signal, clock: Clock, line: Line) -> Updates:
    """The updates behind the readings."""
    times, raw = tidy(signal)
    values = corrected(line, raw.astype(np.float64) * float(signal.scale))
    poll = float(np.median(np.diff(times))) if len(times) > 1 else 1.0
    period = _period(seen_period_s(signal, clock), poll, line, clock)
    if period is None:
        age = np.full(len(times), round(line.period_s.most * clock.ticks_per_s), np.int64)
        return Updates(times, age, values, line.period_s.likely * clock.ticks_per_s, poll)
    at = np.concatenate([[0], np.flatnonzero(np.diff(raw) != 0) + 1])
    age = np.concatenate([[round(period)], np.diff(times)[at[1:] - 1]])
    # a value that stays was renewed to the same value meanwhile: as often as periods fit into its stay
    until = np.append(times[at[1:]], times[-1])
    stay = (until - times[at]).astype(np.float64)
    count = np.maximum(np.floor((stay - poll) / period + 0.75), 1).astype(np.int64)  # polls blur it
    count[-1] = max(1, int(stay[-1] // period) + 1)
    step = np.where(np.arange(len(at)) < len(at) - 1, stay / count, period)
    which = np.repeat(np.arange(len(at)), count)
    number = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    moved = times[at][which] + np.rint(number * step[which]).astype(np.int64)
    ages = np.where(number > 0, round(max(poll, period / 4)), age[which]).astype(np.int64)
    return Updates(moved, ages, values[at][which], period, poll)


def _period(seen_s: float | None, poll: float, line: Line, clock: Clock) -> float | None:
    """Ticks between updates as seen, or as the line says where equal values hide updates; None: polled too seldom."""
    known = line.period_s if line.kind != "unknown" else None
    if known is not None and known.likely > 0 and poll * MIN_READINGS_PER_UPDATE <= known.likely * clock.ticks_per_s:
        believed = seen_s is not None and SIMILAR_RATIO[0] * known.least <= seen_s <= SIMILAR_RATIO[1] * known.most
        return (seen_s if believed and seen_s is not None else known.likely) * clock.ticks_per_s
    return None if seen_s is None else seen_s * clock.ticks_per_s


def metered(signal: Signal, clock: Clock, line: Line | None, integrate: str = "trapezoid") -> Gauge:
    """Joules(t) of any signal as its line says: gauges moved to where they belong, a user's gain applied."""
    if line is None or signal.estimated:
        return Gauge(energy(signal, clock, integrate), None)
    if signal.kind == "gauge":
        return gauge(signal, clock, line, integrate)
    curve = energy(signal, clock, integrate)
    if line.corrects:
        gain = line.likely[0]
        curve = replace(curve, values=curve.values / gain, least=curve.least / gain, most=curve.most / gain)
    return Gauge(curve, None)


def gauge(signal: Signal, clock: Clock, line: Line, integrate: str = "trapezoid") -> Gauge:
    """Joules(t) of a gauge and the windows behind it; a gauge of another unit than watts has no windows."""
    plain = energy(signal, clock, integrate)
    if signal.unit != "W" or signal.estimated or len(plain.times) < 2:
        return Gauge(replace(plain, bounded=False), None)
    if line.corrects:
        plain = _corrected_curve(plain, signal, clock, line, integrate)
    readings = updates(signal, clock, line)
    seen = _windows(readings, signal, clock, line)
    if len(seen) < 2:
        return Gauge(replace(plain, bounded=False), None)
    sparse = readings.poll > SPARSE_PERIODS * max(line.period_s.most, line.window_s.most) * clock.ticks_per_s
    if line.known and integrate != "step" and not sparse:
        return Gauge(_curve(plain, readings, seen, clock), seen)
    cell = seen.cell.copy()
    cell[0], cell[-1] = min(cell[0], plain.times[0]), max(cell[-1], plain.times[-1])
    return Gauge(replace(plain, bounded=False), replace(seen, cell=cell))


def _corrected_curve(plain: Energy, signal: Signal, clock: Clock, line: Line, integrate: str) -> Energy:
    exact = replace(
        signal, values=corrected(line, np.asarray(signal.values, np.float64) * float(signal.scale)), scale=Fraction(1)
    )
    return replace(energy(exact, clock, integrate), signal=signal, problems=plain.problems)


def _windows(readings: Updates, signal: Signal, clock: Clock, line: Line) -> Windows:
    rate = clock.ticks_per_s
    error = round((signal.clock_error_s or 0.0) * rate)
    if line.kind == "low pass":
        tau, reach = line.window_s.likely * rate, LOW_PASS_MEMORY * line.window_s.most * rate
        likely = sure = max(line.window_s.least * rate, 0.0)
        back = line.lag_s.likely * rate + tau
    else:
        sure, likely, reach = (
            value * rate for value in (line.window_s.least, line.window_s.likely, line.window_s.most)
        )
        back = line.lag_s.likely * rate + likely / 2
    if line.kind == "unknown":
        spacing = float(np.median(np.diff(readings.time))) if len(readings.time) > 1 else 0.0
        reach, back, likely = max(reach, spacing), spacing / 2, min(spacing, reach)
    start = readings.time - readings.age - round(line.lag_s.most * rate + reach) - error
    end = readings.time - round(line.lag_s.least * rate) + error
    centre = np.maximum.accumulate(readings.time - readings.age // 2 - round(back))
    half = round(max(min(likely, readings.period or likely), 2.0) / 2)
    middle = (centre[1:] + centre[:-1]) // 2
    last = centre[-1] + half
    if line.kind != "unknown":  # the last window reaches to its end, half a window beyond its centre
        last = max(last, readings.time[-1] - readings.age[-1] // 2 - round(line.lag_s.likely * rate))
    cell = np.concatenate([[centre[0] - half], middle, [last]]).astype(np.int64)
    start, end, cell = (np.maximum.accumulate(column) for column in (start, end, cell))
    return Windows(start, end, readings.value, cell, sure, likely, line, readings, error)


def _curve(plain: Energy, readings: Updates, seen: Windows, clock: Clock) -> Energy:
    """Every update over its cell, deconvolved where the sensor smears; flat over holes in the readings."""
    power = _sharpened(readings, seen, clock)
    lengths = np.diff(seen.cell)
    gaps = lengths > _GAP_PERIODS * max(readings.period, readings.poll, float(np.median(lengths)))
    kept = lengths > 0
    rises = np.where(kept, power * lengths / clock.ticks_per_s, 0.0)
    times = np.concatenate([seen.cell[:1], seen.cell[1:][kept]])
    values = np.concatenate([[0.0], np.cumsum(rises[kept])])
    rises = np.diff(values)
    problems = plain.problems
    if gaps.any():
        text = f"{plain.signal.name}: {int(gaps.sum())} holes in its readings; what was used there is interpolated"
        problems = (*problems, Problem("gap", text))
    return replace(
        plain, times=times, values=values, pieces=Intervals(times[:1], times[-1:]), least=rises, most=rises,
        bounded=False, problems=problems,
    )  # fmt: skip


def _sharpened(readings: Updates, seen: Windows, clock: Clock) -> Floats:
    """Mean power of each cell: the reading itself, or what a running mean or a low pass made a reading of."""
    line, rate = seen.line, clock.ticks_per_s
    values = readings.value
    if len(values) < 4 or readings.period <= 0:
        return values
    if line.kind == "low pass" and line.window_s.likely > 0:
        return _low_pass_undone(values, np.diff(readings.time) / (line.window_s.likely * rate))
    wide = line.window_s.likely * rate / readings.period
    narrow = line.window_s.least >= 0.5 * line.window_s.likely  # the window has to be known to be undone
    if line.kind == "running mean" and wide >= 2 and narrow:
        return _running_mean_undone(values, round(wide))
    return values


def _low_pass_undone(values: Floats, steps: Floats) -> Floats:
    """v = reading, a = exp(−Δ/τ): the mean between two updates is (v₁ − a·v₀)/(1 − a)."""
    left = np.exp(-np.clip(steps, 1e-6, 50))
    new = (values[1:] - left * values[:-1]) / (1 - left)
    power = np.concatenate([values[:1], new])
    return _as_much(np.maximum(power, 0.0), values)


def _running_mean_undone(values: Floats, width: int) -> Floats:
    """Landweber's iteration x += Aᵀ(v − A·x), A the centred running mean: stable, and it keeps the sum."""
    power = values.copy()
    for _ in range(STEPS):
        power = np.maximum(power + _mean(values - _mean(power, width), width), 0.0)
    return _as_much(power, values)


def _mean(values: Floats, width: int) -> Floats:
    """The running mean around each value; the ends are continued."""
    before = width // 2
    padded = np.concatenate([np.full(before, values[0]), values, np.full(width - before, values[-1])])
    running = np.concatenate([[0.0], np.cumsum(padded)])
    mean: Floats = (running[width : width + len(values)] - running[: len(values)]) / width
    return mean


def _as_much(power: Floats, values: Floats) -> Floats:
    whole = float(power.sum())
    return power * (float(values.sum()) / whole) if whole > 0 else values
