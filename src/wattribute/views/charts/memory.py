"""Memory of devices and processes over time."""

from __future__ import annotations

from typing import Any

from ...model import Attribution, Recording
from ...plugins import chart
from ..theme import theme as theme_of
from .panels import panels_of


@chart("memory", about="memory of devices and processes over time", needs="signals")
def memory(source: Attribution | Recording, *, theme: str = "light") -> Any:
    """Memory over time."""
    return panels_of(source, theme_of(theme), {"B": "memory"}, "memory")
