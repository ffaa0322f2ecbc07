"""Energy × intensity, slice by slice → grams, with provenance; and what a site adds: cooling, price, water, hardware.

::

    operational  co2e_g     = Σ over slices: energy_j / 3.6e6 × PUE × g_per_kwh of that slice
    embodied_g              = embodied_kg × 1000 × share × duration / lifetime           (the M of the SCI standard)
    cost                    = energy_kwh × PUE × price
    water_l                 = energy_kwh × (WUE + PUE × water of the grid per kWh)

The views and ``run`` call :func:`of_curve`; :mod:`.recordings` calls it for recordings and attributions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import NoDataError, OptionError
from ..units import J_PER_KWH
from .intensity import Intensity, World, resolve
from .intensity_curve import Profile

_YEAR_S = 365.25 * 86_400


@dataclass(frozen=True)
class Site:
    """What the machine's site adds to its energy: cooling, price, water, hardware; all optional."""

    pue: float = 1.0  # power usage effectiveness: the facility's energy over the machine's
    price: float | None = None  # per kWh
    currency: str = ""
    embodied_kg: float | None = None  # CO2e of making the hardware
    lifetime_years: float = 4.0
    embodied_share: float = 1.0  # of the hardware, used by this run
    wue_l_per_kwh: float | None = None  # water the site evaporates per kWh of the machine
    grid_water_l_per_kwh: float | None = None  # water evaporated where the electricity is made

    def __post_init__(self) -> None:
        if not 1 <= self.pue <= 10:
            raise OptionError(
                f"a PUE of {self.pue} is impossible: it is the facility's energy over the machine's, at least 1"
            )
        if not 0 <= self.embodied_share <= 1:
            raise OptionError(f"an embodied share of {self.embodied_share} is impossible: give 0 to 1")
        if self.lifetime_years <= 0:
            raise OptionError(f"a lifetime of {self.lifetime_years} years is impossible: give more than 0")
        for name in ("price", "embodied_kg", "wue_l_per_kwh", "grid_water_l_per_kwh"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < float("inf"):
                raise OptionError(f"{name} cannot be {value}: give a number that is not negative")


@dataclass(frozen=True)
class Slice:
    """A stretch of the run with one intensity; times are ns since the epoch, or since the start without a clock."""

    start_ns: int
    end_ns: int
    energy_j: float
    g_per_kwh: float
    co2e_g: float
    source: str
    fallback: bool


@dataclass(frozen=True)
class Emissions:
    """Emissions of a run, with the sources of the figures."""

    energy_j: float
    co2e_g: float  # operational, PUE included
    g_per_kwh: float  # the mean, weighted by energy
    low_g: float | None  # set when the zone was assumed: the spread between countries
    high_g: float | None
    zone: str
    name: str
    assumed: bool
    fallback: bool
    sources: tuple[str, ...]
    licences: tuple[str, ...]
    problems: tuple[str, ...]
    slices: tuple[Slice, ...]
    duration_s: float
    pue: float = 1.0
    cost: float | None = None
    currency: str = ""
    embodied_g: float | None = None
    water_l: float | None = None
    estimated: bool = False  # the energy, or a part of it, comes from a model
    scope: str = "machine"  # all that was metered; "process": the command's share of it
    unseen: tuple[str, ...] = ()  # devices that were not metered all the time: joules and grams are a lower limit
    energy_low_j: float | None = None  # the range of the energy, where every device that counts has one
    energy_high_j: float | None = None  # None also where a device is unseen

    @property
    def total_g(self) -> float:
        """Operational and embodied grams together."""
        return self.co2e_g + (self.embodied_g or 0.0)

    @property
    def spread(self) -> tuple[float, float]:
        """Least and greatest intensity over the one used; both are 1 unless the zone was assumed."""
        if self.low_g is None or self.high_g is None or not self.co2e_g:
            return 1.0, 1.0
        return self.low_g / self.co2e_g, self.high_g / self.co2e_g

    @property
    def range_g(self) -> tuple[float | None, float | None]:
        """Least and greatest operational grams: the range of the energy times that of the intensity."""
        low, high = self.low_g, self.high_g
        if self.energy_j and self.energy_low_j is not None:
            ends = zip((self.energy_low_j, self.energy_high_j), self.spread, strict=True)
            low, high = (None if end is None else self.co2e_g * end / self.energy_j * factor for end, factor in ends)
        return low, None if self.unseen else high

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        low, high = self.range_g
        return {**asdict(self), "total_g": self.total_g, "co2e_low_g": low, "co2e_high_g": high}


def of_curve(
    times_ns: npt.ArrayLike,
    energy_j: npt.ArrayLike,
    *,
    zone: str | None = None,
    intensity: float | str | None = None,
    site: Site | None = None,
    wall_clock: bool = True,
    outside: World | None = None,
) -> Emissions:
    """The emissions of a curve of energy used so far: ``energy_j[i]`` joules at ``times_ns[i]``, linear in between.

    ``wall_clock`` says that times are since the Unix epoch; otherwise no intensity by time of day can be used.
    """
    times, energy = np.asarray(times_ns, np.int64), np.asarray(energy_j, np.float64)
    if len(times) == 0 or len(times) != len(energy):
        raise NoDataError("no energy over time: nothing to compute emissions of")
    if np.any(np.diff(times) < 0) or not np.all(np.isfinite(energy)):
        raise NoDataError("the energy curve is out of order or not finite")

    def joules(ns: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        at = np.interp(ns, times - times[0], energy)
        at[0], at[-1] = energy[0], energy[-1]
        return at

    given: dict[str, Any] = {"zone": zone, "intensity": intensity, "site": site, "outside": outside}
    return of_energy(joules, int(times[0]), int(times[-1]), wall_clock=wall_clock, **given)


def of_energy(
    joules: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.float64]],
    start_ns: int,
    end_ns: int,
    *,
    zone: str | None = None,
    intensity: float | str | None = None,
    site: Site | None = None,
    wall_clock: bool = True,
    outside: World | None = None,
) -> Emissions:
    """As :func:`of_curve`, of a function: the joules used up to moments, in ns since the start; the last is the end."""
    site = site or Site()
    resolved = resolve(zone, intensity, start_ns if wall_clock else None, end_ns if wall_clock else None, outside)
    slices = _slices(joules, start_ns, end_ns, resolved.profile, site.pue)
    return _result(slices, resolved, site, (end_ns - start_ns) / 1e9)


