"""One pass where two would be needed: busy intervals guessed, and found right while the spans are folded.

Curves of a shared device need everybody's busy intervals first (``join.busy``), which is a pass over all events. Where
the outermost span of each user lasts from its first event to its last, as a program's ``main`` does, a source can guess
them (``model.spans.Guesses``). A guess that turns out wrong ends that fold at once; the answer is always the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..model import Intervals, Recording
from ..model.spans import Guesses
from .join import DeviceCurves, Map, Part, Plan, asked, busy, curves, masks, parts, users


def curves_and_parts(
    recording: Recording, plan: Plan, group: Sequence[int], each: Map[Any, Any] = map
) -> tuple[dict[int, DeviceCurves], list[Part]]:
    """A group's curves, and its locations folded against them."""
    when = _guessed(recording, plan, group, each)
    if when:
        found = curves(recording, plan, group, each, when)
        hopeful = _parts(recording, plan, found, when, users(plan, group), each)
        done = [part for part in hopeful if part is not None]
        if len(done) == len(hopeful):
            return found, done
        when = {part.location: when[part.location] for part in done if part.location in when}
    unknown = [location for location in asked(plan, group) if location not in when]
    when |= busy(recording, plan, group, unknown, each)
    found = curves(recording, plan, group, each, when)
    return found, parts(recording, plan, found, users(plan, group), each)


def _guessed(recording: Recording, plan: Plan, group: Sequence[int], each: Map[Any, Any]) -> dict[int, Intervals]:
    """When users may be busy; nothing if the source has no idea of one of them."""
    source, crowd, options = recording.spans, asked(plan, group), plan.options
    one_fold = not (options.sliced or options.statistics or options.method == "solve")  # as _parts does it
    if not isinstance(source, Guesses) or not one_fold:
        return {}
    mask = masks(recording, plan.sources[group[0]].of)
    found = list(each(lambda location: source.guess_busy(location, mask(location)), crowd))
    return {} if any(one is None for one in found) else dict(zip(crowd, found, strict=True))


def _parts(
    recording: Recording,
    plan: Plan,
    found: Mapping[int, DeviceCurves],
    when: Mapping[int, Intervals],
    locations: Sequence[int],
    each: Map[Any, Any],
) -> list[Part | None]:
    """Each location folded; None where the guess was wrong, and for all that come after."""
    source = recording.spans
    assert isinstance(source, Guesses)
    mask = masks(recording, plan.sources[next(iter(found))].of)
    wrong: list[int] = []

    def one(location: int) -> Part | None:
        if wrong:  # all of them have to be done again
            return None
        if location not in when:
            return parts(recording, plan, found, [location])[0]
        mine = tuple(row for row in found if location in found[row].split.curves)
        against = [found[row].split.curves[location] for row in mine]
        fold = source.fold_if(location, against, plan.keys.masked(mask(location)), when[location])
        if fold is None:
            wrong.append(location)
            return None
        return Part(location, mine, fold)

    return list(each(one, locations))
