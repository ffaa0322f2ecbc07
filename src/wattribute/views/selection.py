"""What a selection of rows left out, in words."""

from __future__ import annotations

from typing import Any

from .numbers import amount

_MANY = {"process": "processes", "host": "hosts", "location": "locations"}


def line_left_out(attribution: Any) -> str:
    """ "other processes 6.2 kJ (not selected)"; empty if nothing was left out. Of an Attribution or an ensemble's."""
    if not attribution.left_out:
        return ""
    what = next((words for name, words in _MANY.items() if getattr(attribution.question, name)), "frames")
    return f"other {what} {amount(attribution.left_out, attribution.unit)} (not selected)"
