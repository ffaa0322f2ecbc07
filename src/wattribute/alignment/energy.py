"""Readings → joules(t): one signal becomes a rising, piecewise linear curve that starts at 0.

Counters are unwrapped, mended or cut, and collapsed to their changes when stale; gauges are integrated; deltas are
summed. The same rules serve any metric: a counter of bytes gives bytes, a gauge of hertz gives hertz-seconds. What was
done to the readings is told as problems. Attribution takes it from here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import OptionError
from ..model import Clock, Intervals, Problem, Signal

INTEGRATIONS = ("trapezoid", "step")
_GUESSED_WIDTHS = (32, 31, 48, 24, 16)  # bits; tried in this order when a counter's width is unknown
_STALE_RATIO = 3
_TURN = 0.9
_MOST_WINDOWS = 1_000_000  # of an integrated gauge

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Energy:
    """E(t) of one signal: ``values[0]`` is 0, flat across the gaps between pieces.

    ``least`` and ``most`` say for each interval between two knots how much can truly have been used in it; they differ
    only where an interval was cut in two by ``between``. ``bounded``: a meter counted it, so that bounds hold.
    """

    signal: Signal
    unit: str
    times: Ints
    values: Floats
    pieces: Intervals
    least: Floats
    most: Floats
    bounded: bool
    latency_ticks: int = 0
    clock_error_ticks: int = 0
    base: float = 0.0  # the first reading, in ``unit``
    problems: tuple[Problem, ...] = ()

    @cached_property
    def windows(self) -> tuple[Ints, Floats, Floats]:
        """(edges, least, most): what window i used, it used in (edges[i] − reach_ticks, edges[i + 1]].

        A counter's windows lie between its readings. An integrated gauge is taken at its word between readings too, so
        that its windows are as short as its clock is sure, and its bounds say what that clock leaves open.
        """
        if self.signal.kind != "gauge" or not self.clock_error_ticks or len(self.times) < 2:
            return self.times + self.clock_error_ticks, self.least, self.most
        first, last = int(self.times[0]), int(self.times[-1])
        step = max(self.clock_error_ticks, (last - first) // _MOST_WINDOWS)
        fine = np.union1d(self.times, np.arange(first, last, step))
        rises = np.diff(self.at(fine))
        return fine + self.clock_error_ticks, rises, rises

    @property
    def reach_ticks(self) -> int:
        """How far before its window a reading may speak of: the sensor's latency, the clock's error on both sides."""
        latency = 0 if self.signal.kind == "gauge" else self.latency_ticks
        return latency + 2 * self.clock_error_ticks

    @property
    def measured(self) -> float:
        return float(self.values[-1]) if len(self.values) else 0.0

    def at(self, ticks: Any) -> Floats:
        """E at any moment; nothing is extrapolated."""
        from .._core.reference import evaluate

        return evaluate(self, np.asarray(ticks, np.int64))

    def between(self, begin: int | None, end: int | None) -> Energy:
        """The part of the curve inside [begin, end]; what an interval cut in two truly used there is not known."""
        if not len(self.times) or (begin is None and end is None):
            return self
        first = int(self.times[0]) if begin is None else max(begin, int(self.times[0]))
        last = int(self.times[-1]) if end is None else min(end, int(self.times[-1]))
        if first >= last:
            return replace(self, **_nothing())
        inside = self.times[(self.times > first) & (self.times < last)]
        times = np.concatenate([[first], inside, [last]]).astype(np.int64)
        values = self.at(times)
        whole = np.searchsorted(self.times, times[:-1], side="right") - 1
        cut = np.diff(times) < np.diff(self.times)[whole]
        most = self.most[whole]
        starts, ends = np.maximum(self.pieces.start, first), np.minimum(self.pieces.end, last)
        kept = ends > starts
        return replace(
            self,
            times=times,
            values=values - values[0],
            pieces=Intervals(starts[kept], ends[kept]),
            least=np.where(cut, 0.0, self.least[whole]),
            most=most,
            base=self.base + float(values[0]),
        )


def _nothing() -> dict[str, Any]:
    empty, none = np.empty(0, np.int64), np.empty(0, np.float64)
    return {
        "times": empty,
        "values": none,
        "pieces": Intervals(empty, empty),
        "least": none,
        "most": none,
    }


def integral_unit(unit: str) -> str:
    """The unit of a gauge's integral over time."""
    return {"W": "J", "B/s": "B", "Hz": "cycles"}.get(unit, f"{unit}·s")


