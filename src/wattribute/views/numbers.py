"""Numbers as people read them: three digits with SI prefixes, ranges beside them, never a bare 0 below resolution."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

_PREFIXES = {-12: "p", -9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P"}
_PLAIN = ("%", "°C", "#")  # units that take no prefix
_NOISE = {"J": 1e-9, "W": 1e-9, "s": 1e-12}  # what rounding leaves of sums; no sensor and no clock tells so little
_UNSEEN = 5e-4  # of a value: three digits do not show it
_HALF = 1 + 1e-12  # a half is rounded up, also where adding up left it a bit below one: 97.25 is 97.3 everywhere
_SMALL = 0.01  # of the end of a range: below it a value has a prefix of its own, so that its digits are seen
EVEN = 0.25  # sides of a range that differ by less of the wider one are one ±
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def si(value: float | None, unit: str = "", digits: int = 3) -> str:
    """``si(1842.5, "J")`` is "1.84 kJ"; nothing or NaN is "–"."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return ("−" if value < 0 else "") + "∞" + (f" {unit}" if unit else "")
    if abs(value) < _NOISE.get(unit, 0.0):
        value = 0.0
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
    rounded = float(f"{abs(value) * _HALF:.{digits - 1}e}")  # 999.9 is to become 1.00 k, not 1000
    return min(15, max(-12, 3 * math.floor(math.log10(rounded) / 3 + 1e-12)))


def _digits(number: float, digits: int) -> str:
    if number == 0:
        return "0"
    number *= _HALF
    places = digits - 1 - math.floor(math.log10(float(f"{abs(number):.{digits - 1}e}")) + 1e-12)
    return f"{number:,.{max(0, places)}f}".replace("-", "−")


def _bytes(value: float, digits: int) -> str:
    power = 0
    while abs(value) >= 1024 and power < len(_BINARY) - 1:
        value, power = value / 1024, power + 1
    return f"{_digits(value, digits)} {_BINARY[power]}"


def count(value: float | None) -> str:
    """A number of things: exact up to 99,999 if it is whole, then "1.23 M"; "–" where it is not known."""
    if value is None:
        return "–"
    return f"{int(value):,}" if abs(value) < 100_000 and value == int(value) else si(float(value))


def seconds(value: float | None) -> str:
    """A duration: "4.74 s", "3 min 20 s", "2 h 05 min"."""
    if value is None or math.isnan(value) or abs(value) < 120:
        return si(value, "s")
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60:,} h {minutes % 60:02d} min"


def amount(value: float | None, unit: str) -> str:
    """A quantity in its unit; seconds as durations."""
    return seconds(value) if unit == "s" else si(value, unit)


def bill_words(whole: float, parts: Mapping[str, float], how: str = "measured", unit: str = "J") -> str:
    """ "301 J on this machine: 180 J this command, 121 J other processes", marked if it is not measured."""
    shown = {name: amount(part, unit) for name, part in parts.items()}
    words = [f"{name} below resolution" if text == f"0 {unit}" else f"{text} {name}" for name, text in shown.items()]
    mark = "" if how == "measured" else f" {how}"
    return f"{amount(whole, unit)}{mark} on this machine: {', '.join(words)}"


def percent(part: float, whole: float) -> str:
    """A share: "81 %", "0.3 %", "< 0.1 %"; "–" of nothing."""
    if not whole:
        return "–"
    share = 100 * part / whole * _HALF
    if share and abs(share) < 0.1:
        return "< 0.1 %"
    return f"{share:.0f} %" if abs(share) >= 10 else f"{share:.1f} %"


def bounded(value: float | None, low: float | None, high: float | None, unit: str = "J") -> str:
    """A value with its range: "6.50 J ± 0.90", uneven ones "60.0 J (0 … 100)", far apart "766 mJ (0 … 1.67 kJ)"; only
    one that is 0 itself is "< 1.60 J"."""
    if value is None or low is None or high is None or math.isnan(low) or math.isnan(high):
        return amount(value, unit)
    up, down = high - value, value - low
    half = max(up, down)
    if value <= _NOISE.get(unit, 0.0) < high:
        return f"< {si(high, unit)}"
    if half <= _UNSEEN * abs(value):  # the third digit does not feel it
        return si(value, unit)
    if abs(up - down) <= EVEN * half and low > 0:
        return f"{si(value, unit)} ± {_digits(half / 10.0 ** _exponent(value, 3), 2)}"
    if value < _SMALL * high:
        return f"{si(value, unit)} ({si(low, unit) if low > 0 else '0'} … {si(high, unit)})"
    exponent = _exponent(max(abs(high), abs(value)), 3)  # one prefix for all three
    number, least, most = (_digits(one / 10.0**exponent, 3) for one in (value, low, high))
    return f"{number} {_PREFIXES[exponent]}{unit} ({least} … {most})"


def unsure(value: float | None, low: float | None, high: float | None) -> bool:
    """Whether a range is wider than the value itself: such rows are grey and do not lead a list of powers."""
    return value is not None and low is not None and high is not None and high - low > abs(value)


def row_range(
    row: Mapping[str, Any], device: Mapping[str, Any], unit: str = "j", which: str = "self"
) -> tuple[float | None, float | None]:
    """The range of a row's self or total; of an estimate, which has no bounds, what its model says of its error."""
    low, high = row.get(f"{which}_low_{unit}"), row.get(f"{which}_high_{unit}")
    error = device["gain_error"] if device["estimated"] else None
    if low is not None or high is not None or not error:
        return low, high
    value = row[f"{which}_{unit}"]
    return value * (1 - error), value * (1 + error)


def together(devices: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The device of rows that add up several, for ``row_range``: an estimate, with the largest error, if all are."""
    known = list(devices)
    errors = [float(one["gain_error"] or 0.0) for one in known]
    return {"estimated": bool(known) and all(one["estimated"] for one in known), "gain_error": max(errors, default=0.0)}


def measured_range(devices: Iterable[Mapping[str, Any]], unit: str = "j") -> tuple[float | None, float | None]:
    """The range of what several devices measured together: the sums of their ends; none where one has none.

    Where a device was not metered all the time, only the lower end is known.
    """
    ends = [row_range(device, device, unit, "measured") for device in devices]
    if not ends or any(low is None for low, _ in ends):
        return None, None
    least = math.fsum(low or 0.0 for low, _ in ends)
    return least, None if any(high is None for _, high in ends) else math.fsum(high or 0.0 for _, high in ends)


def at_least(value: float | None, low: float | None, high: float | None, unit: str = "J") -> str:
    """A value with its range, as ``bounded``; where only the lower end is known, that and what was seen."""
    if value is None or low is None or high is not None:
        return bounded(value, low, high, unit)
    return lower_limit(value, low, unit)


def lower_limit(value: float, low: float | None, unit: str = "J") -> str:
    """What was not metered all the time: the lower end of what was seen, where that has a range, and what was seen."""
    return f"≥ {si(value, unit)}" if low is None else f"≥ {si(low, unit)} ({si(value, unit)} seen)"


def own_amount(
    row: Mapping[str, Any], unit: str, symbol: str, whole: float, device: Mapping[str, Any]
) -> tuple[str, str]:
    """What a row has without what it called, and its share; what was never on top of a stack has nothing to say."""
    value = row[f"self_{unit}"]
    if not row["self_ns"] and not value:
        return "–", "–"
    return bounded(value, *row_range(row, device, unit), symbol), percent(value, whole)
