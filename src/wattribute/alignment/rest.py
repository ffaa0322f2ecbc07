"""The rest of a node: what its meter saw beyond its metered parts, as a separate curve.

Computed per window of the node's meter. Sensors answer at different times, so single windows may come out negative;
they are carried into their neighbours, so that the curve never falls and its sum is kept. Windows in which a part was
not metered make a second curve.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..model import Intervals
from .energy import Energy

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def rest(node: Energy, parts: Sequence[Energy]) -> tuple[Energy, Energy]:
    """(the rest while all parts were metered, the node minus what was metered while one was not)."""
    edges = node.times
    if len(edges) < 2:
        return node, node
    rises = np.diff(node.values)
    metered = np.ones(len(rises), np.bool_)
    for part in parts:
        rises = rises - _rises(part, edges)
        metered &= _covers(part, edges)
    steps = _carried(rises)
    return _curve(node, np.where(metered, steps, 0.0), metered), _curve(node, np.where(metered, 0.0, steps), ~metered)


def excess(node: Energy, parts: Sequence[Energy]) -> tuple[float, float]:
    """By how much parts exceed their whole, and how much errors of the sensors and a window at each end explain."""
    if len(node.times) < 2:
        return 0.0, 0.0
    sums = [_rises(part, node.times) for part in parts]
    ends = float(np.diff(node.values).max()) + sum(float(rises.max(initial=0.0)) for rises in sums)
    used = [float(rises.sum()) for rises in sums]
    error = _gain(node) * node.measured + sum(_gain(part) * joules for part, joules in zip(parts, used, strict=True))
    return sum(used) - node.measured, error + ends


def _gain(energy: Energy) -> float:
    return energy.signal.gain_error or _UNKNOWN_GAIN_ERROR


_UNKNOWN_GAIN_ERROR = 0.05  # of a sensor whose error is not known


def _spacing(times: Ints) -> int:
    return int(np.median(np.diff(times))) if len(times) > 1 else 0


def _rises(part: Energy, edges: Ints) -> Floats:
    """What a part used in each window; what it used a window before the first and after the last belongs to these."""
    if not len(part.times):
        return np.zeros(len(edges) - 1)
    reach = max(_spacing(edges), _spacing(part.times))
    at = edges.copy()
    at[0], at[-1] = at[0] - reach, at[-1] + reach
    return np.diff(part.at(at))


def _covers(part: Energy, edges: Ints) -> npt.NDArray[np.bool_]:
    """Windows in which a part was metered, give or take one of its own readings."""
    if not len(part.times):
        return np.zeros(len(edges) - 1, np.bool_)
    reach = max(_spacing(part.times), _spacing(edges), part.reach_ticks)
    start, end = part.pieces.start - reach, part.pieces.end + reach
    joined = np.concatenate([[True], start[1:] > end[:-1]])
    first, last = start[joined], end[np.append(np.flatnonzero(joined)[1:] - 1, len(end) - 1)]
    piece = np.searchsorted(first, edges[:-1], side="right") - 1
    inside: npt.NDArray[np.bool_] = (piece >= 0) & (edges[1:] <= last[np.maximum(piece, 0)])
    return inside


def _carried(rises: Floats) -> Floats:
    """Rises of which none is negative, negative ones carried into their neighbours; the sum is kept if it can be."""
    raw = np.concatenate([[0.0], np.cumsum(rises)])
    whole = max(0.0, float(raw[-1]))
    upper = np.minimum(np.maximum.accumulate(raw), whole)
    lower = np.maximum(np.minimum.accumulate(raw[::-1])[::-1], 0.0)
    values = (upper + np.minimum(lower, whole)) / 2
    values[0], values[-1] = 0.0, whole
    steps: Floats = np.diff(values)
    return steps


def _curve(node: Energy, steps: Floats, metered: npt.NDArray[np.bool_]) -> Energy:
    values = np.concatenate([[0.0], np.cumsum(steps)])
    return replace(node, values=values, least=steps, most=steps, pieces=_pieces(node, metered), base=0.0, problems=())


def _pieces(node: Energy, metered: npt.NDArray[np.bool_]) -> Intervals:
    """Where the node was metered and the windows are of the kind asked for."""
    edges = node.times
    change = np.flatnonzero(np.diff(metered.astype(np.int8), prepend=0, append=0))
    starts, ends = edges[change[0::2]], edges[change[1::2]]
    pairs = [
        (max(int(a), int(c)), min(int(b), int(d)))
        for a, b in zip(starts, ends, strict=True)
        for c, d in zip(node.pieces.start, node.pieces.end, strict=True)
        if max(int(a), int(c)) < min(int(b), int(d))
    ]
    columns = np.array(pairs, np.int64).reshape(-1, 2)
    return Intervals(columns[:, 0].copy(), columns[:, 1].copy())
