"""``wattribute images``: the container images of this machine."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import asdict

from .arguments import Parser, add_format

EXAMPLES = ("wattribute images", "wattribute images --format json")


def add_arguments(parser: Parser) -> None:
    add_format(parser)


def run(arguments: Namespace) -> None:
    from ..recorders.daemon import images

    rows = images()
    if arguments.format == "json":
        print(json.dumps([asdict(image) for image in rows], ensure_ascii=False, indent=1))
        return
    from ..views.console_images import image_table
    from ..views.terminal import Console

    console = Console(highlight=False)
    console.print(image_table(rows), width=None if console.is_terminal else 160)
