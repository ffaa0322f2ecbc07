"""Engines: where attribution runs; the entry point for outputs, views and the command line.

``attribute`` checks the question, hands the work to an engine and makes tables of what comes back; ``regroup`` asks
again with other keys; ``user_curves`` gives the curves themselves. ``work.py`` says what an engine is.
"""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ..errors import OptionError, PartialResultWarning
from ..model import Attribution, Problem, Question, ReadOptions, Recording, counts
from ..model.question import make, split
from ..plugins import engines

if TYPE_CHECKING:
    from ..attribution.join import DeviceCurves, Plan


def attribute(
    source: Recording | str | os.PathLike[str],
    question: Question | None = None,
    *,
    spans: bool | str | os.PathLike[str] = False,
    engine: str = "local",
    threads: int | None = None,
    **fields: Any,
) -> Attribution:
    """Whose joules: energy given to spans, with idle, bounds and books that balance.

    ``source`` is a Recording or a path to read. Keyword arguments are the fields of
    :class:`wattribute.model.Question` (by, of, method, share, begin, end, …) and of
    :class:`wattribute.model.ReadOptions` (signals, offset, metric_kinds, format); a ``question`` holds the former. The
    result has ``rows``, ``devices`` (the books) and ``problems``. ``threads`` limits those of this machine.

    ``spans=True`` gives one row per span; a path streams those rows to Parquet (one file if it ends in .parquet, else a
    folder with a file per device and location) and leaves the rolled-up rows in the result. ``engine`` is "local", or
    "dask" with the address of a scheduler behind a colon ("dask:tcp://node:8786"); without one the client that is open
    in this process, else workers on this machine; or "arkouda" with "HOST:PORT", without one the server of ``connect``.
    """
    question, options = _asked(question, fields, threads)
    name, _, where = engine.partition(":")
    if spans and question.method == "solve":
        raise OptionError("method 'solve' gives means over all calls of a frame; rows per span need method 'linear'")
    runner = engines.get(name)
    if name != "local" and not isinstance(source, Recording):
        source = os.path.abspath(source)  # workers elsewhere read it too, and stand in other folders
        survey = getattr(runner, "survey", None)
        options = replace(options, survey=partial(survey, where, threads) if survey else None)
    from .cluster import session

    with session():  # one connection reads and solves
        if where and hasattr(runner, "reach"):
            runner.reach(where, threads)
        return _attribute(source, question, options, spans, engine)


def _attribute(
    source: Recording | str | os.PathLike[str],
    question: Question,
    options: ReadOptions,
    spans: bool | str | os.PathLike[str],
    engine: str,
) -> Attribution:
    name, _, where = engine.partition(":")
    base, recording, plan, groups, notes = _prepare(source, question, options)
    from ..attribution import rollup, separation
    from ..attribution.known_calls import with_known_calls
    from .spans import destination
    from .work import Work

    with destination(recording, plan, groups, spans, name) as to:
        done = engines.get(name).run(Work(recording, plan, groups, options.threads, where, to.folder))
        lost = [Problem("partial", done.unfinished)] if done.unfinished else []
        base = replace(base, noticed=(*base.noticed, *done.problems, *lost))
        to.finish(not lost)
    if lost:
        warnings.warn(done.unfinished, PartialResultWarning, stacklevel=3)
    solved = deque(done.solved)
    del done
    tables = rollup.tables(recording, plan, rollup.drained(solved))
    per = question.per
    rows = to.rows
    if rows is None:
        rows = with_known_calls(recording, question, tables.rows, tables.unit)
    if per is not None:
        notes += separation.inseparable(recording, plan)
    problems = tuple(dict.fromkeys((*base.problems, *plan.problems, *tables.problems, *notes)))
    return Attribution(
        recording=base,
        devices=tables.devices,
        rows=rows,
        question=question.but(share=plan.question.share, load=plan.question.load),
        problems=problems,
        unit=tables.unit,
        left_out=tables.left_out,
        engine=engine,
        count=None if per is None else counts.total(recording, per, plan.begin, plan.end),
    )


def regroup(attribution: Attribution, by: str | Sequence[str], **changed: Any) -> Attribution:
    """The same question about the same recording with other keys (and other changed fields of the question)."""
    question = attribution.question.but(by=by, **changed)
    if question == attribution.question:
        return attribution
    return attribute(attribution.recording, question, engine=attribution.engine)


def scope_fields(recording: Recording) -> dict[str, Any]:
    """Fields of a question that tell the command, other processes and static apart, where the recording can."""
    from ..attribution.bill import can_split

    return {"scope": "process", "static": "apart"} if can_split(recording) else {"static": "apart"}


def user_curves(
    source: Recording | str | os.PathLike[str], question: Question | None = None, **fields: Any
) -> list[DeviceCurves]:
    """Per (device, of) the device's joules(t) and each user's S(t), under a question.

    ``curves.energy`` has times (ticks), values (joules, from 0) and pieces; ``curves.split.curves[location]`` is the
    Curve whose rise over a span is the span's total; ``curves.source`` names device, signal, of and users.
    """
    base, recording, plan, groups, _ = _prepare(source, *_asked(question, fields, None))
    from ..attribution.join import curves

    of_row = {row: curve for group in groups for row, curve in curves(recording, plan, group).items()}
    there = len(base.locations)  # rows for other processes and static energy are no locations of the caller's
    return [of_row[row].of_locations(there) for row in sorted(of_row)]


def _asked(question: Question | None, fields: dict[str, Any], threads: int | None) -> tuple[Question, ReadOptions]:
    reading, asked = split(fields)
    if question is None:
        question = make(Question, asked)
    elif asked:
        question = make(Question, {**vars(question), **asked})
    return question, make(ReadOptions, {**reading, "threads": threads})


def _prepare(
    source: Recording | str | os.PathLike[str], question: Question, options: ReadOptions
) -> tuple[Recording, Recording, Plan, list[tuple[int, ...]], list[Problem]]:
    """The recording of the time asked for, the same with added rows (``attribution.bill``), and the planned work."""
    from ..alignment import overrides, sanity
    from ..attribution import join
    from ..attribution.clip import clipped
    from ..attribution.load import fitting
    from ..reading import as_recording

    recording = as_recording(source, options)
    first, last = question.window(recording)
    if first is not None and last is not None and first >= last:
        raise OptionError(f"the time from {question.begin} to {question.end} is empty")
    base = clipped(recording, first, last)
    question = fitting(base, question)
    user_overrides = overrides.overrides(base, question.topology, question.maps)
    notes = overrides.not_found(base, user_overrides)
    recording, plan = join.billed(base, join.plan(base, question, user_overrides, first, last))
    notes += sanity.concerning(sanity.examine(base), [source.row for source in plan.sources])
    return base, recording, plan, join.groups(plan), notes
