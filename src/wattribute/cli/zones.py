"""``wattribute zones``: the places whose carbon intensity is known."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import asdict

from ..errors import OptionError
from .arguments import Parser, add_format

EXAMPLES = ("wattribute zones", "wattribute zones france", "wattribute zones GB --format json")


def add_arguments(parser: Parser) -> None:
    parser.group("Arguments").add_argument(
        "pattern",
        nargs="?",
        default="",
        metavar="TEXT",
        help="List zones of this country, or whose code, name or source contains this.",
    )
    add_format(parser)


def run(arguments: Namespace) -> None:
    from ..carbon.places import matching

    rows = matching(arguments.pattern)
    if not rows and arguments.format != "json":
        from ..carbon.places import zones

        known = {word for zone in zones().values() for word in (zone.code, zone.name)}
        raise OptionError.unknown("zone", arguments.pattern, known)
    if arguments.format == "json":
        print(json.dumps([asdict(zone) for zone in rows], ensure_ascii=False, indent=1))
        return
    from ..views.console_carbon import zone_table
    from ..views.terminal import Console

    console = Console()
    console.print(zone_table(rows), width=None if console.is_terminal else 160)
