"""Work cut into tasks for engines that send it elsewhere.

A *task* is some whole groups, or some locations of one group that is too large for a task. It carries the part of the
plan it needs (a task's readings, not everybody's), and its results are told in the numbers of the whole plan again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from ..attribution.join import Plan, Solved, asked, users
from ..model import Recording
from .work import Work

T = TypeVar("T")
TASKS_PER_SLOT = 4  # so that a slow or lost worker leaves little to be done again
UNEVEN = 1.25  # a whole group saves a pass over its events (see attribution.guess), so it may be a little too large


class Task(NamedTuple):
    """Whole groups, renumbered to the sources in ``plan``; ``sources`` are their numbers in the whole plan."""

    plan: Plan
    groups: tuple[tuple[int, ...], ...]
    sources: tuple[int, ...]
    events: int

    def told(self, solved: Solved) -> Solved:
        """A result in the numbers of the whole plan."""
        number = self.sources
        parts = [part._replace(sources=tuple(number[row] for row in part.sources)) for part in solved.parts]
        return Solved(parts, [book._replace(source=number[book.source]) for book in solved.books])


class Large(NamedTuple):
    """One group whose locations are shared out: first ``busy`` of some, then curves from all, then parts of some."""

    task: Task
    asked: tuple[tuple[int, ...], ...]  # locations whose busy intervals are needed, in shares
    shares: tuple[tuple[int, ...], ...]  # all its locations, in shares


def cut(work: Work, slots: int) -> list[Task | Large]:
    """Tasks of about equal size, the largest first."""
    recording, plan = work.recording, work.plan
    weights = [_events(recording, users(plan, group)) for group in work.groups]
    fair = sum(weights) / max(slots, 1)
    most = max(1, int(fair) // TASKS_PER_SLOT)
    found: list[Task | Large] = []
    small: list[tuple[tuple[int, ...], int]] = []
    for group, weight in zip(work.groups, weights, strict=True):
        if weight > UNEVEN * fair and len(users(plan, group)) > 1:
            task = _task(plan, [group], weight)
            needed = _shares(recording, asked(plan, group), most)
            found.append(Large(task, needed, _shares(recording, users(plan, group), most)))
        else:
            small.append((group, weight))
    found += [
        _task(plan, [group for group, _ in some], sum(weight for _, weight in some)) for some in _filled(small, most)
    ]
    return sorted(found, key=lambda one: -(one.task.events if isinstance(one, Large) else one.events))


def _task(plan: Plan, groups: Sequence[Sequence[int]], events: int) -> Task:
    sources = tuple(row for group in groups for row in group)
    number = {row: i for i, row in enumerate(sources)}
    own = replace(plan, sources=tuple(plan.sources[row] for row in sources), problems=())
    return Task(own, tuple(tuple(number[row] for row in group) for group in groups), sources, events)


def _events(recording: Recording, locations: Sequence[int]) -> int:
    """What locations weigh; one that declares nothing weighs something all the same."""
    return sum(max(1, int(recording.locations.events[location])) for location in locations)


def _shares(recording: Recording, locations: Sequence[int], most: int) -> tuple[tuple[int, ...], ...]:
    weighed = [(location, _events(recording, [location])) for location in locations]
    return tuple(tuple(location for location, _ in some) for some in _filled(weighed, most))


def _filled(items: Sequence[tuple[T, int]], most: int) -> list[list[tuple[T, int]]]:
    """Neighbours together as long as they weigh no more than ``most``; a heavy one is alone."""
    bags: list[list[tuple[T, int]]] = []
    room = 0
    for item in items:
        if not bags or item[1] > room:
            bags.append([])
            room = most
        bags[-1].append(item)
        room -= item[1]
    return bags
