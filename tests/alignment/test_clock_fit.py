"""The clock between spans and a log, from edges."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from wattribute.alignment.clock_fit import by_edges, estimate
from wattribute.alignment.response import lines
from wattribute.sensors import known_lines
from wattribute.testing.sensors import Load, Simulated, recording

NAME = "nvidia-smi GPU 0 power.draw.instant"


def run(late_s, error_s=0.0, even=False):
    """Spans of uneven length under an instant gauge whose log is late."""
    draw = np.random.default_rng(5)
    lengths = np.full(40, 0.1) if even else draw.uniform(0.1, 0.7, 40)
    edges = np.cumsum(np.concatenate([[2.0], lengths]))
    spans = [(float(a), float(b), "on") for a, b in zip(edges[:-1:2], edges[1::2], strict=False)]
    load = Load.of_spans([(a, b, 300.0) for a, b, _ in spans], 80.0, 0.0, float(edges[-1]) + 2)
    times, watts = Simulated("boxcar", 0.1, 0.1, lag_s=0.005, poll_s=0.01).readings(load)
    made = recording(spans, [(NAME, times + late_s, watts)])
    return replace(made, signals=tuple(replace(one, clock_error_s=error_s) for one in made.signals))


@pytest.mark.parametrize("late", [-0.2, 0.0, 0.15])
def test_the_estimate_holds_how_late_the_log_is(late):
    made = run(late)
    fit = estimate(made, made.signals[0], lines(made, known_lines())[0])
    assert abs(fit.late_s - late) <= fit.error_s < 0.15


def test_an_unsure_clock_is_moved_and_its_error_shrinks():
    made = run(0.2, error_s=0.5)
    (moved,), said = by_edges(made, made.signals, made.devices, "log")
    assert moved.clock_error_s < 0.15
    shift = (made.signals[0].times[0] - moved.times[0]) / 1e9
    assert abs(shift - 0.2) <= moved.clock_error_s
    assert "moved" in said[0].message


def test_a_clock_that_edges_contradict_is_not_trusted():
    made = run(0.4, error_s=0.002)
    (kept,), said = by_edges(made, made.signals, made.devices, "log")
    assert (kept.times == made.signals[0].times).all()
    assert kept.clock_error_s > 0.3
    assert "more than its clock" in said[0].message


@pytest.mark.parametrize("late", [-5.0, 2.0])
def test_a_clock_that_is_seconds_off_is_noticed(late):
    made = run(late, error_s=0.002)
    (kept,), said = by_edges(made, made.signals, made.devices, "log")
    fit = estimate(made, made.signals[0], lines(made, known_lines())[0])
    assert abs(fit.late_s - late) <= fit.error_s < 0.15
    assert kept.clock_error_s > abs(late)
    assert f"--offset={-fit.late_s:.3g}" in said[0].message


def test_a_log_that_ends_with_its_program_does_not_fit_where_its_end_would_be_missing():
    """Power that begins 5 s after its span would fit 5 s later, if there the log did not end before the span."""
    load = Load.of_spans([(7.0, 22.0, 300.0)], 80.0, 0.0, 22.0)
    times, watts = Simulated("boxcar", 0.1, 0.1, lag_s=0.005, poll_s=0.01).readings(load)
    made = recording([(2.0, 22.0, "main")], [(NAME, times, watts)])
    made = replace(made, signals=tuple(replace(one, clock_error_s=0.002) for one in made.signals))
    (same,), said = by_edges(made, made.signals, made.devices, "log")
    assert same.clock_error_s == 0.002
    assert not said


def test_work_that_repeats_throughout_the_log_fits_at_many_shifts():
    spans = [(2.0 + i, 2.5 + i, "on") for i in range(40)]
    load = Load.of_spans([(a, b, 300.0) for a, b, _ in spans], 80.0, 0.0, 45.0)
    times, watts = Simulated("boxcar", 0.1, 0.1, lag_s=0.005, poll_s=0.01).readings(load)
    inside = (times > 14) & (times < 30)
    made = recording(spans, [(NAME, times[inside] + 0.3, watts[inside])])
    assert estimate(made, made.signals[0], lines(made, known_lines())[0]) is None


def test_work_that_repeats_evenly_and_a_good_clock_change_nothing():
    for made in (run(0.0, error_s=0.002), run(0.1, error_s=0.02, even=True)):
        same, said = by_edges(made, made.signals, made.devices, "log")
        assert same == list(made.signals) or not said
