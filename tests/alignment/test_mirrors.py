"""Counters with equal increments: the same ones as by comparing each with each, for fewer comparisons."""

from __future__ import annotations

import numpy as np
import pytest

from wattribute.alignment import mirrors
from wattribute.alignment.mirrors import Original, repeated


def brute_force(counters):
    """For each counter the first original that it repeats."""
    originals, found = {}, []
    for row, steps in enumerate(counters):
        first = next((at for at, one in originals.items() if is_same(one, counters[at], steps)), None)
        if first is None:
            originals[row] = Original.of(steps)
        found.append(first)
    return found


def is_same(original, own, steps):
    """By the words of the rule: enough of the large increments are equal, or all where few are large."""
    if abs(original.total - steps.sum()) > 1e-3 * abs(original.total) or not (own.any() or steps.any()):
        return False
    equal = np.abs(own - steps) <= 1e-6 * np.maximum(np.abs(own), np.abs(steps))
    large = np.minimum(own, steps) > original.telling
    return equal[(own != 0) | (steps != 0)].all() if large.sum() < 10 else equal[large].mean() >= 0.5


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
    same = mirrors._same
    monkeypatch.setattr(mirrors, "_same", lambda some, *given: compared.extend(some) or same(some, *given))
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
