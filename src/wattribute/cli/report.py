"""``wattribute report``: the story of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from .options import with_selection


@with_selection
def command(
    path: Annotated[Path, typer.Argument(help="A trace, archive or profile.")],
    selection: dict[str, Any],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT", help="The report: .html, .md (pictures beside it) or .pdf.")
    ],
    zone: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Where the electricity came from (see zones); else the world average."),
    ] = None,
) -> None:
    from ..views.report import write_report

    write_report(path, output, zone=zone, **selection)