def _slices(
    joules_at: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.float64]],
    origin: int,
    end: int,
    profile: Profile,
    pue: float,
) -> tuple[Slice, ...]:
    steps = [s for s in profile.steps if s.start_ns < max(end, origin + 1) and s.end_ns > origin]
    edges = [max(steps[0].start_ns, origin), *(min(step.end_ns, end) for step in steps)]
    # relative to the start: a float of ns since 1970 is only exact to 256 ns
    at = joules_at(np.array([edge - origin for edge in edges], np.int64))
    parts = []
    for i, step in enumerate(steps):
        joules = float(at[i + 1] - at[i])
        grams = joules / J_PER_KWH * pue * step.g_per_kwh
        parts.append(Slice(edges[i], edges[i + 1], joules, step.g_per_kwh, grams, step.source, step.fallback))
    return tuple(parts)


def _result(slices: Sequence[Slice], intensity: Intensity, site: Site, duration_s: float) -> Emissions:
    energy_j = sum(part.energy_j for part in slices)
    kwh = energy_j / J_PER_KWH
    co2e_g = sum(part.co2e_g for part in slices)
    low, high = (kwh * site.pue * g for g in intensity.spread) if intensity.spread else (None, None)
    return Emissions(
        energy_j=energy_j,
        co2e_g=co2e_g,
        g_per_kwh=co2e_g / (kwh * site.pue) if kwh else slices[0].g_per_kwh,
        low_g=low,
        high_g=high,
        zone=intensity.zone.code if intensity.zone else "",
        name=intensity.name,
        assumed=intensity.assumed,
        fallback=any(part.fallback for part in slices),
        sources=tuple(dict.fromkeys(part.source for part in slices)),
        licences=intensity.licences,
        problems=intensity.problems,
        slices=tuple(slices),
        duration_s=duration_s,
        pue=site.pue,
        cost=None if site.price is None else kwh * site.pue * site.price,
        currency=site.currency,
        embodied_g=_embodied_g(site, duration_s),
        water_l=_water_l(site, kwh),
    )


def _embodied_g(site: Site, duration_s: float) -> float | None:
    if site.embodied_kg is None:
        return None
    return site.embodied_kg * 1000 * site.embodied_share * duration_s / (site.lifetime_years * _YEAR_S)


def _water_l(site: Site, kwh: float) -> float | None:
    if site.wue_l_per_kwh is None and site.grid_water_l_per_kwh is None:
        return None
    return kwh * ((site.wue_l_per_kwh or 0.0) + site.pue * (site.grid_water_l_per_kwh or 0.0))
