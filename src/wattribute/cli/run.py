"""``wattribute run -- CMD…``: what a command, or a container (``--image``), costs on any machine."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import time
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

from .. import _core
from ..errors import OptionError
from ..files import temporary_folder
from ..sessions.run import RunResult, numbered
from ..sessions.run import run as run_command
from .arguments import FORMATS, Parser, add_carbon, add_followers, add_meters, at_least, followers_from, words
from .run_options import (
    ExperimentFolder,
    add_container,
    add_experiment,
    add_result_files,
    container_from,
    experiment_from,
    result_files_from,
)

EXAMPLES = (
    "wattribute run -- python train.py",
    "wattribute run --zone FR --repeat 3 -o train.watt -- python train.py",
    "wattribute run --compare -- python old.py --- python new.py",
)


# options of iris-gpubench, by users who come from there
_FORMER = {
    "--benchmark_image": "--image",
    "--benchmark_command": "the command itself, after two dashes: -- CMD",
    "--carbon_region": "--zone (`wattribute zones` lists them)",
    "--export_to_victoria": "--push victoria+http://HOST:8428",
    "--monitor_benchmark_logs": "the default (--no-logs hides them)",
    "--live_plot": "--live-plot",
}


def add_arguments(parser: Parser) -> None:
    parser.former = _FORMER
    parser.usage = f"{parser.prog} [options] [--] CMD..."
    parser.add_program("argv", metavar="CMD", help="Command and its arguments; what follows CMD is passed on to it.")
    output, what, advanced = parser.group("Output"), parser.group("What"), parser.group("Advanced")
    output.add_argument("-o", "--output", type=Path, metavar="X.watt", help="Folder to create for the recording.")
    output.add_argument("--no-save", action="store_true", help="Keep no recording: print the summary only.")
    output.add_argument("-q", "--quiet", action="store_true", help="Print no summary.")
    output.add_argument(
        "--format",
        choices=FORMATS,
        default="table",
        metavar="FORMAT",
        help="Summary on stderr: table (default) or json.",
    )
    add_carbon(parser)
    what.add_argument("--repeat", type=int, default=1, metavar="N", help="Run N times: mean and confidence interval.")
    what.add_argument(
        "--compare", action="store_true", help="Run two commands in turns, CMD --- CMD: what differs, how certain."
    )
    what.add_argument(
        "--fail-above",
        metavar="PERCENT",
        help="With --compare: exit with 3 if the second certainly uses this much more.",
    )
    what.add_argument("--per", metavar="UNIT", help="Print what one unit of work took, if the program counted it.")
    what.add_argument("--profile", metavar="MODE", help="Also profile Python functions: sample, trace or cprofile.")
    add_experiment(parser)
    add_meters(parser)
    add_container(parser)
    add_result_files(parser)
    output.add_argument("--no-live", action="store_true", help="Show no live table on a terminal.")
    add_followers(parser)
    advanced.add_argument(
        "--scope",
        choices=("machine", "process"),
        default="machine",
        metavar="SCOPE",
        help="Whose energy: machine (default), or process: the share of the command.",
    )
    advanced.add_argument(
        "--interval", type=float, metavar="S", help="Seconds between readings; default: as sensors update."
    )
    advanced.add_argument("--cooldown", type=float, default=0.0, metavar="S", help="Seconds of rest between repeats.")
    advanced.add_argument(
        "--warm-ups", type=at_least(0), default=1, metavar="N", help="Unrecorded runs of each command before --compare."
    )


def run(arguments: Namespace) -> int:
    _core.announces = False
    argv, format, quiet = arguments.argv, arguments.format, arguments.quiet
    argv = argv[1:] if argv[:1] == ["--"] else argv
    experiment, files = experiment_from(arguments), result_files_from(arguments)
    container, followers = container_from(arguments), followers_from(arguments)
    options: dict[str, Any] = {
        "meters": words(arguments.meters),
        "interval_s": arguments.interval,
        "scope": arguments.scope,
        "zone": arguments.zone,
        "intensity": arguments.intensity,
    }
    _check(arguments, experiment)
    if arguments.compare:
        if followers:
            raise OptionError("--push and --serve follow one command; send the runs of --compare with: export --to")
        if container is not None or files.score is not None or files.counts:
            raise OptionError("--compare is for commands: run containers with --repeat, then use wattribute compare")
        return _compare(argv, arguments, options)
    options |= {"container": container, "score": files.score, "metadata": experiment.metadata, "followers": followers}
    options["counts"] = files.counts
    options["profiling"] = _profiling(arguments.profile) if arguments.profile else None
    runs: list[RunResult] = []
    is_shown = not (arguments.no_live or quiet or format == "json")

    def once(number: int) -> RunResult:
        target = experiment.place(numbered(arguments.output, number, arguments.repeat))
        with contextlib.ExitStack() as stack:
            if arguments.no_save:
                target = stack.enter_context(temporary_folder()) / "run.watt"
            observers = (*_observers(stack, is_shown), *files.observers(stack))
            done = run_command(argv, target, observers=observers, **options)
            runs.append(replace(done, saved=done.saved and not arguments.no_save))
            trouble = () if arguments.no_save else files.write(done)
        for line in (*done.trouble, *trouble):
            print(f"wattribute: {line}", file=sys.stderr)
        return done

    stopped_by = 0
    for number in range(1, arguments.repeat + 1) or [1]:
        try:
            if runs and arguments.cooldown > 0:
                time.sleep(arguments.cooldown)
            done = once(number)
        except KeyboardInterrupt:
            if not runs:
                raise
            stopped_by = signal.SIGINT
            break
        if done.exit_code >= 126:  # interrupted, or it cannot be run at all: the rest would be the same
            break
        if done.late_signal and number < arguments.repeat:
            stopped_by = done.late_signal
            break
    if stopped_by or len(runs) < arguments.repeat:
        print(f"wattribute: stopped after {len(runs)} of {arguments.repeat} runs", file=sys.stderr)
    with contextlib.suppress(OSError, SystemExit):  # stderr is closed (Rich exits then); the exit code counts
        _report(runs, quiet, format, arguments.per)
    files.draw(runs, container is not None)  # after the numbers: on a busy machine it takes seconds
    return next((one.exit_code for one in runs if one.exit_code), 128 + stopped_by if stopped_by else 0)


def _check(arguments: Namespace, experiment: ExperimentFolder) -> None:
    """Raise OptionError for options that do not go together."""
    if not 0 <= arguments.cooldown < float("inf"):
        raise OptionError(f"--cooldown {arguments.cooldown:g}: choose seconds, 0 or more")
    experiment.check(arguments.output, arguments.compare)
    if arguments.no_save and (arguments.output or experiment.folder or arguments.compare or arguments.results):
        raise OptionError("--no-save keeps nothing; leave out --output, --experiment, --results and --compare")
    if arguments.fail_above is not None and not arguments.compare:
        raise OptionError("--fail-above needs --compare and two commands: run --compare -- cmdA --- cmdB")


def _compare(argv: list[str], arguments: Namespace, options: dict[str, Any]) -> int:
    """Run two commands against each other; gives the exit code."""
    from ..sessions.versus import split_commands, versus
    from .compare import TOO_MUCH, fraction

    limit = None if arguments.fail_above is None else fraction(arguments.fail_above)
    repeat, rest_s = arguments.repeat if arguments.repeat > 1 else None, arguments.cooldown or None
    options |= {"repeat": repeat, "warm_ups": arguments.warm_ups, "rest_s": rest_s}
    given = {name: value for name, value in options.items() if value is not None}
    done = versus(*split_commands(argv), arguments.output, **given)
    for line in done.trouble:
        print(f"wattribute: {line}", file=sys.stderr)
    if done.comparison is None:
        return done.exit_code or 1
    if arguments.format == "json":
        document = {**done.comparison.to_dict(), "folder": str(done.folder)}
        print(json.dumps(document, ensure_ascii=False), file=sys.stderr)
    elif not arguments.quiet:
        from ..views.console_compare import comparison_table
        from ..views.terminal import Console

        console = Console(stderr=True, highlight=False)
        console.print(comparison_table(done.comparison), f"saved: {done.folder}", sep="\n")
    if limit is None:
        return done.exit_code
    passed, line = done.comparison.check(limit)
    print(line, file=sys.stderr)
    return done.exit_code or (0 if passed else TOO_MUCH)


def _profiling(mode: str) -> Any:
    from ..recorders.stacks import Profiling

    return Profiling(mode).checked()


def _observers(stack: contextlib.ExitStack, wanted: bool) -> tuple[Any, ...]:
    """The live table, for the time of a run, on a terminal."""
    if not wanted or not sys.stderr.isatty():
        return ()
    from ..views.console_live import LiveTable

    return (stack.enter_context(LiveTable(sys.stderr)),)


def _report(runs: list[RunResult], quiet: bool, format: str, per: str | None) -> None:
    summaries = [one.summary for one in runs if one.summary is not None]
    if not summaries or (quiet and format != "json"):
        return
    from ..comparison.repeats import Repeats

    several = Repeats(summaries) if len(runs) > 1 else None
    if format == "json":
        print(json.dumps((several or summaries[0]).as_dict()), file=sys.stderr)
        return
    from ..views.console_run import repeats_screen, run_screen
    from ..views.terminal import Console

    console = Console(stderr=True, highlight=False)
    folders = [str(one.folder) for one in runs if one.saved]
    one = run_screen(summaries[-1], folders[-1] if folders else "", per)
    console.print(one if several is None else repeats_screen(several, folders, per))
