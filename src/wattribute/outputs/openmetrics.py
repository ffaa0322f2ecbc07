"""OpenMetrics: the readings behind an attribution as text, for ``promtool tsdb create-blocks-from openmetrics``."""

from __future__ import annotations

from typing import Any

from ..model import Attribution
from .timeseries import send

SUFFIXES = (".om",)


def write(attribution: Attribution, target: str, **options: Any) -> None:
    """Write a file; ``-`` is standard output."""
    send.write(attribution, target if target.startswith("openmetrics:") else f"openmetrics:{target}", **options)
