"""The nouns: frozen dataclasses of NumPy columns. No files, no hardware, no plug-ins in here.

A reader or recorder makes a :class:`Recording`; attribution turns it into an :class:`Attribution`; outputs and views
read that. Everything else in this package is a part of one of the two.
"""

from .attribution import Attribution
from .recording import Clock, Device, Link, Missing, Problem, Recording, Signal
from .spans import Curve, Fold, Intervals, Keys, Spans, SpanSource, SpanTable
from .tables import Frames, Locations, Nodes, Paths, Processes

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
    "SpanSource",
    "SpanTable",
    "Spans",
]
