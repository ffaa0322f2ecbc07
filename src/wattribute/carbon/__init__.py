"""Joules → grams: intensity over time for a zone, multiplied with energy slice by slice.

::

    zones (yearly figures) | live (GB, Electricity Maps) | profile (tables, constants)  →  intensity  →  emissions

``emissions(recording, zone="FR")`` is the way in; ``run`` and the views use it too. The zone is what the user says,
never a guess: without one the result is the world average, marked so.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .grams import Emissions, Site, Slice
    from .intensity import World, check
    from .places import Zone, find, zones
    from .planning import StartPlan, plan
    from .recordings import emissions, with_emissions
    from .sci_factors import Sci, sci

# loaded when used: ``check`` is asked before a program starts, which must not wait for NumPy
_HOME = {
    "Emissions": "grams",
    "StartPlan": "planning",
    "Sci": "sci_factors",
    "Site": "grams",
    "Slice": "grams",
    "World": "intensity",
    "Zone": "places",
    "check": "intensity",
    "emissions": "recordings",
    "find": "places",
    "plan": "planning",
    "sci": "sci_factors",
    "with_emissions": "recordings",
    "zones": "places",
}
__all__ = [
    "Emissions",
    "Sci",
    "Site",
    "Slice",
    "StartPlan",
    "World",
    "Zone",
    "check",
    "emissions",
    "find",
    "plan",
    "sci",
    "with_emissions",
    "zones",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)
