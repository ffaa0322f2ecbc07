"""``wattribute sql PATH QUERY``: ask a recording and its attribution."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from .options import with_selection


@with_selection
def command(
    path: Annotated[Path, typer.Argument(help="A trace, archive or profile.")],
    query: Annotated[
        str,
        typer.Argument(help="SQL over spans, frames, locations, signals, readings, attribution, devices."),
    ],
    selection: dict[str, Any],
    by: Annotated[str, typer.Option(help="Keys of the table attribution.")] = "device,frame",
    dialect: Annotated[Literal["polars", "duckdb"], typer.Option(help="Whose SQL.")] = "polars",
    format: Annotated[Literal["table", "json", "csv"], typer.Option(help="How to print.")] = "table",
) -> None:
    from ..outputs.sql import sql

    found = sql(path, query, dialect, by=by, **selection)
    if format == "json":
        print(json.dumps(found.to_dicts(), ensure_ascii=False, indent=1, default=str))
    elif format == "csv":
        from ..outputs.folder import flat

        print(flat(found).write_csv(), end="")
    else:
        from rich.console import Console

        from ..views.console_frame import frame_table

        Console(width=None if sys.stdout.isatty() else 160).print(frame_table(found))
