"""The simulated sensors do what their names say."""

from __future__ import annotations

import numpy as np
import pytest

from wattribute.testing.sensors import Load, Simulated


def step_load() -> Load:
    """100 W, from 2 s on 300 W."""
    return Load.of_spans([(2.0, 4.0, 300.0)], 100.0, 0.0, 4.0)


def test_energy_of_a_load():
    assert step_load().between(1.0, 3.0) == pytest.approx(100 + 300)


def test_a_boxcar_reads_the_mean_of_its_window_as_it_ended_a_lag_ago():
    sensor = Simulated("boxcar", 0.1, 0.1, lag_s=0.05, gain=0.9, offset_w=5, quantum_w=0)
    times, readings = sensor.updates(step_load())
    share = np.clip((times - 0.05 - 2.0) / 0.1, 0, 1)
    assert readings == pytest.approx(0.9 * (100 + 200 * share) + 5, abs=0.5)


def test_a_low_pass_has_forgotten_63_per_cent_after_its_time_constant():
    sensor = Simulated("low pass", 0.01, 0.1, quantum_w=0)
    times, readings = sensor.updates(step_load())
    at = np.interp(2.1, times, readings)
    assert at == pytest.approx(100 + 200 * (1 - np.exp(-1)), rel=0.02)


def test_polls_repeat_the_last_update_and_quantise():
    sensor = Simulated("boxcar", 0.1, 0.1, poll_s=0.01, quantum_w=7.0)
    times, readings = sensor.readings(step_load())
    assert np.allclose(readings / 7, np.round(readings / 7))
    assert np.median(np.diff(times)) == pytest.approx(0.01)
    assert len(np.unique(readings)) <= 6
