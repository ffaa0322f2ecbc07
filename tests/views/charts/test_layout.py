"""Layouts of call graphs: no line behind a box, no box on another, every call drawn from caller to callee."""

import shutil
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import need
from wattribute.views.charts import layout as places
from wattribute.views.charts.graph import graph
from wattribute.views.charts.tree import Leaf

NAMES = "abcdefghijklmnopqrst"
paths = st.lists(st.text(NAMES, min_size=1, max_size=7), min_size=1, max_size=14)


def of(*texts):
    """The graph of call paths given as text, a letter for each frame; a joule each."""
    return graph([Leaf(tuple(text), 1.0) for text in texts], top=24)


def inside(point, box, margin=0.5):
    x, y = point
    return (abs(x - box.middle) < box.width / 2 - margin) and (box.top + margin < y < box.top + places.HEIGHT - margin)


def check(shown, made):
    boxes = list(made.boxes.values())
    assert set(made.boxes) == set(shown.total_j)
    for i, a in enumerate(boxes):
        assert a.middle - a.width / 2 >= -0.5
        assert a.middle + a.width / 2 <= places.WIDTH + 0.5
        assert 0 <= a.top <= made.height - places.HEIGHT
        for b in boxes[:i]:
            assert abs(a.middle - b.middle) >= min(a.width, b.width) - 0.5 or abs(a.top - b.top) >= places.HEIGHT
    for line in made.lines:
        for (x0, y0), (x1, y1) in pairwise(line.points):
            for step in range(5):  # between the points, too
                point = (x0 + (x1 - x0) * step / 4, y0 + (y1 - y0) * step / 4)
                behind = [name for name, box in made.boxes.items() if inside(point, box)]
                assert not behind, (line.callers, line.callees, behind)
    drawn = {edge for line in made.lines if line.head for edge in product(line.callers, line.callees)}
    assert drawn == set(shown.edges)


@given(paths)
def test_our_lines_pass_beside_the_boxes(texts):
    shown = of(*texts)
    check(shown, places.layered(shown))


@pytest.mark.parametrize("texts", [("abcd", "abd", "ad", "aed", "acb"), ("abc", "cab", "bca"), ("abcdefg", "ag", "bg")])
def test_lines_of_graphviz_pass_beside_the_boxes(texts):
    need("dot")
    shown = of(*texts)
    made = places._of_graphviz(shown)
    assert made is not None
    check(shown, made)


def test_rows_go_from_callers_to_callees_and_a_long_call_has_its_own_place():
    # a calls b, b calls c, a calls c: c is in the third row, and the line from a to c passes b on its side
    made = places.layered(of("abc", "ac"))
    assert [made.boxes[name].top for name in "abc"] == [22, 116, 210]  # boxes of 50 pixels, 44 between rows
    direct = [line for line in made.lines if line.callees == ("c",) and line.callers == ("a",)]
    assert [line.head for line in direct] == [False, True]
    assert abs(direct[0].points[-1][0] - made.boxes["b"].middle) > made.boxes["b"].width / 2


def test_callers_of_one_frame_share_a_trunk_that_carries_their_sum():
    # a calls d in row 4 past b and c; b, too: from row 3 on they are one line of 2 J
    made = places.layered(of("abcd", "ad", "bd"))
    shared = [line for line in made.lines if set(line.callers) == {"a", "b"}]
    assert [(line.callees, line.energy_j, line.head) for line in shared] == [(("d",), 2.0, True)]


def test_a_call_back_goes_upwards():
    made = places.layered(of("aba"))
    up = next(line for line in made.lines if line.callees == ("a",))
    assert up.points[0][1] > up.points[-1][1] == made.boxes["a"].top + places.HEIGHT


def test_forty_callees_fill_several_rows_of_readable_boxes():
    shown = graph([Leaf(("main", f"kernel {i}"), 1.0) for i in range(40)], top=41)
    made = places.layered(shown)
    check(shown, made)
    assert min(box.width for box in made.boxes.values()) >= places.NARROWEST * 0.9
    trunks = [line for line in made.lines if not line.head]
    assert sorted(len(line.callees) for line in trunks)[-1] == 40 - 5  # one line past each row of five


def test_without_graphviz_or_when_it_fails_the_layout_is_ours(monkeypatch, tmp_path):
    shown = of("ab", "ac")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert shutil.which("dot") is None
    assert places.layout(shown) == places.layered(shown)
    (tmp_path / "dot").write_text("#!/bin/sh\nexit 3\n")
    (tmp_path / "dot").chmod(0o755)
    assert places.layout(shown) == places.layered(shown)
