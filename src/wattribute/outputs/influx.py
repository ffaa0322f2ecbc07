"""InfluxDB 1: send the readings behind an attribution, with their times, to an InfluxDB 1.x database (an address)."""

from .timeseries.send import write

__all__ = ["SUFFIXES", "write"]
SUFFIXES: tuple[str, ...] = ()
