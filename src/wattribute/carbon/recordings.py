"""Emissions of a recording or of a plain curve."""

from __future__ import annotations

import numpy.typing as npt

from .emissions import Emissions, Site, of_curve
from .intensity import World

Pair = tuple[npt.ArrayLike, npt.ArrayLike]


def emissions(
    energy: Pair,
    *,
    zone: str | None = None,
    intensity: float | str | None = None,
    site: Site | None = None,
    outside: World | None = None,
) -> Emissions:
    """What a run emitted."""
    times_ns, energy_j = energy
    return of_curve(times_ns, energy_j, zone=zone, intensity=intensity, site=site, outside=outside)
