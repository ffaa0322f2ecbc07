"""``wattribute plan``: when to start a run of known length, so that it emits least."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

from ..errors import OptionError
from .arguments import Parser, add_carbon, add_format

EXAMPLES = (
    "wattribute plan 2h --zone GB-13",
    "wattribute plan run.watt --intensity forecast.csv --within 24h",
)


def add_arguments(parser: Parser) -> None:
    parser.group("Arguments").add_argument(
        "run", metavar="TIME|PATH", help="How long it takes, as 90min or 2h, or a recording of an earlier run."
    )
    add_carbon(parser)
    parser.group("What").add_argument(
        "--within", default="48h", metavar="TIME", help="Start and end within this time from now (default 48h)."
    )
    add_format(parser)


def run(arguments: Namespace) -> None:
    from ..carbon import plan

    duration_s, energy_j = _length(arguments.run)
    best = plan(duration_s, arguments.zone, arguments.intensity, _time(arguments.within, "--within"))
    if arguments.format == "json":
        print(json.dumps(best.as_dict() | ({} if energy_j is None else {"co2e_g": best.grams(energy_j)}), indent=1))
        return
    from ..views.console_carbon import plan_lines

    print(*plan_lines(best, energy_j), sep="\n")


def _length(text: str) -> tuple[float, float | None]:
    """How long a run takes and, of a recording, what it used."""
    if not Path(text).exists():
        return _time(text, "TIME"), None
    from ..reading import read
    from ..sessions.summary import summarise

    summary = summarise(read(text))
    return summary.duration_s, summary.energy_j


def _time(text: str, name: str) -> float:
    from ..units import TIMES_S, parse_time

    seconds = parse_time(text)
    if not seconds:
        raise OptionError(f"{name} {text}: give a time such as 90min or 2h ({', '.join(TIMES_S)}), or a recording")
    return float(seconds)
