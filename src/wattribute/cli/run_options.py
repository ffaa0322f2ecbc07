"""Options of ``run`` by topic: the container, the experiment a run belongs to, and the files it leaves behind."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import re
import sys
import time
from argparse import SUPPRESS, Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import OptionError, OutputError, WattributeError
from .arguments import Parser

if TYPE_CHECKING:
    from ..recorders.container import Container
    from ..sessions.run import RunResult

_LABEL = re.compile(r"[\w.-]+")
_NUMBERS = itertools.count(1)


# ---- the experiment ----


@dataclass(frozen=True)
class ExperimentFolder:
    """Where the runs of an experiment go, and their labels."""

    folder: Path | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def metadata(self) -> dict[str, Any]:
        return {"labels": dict(self.labels)} if self.labels else {}

    def check(self, output: Path | None, compare: bool) -> None:
        """Raise OptionError for options that do not go together."""
        if self.folder is not None and output is not None:
            raise OptionError("--experiment names recordings itself; leave out --output")
        if compare and (self.folder is not None or self.labels):
            raise OptionError("--compare keeps its own two groups; leave out --experiment and --label")

    def place(self, output: Path | None) -> Path | None:
        """The folder of the next run: a name that no other process takes, or ``output`` outside an experiment."""
        if self.folder is None:
            return output
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{self.folder}: cannot be made: {error.strerror}") from error
        # the process and a number: two at once, and two within a second, never meet
        return self.folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{next(_NUMBERS):03d}.watt"


def add_experiment(parser: Parser) -> None:
    """Add the options that say which experiment a run belongs to."""
    output = parser.group("Output")
    output.add_argument(
        "--experiment", type=Path, metavar="DIR", help="Add the recording to this folder of runs, under a new name."
    )
    output.add_argument(
        "--label",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="Label of the run, for `summary` and `plot`; repeatable.",
    )


def experiment_from(arguments: Namespace) -> ExperimentFolder:
    """The experiment of a run; raises OptionError for a label that is not KEY=VALUE."""
    labels: dict[str, str] = {}
    for text in arguments.label:
        key, equals, value = text.partition("=")
        if not equals or not _LABEL.fullmatch(key) or not value:
            raise OptionError(f"--label {text}: write it as KEY=VALUE (keys: letters, digits, _ . -), e.g. mode=train")
        labels[key] = value
    return ExperimentFolder(arguments.experiment, labels)


# ---- the container ----


def add_container(parser: Parser) -> None:
    """Add the options of a container."""
    group = parser.group("Container")
    group.add_argument("--image", metavar="IMAGE", help="Run in a container of this image; CMD replaces its command.")
    group.add_argument(
        "--gpus", default="", metavar="all|none|0,1", help="GPUs the container may use; default: all, where possible."
    )
    group.add_argument(
        "--volume", action="append", default=[], metavar="A:B", help="Mount host path A at B; repeatable."
    )
    group.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="K=V",
        help="Set a variable; a bare K passes the host's value; repeatable.",
    )
    group.add_argument("--network", default="", metavar="NAME", help="Network of the container: none, host or a name.")
    group.add_argument("--shm-size", default="", metavar="SIZE", help="Size of its /dev/shm, as 8g.")
    group.add_argument("--ipc", default="", metavar="MODE", help="IPC namespace of the container: host, private …")
    group.add_argument(
        "--ulimit",
        action="append",
        default=[],
        metavar="NAME=N",
        help="Limit of its processes, as memlock=-1; repeatable.",
    )
    group.add_argument("--pull", action="store_true", help="Pull the image from its registry first.")
    group.add_argument("--no-logs", dest="logs", action="store_false", help="Do not show what the container prints.")
    group.add_argument("--logs", action="store_true", default=True, help=SUPPRESS)
    group.add_argument("--keep", action="store_true", help="Do not remove the container.")
    group.add_argument(
        "--results", default="", metavar="DIR", help="Copy this folder of the container into the recording."
    )


def container_from(arguments: Namespace) -> Container | None:
    """The container to run in, or None; its options without an image are a mistake."""
    if arguments.image is None:
        for name in ("gpus", "volume", "env", "network", "shm-size", "ipc", "ulimit", "pull", "keep", "results"):
            if getattr(arguments, name.replace("-", "_")):
                raise OptionError(f"--{name} is for containers; name one with --image")
        return None
    from ..recorders.container import Container

    return Container(
        arguments.image,
        volumes=arguments.volume,
        environment=arguments.env,
        gpus=arguments.gpus,
        network=arguments.network,
        pull=arguments.pull,
        logs=arguments.logs,
        keep=arguments.keep,
        results=arguments.results,
        shm_size=arguments.shm_size,
        ipc=arguments.ipc,
        ulimits=arguments.ulimit,
    )


# ---- files beside the recording ----


@dataclass(frozen=True)
class ResultFiles:
    """What a run leaves behind beside its recording."""

    score: str | None
    plot: bool | None  # None: for containers
    live_plot: bool
    counts: tuple[str, ...] = ()

    def observers(self, stack: contextlib.ExitStack) -> list[Any]:
        """The plot that is redrawn while the run is in progress, if it is wanted."""
        if not self.live_plot:
            return []
        from ..views.live_plot import LivePlot

        return [stack.enter_context(LivePlot())]

    def write(self, done: RunResult) -> list[str]:
        """Write the summary; gives what could not be written, a line each."""
        if done.recording is None or done.summary is None or done.metrics is None:
            return []
        from ..views.result_files import write_summary

        try:
            write_summary(done.summary, done.metrics, done.folder)
        except WattributeError as error:  # the program's exit code stands
            return [str(error)]
        return []

    def draw(self, runs: Sequence[RunResult], in_container: bool) -> None:
        """Write the plots that are wanted; says what could not be written. Ctrl-C leaves the rest undrawn."""
        wanted = self.live_plot or in_container if self.plot is None else self.plot
        with contextlib.suppress(OSError, KeyboardInterrupt):
            for done in runs:
                if not wanted or not done.saved or done.recording is None:
                    continue
                from ..views.result_files import write_plot

                try:
                    write_plot(done.recording, done.folder)
                except WattributeError as error:  # the program's exit code stands
                    print(f"wattribute: {error}", file=sys.stderr)


def add_result_files(parser: Parser) -> None:
    """Add the options of the files beside the recording."""
    output = parser.group("Output")
    output.add_argument(
        "--plot",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="Save a plot in the recording; default: for containers.",
    )
    output.add_argument("--live-plot", action="store_true", help="Redraw the plot while the run is in progress.")
    output.add_argument(
        "--score", metavar="FILE:KEY", help="Score of the program, from a JSON, YAML or CSV file that it writes."
    )
    output.add_argument(
        "--count",
        action="append",
        default=[],
        metavar="UNIT=FILE:KEY",
        help="How many units of work it did, from a file that it writes: tokens=out.json:tokens; repeatable.",
    )


def result_files_from(arguments: Namespace) -> ResultFiles:
    """The files that a run leaves behind."""
    return ResultFiles(arguments.score, arguments.plot, arguments.live_plot, tuple(arguments.count))
