"""Counts: what a program did n of (tokens, requests, steps), the denominators of ``--per``.

A count is a signal of kind ``delta`` without a device: its readings say when how many were done, on a location or
somewhere in the run. A count belongs to the spans of its location that are open at its time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..errors import NoDataError, OptionError
from .recording import Recording, Signal
from .spans import Curve, Intervals

UNIT = "#"  # of signals that count
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def units(recording: Recording) -> list[str]:
    """The units of work that were counted."""
    return list(dict.fromkeys(signal.name for signal in recording.signals if is_count(signal)))


def is_count(signal: Signal) -> bool:
    return signal.kind == "delta" and signal.unit == UNIT and not signal.device


def signals(recording: Recording, unit: str) -> list[Signal]:
    """The signals that count a unit: deltas, or any counter of that name that is not energy."""
    same = [s for s in recording.signals if s.name == unit and s.kind in ("delta", "counter") and s.unit != "J"]
    known = units(recording) or [s.name for s in recording.signals if s.kind == "counter" and s.unit == UNIT]
    if not same and not known:
        raise NoDataError(
            f"nothing was counted here, so there is no {unit!r} to divide by; count in the program with "
            "wattribute.count, from a file with run --count, or name a metric with --metric-kind RE=delta:#"
        )
    if not same:
        raise OptionError.unknown("unit of work", unit, known)
    return same


def by_location(recording: Recording, unit: str) -> dict[int, list[Signal]]:
    """The signals that count a unit, by their location."""
    by_row: dict[int, list[Signal]] = {}
    for signal in signals(recording, unit):
        by_row.setdefault(signal.location, []).append(signal)
    return by_row


def with_counts(recording: Recording, counted: Mapping[str, float]) -> Recording:
    """The recording with what is known to have been done by its end; of a command without regions it is its own."""
    _, end = recording.life
    at = np.array([max(0, (recording.clock.length_ticks if end is None else end) - 1)], np.int64)
    whole = tuple(recording.spans.locations())
    location = whole[0] if len(whole) == 1 and recording.frames.paradigm == ("command",) else -1
    more = [Signal(unit, "delta", UNIT, at, np.array([float(n)]), location=location) for unit, n in counted.items()]
    return replace(recording, signals=(*recording.signals, *more)) if more else recording


def amounts(signal: Signal) -> tuple[Ints, Floats]:
    """When how many were done: the readings of a delta, the rises of a counter; what is no number is left out."""
    times, values = np.asarray(signal.times, np.int64), np.asarray(signal.values, np.float64) * float(signal.scale)
    if signal.kind == "counter":
        order = np.argsort(times, kind="stable")
        times, values = times[order][1:], np.maximum(np.diff(values[order]), 0.0)
    good = np.isfinite(values)
    return times[good], values[good]


def total(recording: Recording, unit: str, begin: int | None = None, end: int | None = None) -> float:
    """How many were done in the recording, or between two moments of it."""
    whole = 0.0
    for signal in signals(recording, unit):
        times, values = amounts(signal)
        inside = np.ones(len(times), bool)
        inside &= True if begin is None else times >= begin
        inside &= True if end is None else times < end
        whole += float(values[inside].sum())
    return whole


def steps(counted: Sequence[Signal]) -> Curve:
    """How many were done up to each moment; what was done at t is done within the tick that begins there.

    The rise over a span [start, end) is then exactly what was counted in it.
    """
    parts = [amounts(signal) for signal in counted]
    times = np.concatenate([np.empty(0, np.int64), *(part[0] for part in parts)])
    at, group = np.unique(times, return_inverse=True)
    rises = np.bincount(group, np.concatenate([np.empty(0), *(part[1] for part in parts)]), len(at))
    knots = np.union1d(at, at + 1) if len(at) else np.arange(2)
    values = np.concatenate([[0.0], np.cumsum(rises)])[np.searchsorted(at, knots, side="left")]
    return Curve(knots, values, Intervals(knots[:1], knots[-1:]))
