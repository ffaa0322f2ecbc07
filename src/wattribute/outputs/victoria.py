"""VictoriaMetrics: send the readings behind an attribution, with their times, to a server (an address)."""

from .timeseries.send import write

__all__ = ["SUFFIXES", "write"]
SUFFIXES: tuple[str, ...] = ()
