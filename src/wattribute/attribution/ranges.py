"""Ranges of rows: from where a row ran and what a gauge's windows saw, or from a counter's bounds, to ranges in joules.

Two promises (docs/sensors.md has an example to check by hand):

* ``hard``: P(t) lies between the device's floor F and cap C, that is all that is assumed. A window of at least W
  ticks that read m, of which at most u ticks were not the row's, gives the row at least W·(m − F) − (C − F)·u above the
  floor, and W·(C − m) − (C − F)·u below the cap. Windows that do not overlap add up; unseen time is F … C.
* ``95 %``: also, unseen time of a run is like the seen time of that run. A run that holds whole windows has their
  mean, give or take their scatter; the time between its edge and its first whole window lies between the levels on both
  sides. A shorter run gets of each window what the others may have left, F … C each.

The gain widens each window's mean first (``Windows.truth``). A row of one of several users has its share of the device.
All of it is linear in pieces and windows: what a piece covers whole comes from running sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..alignment.gauges import Windows, pairs
from ..model import Curve
from ..sensors.table import Line

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Pieces = tuple[Ints, Ints, Ints]  # start, end, row; pieces of a row do not overlap

ENDS = ("low", "high", "hard_low", "hard_high")
RANGES = tuple(f"{which}_{end}" for which in ("self", "total") for end in ENDS)  # the columns of rows
STATICS = tuple(f"{which}_static{end}" for which in ("self", "total") for end in ("", "_low", "_high"))
_WIDER_OF = (np.minimum, np.maximum, np.minimum, np.maximum)  # per end of ENDS
_MAX_LOOKS = 8  # at each value, before ranges that overlap are looked up in a table
_MAX_PHASES = 8  # sets of windows that do not overlap, of which each row takes the best
_MAX_NEIGHBOUR_CORRELATION = (
    0.5  # correlation of neighbours that is believed: a slow trend is no scatter, a beat with the load is
)
_MIN_DISTINCT_READINGS = 8  # readings that have to differ before a step is seen in them
_TRANSIENT_SCATTERS = 2.0  # scatters by which the time at an edge may leave the levels on both sides


class Range(NamedTuple):
    """Per row: the 95 % range and the hard one, in joules; NaN where it is unknown, inf where no cap is known."""

    low: Floats
    high: Floats
    hard_low: Floats
    hard_high: Floats


@dataclass(frozen=True)
class Share:
    """What part of the device a user has: the least and the most in each window's hull, and its time weighted so."""

    least: Floats
    most: Floats
    clock: Curve | None = None  # S(t) of a device that draws 1 tick per tick; None: all of it

    def ticks(self, start: Ints, end: Ints) -> Floats:
        if self.clock is None:
            return (end - start).astype(np.float64)
        from .._core.reference import evaluate

        return evaluate(self.clock, end) - evaluate(self.clock, start)


def share_of(clock: Curve | None, seen: Windows) -> Share:
    """A user's share from its curve of a device that draws 1; None for a user that has the device alone."""
    if clock is None:
        return Share(np.ones(len(seen)), np.ones(len(seen)))
    slope = np.diff(clock.values) / np.maximum(np.diff(clock.times), 1)
    first = np.clip(np.searchsorted(clock.times, seen.start, side="right") - 1, 0, max(len(slope) - 1, 0))
    last = np.clip(np.searchsorted(clock.times, seen.end, side="left"), first + 1, len(slope))
    least = _extremes(np.minimum, np.append(np.where(slope > 1e-12, slope, np.inf), np.inf), first, last)
    most = _extremes(np.maximum, np.append(slope, 0.0), first, last)
    return Share(np.where(np.isfinite(least), np.minimum(least, most), 0.0), most, clock)


def of_pieces(
    pieces: Pieces, rows: int, seen: Windows, share: Share, value: Floats, covered: tuple[int, int], ticks_per_s: int
) -> Range:
    """The ranges of rows that ran in these pieces and were given ``value`` joules each while readings covered them."""
    start, end, row = pieces
    first, last = covered
    inside = (end > first) & (start < last) & (end > start)
    runs = _Runs(start[inside], end[inside], row[inside], rows, first, last)
    weighted = share.ticks(runs.held_start, runs.held_end)
    time = _sums(runs.row, weighted, rows)
    floor, cap = seen.line.floor_w, np.inf if seen.line.cap_w is None else seen.line.cap_w
    ends = []
    for low, high in (_soft(runs, seen, share, floor, cap), _hard(runs, time, seen, share, floor, cap)):
        low, high = np.maximum(low, floor * time), np.minimum(high, cap * time) if np.isfinite(cap) else high
        ends += [low / ticks_per_s, np.where(time > 0, high, 0.0) / ticks_per_s]  # infinite where no cap is known
    low, high, hard_low, hard_high = ends
    low, high = np.clip(low, hard_low, hard_high), np.clip(high, hard_low, hard_high)
    # the value itself may be impossible where it is interpolated; a range that leaves it out would only puzzle
    return Range(*(worst(end, value) for worst, end in zip(_WIDER_OF, (low, high, hard_low, hard_high), strict=True)))


