"""How a device's simultaneous users split it: E(t) and who was active when → S(t) for each user, and idle.

Between two *knots* (readings, and moments at which a user starts or stops) nothing changes: who is active there, and
what part of dE each active user gets, is one number per knot interval. Users with the same number at all times share
one curve: under ``even`` all of them, under ``process`` those of one process, under ``load`` none; the curve of a user
under ``load`` has only the knots of its own time, for a server has thousands of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._core.kernels import split as core_split
from ..alignment.energy import Energy
from ..errors import OutputError
from ..model import Curve, Intervals

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Load = Callable[[int, Ints], Floats]


@dataclass(frozen=True)
class Split:
    """Each user's curve, and what no user had (None: measured minus what the users get)."""

    curves: Mapping[int, Curve]
    idle: float | None


def alone(energy: Energy, users: Sequence[int], bounds: bool) -> Split:
    """One user: S is E itself; what it does not collect is idle."""
    edges, low, high = energy.windows if bounds and energy.bounded else (None, None, None)
    curve = Curve(energy.times, energy.values, energy.pieces, edges, low, high, energy.reach_ticks)
    return Split(dict.fromkeys(users, curve), None)


class Knots:
    """The moments between which nothing changes, and how many users of a set are active there."""

    def __init__(self, energy: Energy, busy: Mapping[int, Intervals], more: Sequence[Ints] = ()) -> None:
        edges = energy.windows[0]
        first, last = int(edges[0]) - energy.reach_ticks, int(edges[-1])
        changes = [column for pieces in busy.values() for column in (pieces.start, pieces.end)]
        others = _sorted([*changes, *more, np.array([first, last], np.int64)])
        others = others[np.searchsorted(others, first) : np.searchsorted(others, last, side="right")]
        self.energy, self.busy = energy, busy
        merged = _sorted([energy.times, others])
        self.times = merged[np.concatenate([[True], merged[1:] > merged[:-1]])]
        self.lengths = np.diff(self.times)
        self.rises = np.diff(energy.at(self.times))

    def hull(self, user: int) -> slice:
        """The intervals from the first in which a user may be active to the last."""
        busy, last = self.busy[user], len(self.lengths)
        if not len(busy.start) or not last:
            return slice(0, 0)
        first = max(0, int(np.searchsorted(self.times, busy.start[0], side="right")) - 1)
        return slice(min(first, last), min(last, int(np.searchsorted(self.times, busy.end[-1]))))

    def active(self, users: Sequence[int], part: slice = slice(None)) -> Ints:
        """How many of these users are active in each interval, or in a part of them."""
        at = self.times[:-1][part]
        starts = _sorted([self.busy[user].start for user in users])
        ends = _sorted([self.busy[user].end for user in users])
        count: Ints = np.searchsorted(starts, at, side="right") - np.searchsorted(ends, at, side="right")
        return count

    def per_reading(self, amounts: npt.NDArray[Any]) -> Floats:
        """Sums of knot intervals over the intervals between readings."""
        running = np.concatenate([[0.0], np.cumsum(amounts, dtype=np.float64)])
        return np.diff(running[np.searchsorted(self.times, self.energy.times)])

    def spread(self, per_reading: Floats) -> Floats:
        """A number per reading interval as one per knot interval; 0 before the first reading and after the last."""
        at = np.searchsorted(self.energy.times, self.times[:-1], side="right") - 1
        padded = np.append(per_reading, 0.0)  # where −1 and the last reading point
        per_knot: Floats = padded[at]
        return per_knot

    def curve(self, rises: Floats, share: Floats, bounds: bool, first: int = 0) -> Curve:
        """S(t) from its rise per knot interval; bounds from the least and greatest share in each window.

        Both begin with the interval ``first``; outside of them S is flat, the share 0, and windows are left out.
        """
        energy, last = self.energy, first + len(share)
        inside = self.times[first : last + 1]
        before, after = self.times[: min(first, 1)], self.times[max(last + 1, len(self.times) - 1) :]
        values = np.concatenate([[0.0], np.cumsum(rises)])
        values = np.concatenate([values[: len(before)], values, np.repeat(values[-1:], len(after))])
        times = np.concatenate([before, inside, after])
        if not (bounds and energy.bounded):
            return Curve(times, values, energy.pieces)
        (edges, low, high), reach = energy.windows, energy.reach_ticks
        some = slice(0, len(low))
        if len(inside) < len(self.times):
            begin = min(int(np.searchsorted(edges[1:], inside[0], side="right")), max(len(low) - 1, 0))
            some = slice(begin, max(begin + 1, int(np.searchsorted(edges[:-1] - reach, inside[-1]))))
        edges, low, high = edges[some.start : some.stop + 1], low[some], high[some]
        opens = np.maximum(np.searchsorted(self.times, edges[:-1] - reach, side="right") - 1, 0)
        closes = np.searchsorted(self.times, edges[1:], side="left")
        padded = np.concatenate([[0.0], share, [0.0, 0.0]])  # before, after, and for a window up to the last knot
        pairs = np.clip(np.stack([opens, closes], axis=1).ravel() - first + 1, 0, len(padded) - 1)
        greatest, least = (ufunc.reduceat(padded, pairs)[::2] for ufunc in (np.maximum, np.minimum))
        return Curve(times, values, energy.pieces, edges, low * least, high * greatest, reach)