def energy(signal: Signal, clock: Clock, integrate: str = "trapezoid") -> Energy:
    """The curve of a signal."""
    if integrate not in INTEGRATIONS:
        raise OptionError.unknown("integration", integrate, INTEGRATIONS)
    told: list[Problem] = []

    def tell(kind: str, text: str) -> None:
        told.append(Problem(kind, f"{signal.name}: {text}", signal.location if signal.location >= 0 else None))

    times, values = tidy(signal, tell)
    scale = float(signal.scale.numerator), float(signal.scale.denominator)
    unit = signal.unit if signal.kind != "gauge" else integral_unit(signal.unit)
    latency = 0 if signal.latency_s is None else max(0, clock.ticks(signal.latency_s))
    base = float(values[0]) * scale[0] / scale[1] if len(values) else 0.0
    common: dict[str, Any] = {"signal": signal, "unit": unit, "latency_ticks": latency, "base": base}
    if signal.clock_error_s:
        common["clock_error_ticks"] = max(0, clock.ticks(signal.clock_error_s))
    if len(times) < 2:
        if len(times):
            tell("short", "one reading only, so no energy can be told from it")
        return Energy(**common | _nothing(), bounded=False, problems=tuple(told))
    if signal.kind == "gauge":
        raw, cuts = _integrated(times, values, integrate, clock), np.zeros(len(times) - 1, bool)
    elif signal.kind == "delta":
        raw, cuts = np.concatenate([[0.0], np.cumsum(values[1:].astype(np.float64))]), np.zeros(len(times) - 1, bool)
    else:
        times, steps, cuts = unwrapped(signal, times, values, tell)
        raw = np.concatenate([[0], np.cumsum(steps)])
        times, raw, cuts = _collapsed(signal, times, raw, cuts, tell)
    curve = raw.astype(np.float64) * scale[0] / scale[1]
    curve -= curve[0]
    rises = np.diff(curve)
    return Energy(
        **common,
        times=times,
        values=curve,
        pieces=_pieces(times, cuts),
        least=rises,
        most=rises,
        bounded=_counted(signal) and not signal.estimated and bool((rises >= 0).all()),
        problems=tuple(told),
    )


def _silent(kind: str, text: str) -> None: ...


def _counted(signal: Signal) -> bool:
    """Whether bounds can be told: for a gauge only what an unsure clock leaves open."""
    return signal.kind != "gauge" or bool(signal.clock_error_s)


def tidy(signal: Signal, tell: Callable[[str, str], None] = _silent) -> tuple[Ints, npt.NDArray[Any]]:
    """Readings in time order, one per moment, without those that are no numbers."""
    times, values = np.asarray(signal.times, np.int64), np.asarray(signal.values)
    if values.dtype.kind == "f":
        good = np.isfinite(values)
        if not good.all():
            tell("not-a-number", f"{int((~good).sum())} readings are no numbers and were left out")
            times, values = times[good], values[good]
    if len(times) > 1 and (np.diff(times) < 0).any():
        tell("backwards", "times of readings run backwards; they were sorted")
        order = np.argsort(times, kind="stable")
        times, values = times[order], values[order]
    if len(times) > 1 and (np.diff(times) == 0).any():
        last = np.concatenate([np.diff(times) > 0, [True]])
        group = np.concatenate([[0], np.cumsum(last)[:-1]])
        differ = bool((values != values[last][group]).any())
        if differ:
            kept = "their sum" if signal.kind == "delta" else "the last"
            tell("duplicate", f"{int((~last).sum())} readings share a time with another; {kept} counts")
        if signal.kind == "delta":
            sums = np.zeros(int(last.sum()), values.dtype)
            np.add.at(sums, group, values)
            return times[last], sums
        times, values = times[last], values[last]
    return times, values


def _integrated(times: Ints, values: npt.NDArray[Any], integrate: str, clock: Clock) -> Floats:
    seconds = np.diff(times) / clock.ticks_per_s
    height = values.astype(np.float64)
    power = height[:-1] if integrate == "step" else (height[:-1] + height[1:]) / 2
    return np.concatenate([[0.0], np.cumsum(power * seconds)])


