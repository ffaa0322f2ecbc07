"""Spans in pieces: the same bits as the whole location at once, wherever it is cut, in C and in its twin."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattribute import _core
from wattribute._core import stream
from wattribute.model import Curve, Intervals, Keys
from wattribute.model.spans import ABSENT, cut, joined, rows_of
from wattribute.testing.recordings import spans as spans_of
from wattribute.testing.strategies import curves, nested_spans

KINDS = [stream.Twin, stream.EventStream] if stream.LIBRARY is not None else [stream.Twin]
rows_of_frames = st.lists(st.sampled_from([0, 1, 2, -1, ABSENT]), min_size=4, max_size=4)


def same(found, expected):
    assert found.keys() == expected.keys()
    for name, column in expected.items():
        if column is None or name == "paths":
            assert (found[name] is None) == (column is None), name
        else:
            assert np.array_equal(found[name], column, equal_nan=column.dtype.kind == "f"), name


@pytest.mark.parametrize("kind", KINDS)
@given(nested_spans(), st.lists(curves(), max_size=3), rows_of_frames, st.booleans(), st.integers(1, 7))
def test_a_roll_up_in_pieces(kind, spans, several, row, by_path, most):
    keys = Keys(np.array(row, np.int32), 3, by_path)
    made, first = kind(several, keys), 0
    for piece in cut(spans, most):
        made.feed(piece, first)
        first += len(piece)
    made.end()
    found, expected = made.close(), _core.fold(spans, several, keys)
    same(found, expected)
    if by_path:
        assert [list(column) for column in found["paths"]] == [list(column) for column in expected["paths"]]


@given(nested_spans(), st.lists(curves(), min_size=1, max_size=2), rows_of_frames, st.integers(1, 7))
def test_a_row_per_span_in_pieces(spans, several, row, most):
    keys = Keys(np.array(row, np.int32), 3)
    expected = stream.each_span(SimpleNamespace(**vars(spans)), several, keys)
    taken = []
    rows_of(cut(spans, most), several, keys, lambda rows: taken.append(vars(rows)))
    together = {
        name: None if column is None else np.concatenate([part[name] for part in taken], axis=-1)
        for name, column in expected.items()
    }
    # spans that were open when a piece ended come later: the number of a span tells it from its likes
    order = np.lexsort([together[name] for name in ("frame", "depth", "end", "start")])
    wanted = np.lexsort([expected[name] for name in ("frame", "depth", "end", "start")])
    for name, column in expected.items():
        if column is not None and (name in ("start", "end", "frame", "depth")):
            assert np.array_equal(together[name][order], column[wanted]), name
        elif column is not None:  # twins in every other respect may stand in either order
            a, b = (np.sort(np.nan_to_num(values, nan=-1.0), axis=-1) for values in (together[name], column))
            assert np.array_equal(a, b), name


@given(nested_spans(), st.integers(1, 7))
def test_busy_intervals_of_pieces(spans, most):
    found = joined([Intervals(*_core.busy(piece)) for piece in cut(spans, most)])
    start, end = _core.busy(spans)
    assert np.array_equal(found.start, start)
    assert np.array_equal(found.end, end)


def test_what_is_open_waits_for_its_end():
    """main is 0 … 10 and calls f at 1 … 2, 3 … 4 and 5 … 6; a piece of three spans ends while main and f are open."""
    spans = spans_of([(0, 10, 0, -1), (1, 2, 1, 0), (3, 4, 1, 0), (5, 6, 1, 0)])
    curve = Curve(np.array([0, 10]), np.array([0.0, 100.0]), Intervals(np.array([0]), np.array([10])))
    taken = []
    rows_of(cut(spans, 3), [curve], Keys(np.zeros(2, np.int32), 1), lambda rows: taken.append(rows))
    assert [rows.start.tolist() for rows in taken] == [[1], [0, 3, 5]] or stream.LIBRARY is None
    assert sorted(value for rows in taken for value in rows.self_value[0].tolist()) == [10, 10, 10, 70]  # 100 - 3 · 10


@pytest.mark.parametrize("most", [1, 2, 3])
def test_what_is_open_while_others_are_taken_keeps_its_bounds(most):
    """main is 0 … 10, f 1 … 2 and 3 … 4, all in one window of 100 J: each of them may have used all of it."""
    spans = spans_of([(0, 10, 0, -1), (1, 2, 1, 0), (3, 4, 1, 0)])
    edges = np.array([-5, 20])
    pieces = Intervals(edges[:1], edges[1:])
    curve = Curve(edges, np.array([0.0, 100.0]), pieces, edges, np.array([100.0]), np.array([100.0]))
    taken = []
    rows_of(cut(spans, most), [curve], Keys(np.arange(2, dtype=np.int32), 2), lambda rows: taken.append(rows))
    for name in ("self_high", "total_high"):
        assert np.concatenate([getattr(rows, name)[0] for rows in taken]).tolist() == [100, 100, 100], name
