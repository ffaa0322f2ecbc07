"""Selections: the functions that a name or a regular expression means, and what was left out, in words."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ..errors import OptionError
from ..model.question import check_regex
from ..model.select import pattern
from .numbers import amount

_MANY = {"process": "processes", "host": "hosts", "location": "locations"}


def line_left_out(attribution: Any) -> str:
    """ "other processes 6.2 kJ (not selected)"; empty if nothing was left out. Of an Attribution or an ensemble's."""
    if not attribution.left_out:
        return ""
    what = next((words for name, words in _MANY.items() if getattr(attribution.question, name)), "frames")
    return f"other {what} {amount(attribution.left_out, attribution.unit)} (not selected)"


def matching(names: Collection[str], wanted: str) -> set[str]:
    """The function of this name, else those whose names the regular expression matches (``--root``)."""
    check_regex(wanted)
    chosen = {wanted} if wanted in names else {name for name in names if pattern(wanted).search(name)}
    if not chosen:
        raise OptionError.unknown("function to start at (--root)", wanted, sorted(names))
    return chosen
