"""Gauges: updates behind polls, windows, and readings moved to the time they speak of."""

from __future__ import annotations

import numpy as np
import pytest

import wattribute
from wattribute.alignment.gauges import gauge, metered, seen_period_s, updates
from wattribute.model import Clock, Signal
from wattribute.sensors.table import Line, Triple
from wattribute.testing.sensors import Load, Simulated, recording

NS = 1_000_000_000
CLOCK = Clock(NS, 0, 20 * NS)


def exact(value):
    return Triple(value, value, value)


def line(kind="boxcar", period=0.1, window=0.1, lag=0.0, **more):
    return Line(kind=kind, period_s=exact(period), window_s=exact(window), lag_s=exact(lag), cap_w=600.0, **more)


def signal(times_s, watts):
    return Signal("power", "gauge", "W", np.rint(np.asarray(times_s) * NS).astype(np.int64), np.asarray(watts, float))


def test_updates_behind_polls_and_values_that_stay():
    # polled every 10 ms, renewed every 100 ms: 50, 60, 60 (twice the same), 80
    polls = np.arange(0, 0.5, 0.01)
    watts = np.select([polls < 0.1, polls < 0.3, polls < 0.4], [50.0, 60.0, 80.0], 90.0)
    one = signal(polls, watts)
    found = updates(one, CLOCK, line())
    assert found.value.tolist() == [50, 60, 60, 80, 90]
    assert (found.time / NS).tolist() == pytest.approx([0, 0.1, 0.2, 0.3, 0.4])
    assert found.age[1] == pytest.approx(0.01 * NS)
    assert seen_period_s(signal(polls, np.floor(polls / 0.1 + 1e-6)), CLOCK) == pytest.approx(0.1)


def test_a_known_lag_and_window_put_energy_where_it_was_used():
    load = Load.of_spans([(5.0, 11.0, 300.0)], 100.0, 0.0, 16.0)
    sensor = Simulated("boxcar", 0.1, 0.1, lag_s=0.3, poll_s=0.005, quantum_w=0)
    found = gauge(signal(*sensor.readings(load)), CLOCK, line(lag=0.3)).energy
    span = np.array([5 * NS, 11 * NS])
    assert np.diff(found.at(span))[0] == pytest.approx(1800, rel=0.01)  # unmoved: 1800 − 0.3 · 200 at one end
    assert np.diff(metered(signal(*sensor.readings(load)), CLOCK, None).energy.at(span))[0] < 1800


@pytest.mark.parametrize(("kind", "window"), [("running mean", 1.0), ("low pass", 0.2)])
def test_a_step_on_a_smearing_sensor_loses_its_edges_only(kind, window):
    load = Load.of_spans([(5.0, 11.0, 300.0)], 100.0, 0.0, 16.0)
    one = signal(*Simulated(kind, 0.1, window, poll_s=0.005, quantum_w=0.1).readings(load))
    sharp = gauge(one, CLOCK, line(kind, window=window)).energy
    plain = metered(one, CLOCK, None).energy
    rest = np.array([11 * NS, 14 * NS])  # 3 s of 100 W
    assert abs(np.diff(sharp.at(rest))[0] - 300) < 0.35 * abs(np.diff(plain.at(rest))[0] - 300)
    assert sharp.measured == pytest.approx(load.between(sharp.times[0] / NS, sharp.times[-1] / NS), rel=0.01)


def test_a_users_gain_corrects_gauges_and_counters():
    mine = line(likely=(0.5, 10.0), pairs=((0.5, 10.0),), hard_pairs=((0.5, 10.0),), origin="my.toml")
    found = gauge(signal(np.arange(0, 2, 0.1), np.full(20, 60.0)), CLOCK, mine).energy
    seconds = (found.times[-1] - found.times[0]) / NS
    assert found.measured == pytest.approx(100 * seconds)  # (60 − 10) / 0.5 W
    counter = Signal("energy", "counter", "J", np.array([0, NS]), np.array([0, 50]))
    assert metered(counter, CLOCK, mine).energy.measured == pytest.approx(100)


def test_an_unknown_gauge_stays_where_it_was_read():
    one = signal([0, 1, 2], [10.0, 20.0, 30.0])
    found, seen = gauge(one, CLOCK, Line(kind="unknown"))
    assert found.measured == pytest.approx(15 + 25)
    assert found.times.tolist() == [0, NS, 2 * NS]
    assert seen is not None


def test_a_running_mean_reaches_to_the_end_of_its_last_window():
    """A log that ends with its program: the last mean over 1 s is of the time until then, not until 0.5 s before."""
    load = Load.of_spans([(3.0, 9.0, 300.0)], 70.0, 0.0, 12.0)
    times, watts = Simulated("running mean", 0.1, 1.0, lag_s=0.003, poll_s=0.01).readings(load)
    kept = times <= 9.0
    name = "nvidia-smi GPU 0 power.draw.average"
    made = recording([(3.0, 9.0, "a")], [(name, times[kept], watts[kept])])
    row = wattribute.attribute(made).rows.row(0, named=True)
    assert row["covered_ns"] > 0.98 * row["total_ns"]
    assert row["self_low_j"] <= 1800 <= row["self_high_j"]
