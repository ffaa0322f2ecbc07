"""InfluxDB 2: send the readings behind an attribution, with their times, to an InfluxDB 2 bucket (an address)."""

from .timeseries.send import write

__all__ = ["SUFFIXES", "write"]
SUFFIXES: tuple[str, ...] = ()
