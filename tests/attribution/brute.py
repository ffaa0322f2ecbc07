"""Attribution by the book, tick by tick: what DESIGN says, without any cleverness."""

from __future__ import annotations

from collections import defaultdict

import numpy as np


def stack(spans, tick):
    """The spans that are open during [tick, tick + 1), outermost first."""
    return [i for i in range(len(spans)) if spans.start[i] <= tick < spans.end[i]]


def innermost(recording, location, tick):
    """(frame of the innermost span, all frames on the stack) or None."""
    spans = recording.spans.spans(location)
    open_ = stack(spans, tick)
    return None if not open_ else (int(spans.frame[open_[-1]]), {int(spans.frame[i]) for i in open_})


def shares(recording, active, share):
    """user → its part of a tick's energy."""
    if share == "full":
        return dict.fromkeys(active, 1.0)
    if share == "even":
        return {user: 1.0 / len(active) for user in active}
    by_process = defaultdict(list)
    for user in active:
        by_process[recording.owner(user)].append(user)
    return {user: 1.0 / len(by_process) / len(some) for some in by_process.values() for user in some}


def attribute(recording, rises, share="even"):
    """(self per frame, total per frame, idle) from the energy used in each tick: {tick: joules}."""
    names = recording.frames.name
    own, whole, idle = defaultdict(float), defaultdict(float), 0.0
    for tick, energy in rises.items():
        found = {user: innermost(recording, user, tick) for user in recording.spans.locations()}
        active = [user for user, at in found.items() if at is not None]
        if not active:
            idle += energy
        for user, part in shares(recording, active, share).items():
            frame, frames = found[user]
            own[names[frame]] += energy * part
            for each in frames:
                whole[names[each]] += energy * part
    return own, whole, idle


def linear(times, values):
    """The energy of each tick when it rises in a straight line between readings."""
    curve = {}
    for i in range(len(times) - 1):
        for tick in range(int(times[i]), int(times[i + 1])):
            curve[tick] = (values[i + 1] - values[i]) / (times[i + 1] - times[i])
    return curve


def window(recording, times, values):
    """(self per frame, idle): the energy between two readings by busy time in between."""
    names = recording.frames.name
    own, idle = defaultdict(float), 0.0
    for i in range(len(times) - 1):
        spent = defaultdict(int)
        for tick in range(int(times[i]), int(times[i + 1])):
            for user in recording.spans.locations():
                at = innermost(recording, user, tick)
                if at is not None:
                    spent[names[at[0]]] += 1
        energy = float(values[i + 1] - values[i])
        if not spent:
            idle += energy
        for name, ticks in spent.items():
            own[name] += energy * ticks / sum(spent.values())
    return own, idle


def readings(signal):
    """(times, joules from 0, rows of the readings that count): wraps undone, a stale counter's changes only."""
    steps = np.diff(signal.values)
    if signal.wraps_at:
        steps = np.where(steps < 0, steps + signal.wraps_at, steps)
    rows = np.arange(len(signal.times))
    changes = np.flatnonzero(steps != 0) + 1
    if len(changes) >= 2 and np.median(np.diff(signal.times[changes])) >= 3 * np.median(np.diff(signal.times)):
        rows = changes
    values = np.concatenate([[0], np.cumsum(steps)]).astype(float)[rows]
    return signal.times[rows], values - values[0], rows
