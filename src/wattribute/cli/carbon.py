"""``wattribute carbon``: the emissions of a recording, computed anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from ..carbon import Site, check, emissions
from ..readers import read


def command(
    recording: Annotated[Path, typer.Argument(help="A recording: a *.watt folder or a trace.")],
    zone: Annotated[str | None, typer.Option(help="Where it ran: a code or name of `wattribute zones`.")] = None,
    intensity: Annotated[
        str | None, typer.Option(help="g/kWh, a table (.csv, .parquet), yearly, gb or electricitymaps.")
    ] = None,
    start: Annotated[str | None, typer.Option(help="When it began, for a recording without a wall clock.")] = None,
    pue: Annotated[float, typer.Option(help="The facility's energy over the machine's.")] = 1.0,
    price: Annotated[float | None, typer.Option(help="Price of a kWh.")] = None,
    currency: Annotated[str, typer.Option(help="Of the price.")] = "",
    embodied_kg: Annotated[float | None, typer.Option(help="CO2e of making the hardware, in kg.")] = None,
    lifetime_years: Annotated[float, typer.Option(help="Of the hardware.")] = 4.0,
    embodied_share: Annotated[float, typer.Option(help="Part of the hardware that the run used.")] = 1.0,
    wue: Annotated[float | None, typer.Option(help="Litres of water the site evaporates per kWh.")] = None,
    grid_water: Annotated[float | None, typer.Option(help="Litres evaporated per kWh to make electricity.")] = None,
    format: Annotated[Literal["table", "json"], typer.Option(help="How to print.")] = "table",
) -> None:
    check(zone, intensity)
    site = Site(pue, price, currency, embodied_kg, lifetime_years, embodied_share, wue, grid_water)
    result = emissions(read(recording), zone=zone, intensity=intensity, site=site, start=start)
    if format == "json":
        print(json.dumps(result.as_dict(), ensure_ascii=False, indent=1))
        return
    from rich.console import Console

    from ..views.console_carbon import emissions_table

    Console().print(emissions_table(result))
