"""``wattribute baseline``: the power of this machine's devices at rest, for the floor of later recordings."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from typing import Any

from .arguments import Parser, add_format, add_meters, words

EXAMPLES = ("wattribute baseline --show", "wattribute baseline --show --format json")


def add_arguments(parser: Parser) -> None:
    what = parser.group("What")
    what.add_argument(
        "--seconds", type=float, default=10.0, metavar="S", help="How long to watch the machine at rest (default 10)."
    )
    what.add_argument("--show", action="store_true", help="Print the baseline that recordings carry; measure nothing.")
    add_meters(parser)
    add_format(parser)


def run(arguments: Namespace) -> None:
    from ..sessions import baseline

    if arguments.show:
        _print(baseline.known(), arguments.format)
        return
    measurement = baseline.measure(arguments.seconds, meters=words(arguments.meters))
    path = baseline.save(measurement)
    _print(measurement.as_dict(), arguments.format)
    print(f"saved: {path}", file=sys.stderr)


def _print(known: dict[str, Any], format: str) -> None:
    if format == "json":
        print(json.dumps(known, indent=1))
        return
    from rich.table import Table

    from ..views.numbers import bounded
    from ..views.terminal import Console

    console = Console(highlight=False)
    if not known:
        console.print("no baseline of this machine yet; on a quiet machine run: wattribute baseline")
        return
    console.print(f"power at rest of {known['host']}, {known['date'][:10]}, over {known['seconds']:g} s")
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("device")
    table.add_column("floor", justify="right")
    for name, floor in known["devices"].items():
        table.add_row(name, bounded(floor["floor_w"], floor["low_w"], floor["high_w"], "W"))
    console.print(table)
