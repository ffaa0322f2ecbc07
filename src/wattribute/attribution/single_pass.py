"""Speculative single pass: guess the busy intervals, verify them during the fold, fall back to two passes.

Curves of a shared device need all users' busy intervals first (``join.busy``), which is a pass over all events. Where
the outermost span of each user lasts from its first event to its last, as a program's ``main`` does, a source can guess
them (``model.spans.Guesses``). A guess that turns out wrong ends that fold at once; the answer is always the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..model import Intervals, Recording
from ..model.spans import Guesses
from .join import DeviceCurves, Map, Part, Plan, asked, batches, busy, curves, folded, masks, parts, users


def curves_and_parts(
    recording: Recording, plan: Plan, group: Sequence[int], each: Map[Any, Any] = map
) -> tuple[dict[int, DeviceCurves], list[Part]]:
    """A group's curves, and its locations folded against them."""
    when: dict[int, Intervals] = {}
    guessed = _guessed(recording, plan, group, each)
    if guessed:
        whole = _intervals(guessed)
        when = busy(recording, plan, group, [one for one in asked(plan, group) if one not in guessed], each)
        by_row = curves(recording, plan, group, each, {**whole, **when})
        locations = users(plan, group)
        done = folded(recording, plan, by_row, locations, each, guessed)
        solved = [location for part in done for location in part.locations]
        if len(solved) == len(locations):
            return by_row, done
        when |= {location: whole[location] for location in solved if location in whole}
    unknown = [location for location in asked(plan, group) if location not in when]
    when |= busy(recording, plan, group, unknown, each)
    by_row = curves(recording, plan, group, each, when)
    return by_row, parts(recording, plan, by_row, users(plan, group), each)


def _intervals(guessed: Mapping[int, tuple[int, int]]) -> dict[int, Intervals]:
    start, end = np.array(list(guessed.values()), np.int64).reshape(-1, 2).T
    return {location: Intervals(start[i : i + 1], end[i : i + 1]) for i, location in enumerate(guessed)}


def _guessed(recording: Recording, plan: Plan, group: Sequence[int], each: Map[Any, Any]) -> dict[int, tuple[int, int]]:
    """Guess when users are busy: the ones of whom the source has an idea."""
    source, crowd = recording.spans, asked(plan, group)
    if not isinstance(source, Guesses) or not plan.question.one_fold or any(plan.sources[row].parts for row in group):
        return {}
    mask = masks(recording, plan.sources[group[0]].of)
    some = list(batches(recording, crowd, each))
    guesses = [one for batch in each(lambda batch: source.guess_busy(batch, mask(batch[0])), some) for one in batch]
    known = dict(zip((location for batch in some for location in batch), guesses, strict=True))
    return {location: ends for location, ends in known.items() if ends}
