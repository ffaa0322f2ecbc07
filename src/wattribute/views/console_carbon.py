"""Zones and emissions in the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from .numbers import seconds, si

if TYPE_CHECKING:
    from ..carbon import Emissions, Zone


def zone_table(zones: Iterable[Zone]) -> Table:
    """Zones with their figure, its year, basis, source and licence."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("zone", "name"):
        table.add_column(name, overflow="fold")
    table.add_column("g/kWh", justify="right")
    for name in ("year", "basis", "source", "licence"):
        table.add_column(name)
    for zone in zones:
        live = zone.g_per_kwh is None
        cells = (zone.code, zone.name, "live" if live else f"{zone.g_per_kwh:.0f}", str(zone.year or "–"), zone.basis)
        table.add_row(*(Text(cell) for cell in cells), Text(zone.source.key), Text(zone.source.licence))
    return table


def emissions_table(result: Emissions) -> RenderableType:
    """One run's grams: the figure, where it comes from, and what is wrong with it."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, words in _lines(result):
        table.add_row(name, Text(words))
    notes = [Text(f"! {problem}", style="yellow") for problem in result.problems]
    return Group(table, *notes)


def _lines(result: Emissions) -> Iterable[tuple[str, str]]:
    spread = ""
    if result.low_g is not None and result.high_g is not None:
        spread = f" ({si(result.low_g, 'g')} … {si(result.high_g, 'g')} for 90 % of countries)"
    mark = " estimated" if result.estimated else ""
    whose = ", the command's share of the machine (--scope process)" if result.scope == "process" else ""
    yield "energy", f"{si(result.energy_j, 'J')}{mark} in {seconds(result.duration_s)}{whose}"
    yield "CO2e", si(result.co2e_g, "g") + spread + mark
    yield "intensity", f"{result.g_per_kwh:.4g} g/kWh" + (f" × PUE {result.pue:g}" if result.pue != 1 else "")
    zone = result.name + (f" ({result.zone})" if result.zone else "")
    yield "zone", zone + (": assumed, name yours with --zone" if result.assumed else "")
    yield "source", "; ".join(result.sources) + (" (fallback)" if result.fallback else "")
    if result.licences:
        yield "licence", "; ".join(result.licences)
    if result.embodied_g is not None:
        yield "embodied", f"{si(result.embodied_g, 'g')}; with it {si(result.total_g, 'g')}"
    if result.cost is not None:
        yield "cost", f"{result.cost:.4g} {result.currency}".rstrip() + mark
    if result.water_l is not None:
        yield "water", si(result.water_l, "l") + mark
    if len(result.slices) > 1:
        low, high = (f(part.g_per_kwh for part in result.slices) for f in (min, max))
        yield "slices", f"{len(result.slices)}, {low:g} … {high:g} g/kWh"
