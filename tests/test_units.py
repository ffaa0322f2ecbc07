"""Unit strings become SI exactly, once."""

from fractions import Fraction

import pytest

from wattribute import errors, units


@pytest.mark.parametrize(
    ("text", "symbol", "scale"),
    [
        ("uJ", "J", Fraction(1, 10**6)),
        ("µJ", "J", Fraction(1, 10**6)),
        ("mW", "W", Fraction(1, 1000)),
        ("kWh", "J", Fraction(3_600_000)),
        ("m°C", "°C", Fraction(1, 1000)),
        ("MiB", "B", Fraction(2**20)),
        ("J", "J", Fraction(1)),
        ("%", "%", Fraction(1)),
        ("#", "#", Fraction(1)),
        (" MHz ", "Hz", Fraction(10**6)),
    ],
)
def test_known_units(text, symbol, scale):
    assert units.parse(text) == units.Unit(symbol, scale)


def test_an_unknown_unit_is_an_error_that_suggests():
    with pytest.raises(errors.OptionError, match="unknown unit 'jule'"):
        units.parse("jule")
