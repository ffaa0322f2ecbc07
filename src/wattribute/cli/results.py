"""The flags of result files, for ``run``: a verb takes a parameter ``wanted`` and wears ``with_results``."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Optional

from ..errors import WattributeError
from .flags import Option, with_flags

if TYPE_CHECKING:
    from ..outputs.run import Run


@dataclass(frozen=True)
class Wanted:
    """What a run is to leave behind beside its recording."""

    score: str | None
    plot: bool | None  # None: as suits what ran
    live_plot: bool

    def observers(self, stack: contextlib.ExitStack) -> list[Any]:
        """The picture that is drawn anew while a run goes on, if it is wanted."""
        if not self.live_plot:
            return []
        from ..views.live_plot import LivePlot

        return [stack.enter_context(LivePlot())]

    def write(self, done: Run, boxed: bool) -> list[str]:
        """Write what people read; what could not be written, a line each."""
        if done.recording is None or done.summary is None or done.metrics is None:
            return []
        from ..views.result_files import write_plot, write_summary

        drawn = self.live_plot or boxed if self.plot is None else self.plot
        try:
            write_summary(done.summary, done.metrics, done.folder)
            if drawn:
                write_plot(done.recording, done.folder)
        except WattributeError as error:  # the program's exit code stands
            return [str(error)]
        return []


def _flags(
    score: Annotated[
        Optional[str],  # noqa: UP045  # Typer reads these types at run time, on Python 3.10 too
        Option(metavar="FILE:KEY", help="The program's own score, from a JSON, YAML or CSV file it writes."),
    ] = None,
    plot: Annotated[
        Optional[bool],  # noqa: UP045
        Option("--plot/--no-plot", help="A picture in the recording; default: for containers."),
    ] = None,
    live_plot: Annotated[bool, Option("--live-plot", help="Draw it anew while the run goes on.")] = False,
) -> None:
    """Only its signature counts."""


with_results = with_flags("wanted", _flags, Wanted)
