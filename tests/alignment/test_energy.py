"""Readings become joules(t): one hand-computed case per rule, and wraps by hypothesis."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattribute.alignment import energy
from wattribute.errors import OptionError
from wattribute.model import Clock
from wattribute.testing import recordings

CLOCK = Clock(ticks_per_s=10)


def signal(kind, times, values, unit="J", **more):
    return recordings.signal(kind, values, times, "s", unit, device="", host="", **more)


def kinds(curve):
    return [problem.kind for problem in curve.problems]


def test_a_counter_is_subtracted_before_it_becomes_a_float():
    # 2^53 + 1 and 2^53 + 4 are 3 µJ apart; as floats of joules they would not be
    curve = energy(signal("counter", [0, 5], [2**53 + 1, 2**53 + 4], scale=Fraction(1, 10**6)), CLOCK)
    assert curve.values.tolist() == [0.0, 3 / 1e6]
    assert curve.bounded


def test_uint64_counters_wrap_by_themselves():
    values = np.array([2**64 - 2, 3], np.uint64)
    assert energy(signal("counter", [0, 1], values), CLOCK).values.tolist() == [0.0, 5.0]


def test_a_known_width_is_undone():
    # 990 → 5 is a rise of 15 modulo 1000
    curve = energy(signal("counter", [0, 1, 2], [980, 990, 5], wraps_at=1000), CLOCK)
    assert curve.values.tolist() == [0, 10, 25]
    assert kinds(curve) == ["wrap"]


def test_a_wrap_that_comes_back_above_is_no_dip():
    # 600 → 100 → 650 modulo 1000 rises by 500 and 550; 600 → 590 → 650 is a reading that dipped
    assert energy(signal("counter", [0, 1, 2], [600, 100, 650], wraps_at=1000), CLOCK).measured == 1050
    assert energy(signal("counter", [0, 1, 2], [600, 590, 650], wraps_at=1000), CLOCK).measured == 50


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=20), st.integers(0, 2**32 - 1))
def test_an_unknown_32_bit_wrap_is_guessed(steps, first):
    steps = [*steps, max(steps), max(steps)]  # the fastest step is seen twice, so that one survives
    values = (first + np.concatenate([[0], np.cumsum(steps)])) % 2**32
    fell = np.diff(values) < 0
    curve = energy(signal("counter", range(len(values)), values), CLOCK)
    wrap = int(np.flatnonzero(fell)[0]) if fell.any() else None
    if wrap is None or (values.max() >= 2**31 and steps[wrap] <= 3 * max(s for i, s in enumerate(steps) if i != wrap)):
        assert curve.measured == sum(steps)
        assert len(curve.pieces) == 1


def test_a_reset_is_cut_out():
    # 100 → 130, reset, 7 → 27: what was used between the readings at 1 and 2 is unknown; 30 + 20 are known
    curve = energy(signal("counter", [0, 1, 2, 3], [100, 130, 7, 27]), CLOCK)
    assert curve.measured == 50
    assert curve.values.tolist() == [0, 30, 30, 50]
    assert curve.pieces.start.tolist() == [0, 2]
    assert curve.pieces.end.tolist() == [1, 3]
    assert kinds(curve) == ["reset"]


def test_many_wraps_and_many_resets_are_one_problem_each():
    # modulo 2^32 by quarters: every fourth reading wraps, each step is 2^30; 0 … 3 and back is a reset
    wraps = energy(signal("counter", range(4000), np.arange(4000) * 2**30 % 2**32), CLOCK)
    assert wraps.measured == 3999 * 2**30
    assert [one.message for one in wraps.problems] == [
        "s: wrapped around 999 times, first at reading 4 (a width of 4.29497e+09 is assumed)"
    ]
    resets = energy(signal("counter", range(4000), np.arange(4000) % 4), CLOCK)
    assert resets.measured == 3000  # three known steps of each of 1000 rounds
    assert len(resets.pieces) == 1000
    assert kinds(resets) == ["reset"]
    assert "999 times, first at reading 4" in resets.problems[0].message


@given(st.lists(st.integers(0, 50), min_size=2, max_size=30), st.sampled_from([None, 20, 40]))
def test_falls_are_undone_as_if_one_at_a_time(values, wraps_at):
    from wattribute.alignment.energy import unwrapped

    one = signal("counter", range(len(values)), values, wraps_at=wraps_at)
    times, steps, cuts = unwrapped(one, one.times, one.values)

    def width(values, at):  # a rise of at most 90 % of a turn; nothing below 2^16 can be guessed
        step = values[at + 1] - values[at]
        return wraps_at if wraps_at and 0 <= step + wraps_at <= 0.9 * wraps_at else 0

    kept = list(range(len(values)))
    for at in range(len(values) - 2):
        if values[at + 1] < values[at] <= values[at + 2] and not width(values, at):
            kept.remove(at + 1)
    assert times.tolist() == kept
    rest = [values[i] for i in kept]
    for at in range(len(rest) - 1):
        step = rest[at + 1] - rest[at]
        if step >= 0:
            assert (steps[at], cuts[at]) == (step, False)
        else:
            assert (steps[at], cuts[at]) == ((step + wraps_at, False) if width(rest, at) else (0, True))


def test_a_reading_that_dips_is_left_out():
    curve = energy(signal("counter", [0, 1, 2, 3], [10, 20, 15, 40]), CLOCK)
    assert curve.times.tolist() == [0, 1, 3]
    assert curve.values.tolist() == [0, 10, 30]
    assert kinds(curve) == ["backwards"]


def test_a_stale_counter_runs_from_its_first_to_its_last_change():
    # read every tick, changing every 4th: changes at 4 (to 8), 8 (to 20), 12 (to 21)
    values = [0] * 4 + [8] * 4 + [20] * 4 + [21] * 4
    curve = energy(signal("counter", range(16), values), CLOCK)
    assert curve.times.tolist() == [4, 8, 12]
    assert curve.values.tolist() == [0, 12, 13]
    assert curve.measured == 13
    assert curve.pieces.end.tolist() == [12]
    assert kinds(curve) == ["stale"]


def test_a_counter_known_to_be_stale_is_collapsed_whatever_its_spacing():
    assert energy(signal("counter", [0, 1, 2, 3], [0, 1, 1, 3], stale=True), CLOCK).times.tolist() == [1, 3]
    assert energy(signal("counter", [0, 1, 2, 3], [0, 1, 1, 3]), CLOCK).times.tolist() == [0, 1, 2, 3]


def test_a_stale_counter_that_is_reset_keeps_its_gap():
    values = [0] * 3 + [5] * 3 + [9] * 3 + [1] * 3 + [4] * 3 + [6] * 3
    curve = energy(signal("counter", range(18), values, stale=True), CLOCK)
    assert curve.measured == 4 + 2  # 5 → 9 before the reset, 4 → 6 after the first change behind it
    assert len(curve.pieces) == 2


def test_gauges_are_integrated():
    # 10 W then 20 W then 0 W, a second (10 ticks) apart: steps 10 + 20, trapezoids 15 + 10
    power = signal("gauge", [0, 10, 20], [10.0, 20.0, 0.0], "W")
    step, trapezoid = energy(power, CLOCK, "step"), energy(power, CLOCK, "trapezoid")
    assert step.values.tolist() == [0, 10, 30]
    assert trapezoid.values.tolist() == [0, 15, 25]
    assert (trapezoid.unit, trapezoid.bounded) == ("J", False)
    assert energy(signal("gauge", [0, 10], [5, 5], "%"), CLOCK).unit == "%·s"
    with pytest.raises(OptionError, match="trapezoid"):
        energy(power, CLOCK, "trapez")


def test_deltas_are_summed_from_the_first_reading_on():
    curve = energy(signal("delta", [0, 10, 20], [99, 2, 3]), CLOCK)
    assert curve.values.tolist() == [0, 2, 5]  # what was used before the first reading is not ours


def test_odd_readings():
    curve = energy(signal("counter", [0, 1, 1, 3], [0.0, 4.0, 5.0, float("nan")]), CLOCK)
    assert curve.values.tolist() == [0, 5]
    assert kinds(curve) == ["not-a-number", "duplicate"]
    assert energy(signal("delta", [0, 1, 1], [0, 4, 5]), CLOCK).measured == 9
    assert energy(signal("counter", [3, 1], [6, 2]), CLOCK).measured == 4
    one = energy(signal("counter", [3], [6]), CLOCK)
    assert (one.measured, len(one.times), kinds(one)) == (0.0, 0, ["short"])
    assert energy(signal("counter", [], []), CLOCK).measured == 0
    constant = energy(signal("counter", [0, 5, 9], [7, 7, 7]), CLOCK)
    assert constant.values.tolist() == [0, 0, 0]


def test_estimates_have_no_bounds():
    assert not energy(signal("counter", [0, 1], [0, 1], estimated=True), CLOCK).bounded


def test_a_part_of_the_curve():
    whole = energy(signal("counter", [0, 10, 20], [0, 10, 40]), CLOCK)
    part = whole.between(5, 15)
    assert part.times.tolist() == [5, 10, 15]
    assert part.values.tolist() == [0, 5, 20]
    # of the 10 J and 30 J of the two intervals that were cut, nothing or all may have been used in the part
    assert part.least.tolist() == [0, 0]
    assert part.most.tolist() == [10, 30]
    assert whole.between(None, 10).measured == 10
    assert whole.between(30, 40).measured == 0
    assert whole.between(0, 20).least.tolist() == [10, 30]


def late_updates():
    """A counter of 100 W that updates every 100 ms; the fourth update is seen 90 ms late."""
    updates = [0, 100, 200, 300, 490, 500, 600, 700, 800]
    times = np.arange(0, 801)
    values = 10 * (np.searchsorted(updates, times, side="right") - 1)
    return recordings.counter(values, times, stale=True, latency_s=0.104)


def test_a_polled_counter_has_not_counted_the_last_half_of_its_latency():
    # 10 W until 100, then 40 W, counted every 2 ticks, so that a reading at an odd tick is one tick old
    times = [1, 51, 101, 151, 201]
    values = [10 * min(t - 1, 100) + 40 * max(t - 1 - 100, 0) for t in times]
    made = energy(recordings.counter(values, times, polled=True, latency_s=2), Clock(ticks_per_s=1))
    assert made.values.tolist() == [0, 510, 1010, 3040, 5000]  # the first and the last are what was read
    assert made.measured == values[-1] - values[0]
    assert made.least.tolist() == np.diff(values).tolist()
    plain = energy(recordings.counter(values, times, latency_s=2), Clock(ticks_per_s=1))
    assert plain.values.tolist() == values


def test_the_latency_of_a_stale_counter_is_that_of_its_latest_update():
    # 190 ms passed between two updates, so that an update may speak of what was used 190 ms before
    made = energy(late_updates(), Clock(ticks_per_s=1000))
    assert made.latency_ticks == 190
    on_time = recordings.counter([0, 0, 1, 1, 2, 2], [0, 1, 100, 101, 200, 201], stale=True, latency_s=0.104)
    regular = energy(on_time, Clock(ticks_per_s=1000))
    assert regular.latency_ticks == 104


def test_power_is_drawn_over_the_time_it_was_used_in():
    made = energy(late_updates(), Clock(ticks_per_s=1000))
    power = np.diff(made.values) / np.diff(made.times) * 1000
    assert power.max() == 1000  # 10 J in the 10 ms after the late update
    drawn = made.drawn
    assert np.diff(drawn.values) / np.diff(drawn.times) * 1000 == pytest.approx(100, rel=0.05)
    assert drawn.measured == made.measured
    assert drawn.least.sum() == pytest.approx(made.least.sum())
    steady = energy(recordings.counter([0, 1, 5, 6], [0, 10, 11, 20]), Clock(1000))
    assert steady.drawn is steady


@pytest.mark.parametrize("seed", range(5))
def test_updates_that_come_irregularly_are_drawn_when_they_were_made(seed):
    # 100 W, counted and shown at once, every 60 to 140 ms: moved to where they seem due, they would be spikes
    random = np.random.default_rng(seed)
    made = np.cumsum(random.integers(60, 141, 200))
    times = np.arange(made[0], made[-1])
    values = made[np.searchsorted(made, times, side="right") - 1]
    drawn = energy(recordings.counter(values, times, stale=True, latency_s=0.2), Clock(ticks_per_s=1000)).drawn
    assert np.diff(drawn.values) / np.diff(drawn.times) == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("late", "missed"), [(0.1, 0.0), (0.5, 0.0), (1.0, 0.0), (0.0, 0.1)])
def test_late_and_missed_updates_are_no_spikes(seed, late, missed):
    # 100 W, counted every 100 ms and shown up to 90 ms later; or now and then not at all
    random = np.random.default_rng(seed)
    due = np.arange(0, 20_000, 100)[random.random(200) >= missed]
    shown = due + np.where(random.random(len(due)) < late, random.integers(0, 90, len(due)), 4)
    times = np.arange(250, 19_500)
    values = (due // 10)[np.searchsorted(shown, times, side="right") - 1]
    made = energy(recordings.counter(values, times, stale=True, latency_s=0.104), Clock(ticks_per_s=1000))
    drawn = made.drawn
    power = np.diff(drawn.values) / np.diff(drawn.times) * 1000
    assert power.max() < 125
    assert drawn.measured == made.measured
    assert (drawn.times <= made.times[-len(drawn.times) :]).all()  # shown no earlier than counted
