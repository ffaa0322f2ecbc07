"""Joules → grams: intensity over time for a zone, multiplied with energy slice by slice.

::

    zones (yearly figures) | live (GB, Electricity Maps) | profile (tables, constants)  →  intensity  →  emissions

``emissions(recording, zone="FR")`` is the way in; ``run`` and the views use it too. The zone is what the user says,
never a guess: without one the result is the world average, marked so.
"""

from __future__ import annotations

from .emissions import Emissions, Site, Slice
from .intensity import World, check
from .recordings import emissions
from .zones import Zone, find, zones

__all__ = ["Emissions", "Site", "Slice", "World", "Zone", "check", "emissions", "find", "zones"]