def static_ends(values: Any) -> tuple[Any, Any, Any]:
    """(likely, low, high) of what was computed for each power of a floor, see ``Floor.powers_w``."""
    if not len(values):
        return np.nan, np.nan, np.nan
    if len(values) == 1:
        return values[0], values[0], values[0]
    likely, low, high = (np.nan * np.asarray(values[0]), *values) if len(values) == 2 else values
    return likely, low, high


def _sums(row: Ints, weights: Floats, rows: int) -> Floats:
    """Sums of weights per row."""
    return np.bincount(row, weights=weights, minlength=rows).astype(np.float64)


class _Runs:
    """Pieces of rows, and the part of each that the curve covers."""

    def __init__(self, start: Ints, end: Ints, row: Ints, rows: int, first: int, last: int) -> None:
        self.start, self.end, self.row, self.rows = start, end, row, rows
        self.held_start, self.held_end = np.maximum(start, first), np.minimum(end, last)


# --------------------------------------------------------------------------------------------------------- hard ranges


class _Observations(NamedTuple):
    """Windows that do not overlap: hull, and the joules (watt-ticks) surely above the floor and below the cap."""

    start: Ints
    end: Ints
    above: Floats
    below: Floats


def _hard(runs: _Runs, time: Floats, seen: Windows, share: Share, floor: float, cap: float) -> tuple[Floats, Floats]:
    above, below = np.zeros(runs.rows), np.zeros(runs.rows)
    for phase, stride in _phases(seen):
        up, down = _sure(runs, _observations(seen, share, floor, cap, phase, stride), cap - floor)
        above, below = np.maximum(above, up), np.maximum(below, down)
    return floor * time + above, cap * time - below if np.isfinite(cap) else np.full(runs.rows, np.inf)


def _phases(seen: Windows) -> list[tuple[int, int]]:
    """(first, stride) of sets of windows of which no two overlap."""
    if not seen.sure > 0 or not len(seen):
        return []
    rate = np.median(np.diff(seen.updates.time)) if len(seen) > 1 else 1.0
    if seen.line.kind == "boxcar" and seen.likely <= rate * 1.3:
        return [(0, 1)]
    if seen.line.kind == "low pass":
        stride = max(1, int(np.ceil(2 * seen.sure / rate)))
    else:
        reach = (seen.end - seen.start).max()
        stride = max(1, int(np.ceil(reach / max(rate, 1.0))))
    return [
        (phase, stride)
        for phase in np.unique(np.linspace(0, stride - 1, min(stride, _MAX_PHASES)).astype(int)).tolist()
    ]


def _observations(seen: Windows, share: Share, floor: float, cap: float, phase: int, stride: int) -> _Observations:
    quantum = _quantum(seen.mean)
    low, high = seen.truth(hard=True)
    low, high = low - quantum, high + quantum
    if seen.line.kind != "low pass":
        at = slice(phase, None, stride)
        above, below = (np.maximum(seen.sure * part[at], 0.0) * share.least[at] for part in (low - floor, cap - high))
        return _Observations(seen.start[at], seen.end[at], above, below)
    now = np.arange(phase + stride, len(seen), stride)
    then = now - stride
    updates, tau = seen.updates, seen.line.window_s
    apart = (updates.time[now] - updates.time[then]).astype(np.float64)
    slack = (updates.age[now] + updates.age[then]) / 2
    rate = seen.sure / tau.least  # ticks per second
    above, below = np.full(len(now), np.inf), np.full(len(now), np.inf)
    for constant in (tau.least * rate, tau.likely * rate, tau.most * rate):
        for shift in (-1, 0, 1):
            left = np.exp(-np.maximum(apart + shift * slack, 0.0) / constant)
            above = np.minimum(above, constant * (low[now] - left * high[then] - floor * (1 - left)))
            below = np.minimum(below, constant * (cap * (1 - left) - high[now] + left * low[then]))
    begin = updates.time[then] - updates.age[then] - round(seen.line.lag_s.most * rate) - seen.error
    least = share.least[now]
    return _Observations(begin, seen.end[now], np.maximum(above, 0) * least, np.maximum(below, 0) * least)


