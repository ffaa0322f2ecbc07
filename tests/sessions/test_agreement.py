"""Simulated runs of any devices: every verb names one total and one range, which hold the truth, and books balance."""

from dataclasses import replace

import numpy as np
import pytest

import wattribute
from wattribute.sessions.summary import summarise
from wattribute.testing.simulation import Simulation

SLACK_J = 0.01  # of counters in millijoules


def simulated(seed):
    """One to three devices with counters of any period, lag and width, some read rarely; a command in the middle."""
    draw = np.random.default_rng(seed)
    machine, begin, end = Simulation(length_s=4.0, seed=seed), draw.uniform(0.3, 1.0), draw.uniform(1.5, 3.0)
    devices, latency_s = [], {}
    for number in range(draw.integers(1, 4)):
        device = machine.device(f"package {number}" if number % 2 else f"GPU {number}", draw.uniform(0, 40))
        period_s = float(draw.choice([0.001, 0.02, 0.1, 0.3]))
        lag_s, read_s = draw.uniform(0, 1.5) * period_s, float(draw.choice([0, 0.02, 0.05]))
        wraps = {"wraps_at_j": 50.0} if draw.integers(2) and period_s <= 0.1 else {}
        device.counter(
            period_s=period_s, lag_s=lag_s, phase_s=draw.uniform(0, period_s), read_s=read_s, quantum=0.001, **wraps
        )
        devices.append(device)
        latency_s[device.name] = period_s + lag_s
        at, tasks = begin + draw.uniform(0, 0.2), []
        while at < end - 0.05:
            after = min(at + draw.uniform(0.01, 0.4), end)
            tasks.append((f"f{draw.integers(4)}", at, after, draw.uniform(5, 400)))
            at = after
        (machine.thread if number % 2 else machine.stream)(device, tasks)
    run = machine.run()
    signals = tuple(replace(one, latency_s=latency_s.get(one.device)) for one in run.recording.signals)
    life = {"start_ticks": run.recording.clock.ticks(begin), "end_ticks": run.recording.clock.ticks(end)}
    recording = replace(run.recording, signals=signals, metadata={**run.recording.metadata, "run": life})
    return recording, devices, run.frames_j, end - begin


@pytest.mark.parametrize("seed", range(40))
def test_every_verb_names_one_total_and_ranges_hold(seed):
    recording, devices, frames_j, life_s = simulated(seed)
    attribution = wattribute.attribute(recording, by="device,frame")
    books = attribution.devices.filter("counted")
    total, low, high = (books[f"measured_{name}j"].sum() for name in ("", "low_", "high_"))
    summary, emitted = summarise(recording, carbon=False), wattribute.emissions(recording, zone="FR")
    assert (summary.energy_j, summary.low_j, summary.high_j) == pytest.approx((total, low, high))
    assert (emitted.energy_j, emitted.energy_low_j, emitted.energy_high_j) == pytest.approx((total, low, high))
    assert wattribute.compare(recording, recording).whole["energy_a_j"] == pytest.approx(total)
    assert attribution.rows["self_j"].sum() + books["idle_j"].sum() == pytest.approx(total, rel=1e-9)
    for device in devices:
        (book,) = books.filter(books["device"] == device.name).to_dicts()
        truth = device.floor_w * life_s + sum(joules for (name, _), joules in frames_j.items() if name == device.name)
        assert book["measured_low_j"] - SLACK_J <= truth <= book["measured_high_j"] + SLACK_J
        for row in attribution.rows.filter(attribution.rows["device"] == device.name).to_dicts():
            truth = frames_j[device.name, row["frame"]] + device.floor_w * row["self_ns"] / 1e9
            assert row["self_low_j"] - SLACK_J <= truth <= row["self_high_j"] + SLACK_J, row["frame"]
