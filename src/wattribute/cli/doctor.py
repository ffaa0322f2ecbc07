"""``wattribute doctor``: what can be metered on this machine, and what would fix the rest."""

from __future__ import annotations

import json
from argparse import Namespace

from ..errors import OptionError
from .arguments import Parser, add_format, add_meters, words

EXAMPLES = ("wattribute doctor", "wattribute doctor --meters model --seconds 0.5 --format json")


def add_arguments(parser: Parser) -> None:
    add_meters(parser)
    parser.group("What").add_argument(
        "--seconds", type=float, metavar="S", help="How long to watch the sensors of each meter."
    )
    add_format(parser)


def run(arguments: Namespace) -> None:
    from ..sessions.doctor import WATCH_S, examine_machine

    seconds = WATCH_S if arguments.seconds is None else arguments.seconds
    if not 0 < seconds <= 600:
        raise OptionError(f"--seconds {seconds:g}: choose up to 600")
    findings = examine_machine(words(arguments.meters), seconds)
    if arguments.format == "json":
        print(json.dumps(findings, indent=1))
        return
    from ..views.console_doctor import doctor_screen
    from ..views.terminal import Console

    Console(highlight=False).print(doctor_screen(findings))
