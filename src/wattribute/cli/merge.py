"""``wattribute merge``: the recordings of a job's ranks on one timeline."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from pathlib import Path

from ..errors import OptionError
from .arguments import Parser, add_reading, reading_from

EXAMPLES = (
    "wattribute merge rank0.watt rank1.watt -o job.watt",
    "wattribute merge rank*.watt -o job.watt --align start",
)


def add_arguments(parser: Parser) -> None:
    parser.group("Arguments").add_argument(
        "paths", nargs="+", metavar="PATH", help="Recordings of one job: *.watt folders or traces."
    )
    parser.group("What").add_argument(
        "--align",
        choices=("clock", "start"),
        default="clock",
        metavar="clock|start",
        help="Align by wall clock (default), or align the starts.",
    )
    parser.group("Output").add_argument(
        "-o", "--output", required=True, type=Path, metavar="OUT", help="Folder to create, for example job.watt."
    )
    add_reading(parser)


def run(arguments: Namespace) -> None:
    from ..archive import save
    from ..engines.middle import merge
    from ..model import ReadOptions
    from ..model.recording import REMARKS
    from ..reading import as_recording, read

    paths, options = arguments.paths, reading_from(arguments)
    places = set[str]()
    for path in paths:
        if (place := os.path.realpath(path)) in places:
            raise OptionError(f"{path} is named twice; its joules would count double")
        places.add(place)
    # power logs belong to the whole: joined to every part, they would count as often as there are parts
    logs = ReadOptions(**{name: options.pop(name) for name in ("signals", "offset") if name in options})
    merged = as_recording(merge([read(path, **options) for path in paths], arguments.align), logs)
    save(merged, arguments.output)
    counts = f"{len(paths)} recordings, {len(merged.hosts())} hosts, {len(merged.processes)} processes"
    print(f"{arguments.output}: {counts}", file=sys.stderr)
    for problem in merged.problems:
        print(problem.message if problem.kind in REMARKS else f"! {problem.message}", file=sys.stderr)
