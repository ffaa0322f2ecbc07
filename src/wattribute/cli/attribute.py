"""``wattribute attribute``: whose joules."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Optional

import typer

from .options import with_selection
from .reading import progress_bar

Formats = Literal["table", "json", "csv", "parquet", "report"]
_ENDINGS: dict[str, Formats] = {".json": "json", ".csv": "csv", ".parquet": "parquet"}


@with_selection
def command(
    paths: Annotated[list[str], typer.Argument(help="A trace, archive or profile; several make an ensemble of runs.")],
    selection: dict[str, Any],
    by: Annotated[
        str,
        typer.Option(
            help="Rows: any of device, signal, of, host, process, location, frame, path, paradigm, role, run, file, "
            "line, reading, bin=100ms, joined by commas."
        ),
    ] = "device,frame",
    top: Annotated[Optional[int], typer.Option(min=1, help="Only the first N rows of each device.")] = None,  # noqa: UP045
    statistics: Annotated[
        bool, typer.Option("--statistics", help="Add mean, min, max of the readings inside.")
    ] = False,
    spans: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(metavar="OUT", help="Also stream one row per span to OUT.parquet, or to a folder of such files."),
    ] = None,
    zone: Annotated[Optional[str], typer.Option(help="Add CO2e for this zone; see `wattribute zones`.")] = None,  # noqa: UP045
    intensity: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Add CO2e: g/kWh, a table (.csv, .parquet), yearly, gb or electricitymaps."),
    ] = None,
    format: Annotated[
        Optional[Formats],  # noqa: UP045
        typer.Option(help="How to print or write; else what OUT ends in (.json, .csv, .parquet), else a table."),
    ] = None,
    output: Annotated[Optional[Path], typer.Option("--output", "-o", metavar="OUT", help="Write here.")] = None,  # noqa: UP045
) -> None:
    from ..ensemble import attribute_all
    from ..views.console import show_attribution

    if zone is not None or intensity is not None:
        _check_grams(paths, zone, intensity)
    with progress_bar("attributing"):
        found = attribute_all(paths, by=by, statistics=statistics, spans=spans or False, **selection)
    if zone is not None or intensity is not None:
        from ..carbon import with_emissions

        found, _ = with_emissions(found, zone=zone, intensity=intensity)
    format = format or _ENDINGS.get("" if output is None else output.suffix, "table")
    if format == "table":
        show_attribution(found, top, output)
        return
    from ..outputs.tables import top_rows
    from ..plugins import outputs

    outputs.get(format).write(top_rows(found, top), "-" if output is None else str(output))


def _check_grams(paths: list[str], zone: str | None, intensity: str | None) -> None:
    """Say what is wrong with a zone before the work, not after it."""
    from ..carbon import check
    from ..errors import OptionError

    check(zone, intensity)
    if len(paths) > 1:
        raise OptionError("CO2e is computed for one recording at a time: their hours differ")
