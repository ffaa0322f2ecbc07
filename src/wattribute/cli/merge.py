"""``wattribute merge``: the recordings of a job's ranks on one timeline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from ..alignment.merge import merge
from ..archive import save
from ..errors import OptionError
from ..readers import read


def command(
    recordings: Annotated[list[Path], typer.Argument(help="Recordings of one job: *.watt folders or traces.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The merged recording, a new *.watt folder.")],
    align: Annotated[
        Literal["clock", "start"],
        typer.Option(help="Trust their clocks, or lay their beginnings on each other."),
    ] = "clock",
) -> None:
    for path in recordings:
        if sum(path.resolve() == other.resolve() for other in recordings) > 1:
            raise OptionError(f"{path} is named twice; its joules would count double")
    merged = merge([read(path) for path in recordings], align)
    save(merged, output)
    hosts = len(merged.hosts())
    typer.echo(f"{output}: {len(recordings)} recordings, {hosts} hosts, {len(merged.processes)} processes", err=True)
    for problem in merged.problems:
        typer.echo(f"! {problem.message}", err=True)
