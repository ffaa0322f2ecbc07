"""``wattribute summary``: an experiment of many runs in one table, per label."""

from __future__ import annotations

import json
import sys
from argparse import SUPPRESS, Namespace

from .arguments import Parser, add_carbon, add_format, words

EXAMPLES = (
    "wattribute summary runs",
    "wattribute summary runs --label-by mode --zone FR",
    "wattribute summary runs --format csv",
)


def add_arguments(parser: Parser) -> None:
    parser.group("Arguments").add_argument(
        "paths", nargs="+", metavar="DIR", help="Folders of runs, recordings, or codecarbon and Eco2AI files."
    )
    parser.group("What").add_argument(
        "--label-by",
        action="append",
        default=[],
        metavar="LABEL",
        help="Label to group by, or place; repeatable. Default: the labels that differ.",
    )
    parser.group("What").add_argument("--by", dest="label_by", action="append", default=SUPPRESS, help=SUPPRESS)
    parser.group("What").add_argument("--per", metavar="UNIT", help="Also per unit of work that the runs counted.")
    parser.group("Output").add_argument(
        "--statistics", action="store_true", help="Also print mean, deviation, quartiles and extremes of each quantity."
    )
    add_carbon(parser, "Compute all emissions again for this zone; see `wattribute zones`.")
    add_format(parser, ("table", "json", "csv"), "table (default), json (all statistics) or csv (a line per run).")


def run(arguments: Namespace) -> None:
    from ..sessions.experiment import experiment, run_table

    runs = experiment(arguments.paths, zone=arguments.zone, intensity=arguments.intensity)
    if arguments.format == "csv":
        run_table(runs).write_csv(sys.stdout)
        return
    groups = runs.summary(words(arguments.label_by), arguments.per)
    if arguments.format == "json":
        print(json.dumps(groups, ensure_ascii=False, indent=1))
        return
    from ..views.console_summary import statistics_table, summary_table
    from ..views.terminal import Console

    console = Console(highlight=False)
    console.print(summary_table(groups, console.width))
    if arguments.statistics:
        console.print(statistics_table(groups))
