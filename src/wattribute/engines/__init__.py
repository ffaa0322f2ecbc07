"""Where attribution runs. ``attribute`` is the front door: it checks the question, hands the work to an engine and
makes tables of what comes back. ``work.py`` says what an engine is."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..errors import OptionError
from ..model import Attribution, Problem, Recording

if TYPE_CHECKING:
    from ..attribution.join import DeviceCurves, Plan

ENGINES = ("local", "dask", "arkouda")  # each a module of this folder
_NOT_ASKED_AGAIN = ("source", "reading", "spans", "signals", "offset")  # options of an Attribution are without these


def attribute(
    source: Recording | str | os.PathLike[str],
    *,
    metric: str | None = None,
    of: str | Sequence[str] | None = None,
    by: str | Sequence[str] = ("device", "frame"),
    method: str = "linear",
    share: str = "even",
    load: str | None = None,
    integrate: str = "trapezoid",
    bounds: bool = True,
    statistics: bool = False,
    topology: Any = None,
    maps: Sequence[str] = (),
    begin: float | str | None = None,
    end: float | str | None = None,
    spans: bool | str | os.PathLike[str] = False,
    engine: str = "local",
    threads: int | None = None,
    signals: Any = (),
    offset: float | None = None,
    **reading: Any,
) -> Attribution:
    """Whose joules: energy given to spans, with idle, bounds and books that balance.

    ``source`` is a Recording or a path to read. ``topology`` is a TOML file or a function ``(signal, locations) ->
    locations``; ``maps`` are texts ``"[HOST/]SIGNAL_RE -> NAME, NAME"``. ``begin`` and ``end`` are seconds since the
    recording's start, or ISO 8601. ``spans=True`` gives one row per span; a path streams those rows to Parquet (one
    file if it ends in .parquet, else a folder with a file per device and location) and leaves the rolled-up rows in
    the result. ``engine`` is "local", or "dask" with the address of a scheduler behind a colon ("dask:tcp://node:8786");
    without one the client that is open in this process, else workers on this machine; or "arkouda" with "HOST:PORT",
    without one the server of ``connect``. ``signals`` are power logs of other tools, joined by wall clock or marks;
    ``offset`` seconds are added to their times. Further keyword arguments (process, frame, exclude_frame, metric_kinds,
    format) select what is read.
    """
    given = {name: value for name, value in locals().items() if name not in _NOT_ASKED_AGAIN} | reading
    recording, plan, groups, notes = _prepare(source, signals=signals, offset=offset, **given)
    from ..attribution import rollup
    from .spans import destination
    from .work import Work

    if spans and method == "solve":
        raise OptionError("method 'solve' tells means over all calls of a frame; rows per span need method 'linear'")
    name, _, where = engine.partition(":")
    with destination(recording, plan, groups, spans, name) as to:
        done = import_module(f".{name}", __name__).run(Work(recording, plan, groups, threads, where, to.folder))
        recording = replace(recording, noticed=(*recording.noticed, *done.problems))
        to.finish(done.problems)
    devices, rows, told = rollup.tables(recording, plan, done.solved)
    rows = rows if to.rows is None else to.rows
    problems = tuple(dict.fromkeys((*recording.problems, *plan.problems, *told, *notes)))
    options = plan.options
    return Attribution(recording, devices, rows, options.by, options.method, options.share, problems, given)


def user_curves(source: Recording | str | os.PathLike[str], **given: Any) -> list[DeviceCurves]:
    """Per (device, of) the device's joules(t) and each user's S(t), under the options of ``attribute``.

    ``found.energy`` has times (ticks), values (joules, from 0) and pieces; ``found.split.curves[location]`` is the
    Curve whose rise over a span is the span's total; ``found.source`` names device, signal, of and users.
    """
    recording, plan, groups, _ = _prepare(source, **given)
    from ..attribution.join import curves

    found = {row: curve for group in groups for row, curve in curves(recording, plan, group).items()}
    return [found[row] for row in sorted(found)]


def _prepare(
    source: Recording | str | os.PathLike[str],
    topology: Any = None,
    maps: Sequence[str] = (),
    begin: float | str | None = None,
    end: float | str | None = None,
    engine: str = "local",
    threads: int | None = None,
    **given: Any,
) -> tuple[Recording, Plan, list[tuple[int, ...]], list[Problem]]:
    from ..alignment import overrides, sanity
    from ..alignment.joining import READING, obtained
    from ..attribution import join
    from ..attribution.clip import clipped
    from ..attribution.options import checked, moment

    if engine.partition(":")[0] not in ENGINES:
        raise OptionError.unknown("engine", engine.partition(":")[0], ENGINES)
    if threads is not None and threads < 1:
        raise OptionError(f"threads has to be at least 1, not {threads}")
    reading = {name: given.pop(name) for name in READING if name in given}
    wrong = sorted(set(given) - set(checked.__code__.co_varnames[: checked.__code__.co_argcount]))
    if wrong:
        raise OptionError.unknown("option", wrong[0], (*checked.__annotations__, *READING, "topology", "maps"))
    options = checked(**given)
    if engine != "local" and not isinstance(source, Recording):
        source = os.path.abspath(source)  # workers elsewhere read it too, and stand in other folders
    recording = obtained(source, reading, threads)
    first, last = moment(begin, recording.clock), moment(end, recording.clock)
    if first is not None and last is not None and first >= last:
        raise OptionError(f"the time from {begin} to {end} is empty")
    recording = clipped(recording, first, last)
    said = overrides.overrides(recording, topology, (maps,) if isinstance(maps, str) else maps)
    plan = join.plan(recording, options, said, first, last)
    notes = sanity.concerning(sanity.examine(recording), [source.row for source in plan.sources])
    return recording, plan, join.groups(plan), notes
