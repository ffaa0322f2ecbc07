"""``wattribute info``: what a recording holds."""

from __future__ import annotations

from argparse import Namespace

from .arguments import Parser, add_format, add_reading, reading_from
from .progress import progress_bar

EXAMPLES = ("wattribute info trace", "wattribute info run.watt --format json")


def add_arguments(parser: Parser) -> None:
    parser.group("Arguments").add_argument("path", metavar="PATH", help="Trace, recording or profile.")
    parser.group("Which part").add_argument("--metric", metavar="RE", help="Read only metrics whose name matches.")
    add_format(parser)
    add_reading(parser)


def run(arguments: Namespace) -> None:
    from ..reading import read
    from ..views.description import describe

    options = reading_from(arguments)
    with progress_bar("reading") as progress:
        recording = read(arguments.path, metric=arguments.metric, progress=progress, **options)
        about = describe(recording, options.get("threads"), progress)
    if arguments.format == "json":
        import json

        print(json.dumps(about, ensure_ascii=False, indent=1))
        return
    from ..views.console_info import show_info

    show_info(about)
