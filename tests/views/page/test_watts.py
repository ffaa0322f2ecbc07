"""The areas of lanes: pieces and idle time add up to the rise of a curve, and limits hold what is possible."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattribute.model import Curve, Intervals
from wattribute.testing.recordings import spans
from wattribute.testing.strategies import curves, nested_spans
from wattribute.views.page import watts

ranges = st.tuples(st.integers(0, 45), st.integers(1, 20)).map(lambda pair: (pair[0], pair[0] + pair[1]))
keeps = st.lists(st.booleans(), min_size=4, max_size=4).map(np.array)


@given(nested_spans(most=30), curves(bounds=False), keeps, ranges, st.sampled_from([1, 3, 1000]))
def test_pieces_and_idle_time_are_the_rise_of_the_curve(table, curve, keep, ab, most):
    a, b = ab
    energies = curve.times, curve.values
    pieces = watts.pieces(table, np.arange(len(table)), keep, energies, a, b, most)
    idle = watts.between(pieces, energies, a, b, most)
    rise = np.interp(b, *energies) - np.interp(a, *energies) if len(curve.times) else 0.0
    assert pieces["energy"].sum() + idle["energy"].sum() == pytest.approx(rise, rel=1e-9, abs=1e-9)
    assert (pieces["end"] > pieces["start"]).all()
    assert (pieces["start"][1:] >= pieces["end"][:-1]).all()  # side by side, never over each other


def test_a_piece_is_of_the_innermost_span_that_counts():
    # f from 0 to 10 calls g from 2 to 5, which does not count, and h from 6 to 8; 1 J per tick
    table = spans([(0, 10, 0, -1), (2, 5, 1, 0), (6, 8, 2, 0)])
    energies = np.array([0, 10]), np.array([0.0, 10.0])
    pieces = watts.pieces(table, np.array([7, 8, 9]), np.array([True, False, True]), energies, 0, 10, 100)
    joules = {int(row): pieces["energy"][pieces["row"] == row].sum() for row in pieces["row"]}
    assert joules == {7: 8, 9: 2}


def curve_with_limits():
    edges = np.array([0, 10, 20, 30])
    return Curve(
        edges, np.array([0.0, 5, 10, 15]), Intervals(edges[:1], edges[-1:]), edges, np.full(3, 5.0), np.full(3, 5.0)
    )


def test_limits_are_0_to_all_where_a_lane_was_busy_for_a_moment():
    # busy from 8 to 20 without a gap: some of the first interval, all of the second, none of the third
    table = spans([(8, 15, 0, -1), (15, 20, 0, -1)])
    assert watts.limits(table, np.array([True]), curve_with_limits()).tolist() == [[0, 5], [5, 5], [0, 0]]
    assert watts.limits(spans([]), np.array([True]), curve_with_limits()).tolist() == [[0, 0]] * 3


def test_the_band_shows_where_least_and_most_differ():
    curve = curve_with_limits()
    limited = [watts.Limited.of(curve.edges, np.array([[0, 5], [5, 5], [0, 0]], np.float32), (1.0, 1.0))]
    assert watts.band(limited, 0, 30, 100).tolist() == [(0, 10, 0, 5)]
    assert watts.band(limited, 5, 8, 100).tolist() == [(5, 8, 0, 1.5)]
    other = watts.Limited(np.array([0, 4, 10, 20, 30]), (np.zeros(5), np.array([0.0, 4, 4, 4, 4])), (1.0, 1.0))
    assert watts.band([*limited, other], 0, 10, 100).tolist() == [(0, 4, 0, 6), (4, 10, 0, 3)]  # edges of both, once
    gained = [watts.Limited(limited[0].edges, limited[0].running, (0.9, 1.1))]
    assert watts.band(gained, 10, 20, 100).tolist() == [(10, 20, pytest.approx(4.5), pytest.approx(5.5))]
