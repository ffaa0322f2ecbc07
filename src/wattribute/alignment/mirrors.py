"""Counters with equal increments, without comparing all pairs; ``sanity.mirrored`` uses this.

Two counters are compared in full only if their sums are close, and, where many sums are, if they agree in one of many
small groups of increments at places that are drawn once. Counters that are the same in half of their increments agree
in some group with near certainty, others hardly ever do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_SUM_TOLERANCE = 1e-3  # relative difference of the sums of two mirrors
_FLOAT_TOLERANCE = 1e-6  # relative: increments this close are equal but for the rounding of floats
_MIN_RESOLUTIONS = 10  # of the counter: larger increments are not equal by chance
_MIN_LARGE_INCREMENTS = 10  # with fewer large increments, all increments have to be equal
_MIN_EQUAL_SHARE = 0.5  # of the large increments
_MAX_PAIRWISE = 16  # counters of close sums that are compared one by one
_MAX_BLOCK = 1 << 20  # increments that are held at once
_STEPS_PER_E = 500_000  # increments in groups are distinguished by 2·10⁻⁶ of their size
_BLOCK_COUNTERS = 256  # counters whose groups are taken at once


@dataclass(frozen=True)
class Original:
    """What is known of a counter that repeats no earlier one."""

    total: float
    telling: float  # an increment above this is not equal by chance

    @classmethod
    def of(cls, steps: Floats) -> Original:
        apart = np.diff(np.sort(np.append(steps, 0.0)))
        resolution = apart[apart > _FLOAT_TOLERANCE * float(np.abs(steps).max())].min(initial=np.inf)
        return cls(float(steps.sum()), _MIN_RESOLUTIONS * float(resolution))


def repeated(counters: Sequence[Floats]) -> list[int | None]:
    """For each counter (all have equally many increments) find the first one that it repeats.

    The increments may be made when they are asked for: not all are held at once.
    """
    totals = np.array([steps.sum() for steps in counters], np.float64)
    near = _Near(totals)
    alike = _Alike(counters) if (near.crowd > _MAX_PAIRWISE).any() else None
    originals: dict[int, Original] = {}  # those that others were compared with
    firsts: list[int | None] = []
    for row in range(len(counters)):
        candidates = alike.before(row) if alike is not None and near.crowd[row] > _MAX_PAIRWISE else near.before(row)
        firsts.append(_first(counters, row, [at for at in candidates if firsts[at] is None], originals))
        if firsts[row] is None and alike is not None:
            alike.add(row)
    return firsts


def _first(counters: Sequence[Floats], row: int, before: Sequence[int], originals: dict[int, Original]) -> int | None:
    """The first of these counters that a later one repeats."""
    if not before:
        return None
    of_row = counters[row]
    at_once = max(1, min(_MAX_PAIRWISE, _MAX_BLOCK // max(1, len(of_row))))
    for begin in range(0, len(before), at_once):
        some = before[begin : begin + at_once]
        own = np.array([counters[at] for at in some])
        for at, steps in zip(some, own, strict=True):
            if at not in originals:
                originals[at] = Original.of(steps)
        same = _same([originals[at] for at in some], own, of_row)
        if same.any():
            return some[int(same.argmax())]
    return None


def _same(originals: Sequence[Original], own: Floats, steps: Floats) -> npt.NDArray[np.bool_]:
    """Whether another's increments are those of each original (a row of ``own``), but for rounding and for those that
    one sensor got a reading later.

    Small multiples of a counter's resolution are equal by chance, so that without larger ones all have to be.
    """
    total, telling = np.array([(one.total, one.telling) for one in originals]).T
    with np.errstate(invalid="ignore"):
        far = np.abs(total - steps.sum()) > _SUM_TOLERANCE * np.abs(total)
        equal = np.abs(own - steps) <= _FLOAT_TOLERANCE * np.maximum(np.abs(own), np.abs(steps))
    moved = (own != 0) | (steps != 0)
    large = np.minimum(own, steps) > telling[:, np.newaxis]
    count = large.sum(axis=1)
    enough = (equal & large).sum(axis=1) >= _MIN_EQUAL_SHARE * count
    is_same = np.where(count < _MIN_LARGE_INCREMENTS, (equal | ~moved).all(axis=1), enough)
    same: npt.NDArray[np.bool_] = is_same & moved.any(axis=1) & ~far
    return same


class _Near:
    """Counters whose sums are close, and how many they are (at least; all of them if a sum is no number)."""

    def __init__(self, totals: Floats) -> None:
        self._order = np.argsort(totals, kind="stable")
        ascending = totals[self._order]
        reach = 2 * _SUM_TOLERANCE * np.abs(totals)
        odd = ~np.isfinite(totals)
        self._begin = np.where(odd, 0, np.searchsorted(ascending, totals - reach))
        self._end = np.where(odd, len(totals), np.searchsorted(ascending, totals + reach, side="right"))
        self._odd = np.flatnonzero(odd)
        self.crowd = self._end - self._begin + len(self._odd)

    def before(self, row: int) -> list[int]:
        near = {*self._order[self._begin[row] : self._end[row]].tolist(), *self._odd.tolist()}
        return sorted(at for at in near if at < row)


class _Alike:
    """Counters that agree in a group of increments."""

    def __init__(self, counters: Sequence[Floats]) -> None:
        keys = np.concatenate(
            [_keys(np.array(counters[at : at + _BLOCK_COUNTERS])) for at in range(0, len(counters), _BLOCK_COUNTERS)]
        )
        self._groups: list[list[tuple[int, int]]] = [[] for _ in counters]  # those that a counter shares with another
        for group, column in enumerate(keys.T):
            _, number, count = np.unique(column, return_inverse=True, return_counts=True)
            for row in np.flatnonzero(count[number] > 1).tolist():
                self._groups[row].append((group, int(number[row])))
        self._members: dict[tuple[int, int], list[int]] = defaultdict(list)

    def add(self, row: int) -> None:
        for one in self._groups[row]:
            self._members[one].append(row)

    def before(self, row: int) -> list[int]:
        """Candidates before this row among the added counters."""
        return sorted({at for one in self._groups[row] for at in self._members.get(one, ())})


def _keys(steps: npt.NDArray[np.float64]) -> npt.NDArray[np.uint64]:
    """Per counter a number for each group of increments: their size and position."""
    steps = np.nan_to_num(steps)
    with np.errstate(divide="ignore"):
        size = np.floor(np.log(np.abs(steps)) * _STEPS_PER_E)
    word = np.where(np.isfinite(size), size, 0).astype(np.int64) * np.sign(steps).astype(np.int64)
    word += np.arange(steps.shape[1]) << 32
    columns = []
    for starts, width in _places(steps.shape[1]):
        at = starts[np.newaxis]
        if width > 1:
            at = at + steps[:, starts[..., np.newaxis] + np.arange(width)].argmax(axis=-1)
        each = np.take_along_axis(word, np.broadcast_to(at, (len(steps), *starts.shape)).reshape(len(steps), -1), 1)
        mixed = each.reshape(-1, *starts.shape).view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        key = np.zeros(mixed.shape[:2], np.uint64)
        for member in range(mixed.shape[2]):
            key = key * np.uint64(0xBF58476D1CE4E5B9) + mixed[..., member]
        columns.append(key)
    return np.concatenate(columns, axis=1)


def _places(length: int) -> Iterator[tuple[Ints, int]]:
    """Where groups are taken: (beginnings of stretches, a row per group; the length of a stretch, of which the largest
    increment counts). Of counters that move at all times single increments tell most, of bursts long stretches do."""
    random = np.random.default_rng(length)
    for groups, members, width in ((96, 3, 1), (32, 3, 8), (32, 3, length // 8)):
        width = max(1, min(width, length, 1024))
        yield random.integers(0, length - width + 1, (groups, members)), width