def _steps(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Signed increments, exact for integers (uint64 differences wrap, which is what a 64-bit counter does)."""
    if values.dtype.kind == "u":
        wide = values.astype(np.uint64)
        return (wide[1:] - wide[:-1]).view(np.int64)
    return np.diff(values.astype(np.int64) if values.dtype.kind == "i" else values)


def unwrapped(
    signal: Signal, times: Ints, values: npt.NDArray[Any], tell: Callable[[str, str], None] = _silent
) -> tuple[Ints, npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Times, increments without wraps, and where the curve has to be cut."""
    steps = _steps(values)
    # a reading that dips below its neighbours and comes back, without having wrapped, is a fault of the reading
    dips = [
        at + 1
        for at in np.flatnonzero(steps < 0)
        if at + 2 < len(values)
        and values[at + 2] >= values[at]
        and not _width(signal, values, steps, int(at), np.diff(times))
    ]
    if dips:
        tell("backwards", f"{len(dips)} readings dip below the one before and were left out")
        times, values = np.delete(times, dips), np.delete(values, dips)
        steps = _steps(values)
    cuts = np.zeros(len(steps), bool)
    for at in np.flatnonzero(steps < 0):
        width = _width(signal, values, steps, int(at), np.diff(times))
        if width:
            steps[at] += width
            known = "" if signal.wraps_at else f" (a width of {width:.6g} is assumed)"
            tell("wrap", f"wrapped around at reading {at + 1}{known}")
        else:
            steps[at], cuts[at] = 0, True
            tell("reset", f"fell back at reading {at + 1}; what was used between it and the one before is not known")
    return times, steps, cuts


def _width(signal: Signal, values: npt.NDArray[Any], steps: npt.NDArray[Any], at: int, spacing: Ints) -> int:
    """How much a counter wrapped by at a falling step, or 0 if it was reset instead."""
    if signal.wraps_at:
        mended = float(steps[at]) + signal.wraps_at  # almost a whole turn is a small step backwards instead
        return int(signal.wraps_at) if 0 <= mended <= _TURN * signal.wraps_at else 0
    rising = steps >= 0
    fastest = float((steps[rising] / spacing[rising]).max()) if rising.any() else 0.0
    for bits in _GUESSED_WIDTHS:
        mended = float(steps[at]) + 2.0**bits
        if float(values.max()) < 2.0**bits and 0 <= mended <= 3 * fastest * float(spacing[at]):
            return 1 << bits
    return 0


def _collapsed(
    signal: Signal, times: Ints, raw: npt.NDArray[Any], cuts: npt.NDArray[np.bool_], tell: Callable[[str, str], None]
) -> tuple[Ints, npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """A stale counter's changes; any other counter as it is."""
    if not is_stale(signal, times, raw):
        return times, raw, cuts
    changed = np.concatenate([[False], (np.diff(raw) != 0) & ~cuts])
    # a cut must stay visible: the first change after it opens a new piece
    piece = np.concatenate([[0], np.cumsum(cuts)])
    kept = np.flatnonzero(changed)
    tell("stale", f"repeats its value between updates; {len(times)} readings were collapsed to {len(kept)} changes")
    gaps = np.diff(piece[kept]) > 0
    steps = np.where(gaps, 0, np.diff(raw[kept]))  # nor is what rose from the cut to that first change known
    return times[kept], np.concatenate([[0], np.cumsum(steps)]), gaps


def is_stale(signal: Signal, times: Ints, raw: npt.NDArray[Any]) -> bool:
    """Known to be so, or the median spacing of changes is at least three times that of readings."""
    changes = times[1:][np.diff(raw) != 0]
    if len(changes) < 2:
        return False  # a counter that never or once moved cannot be collapsed to its changes
    return signal.stale or bool(np.median(np.diff(changes)) >= _STALE_RATIO * np.median(np.diff(times)))


def _pieces(times: Ints, cuts: npt.NDArray[np.bool_]) -> Intervals:
    opens = np.concatenate([[True], cuts])
    closes = np.concatenate([cuts, [True]])
    start, end = times[opens], times[closes]
    return Intervals(start[end > start], end[end > start])
