"""``wattribute plot``: a picture of a recording."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Optional

import typer

from ..views.charts import KINDS
from .flags import words
from .options import with_selection

_KINDS = "; ".join(f"{kind}: {what}" for kind, what in KINDS.items())
# Typer reads these types at run time, on Python 3.10 too, and wants Optional
Word = Optional[str]  # noqa: UP045
Number = Optional[int]  # noqa: UP045


@with_selection
def command(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=f"{_KINDS}.")],
    paths: Annotated[list[Path], typer.Argument(metavar="PATH…", help="A trace, archive or profile; runs takes many.")],
    selection: dict[str, Any],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT", help="The picture: .png, .svg, .pdf, .html, .json, .dot.")
    ],
    theme: Annotated[Literal["light", "dark"], typer.Option(help="The ground.")] = "light",
    top: Annotated[Number, typer.Option(min=1, help="How many rows before the rest becomes one.")] = None,
    value: Annotated[Word, typer.Option(help="heatmap, distribution: energy or power.")] = None,
    colour: Annotated[Word, typer.Option(help="timeline, node: by kind (of work), energy or power.")] = None,
    zone: Annotated[Word, typer.Option(help="carbon: where the electricity came from (see zones).")] = None,
    by: Annotated[list[str], typer.Option(help="history, histogram: labels that tell groups apart, or place.")] = [],  # noqa: B006
    scale: Annotated[float, typer.Option(min=0.1, max=10, help="Pixels per point of a .png.")] = 2.0,
) -> None:
    from ..views import plot

    labels = words(by) or None
    looks = {"by": labels, "theme": theme, "top": top, "value": value, "colour": colour}
    sources: list[Any] = [*paths]
    if kind in plot.OF_EXPERIMENTS:
        from ..outputs.experiment import experiment

        sources, zone = [experiment(paths, zone=zone)], None
    plot.write(kind, sources, output, looks=looks, zone=zone, scale=scale, **selection)
