"""Which devices are added up, and what their sums are: those that the ledger counts."""

from __future__ import annotations

from typing import Any

from ...model import Attribution


def summed(attribution: Attribution) -> list[dict[str, Any]]:
    """The devices that count."""
    return [device for device in attribution.devices.to_dicts() if device["counted"]]


def total(attribution: Attribution, column: str) -> float:
    """A column of the devices that count: "measured", "attributed" or "idle"."""
    return float(sum(device[f"{column}_j"] or 0.0 for device in summed(attribution)))


def known(attribution: Attribution) -> str:
    """ "measured", or "estimated" when no meter said anything, or both."""
    if attribution.unit == "s":
        return "of time"
    estimated = [bool(device["estimated"]) for device in summed(attribution)]
    return "measured" if not any(estimated) else "estimated" if all(estimated) else "partly estimated"
