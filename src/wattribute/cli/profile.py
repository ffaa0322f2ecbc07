"""``wattribute profile SCRIPT.py``: which functions of a Python program use the energy."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import typer
from typer.core import TyperCommand

from ..errors import OptionError, OutputError, WattributeError
from ..recorders.stacks import INTERVAL_S, Profiling
from .flags import words

if TYPE_CHECKING:
    from ..model import Recording

CONTEXT = {"allow_interspersed_args": False}
Orders = Literal["self", "total", "time", "cpu", "calls"]
Modes = Literal["sample", "trace", "cprofile"]
_PROGRAM = "SCRIPT.py ARGS… | -m MODULE ARGS… | -c CODE ARGS…"
_PICTURES = {".svg": "flame", ".png": "flame", ".pdf": "flame", ".dot": "callgraph"}
_ROWS = {".json": "json", ".csv": "csv", ".parquet": "parquet"}


class Command(TyperCommand):
    """As Python itself: what follows SCRIPT, -m MODULE or -c CODE is the program's."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        takes = {name for p in self.params if not getattr(p, "is_flag", True) for name in p.opts}
        at = 0
        while at < len(args) and args[at].startswith("-") and args[at] != "--":
            if args[at][:2] in ("-m", "-c"):
                args = [*args[:at], "--", *args[at:]]
                break
            at += 2 if args[at] in takes else 1
        return super().parse_args(ctx, args)


def command(
    argv: Annotated[list[str], typer.Argument(metavar=_PROGRAM, help="The program, as one would give it to python.")],
    mode: Annotated[
        Modes, typer.Option(help="sample: stacks; trace: every call; cprofile: stacks, and a .prof for other tools.")
    ] = "sample",
    memory: Annotated[
        bool, typer.Option("--memory", help="Memory too: resident, its growth per line; memray's file if installed.")
    ] = False,
    lines: Annotated[bool, typer.Option("--lines", help="Rows are lines, not functions.")] = False,
    tree: Annotated[bool, typer.Option("--tree", help="The call tree instead of the table.")] = False,
    output: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="X.watt: the recording; .html: the page; .svg, .png, .pdf: a flame graph; .dot: the call graph; "
            ".json, .csv, .parquet: the rows.",
        ),
    ] = None,
    format: Annotated[
        str, typer.Option(help="table; or json, csv, parquet … on standard error or in -o FILE.")
    ] = "table",
    sort: Annotated[Orders, typer.Option(help="The order of rows.")] = "self",
    top: Annotated[int, typer.Option(min=1, help="How many rows of each device.")] = 15,
    interval: Annotated[float, typer.Option(help="Seconds between two stacks.")] = INTERVAL_S,
    meters: Annotated[list[str], typer.Option(help="name or name:root, repeatable; default: all that work.")] = [],  # noqa: B006
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no table.")] = False,
) -> None:
    from ..outputs.run import run

    if not argv[0].startswith("-") and not Path(argv[0]).exists():
        print(f"wattribute: {argv[0]}: no such file, so there is nothing to run", file=sys.stderr)
        raise typer.Exit(2)  # as Python says
    how = Profiling(mode, interval, memory, lines or (memory and mode != "trace")).checked()
    wanted = _wanted(output, format)
    specs = words(meters)
    with contextlib.ExitStack() as stack:
        folder = output if wanted == "watt" else None
        if output is not None and folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="wattribute-")), "profile.watt")
        done = run([sys.executable, *argv], folder, meters=specs, profiling=how)
        trouble = list(done.trouble)
        if done.recording is not None:
            try:
                _give(done.recording, wanted, output, sort)
                if not quiet and wanted in ("watt", "table"):
                    _print(done.recording, sort, tree, top, str(done.folder))
            except WattributeError as error:  # the program's exit code stands
                trouble.append(str(error))
    for line in trouble:
        print(f"wattribute: {line}", file=sys.stderr)
    raise typer.Exit(done.exit_code)


def _wanted(output: Path | None, format: str) -> str:
    """What is to be made, checked before anything runs: "watt", "table", "page", a kind of picture, or an output."""
    from ..plugins import outputs

    if output is not None and output.suffix.lower() != ".watt":
        _check_place(output)
    if format != "table":
        outputs.get(format)
        return format
    ending = "" if output is None else output.suffix.lower()
    known = {"": "watt", ".watt": "watt", ".html": "page", ".txt": "table", **_PICTURES, **_ROWS}
    if ending not in known or (output is not None and not ending):
        raise OptionError.unknown("ending of the output", ending or str(output), [e for e in known if e])
    return known[ending]


def _check_place(output: Path) -> None:
    """Refuse a file that could not be written in the end."""
    folder = output.absolute().parent
    if not folder.is_dir():
        raise OutputError(f"{output}: there is no such folder")
    is_device = output.exists() and not output.is_file()  # /dev/stderr is written to, files are replaced
    if not os.access(output if is_device else folder, os.W_OK) or output.is_dir():
        raise OutputError(f"{output}: cannot be written; choose another name or folder")


def _give(recording: Recording, wanted: str, output: Path | None, sort: str) -> None:
    """Write what was asked for; rows without a file go to standard error, as standard output is the program's."""
    if wanted in ("watt", "table"):
        return
    from ..outputs.profile import functions

    found = functions(recording, sort=sort)
    if wanted == "page":
        from ..views.page import write_page

        write_page(recording, str(output))
    elif wanted in _PICTURES.values():
        from ..views import plot

        plot.write(wanted, [recording], str(output), share=found.share, load=found.options.get("load"))
    else:
        from ..plugins import outputs

        outputs.get(wanted).write(found, "/dev/stderr" if output is None else str(output))


def _print(recording: Recording, sort: str, tree: bool, top: int, folder: str) -> None:
    from ..outputs.profile import functions, held_lines, memory_lines
    from ..views.console_profile import show_profile

    paths = functions(recording, by=("device", "path"), bounds=False) if tree else None
    memory = {"resident memory grew in": memory_lines(recording), "held at the peak (memray)": held_lines(recording)}
    show_profile(functions(recording, sort=sort), paths, memory, top, folder)
