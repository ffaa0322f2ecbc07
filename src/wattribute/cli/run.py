"""``wattribute run -- CMD…``: what a command, or a container (``--image``), costs on any machine."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any

from ..errors import OptionError
from ..outputs.run import Run, numbered, run
from .containers import with_container
from .flags import Argument, Option, words
from .labels import Series, with_experiment
from .pushing import with_push
from .results import with_results

CONTEXT = {"allow_interspersed_args": False}  # what follows the command's name is the command's


@with_experiment
@with_results
@with_container
@with_push
def command(
    container: Any,
    wanted: Any,
    series: Series,
    followers: Any,
    argv: Annotated[list[str], Argument(metavar="CMD...", help="The command and its arguments.")] = [],  # noqa: B006
    output: Annotated[Path | None, Option("--output", "-o", help="A new folder X.watt for the recording.")] = None,
    interval: Annotated[float | None, Option(help="Seconds between readings; default: as sensors update.")] = None,
    meters: Annotated[list[str], Option(help="name or name:root, repeatable; default: all that work.")] = [],  # noqa: B006
    zone: Annotated[str | None, Option(help="Where the electricity comes from; see: wattribute zones.")] = None,
    intensity: Annotated[str | None, Option(help="g CO2e per kWh, a table, or a live source.")] = None,
    scope: Annotated[str, Option(help="machine: all of it; process: the command's share.")] = "machine",
    repeat: Annotated[int, Option(help="Run it so many times: mean and confidence interval.")] = 1,
    cooldown: Annotated[float, Option(help="Seconds of rest between repeats.")] = 0.0,
    compare: Annotated[
        bool, Option("--compare", help="Two commands in turns, CMD --- CMD: what differs, and how sure.")
    ] = False,
    warm_ups: Annotated[int, Option(min=0, help="Unrecorded runs of each before --compare.")] = 1,
    fail_above: Annotated[
        str | None, Option(metavar="5%", help="With --compare: exit with 3 if the second surely uses more.")
    ] = None,
    profile: Annotated[
        str | None, Option(metavar="MODE", help="Also the functions of Python programs: sample, trace, cprofile.")
    ] = None,
    quiet: Annotated[bool, Option("--quiet", "-q", help="Print no summary.")] = False,
    no_live: Annotated[bool, Option("--no-live", help="No live table on a terminal.")] = False,
    format: Annotated[str, Option(help="table or json, printed last on stderr.")] = "table",
) -> None:
    if format not in ("table", "json"):
        raise OptionError.unknown("format", format, ["table", "json"])
    options: dict[str, Any] = {
        "meters": words(meters),
        "interval_s": interval,
        "scope": scope,
        "zone": zone,
        "intensity": intensity,
    }
    if not 0 <= cooldown < float("inf"):
        raise OptionError(f"--cooldown {cooldown:g}: choose seconds, 0 or more")
    series.check(output, compare)
    if compare:
        if followers:
            raise OptionError("--push and --serve follow one command; send the runs of --compare with: export --to")
        if container is not None or wanted.score is not None:
            raise OptionError("--compare is for commands: run containers with --repeat, then use wattribute compare")
        turns = {"repeat": repeat if repeat > 1 else None, "warm_ups": warm_ups, "rest_s": cooldown or None}
        raise SystemExit(_compared(argv, output, fail_above, quiet, format, options | turns))
    if fail_above is not None:
        raise OptionError("--fail-above needs --compare and two commands: run --compare -- cmdA --- cmdB")
    options |= {"container": container, "score": wanted.score, "metadata": series.metadata, "followers": followers}
    options["profiling"] = _profiling(profile) if profile else None
    done: list[Run] = []
    for number in range(1, repeat + 1) or [1]:
        target = series.place(numbered(output, number, repeat))
        if done and cooldown > 0:
            time.sleep(cooldown)
        with contextlib.ExitStack() as stack:
            observers = _observers(stack, not (no_live or quiet or format == "json"))
            done.append(run(argv, target, observers=(*observers, *wanted.observers(stack)), **options))
        for line in (*done[-1].trouble, *wanted.write(done[-1], container is not None)):
            print(f"wattribute: {line}", file=sys.stderr)
        if done[-1].exit_code >= 126:  # interrupted, or it cannot be run at all: the rest would be the same
            break
    with contextlib.suppress(OSError, SystemExit):  # nobody reads stderr (Rich exits then); the exit code counts
        _report(done, quiet, format)
    raise SystemExit(next((r.exit_code for r in done if r.exit_code), 0))


def _compared(
    argv: list[str], output: Path | None, fail_above: str | None, quiet: bool, format: str, options: dict[str, Any]
) -> int:
    """Run two commands against each other; gives the exit code."""
    from ..outputs.versus import split_commands, versus
    from .compare import TOO_MUCH, fraction

    limit = None if fail_above is None else fraction(fail_above)
    done = versus(
        *split_commands(argv), output, **{name: value for name, value in options.items() if value is not None}
    )
    for line in done.trouble:
        print(f"wattribute: {line}", file=sys.stderr)
    if done.comparison is None:
        return done.exit_code or 1
    if format == "json":
        print(
            json.dumps({**done.comparison.to_dict(), "folder": str(done.folder)}, ensure_ascii=False), file=sys.stderr
        )
    elif not quiet:
        from rich.console import Console

        from ..views.console_compare import comparison_table

        console = Console(stderr=True, highlight=False)
        console.print(comparison_table(done.comparison), f"saved: {done.folder}", sep="\n")
    too_much = limit is not None and done.comparison.exceeds(limit)
    return done.exit_code or (TOO_MUCH if too_much else 0)


def _profiling(mode: str) -> Any:
    from ..recorders.stacks import Profiling

    return Profiling(mode).checked()


def _observers(stack: contextlib.ExitStack, wanted: bool) -> tuple[Any, ...]:
    """The live table, for the time of a run, on a terminal."""
    if not wanted or not sys.stderr.isatty():
        return ()
    from ..views.console_live import LiveTable

    return (stack.enter_context(LiveTable(sys.stderr)),)


def _report(done: list[Run], quiet: bool, format: str) -> None:
    summaries = [r.summary for r in done if r.summary is not None]
    if not summaries or (quiet and format != "json"):
        return
    from ..outputs.summary import repeats

    several = repeats(summaries) if len(done) > 1 else None
    if format == "json":
        print(json.dumps(several or summaries[0]), file=sys.stderr)
        return
    from rich.console import Console

    from ..views.console_run import repeats_screen, run_screen

    console = Console(stderr=True, highlight=False)
    folders = [str(r.folder) for r in done if r.saved]
    one = run_screen(summaries[-1], folders[-1] if folders else "")
    console.print(one if several is None else repeats_screen(several, folders))
