"""Clock offset between spans and a power log, estimated from the data: power steps where frames begin and end.

``by_edges`` moves the log over the spans and asks at which shift what ran explains the readings best. A sensor's lag
moves its readings too, so it is taken from the sensor table: what is estimated is the rest, and the table's range of
the lag is part of the error. An estimate that is surer than the clocks moves the log; one that contradicts them widens
the error of the clock, and both are reported. Without edges that tell, nothing changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..model import Clock, Device, Problem, Recording, Signal, SpanTable
from ..sensors import Line, known_lines
from .gauges import updates
from .occupancy import Occupancy, innermost
from .response import lines

Floats = npt.NDArray[np.float64]

MOST_SPANS = 200_000  # in memory: to look at more would cost more than reading them
LEAST_UPDATES, LEAST_TELLING = 12, 4
LEAST_EXPLAINED = 0.6  # of the readings' variance
MAX_EXTRA_MISFIT = 8.0  # misfit, in scatters of one update, by which another shift may be worse
STEPS = 121
REACH_S = 0.5  # shifts that are tried beyond what the clocks allow
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
    finding = f"{name}: power follows its spans {best.late_s * 1e3:+.0f} ± {best.error_s * 1e3:.0f} ms late"
    how = f"(of {best.telling} readings at edges; the sensor's lag is taken from the table)"
    if abs(best.late_s) > assumed + MIN_CONTRADICTION * best.error_s:
        error = abs(best.late_s) + best.error_s
        text = (
            f"{finding}, more than its clock's ±{assumed * 1e3:g} ms {how}; ranges allow for it, --offset moves the log"
        )
        return [replace(signal, clock_error_s=error) for signal in signals], [Problem("clock", text)]
    if best.error_s >= assumed:
        return list(signals), []
    back = recording.clock.ticks(best.late_s)
    moved = [replace(signal, times=signal.times - back, clock_error_s=best.error_s) for signal in signals]
    return moved, [Problem("clock", f"{finding} {how}: it was moved by so much")]


def estimate(recording: Recording, signal: Signal, line: Line | None) -> ClockFit | None:
    """Estimate the shift at which the spans explain a gauge's readings best; None without clear edges."""
    source = recording.spans
    if line is None or line.kind in ("counter", "unknown") or not isinstance(source, SpanTable):
        return None
    if not 0 < sum(len(spans) for spans in source.columns.values()) <= MOST_SPANS:
        return None
    code = np.arange(len(recording.frames), dtype=np.int64)
    occupancy = Occupancy([innermost(source.spans(at), code) for at in source.locations()])
    return _estimate(occupancy, signal, recording.clock, line) if len(occupancy.start) else None


def _estimate(occupancy: Occupancy, signal: Signal, clock: Clock, line: Line) -> ClockFit | None:
    readings, rate = updates(signal, clock, line), clock.ticks_per_s
    moment, reading = readings.time - readings.age // 2, readings.value
    near = (moment > occupancy.start.min() - rate) & (moment < occupancy.end.max() + rate)
    moment, reading = moment[near], reading[near]
    if len(moment) < LEAST_UPDATES or float(reading.std()) <= 0:
        return None
    width = max(1, round(max(line.window_s.likely, 1e-4) * rate))

    def at(shift: float) -> tuple[float, Floats]:
        until = moment - round(shift * rate)
        matrix = (occupancy.before(until) - occupancy.before(until - width)) / width
        fitted = matrix @ np.linalg.lstsq(matrix, reading, rcond=1e-6)[0]
        return float(np.square(reading - fitted).sum()), fitted

    reach = REACH_S + 2 * (signal.clock_error_s or 0.0)
    shifts = line.lag_s.likely + np.linspace(-reach, reach, STEPS)
    fits = [at(float(shift)) for shift in shifts]
    misfit = np.array([one[0] for one in fits])
    best = int(np.argmin(misfit))
    whole = float(np.square(reading - reading.mean()).sum())
    if misfit[best] > (1 - LEAST_EXPLAINED) * whole:
        return None
    other = np.abs(fits[max(best - 2, 0)][1] - fits[best][1])
    telling = int((other > 0.01 * max(float(np.ptp(fits[best][1])), 1e-12)).sum())
    allowed = shifts[misfit <= misfit[best] * (1 + MAX_EXTRA_MISFIT / max(telling, 2)) + 1e-9 * whole]
    half = float(allowed.max() - allowed.min()) / 2 + float(shifts[1] - shifts[0])
    if telling < LEAST_TELLING or half > reach / 2:  # work that repeats fits at several shifts
        return None
    lag = line.lag_s
    centre = (line.window_s.most - line.window_s.least) / 4  # of a window whose length is not known
    error = half + (lag.most - lag.least) / 2 + centre + float(np.median(readings.age)) / 2 / rate + RESPONSE_S
    middle = float(allowed.max() + allowed.min()) / 2
    return ClockFit(middle - lag.likely, error, telling)
