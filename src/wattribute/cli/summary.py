"""``wattribute summary``: an experiment of many runs in one table, per label."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Literal, Optional

import typer

from .flags import words

# Typer reads these types at run time, on Python 3.10 too, and wants Optional
MaybeText = Optional[str]  # noqa: UP045


def command(
    paths: Annotated[
        list[Path], typer.Argument(metavar="DIR…", help="Folders of runs, recordings, or codecarbon and Eco2AI files.")
    ],
    by: Annotated[
        list[str],
        typer.Option(help="The label that tells groups apart, or place; repeatable. Default: those that differ."),
    ] = [],  # noqa: B006
    zone: Annotated[MaybeText, typer.Option(help="Compute all emissions anew for this zone.")] = None,
    intensity: Annotated[
        MaybeText, typer.Option(help="The same at this many g/kWh, a table, or a live source.")
    ] = None,
    format: Annotated[
        Literal["table", "json", "csv"], typer.Option(help="json: all statistics; csv: a line per run.")
    ] = "table",
) -> None:
    from ..outputs.experiment import experiment, run_table

    found = experiment(paths, zone=zone, intensity=intensity)
    if format == "csv":
        run_table(found).write_csv(sys.stdout)
        return
    told = found.summary(words(by))
    if format == "json":
        print(json.dumps(told, ensure_ascii=False, indent=1))
        return
    from rich.console import Console

    from ..views.console_summary import summary_table

    console = Console(highlight=False)
    console.print(summary_table(told, console.width))
