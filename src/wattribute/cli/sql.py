"""``wattribute sql PATH QUERY``: SQL over a recording and its attribution."""

from __future__ import annotations

import json
import re
import sys
from argparse import Namespace
from pathlib import Path

from ..errors import OptionError
from .arguments import Parser, add_format, add_question, question_from

EXAMPLES = (
    'wattribute sql trace "select frame, self_j from attribution" --by frame',
    'wattribute sql trace "select count(*) as n from spans" --format csv',
)


def add_arguments(parser: Parser) -> None:
    which = parser.group("Arguments")
    which.add_argument("path", metavar="PATH", help="Trace, recording or profile.")
    which.add_argument(
        "query",
        nargs="?",
        default="show tables",
        metavar="QUERY",
        help="SQL over the tables spans, frames, locations, signals, readings, attribution, devices; without a query "
        "these are listed with their columns.",
    )
    parser.group("What").add_argument(
        "--dialect",
        choices=("polars", "duckdb"),
        default="polars",
        metavar="NAME",
        help="SQL dialect: polars (default) or duckdb.",
    )
    add_format(parser, ("table", "json", "csv"))
    add_question(parser)


def run(arguments: Namespace) -> None:
    from ..sessions.sql import sql

    if re.match(r"\s*(?:select|with|show|describe|from)\s", arguments.path, re.I) and not Path(arguments.path).exists():
        raise OptionError("the recording comes before the query: wattribute sql PATH QUERY")
    table = sql(arguments.path, arguments.query, arguments.dialect, **question_from(arguments))
    if arguments.format == "json":
        print(json.dumps(table.to_dicts(), ensure_ascii=False, indent=1, default=str))
    elif arguments.format == "csv":
        from ..outputs.folder import flat

        print(flat(table).write_csv(), end="")
    else:
        from ..views.console_frame import frame_table
        from ..views.terminal import Console

        Console(width=None if sys.stdout.isatty() else 160).print(frame_table(table))
