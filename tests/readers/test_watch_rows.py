"""Looks at a thread → how long its stacks lasted and where its CPU time went."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattribute.journal.layouts import DELAY_LANE, NATIVE_LANE, STACK_RUNS, STACK_WAITS
from wattribute.readers.stack_files import _SAMPLE
from wattribute.readers.watch_rows import native, placed

LANE = 7
COMPUTES, SLEEPS, WAITS = 1 | STACK_RUNS, 2, 1 | STACK_WAITS


def looks(*rows, lane=LANE):
    return np.array([(time, cpu, lane, stack) for time, cpu, stack in rows], _SAMPLE)


def lasted(rows, end):
    """Stack → nanoseconds."""
    ends = np.append(rows["time"][1:], end)
    return {stack: int((ends - rows["time"])[rows["stack"] == stack].sum()) for stack in np.unique(rows["stack"])}


def spent(rows, clock, end):
    """Stack → CPU nanoseconds."""
    ends = np.append(rows["time"][1:], end)
    took = np.interp(ends, clock.times, clock.spent) - np.interp(rows["time"], clock.times, clock.spent)
    return {stack: pytest.approx(took[rows["stack"] == stack].sum(), abs=2) for stack in np.unique(rows["stack"])}


def test_clocks_say_how_long_it_computed():
    # Looks alone would say: computing from 0 to 350 (half-way from 300 to 400), 350 of 400. The clock says 200.
    samples = looks((0, 1000, COMPUTES), (100, 1050, COMPUTES), (200, 1100, COMPUTES), (300, 1150, COMPUTES),
                    (400, 1200, SLEEPS))  # fmt: skip
    rows, clock = placed(samples, LANE)
    assert lasted(rows, 400) == {1: 200, 2: 200}
    assert spent(rows, clock, 400) == {1: 200, 2: 0}


def test_a_thread_that_only_computed_lasts_as_long_as_it_was_seen():
    rows, clock = placed(looks((0, 0, COMPUTES), (100, 40, COMPUTES), (200, 80, 3 | STACK_RUNS)), LANE)
    assert lasted(rows, 200) == {1: 150, 3: 50}  # half-way from 100 to 200; the 120 ns off the CPU are unknown
    assert spent(rows, clock, 200) == {1: 60, 3: 20}


def test_a_wait_for_a_cpu_counts_for_what_computes():
    # of 640 it was on a CPU for 300 and waited for 20, which no look saw
    samples = np.concatenate([
        looks((0, 0, COMPUTES), (320, 200, SLEEPS), (640, 300, COMPUTES)),
        looks((0, 5, 0), (640, 25, 0), lane=LANE | DELAY_LANE),
    ])  # fmt: skip
    rows, _ = placed(samples, LANE)
    assert lasted(rows, 640) == {1: 320, 2: 320}


def test_a_wait_for_a_cpu_counts_for_the_stack_in_which_it_waits():
    # Seen: on a CPU 50, waiting in 1 for 100 and in 2 for 100, asleep 50. By the clocks: 60, 180 in all, and 60 asleep.
    samples = np.concatenate([
        looks((0, 0, COMPUTES), (100, 60, WAITS), (200, 60, 2 | STACK_WAITS), (300, 60, SLEEPS)),
        looks((0, 0, 0), (300, 180, 0), lane=LANE | DELAY_LANE),
    ])  # fmt: skip
    rows, clock = placed(samples, LANE)
    assert lasted(rows, 300) == {1: 60 + 90, 2: 90 + 60}
    assert spent(rows, clock, 300) == {1: 60, 2: 0}


def test_a_turn_that_no_look_saw_does_not_make_a_sleep_compute():
    # One CPU for both: 2 is seen asleep and then waiting, with a clock that stands still; once 1 had a turn in between.
    waits = 2 | STACK_WAITS
    turns = [(SLEEPS, 0), (waits, 0), (WAITS, 30), (WAITS, 50)] * 12 + [
        (SLEEPS, 0),
        (waits, 0),
        (waits, 80),
        (WAITS, 0),
    ]
    at = 100 * np.arange(len(turns))
    clock = np.cumsum([cpu for _, cpu in turns])
    samples = looks(*zip(at.tolist(), clock.tolist(), (stack for stack, _ in turns), strict=True))
    rows, cpu = placed(samples, LANE)
    assert spent(rows, cpu, int(at[-1])) == {1: int(clock[-1]), 2: 0}


def test_who_computes_where_nothing_runs_while_it_is_looked_at():
    # One CPU for both: always seen waiting. 1 is seen with a clock that goes on, 2 with one that stands still.
    at_one, at_two = WAITS, 2 | STACK_WAITS
    samples = np.concatenate([
        looks((0, 0, at_one), (100, 50, at_one), (200, 100, at_one), (300, 150, at_two), (400, 150, at_two)),
        looks((0, 0, 0), (400, 250, 0), lane=LANE | DELAY_LANE),
    ])  # fmt: skip
    rows, clock = placed(samples, LANE)
    assert lasted(rows, 400) == {1: 250, 2: 150}
    assert spent(rows, clock, 400) == {1: 150, 2: 0}


def test_the_first_stack_is_there_from_the_beginning():
    rows, _ = placed(looks((0, 10, 0), (100, 110, COMPUTES)), LANE)
    assert rows["stack"].tolist() == [1, 1]


states = st.sampled_from([COMPUTES, SLEEPS, WAITS, 3 | STACK_RUNS, 4])


@given(st.lists(st.tuples(st.integers(1, 5000), st.floats(0, 1), states, st.integers(0, 50)), min_size=1, max_size=80))
def test_no_time_and_no_cpu_time_is_lost(steps):
    time = cpu = delay = 0
    rows, delays = [(0, 0, COMPUTES)], [(0, 0, 0)]
    for length, load, stack, waits in steps:
        time, cpu, delay = time + length, cpu + int(length * load), delay + waits
        rows.append((time, cpu, stack))
        delays.append((time, delay, 0))
    begun, clock = placed(np.concatenate([looks(*rows), looks(*delays, lane=LANE | DELAY_LANE)]), LANE)
    assert len(begun) == len(rows)
    assert (np.diff(begun["time"]) >= 0).all()
    assert begun["time"][0] == 0
    assert begun["time"][-1] <= time
    assert (np.diff(clock.times) >= 0).all()
    assert (np.diff(clock.spent) >= 0).all()
    assert clock.times[-1] == pytest.approx(time, abs=1)
    assert clock.spent[-1] == pytest.approx(cpu, abs=1)


def test_native_threads_count_for_who_waits_for_them():
    own = looks((0, 0, COMPUTES), (1000, 1000, COMPUTES))
    pool = [(200, 0, 0), (300, 400, LANE), (400, 500, 0), (600, 600, LANE)]
    clocks = native(np.concatenate([own, looks(*pool, lane=NATIVE_LANE)]))
    assert sorted(clocks) == [0, LANE]
    # 400 from 200 to 300 and 100 from 400 to 600; in between it was nobody's
    assert clocks[LANE].times.tolist() == [200, 300, 400, 600]
    assert clocks[LANE].spent.tolist() == [0, 400, 400, 500]
    assert (clocks[0].times.tolist(), clocks[0].spent.tolist()) == ([300, 400], [0, 100])


def test_the_ends_of_threads_are_no_native_threads():
    own = looks((0, 0, COMPUTES), (1000, 1000, COMPUTES))
    assert native(np.concatenate([own, looks((900, 9, 0), lane=NATIVE_LANE)])) == {}
