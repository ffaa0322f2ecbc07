"""For how long each frame was innermost before any moment: what counters, gauges and clocks are fitted against."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._core import reference

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Pieces = tuple[Ints, Ints, Ints]  # start, end, frame: when a user was innermost in which frame

_RARE_FRAME_SHARE = 0.01  # of the busy time: frames with less share one power
_MAX_FRAMES = 24
LONG_REST = 8.0  # times the usual rest between two runs: what a chip draws then is another matter


class Occupancy:
    """For how long each frame was innermost, and none was active, before any moment; rare frames share a column."""

    def __init__(self, pieces: Sequence[Pieces]) -> None:
        start, end, frame = (np.concatenate(column) for column in zip(*pieces, strict=True))
        there = end > start
        self.start, self.end, frame = start[there], end[there], frame[there]
        spent = np.bincount(frame, weights=self.end - self.start)
        order = np.argsort(-spent, kind="stable")[:_MAX_FRAMES]
        frequent = order[spent[order] > _RARE_FRAME_SHARE * spent.sum()]
        column = np.full(len(spent), len(frequent))
        column[frequent] = np.arange(len(frequent))
        self.column = column[frame]
        self.columns = int(self.column.max()) + 1 if len(frame) else 0
        owns = [self.column == column for column in range(self.columns)]
        self._each = [_Active(self.start[own], self.end[own]).total for own in owns]
        self._anyone = _Active(self.start, self.end)

    @property
    def overlap(self) -> float:
        """The part of the busy time in which several users were active."""
        once = float(self._anyone.busy.before[-1]) if len(self.start) else 0.0
        return 1 - once / float((self.end - self.start).sum()) if once else 0.0

    def before(self, at: Ints) -> Floats:
        """Ticks before each moment: a column per frame, and idle."""
        return self.delayed((0,))(at)

    def delayed(self, delays: Sequence[int]) -> Callable[[Ints], Floats]:
        """``before``, averaged over these delays."""
        running = [time.delayed(delays) for time in (*self._each, self._anyone.busy)]
        mean = float(np.mean(delays))

        def before(at: Ints) -> Floats:
            ticks = np.stack([time.at(at) for time in running], axis=1).astype(np.float64)
            ticks[:, -1] = at - mean - ticks[:, -1]
            return ticks

        return before

    def in_rests(self, start: Ints, end: Ints, least: int) -> npt.NDArray[np.bool_]:
        """Whether [start, end) touches a rest that is longer than ``least`` and than most, or the time around all."""
        anyone = self._anyone
        idle = np.flatnonzero(anyone.count[:-1] == 0)
        lengths = anyone.times[idle + 1] - anyone.times[idle]
        longest = max(float(least), LONG_REST * float(np.median(lengths)) if len(lengths) else 0.0)
        rests = idle[lengths > longest]
        far = np.iinfo(np.int64).max
        begins, ends = np.append(anyone.times[rests], far), np.append(anyone.times[rests + 1], far)
        inside = begins[np.searchsorted(ends, start, side="right")] < end
        touches: npt.NDArray[np.bool_] = inside | (start < anyone.times[0]) | (end > anyone.times[-1])
        return touches

    def knots(self, power: Floats) -> tuple[Ints, Floats]:
        """Moments at which the drawn power changes, and the power from each of them on (idle before the first)."""
        moments = np.concatenate([self.start, self.end])
        change = np.concatenate([power[self.column], -power[self.column]])
        order = np.argsort(moments, kind="stable")
        times, first = np.unique(moments[order], return_index=True)
        last = np.append(first[1:], len(order)) - 1
        count = np.cumsum(np.concatenate([np.ones(len(self.start)), -np.ones(len(self.end))])[order])[last]
        drawn = np.cumsum(change[order])[last]
        return times, np.where(count > 0, drawn, power[-1])


class _Running(NamedTuple):
    """A sum over time that rises by ``rate`` per tick: 0 before the first knot, ``before[i]`` at ``knots[i]``."""

    knots: Ints
    before: Any
    rate: Any

    @classmethod
    def of(cls, times: Ints, rate: Any) -> _Running:
        before = np.cumsum(rate[:-1] * np.diff(times))
        return cls(np.append(times[:1], times), np.concatenate([[0, 0], before]), np.append(0, rate))

    def delayed(self, delays: Sequence[int]) -> _Running:
        """The mean of this sum at so many ticks earlier."""
        if not any(delays):
            return self
        knots = np.concatenate([self.knots[1:] + delay for delay in delays])
        order = np.argsort(knots, kind="stable")
        rate = np.cumsum(np.tile(np.diff(self.rate), len(delays))[order]) / len(delays)
        return _Running.of(knots[order], rate)

    def at(self, moments: Ints) -> Any:
        j = np.searchsorted(self.knots[1:], moments, side="right")
        return self.before[j] + self.rate[j] * (moments - self.knots[j])


class _Active:
    """How many pieces are active when: their time together, and the time in which there is any."""

    def __init__(self, start: Ints, end: Ints) -> None:
        self.times = np.unique(np.concatenate([start, end]))
        begun, ended = (np.searchsorted(np.sort(column), self.times, side="right") for column in (start, end))
        self.count = begun - ended
        self.total = _Running.of(self.times, self.count)
        self.busy = _Running.of(self.times, (self.count > 0).astype(np.int64))


def innermost(spans: Any, code: Any) -> Pieces:
    """A user's time by the frame it was innermost in; ``code[frame]`` is −1 for frames that do not count."""
    return reference.segments(spans, code)["self"]
