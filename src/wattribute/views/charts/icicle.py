"""Icicle: a flame graph with the root at the top."""

from __future__ import annotations

from typing import Any

from ...model import Attribution
from ...plugins import chart
from .flame import flame


@chart("icicle", about="call paths, width = joules, root at the top", needs="stacks", by=("path",))
def icicle(attribution: Attribution, *, theme: str = "light", root: str | None = None) -> Any:
    """A flame graph with the root at the top."""
    return flame(attribution, theme=theme, downwards=True, root=root)
