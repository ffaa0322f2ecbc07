"""Clock offset between spans and a power log, estimated from the data: power steps where frames begin and end.

``by_edges`` moves the log over the spans and asks at which shift what ran explains the readings best. A sensor's lag
moves its readings too, so it is taken from the sensor table: what is estimated is the rest, and the table's range of
the lag is part of the error. An estimate that is surer than the clocks moves the log; one that contradicts them widens
the error of the clock, and both are reported. Where near shifts explain little, far ones are tried, as long as the log
covers the spans. Without edges that tell, or where several shifts fit, nothing changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..model import Clock, Device, Problem, Recording, Signal, SpanTable
from ..sensors import Line, known_lines
from .gauges import Updates, updates
from .occupancy import Occupancy, innermost
from .response import lines

Floats = npt.NDArray[np.float64]

MOST_SPANS = 200_000  # in memory: to look at more would cost more than reading them
LEAST_UPDATES, LEAST_TELLING = 12, 2
LEAST_EXPLAINED = 0.6  # of the readings' variance
MAX_EXTRA_MISFIT = 8.0  # misfit, in scatters of one update, by which another shift may be worse
STEPS = 121
REACH_S = 0.5  # shifts that are tried beyond what the clocks allow
FAR_S, FAR_STEP_S = 10.0, 0.05  # shifts that are tried where those explain little or contradict the clocks
FAR_EXPLAINED = 0.8  # of the readings' variance, at least, by a far shift
WELL_EXPLAINED = 0.95  # a shift that explains so much is good enough not to look for a far one
MAX_UNEXPLAINED_RATIO = 0.5  # a shift is better than another if it leaves so much less unexplained
MOST_UPDATES = 4_000  # of a long log so many are used, evenly spread
RESPONSE_S = 0.02  # a chip follows its code no faster and no slower than within this, as far as is assumed
MIN_CONTRADICTION = 1.5  # how far beyond both errors an estimate has to lie


class ClockFit(NamedTuple):
    """How much later than the spans' clock a log's times are, and how far off that may be; seconds."""

    late_s: float
    error_s: float
    telling: int  # updates that would read otherwise at another shift


def by_edges(
    recording: Recording, signals: Sequence[Signal], devices: Sequence[Device], name: str
) -> tuple[list[Signal], list[Problem]]:
    """Correct the clock of a log's signals, or widen its error, from edges in their power."""
    known = lines(replace(recording, signals=tuple(signals), devices=tuple(devices)), known_lines())
    fits = (estimate(recording, signals[row], line) for row, line in known.items())
    estimates = [one for one in fits if one is not None]
    assumed = max((signal.clock_error_s or 0.0 for signal in signals), default=0.0)
    if not estimates:
        return list(signals), []
    best = min(estimates, key=lambda one: one.error_s)
    verb = "lags behind" if best.late_s >= 0 else "precedes"
    finding = f"{name}: power {verb} its spans by {abs(best.late_s) * 1e3:.0f} ± {best.error_s * 1e3:.0f} ms"
    how = f"(of {best.telling} readings at edges; the sensor's lag is taken from the table)"
    if abs(best.late_s) > assumed + MIN_CONTRADICTION * best.error_s:
        error = abs(best.late_s) + best.error_s
        text = (
            f"{finding}, more than its clock's ±{assumed * 1e3:g} ms {how}; ranges allow for it, "
            f"--offset={-best.late_s:.3g} moves the log"
        )
        return [replace(signal, clock_error_s=error) for signal in signals], [Problem("clock", text)]
    if best.error_s >= assumed:
        return list(signals), [
            Problem("joined", f"{finding} {how}, which agrees with its clock's ±{assumed * 1e3:g} ms")
        ]
    back = recording.clock.ticks(best.late_s)
    moved = [replace(signal, times=signal.times - back, clock_error_s=best.error_s) for signal in signals]
    return moved, [Problem("clock", f"{finding} {how}; it was moved by as much")]


def estimate(recording: Recording, signal: Signal, line: Line | None) -> ClockFit | None:
    """Estimate the shift at which the spans explain a gauge's readings best; None without clear edges."""
    source = recording.spans
    if line is None or line.kind in ("counter", "unknown") or not isinstance(source, SpanTable):
        return None
    if not 0 < sum(len(spans) for spans in source.columns.values()) <= MOST_SPANS or not len(signal):
        return None
    code = np.arange(len(recording.frames), dtype=np.int64)
    occupancy = Occupancy([innermost(source.spans(at), code) for at in source.locations()])
    return _estimate(occupancy, signal, recording.clock, line) if len(occupancy.start) else None


def _estimate(occupancy: Occupancy, signal: Signal, clock: Clock, line: Line) -> ClockFit | None:
    readings = updates(signal, clock, line)
    shifts = _Shifts(occupancy, readings, clock.ticks_per_s, line)
    assumed = signal.clock_error_s or 0.0
    fit = _around(shifts, line.lag_s.likely, REACH_S + 2 * assumed)
    error = _systematic_error(readings, clock, line)
    if fit.explained >= WELL_EXPLAINED and abs(fit.late_s) <= assumed + MIN_CONTRADICTION * (fit.error_s + error):
        return fit.clock(error)
    far = _far(shifts, fit)
    return None if far is None else far.clock(error)


