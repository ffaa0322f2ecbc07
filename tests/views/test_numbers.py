"""Numbers as people read them."""

import math

import pytest

from wattribute.views.numbers import bounded, count, percent, row_range, seconds, si, together, unsure


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1842.495, "J", "1.84 kJ"),
        (389.2, "W", "389 W"),
        (4.7353, "s", "4.74 s"),
        (999.9, "J", "1.00 kJ"),
        (0.0000031, "s", "3.10 µs"),
        (10e6, "J", "10.0 MJ"),
        (0, "J", "0 J"),
        (-12.3, "J", "−12.3 J"),
        (3e-15, "J", "0 J"),
        (3e-9, "J", "3.00 nJ"),
        (93.4567, "%", "93.5 %"),
        (0.25, "%", "0.250 %"),
        (45, "°C", "45.0 °C"),
        (3 * 2**30, "B", "3.00 GiB"),
        (None, "J", "–"),
        (math.nan, "J", "–"),
        (math.inf, "J", "∞ J"),
        (1234, "", "1.23 k"),
        (-6.9e-18, "s", "0 s"),
        (1e300, "J", "1.00e+300 J"),
        (-2.5e21, "W", "−2.50e+21 W"),
        (1e20, "J", "100,000 PJ"),
        (97.25, "J", "97.3 J"),  # a half is rounded up
        (math.nextafter(97.25, 0), "J", "97.3 J"),  # the same joules, added up in another order
    ],
)
def test_three_digits_with_a_prefix(value, unit, text):
    assert si(value, unit) == text


def test_bounds_are_written_as_plus_minus_or_as_below():
    assert bounded(6.5, 5.6, 7.4) == "6.50 J ± 0.90"
    assert bounded(1842.4957, 1830.0, 1853.0) == "1.84 kJ ± 0.012"  # the wider side, in kJ
    assert bounded(1125.0, 1085.0, 1232.0) == "1.13 kJ (1.09 … 1.23)"  # sides that differ
    assert bounded(0.0, 0.0, 1.6) == "< 1.60 J"
    assert bounded(0.3, 0.0, 1.6) == "0.300 J (0 … 1.60)"  # one prefix for all three
    assert bounded(60.0, 0.0, 100.0) == "60.0 J (0 … 100)"
    assert bounded(0.0054, 0.0, 4730.0) == "5.40 mJ (0 … 4.73 kJ)"  # far apart: each in its own prefix
    assert bounded(0.766, 0.012, 1670.0) == "766 mJ (12.0 mJ … 1.67 kJ)"
    assert bounded(3.55e-15, 0.0, 1.6) == "< 1.60 J"
    assert bounded(0.0, 0.0, 0.0) == "0 J"
    assert bounded(5.0, None, None) == "5.00 J"
    assert bounded(1000.0, 999.9, 1000.1) == "1.00 kJ"


def test_counts_times_and_shares():
    assert count(99_999) == "99,999"
    assert count(1_234_567) == "1.23 M"
    assert seconds(119.0) == "119 s"
    assert seconds(200) == "3 min 20 s"
    assert seconds(7500) == "2 h 05 min"
    assert percent(81.2, 100) == "81 %"
    assert percent(0.0001, 100) == "< 0.1 %"
    assert percent(1, 0) == "–"


def test_a_range_wider_than_its_value_is_unsure():
    assert unsure(60.0, 0.0, 100.0)
    assert not unsure(60.0, 50.0, 70.0)
    assert not unsure(60.0, None, None)


def test_the_range_of_an_estimate_is_its_model_s():
    device = {"estimated": True, "gain_error": 0.5}
    assert row_range({"self_j": 10.0}, device) == (5.0, 15.0)
    assert row_range({"self_j": 10.0, "self_low_j": 9.0, "self_high_j": 12.0}, device) == (9.0, 12.0)
    assert row_range({"self_j": 10.0}, {"estimated": False, "gain_error": 0.5}) == (None, None)
    measured = {"estimated": False, "gain_error": None}
    assert together([device, measured]) == {"estimated": False, "gain_error": 0.5}
    assert together([device]) == device