def _quantum(values: Floats) -> float:
    """The step in which readings are rounded, as far as they show it: their greatest common divisor, in milliwatts."""
    distinct = np.unique(np.rint(values * 1e3).astype(np.int64))
    return float(np.gcd.reduce(np.diff(distinct))) / 1e3 if len(distinct) >= _MIN_DISTINCT_READINGS else 0.0


def _sure(runs: _Runs, seen: _Observations, width: float) -> tuple[Floats, Floats]:
    """What observations give each row for sure: whole where a piece covers the hull, less where it covers a part."""
    start, end, row, rows = runs.start, runs.end, runs.row, runs.rows
    first, last, touched, after = _touching(start, end, seen.start, seen.end)
    sums = []
    where = (
        _expanded(touched, np.where(last > first, first, after)),
        _expanded(np.where(last > first, last, after), after),
    )
    piece = np.concatenate([where[0][0], where[1][0]])
    window = np.concatenate([where[0][1], where[1][1]])
    overlap = np.minimum(end[piece], seen.end[window]) - np.maximum(start[piece], seen.start[window])
    which, window, overlap = _grouped(row[piece], window, overlap.astype(np.float64), len(seen.start))
    missing = (seen.end[window] - seen.start[window]) - overlap
    for each in (seen.above, seen.below):
        running = np.concatenate([[0.0], np.cumsum(np.where(np.isfinite(each), each, 0.0))])
        whole = _sums(row, np.where(last > first, running[last] - running[first], 0.0), rows)
        if np.isfinite(width) and len(window):
            part = np.maximum(each[window] - width * missing, 0.0)
            whole = whole + _sums(which, part, rows)
        sums.append(whole)
    return sums[0], sums[1]


