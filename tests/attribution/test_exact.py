"""Exact sums: those of ``math.fsum``, however the addends are ordered, grouped and summed in between."""

from math import fsum, isnan

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wattribute.attribution.exact import rounded, sums

numbers = st.one_of(
    st.floats(-1e6, 1e6),
    st.floats(allow_nan=False, allow_infinity=False, min_value=-1e200, max_value=1e200),
    st.integers(-60, 60).map(lambda e: 2.0**e),
    st.integers(-60, 60).map(lambda e: -(2.0**e)),
)


def one(values):
    return sums([np.array(values)], np.zeros(len(values), np.int64), 1)


@given(st.lists(numbers, max_size=40), st.randoms())
def test_as_fsum_in_any_order_and_in_parts(values, random):
    expected = fsum(values)
    assert rounded(one(values))[0] == expected
    random.shuffle(values)
    at = random.randint(0, len(values))
    parts = [one(values[:at]), one(values[at:])]
    width = max(map(len, parts))
    addends = [np.concatenate([part[i] if i < len(part) else np.zeros(1) for part in parts]) for i in range(width)]
    assert rounded(sums(addends, np.zeros(2, np.int64), 1))[0] == expected


@given(st.lists(st.tuples(numbers, st.integers(0, 4)), max_size=60))
def test_by_group(lines):
    values, group = np.array([v for v, _ in lines], float), np.array([g for _, g in lines], np.int64)
    found = rounded(sums([values], group, 5))
    assert found.tolist() == [fsum(values[group == g]) for g in range(5)]


def test_what_plain_addition_loses():
    # 1e16 + 1 is 1e16: added one by one the ones are lost
    assert rounded(one([1e16, 1.0, 1.0, -1e16])).tolist() == [2.0]
    # half a unit in the last place of 2^53, and a little more: up, not to even
    assert rounded(one([2.0**53, 1.0, 2.0**-60])).tolist() == [2.0**53 + 2]
    assert rounded(one([2.0**53, 1.0])).tolist() == [2.0**53]


def test_what_is_no_number_stays_so():
    values, group = np.array([1.0, np.nan, 2.0, np.inf, 1.0, 3.0]), np.array([0, 0, 1, 2, 2, 1])
    first, second, third = rounded(sums([values], group, 3)).tolist()
    assert isnan(first)
    assert (second, third) == (5.0, np.inf)


def test_largest_numbers():
    assert rounded(one([1.7e308, 1.7e308, -1.7e308])).tolist() == [1.7e308]
    with np.errstate(over="ignore"):
        assert rounded(one([1.7e308, 1.7e308])).tolist() == [np.inf]
