"""Energy per unit of work in words: of the whole run, and of a row, with its range."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..model import Attribution
from .names import clean
from .numbers import at_least, bounded, count, measured_range


def whole_per_unit(attribution: Attribution) -> str:
    """What was measured per unit, as "28.2 mJ ± 14 estimated (517 counted)"; empty without a unit or a count."""
    if attribution.question.per is None or not attribution.count:
        return ""
    measured = attribution.devices.filter("counted") if attribution.devices["counted"].any() else attribution.devices
    whole = float(measured[f"measured_{attribution.suffix}"].sum())
    ends = (whole, *measured_range(measured.to_dicts(), attribution.suffix))
    value, low, high = (None if end is None else end / attribution.count for end in ends)
    what = "estimated" if measured["estimated"].any() else "measured"
    words = f"{at_least(value, low, high, attribution.unit)} {what}"
    if "co2e_g" in measured.columns and whole:
        g_per_j = float(measured["co2e_g"].sum()) / whole
        grams = [None if end is None else g_per_j * end for end in (value, low, high)]
        words += f", CO2e {at_least(grams[0], grams[1], grams[2], 'g')}"
    return f"{words}, idle included ({count(attribution.count)} counted)"


def line_per_unit(attribution: Attribution) -> str:
    """The same with the unit in front."""
    words = whole_per_unit(attribution)
    return f"per {clean(str(attribution.question.per))}: {words}" if words else ""


def row_per_unit(row: Mapping[str, Any], device: Mapping[str, Any], unit: str, symbol: str) -> str:
    """A row's total per unit (``unit`` "j" or "co2e_g") with its range; of an estimate, what its model says of it."""
    name = f"{unit}_per_unit"
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    if low is None and row[name] is not None and device["estimated"] and device["gain_error"]:
        low, high = (row[name] * (1 + error) for error in (-device["gain_error"], device["gain_error"]))
    return bounded(row[name], low, high, symbol)