class _Fit(NamedTuple):
    """The best of some shifts, less the lag: how well it explains the readings, and how far the like reach."""

    late_s: float
    error_s: float
    telling: int
    explained: float
    unique: bool

    def clock(self, error: float) -> ClockFit | None:
        if self.explained < LEAST_EXPLAINED or self.telling < LEAST_TELLING or not self.unique:
            return None
        return ClockFit(self.late_s, self.error_s + error, self.telling)


class _Shifts:
    """The readings, to be explained by what ran at any shift."""

    def __init__(self, occupancy: Occupancy, readings: Updates, rate: int, line: Line) -> None:
        self.occupancy, self.rate, self.lag_s = occupancy, rate, line.lag_s.likely
        stride = -(-len(readings.time) // MOST_UPDATES)
        self.moment = (readings.time - readings.age // 2)[::stride]
        self.reading = readings.value[::stride]
        self.width = max(1, round(max(line.window_s.likely, 1e-4) * rate))

    def near(self, shift: float) -> npt.NDArray[np.bool_]:
        """The readings of the time around the spans, if the log is late by so much."""
        at = self.moment - round(shift * self.rate)
        first, last = self.occupancy.start.min() - self.rate, self.occupancy.end.max() + self.rate
        there: npt.NDArray[np.bool_] = (at > first) & (at < last)
        return there

    def covers(self, shift: float) -> bool:
        """Whether there are readings from the first to the last span: else a missing end would fit any load."""
        late = round(shift * self.rate)
        first, last = self.occupancy.start.min(), self.occupancy.end.max()
        return bool(self.moment[0] - late <= first and self.moment[-1] - late >= last)

    def fit(self, shift: float, there: npt.NDArray[np.bool_]) -> tuple[float, Floats]:
        """The squared misfit at a shift, and the fitted readings."""
        until = self.moment[there] - round(shift * self.rate)
        matrix = (self.occupancy.before(until) - self.occupancy.before(until - self.width)) / self.width
        fitted = matrix @ np.linalg.lstsq(matrix, self.reading[there], rcond=1e-6)[0]
        return float(np.square(self.reading[there] - fitted).sum()), fitted

    def explained(self, shift: float) -> float:
        """The part of the variance of the readings around the spans that a shift explains."""
        there = self.near(shift)
        if not self.covers(shift):
            return 0.0
        whole = float(np.square(self.reading[there] - self.reading[there].mean()).sum()) if there.any() else 0.0
        if there.sum() < LEAST_UPDATES or whole <= 0:
            return 0.0
        return 1 - self.fit(shift, there)[0] / whole


def _around(shifts: _Shifts, centre: float, reach: float) -> _Fit:
    """The best shift around one."""
    there = shifts.near(centre)
    reading = shifts.reading[there]
    if len(reading) < LEAST_UPDATES or float(reading.std()) <= 0:
        return _Fit(0.0, reach, 0, 0.0, False)
    tried = centre + np.linspace(-reach, reach, STEPS)
    fits = [shifts.fit(float(shift), there) for shift in tried]
    misfit = np.array([one[0] for one in fits])
    best = int(np.argmin(misfit))
    whole = float(np.square(reading - reading.mean()).sum())
    other = np.abs(fits[max(best - 2, 0)][1] - fits[best][1])
    telling = int((other > 0.01 * max(float(np.ptp(fits[best][1])), 1e-12)).sum())
    allowed = tried[misfit <= misfit[best] * (1 + MAX_EXTRA_MISFIT / max(telling, 2)) + 1e-9 * whole]
    half = float(allowed.max() - allowed.min()) / 2 + float(tried[1] - tried[0])
    late = float(allowed.max() + allowed.min()) / 2 - shifts.lag_s
    inside = tried[0] < allowed.min() and allowed.max() < tried[-1]  # else shifts beyond may fit as well
    return _Fit(late, half, telling, 1 - misfit[best] / whole, bool(inside) and half <= reach / 2)


def _far(shifts: _Shifts, near: _Fit) -> _Fit | None:
    """The best shift of all, near or far; None where another one is nearly as good, as in work that repeats."""
    tried = shifts.lag_s + np.arange(-FAR_S, FAR_S + FAR_STEP_S, FAR_STEP_S)
    explained = np.array([shifts.explained(float(shift)) for shift in tried])
    best = float(tried[int(np.argmax(explained))])
    fit = near
    if abs(best - shifts.lag_s) > REACH_S and 1 - explained.max() < MAX_UNEXPLAINED_RATIO * (1 - near.explained):
        if explained.max() < FAR_EXPLAINED:
            return None
        fit = _around(shifts, best, REACH_S)
    others = explained[np.abs(tried - shifts.lag_s - fit.late_s) > REACH_S]
    alike = bool((MAX_UNEXPLAINED_RATIO * (1 - others) < 1 - fit.explained).any())
    return fit._replace(unique=fit.unique and not alike)


def _systematic_error(readings: Updates, clock: Clock, line: Line) -> float:
    """How far off any estimate may be: lag, centre of the window, polls and the chip's response are not known."""
    lag = line.lag_s
    centre = (line.window_s.most - line.window_s.least) / 4  # of a window whose length is not known
    age = float(np.median(readings.age)) / 2 / clock.ticks_per_s
    return (lag.most - lag.least) / 2 + centre + age + RESPONSE_S
