"""Rows of ``--per`` that cannot be separated: work of two kinds on one device at the same time.

A step of a batch that prefills one request and decodes others is one draw of power: how much of it was whose is what
the share rule says, not what a meter saw. Of each frame that counted something, what the device used while only that
frame was active is certain; the rest of what it used while the frame was active may or may not be the frame's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..model import Problem, Recording, counts
from . import slices
from .join import Plan, masks, metered

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
NEGLIGIBLE = 1e-9  # of what a frame was active in


class Separation(NamedTuple):
    """What a device used while only this row was active, and while it was active at all; both in joules."""

    alone: Floats
    within: Floats


def inseparable(recording: Recording, plan: Plan) -> list[Problem]:
    """A line per device and frame that counted work while other frames that did were active on the device."""
    per, question = plan.question.per, plan.question
    if per is None or question.keys not in (("frame",), ("device", "frame")) or question.share == "full":
        return []
    problems = []
    for source in plan.sources:
        curve = metered(source, recording.clock, question.integrate).energy.between(plan.begin, plan.end)
        if not source.entry.counted or len(source.users) < 2 or not len(curve.times):
            continue
        size, mask = len(plan.keys), masks(recording, source.of)
        done, pieces, counted = np.zeros(size), [], counts.by_location(recording, per)
        for user in source.users:
            keys = plan.keys.masked(mask(user))
            own = counts.steps(counted.get(user, []))
            done += recording.spans.fold(user, [own], keys).self_value[0]
            pieces.append(slices.pieces(recording.spans.spans(user), keys)["self"])
        start, end, row = (np.concatenate(column) for column in zip(*pieces, strict=True))
        kept = (done > 0)[row] & (end > start)
        separated = separate(start[kept], end[kept], row[kept], size, curve.times, curve.values)
        for at in np.flatnonzero(separated.within - separated.alone > NEGLIGIBLE * separated.within).tolist():
            low, high = separated.alone[at] / done[at], separated.within[at] / done[at]
            shared = 1 - separated.alone[at] / separated.within[at]
            text = (
                f"{plan.keys.labels[0][at]} and other work shared {source.device.name} for {shared:.0%} of what it used"
            )
            text += f" meanwhile: they cannot be separated there, and share {question.share!r} is a rule, not a reading"
            problems.append(Problem("inseparable", f"{text}; certain is {low:.3g} to {high:.3g} J per {per}"))
    return problems


def separate(start: Ints, end: Ints, row: Ints, rows: int, times: Ints, energy: Floats) -> Separation:
    """Pieces of time of each row (they may overlap, several users run one frame) against a curve of energy."""
    unions = [_union(start[row == one], end[row == one]) for one in range(rows)]
    edges = np.unique(np.concatenate([column for union in unions for column in union]))
    at = np.interp(edges, times, energy)
    active = np.zeros(len(edges) + 1, np.int64)
    for begins, ends in unions:
        np.add.at(active, np.searchsorted(edges, begins), 1)
        np.add.at(active, np.searchsorted(edges, ends), -1)
    single = np.cumsum(active)[: max(len(edges) - 1, 0)] == 1
    alone = np.concatenate([[0.0], np.cumsum(np.diff(at) * single)])
    sums = [
        [
            float((curve[np.searchsorted(edges, ends)] - curve[np.searchsorted(edges, begins)]).sum())
            for curve in (alone, at)
        ]
        if len(begins)
        else [0.0, 0.0]
        for begins, ends in unions
    ]
    both = np.array(sums).reshape(rows, 2)
    return Separation(both[:, 0], both[:, 1])


def _union(start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Disjoint intervals that cover the same time."""
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order]) if len(end) else end
    opens = np.concatenate([[True], start[1:] > end[:-1]])[: len(start)]
    return start[opens], end[np.concatenate([opens[1:], [True]])[: len(end)]]
