"""InfluxDB 1: the readings behind an attribution, with their times, to a database (an address) or as line protocol."""

from __future__ import annotations

from typing import Any

from ..model import Attribution
from .timeseries import send

SUFFIXES = (".lp",)


def write(attribution: Attribution, target: str, **options: Any) -> None:
    """Send to an address, or write a file; ``-`` is standard output."""
    addressed = "://" in target or target.startswith("influx:")
    send.write(attribution, target if addressed else f"influx:{target}", **options)
