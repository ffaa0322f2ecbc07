"""``wattribute profile SCRIPT.py``: which functions of a Python program use the energy."""

from __future__ import annotations

import contextlib
import os
import sys
from argparse import SUPPRESS, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from .. import _core
from ..errors import OptionError, OutputError, WattributeError
from ..files import temporary_folder
from .arguments import Parser, add_meters, at_least, words

if TYPE_CHECKING:
    from ..model import Recording
    from ..sessions.run import RunResult

EXAMPLES = (
    "wattribute profile train.py --epochs 3",
    "wattribute profile --tree -o train.watt -m timeit -n 1 pass",
    "wattribute profile --mode trace -o train.html train.py",
)
_PICTURES = {".svg": "flame", ".png": "flame", ".pdf": "flame", ".dot": "callgraph"}
_OURS = {".watt": "watt", ".html": "page", ".txt": "table", **_PICTURES}  # endings that no output writes


def add_arguments(parser: Parser) -> None:
    from ..plugins import outputs

    parser.usage = f"{parser.prog} [options] SCRIPT.py|-m MODULE|-c CODE [ARGS...]"
    starts = {"-m": "MODULE", "-c": "CODE"}
    parser.add_program("argv", starts, metavar="SCRIPT.py", help="Python program; what follows is passed on to it.")
    what, output, advanced = parser.group("What"), parser.group("Output"), parser.group("Advanced")
    what.add_argument(
        "--mode",
        choices=("sample", "trace", "cprofile"),
        default="sample",
        metavar="MODE",
        help="sample (default): stacks; trace: every call; cprofile: stacks, and a .prof for other tools.",
    )
    what.add_argument("--lines", action="store_true", help="Print lines instead of functions.")
    what.add_argument(
        "--scope",
        choices=("process", "machine"),
        default="process",
        metavar="SCOPE",
        help="Energy that functions share: process (default), the program's own part; machine, all of it.",
    )
    what.add_argument("--imports", action="store_true", help="Print imported modules one by one.")
    what.add_argument(
        "--tree", action="store_true", help="Print the call tree instead of the table; frames of libraries are hidden."
    )
    what.add_argument("--all-frames", action="store_true", help="--tree: print frames of libraries too.")
    what.add_argument("--root", metavar="FUNCTION", help="--tree, pictures: only what this function called.")
    what.add_argument(
        "--memory", action="store_true", help="Memory too: resident and its growth per line; memray's if installed."
    )
    add_meters(parser)
    output.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="OUT",
        help="X.watt: the recording; .html: the page; .svg, .png, .pdf: a flame graph; .dot: the call graph; .txt: the "
        "table; -: stdout; or an ending of another format: .json, .csv, .md ...",
    )
    output.add_argument(
        "--format",
        choices=("table", *outputs.names()),
        default="table",
        metavar="FORMAT",
        help="How to print on stderr, or write to -o: table (default), json, csv or any other format of `export`.",
    )
    output.add_argument(
        "--sort",
        choices=("self", "total", "time", "cpu", "calls"),
        default="self",
        metavar="KEY",
        help="Order of rows: self (default), total, time, cpu or calls.",
    )
    output.add_argument("--top", type=at_least(1), default=15, metavar="N", help="Rows to print (default 15).")
    output.add_argument("-q", "--quiet", action="store_true", help="Print no table.")
    advanced.add_argument(
        "--stack-interval", type=float, metavar="S", help="Seconds between two stacks (default 0.001)."
    )
    advanced.add_argument("--interval", dest="stack_interval", type=float, default=SUPPRESS, help=SUPPRESS)


def run(arguments: Namespace) -> int:
    from ..recorders.stacks import INTERVAL_S, Profiling
    from ..sessions.run import run as run_command

    _core.announces = False
    argv, mode, memory, output = _program(arguments), arguments.mode, arguments.memory, arguments.output
    python = [] if _is_python(argv[0]) else [sys.executable]
    if python and not argv[0].startswith("-") and not Path(argv[0]).exists():
        print(f"wattribute: {argv[0]}: no such file, so there is nothing to run", file=sys.stderr)
        return 2  # as Python says
    interval_s = INTERVAL_S if arguments.stack_interval is None else arguments.stack_interval
    profiling = Profiling(mode, interval_s, memory, arguments.lines or (memory and mode != "trace")).checked()
    kind = _kind(output, arguments.format)
    if arguments.root is not None and not arguments.tree and kind not in _PICTURES.values():
        raise OptionError("--root is for --tree and pictures (-o x.svg)")
    with contextlib.ExitStack() as stack:
        folder = output if kind == "watt" else None
        if output is not None and folder is None:
            folder = stack.enter_context(temporary_folder()) / "profile.watt"
        done = run_command(
            [*python, *argv], folder, meters=words(arguments.meters), scope=arguments.scope, profiling=profiling
        )
        trouble = list(done.trouble)
        if done.recording is not None:
            try:
                _write(done.recording, kind, output, arguments.sort, arguments.root)
                if kind == "table" or (kind == "watt" and not arguments.quiet):
                    saved = str(done.folder) if kind == "watt" else ""
                    _print(done, arguments, saved, output if kind == "table" else None)
            except WattributeError as error:  # the program's exit code stands
                trouble.append(str(error))
    for line in trouble:
        print(f"wattribute: {line}", file=sys.stderr)
    return done.exit_code


