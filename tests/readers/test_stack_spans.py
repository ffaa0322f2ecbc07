"""Calls and returns → spans: all at once, and the same as one by one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wattribute.journal.layouts import CALL_LEAVE as LEAVE
from wattribute.journal.layouts import CALL_RESUMED as RESUMED
from wattribute.readers.stack_spans import _paired, _walked, called

COLUMNS = ("start", "end", "frame", "parent", "depth", "resumed")
FRAMES = np.array([10, 11, -1, 13], np.int32)  # the third is not shown


def events_of(entries):
    return np.array(entries, np.uint32)


def table(spans):
    return list(zip(*(getattr(spans, name).tolist() for name in COLUMNS), strict=True))


def test_a_call_in_a_call_by_hand():
    # main from 0, work from 1 to 3, a generator that goes on from 4 to 5, and nobody saw the end of main
    events = events_of([0, 1, 1 | LEAVE, 3 | RESUMED, 3 | LEAVE])
    found = called(np.array([0, 1, 3, 4, 5]), events, FRAMES, 9)
    assert table(found) == [(0, 9, 10, -1, 0, False), (1, 3, 11, 0, 1, False), (4, 5, 13, 0, 1, True)]


def test_returns_of_what_began_before_the_trace_count_for_nothing():
    events = events_of([1 | LEAVE, 0 | LEAVE, 0, 2, 1, 1 | LEAVE, 2 | LEAVE, 0 | LEAVE, 3 | LEAVE])
    found = called(np.arange(9), events, FRAMES, 20)
    assert table(found) == [(2, 7, 10, -1, 0, False), (4, 5, 11, 0, 1, False)]


def test_a_lost_return_is_made_good():
    events = events_of([0, 1, 3, 3 | LEAVE, 0 | LEAVE])  # the end of 1 was lost: it ends with its caller
    assert _paired(np.arange(5), events, FRAMES, 9) is None
    assert table(called(np.arange(5), events, FRAMES, 9))[1] == (1, 4, 11, 0, 1, False)


def test_nothing_at_all():
    assert table(called(np.empty(0, np.int64), events_of([]), FRAMES, 9)) == []


@given(st.lists(st.tuples(st.sampled_from([0, 1, 3]), st.booleans(), st.booleans()), max_size=60), st.integers(0, 3))
def test_all_at_once_is_the_same_as_one_by_one(choices, orphans):
    events, stack = [frame | LEAVE for frame in (3, 1, 0)[:orphans]], []
    for frame, leaves, resumed in choices:
        if leaves and stack:
            events.append(stack.pop() | LEAVE)
        elif not leaves:
            stack.append(frame)
            events.append(frame | (RESUMED if resumed else 0))
    times = np.arange(len(events)) * 3
    fast = _paired(times, events_of(events), FRAMES, 1000)
    assert fast is not None
    assert table(fast) == table(_walked(times, events_of(events), FRAMES, 1000))
