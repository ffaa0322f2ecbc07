"""Choice of the intensity: the user's zone and source → a profile over the run, its gaps filled and marked.

Order of trust: what was given (a number, a table, a live source), then the yearly figure of the zone or its country,
then the world average. Nothing here fails for want of a network.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..errors import NotFoundError, OptionError
from . import live, places
from .cache import Cache
from .intensity_curve import Profile, checked, constant, from_table
from .places import WORLD, Zone
from .web import Web

ZONE = "WATTRIBUTE_ZONE"
_TABLES = (".csv", ".tsv", ".parquet", ".pq")
_WEB = Web()  # one for the process: it remembers which servers to leave in peace


@dataclass
class World:
    """What lies outside the process: the network, the cache, the environment's default zone."""

    web: Web = field(default_factory=lambda: _WEB)
    cache: Cache = field(default_factory=Cache)
    offline: bool = field(default_factory=lambda: bool(os.environ.get("WATTRIBUTE_OFFLINE")))
    zone: str | None = field(default_factory=lambda: os.environ.get(ZONE) or None)


@dataclass(frozen=True)
class Intensity:
    """A profile without gaps, with its sources."""

    profile: Profile
    zone: Zone | None  # None: a number or a table that needs no zone
    name: str  # the zone as it is shown
    licences: tuple[str, ...] = ()
    assumed: bool = False  # no zone was given
    spread: tuple[float, float] | None = None  # g/kWh: where the truth may lie when assumed
    problems: tuple[str, ...] = ()


def resolve(
    zone: str | None, given: float | str | None, start_ns: int | None, end_ns: int | None, outside: World | None = None
) -> Intensity:
    """Choose the intensity of a run; ``start_ns`` is None when the recording has no wall clock.

    ``given`` is a number (g/kWh), a table's path, "yearly", "gb" or "electricitymaps"; by default the half-hourly
    source for zones of Great Britain and the yearly figure for all others.
    """
    outside = outside or World()
    zone = zone or outside.zone
    place = _checked(zone, given)
    number = _number(given)
    if number is not None:
        return Intensity(constant(number, "given"), place, place.name if place else "given")
    if given is None:
        given = "gb" if place and place.gb_region else "yearly"
    if given == "yearly":
        return _yearly(place)
    if start_ns is None or end_ns is None:
        why = "the recording has no wall clock, so no intensity by time of day; give --start"
        return _yearly(place, problems=(why,), fallback=True)
    return _by_time(str(given), zone, place, start_ns, end_ns, outside)


def check(zone: str | None = None, given: float | str | None = None) -> Zone | None:
    """The zone of a name, or of the environment; raises OptionError for a zone, source or table that cannot be used.

    Asks no network and imports little: a program may be waiting to start.
    """
    return _checked(zone or World().zone, given)


def _checked(zone: str | None, given: float | str | None) -> Zone | None:
    place = _place(zone, given)
    if given is None or given == "yearly":
        return place
    number = _number(given)
    if number is not None:
        checked(number)
    elif given in live.SOURCES:
        _live_zone(str(given), zone, place)
        if given == "electricitymaps":
            live.token()
    elif not _is_table(str(given)):
        known = [*live.SOURCES, "yearly", "a number (g/kWh)", "a table (.csv or .parquet)"]
        raise OptionError.unknown("intensity", str(given), known)
    elif not Path(str(given)).is_file():
        raise NotFoundError(f"{given}: file not found; --intensity takes a table (.csv or .parquet)")
    return place


def _is_table(given: str) -> bool:
    return Path(given).suffix.casefold() in _TABLES or Path(given).is_file()


def _number(given: float | str | None) -> float | None:
    if given is None:
        return None
    try:
        return float(given)
    except ValueError:
        return None


def _place(zone: str | None, given: float | str | None) -> Zone | None:
    """The zone; Electricity Maps knows more of them than we do, so for it an unknown one stands for its country."""
    if zone is None:
        return None
    try:
        return places.find(zone)
    except OptionError:
        if given != "electricitymaps":
            raise
        return places.zones().get(zone.upper().split("-")[0])


def _yearly(place: Zone | None, problems: tuple[str, ...] = (), fallback: bool = False) -> Intensity:
    figure, words, zone = _figure(place)
    assumed = place is None
    return Intensity(
        constant(figure, words, fallback),
        zone,
        (place or zone).name,
        (zone.source.licence,),
        assumed,
        places.world_spread() if zone.code == WORLD else None,
        problems,
    )


def _figure(place: Zone | None) -> tuple[float, str, Zone]:
    zone = places.yearly(place) if place else places.zones()[WORLD]
    assert zone.g_per_kwh is not None  # countries and the world have one: tested
    return zone.g_per_kwh, f"{zone.source.title}, {zone.year}, {zone.name}", zone


def _by_time(given: str, zone: str | None, place: Zone | None, start_ns: int, end_ns: int, outside: World) -> Intensity:
    end_ns = max(end_ns, start_ns + 1)
    problems: tuple[str, ...] = ()
    licences: tuple[str, ...] = ()
    if given in live.SOURCES:
        key = _live_zone(given, zone, place)
        source = places.sources()["neso" if given == "gb" else given]
        licences = (source.licence,)
        steps, why = live.profile(given, key, start_ns, end_ns, outside.web, outside.cache, outside.offline)
        words = f"{source.title}, {place.name if place and given == 'gb' else key}"
        known = Profile(tuple(replace(step, source=words) for step in steps.steps))
        problems = tuple(why)
    else:
        known = from_table(Path(given), {zone, place.code} if zone and place else set())
        if not known.covers(start_ns, end_ns):
            problems = (f"{given} does not cover the whole run",)
    figure, substitute, stand_in = _figure(place)
    whole = known.filled(start_ns, end_ns, figure, substitute, fallback=True)
    if any(step.fallback for step in whole.steps):
        problems += (f"{_portion(whole)} of the run uses {substitute} ({figure:g} g/kWh) instead",)
        licences += (stand_in.source.licence,)
    shown = place.name if place else (zone or "the table")
    return Intensity(whole, place, shown, tuple(dict.fromkeys(licences)), problems=problems)


def _portion(profile: Profile) -> str:
    missing = sum(step.end_ns - step.start_ns for step in profile.steps if step.fallback)
    share = missing / (profile.steps[-1].end_ns - profile.steps[0].start_ns)
    return "all" if share == 1 else f"{share:.1%}"


def _live_zone(given: str, zone: str | None, place: Zone | None) -> str:
    if zone is None:
        raise OptionError(f"--intensity {given} needs a --zone; `wattribute zones` lists them")
    if given == "gb":
        if place is None or place.gb_region is None:
            raise OptionError(f"--intensity gb knows Great Britain only, not {zone!r}; e.g. --zone GB-13 (London)")
        return place.code
    by_name = place is not None and zone.casefold() in (place.name.casefold(), place.alpha3.casefold())
    return place.code if place and by_name else zone.upper()
