"""``wattribute attribute``: energy per kernel, function, rank and device."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from .arguments import Parser, add_carbon, add_question, at_least, question_from
from .progress import progress_bar

EXAMPLES = (
    "wattribute attribute trace",
    "wattribute attribute trace --of host --by process,frame --top 5",
    "wattribute attribute trace --from 1 --until 2 -o energy.json",
)


def add_arguments(parser: Parser) -> None:
    from ..outputs.tables import SORTS
    from ..plugins import outputs

    parser.group("Arguments").add_argument(
        "paths", nargs="+", metavar="PATH", help="Trace, recording or profile; several are attributed as runs."
    )
    output = parser.group("Output")
    output.add_argument(
        "-o", "--output", type=Path, metavar="OUT", help="File to write, its ending says the format; -: stdout."
    )
    output.add_argument(
        "--format",
        choices=("table", *outputs.names()),
        metavar="FORMAT",
        help="How to print or write: table (default), json, csv, parquet or any other format of `export`.",
    )
    output.add_argument("--top", type=at_least(1), metavar="N", help="Print only the first N rows of each device.")
    output.add_argument(
        "--sort",
        choices=SORTS,
        metavar="KEY",
        help="Order of rows, most first: self (default), total, time, power or calls.",
    )
    output.add_argument(
        "--spans", type=Path, metavar="OUT", help="Also write one row per span to OUT.parquet, or to a folder of them."
    )
    add_question(parser)
    add_carbon(parser, "Add CO2e for this zone; see `wattribute zones`.")


def run(arguments: Namespace) -> None:
    from ..comparison import attribute_all
    from ..model import Attribution
    from ..outputs.tables import top_rows
    from ..views.console import show_attribution

    zone, intensity, output, format = arguments.zone, arguments.intensity, arguments.output, arguments.format
    if zone is not None or intensity is not None:
        _check_emissions(arguments.paths, zone, intensity)
    with progress_bar("attributing"):
        answer = attribute_all(arguments.paths, spans=arguments.spans or False, **question_from(arguments))
    if (zone is not None or intensity is not None) and isinstance(answer, Attribution):
        from ..carbon import with_emissions

        answer, _ = with_emissions(answer, zone=zone, intensity=intensity)
    if format == "table" or (format is None and (output is None or output.suffix in ("", ".txt"))):  # "-", too
        show_attribution(top_rows(answer, None, arguments.sort), arguments.top, output)
        return
    from ..outputs import write

    write(top_rows(answer, arguments.top, arguments.sort), "-" if output is None else output, format)


def _check_emissions(paths: list[str], zone: str | None, intensity: str | None) -> None:
    """Raise OptionError for a wrong zone before the work, not after it."""
    from ..carbon import check
    from ..errors import OptionError

    check(zone, intensity)
    if len(paths) > 1:
        raise OptionError("CO2e is computed for one recording at a time: their hours differ")
