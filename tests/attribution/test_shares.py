"""The core splits a curve evenly as the NumPy way does, to the last bit."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattribute._core import in_use
from wattribute.alignment.energy import Energy
from wattribute.attribution import shares
from wattribute.model import Intervals
from wattribute.testing.recordings import signal

LEAST, MOST = -20, 60


@st.composite
def energies(draw):
    times = np.array(sorted(draw(st.sets(st.integers(LEAST, MOST), min_size=2, max_size=12))), np.int64)
    rises = draw(st.lists(st.floats(0, 10), min_size=len(times) - 1, max_size=len(times) - 1))
    values = np.concatenate([[0.0], np.cumsum(rises)])
    cut = draw(st.integers(1, len(times) - 1))  # a gap between two readings, or none
    starts, ends = ([times[0], times[cut]], [times[cut - 1], times[-1]])
    pieces = [(a, b) for a, b in zip(starts, ends, strict=True) if b > a]
    if draw(st.booleans()) or not pieces:
        pieces = [(times[0], times[-1])]
    return Energy(
        signal(draw(st.sampled_from(["counter", "gauge"])), values, times),
        "J",
        times,
        values,
        Intervals(*(np.array(side, np.int64) for side in zip(*pieces, strict=True))),
        np.diff(values),
        np.diff(values),
        draw(st.booleans()),
        draw(st.sampled_from([0, 0, 3, 25])),
        draw(st.sampled_from([0, 0, 3, 20])),
    )


@st.composite
def busy(draw):
    """A user's intervals: disjoint, not touching, of positive length."""
    moments = sorted(draw(st.sets(st.integers(LEAST - 15, MOST + 15), max_size=12)))
    pairs = np.array(moments[: len(moments) // 2 * 2], np.int64).reshape(-1, 2)
    return Intervals(pairs[:, 0].copy(), pairs[:, 1].copy())


@pytest.mark.skipif(in_use() != "c", reason="the core was not compiled")
@given(energy=energies(), users=st.lists(busy(), min_size=2, max_size=5), bounds=st.booleans())
def test_the_core_and_numpy_split_alike(energy, users, bounds):
    with pytest.MonkeyPatch.context() as patch:
        ours = shares.split(energy, dict(enumerate(users)), "even", bounds=bounds)
        patch.setattr(shares, "core_split", lambda *_: None)
        twin = shares.split(energy, dict(enumerate(users)), "even", bounds=bounds)
    assert ours.idle == twin.idle
    assert list(ours.curves) == list(twin.curves)
    for name in ("times", "values", "edges", "low", "high"):
        mine, other = (getattr(one.curves[0], name) for one in (ours, twin))
        assert (mine is None) == (other is None)
        if mine is not None:
            np.testing.assert_array_equal(mine, other)
    assert ours.curves[0].latency_ticks == twin.curves[0].latency_ticks


@given(energy=energies(), users=st.lists(busy(), min_size=2, max_size=5), loads=st.lists(st.integers(0, 3), min_size=5))
def test_shares_by_load_are_those_of_every_moment(energy, users, loads):
    """Tick by tick: a user has load over all loads while it is active, and an equal part where no one has any."""
    busy_of = dict(enumerate(users))
    found = shares.split(energy, busy_of, "load", load=lambda user, at: np.full(len(at), float(loads[user])))
    first, last = LEAST - 50, MOST + 50
    ticks = np.arange(first, last)
    active = np.array([[np.any((one.start <= t) & (t < one.end)) for t in ticks] for one in users], float)
    weights = active * np.array(loads[: len(users)], float)[:, None]
    weights = np.where(weights.sum(axis=0) > 0, weights, active)
    share = np.divide(weights, weights.sum(axis=0), out=np.zeros_like(weights), where=weights.sum(axis=0) > 0)
    rises = np.diff(np.interp(np.arange(first, last + 1), energy.times, energy.values))
    assert found.idle == pytest.approx(rises[active.sum(axis=0) == 0].sum(), abs=1e-9)
    edges, low, high = energy.windows
    for user, curve in found.curves.items():
        inside = np.interp(np.arange(first, last + 1), curve.times, curve.values)
        np.testing.assert_allclose(np.diff(inside), rises * share[user], atol=1e-9)
        if not energy.bounded:
            continue
        known = {window: at for at, window in enumerate(pairwise(curve.edges.tolist()))}
        for at, (begin, end) in enumerate(pairwise(edges.tolist())):
            part = share[user][begin - energy.reach_ticks - first : end - first]
            if (begin, end) in known:
                assert curve.low[known[begin, end]] == pytest.approx(low[at] * part.min(), abs=1e-9)
                assert curve.high[known[begin, end]] == pytest.approx(high[at] * part.max(), abs=1e-9)
            else:
                assert not part.any()  # a window in which the user was never active


def test_the_curve_of_a_short_request_has_few_knots():
    size = 300
    times = np.arange(0, 10 * size + 1, 5)
    energy = Energy(
        signal("counter", times.astype(float), times), "J", times, times.astype(float),
        Intervals(times[:1], times[-1:]), np.diff(times) * 1.0, np.diff(times) * 1.0, True, 0, 0,
    )  # fmt: skip
    users = {n: Intervals(np.array([10 * n]), np.array([10 * n + 15])) for n in range(size)}
    found = shares.split(energy, users, "load", load=lambda user, at: np.ones(len(at)))
    assert max(len(curve.times) for curve in found.curves.values()) < 10
    assert max(len(curve.edges) for curve in found.curves.values()) < 10
    assert sum(curve.values[-1] for curve in found.curves.values()) == pytest.approx(10 * size)
