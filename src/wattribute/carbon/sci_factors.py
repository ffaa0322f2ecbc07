"""Software Carbon Intensity (ISO/IEC 21031): SCI = (E · I + M) / R, with every factor, its source and its range.

E is the energy of the devices that the ledger counts (the facility's, if a PUE is given), I the intensity where and
when it was used (location-based, slice by slice), M the share of making the hardware, R what the program counted. A
market-based figure (contracts, certificates) may stand beside it: it is no SCI, and the two are never mixed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import NoDataError, OptionError
from ..model import Attribution, Question, Recording, counts
from ..units import J_PER_KWH
from .grams import Emissions, Site
from .intensity import World
from .recordings import counted, emissions

YEAR_S = 365.25 * 86_400


@dataclass(frozen=True)
class Factor:
    """One factor of the SCI: its value, where it comes from, its range, and what that is, or why there is none."""

    value: float
    unit: str
    source: str
    uncertainty: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Sci:
    """The SCI of a run per unit of work, in g CO2e, and what it was computed from."""

    per: str
    sci: float
    low: float | None
    high: float | None
    energy_kwh: Factor
    g_per_kwh: Factor
    embodied_g: Factor
    count: Factor
    operational_g: float
    emissions: Emissions
    site: Site
    problems: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON; the emissions stand elsewhere."""
        return asdict(replace(self, emissions=None, site=None))  # type: ignore[arg-type]


def sci(
    energy: Recording | Attribution,
    per: str | None = None,
    *,
    zone: str | None = None,
    intensity: float | str | None = None,
    site: Site | None = None,
    start: str | int | None = None,
    outside: World | None = None,
) -> Sci:
    """The SCI of a recording, or of the part of one that an attribution is about, per unit of work that it counted."""
    recording = energy.recording if isinstance(energy, Attribution) else energy
    question = energy.question if isinstance(energy, Attribution) else Question()
    per = per or question.per
    if per is None:
        raise OptionError("an SCI is per unit of work: name what the program counted with per=UNIT (--per UNIT)")
    site = site or Site()
    emitted = emissions(energy, zone=zone, intensity=intensity, site=site, start=start, outside=outside)
    window = question.window(recording)
    number = counts.total(recording, per, *window)
    if not number > 0:
        raise NoDataError(f"no {per} were counted in that time: there is nothing to divide by")
    used = _energy(recording, question, emitted)
    grid = _intensity(emitted)
    embodied, problems = _embodied(site, emitted)
    total = emitted.co2e_g + embodied.value
    ends = [_times(getattr(used, end), _or(getattr(grid, end), grid.value)) for end in ("low", "high")]
    low, high = (None if end is None else (end + embodied.value) / number for end in ends)
    return Sci(
        per=per,
        sci=total / number,
        low=low,
        high=high,
        energy_kwh=used,
        g_per_kwh=grid,
        embodied_g=embodied,
        count=Factor(number, per, f"counted by the program ({per})", "exact: a count", number, number),
        operational_g=emitted.co2e_g,
        emissions=emitted,
        site=site,
        problems=(*emitted.problems, *problems),
    )


def check_market(factor: float | str) -> float | str:
    """A market-based factor is a number or a table of them; the words for sources of grids are location-based."""
    text = str(factor)
    try:
        if float(text) >= 0:
            return factor
    except ValueError:
        if Path(text).suffix in (".csv", ".parquet"):
            return factor
    raise OptionError(f"--market {text}: give g CO2e per kWh of your contract (0 for certificates), or a table of them")


def _energy(recording: Recording, question: Question, emitted: Emissions) -> Factor:
    """E with the ranges of the devices that count; None where one of them has none."""
    names, kinds = [], []
    for one, curve in counted(recording, question):
        names.append(f"{one.device.name} ({'estimated' if curve.signal.estimated else 'measured'})")
        kinds.append("what the model says of its error" if curve.signal.estimated else "that of the sensors")
    to_kwh = emitted.pue / J_PER_KWH
    ends = [_times(joules, to_kwh) for joules in (emitted.energy_low_j, emitted.energy_high_j)]
    source = f"{', '.join(names)}, by the ledger" + (f"; PUE {emitted.pue:g}" if emitted.pue != 1 else "")
    kinds += ["that of the command's share"] if emitted.scope == "process" else []
    known = f"range: {' and '.join(dict.fromkeys(kinds))}"
    uncertainty = "no range: not every part has one" if None in ends else known
    if emitted.unseen:
        uncertainty = f"a lower limit: {'; '.join(emitted.unseen)}"
    return Factor(emitted.energy_j * to_kwh, "kWh", source, uncertainty, *ends)


def _intensity(emitted: Emissions) -> Factor:
    kwh = emitted.energy_j / J_PER_KWH * emitted.pue
    ends = [None if grams is None or not kwh else grams / kwh for grams in (emitted.low_g, emitted.high_g)]
    many = f", {len(emitted.slices)} slices of time" if len(emitted.slices) > 1 else ""
    source = f"{emitted.name}: {'; '.join(emitted.sources)}{many}" + (" (assumed)" if emitted.assumed else "")
    known = None not in ends
    uncertainty = "range: 90 % of countries (the zone is assumed)" if known else "no range: the source gives none"
    return Factor(emitted.g_per_kwh, "g CO2e/kWh", source, uncertainty, *ends)


def _embodied(site: Site, emitted: Emissions) -> tuple[Factor, tuple[str, ...]]:
    if site.embodied_kg is None:
        unknown = "M is 0: the carbon of making the hardware is not known; give it with --embodied-kg"
        return Factor(0.0, "g CO2e", "not given", "not known: more than 0"), (unknown,)
    share = emitted.duration_s / (site.lifetime_years * YEAR_S)
    source = f"{site.embodied_kg:g} kg × {share:.3g} of {site.lifetime_years:g} years × {site.embodied_share:g} of it"
    return Factor(emitted.embodied_g or 0.0, "g CO2e", source, "no range: as given"), ()


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _or(value: float | None, default: float) -> float:
    return default if value is None else value
