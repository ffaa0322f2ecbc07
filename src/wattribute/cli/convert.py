"""``wattribute convert``: any recording → our own archive."""

from __future__ import annotations

import sys
from argparse import Namespace

from .arguments import Parser, add_reading, reading_from
from .progress import progress_bar

EXAMPLES = ("wattribute convert trace run.watt", "wattribute convert trace run.watt --metric energy")


def add_arguments(parser: Parser) -> None:
    which = parser.group("Arguments")
    which.add_argument("path", metavar="PATH", help="Trace, recording or profile.")
    which.add_argument("out", metavar="OUT", help="Folder to create, for example run.watt.")
    parser.group("Which part").add_argument("--metric", metavar="RE", help="Keep only metrics whose name matches.")
    add_reading(parser)
    parser.group("Advanced").add_argument(
        "--engine",
        default="local",
        metavar="WHERE",
        help="Who writes the spans: local, or dask[:SCHEDULER] (workers, in parallel).",
    )


def run(arguments: Namespace) -> None:
    from ..engines.convert import convert

    options = reading_from(arguments)
    with progress_bar("converting") as progress:
        recording = convert(
            arguments.path, arguments.out, arguments.engine, progress=progress, metric=arguments.metric, **options
        )
    for problem in recording.problems:
        print(f"wattribute: {problem.message}", file=sys.stderr)
