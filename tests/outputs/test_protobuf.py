"""The wire format against values worked out by hand and an independent reader."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.outputs.wire import fields, varint
from wattribute.outputs import protobuf as pb


def test_examples_of_the_specification():
    assert pb.integer(1, 150) == b"\x08\x96\x01"  # the encoding guide's own first example
    assert pb.text(2, "testing") == b"\x12\x07testing"
    assert pb.message(3, pb.integer(1, 150)) == b"\x1a\x03\x08\x96\x01"
    assert pb.Columns(1).doubles(5, np.ones(1)).matrix().tobytes() == b"\x29" + b"\x00" * 6 + b"\xf0\x3f"


def test_lone_surrogates_become_question_marks():
    assert pb.text(2, "a\udcffb") == b"\x12\x03a?b"


@given(st.integers(0, 2**64 - 1))
def test_varints_come_back(value):
    assert varint(pb.varint(value), 0) == (value, len(pb.varint(value)))


@given(st.lists(st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**28 - 1), st.floats()), max_size=5))
def test_columns_come_back_row_by_row(rows):
    numbers, small, doubles = (list(column) for column in zip(*rows, strict=True)) if rows else ([], [], [])
    inner = pb.Columns(len(rows)).doubles(44, np.array(doubles, np.float64)).constant(pb.integer(3, 7))
    whole = pb.Columns(len(rows)).integers(8, np.array(numbers, np.int64))
    whole = whole.integers(10, np.array(small, np.int64), pb.WIDTH_28).nested(11, inner)
    for row, made in zip(rows, whole.matrix(), strict=True):
        found = fields(made.tobytes())
        assert [number for number, _ in found] == [8, 10, 11]
        assert (found[0][1], found[1][1]) == row[:2]
        assert repr(fields(found[2][1])) == repr([(44, row[2]), (3, 7)])
