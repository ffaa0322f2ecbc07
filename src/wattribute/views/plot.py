"""``wattribute.plot``: a function per kind of chart, Attribution → Altair chart; ``draw`` by name, ``save`` to a file.

Each function asks attribution for what it shows, draws it (``charts/``) and says in the caption what is idle, what was
merged and what went wrong. Options are the same everywhere: ``theme`` "light" or "dark", ``top`` how many rows before
the rest becomes "other".
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import NoDataError, OptionError
from . import charts
from .charts.history import histogram, history
from .charts.of_paths import callgraph, dot, flame, icicle, sunburst
from .charts.of_rows import books, distribution, heatmap, runs
from .charts.of_time import bare_power, carbon, memory, node, panels, power, timeline
from .save import FORMATS, check_place, format_of, save
from .save import write as write_file

if TYPE_CHECKING:
    from ..model import Attribution, Recording

__all__ = [
    "KINDS", "books", "callgraph", "carbon", "distribution", "dot", "draw", "flame", "heatmap", "histogram", "history",
    "icicle", "memory", "node", "panels", "power", "runs", "save", "sunburst", "timeline", "write",
]  # fmt: skip

_DRAWN: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        power, timeline, node, flame, icicle, sunburst, heatmap, distribution, callgraph, panels, memory, runs, history,
        histogram, carbon, books,
    )
}  # fmt: skip
KINDS = charts.KINDS
_BY = {"heatmap": ("process", "frame"), "books": ("device", "frame", "paradigm", "role")}
_PATHS = ("flame", "icicle", "sunburst", "callgraph")
OF_EXPERIMENTS = ("history", "histogram")  # their source is an Experiment (``wattribute.experiment``)
_SIGNALS = ("panels", "memory")


def draw(kind: str, sources: Sequence[Any], *, looks: dict[str, Any] | None = None, zone: str | None = None,
         **selection: Any) -> Any:  # fmt: skip
    """A chart by its name from recordings or paths, under the options of ``attribute``.

    ``looks`` (theme, top, value, colour) go to the chart; those it has no use for are an error.
    """
    if kind not in _DRAWN:
        raise OptionError.unknown("kind of chart", kind, _DRAWN)
    function, looks = _DRAWN[kind], {name: value for name, value in (looks or {}).items() if value is not None}
    wrong = sorted(set(looks) - set(inspect.signature(function).parameters))
    if wrong:
        raise OptionError(f"a chart of {kind} has no {wrong[0]}")
    if kind in OF_EXPERIMENTS:
        if len(sources) != 1 or selection:
            raise OptionError(f"a chart of {kind} shows one experiment as a whole; choose with --by and --zone")
        return function(sources[0], **looks)
    if kind == "runs":
        from ..carbon import emissions

        many = [_attributed(source, ("device",), selection) for source in sources]
        return runs(many, [emissions(one, zone=zone) for one in many], **looks)
    if len(sources) != 1:
        raise OptionError(f"a chart of {kind} shows one recording, not {len(sources)}; many belong to `plot runs`")
    return _one(kind, sources[0], looks, zone, selection)


def write(kind: str, sources: Sequence[Any], output: str | os.PathLike[str], *, looks: dict[str, Any] | None = None,
          zone: str | None = None, scale: float = 2.0, **selection: Any) -> Path:  # fmt: skip
    """Draw a chart into a file; a call graph also as ``.dot`` for Graphviz."""
    ending = format_of(output, (*FORMATS, "dot") if kind == "callgraph" else FORMATS)
    check_place(output)
    if ending != "dot":
        return save(draw(kind, sources, looks=looks, zone=zone, **selection), output, scale)
    if len(sources) != 1:
        raise OptionError("a call graph shows one recording")
    wanted = {name: value for name, value in (looks or {}).items() if name in ("theme", "top") and value is not None}
    return write_file(output, dot(stacks(sources[0], selection), **wanted))


def _one(kind: str, source: Any, looks: dict[str, Any], zone: str | None, selection: dict[str, Any]) -> Any:
    if kind in _SIGNALS:
        return _DRAWN[kind](read_source(source, selection), **looks)
    if kind == "carbon":
        from ..carbon import emissions

        found = _attributed(source, ("device",), selection)
        return carbon(found, emissions(found, zone=zone), **looks)
    if kind == "power":
        recording = read_source(source, selection)
        try:
            return power(_attributed(recording, ("device", "frame"), selection), **looks)
        except NoDataError as error:
            return bare_power(recording, metric=selection.get("metric"), because=f"{error}.", **looks)
    if kind in _PATHS:
        return _DRAWN[kind](stacks(source, selection), **looks)
    return _DRAWN[kind](_attributed(source, _BY.get(kind, ("device", "frame")), selection), **looks)


def stacks(source: Any, selection: dict[str, Any]) -> Attribution:
    """Energy by call path: of host threads when there are any and nobody said otherwise."""
    from .charts.ask import has_stacks

    recording = read_source(source, selection)
    if selection.get("of") is None and has_stacks(recording):
        try:
            return _attributed(recording, ("path",), {**selection, "of": "host"})
        except NoDataError:
            pass
    return _attributed(recording, ("path",), selection)


def read_source(source: Any, selection: dict[str, Any]) -> Recording:
    """The recording of a source; options that select what is read are taken out of ``selection``."""
    from ..alignment.joining import JOINING, READING, obtained
    from ..model import Recording

    names = JOINING if isinstance(source, Recording) else READING
    return obtained(source, {name: selection.pop(name) for name in tuple(selection) if name in names})


def _attributed(source: Any, by: Sequence[str], selection: dict[str, Any]) -> Attribution:
    from ..engines import attribute

    return attribute(source, by=tuple(by), **selection)
