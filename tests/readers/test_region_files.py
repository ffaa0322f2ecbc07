"""Intervals → spans that nest, whatever overlaps."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wattribute.model import Recording
from wattribute.model.nesting import nest
from wattribute.readers import region_files
from wattribute.recorders import regions
from wattribute.testing.recordings import RecordingBuilder

intervals = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 40)), max_size=12).map(sorted)


def spans_of(pieces):
    start = np.array([at for at, _ in pieces], np.int64)
    length = np.array([size for _, size in pieces], np.int64)
    return nest(start, start + length, np.arange(len(pieces), dtype=np.int32), np.zeros(len(pieces), bool))


@given(intervals)
def test_every_interval_is_covered_exactly_once_and_all_nest(pieces):
    spans = spans_of(pieces)
    for i, (at, size) in enumerate(pieces):
        mine = np.flatnonzero(spans.frame == i)
        assert not spans.resumed[mine[0]]
        assert spans.resumed[mine[1:]].all()
        covered = sorted((int(spans.start[row]), int(spans.end[row])) for row in mine)
        assert covered[0][0] == at
        assert covered[-1][1] == at + size
        assert all(before[1] == after[0] for before, after in pairwise(covered))
    assert (np.diff(spans.start) >= 0).all()
    for row, parent in enumerate(spans.parent):
        if parent >= 0:
            assert parent < row
            assert spans.start[parent] <= spans.start[row] <= spans.end[row] <= spans.end[parent]
            assert spans.depth[row] == spans.depth[parent] + 1
        else:
            assert spans.depth[row] == 0


def test_touching_intervals_are_siblings_not_nested():
    spans = spans_of([(0, 5), (5, 5), (10, 0)])
    assert spans.depth.tolist() == [0, 0, 0]


def test_intervals_of_no_length_are_siblings_of_what_begins_there():
    spans = spans_of([(5, 0), (5, 3), (8, 0), (8, 0)])
    assert spans.depth.tolist() == [0, 0, 0, 0]
    assert not spans.resumed.any()


def test_a_recording_inside_another_shares_its_threads(tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    regions.start(str(tmp_path))
    with regions.region("outer"):
        regions.start(str(inner))
        with regions.region("inner"):
            pass
        assert regions.stop() == str(tmp_path)
        with regions.region("after"):
            pass
    assert regions.stop() is None
    for path in inner.iterdir():
        path.rename(tmp_path / path.name)
    recording = region_files.join(Recording(), tmp_path)
    assert len(recording.processes) == len(recording.locations) == 1
    spans = recording.spans.spans(0)
    names = [recording.frames.name[f] for f in spans.frame]
    assert list(zip(names, spans.depth.tolist(), strict=True)) == [("outer", 0), ("inner", 1), ("after", 1)]


def test_a_cut_by_hand():
    # a: 0–10, b: 5–15 → b is inside a until 10 and alone from 10 to 15
    spans = spans_of([(0, 10), (5, 10)])
    rows = list(zip(*(getattr(spans, c).tolist() for c in ("start", "end", "frame", "parent", "resumed")), strict=True))
    assert rows == [(0, 10, 0, -1, False), (5, 10, 1, 0, False), (10, 15, 1, -1, True)]


def test_joining_a_recording_that_has_tables_already(tmp_path):
    regions.start(str(tmp_path))
    with regions.region("mine"):
        pass
    regions.stop()
    import os

    made = RecordingBuilder(10**9, offset_ticks=1000).frames(("other", "compiler", "function", "x.c", 3))
    base = made.node("rack", "rack").host(os.uname().nodename).device("package 0").recording()
    joined = region_files.join(base, tmp_path)
    assert joined.frames.name == ("other", "mine")
    assert len(joined.nodes) == 2
    assert joined.host(0) == os.uname().nodename
    assert joined.devices == base.devices
    raw = region_files.load(next(tmp_path.glob("*.regions"))).rows[0]
    assert joined.spans.spans(0).start[0] == raw["start"] - 1000


def test_an_empty_folder_changes_nothing(tmp_path):
    base = Recording()
    assert region_files.join(base, tmp_path) is base


def test_files_cut_by_a_crash(tmp_path):
    regions.start(str(tmp_path))
    with regions.region("a"), regions.region("b"):
        pass
    regions.stop()
    path = next(tmp_path.glob("*.regions"))
    path.write_bytes(path.read_bytes()[:47])  # one record and most of the second
    names = path.with_suffix(".names")
    names.write_bytes(names.read_bytes()[:-10])
    recording = region_files.join(Recording(), tmp_path)
    assert recording.frames.name[recording.spans.spans(0).frame[0]] == "a"
    assert len(recording.spans.spans(0)) == 1


def merged(edges, wraps_at=None, times=(0, 20, 40), values=(100, 120, 140)):
    at, value = (np.array(column, np.int64) for column in zip(*edges, strict=True))
    made = region_files.with_edges(np.array(times), np.array(values), at, value, wraps_at)
    return list(zip(*(column.tolist() for column in made), strict=True))


def test_readings_at_edges_stand_between_those_of_the_sampler():
    assert merged([(30, 125), (10, 105)]) == [(0, 100), (10, 105), (20, 120), (30, 125), (40, 140)]


def test_a_reading_at_an_edge_that_does_not_fit_is_left_out():
    usual = [(0, 100), (20, 120), (40, 140)]
    assert merged([(10, 121)]) == usual  # more than there is later
    assert merged([(10, 99)]) == usual  # less than before: it would count as a wrap
    assert merged([(20, 120)]) == usual  # the same moment
    assert merged([(-5, 100), (40, 140), (50, 141)]) == usual  # outside what the sampler saw
    assert merged([(10, 110), (11, 109), (12, 111)]) == [(0, 100), (10, 110), (12, 111), *usual[1:]]  # two processes
    assert merged([(10, 110), (10, 110)]) == [(0, 100), (10, 110), *usual[1:]]


def test_a_reading_at_an_edge_around_a_wrap():
    wrapped = merged([(10, 995), (15, 2)], wraps_at=1000, values=(990, 5, 15))
    assert wrapped == [(0, 990), (10, 995), (15, 2), (20, 5), (40, 15)]


@given(
    st.lists(st.integers(0, 30), min_size=3, max_size=10),
    st.lists(st.tuples(st.integers(-5, 105), st.integers(0, 300)), min_size=1, max_size=20),
)
def test_readings_at_edges_never_change_what_the_sampler_counted(steps, edges):
    values = np.cumsum(steps) % 300
    times = np.arange(len(values)) * 10
    both = merged(edges, 300, times, values)
    made = np.array(both)
    assert (np.diff(made[:, 0]) > 0).all()
    assert (np.diff(made[:, 1]) % 300).sum() == (np.diff(values) % 300).sum()