def _program(arguments: Namespace) -> list[str]:
    """The words that Python gets."""
    for flag, given in (("-m", arguments.m), ("-c", arguments.c)):
        if given is not None:
            return [flag, *given, *arguments.argv]
    argv: list[str] = arguments.argv[1:] if arguments.argv[:1] == ["--"] else arguments.argv
    if not argv:
        raise OptionError("no program; name one: wattribute profile SCRIPT.py")
    return argv


def _is_python(word: str) -> bool:
    """Whether a word names an interpreter, not a script: ``profile -- python x.py`` is ``profile x.py``."""
    import re
    import shutil

    named = re.fullmatch(r"(?:python|pypy)[\d.]*", Path(word).name) is not None
    return named and shutil.which(word) is not None and (os.sep in word or not Path(word).exists())


def _kind(output: Path | None, format: str) -> str:
    """What is to be made, checked before anything runs: "watt", "table", "page", a kind of picture, or an output."""
    from ..outputs import format_of, suffixes
    from ..plugins import outputs

    if str(output) == "-":
        return format
    if output is not None and output.suffix.lower() != ".watt":
        _check_place(output)
    if format != "table":
        outputs.get(format)
        return format
    if output is None:
        return "watt"
    ending = output.suffix.lower()
    if ending in _OURS:
        return _OURS[ending]
    if not any(output.name.lower().endswith(suffix) for suffix in suffixes()):
        raise OptionError.unknown("ending of the output", ending or str(output), [*_OURS, *suffixes()])
    return format_of(output)


def _check_place(output: Path) -> None:
    """Refuse a file that could not be written in the end."""
    folder = output.absolute().parent
    if not folder.is_dir():
        raise OutputError(f"{output}: no such folder")
    is_device = output.exists() and not output.is_file()  # /dev/stderr is written to, files are replaced
    if not os.access(output if is_device else folder, os.W_OK) or output.is_dir():
        raise OutputError(f"{output}: cannot be written; choose another name or folder")


def _write(recording: Recording, kind: str, output: Path | None, sort: str, root: str | None) -> None:
    """Write what was asked for; rows without a file go to standard error, as standard output is the program's."""
    if kind in ("watt", "table"):
        return
    from ..sessions.profile_table import functions

    table = functions(recording, sort=sort)
    if kind == "page":
        from ..views.page import write_page

        write_page(recording, str(output))
    elif kind in _PICTURES.values():
        from ..model.constants import OTHERS, STATIC
        from ..views import plot

        others = f"^({OTHERS}|{STATIC})$"  # the picture is the program's
        plot.write(kind, [recording], str(output), looks={"root": root}, exclude_frame=others)
    else:
        from ..outputs import write

        write(table, "/dev/stderr" if output is None else output, kind)


def _print(done: RunResult, arguments: Namespace, folder: str, output: Path | None = None) -> None:
    from ..sessions.profile_table import function_table, functions, held_lines, memory_lines
    from ..views.console_profile import CallTree, show_profile
    from ..views.console_run import bill_line

    recording, imports = done.recording, arguments.imports
    assert recording is not None
    attribution = functions(recording, sort=arguments.sort, imports=imports)
    rows = function_table(attribution, arguments.sort)
    tree = None
    if arguments.tree:
        paths = functions(recording, by=("path",), bounds=False, imports=imports)
        tree = CallTree(paths, arguments.root, arguments.all_frames)
    memory = {"resident memory grew in": memory_lines(recording), "held at the peak (memray)": held_lines(recording)}
    bill = "" if done.summary is None else bill_line(done.summary)
    show_profile(attribution, rows, tree, memory, arguments.top, bill, folder, output)
