"""``wattribute zones``: the places whose intensity is known."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Literal

import typer

from ..carbon.places import matching


def command(
    pattern: Annotated[
        str, typer.Argument(help="Show zones of this country, or whose code, name or source contains this.")
    ] = "",
    format: Annotated[Literal["table", "json"], typer.Option(help="How to print.")] = "table",
) -> None:
    found = matching(pattern)
    if format == "json":
        print(json.dumps([asdict(zone) for zone in found], ensure_ascii=False, indent=1))
        return
    from rich.console import Console

    from ..views.console_carbon import zone_table

    console = Console()
    console.print(zone_table(found), width=None if console.is_terminal else 160)
