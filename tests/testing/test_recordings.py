"""The builder of recordings: notation, nesting, where things are added, and what is refused."""

import numpy as np
import pytest
from hypothesis import given

from wattribute import attribute
from wattribute.testing.recordings import RecordingBuilder, as_text, counter, span_rows, spans
from wattribute.testing.strategies import nested_spans


def test_the_notation_of_spans():
    assert span_rows("main 0..10, f(int, T) -3..4\nwait 1_000..2_000") == [
        (0, 10, "main"),
        (-3, 4, "f(int, T)"),
        (1000, 2000, "wait"),
    ]
    assert span_rows("a 0.5s..2ms, b 3us..4ns", 10**9) == [(500_000_000, 2_000_000, "a"), (3000, 4, "b")]
    assert span_rows("") == []


@pytest.mark.parametrize("text", ["main", "main 0..", "main 0-10", "0..10", "main 0..10; x"])
def test_what_is_not_the_notation_is_refused(text):
    with pytest.raises(ValueError, match=r"NAME START\.\.END"):
        span_rows(text)


def test_a_fraction_of_a_tick_is_refused():
    with pytest.raises(ValueError, match="whole number of ticks at 1 per second"):
        span_rows("a 0..0.5s")


def test_spans_nest_by_time_and_ties_are_siblings():
    made = spans([(0, 10, 0), (2, 5, 1), (5, 5, 1), (5, 10, 1), (6, 7, 2), (10, 12, 0)])
    assert made.parent.tolist() == [-1, 0, 0, 0, 3, -1]
    assert made.depth.tolist() == [0, 1, 1, 1, 2, 0]
    with pytest.raises(ValueError, match=r"span 1 .* ends after span 0"):
        spans([(0, 10, 0), (5, 11, 1)])


@given(nested_spans())
def test_rows_with_parents_are_taken_as_they_are(made):
    columns = [made.start, made.end, made.frame, made.parent, made.resumed]
    again = spans(zip(*(column.tolist() for column in columns), strict=True))
    for name in ("start", "end", "frame", "parent", "depth", "resumed"):
        assert np.array_equal(getattr(again, name), getattr(made, name))
        assert getattr(again, name).dtype == getattr(made, name).dtype


def test_hosts_processes_and_streams():
    made = RecordingBuilder(10, name="x").host("a").process("r0").thread("main 0..10").stream("k 2..4", gpu="0")
    made.host("b").process("r1").thread("main 0..5").host("a").process("r0").stream("k 5..6", gpu="0")
    made.counter("GPU 0", [0, 7], every=20).link("GPU 0", 1, 3)
    recording = made.recording()
    assert [recording.location_host(i) for i in range(4)] == ["a", "a", "b", "a"]
    assert [recording.processes.name[recording.owner(i)] for i in range(4)] == ["r0", "r0", "r1", "r0"]
    assert recording.processes.name == ("r0", "context 0", "r1")  # one context for both streams
    assert list(zip(recording.frames.name, recording.frames.role, strict=True)) == [
        ("main", "function"),
        ("k", "kernel"),
    ]
    assert recording.clock.length_ticks == 20
    assert (recording.devices[0].kind, recording.devices[0].host) == ("gpu", "a")
    assert recording.topology[0].locations == (1, 3)
    assert recording.metadata == {"name": "x"}


def test_the_shortest_one_adds_up():
    recording = RecordingBuilder().thread("main 0..10, f 3..7").counter("package 0", [0, 100], every=10).recording()
    found = attribute(recording, by="frame")
    assert dict(zip(found.rows["frame"], found.rows["self_j"], strict=True)) == pytest.approx({"main": 60, "f": 40})


def test_a_signal_of_its_own_declares_no_device():
    recording = RecordingBuilder().signals(counter([1, 2], [3, 4], wraps_at=9)).recording()
    assert recording.devices == ()
    assert recording.signals[0].wraps_at == 9


def test_text_differs_where_recordings_do():
    one, other = (RecordingBuilder().thread(f"main 0..{end}").recording() for end in (10, 11))
    assert as_text(one) != as_text(other)
    assert "0..10 main [user function]" in as_text(one)
