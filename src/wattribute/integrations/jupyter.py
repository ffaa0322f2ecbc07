"""The Jupyter magic: ``%load_ext wattribute``, then ``%%wattribute`` on top of a cell.

``%%wattribute --zone FR --into run`` also keeps the recording in the variable ``run``; ``%wattribute f(x)`` measures a
line. The cell is a region called "cell"; regions inside it get a line of their own.
"""

from __future__ import annotations

import argparse
import shlex
from typing import Any, NoReturn


def load_ipython_extension(shell: Any) -> None:
    """Register the magic in a ``shell``; IPython calls this for ``%load_ext wattribute``."""

    def magic(line: str, cell: str | None = None) -> None:
        measure(shell, line, cell)

    shell.register_magic_function(magic, magic_kind="line_cell", magic_name="wattribute")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _usage_error(f"%%wattribute: {message}; {self.format_usage().strip()}")


def _usage_error(message: str) -> Exception:
    from IPython.core.error import UsageError

    error: Exception = UsageError(message)
    return error


def _parser() -> _Parser:
    parser = _Parser("%%wattribute", add_help=False, allow_abbrev=False)
    parser.add_argument("--zone")
    parser.add_argument("--meters", default="")
    parser.add_argument("--interval", type=float)
    parser.add_argument("--output")
    parser.add_argument("--into", metavar="NAME")
    return parser


def measure(shell: Any, line: str, cell: str | None) -> None:
    """Run a cell (or the rest of a line) under the meters and show what it used."""
    from ..carbon import check
    from ..errors import WattributeError
    from ..recorders.record import record
    from ..recorders.regions import region

    if cell is None:
        options, cell = _parser().parse_args([]), line
    else:
        options = _parser().parse_args(shlex.split(line))
    if options.into and not options.into.isidentifier():
        raise _usage_error(f"%%wattribute: {options.into!r} is not a variable's name")
    meters = [name for name in options.meters.split(",") if name]
    try:
        check(options.zone)
        with record(options.output, meters=meters, interval_s=options.interval) as recorder, region("cell"):
            shell.run_cell(cell)
        recording = recorder.recording
        _show(recording, options.zone)
    except WattributeError as error:
        raise _usage_error(f"%%wattribute: {error}") from error
    if options.into:
        shell.user_ns[options.into] = recording


def _show(recording: Any, zone: str | None) -> None:
    from ..carbon import emissions
    from ..views.console_carbon import emissions_table
    from ..views.console_regions import region_table
    from ..views.regions import used
    from ..views.terminal import Console

    console = Console()
    console.print(region_table(used(recording)[1:]))
    console.print(emissions_table(emissions(recording, zone=zone)))
