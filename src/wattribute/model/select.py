"""Regular expressions over names: choose signals, and say when an expression matches nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from ..errors import OptionError
from .recording import Problem, Recording


def pattern(text: str) -> re.Pattern[str]:
    """A user's regular expression, compiled; a wrong one is a clear error."""
    try:
        return re.compile(text, re.IGNORECASE)
    except re.error as error:
        raise OptionError(f"{text!r} is not a regular expression: {error}") from error


def unmatched(what: str, names: Iterable[str], wanted: str | None) -> tuple[Problem, ...]:
    """What to say when a regular expression matches none of the names."""
    if wanted is None or any(map(pattern(wanted).search, names)):
        return ()
    return (Problem("selection", f"no {what} matches {wanted!r}; `wattribute info` shows the names"),)


def select_metrics(recording: Recording, metric: str | None) -> Recording:
    """The recording with only the signals whose name matches."""
    if metric is None:
        return recording
    wanted = pattern(metric)
    return replace(recording, signals=tuple(s for s in recording.signals if wanted.search(s.name)))