def _sorted(runs: Sequence[Ints]) -> Ints:
    """Sorted runs in one sorted array; a stable sort finds the runs and merges them (np.unique hashes: 60× slower)."""
    return np.sort(np.concatenate(runs), kind="stable")


def _inverse(count: npt.NDArray[Any]) -> Floats:
    """1/n where n is not 0, else 0."""
    inverse: Floats = np.divide(1.0, count, out=np.zeros(len(count)), where=count > 0)
    return inverse


def classes(users: Sequence[int], share: str, process: Callable[[int], int], method: str) -> dict[int, list[int]]:
    """Users that share one curve."""
    groups: dict[int, list[int]] = {}
    for user in users:
        if share == "process":
            name = process(user)
        else:
            name = user if share == "load" or (share == "full" and method == "window") else 0
        groups.setdefault(name, []).append(user)
    return groups


def split(
    energy: Energy,
    busy: Mapping[int, Intervals],
    share: str,
    method: str = "linear",
    process: Callable[[int], int] = lambda user: user,
    load: Load | None = None,
    bounds: bool = True,
    load_times: Sequence[Ints] = (),
) -> Split:
    """The curves of several users under a share rule."""
    even_split = _evenly(energy, busy, bounds) if share == "even" and method == "linear" and not load_times else None
    if even_split is not None:
        return even_split
    knots = Knots(energy, busy, load_times)
    users = list(busy)
    together = classes(users, share, process, method)
    anyone = knots.active(users)
    parts = _parts(knots, together, share, load, anyone)
    curves: dict[int, Curve] = {}
    whole = np.diff(energy.values)
    weights = _window_weights(knots, together, share) if method == "window" else {}
    for name, members in together.items():
        first, part = parts[name]
        some = slice(first, first + len(part))
        rises = knots.rises[some] * part
        if method == "window":
            rises = (knots.spread(whole * weights[name]) * knots.lengths * (knots.active(members) > 0))[some]
        curve = knots.curve(rises, part, bounds, first)
        curves |= dict.fromkeys(members, curve)
    if method == "window":
        idle = float(whole[knots.per_reading(anyone * knots.lengths) == 0].sum())
    else:
        idle = float(np.cumsum(np.append(0.0, knots.rises[anyone == 0]))[-1])  # one by one, as the core does
    return Split({user: curves[user] for user in users}, idle)


def _evenly(energy: Energy, busy: Mapping[int, Intervals], bounds: bool) -> Split | None:
    """Split evenly in the C core, which holds only the knots; None without it."""
    edges, low, high = energy.windows
    bounded, reach = bounds and energy.bounded, energy.reach_ticks
    device = Curve(energy.times, energy.values, energy.pieces, edges if bounded else None, low, high, reach)
    try:
        core_result = core_split(device, int(edges[0]) - reach, int(edges[-1]), list(busy.values()))
    except OSError as error:
        raise OutputError(str(error)) from error
    if core_result is None:
        return None
    times, values, least, greatest, idle = core_result
    limits = (edges, low * least, high * greatest, reach) if bounded else ()
    return Split(dict.fromkeys(busy, Curve(times, values, energy.pieces, *limits)), idle)


def _parts(
    knots: Knots, together: Mapping[int, list[int]], share: str, load: Load | None, anyone: Ints
) -> dict[int, tuple[int, Floats]]:
    """For each class of users the part of dE that one active member gets, per knot interval from the first one on."""
    if share == "load":
        assert load is not None
        return _by_load(knots, list(together), load, anyone)
    if share == "even":
        return {0: (0, _inverse(anyone))}
    if share == "full":
        return {name: (0, np.where(knots.active(members) > 0, 1.0, 0.0)) for name, members in together.items()}
    active = {name: knots.active(members) for name, members in together.items()}
    processes = np.sum([count > 0 for count in active.values()], axis=0)
    return {name: (0, _inverse(processes * count)) for name, count in active.items()}


def _by_load(knots: Knots, users: Sequence[int], load: Load, anyone: Ints) -> dict[int, tuple[int, Floats]]:
    at, whole = knots.times[:-1], np.zeros(len(anyone))
    hulls = {user: knots.hull(user) for user in users}
    active = {user: knots.active([user], hull) for user, hull in hulls.items()}
    loads = {user: np.maximum(load(user, at[hull]), 0.0) * active[user] for user, hull in hulls.items()}
    for user, hull in hulls.items():
        whole[hull] += loads[user]
    even = _inverse(anyone)  # users are active but none reports a load
    parts = {}
    for user, hull in hulls.items():
        mine = np.divide(loads[user], whole[hull], out=even[hull].copy(), where=whole[hull] > 0)
        parts[user] = hull.start, mine * active[user]
    return parts


def _window_weights(knots: Knots, together: Mapping[int, list[int]], share: str) -> dict[int, Floats]:
    """Per class and reading interval: the energy's part that one tick of busy time is worth."""
    spent = {name: knots.per_reading(knots.active(members) * knots.lengths) for name, members in together.items()}
    if share == "process":
        held = {
            name: knots.per_reading((knots.active(members) > 0) * knots.lengths) for name, members in together.items()
        }
        whole = np.sum(list(held.values()), axis=0)
        return {name: held[name] * _inverse(whole) * _inverse(spent[name]) for name in together}
    return {name: _inverse(spent[name]) for name in together}
