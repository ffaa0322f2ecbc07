"""``wattribute demo``: the main jobs on the samples that come with the package; needs neither a clone nor a network."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from .arguments import Parser

EXAMPLES = ("wattribute demo", "wattribute demo -o somewhere")


def add_arguments(parser: Parser) -> None:
    parser.group("Output").add_argument(
        "-o",
        "--output",
        default="wattribute-demo",
        metavar="FOLDER",
        help="Folder to create for the samples and results (default: wattribute-demo).",
    )


def run(arguments: Namespace) -> int:
    from .. import cli, samples

    folder = samples.copy(arguments.output)
    program = _program()
    for title, commands in _chapters(folder):
        print(f"\n{title}", flush=True)
        for words in commands:
            print(f"\n$ {program} {shlex.join(words)}", flush=True)
            if code := cli._run(words):
                return code
            sys.stderr.flush()
    print(f"\nKept in {folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")
    print("Next, the trace as a page in the browser (Ctrl-C ends it):")
    print(f"{program} view {shlex.quote(str(folder / 'trace'))}")
    return 0


def _chapters(folder: Path) -> Iterator[tuple[str, list[list[str]]]]:
    """Titles, and the words of the commands that follow each."""
    trace, profile = str(folder / "trace"), [str(folder / "pytorch.json.gz"), "--signals", str(folder / "gpu.csv")]
    ranks = ["--of", "host", "--metric", "powercap", "--by", "process,paradigm", "--top", "6"]
    yield "1. A trace of a GPU job: 2 nodes, 4 ranks, 4 GPUs. What is in it?", [["info", trace]]
    yield (
        "2. Whose joules? Rank 3 works longest, and the others' GPUs wait for it",
        [["attribute", trace, "--by", "host,device,frame", "--top", "3"], ["attribute", trace, *ranks]],
    )
    yield "3. A PyTorch profile and what nvidia-smi logged meanwhile", [["attribute", *profile, "--top", "3"]]
    yield (
        "4. A recorded run: its regions, and its emissions in France",
        [
            ["attribute", str(folder / "run.watt")],
            ["carbon", str(folder / "run.watt"), "--zone", "FR"],
        ],
    )
    pages = [["view", trace, "--html", str(folder / "page.html")]]
    if _has_pictures():
        pages = [
            ["plot", "power", trace, "-o", str(folder / "power.png")],
            ["plot", "flame", trace, "-o", str(folder / "flame.png")],
            ["report", trace, "-o", str(folder / "report.html")],
            *pages,
        ]
        yield "5. Pictures, a report and a page", pages
    else:
        yield "5. A page (with pip install 'wattribute[plot]' also pictures and a report)", pages
    yield (
        "6. And a program that runs now, measured or (without sensors) estimated",
        [["run", "-o", str(folder / "live.watt"), "--", _python(), "-c", "sum(i * i for i in range(10_000_000))"]],
    )


def _has_pictures() -> bool:
    from importlib.util import find_spec

    return all(map(find_spec, ("altair", "vl_convert")))


def _program() -> str:
    """How this program is started from here."""
    here = sys.argv[0]
    if os.path.basename(here) == "__main__.py":
        return f"{_python()} -m wattribute"
    on_path = shutil.which("wattribute")
    return "wattribute" if on_path and os.path.samefile(on_path, here) else shlex.quote(_short(here))


def _python() -> str:
    on_path = shutil.which("python")
    return "python" if on_path and on_path == sys.executable else _short(sys.executable)


def _short(path: str) -> str:
    """The path from the current folder, where it lies below it."""
    absolute = os.path.abspath(path)
    return os.path.relpath(absolute) if absolute.startswith(os.getcwd() + os.sep) else absolute
