"""Zones: places with a carbon intensity, and the yearly figures shipped for them.

``zones.csv`` holds one figure per zone with its year, basis and source; ``sources.json`` says what each source is and
under which licence its figures are published. A zone is named by the user, never guessed; the world average stands in
for one that was not named, with the spread of the countries as its error bar.
"""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ..errors import OptionError

WORLD = "WORLD"
_GB_WHOLE = 18  # the id under which the GB API knows the whole of Great Britain


@dataclass(frozen=True)
class Publication:
    """A publication that figures come from."""

    key: str
    title: str
    url: str = ""
    licence: str = ""
    via: str = ""  # whose copy the figures were read from


@dataclass(frozen=True)
class Zone:
    """A place; ``g_per_kwh`` is None where only a half-hourly source knows it."""

    code: str
    name: str
    g_per_kwh: float | None
    year: int | None
    basis: str  # "lifecycle" (fuel chain and plant included) or "direct" (from the stack only)
    source: Publication
    alpha3: str = ""

    @property
    def country(self) -> str:
        """The zone that contains this one: "US" for "US-CAMX"; itself for a country."""
        return self.code.split("-")[0]

    @property
    def gb_region(self) -> int | None:
        """The id of the zone in the GB regional API."""
        if self.code == "GB":
            return _GB_WHOLE
        return int(self.code[3:]) if self.country == "GB" else None


@cache
def sources() -> dict[str, Publication]:
    """The sources of figures by key."""
    text = files(__package__).joinpath("sources.json").read_text(encoding="utf-8")
    return {key: Publication(key, **fields) for key, fields in json.loads(text).items()}


@cache
def zones() -> dict[str, Zone]:
    """Every zone we know, by code."""
    text = files(__package__).joinpath("zones.csv").read_text(encoding="utf-8")
    return {row["zone"]: _zone(row) for row in csv.DictReader(text.splitlines())}


def _zone(row: dict[str, str]) -> Zone:
    return Zone(
        code=row["zone"],
        name=row["name"],
        g_per_kwh=float(row["g_per_kwh"]) if row["g_per_kwh"] else None,
        year=int(row["year"]) if row["year"] else None,
        basis=row["basis"] or "direct",
        source=sources()[row["source"]],
        alpha3=row["alpha3"],
    )


@cache
def _aliases() -> dict[str, str]:
    names: dict[str, str] = {}
    for code, zone in zones().items():
        for alias in (code, zone.alpha3, zone.name):
            if alias:
                names.setdefault(alias.casefold(), code)
    return names | {"uk": "GB", "great britain": "GB", "gb-18": "GB", "world": WORLD, "usa": "US"}


def find(text: str) -> Zone:
    """Find the zone of a code (ISO 3166 alpha-2 or -3, "US-CAMX", "GB-13") or a name ("London"), in any case."""
    code = _aliases().get(text.strip().casefold())
    if code is None:
        known = {*zones(), *(zone.name for zone in zones().values())}
        error = OptionError.unknown("zone", text, known)
        if "known:" in str(error):  # four hundred names are no help
            error = OptionError(f"unknown zone {text!r}; `wattribute zones` lists them")
        raise error
    return zones()[code]


def matching(pattern: str) -> list[Zone]:
    """A country and the zones in it, or the zones whose code, name or source contains a text, in any case."""
    wanted = pattern.strip().casefold()
    if wanted.upper() in zones():
        return [zone for zone in zones().values() if wanted.upper() in (zone.code, zone.country)]
    texts = {code: (zone.code, zone.alpha3, zone.name, zone.source.key) for code, zone in zones().items()}
    return [zones()[code] for code, some in texts.items() if any(wanted in text.casefold() for text in some)]


def yearly(zone: Zone) -> Zone:
    """The zone whose yearly figure stands for this one: itself, else its country."""
    return zone if zone.g_per_kwh is not None else zones()[zone.country]


@cache
def world_spread() -> tuple[float, float]:
    """The 5th and the 95th percentile of the countries' intensities: what "world average" may be off by."""
    figures = sorted(z.g_per_kwh for z in zones().values() if z.alpha3 and z.g_per_kwh is not None)
    return figures[round(0.05 * (len(figures) - 1))], figures[round(0.95 * (len(figures) - 1))]
