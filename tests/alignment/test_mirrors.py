"""Counters with equal increments: the same ones as by comparing each with each, for fewer comparisons."""

from __future__ import annotations

import numpy as np
import pytest

from wattribute.alignment.mirrors import Original, repeated


def brute_force(counters):
    """For each counter the first original that it repeats."""
    originals, found = {}, []
    for row, steps in enumerate(counters):
        first = next((at for at, one in originals.items() if one.same(counters[at], steps)), None)
        if first is None:
            originals[row] = Original.of(steps)
        found.append(first)
    return found


def counters(count, length, agreeing, random):
    """Nearly equal ones; every fifth repeats the one before in that part of its increments, and got others late."""
    made = []
    for row in range(count):
        steps = 1_000_000 + random.integers(-300, 300, length)
        if row % 5 == 4:
            late = random.random(length) >= agreeing
            steps = made[-1].copy()
            steps[late] += random.integers(-300, 300, int(late.sum()))
        made.append(steps.astype(np.float64))
    return made


@pytest.mark.parametrize("agreeing", [0.55, 0.8, 1.0])
@pytest.mark.parametrize("length", [20, 200, 3000])
def test_the_same_as_comparing_each_with_each(length, agreeing, monkeypatch):
    made = counters(200, length, agreeing, np.random.default_rng(length))
    expected = brute_force(made)
    assert sum(row is not None for row in expected) >= 30
    compared = []
    same = Original.same
    monkeypatch.setattr(Original, "same", lambda *given: compared.append(1) or same(*given))
    assert repeated(made) == expected
    assert len(compared) < 20 * len(made)  # each with each: 16,000


def test_increments_in_bursts_and_odd_numbers():
    random = np.random.default_rng(1)
    made = []
    for row in range(120):
        steps = np.zeros(5000)
        steps[random.choice(5000, 40, replace=False)] = random.integers(10**6, 10**6 + 5000, 40)
        made.append(made[-1].copy() if row % 3 == 2 else steps)
    made[7][13] = np.nan
    made += [np.zeros(5000), np.zeros(5000), -made[0], made[1] * (1 + 1e-9), made[2] * 2]
    assert repeated(made) == brute_force(made)


def test_many_of_the_same_are_compared_with_the_first():
    steps = np.arange(1.0, 101.0)
    assert repeated([steps] * 50) == [None] + [0] * 49
    assert repeated([]) == []
