"""What an engine is given and gives back.

An engine is a module of this folder that is named in ``engines.ENGINES`` and has one function::

    def run(work: Work) -> Done

It solves ``work.groups`` wherever it likes. ``engines.attribute`` has checked the question before and makes the tables
afterwards, so engines cannot differ in either. tests/engines/test_contract.py is what every engine has to fulfil.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..attribution.guess import curves_and_parts
from ..attribution.join import Map, Plan, Solved, books, users
from ..attribution.rows import SpanFolder, write_rows
from ..model import Problem, Recording


class Work(NamedTuple):
    """A planned question."""

    recording: Recording
    plan: Plan
    groups: Sequence[tuple[int, ...]]  # rows of plan.sources, see attribution.join.groups
    threads: int | None = None
    where: str = ""  # what the user wrote after the engine's name: "dask:tcp://node:8786"
    spans: SpanFolder | None = None  # where one row per span goes, a file per device and location


class Done(NamedTuple):
    """The answer, in any order: ``rollup`` adds sums up in location order."""

    solved: Sequence[Solved]
    problems: Sequence[Problem] = ()  # what decoding elsewhere brought to light, and what could not be finished


def solve(work: Work, group: Sequence[int], each: Map[Any, Any] = map) -> Solved:
    """The parts and books of one group, its span rows written; ``each`` maps over locations and keeps their order."""
    found, folded = curves_and_parts(work.recording, work.plan, group, each)
    if work.spans is not None:
        write_rows(work.recording, work.plan, found, users(work.plan, group), work.spans, each)
    return Solved(folded, books(found))
