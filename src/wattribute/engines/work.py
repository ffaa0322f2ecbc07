"""Input and output of an engine.

An engine is a module that an entry point of the group ``wattribute.engines`` names, with one function::

    def run(work: Work) -> EngineResult

It solves ``work.groups`` wherever it likes. It may have a second one, ``reach(where, threads)``, which connects to the
server that the user named and raises before anything is read if there is none. ``engines.attribute`` has checked the
question before and makes the tables afterwards, so engines cannot differ in either.
``testing.contracts.EngineContract`` is what every engine has to fulfil.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from ..attribution.join import GroupResult, Map, Plan, books, users
from ..attribution.rollup import Grouping, RowSums, drained, grouping, merged, reduced
from ..attribution.rows import SpanFolder, write_rows
from ..attribution.single_pass import curves_and_parts
from ..model import Problem, Recording


class Work(NamedTuple):
    """A planned question."""

    recording: Recording
    plan: Plan
    groups: Sequence[tuple[int, ...]]  # rows of plan.sources, see attribution.join.groups
    threads: int | None = None
    where: str = ""  # what the user wrote after the engine's name: "dask:tcp://node:8786"
    spans: SpanFolder | None = None  # where one row per span goes, a file per device and location


class EngineResult(NamedTuple):
    """The answer, in any order: ``rollup`` adds sums up exactly."""

    solved: Sequence[GroupResult | RowSums]
    problems: Sequence[Problem] = ()  # what decoding elsewhere brought to light
    unfinished: str = ""  # what could not be finished, and why


MAX_GROUPS, MAX_EVENTS = 64, 1 << 21  # of groups that are solved together
LINES = 1 << 19  # sums of so many locations, devices and rows are held before they are added up: 100 MB


def reduce(
    work: Work, solved: Iterable[GroupResult], how: Grouping | None = None, numbers: Sequence[int] | None = None
) -> list[RowSums]:
    """Add up the results of groups as they arrive."""
    how = how or grouping(work.recording, work.plan)
    done: list[RowSums] = []
    waiting = deque[GroupResult]()
    lines = 0
    for one in solved:
        waiting.append(one)
        lines += sum(part.fold.self_value.size for part in one.parts)
        del one  # what is added up is freed
        if lines >= LINES:
            done.append(reduced(work.plan, how, drained(waiting), numbers))
            while len(done) > 1 and len(done[-2]) <= 2 * len(done[-1]):  # rows of one frame in many groups are one
                done[-2:] = [merged(work.plan.keys, done[-2:])]
            lines = 0
    if waiting or not done:
        done.append(reduced(work.plan, how, drained(waiting), numbers))
    return done


def together(work: Work, groups: Iterable[tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
    """Neighbouring groups of one view as one, as long as they are small: a call for each costs more than the work."""
    sources, events = work.plan.sources, work.recording.locations.events
    some: list[tuple[int, ...]] = []
    size = 0
    for group in groups:
        own = int(events[users(work.plan, group)].sum())
        is_other = bool(some) and sources[group[0]].of != sources[some[0][0]].of
        if some and (is_other or len(some) >= MAX_GROUPS or size + own > MAX_EVENTS):
            yield tuple(chain(*some))
            some, size = [], 0
        some.append(group)
        size += own
    if some:
        yield tuple(chain(*some))


def solve(work: Work, group: Sequence[int], each: Map[Any, Any] = map) -> GroupResult:
    """The parts and books of one group, its span rows written; ``each`` maps over locations and keeps their order."""
    by_row, folded = curves_and_parts(work.recording, work.plan, group, each)
    if work.spans is not None:
        write_rows(work.recording, work.plan, by_row, users(work.plan, group), work.spans, each)
    return GroupResult(folded, books(by_row))
