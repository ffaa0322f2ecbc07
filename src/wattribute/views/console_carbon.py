"""Zones and emissions in the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from .fitted_table import FittedTable
from .names import clean
from .numbers import bounded, count, lower_limit, seconds, si

if TYPE_CHECKING:
    from ..carbon import Emissions, Sci, StartPlan, Zone


def zone_table(zones: Iterable[Zone]) -> FittedTable:
    """Zones with their figure, its year, basis, source and licence."""
    table = FittedTable(drop=("licence", "source", "basis", "year"))
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


def emissions_table(
    result: Emissions, per_unit: Sci | None = None, market: Emissions | None = None, factors: bool = False
) -> RenderableType:
    """One run's grams: the figure, where it comes from, and what is wrong with it; per unit of work, by contract."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, words in _lines(result):
        table.add_row(name, Text(words))
    if market is not None:
        by_contract = f"{si(market.co2e_g, 'g')} at {market.g_per_kwh:.4g} g/kWh"
        table.add_row("market-based", Text(f"{by_contract}, by contract; the CO2e above is location-based"))
    for name, words in () if per_unit is None else _per_unit(per_unit, market, factors):
        table.add_row(name, Text(words))
    problems = per_unit.problems if per_unit is not None and factors else result.problems
    notes = [Text(f"! {problem}", style="yellow") for problem in dict.fromkeys(problems)]
    return Group(table, *notes)


def _per_unit(sci: Sci, market: Emissions | None, factors: bool) -> Iterable[tuple[str, str]]:
    """The SCI with its factors, or only the grams per unit."""
    per, is_part = clean(sci.per), bool(sci.emissions.unseen)
    if not factors:
        making = sci.embodied_g.value / sci.count.value
        low, high = (None if end is None else end - making for end in (sci.low, sci.high))
        each = sci.operational_g / sci.count.value
        grams = lower_limit(each, low, "g") if is_part else bounded(each, low, high, "g")
        yield f"per {per}", f"{grams} of the energy ({count(sci.count.value)} counted)"
    else:
        named = {"E": sci.energy_kwh, "I": sci.g_per_kwh, "M": sci.embodied_g, "R": sci.count}
        ranged = [name for name, one in named.items() if None not in (one.low, one.high) and one.low != one.high]
        whose = f"; its range is that of {' and '.join(ranged)}" if None not in (sci.low, sci.high) and ranged else ""
        grams = lower_limit(sci.sci, sci.low, "g") if is_part else bounded(sci.sci, sci.low, sci.high, "g")
        yield "SCI", f"{grams} CO2e per {per} = (E x I + M) / R{whose}"
        for name, one in named.items():
            span = f" ({one.low:.4g} … {one.high:.4g})" if name in ranged else ""
            yield f"  {name}", f"{one.value:.6g}{span} {clean(one.unit)}; {clean(one.source)}; {one.uncertainty}"
    if market is not None:
        each = market.co2e_g / sci.count.value
        yield f"market-based per {per}", f"{si(each, 'g')} CO2e of the energy" + (", no SCI" if factors else "")


def _lines(result: Emissions) -> Iterable[tuple[str, str]]:
    countries = ", over 90 % of countries" if result.low_g is not None else ""
    mark = " estimated" if result.estimated else ""
    whose = ", the command's share of the machine (--scope process)" if result.scope == "process" else ""
    if result.unseen:
        joules = lower_limit(result.energy_j, result.energy_low_j)
        grams = lower_limit(result.co2e_g, result.range_g[0], "g")
    else:
        joules = bounded(result.energy_j, result.energy_low_j, result.energy_high_j)
        grams = bounded(result.co2e_g, *result.range_g, "g")
    yield "energy", f"{joules}{mark} in {seconds(result.duration_s)}{whose}"
    yield "CO2e", grams + mark + countries
    if result.unseen:
        yield "not seen", "; ".join(map(clean, result.unseen))
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


def plan_lines(plan: StartPlan, energy_j: float | None = None, now_ns: int | None = None) -> list[str]:
    """The best start in words."""
    import time

    now_s = (time.time_ns() if now_ns is None else now_ns) / 1e9
    start_s = plan.start_ns / 1e9
    there = f"{plan.g_per_kwh:.4g} g/kWh"
    if start_s - now_s < 60:
        lines = [f"start now: {there} is the least within the time asked for"]
    else:
        at = time.strftime("%a %Y-%m-%d %H:%M %Z", time.localtime(start_s))
        lines = [f"start at {at}, in {seconds(start_s - now_s)}: {there}"]
        lines.append(f"{100 * plan.saved:.0f} % less than now ({plan.now_g_per_kwh:.4g} g/kWh)")
    if energy_j is not None:
        lines.append(f"{si(energy_j, 'J')} as last time are then {si(plan.grams(energy_j), 'g')} CO2e")
    return lines
