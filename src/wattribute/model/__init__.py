"""The nouns: frozen dataclasses of NumPy columns. No files, no hardware, no plug-ins in here.

A reader or recorder makes a :class:`Recording`; attribution turns it into an :class:`Attribution`; outputs and views
read that. Everything else in this package is a part of one of the two. Names are imported when first used, because a
meter needs ``Device`` in a process that must start without NumPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .attribution import Attribution
    from .devices import Device
    from .recording import Clock, Link, Missing, Problem, Recording, Signal
    from .spans import Curve, Fold, Intervals, Keys, SpanRows, Spans, SpanSource, SpanTable
    from .tables import Frames, Locations, Nodes, Paths, Processes

_HOME = {
    "attribution": ("Attribution",),
    "devices": ("Device",),
    "recording": ("Clock", "Link", "Missing", "Problem", "Recording", "Signal"),
    "spans": ("Curve", "Fold", "Intervals", "Keys", "SpanRows", "SpanSource", "SpanTable", "Spans"),
    "tables": ("Frames", "Locations", "Nodes", "Paths", "Processes"),
}

__all__ = [
    "Attribution",
    "Clock",
    "Curve",
    "Device",
    "Fold",
    "Frames",
    "Intervals",
    "Keys",
    "Link",
    "Locations",
    "Missing",
    "Nodes",
    "Paths",
    "Problem",
    "Processes",
    "Recording",
    "Signal",
    "SpanRows",
    "SpanSource",
    "SpanTable",
    "Spans",
]


def __getattr__(name: str) -> Any:
    for home, names in _HOME.items():
        if name in names:
            return getattr(import_module(f".{home}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
