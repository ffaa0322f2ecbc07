"""What a device used between two moments, at least and at most: the bounds of one span that lasts that long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .. import _core
from ..alignment.energy import Energy
from ..alignment.gauges import metered
from ..model import Clock, Curve, Fold, Keys, Recording, Signal, Spans
from ..sensors import Line
from .bill import Bill
from .ledger import MeteredDevice, Sensed
from .ranges import ENDS, Range, of_counter, of_pieces, share_of
from .shares import alone

MOST_PIECES = 16  # of a rest, that are looked at one by one


class UsedRange(NamedTuple):
    """Joules that can have been used, within 95 % and at all."""

    low_j: float
    high_j: float
    hard_low_j: float
    hard_high_j: float
    is_read: bool  # from readings; otherwise from the error of a gain or a model alone


def used_range(
    recording: Recording, device: MeteredDevice, inside: Energy, begin: int | None, end: int | None, bill: Bill | None
) -> UsedRange | None:
    """What can have been used of a device between two moments, with its curve between them; None if nothing limits it.

    With a bill it is the command's part, by the range of its share. ``run`` and ``carbon`` have it from here alike.
    """
    joules, error = inside.measured, inside.signal.gain_error
    found = None if inside.signal.estimated else window_range(recording, device, begin, end)
    if found is None and not error:
        return None
    ends = [joules * (1 - (error or 0.0)), joules * (1 + (error or 0.0))] * 2
    if found is not None:
        ends = [float(getattr(found, name)[0]) for name in ("low", "high", "hard_low", "hard_high")]
    _, low, high = (1.0, 1.0, 1.0) if bill is None else bill.shares(joules)
    return UsedRange(ends[0] * low, ends[1] * high, ends[2] * low, ends[3] * high, found is not None)


def window_range(recording: Recording, device: MeteredDevice, begin: int | None, end: int | None) -> Range | None:
    """What a device used between two moments, with gain; None where no meter measured it.

    The range of a rest is the node's minus its parts'.
    """
    sensed = device.sensed(recording)
    if device.parts:
        return rest_range(sensed, device.energy(recording).between(begin, end), recording.clock)
    return _range(*sensed[0], recording.clock, begin, end)


def rest_range(sensed: Sequence[Sensed], left: Energy, clock: Clock) -> Range | None:
    """What the rest of a node used, whose curve is ``left``: the node's range minus its parts', piece by piece."""
    pieces = list(zip(left.pieces.start.tolist(), left.pieces.end.tolist(), strict=True))
    if len(pieces) > MOST_PIECES:
        pieces = [(pieces[0][0], pieces[-1][1])]
    other = {"low": "high", "high": "low", "hard_low": "hard_high", "hard_high": "hard_low"}
    ends = dict.fromkeys(ENDS, np.zeros(1))
    for begin, end in pieces:
        whole, *parts = (_range(signal, line, clock, begin, end) for signal, line in sensed)
        known = [part for part in parts if part is not None]
        if whole is None or len(known) < len(parts):
            return None
        for name in ENDS:
            ends[name] = ends[name] + getattr(whole, name) - sum(getattr(part, other[name]) for part in known)
    value = left.measured
    wider = (np.minimum(ends[name], value) if "low" in name else np.maximum(ends[name], value) for name in ENDS)
    return Range(*(np.maximum(end, 0.0) for end in wider))


def _range(signal: Signal, line: Line | None, clock: Clock, begin: int | None, end: int | None) -> Range | None:
    curve, seen = metered(signal, clock, line)
    if not len(curve.times):
        return None
    covered = int(curve.times[0]), int(curve.times[-1])
    first, last = covered[0] if begin is None else begin, covered[1] if end is None else end
    value = np.array([curve.between(first, last).measured]) if last > first else np.zeros(1)
    if seen is not None:
        piece = (np.array([first]), np.array([last]), np.zeros(1, np.int64))
        return of_pieces(piece, 1, seen, share_of(None, seen), value, covered, clock.ticks_per_s)
    bounds = span_bounds(curve, begin, end)
    if bounds is None:
        return None
    low, high = (np.array([bound]) for bound in bounds)
    return of_counter(low, high, value, line, signal.gain_error)


def span_bounds(curve: Energy, begin: int | None, end: int | None) -> tuple[float, float] | None:
    """The bounds of a span [begin, end] that uses the device alone; None where no meter counted it."""
    if not curve.bounded or not len(curve.times):
        return None
    if begin is None and end is None:
        return curve.measured, curve.measured
    first = int(curve.times[0]) if begin is None else begin
    last = int(curve.times[-1]) if end is None else end
    return curve_bounds(alone(curve, [0], True).curves[0], first, last)


def curve_bounds(curve: Curve, start: int, end: int) -> tuple[float, float] | None:
    """The bounds of a span [start, end) of the user whose curve this is; None for a curve without bounds."""
    zero = np.zeros(1, np.int64)
    span = Spans(zero + start, zero + end, zero.astype(np.int32), zero - 1, zero.astype(np.int32), zero.astype(bool))
    fold = Fold.of(_core.fold(span, [curve], Keys(zero.astype(np.int32), 1)))
    if fold.total_low is None or fold.total_high is None:
        return None
    return float(fold.total_low[0, 0]), float(fold.total_high[0, 0])
