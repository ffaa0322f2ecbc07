"""``wattribute.plot``: charts by name, ``draw`` for one from a recording, ``write`` and ``save`` for files.

``plot.heatmap(attribution, top=10)`` is an Altair chart, and so are all others of ``charts``. Each asks attribution for
what it shows and says in the caption what is idle, what was merged and what went wrong. Options are the same
everywhere: ``theme`` "light" or "dark", ``top`` how many rows before the rest becomes "other".
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import NoDataError, OptionError
from ..files import write_file
from . import charts, names
from .charts.canvas import wrap
from .save import FORMATS, check_place, format_of, save

if TYPE_CHECKING:
    from ..model import Recording
    from ..plugins import Chart

__all__ = ["draw", "read_source", "save", "write"]


def __getattr__(name: str) -> Chart[Any]:
    try:
        return charts.get(name)
    except OptionError as error:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: {error}") from error


def __dir__() -> list[str]:
    return [*__all__, *(chart.name for chart in charts.every())]


def draw(kind: str, sources: Sequence[Any], *, looks: dict[str, Any] | None = None, **selection: Any) -> Any:
    """A chart by its name from recordings or paths, under the options of ``attribute``.

    ``looks`` (theme, top, value, colour, axes, zone, by) go to the chart; those it does not have are an error.
    """
    chart = charts.get(kind)
    looks = _known(chart, looks)
    if chart.fallback is None or len(sources) != 1:
        return chart(_source(chart, sources, selection), **looks)
    recording = read_source(sources[0], selection)
    try:
        return chart(_source(chart, [recording], selection), **looks)
    except NoDataError as error:
        return chart.fallback(recording, metric=selection.get("metric"), because=f"{error}.", **looks)


def write(kind: str, sources: Sequence[Any], output: str | os.PathLike[str], *, looks: dict[str, Any] | None = None,
          scale: float = 2.0, size: tuple[float, float] | None = None, title: str | None = None,
          format: str | None = None, **selection: Any) -> Path:  # fmt: skip
    """Draw a chart into a file, in the format of its ending (a call graph also as ``.dot`` for Graphviz).

    ``-`` is standard output, where ``format`` says what to write (SVG by default).
    ``size`` is the width and height of the picture in points; a ``.png`` has ``scale`` pixels for each.
    ``title`` stands in place of the chart's own.
    """
    chart = charts.get(kind)
    ending = format_of(output, (*FORMATS, *chart.files), format)
    check_place(output, ending)
    if ending not in chart.files:
        if ending == "html" and "detail" in chart.looks:
            looks = {**(looks or {}), "detail": True}
        drawn = draw(kind, sources, looks=looks, **selection)
        if title is not None:
            drawn.title.text = wrap(names.clean(title), size=16)
        return save(drawn, output, scale, size, ending)
    if title is not None:
        raise OptionError(f"--title is for pictures; a .{ending} has none")
    return write_file(output, chart.files[ending](_source(chart, sources, selection), **_known(chart, looks)))


def _known(chart: Chart[Any], looks: dict[str, Any] | None) -> dict[str, Any]:
    given = {name: value for name, value in (looks or {}).items() if value is not None}
    for name in given:
        if name not in chart.looks:
            raise OptionError(f"a chart of {chart.name} has no {name}; it has {', '.join(chart.looks)}")
    return given


def _source(chart: Chart[Any], sources: Sequence[Any], selection: dict[str, Any]) -> Any:
    """Convert the sources to what the chart needs."""
    from ..engines import attribute
    from .charts.tables import of_host_threads

    if chart.needs == "experiment":
        if len(sources) != 1 or selection:
            raise OptionError(f"a chart of {chart.name} shows one experiment as a whole; choose with --by and --zone")
        return sources[0]
    if chart.needs == "runs":
        return [attribute(one, by=chart.by, **selection) for one in _runs(sources, selection)]
    if len(sources) != 1:
        raise OptionError(
            f"a chart of {chart.name} shows one recording, not {len(sources)}; many belong to `plot runs`"
        )
    recording = read_source(sources[0], selection)
    if chart.needs == "signals":
        return recording
    ask = partial(attribute, recording, by=chart.by, **selection)
    return of_host_threads(recording, selection.get("of"), ask) if chart.needs == "stacks" else ask()


def _runs(sources: Sequence[Any], selection: dict[str, Any]) -> list[Recording]:
    """Every run of the sources: those in a folder, and each row of a table of runs."""
    from ..comparison.paths import expand
    from ..model import Recording
    from ..model.question import split
    from ..reading import read_runs

    reading, rest = split(selection)
    runs: list[Recording] = []
    for source in sources:
        if isinstance(source, Recording):
            runs.append(read_source(source, dict(selection)))
        else:
            runs += [run for path in expand(source) for run in read_runs(path, **reading)[0]]
    selection.clear()
    selection.update(rest)
    return runs


def read_source(source: Any, selection: dict[str, Any]) -> Recording:
    """The recording of a source; options that say how it is read are taken out of ``selection``."""
    from ..model import ReadOptions
    from ..model.question import make, split
    from ..reading import as_recording

    reading, rest = split(selection)
    selection.clear()
    selection.update(rest)
    return as_recording(source, make(ReadOptions, reading))
