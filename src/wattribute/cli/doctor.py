"""``wattribute doctor``: what can be metered on this machine, and what would mend the rest."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from ..errors import OptionError
from ..outputs.doctor import WATCH_S, examine_machine
from .flags import words


def command(
    meters: Annotated[list[str], typer.Option(help="name or name:root, repeatable; default: all.")] = [],  # noqa: B006
    seconds: Annotated[float, typer.Option(help="How long each meter's sensors are watched.")] = WATCH_S,
    format: Annotated[str, typer.Option(help="table or json.")] = "table",
) -> None:
    if format not in ("table", "json"):
        raise OptionError.unknown("format", format, ["table", "json"])
    if not 0 < seconds <= 600:
        raise OptionError(f"--seconds {seconds:g}: choose up to 600")
    told = examine_machine(words(meters), seconds)
    if format == "json":
        print(json.dumps(told, indent=1))
        return
    from rich.console import Console

    from ..views.console_doctor import doctor_screen

    Console(highlight=False).print(doctor_screen(told))
