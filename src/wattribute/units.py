"""Unit strings → SI, once: ``parse("uJ")`` is ``Unit(symbol="J", scale=1/1000000)``.

Readers and meters call this where data enter; nothing later converts again. Scales are exact fractions so that raw
integer readings stay exact until the first reading was subtracted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from .errors import OptionError


@dataclass(frozen=True)
class Unit:
    """A SI symbol and the exact factor that turns a raw value into it."""

    symbol: str
    scale: Fraction = Fraction(1)


J_PER_KWH = 3_600_000
SUFFIXES = {"J": "j", "W": "w", "%": "percent", "°C": "c", "B": "bytes", "Hz": "hz"}  # of names that say their unit
_PREFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "µ": Fraction(1, 10**6),
    "μ": Fraction(1, 10**6),
    "m": Fraction(1, 10**3),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
}
_SYMBOLS = ("J", "W", "Hz", "°C", "degC", "V", "A", "s", "B")
_WHOLE = {
    "Wh": Unit("J", Fraction(3600)),
    "kWh": Unit("J", Fraction(J_PER_KWH)),
    "mWh": Unit("J", Fraction(36, 10)),
    "joules": Unit("J"),
    "watts": Unit("W"),
    "bytes": Unit("B"),
    "KiB": Unit("B", Fraction(2**10)),
    "MiB": Unit("B", Fraction(2**20)),
    "GiB": Unit("B", Fraction(2**30)),
    "%": Unit("%"),
    "#": Unit("#"),
    "": Unit("#"),
    "1": Unit("#"),
}


def parse(text: str) -> Unit:
    """Parse a unit string into its SI unit; raises OptionError for one it does not know."""
    text = text.strip()
    if text in _WHOLE:
        return _WHOLE[text]
    for symbol in _SYMBOLS:
        if text.endswith(symbol) and text[: -len(symbol)] in _PREFIXES:
            return Unit("°C" if symbol == "degC" else symbol, _PREFIXES[text[: -len(symbol)]])
    raise OptionError.unknown("unit", text, [*_WHOLE, *(p + s for s in _SYMBOLS for p in _PREFIXES)])


TIMES_S = {"ns": Fraction(1, 10**9), "us": Fraction(1, 10**6), "µs": Fraction(1, 10**6), "ms": Fraction(1, 1000)}
TIMES_S |= {"s": Fraction(1), "min": Fraction(60), "h": Fraction(3600), "d": Fraction(86400)}


def parse_time(text: str) -> Fraction | None:
    """Parse into seconds a time such as 100ms, 90 min or 2h; None for anything else."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-zµ]+)", text.strip())
    return Fraction(match[1]) * TIMES_S[match[2]] if match and match[2] in TIMES_S else None
