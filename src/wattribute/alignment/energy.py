"""Readings → joules(t): one signal becomes a rising, piecewise linear curve that starts at 0.

Counters are unwrapped, repaired or cut, and collapsed to their changes when stale; gauges are integrated; deltas are
summed. The same rules serve any metric: a counter of bytes gives bytes, a gauge of hertz gives hertz-seconds. What was
done to the readings is reported as problems.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import OptionError
from ..model import Clock, Intervals, Problem, Signal
from ..model.coverage import coverage
from ..model.recording import median_step

INTEGRATIONS = ("trapezoid", "step")
_GUESSED_WIDTHS = (32, 31, 48, 24, 16)  # bits; tried in this order when a counter's width is unknown
_STALE_RATIO = 3  # median spacing of changes over that of readings
_MAX_WRAP_STEP = 0.9  # of the counter's range: a larger step is a small step backwards, not a wrap
_MIN_UPDATES = 4  # before the time between two means anything
_LATENCIES_FOR_POWER = 4  # over which the power before a reading is computed
_LEAST_PERIOD = 0.97  # of the usual time between two updates of a stale counter
_MAX_TIMES_POWER_LIMIT = 3.0  # times the power limit of a device: short peaks above the limit are real
_MAX_WINDOWS = 1_000_000  # of an integrated gauge

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Energy:
    """E(t) of one signal: ``values[0]`` is 0, flat across the gaps between pieces.

    ``least`` and ``most`` say for each interval between two knots how much can truly have been used in it; they differ
    only where an interval was cut in two by ``between``. ``bounded``: a meter counted it, so that bounds hold. A knot
    stands where a change was most likely made; ``seen`` has the readings that showed it, where those are not the same.
    ``read`` has the values as they were read, where ``values`` add what the counter had not counted yet.
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
    window_edges: Ints | None = None  # of a part of a curve whose windows are the whole's, not its own knots'
    problems: tuple[Problem, ...] = ()
    seen: Ints | None = None
    read: Floats | None = None

    @cached_property
    def windows(self) -> tuple[Ints, Floats, Floats]:
        """(edges, least, most): what window i used, it used in (edges[i] − reach_ticks, edges[i + 1]].

        A counter's windows lie between its readings. An integrated gauge is taken at its word between readings too, so
        that its windows are as short as its clock is sure, and its bounds say what that clock leaves open.
        """
        if self.window_edges is not None:
            return self.window_edges, self.least, self.most
        if self.signal.kind != "gauge" or not self.clock_error_ticks or len(self.times) < 2:
            edges = self.times if self.seen is None else self.seen
            return edges + self.clock_error_ticks, self.least, self.most
        first, last = int(self.times[0]), int(self.times[-1])
        step = max(self.clock_error_ticks, (last - first) // _MAX_WINDOWS)
        fine = np.union1d(self.times, np.arange(first, last, step))
        rises = np.diff(self.at(fine))
        return fine + self.clock_error_ticks, rises, rises

    @property
    def reach_ticks(self) -> int:
        """How far before its window a reading may speak of: the sensor's latency, the clock's error on both sides."""
        latency = 0 if self.signal.kind == "gauge" else self.latency_ticks
        return latency + 2 * self.clock_error_ticks

    @property
    def is_counted(self) -> bool:
        """Whether its bounds are a counter's, whose windows lie between its readings."""
        return self.bounded and self.signal.kind != "gauge"

    @property
    def measured(self) -> float:
        return float(self.values[-1]) if len(self.values) else 0.0

    def at(self, ticks: Any) -> Floats:
        """E at any moment; nothing is extrapolated."""
        from .._core.reference import evaluate

        return evaluate(self, np.asarray(ticks, np.int64))

    @cached_property
    def drawn(self) -> Energy:
        """The curve for pictures of power: late updates stand where they were due, no later than they were seen.

        Drawn where it was seen, an update that follows a late one is a spike: it counts a whole period. Where that
        makes a higher peak, updates came when they were made, however irregular, and the curve is drawn as it is.
        """
        if not any(problem.kind == "stale" for problem in self.problems) or len(self.times) < _MIN_UPDATES:
            return self
        gaps = np.diff(self.times)
        period = _LEAST_PERIOD * min(float(np.median(gaps)), float(np.mean(gaps)))
        times, starts, end = self.times.copy(), self.pieces.start.copy(), min(0, int(self.times[0]))
        for i, (first, last) in enumerate(zip(self.pieces.start, self.pieces.end, strict=True)):
            piece = slice(*np.searchsorted(self.times, [first, last + 1]))
            steps = period * np.arange(piece.stop - piece.start)
            due = np.minimum.accumulate((self.times[piece] - steps)[::-1])[::-1] + steps
            times[piece] = np.maximum(np.ceil(due), np.maximum(self.times[piece] - self.latency_ticks, end))
            starts[i], end = times[piece.start], int(last)
        kept = np.flatnonzero(np.diff(times, prepend=times[0] - 1) > 0)  # not all have room after a gap
        least, most = (np.add.reduceat(column, kept[:-1]) for column in (self.least, self.most))
        pieces = Intervals(starts, self.pieces.end)
        drawn = replace(self, times=times[kept], values=self.values[kept], least=least, most=most, pieces=pieces)
        own, moved = (float((np.diff(one.values) / np.diff(one.times)).max(initial=0.0)) for one in (self, drawn))
        return drawn if moved <= own else self

    def coverage(self, begin: int | None, end: int | None) -> float:
        """The part of [begin, end] that its readings cover."""
        return coverage([int(self.times[0]), int(self.times[-1])] if len(self.times) else (), begin, end)

    def between(self, begin: int | None, end: int | None) -> Energy:
        """The part of the curve inside [begin, end].

        What an interval cut in two truly used there is not known, nor what a reading after the end still tells of it.
        """
        if not len(self.times) or (begin is None and end is None):
            return self
        first = int(self.times[0]) if begin is None else max(begin, int(self.times[0]))
        last = int(self.times[-1]) if end is None else min(end, int(self.times[-1]))
        if first >= last:
            return replace(self, **_nothing())
        kept_knots = (self.times > first) & (self.times < last)
        times = np.concatenate([[first], self.times[kept_knots], [last]]).astype(np.int64)
        values = self.at(times)
        at = int(np.searchsorted(self.times, first, side="right")) - 1
        whole = slice(at, at + len(times) - 1)
        starts, ends = np.maximum(self.pieces.start, first), np.minimum(self.pieces.end, last)
        kept = ends > starts
        return replace(
            self,
            times=times,
            values=values - values[0],
            pieces=Intervals(starts[kept], ends[kept]),
            base=self.base + float(values[0]),
            seen=None,
            read=None,
            **(self._windows_between(begin, end, whole) if self.is_counted else self._cut(times, whole)),
        )

    def _cut(self, times: Ints, whole: slice) -> dict[str, Any]:
        """The least and the most of the intervals of a part of the curve; its first and its last may be cut."""
        is_cut = np.diff(times) < np.diff(self.times)[whole]
        return {"least": np.where(is_cut, 0.0, self.least[whole]), "most": self.most[whole]}

    def _windows_between(self, begin: int | None, end: int | None, whole: slice) -> dict[str, Any]:
        """The windows of a part of the curve: those of its intervals (``whole``), the first and the last with all of
        their neighbours that may speak of that part, too."""
        edges, least, most = self.windows
        first = edges[0] if begin is None else begin
        last = edges[-1] if end is None else end
        early = min(int(np.searchsorted(edges[1:], first, side="right")), whole.start)
        late = max(int(np.searchsorted(edges[:-1], last + self.reach_ticks)), whole.stop)
        inner = edges[whole.start + 1 : whole.stop]
        joined = np.concatenate([edges[[early]], inner, edges[[late]]])
        least, more = least[whole].copy(), most[whole].copy()
        more[0] += most[early : whole.start].sum()
        more[-1] += most[whole.stop : late].sum()
        if begin is not None:
            least[joined[:-1] - self.reach_ticks < begin] = 0.0
        if end is not None:
            least[joined[1:] > end] = 0.0
        return {"least": least, "most": more, "window_edges": joined}


def _nothing() -> dict[str, Any]:
    empty, none = np.empty(0, np.int64), np.empty(0, np.float64)
    return {
        "times": empty,
        "values": none,
        "pieces": Intervals(empty, empty),
        "least": none,
        "most": none,
        "seen": None,
        "read": None,
    }


def integral_unit(unit: str) -> str:
    """The unit of a gauge's integral over time."""
    return {"W": "J", "B/s": "B", "Hz": "cycles"}.get(unit, f"{unit}·s")


def energy(signal: Signal, clock: Clock, integrate: str = "trapezoid") -> Energy:
    """Build the energy curve of a signal."""
    if integrate not in INTEGRATIONS:
        raise OptionError.unknown("integration", integrate, INTEGRATIONS)
    problems: list[Problem] = []

    def report(kind: str, text: str) -> None:
        problems.append(Problem(kind, f"{signal.name}: {text}", signal.location if signal.location >= 0 else None))

    times, values = tidy(signal, report)
    scale = float(signal.scale.numerator), float(signal.scale.denominator)
    unit = signal.unit if signal.kind != "gauge" else integral_unit(signal.unit)
    latency = 0 if signal.latency_s is None else max(0, clock.ticks(signal.latency_s))
    base = float(values[0]) * scale[0] / scale[1] if len(values) else 0.0
    common: dict[str, Any] = {"signal": signal, "unit": unit, "latency_ticks": latency, "base": base}
    if signal.clock_error_s:
        common["clock_error_ticks"] = max(0, clock.ticks(signal.clock_error_s))
    if len(times) < 2:
        if len(times):
            report("short", "one reading only, so no energy can be derived from it")
        return Energy(**common | _nothing(), bounded=False, problems=tuple(problems))
    if signal.kind == "gauge":
        raw, cuts = _integrated(times, values, integrate, clock), np.zeros(len(times) - 1, bool)
    elif signal.kind == "delta":
        raw, cuts = np.concatenate([[0.0], np.cumsum(values[1:].astype(np.float64))]), np.zeros(len(times) - 1, bool)
    else:
        jumps = _jumps(signal, times, values, clock)
        jumped = times[jumps + 1]
        if len(jumps):
            report("jump", f"rose {_at_readings(jumps.tolist())} by more than its device can use; that is not counted")
            values = _without(values, jumps)
        times, steps, cuts = unwrapped(signal, times, values, report)
        if len(jumps):
            cuts |= np.isin(times[1:], jumped)
        raw = np.concatenate([[0], np.cumsum(steps)])
        readings = times
        times, raw, cuts = _collapsed(signal, times, raw, cuts, report)
        if signal.stale and latency and len(times) > 1:  # an update was this late, so that others may be, too
            common["latency_ticks"] = max(latency, int(np.diff(times)[~cuts].max(initial=0)))
        if signal.polled and len(times) < len(readings):  # made after the reading before, at most a latency ago
            common["seen"] = times
            times = times - np.minimum(times - readings[np.searchsorted(readings, times) - 1], latency) // 2
    curve = raw.astype(np.float64) * scale[0] / scale[1]
    curve -= curve[0]
    rises = np.diff(curve)
    is_counting_late = signal.kind == "counter" and signal.polled and not signal.estimated and latency > 0
    if is_counting_late and "seen" not in common:
        common["read"] = curve
        curve = curve + _uncounted(times, curve, latency)
    return Energy(
        **common,
        times=times,
        values=curve,
        pieces=_pieces(times, cuts),
        least=rises,
        most=rises,
        bounded=_counted(signal) and not signal.estimated and bool((rises >= 0).all()),
        problems=tuple(problems),
    )


def _uncounted(times: Ints, values: Floats, latency: int) -> Floats:
    """What a counter had not counted yet when it was read: it is half a latency old on average.

    Power is that of the time before, so that a reading where one region ends and the next begins tells them apart; the
    first and the last reading stay as they are, and no reading exceeds the next.
    """
    before = np.searchsorted(times, times - _LATENCIES_FOR_POWER * latency, side="right") - 1
    more = np.zeros(len(times))
    known = np.flatnonzero(before >= 0)
    known = known[(known > 0) & (known < len(times) - 1)]
    since = before[known]
    power = (values[known] - values[since]) / (times[known] - times[since])
    more[known] = np.minimum(power * latency / 2, values[known + 1] - values[known])
    return np.maximum(more, 0.0)


def _silent(kind: str, text: str) -> None: ...


def _counted(signal: Signal) -> bool:
    """Whether bounds are known: for a gauge only those of an uncertain clock."""
    return signal.kind != "gauge" or bool(signal.clock_error_s)


def tidy(signal: Signal, report: Callable[[str, str], None] = _silent) -> tuple[Ints, npt.NDArray[Any]]:
    """Readings in time order, one per moment, without those that are no numbers."""
    times, values = np.asarray(signal.times, np.int64), np.asarray(signal.values)
    if values.dtype.kind == "f":
        good = np.isfinite(values)
        if not good.all():
            report("not-a-number", f"{int((~good).sum())} readings are not numbers and were left out")
            times, values = times[good], values[good]
    if len(times) > 1 and (np.diff(times) < 0).any():
        report("backwards", "times of readings run backwards; they were sorted")
        order = np.argsort(times, kind="stable")
        times, values = times[order], values[order]
    if len(times) > 1 and (np.diff(times) == 0).any():
        last = np.concatenate([np.diff(times) > 0, [True]])
        group = np.concatenate([[0], np.cumsum(last)[:-1]])
        differ = bool((values != values[last][group]).any())
        if differ:
            kept = "their sum" if signal.kind == "delta" else "the last"
            report("duplicate", f"{int((~last).sum())} readings share a time with another; {kept} counts")
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
    signal: Signal, times: Ints, values: npt.NDArray[Any], report: Callable[[str, str], None] = _silent
) -> tuple[Ints, npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Times, increments without wraps, and where the curve has to be cut."""
    steps = _steps(values)
    falls = np.flatnonzero(steps < 0)
    cuts = np.zeros(len(steps), bool)
    if not len(falls):
        return times, steps, cuts
    widths = _widths(signal, times, values, steps, falls)
    # a reading that dips below its neighbours and comes back, without having wrapped, is a fault of the reading
    inside = falls + 2 < len(values)
    back = values[np.minimum(falls + 2, len(values) - 1)] >= values[falls]
    dips = falls[inside & back & np.array([not width for width in widths])] + 1
    if len(dips):
        report("backwards", f"{len(dips)} readings dip below the one before and were left out")
        times, values = np.delete(times, dips), np.delete(values, dips)
        steps = _steps(values)
        falls, cuts = np.flatnonzero(steps < 0), np.zeros(len(steps), bool)
        widths = _widths(signal, times, values, steps, falls)
    wraps: dict[int, list[int]] = {}
    for at, width in zip(falls.tolist(), widths, strict=True):
        wraps.setdefault(width, []).append(at)
    resets = wraps.pop(0, [])
    for width, at in wraps.items():
        steps[at] += width
        assumed = "" if signal.wraps_at else f" (a width of {width:.6g} is assumed)"
        report("wrap", f"wrapped around {_at_readings(at)}{assumed}")
    steps[resets], cuts[resets] = 0, True
    if resets:
        report("reset", f"fell back {_at_readings(resets)}; what was used since the reading before is not known")
    return times, steps, cuts


def _jumps(signal: Signal, times: Ints, values: npt.NDArray[Any], clock: Clock) -> Ints:
    """Steps of a counter that its device, of at most ``most_w``, cannot have used since the step before."""
    most_w = signal.declared.get("most_w")
    if signal.unit != "J" or not most_w:
        return np.empty(0, np.int64)
    steps = _steps(values)
    moved = np.flatnonzero(steps > 0)
    ends = times[moved + 1]
    seconds = (ends - np.concatenate([times[:1], ends])[:-1]) / clock.ticks_per_s + (signal.latency_s or 0.0)
    jumps: Ints = moved[steps[moved] * float(signal.scale) > _MAX_TIMES_POWER_LIMIT * most_w * seconds]
    return jumps


def _without(values: npt.NDArray[Any], jumps: Ints) -> npt.NDArray[Any]:
    """Remove the jumps of a counter."""
    excess = np.zeros(len(values), values.dtype)
    excess[jumps + 1] = values[jumps + 1] - values[jumps]
    return np.asarray(values - np.cumsum(excess, dtype=values.dtype))


def _at_readings(falls: Sequence[int]) -> str:
    """Where a counter fell: the readings after these steps, as words."""
    first = f"at reading {falls[0] + 1}"
    return first if len(falls) == 1 else f"{len(falls):,} times, first {first}"


def _widths(signal: Signal, times: Ints, values: npt.NDArray[Any], steps: npt.NDArray[Any], falls: Ints) -> list[int]:
    """By how much a counter wrapped at each falling step; 0 where it was reset."""
    if signal.wraps_at:
        true_steps = steps[falls].astype(np.float64) + signal.wraps_at
        turned = (true_steps >= 0) & (true_steps <= _MAX_WRAP_STEP * signal.wraps_at)
        return [int(signal.wraps_at) if one else 0 for one in turned.tolist()]
    rising, spacing, greatest = steps >= 0, np.diff(times), float(values.max())
    fastest = float((steps[rising] / spacing[rising]).max()) if rising.any() else 0.0
    most = 3 * fastest * spacing[falls]
    widths = np.zeros(len(falls), np.int64)
    for bits in reversed(_GUESSED_WIDTHS):  # the first that fits is written last
        true_steps = steps[falls] + 2.0**bits
        if greatest < 2.0**bits:
            widths[(true_steps >= 0) & (true_steps <= most)] = 1 << bits
    return [int(width) for width in widths]


def _collapsed(
    signal: Signal, times: Ints, raw: npt.NDArray[Any], cuts: npt.NDArray[np.bool_], report: Callable[[str, str], None]
) -> tuple[Ints, npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """A stale counter's changes; any other counter as it is."""
    if not is_stale(signal, times, raw):
        return times, raw, cuts
    changed = np.concatenate([[False], (np.diff(raw) != 0) & ~cuts])
    # a cut must stay visible: the first change after it opens a new piece
    piece = np.concatenate([[0], np.cumsum(cuts)])
    kept = np.flatnonzero(changed)
    report("stale", f"repeats its value between updates; {len(times)} readings were collapsed to {len(kept)} changes")
    gaps = np.diff(piece[kept]) > 0
    steps = np.where(gaps, 0, np.diff(raw[kept]))  # nor is what rose from the cut to that first change known
    return times[kept], np.concatenate([[0], np.cumsum(steps)]), gaps


def is_stale(signal: Signal, times: Ints, raw: npt.NDArray[Any]) -> bool:
    """Known to be so, or the median spacing of changes is at least three times that of readings."""
    changes = times[1:][np.diff(raw) != 0]
    if len(changes) < 2:
        return False  # a counter that never or once moved cannot be collapsed to its changes
    return signal.stale or median_step(changes) >= _STALE_RATIO * median_step(times)


def _pieces(times: Ints, cuts: npt.NDArray[np.bool_]) -> Intervals:
    opens = np.concatenate([[True], cuts])
    closes = np.concatenate([cuts, [True]])
    start, end = times[opens], times[closes]
    return Intervals(start[end > start], end[end > start])
