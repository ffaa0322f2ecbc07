"""``wattribute images``: the container images of this machine."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Literal

import typer

from ..recorders.daemon import images


def command(
    format: Annotated[Literal["table", "json"], typer.Option(help="How to print.")] = "table",
) -> None:
    found = images()
    if format == "json":
        print(json.dumps([asdict(image) for image in found], ensure_ascii=False, indent=1))
        return
    from rich.console import Console

    from ..views.console_images import image_table

    console = Console(highlight=False)
    console.print(image_table(found), width=None if console.is_terminal else 160)
