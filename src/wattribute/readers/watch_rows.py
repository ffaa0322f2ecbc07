"""What a watch saw of one thread at moments → when its stacks began, and where its CPU time went.

A stack that was seen holds from half-way since the look before to half-way to the next. Looks alone would give
functions that take turns within a few milliseconds their share only on average; the clocks say more. In each window of
``WINDOW`` looks, those in which the thread was on a CPU last as long in all as its CPU time says, those in which it
waited for one as long as the kernel says that it waited, and those in which it was blocked share the rest. CPU time of
a window goes to its stacks by time, weighted with how often each was seen on a CPU in all. A thread that computes for
5 ms and then sleeps for 5 ms computes half of the time by these clocks, however often it is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..journal.layouts import DELAY_LANE, NATIVE_LANE, NO_STACK, STACK_RUNS, STACK_WAITS

WINDOW = 16  # looks
_SIMILAR = ((1, 2), (0, 2), (1, 0))  # of each kind of look: which other kinds are most like it
SEEN_RUNNING = 0.3  # of the CPU time that looks must have seen, to be believed about who computes
UNSEEN_TURNS = 0.1  # of the gaps with the same stack at both ends, in which another one may have had its turn
NEGLIGIBLE = 0.01  # of a process's CPU time: so much of native threads' is the ends of Python's
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class CpuTime:
    """A clock: ``spent`` nanoseconds at ``times``, linear in between."""

    times: Ints
    spent: Ints

    def plus(self, other: CpuTime) -> CpuTime:
        if not len(other.times) or not len(self.times):
            return self if len(self.times) else other
        times = np.union1d(self.times, other.times)
        both = np.interp(times, self.times, self.spent) + np.interp(times, other.times, other.spent)
        return CpuTime(times, np.rint(both).astype(np.int64))


NOTHING = CpuTime(np.empty(0, np.int64), np.empty(0, np.int64))


def placed(samples: Any, lane: int) -> tuple[Any, CpuTime]:
    """(rows whose times are when their stacks began, the thread's clock) of one lane's looks."""
    rows = samples[samples["lane"] == lane].copy()
    states = rows["stack"].copy()
    rows["stack"] &= ~np.uint32(STACK_RUNS | STACK_WAITS)
    if len(rows) > 1 and rows["stack"][0] == NO_STACK:  # the first stack is there from the beginning
        rows["stack"][0], states[0] = rows["stack"][1], states[1]
    if len(rows) < 2:
        return rows, CpuTime(rows["time"], rows["value"])
    halves = np.repeat(np.diff(rows["time"]) / 2, 2)  # of each gap between two looks: the one's, and the next one's
    state = np.repeat(states, 2)[1:-1]
    on_cpu, waits = (state & STACK_RUNS) != 0, (state & STACK_WAITS) != 0
    edges = _edges(states)
    window = np.repeat(np.arange(len(edges) - 1), 2 * np.diff(edges))
    spent = np.maximum(np.diff(rows["value"][edges]), 0).astype(float)
    waited = np.diff(_delays(samples, lane, rows["time"])[edges])
    length = _scaled(halves, np.where(on_cpu, 0, np.where(waits, 1, 2)), window, spent, waited)
    load = _load(rows, states, length, on_cpu)
    known = np.bincount(window, load * length)[window] > 0
    shares = length * np.where(known, load, 1.0)
    total = np.bincount(window, shares)[window]
    cpu = np.divide(shares * spent[window], total, out=np.zeros(len(shares)), where=total > 0)
    times = rows["time"][0] + np.rint(np.append(0.0, np.cumsum(length))).astype(np.int64)
    clock = rows["value"][0] + np.rint(np.append(0.0, np.cumsum(cpu))).astype(np.int64)
    rows["time"][1:] = times[1::2]
    turns = np.append(True, np.append((load[1:] != load[:-1]) | (window[1:] != window[:-1]), True))
    return rows, CpuTime(times[turns], clock[turns])


def _load(rows: Any, states: Any, length: Any, on_cpu: Any) -> Any:
    """For each half of a gap the part of its stack's time that was on a CPU.

    Where a machine has one CPU for the program and the watch, nothing runs while it is looked at: then the clocks say
    it, of gaps with the same stack at both ends, where it was not blocked in the end. A stack whose clock moved in few
    of these does not compute: it was left and entered again in between, unseen.
    """
    _, number = np.unique(rows["stack"], return_inverse=True)
    stack = np.repeat(number, 2)[1:-1]
    whole, part = np.bincount(stack, length), np.bincount(stack, length * on_cpu)
    spent = np.diff(rows["value"])
    if part.sum() < SEEN_RUNNING * spent.sum():
        same = (number[1:] == number[:-1]) & ((states[1:] & (STACK_RUNS | STACK_WAITS)) != 0)
        count, at = len(whole), number[1:][same]
        whole, part = np.bincount(at, np.diff(rows["time"])[same], count), np.bincount(at, spent[same], count)
        moved, gaps = np.bincount(at, spent[same] > 0, count), np.bincount(at, minlength=count)
        part = np.where(moved < UNSEEN_TURNS * gaps, 0.0, part)
    load = np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)
    return load[stack]


def _edges(states: Any) -> Ints:
    """Looks at which windows begin and end: not while the thread waits for a CPU, as how long is known only then."""
    settled = np.flatnonzero((states & STACK_WAITS) == 0)
    wanted = np.arange(WINDOW, len(states) - 1, WINDOW)
    inner = settled[np.minimum(np.searchsorted(settled, wanted), len(settled) - 1)] if len(settled) else wanted[:0]
    return np.unique(np.concatenate([[0], inner, [len(states) - 1]]))


def _scaled(halves: Any, kind: Any, window: Ints, spent: Any, waited: Any) -> Any:
    """Halves of gaps such that in each window those on a CPU (kind 0), those that wait for one (1) and those that are
    blocked (2) last as long as the clocks say. A kind that was not seen adds to the most similar one that was.
    """
    whole = np.bincount(window, halves)
    seen = np.stack([np.bincount(window, np.where(kind == one, halves, 0.0), len(whole)) for one in range(3)])
    target = np.stack([np.minimum(spent, whole), waited, whole])
    target[1] = np.clip(target[1], 0, whole - target[0])
    target[2] = whole - target[0] - target[1]
    # nothing runs while it is looked at where the watch needs its CPU: then those on one are among those that wait
    rare = seen[0] < SEEN_RUNNING * target[0]
    for both in (seen, target):
        both[1] += np.where(rare, both[0], 0.0)
        both[0] = np.where(rare, 0.0, both[0])
    for one, others in enumerate(_SIMILAR):
        lost = np.where(seen[one] > 0, 0.0, target[one])
        for other in others:
            target[other] += np.where(seen[other] > 0, lost, 0.0)
            lost = np.where(seen[other] > 0, 0.0, lost)
    by = np.divide(target, seen, out=np.zeros_like(seen), where=seen > 0)
    by[0] = np.where(rare, by[1], by[0])
    return halves * by[kind, window]


def _delays(samples: Any, lane: int, times: Ints) -> Ints:
    """How long the thread had waited for a CPU at each time."""
    rows = samples[samples["lane"] == lane | DELAY_LANE]
    if not len(rows):
        return np.zeros(len(times), np.int64)
    at = np.maximum(np.searchsorted(rows["time"], times, "right") - 1, 0)
    delays: Ints = rows["value"][at]
    return delays


def native(samples: Any) -> dict[int, CpuTime]:
    """Lane → CPU time of native threads that counts for it; 0: those that count for no thread. Empty if negligible."""
    rows = samples[samples["lane"] == NATIVE_LANE]
    if not len(rows) or rows["value"][-1] < NEGLIGIBLE * _all_cpu(samples):
        return {}
    spent = np.diff(rows["value"], prepend=0)
    since = np.append(samples["time"].min(), rows["time"][:-1])
    clocks = {}
    for lane in np.unique(rows["stack"][spent > 0]).tolist():
        mine = (rows["stack"] == lane) & (spent > 0)
        after = np.cumsum(spent[mine])
        times = np.stack([since[mine], rows["time"][mine]], axis=1).ravel()
        values = np.stack([after - spent[mine], after], axis=1).ravel()
        keep = np.append(np.diff(times) > 0, True)
        clocks[lane] = CpuTime(times[keep], values[keep])
    return clocks


def _all_cpu(samples: Any) -> int:
    rows = samples[samples["lane"] < DELAY_LANE]
    return sum(int(np.ptp(rows["value"][rows["lane"] == lane])) for lane in np.unique(rows["lane"]))
