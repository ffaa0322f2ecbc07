"""Work cut into tasks for engines that send it elsewhere.

A *task* is some whole groups, or one group whose locations are too many for a task and are shared out. It carries the
part of the plan it needs; its results are in the numbers of the whole plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from ..attribution.join import Plan, asked, users
from ..model import Recording
from .work import Work

T = TypeVar("T")
TASKS_PER_SLOT = 4  # so that a slow or lost worker leaves little to be done again
MAX_GROUP_EXCESS = 1.25  # times a fair task: a whole group saves a pass over its events (attribution.single_pass)


class Task(NamedTuple):
    """Whole groups, renumbered to the sources in ``plan``; ``sources`` are their numbers in the whole plan."""

    plan: Plan
    groups: tuple[tuple[int, ...], ...]
    sources: tuple[int, ...]
    events: int

    @property
    def locations(self) -> list[int]:
        return users(self.plan, range(len(self.sources)))


class Large(NamedTuple):
    """One group whose locations are shared out: first ``busy`` of some, then curves from all, then parts of some."""

    task: Task
    asked: tuple[tuple[int, ...], ...]  # locations whose busy intervals are needed, in shares
    shares: tuple[tuple[int, ...], ...]  # all its locations, in shares


def cut(work: Work, slots: int) -> list[Task | Large]:
    """Tasks of about equal size, the largest first."""
    recording, plan = work.recording, work.plan
    members = [users(plan, group) for group in work.groups]
    weights = [events_of(recording, locations) for locations in members]
    fair = sum(weights) / max(slots, 1)
    most = max(1, int(fair) // TASKS_PER_SLOT)
    tasks: list[Task | Large] = []
    small: list[tuple[tuple[int, ...], int]] = []
    for group, weight, locations in zip(work.groups, weights, members, strict=True):
        if weight > MAX_GROUP_EXCESS * fair and len(locations) > 1:
            needed = _shares(recording, asked(plan, group), most)
            tasks.append(Large(_task(plan, [group], weight), needed, _shares(recording, locations, most)))
        else:
            small.append((group, weight))
    tasks += [
        _task(plan, [group for group, _ in some], sum(weight for _, weight in some)) for some in _filled(small, most)
    ]
    return sorted(tasks, key=lambda one: -(one.task.events if isinstance(one, Large) else one.events))


def _task(plan: Plan, groups: Sequence[Sequence[int]], events: int) -> Task:
    sources = tuple(row for group in groups for row in group)
    number = {row: i for i, row in enumerate(sources)}
    own = replace(plan, sources=tuple(plan.sources[row] for row in sources), problems=())
    return Task(own, tuple(tuple(number[row] for row in group) for group in groups), sources, events)


def events_of(recording: Recording, locations: Sequence[int]) -> int:
    """Total events of locations; a location that declares none counts as one."""
    return sum(max(1, int(recording.locations.events[location])) for location in locations)


def batches(recording: Recording, together: Sequence[Sequence[int]], most: int) -> list[list[int]]:
    """Locations in no more than about ``most`` batches of about equal size; those that stand together stay so."""
    weights = [events_of(recording, locations) for locations in together]
    room = max(1, sum(weights) // max(1, most))
    filled: list[list[int]] = []
    left = 0
    for locations, weight in zip(together, weights, strict=True):
        if not filled or left <= 0:
            filled.append([])
            left = room
        filled[-1] += locations
        left -= weight
    return filled


def _shares(recording: Recording, locations: Sequence[int], most: int) -> tuple[tuple[int, ...], ...]:
    weighed = [(location, events_of(recording, [location])) for location in locations]
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
