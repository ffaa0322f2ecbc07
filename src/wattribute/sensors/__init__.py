"""Known sensors: ``names`` has kind, unit and device of a metric by name, ``table`` how a sensor measures.

Both are data with a few lines of code around them. Readers and meters ask ``names`` once, where data enter; attribution
asks ``table`` when it turns readings into joules with a range.
"""

from __future__ import annotations

from .names import KINDS, Declaration, Override, Sensor, contains, describe, family, identify
from .table import Evidence, Line, SensorTable, known_lines

__all__ = [
    "KINDS",
    "Declaration",
    "Evidence",
    "Line",
    "Override",
    "Sensor",
    "SensorTable",
    "contains",
    "describe",
    "family",
    "identify",
    "known_lines",
]
