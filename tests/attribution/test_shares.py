"""The core splits a curve evenly as the NumPy way does, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
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
@settings(max_examples=400, deadline=None)
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
