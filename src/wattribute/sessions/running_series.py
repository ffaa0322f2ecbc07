"""Readings → points while they come in: what alignment does with a whole signal, done batch by batch.

A rule is fed readings and gives the points that are certain by then: ``feed(times_ns, values, last)``. However readings
are cut into batches, the points are the same, and they are those of ``alignment.energy``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..engines.middle import tidy, unwrapped
from ..model import Signal
from ..outputs.timeseries.series import Floats, Ints, last_of_each, slopes

Points = tuple[Ints, Floats]
_MOST_PENDING = 100_000


class Rule(Protocol):
    def feed(self, times_ns: Ints, values: npt.NDArray[Any], last: bool) -> Points: ...


def _none() -> Points:
    return np.empty(0, np.int64), np.empty(0, np.float64)


class Value:
    """A gauge as it is."""

    def __init__(self, signal: Signal, factor: float) -> None:
        self._signal, self._factor, self._at = signal, factor, -(2**63)

    def feed(self, times_ns: Ints, values: npt.NDArray[Any], last: bool) -> Points:
        times, raw = _after(self._signal, times_ns, values, self._at)
        self._at = int(times[-1]) if len(times) else self._at
        return times, raw.astype(np.float64) * self._factor


def _after(signal: Signal, times_ns: Ints, values: npt.NDArray[Any], at: int) -> tuple[Ints, npt.NDArray[Any]]:
    """A batch in the order of time, without what is no number or lies before what was sent already."""
    times, raw = tidy(replace(signal, times=times_ns, values=values))
    new = times > at
    return times[new], raw[new]


class Integral:
    """The energy of a power gauge: trapezoids."""

    def __init__(self, signal: Signal) -> None:
        self._signal, self._raw = signal, 0.0
        self._at, self._value = -(2**63), 0.0

    def feed(self, times_ns: Ints, values: npt.NDArray[Any], last: bool) -> Points:
        times, raw = _after(self._signal, times_ns, values, self._at)
        if not len(times):
            return _none()
        heights = raw.astype(np.float64)
        steps = (heights[:-1] + heights[1:]) / 2 * (np.diff(times) / 1e9)
        first = 0.0 if self._at < 0 else (self._value + heights[0]) / 2 * ((int(times[0]) - self._at) / 1e9)
        totals = np.cumsum(np.concatenate([[self._raw + first], steps]))
        self._at, self._value, self._raw = int(times[-1]), float(heights[-1]), float(totals[-1])
        return times, _scaled(self._signal, totals)


class Total:
    """A counter since its first reading; of one that repeats its value (stale) only the changes, since the first."""

    def __init__(self, signal: Signal) -> None:
        self._signal, self._at = signal, -(2**63)
        self._times: Ints = np.empty(0, np.int64)  # the last reading sent, and one kept back after it
        self._values: npt.NDArray[Any] = signal.values[:0]
        self._raw: Any = 0
        self._piece = 0
        self._changes = _Changes(_latency_ns(signal)) if signal.stale else None

    def feed(self, times_ns: Ints, values: npt.NDArray[Any], last: bool) -> Points:
        new_times, new_values = _after(self._signal, times_ns, values, self._at)
        fresh = not len(self._times)
        times = np.concatenate([self._times, new_times])
        raw = np.concatenate([self._values, new_values])
        self._at = int(times[-1]) if len(times) else self._at
        kept, totals, pieces = self._certain(times, raw, fresh, last) if len(times) else (times, raw, times)
        if self._changes is not None:
            kept, totals = self._changes.feed(kept, totals, pieces, last)
        return kept, _scaled(self._signal, totals)

    def _certain(self, times: Ints, raw: npt.NDArray[Any], fresh: bool, last: bool) -> tuple[Ints, Any, Ints]:
        """(times, raw totals, number of the piece) of what is new and certain."""
        held = 1 if len(raw) > 1 and raw[-1] < raw[-2] and not last else 0  # wrapped, reset or a fault: the next tells
        whole = len(raw) - held
        kept, steps, cuts = unwrapped(self._signal, times[:whole], raw[:whole])
        totals = self._raw + np.concatenate([np.zeros(1, steps.dtype), np.cumsum(steps)])
        pieces = self._piece + np.concatenate([[0], np.cumsum(cuts)])
        self._raw, self._piece = totals[-1], int(pieces[-1])
        self._times, self._values = times[whole - 1 :], raw[whole - 1 :]
        begin = 0 if fresh else 1
        return kept[begin:], totals[begin:], pieces[begin:]


class _Changes:
    """Of a counter that repeats its value: its changes, and 0 at the first; the rise across a cut is not known."""

    def __init__(self, latency_ns: int) -> None:
        self._latency_ns = latency_ns
        self._seen = 0  # when the last reading was made
        self._before: Any = None  # its raw total
        self._last: tuple[Any, int] | None = None  # raw total and piece of the last change
        self._sum: Any = 0
        self._pending: list[tuple[Ints, Any, Ints]] | None = []  # until there are two changes, it may not be stale

    def feed(self, times: Ints, totals: Any, pieces: Ints, last: bool) -> Points:
        if self._pending is None:
            return self._changes(times, totals, pieces)
        self._pending.append((times, totals, pieces))
        times, totals, pieces = (np.concatenate(column) for column in zip(*self._pending, strict=True))
        self._pending = [(times, totals, pieces)]
        changes = int((np.diff(totals) != 0).sum())
        if changes < 2 and not last and len(times) < _MOST_PENDING:
            return _none()
        self._pending = None
        if changes < 2 and last:
            return times, totals.astype(np.float64)
        return self._changes(times, totals, pieces)

    def _changes(self, times: Ints, totals: Any, pieces: Ints) -> Points:
        if not len(times):
            return _none()
        fresh = self._before is None
        before = np.concatenate([totals[:1] if fresh else [self._before], totals[:-1]])
        ages = np.diff(np.concatenate([times[:1] if fresh else [self._seen], times]))
        kept = np.flatnonzero(totals != before)
        self._before, self._seen = totals[-1], int(times[-1])
        if not len(kept):
            return _none()
        raw, piece = totals[kept], pieces[kept]
        first = self._last if self._last is not None else (raw[0], int(piece[0]))
        rises = np.diff(np.concatenate([[first[0]], raw]))
        rises[np.diff(np.concatenate([[first[1]], piece])) > 0] = 0
        running = self._sum + np.cumsum(rises)
        self._last, self._sum = (raw[-1], int(piece[-1])), running[-1]
        return times[kept] - np.minimum(ages[kept], self._latency_ns) // 2, running


class Slope:
    """The power that a counter means, of tenths of a second."""

    def __init__(self, total: Rule) -> None:
        self._total = total
        self._times, self._totals = _none()  # the end of the last tenth sent, and what came after it

    def feed(self, times_ns: Ints, values: npt.NDArray[Any], last: bool) -> Points:
        points = self._total.feed(times_ns, values, last)
        times, totals = np.concatenate([self._times, points[0]]), np.concatenate([self._totals, points[1]])
        ends, heights = last_of_each(times, totals)
        if not last:  # the last tenth may not be over
            ends, heights = ends[:-1], heights[:-1]
        keep = times >= ends[-1] if len(ends) else np.ones(len(times), bool)
        self._times, self._totals = times[keep], totals[keep]
        return slopes(ends, heights) if len(ends) > 1 else _none()


def _latency_ns(signal: Signal) -> int:
    """How long before it was seen a change can have been made, as ``alignment.energy`` dates it."""
    return round(1e9 * signal.latency_s) if signal.polled and signal.latency_s else 0


def _scaled(signal: Signal, raw: Any) -> Floats:
    scaled: Floats = np.asarray(raw, np.float64) * float(signal.scale.numerator) / float(signal.scale.denominator)
    return scaled
