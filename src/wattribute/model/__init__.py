"""The nouns: frozen dataclasses of NumPy columns. No files, no hardware, no plug-ins in here.

A reader or recorder makes a :class:`Recording`; attribution turns it into an :class:`Attribution`; outputs and views
read that. Everything else in this package is a part of one of the two. Names are imported when first used, because a
meter needs ``Device`` in a process that must start without NumPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .attribution import Answer, Attribution
    from .devices import Device
    from .question import Question, ReadOptions
    from .recording import Clock, Link, Missing, Problem, Recording, Signal
    from .spans import Curve, Fold, Intervals, Keys, Launches, SpanRows, Spans, SpanSource, SpanTable
    from .summary import DeviceSummary, Interval, PerUnit, Summary
    from .tables import Frames, Locations, Nodes, Paths, Processes

_MODULE_NAMES = {
    "attribution": ("Answer", "Attribution"),
    "devices": ("Device",),
    "question": ("Question", "ReadOptions"),
    "recording": ("Clock", "Link", "Missing", "Problem", "Recording", "Signal"),
    "spans": ("Curve", "Fold", "Intervals", "Keys", "Launches", "SpanRows", "SpanSource", "SpanTable", "Spans"),
    "summary": ("DeviceSummary", "Interval", "PerUnit", "Summary"),
    "tables": ("Frames", "Locations", "Nodes", "Paths", "Processes"),
}

__all__ = [
    "Answer",
    "Attribution",
    "Clock",
    "Curve",
    "Device",
    "DeviceSummary",
    "Fold",
    "Frames",
    "Interval",
    "Intervals",
    "Keys",
    "Launches",
    "Link",
    "Locations",
    "Missing",
    "Nodes",
    "Paths",
    "PerUnit",
    "Problem",
    "Processes",
    "Question",
    "ReadOptions",
    "Recording",
    "Signal",
    "SpanRows",
    "SpanSource",
    "SpanTable",
    "Spans",
    "Summary",
]


def __getattr__(name: str) -> Any:
    for home, names in _MODULE_NAMES.items():
        if name in names:
            return getattr(import_module(f".{home}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
