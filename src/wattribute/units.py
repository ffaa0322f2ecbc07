"""Unit strings → SI, once: ``parse("uJ")`` is ``Unit(symbol="J", scale=1/1000000)``.

Readers and meters call this where data enter; nothing later converts again. Scales are exact fractions so that raw
integer readings stay exact until the first reading was subtracted.
"""

from __future__ import annotations

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
    """The SI unit of a unit string; raises OptionError for one it does not know."""
    text = text.strip()
    if text in _WHOLE:
        return _WHOLE[text]
    for symbol in _SYMBOLS:
        if text.endswith(symbol) and text[: -len(symbol)] in _PREFIXES:
            return Unit("°C" if symbol == "degC" else symbol, _PREFIXES[text[: -len(symbol)]])
    raise OptionError.unknown("unit", text, [*_WHOLE, *(p + s for s in _SYMBOLS for p in _PREFIXES)])
