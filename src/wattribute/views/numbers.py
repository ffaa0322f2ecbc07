"""Numbers as people read them: three digits with SI prefixes, bounds as ±, never a bare 0 below resolution."""

from __future__ import annotations

import math

_PREFIXES = {-12: "p", -9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P"}
_PLAIN = ("%", "°C", "#")  # units that take no prefix
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def si(value: float | None, unit: str = "", digits: int = 3) -> str:
    """``si(1842.5, "J")`` is "1.84 kJ"; nothing or NaN is "–"."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return ("−" if value < 0 else "") + "∞" + (f" {unit}" if unit else "")
    if unit == "J" and -1e-9 < value < 0:
        value = 0.0  # what rounding leaves of a total less all that was passed on
    if unit == "s" and abs(value) < 1e-12:
        value = 0.0  # the same: no clock tells so little
    if unit == "B":
        return _bytes(value, digits)
    exponent = 0 if unit in _PLAIN else _exponent(value, digits)
    number = _digits(value / 10.0**exponent, digits)
    if abs(value) >= 1e21:
        exponent, number = 0, f"{value:.{digits - 1}e}".replace("-", "−")  # no prefix reaches there, and no eye
    tail = _PREFIXES[exponent] + ("" if unit == "#" else unit)
    return f"{number} {tail}" if tail else number


def _exponent(value: float, digits: int) -> int:
    if value == 0:
        return 0
    rounded = float(f"{abs(value):.{digits - 1}e}")  # 999.9 is to become 1.00 k, not 1000
    return min(15, max(-12, 3 * math.floor(math.log10(rounded) / 3 + 1e-12)))


def _digits(number: float, digits: int) -> str:
    if number == 0:
        return "0"
    places = digits - 1 - math.floor(math.log10(float(f"{abs(number):.{digits - 1}e}")) + 1e-12)
    return f"{number:,.{max(0, places)}f}".replace("-", "−")


def _bytes(value: float, digits: int) -> str:
    power = 0
    while abs(value) >= 1024 and power < len(_BINARY) - 1:
        value, power = value / 1024, power + 1
    return f"{_digits(value, digits)} {_BINARY[power]}"


def count(value: int) -> str:
    """A whole number: exact up to 99,999, then "1.23 M"."""
    return f"{value:,}" if abs(value) < 100_000 else si(float(value))


def seconds(value: float | None) -> str:
    """A duration: "4.74 s", "3 min 20 s", "2 h 05 min"."""
    if value is None or math.isnan(value) or abs(value) < 120:
        return si(value, "s")
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60:,} h {minutes % 60:02d} min"


def percent(part: float, whole: float) -> str:
    """A share: "81 %", "0.3 %", "< 0.1 %"; "–" of nothing."""
    if not whole:
        return "–"
    share = 100 * part / whole
    if share and abs(share) < 0.1:
        return "< 0.1 %"
    return f"{share:.0f} %" if abs(share) >= 10 else f"{share:.1f} %"


def bounded(value: float | None, low: float | None, high: float | None, unit: str = "J") -> str:
    """A value with its bounds: "6.50 J ± 0.90"; below what the sensor resolves: "< 1.60 J"."""
    if value is None or low is None or high is None or math.isnan(low) or math.isnan(high):
        return si(value, unit)
    half = max(high - value, value - low)
    if low <= 0 and half >= value and high > 0:
        return f"< {si(high, unit)}"
    if half <= 5e-4 * abs(value):  # the third digit does not feel it
        return si(value, unit)
    exponent = _exponent(value, 3)
    return f"{si(value, unit)} ± {_digits(half / 10.0**exponent, 2)}"