def _touching(start: Ints, end: Ints, begins: Ints, ends: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Per piece: windows [first, last) that it covers, and [touched, after) that it touches."""
    first = np.searchsorted(begins, start, side="left")
    last = np.maximum(np.searchsorted(ends, end, side="right"), first)
    touched = np.searchsorted(ends, start, side="right")
    after = np.maximum(np.searchsorted(begins, end, side="left"), touched)
    return first, last, touched, after


def _expanded(begin: Ints, end: Ints) -> tuple[Ints, Ints]:
    """(piece, number) for every number in [begin, end) of every piece."""
    count = np.maximum(end - begin, 0)
    piece = np.repeat(np.arange(len(begin)), count)
    offset = np.arange(len(piece)) - np.repeat(np.cumsum(count) - count, count)
    return piece, begin[piece] + offset


def _grouped(row: Ints, window: Ints, amount: Floats, windows: int) -> tuple[Ints, Ints, Floats]:
    """Sums per (row, window)."""
    keys, which = np.unique(row * np.int64(max(windows, 1)) + window, return_inverse=True)
    return keys // max(windows, 1), keys % max(windows, 1), _sums(which, amount, len(keys))


# --------------------------------------------------------------------------------------------------------- 95 % ranges


def _soft(runs: _Runs, seen: Windows, share: Share, floor: float, cap: float) -> tuple[Floats, Floats]:
    first = np.searchsorted(seen.start, runs.start, side="left")
    last = np.searchsorted(seen.end, runs.end, side="right")
    whole = last > first
    low, high, square = _resolved(runs, whole, first[whole], last[whole], seen, share, floor, cap)
    if not whole.all():
        less, more, scatter = _unresolved(runs, ~whole, seen, share, floor, cap)
        low, high, square = low + less, high + more, square + scatter
    half = np.sqrt(square)
    return low - half, high + half


def _resolved(
    runs: _Runs, which: Any, first: Ints, last: Ints, seen: Windows, share: Share, floor: float, cap: float
) -> tuple[Floats, Floats, Floats]:
    """Runs that hold whole windows: their mean, the levels at their edges, and the square of half their scatter."""
    rows, row = runs.rows, runs.row[which]
    if not len(row):
        return np.zeros(rows), np.zeros(rows), np.zeros(rows)
    held_start, held_end, cell = runs.held_start[which], runs.held_end[which], seen.cell
    begin = np.clip(seen.start[first], held_start, held_end)
    stop = np.clip(seen.end[last - 1], begin, held_end)
    scatter, effective, count = _scatter(seen.mean, first, last)
    length = (stop - begin).astype(np.float64)
    unseen = np.clip(1 - count * seen.sure / np.maximum(length, 1.0), 0.02, 1.0)
    half = _standard_errors(effective) * scatter / np.sqrt(effective) * np.sqrt(unseen) * length * share.most[first]
    before = np.maximum(np.searchsorted(seen.end, runs.start[which], side="right") - 1, 0)
    behind = np.minimum(np.searchsorted(seen.start, runs.end[which], side="left"), len(seen) - 1)
    edges = (
        (np.minimum(before, first), first, share.ticks(held_start, begin)),
        (last - 1, np.maximum(behind, last - 1), share.ticks(stop, held_end)),
    )
    ends = []
    for mean, part, worst, sign in zip(
        seen.truth(hard=False), (share.least, share.most), (np.minimum, np.maximum), (-1, 1), strict=True
    ):
        running = np.concatenate([[0.0], np.cumsum(mean * np.diff(cell) * part)])
        joules = running[last] - running[first]
        joules = joules + (cell[first] - begin) * mean[first] * part[first]
        joules = joules + (stop - cell[last]) * mean[last - 1] * part[last - 1]
        padded = np.append(mean, mean[-1])
        for since, until, time in edges:
            level = _extremes(worst, padded, since, until + 1)
            joules = joules + np.clip(level + sign * _TRANSIENT_SCATTERS * scatter, floor, cap) * time
        ends.append(_sums(row, joules, rows))
    return ends[0], ends[1], _sums(row, half * half, rows)


def _scatter(mean: Floats, first: Ints, last: Ints) -> tuple[Floats, Floats, Ints]:
    """Standard deviation of the windows [first, last), how many independent ones they are worth, and their number."""
    count = last - first
    centred = mean - mean.mean()
    one, two = (np.concatenate([[0.0], np.cumsum(column)]) for column in (centred, centred * centred))
    next_ = np.concatenate([[0.0], np.cumsum(centred[:-1] * centred[1:])])
    average = (one[last] - one[first]) / count
    variance = np.maximum((two[last] - two[first]) / count - average**2, 0.0) * count / np.maximum(count - 1, 1)
    neighbours = (next_[np.maximum(last - 1, first)] - next_[first]) / np.maximum(count - 1, 1) - average**2
    alike = np.clip(
        np.divide(neighbours, variance, out=np.zeros(len(count)), where=variance > 0), 0.0, _MAX_NEIGHBOUR_CORRELATION
    )
    effective = np.maximum(count * (1 - alike) / (1 + alike), 1.0)
    steps = np.diff(mean)
    usual = float(np.sqrt(np.mean(steps**2) / 2)) if len(steps) else 0.0
    scatter = np.sqrt(variance)
    return np.where(count < 3, np.maximum(scatter, usual), scatter), effective, count


def _standard_errors(count: Floats) -> Floats:
    """How many standard errors a 95 % range is wide to each side: 1.96, and more where few windows show the scatter.

    Below three windows the scatter is that of the whole curve, so less is needed than Student's t would give.
    """
    return 1.96 * (1 + 1.2 / np.maximum(count - 0.8, 0.2))


def _unresolved(
    runs: _Runs, short: Any, seen: Windows, share: Share, floor: float, cap: float
) -> tuple[Floats, Floats, Floats]:
    """Runs shorter than a window: what the others in the window may have left of it, each between floor and cap."""
    start, end, row, rows = runs.held_start[short], runs.held_end[short], runs.row[short], runs.rows
    begins, ends, size = seen.cell[:-1], seen.cell[1:], np.int64(len(seen))
    after = np.minimum(np.searchsorted(begins, end, side="left"), len(begins))
    piece, window = _expanded(np.searchsorted(ends, start, side="right"), after)
    left, right = np.maximum(start[piece], begins[window]), np.minimum(end[piece], ends[window])
    which, window, time = _grouped(row[piece], window, share.ticks(left, np.maximum(left, right)), int(size))
    keys = which * size + window
    candidates = _candidates(seen)
    least, most = (
        np.full(len(which), np.inf if candidates else floor),
        np.full(len(which), -np.inf if candidates else cap),
    )
    low, high = seen.truth(hard=False)
    for back, width in candidates:
        until = seen.updates.time - seen.updates.age // 2 - back
        held = _held(start, end, row, until - width, until, keys, size)
        other = np.maximum(width - held, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            lower = np.where(held > 0, (low[window] * width - cap * other) / held, floor)
            upper = np.where(held > 0, (high[window] * width - floor * other) / held, cap)
        least = np.minimum(least, np.clip(np.where(np.isnan(lower), floor, lower), floor, cap))
        most = np.maximum(most, np.clip(upper, floor, cap))
    weight = np.maximum(_sums(which, time, rows), 1e-300)
    average = _sums(which, seen.mean[window] * time, rows) / weight
    variance = _sums(which, (seen.mean[window] - average[which]) ** 2 * time, rows) / weight
    unseen = np.clip(1 - seen.sure / max(float(np.median(np.diff(seen.cell))), 1.0), 0.02, 1.0)
    squares = _sums(which, time * time, rows)
    sums = (_sums(which, end_ * time, rows) for end_ in (least, most))
    low_, high_ = sums
    return low_, high_, 4.0 * unseen * variance * squares


def _held(start: Ints, end: Ints, row: Ints, since: Ints, until: Ints, keys: Ints, size: np.int64) -> Floats:
    """How long each (row, window) of ``keys`` ran within the windows [since, until)."""
    order = np.lexsort((start, row))
    begins, ends, of = start[order], end[order], row[order]
    before = np.concatenate([[0], np.cumsum(ends - begins)])
    mine, window = keys // size, keys % size
    first = np.searchsorted(of, mine)

    def ran(until: Ints) -> Ints:
        """How long each row ran before a moment: windows that overlap do not cost a look at every piece in them."""
        moments, at = np.unique(np.concatenate([begins, until]), return_inverse=True)
        sorted_at = of * np.int64(len(moments)) + at[: len(begins)]
        last = np.searchsorted(sorted_at, mine * np.int64(len(moments)) + at[len(begins) :])
        rest = np.where(last > first, ends[last - 1] - until, 0)
        ticks: Ints = before[last] - before[first] - np.maximum(rest, 0)
        return ticks

    return (ran(until[window]) - ran(since[window])).astype(np.float64)


def _extremes(ufunc: np.ufunc, values: Floats, first: Ints, last: Ints) -> Floats:
    """The least or the greatest of values[first:last] for each pair; values[first] where that is empty."""
    length = np.maximum(last - first, 1)
    if int(length.sum()) <= _MAX_LOOKS * len(values):
        extremes: Floats = ufunc.reduceat(values, np.stack([first, last], axis=1).ravel())[::2]
        return extremes
    result, done = np.empty(len(first)), np.zeros(len(first), np.bool_)
    power = 1  # ranges that overlap: from the extremes of stretches of 1, 2, 4 … values
    while not done.all():
        now = ~done & (length < 2 * power)
        result[now] = ufunc(values[first[now]], values[first[now] + length[now] - power])
        done |= now
        values = ufunc(values[: max(len(values) - power, 1)], values[min(power, len(values) - 1) :])
        power *= 2
    return result


def _candidates(seen: Windows) -> list[tuple[int, int]]:
    """(lag, window) in ticks that bracket where a window may lie; none where its weights are not even."""
    line = seen.line
    if line.kind not in ("boxcar", "running mean") or not line.window_s.likely:
        return []
    rate = seen.likely / line.window_s.likely
    age = float(np.median(seen.updates.age)) / 2
    early = round(line.lag_s.least * rate - seen.error - age)
    late = round(line.lag_s.most * rate + seen.error + age)
    usual = round(line.lag_s.likely * rate)
    widths = sorted(
        {max(1, round(width * rate)) for width in (line.window_s.least, line.window_s.likely, line.window_s.most)}
    )
    return [(back, width) for back in (early, usual, late) for width in widths]


# ------------------------------------------------------------------------------------------------------------ counters


def of_counter(low: Floats, high: Floats, value: Floats, line: Line | None, gain_error: float | None = None) -> Range:
    """A counter's bounds, which hold for its readings, with its gain: of its line, else as its meter states it."""
    if line is None:
        error = gain_error or 0.0
        low, high = low * (1 - error), high * (1 + error)
        return Range(low, high, low, high)
    soft, hard = ([gain for gain, _ in pairs(line, which)] for which in (False, True))
    low_, high_ = low / max(soft), high / min(soft)
    return Range(np.fmin(low_, value), np.maximum(high_, value), low / max(hard), high / min(hard))


def columns(ranges: Mapping[str, Sequence[Range]]) -> dict[str, Any]:
    """Columns named as RANGES, a row per device, of the ranges of ``self`` and ``total``."""
    return {
        f"{which}_{end}": np.stack([getattr(one, end) for one in each])
        if len(each) > 1
        else getattr(each[0], end)[np.newaxis]
        for which, each in ranges.items()
        for end in ENDS
    }
