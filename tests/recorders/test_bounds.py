"""Ranges of live recordings in simulated time: they hold the truth at every phase and however late a reading is."""

from dataclasses import replace

import numpy as np
import pytest

from wattribute import attribute
from wattribute.meters.replay import Replay
from wattribute.model import Frames, Spans, SpanTable
from wattribute.sessions.summary import summarise
from wattribute.testing.sampling import SECOND, Script, SimulatedMeter, Time, sample, true_j
from wattribute.testing.simulation import Wave

WAVE = Wave(400, 100, 0.0173, 0.4)


class Late:
    """Waits of a busy machine: most of them punctual, some late by milliseconds, a few by a tenth of a second."""

    def __init__(self, seed):
        self._draw = np.random.default_rng(seed)

    def __call__(self):
        return self._draw.choice([0.0, self._draw.exponential(0.002), self._draw.uniform(0, 0.1)], p=[0.8, 0.19, 0.01])


def with_regions(recording, lengths_s, start_s):
    """The recording with regions of these lengths, one after the other, each a frame of its own."""
    edges = np.round(np.cumsum([start_s, *lengths_s]) * SECOND).astype(np.int64)
    count = len(lengths_s)
    zeros, none = np.zeros(count, np.int32), np.full(count, -1)
    spans = Spans(edges[:-1], edges[1:], np.arange(count, dtype=np.int32), none, zeros, zeros.astype(bool))
    frames = Frames.of([(f"r{i}", "user", "function") for i in range(count)])
    return replace(recording, frames=frames, spans=SpanTable({0: spans})), edges


def missed(recording, edges, energy_j):
    """Regions whose range does not hold the truth; ``energy_j`` is the truth over seconds of the recording's clock."""
    rows = {row["frame"]: row for row in attribute(recording, by=("frame",)).rows.iter_rows(named=True)}
    out = []
    for i, (start, end) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)):
        truth, row = energy_j(end / SECOND) - energy_j(start / SECOND), rows[f"r{i}"]
        if not row["total_low_j"] * (1 - 1e-9) - 1e-6 <= truth <= row["total_high_j"] * (1 + 1e-9) + 1e-6:
            out.append((row["total_low_j"], truth, row["total_high_j"]))
    return out


@pytest.mark.parametrize("states_latency", [True, False])
@pytest.mark.parametrize(("period_s", "interval_s"), [(0.001, 0.002), (0.001, None), (0.1, 0.002), (0.1, None)])
def test_regions_of_a_counter(tmp_path, period_s, interval_s, states_latency):
    for seed in range(3):
        draw = np.random.default_rng(seed)
        time = Time(1000 * SECOND + int(draw.integers(SECOND)))
        script = Script(time, 3.0, lateness=Late(seed))
        meter = SimulatedMeter(time, [WAVE], period_s, states_latency=states_latency)
        (tmp_path / f"{seed}").mkdir()
        recording = sample(tmp_path / f"{seed}", [meter], script, interval_s=interval_s)
        origin_s = recording.clock.offset_ticks / SECOND
        begin_s = script.start_ns / SECOND - origin_s
        recording, edges = with_regions(recording, draw.uniform(0.001, 0.05, 100), begin_s + 0.1)
        assert not missed(recording, edges, lambda s, o=origin_s: WAVE.energy_j(o + s))


def test_regions_of_a_replay(tmp_path):
    """300 W counted every millisecond, read every 2 ms: what a reading shows is up to 1 ms old."""
    table = tmp_path / "300w.csv"
    table.write_text("time_s,GPU 0:energy_j\n" + "\n".join(f"{ms / 1000},{0.3 * ms}" for ms in range(5000)))
    time = Time()

    def clock():
        time.now_ns += 20_000  # a read takes time
        return time.now_ns

    meter = Replay(str(table), clock=clock)
    assert meter.channels()[0].latency_s == pytest.approx(0.001)
    recording = sample(tmp_path, [meter], Script(time, 3.0, lateness=Late(1)), interval_s=0.002)
    origin_s = (recording.clock.offset_ticks - meter._start_ns) / SECOND
    lengths_s = np.random.default_rng(2).uniform(0.001, 0.05, 100)
    recording, edges = with_regions(recording, lengths_s, 0.1)
    assert not missed(recording, edges, lambda s: 300 * (origin_s + s))


# ------------------------------------------------------------------------------------------------------- a whole run


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("period_s", [0.001, 0.02, 0.1])
@pytest.mark.parametrize("life_s", [0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 3.0])
def test_a_run_of_a_counter(tmp_path, life_s, period_s, seed):
    """Bounds without gain hold the truth, at 10 phases of the counter."""
    draw = np.random.default_rng(seed)
    for at in range(10):
        time = Time(1000 * SECOND + int(draw.integers(SECOND)))
        lateness = Late(at) if seed % 2 else float
        script = Script(time, life_s, start_s=draw.uniform(0.001, 0.1), lateness=lateness)
        wave = Wave(400, 100, draw.uniform(0.01, 1.0), draw.uniform(0.1, 0.9)) if at % 2 else Wave(300)
        folder = tmp_path / f"{at}"
        folder.mkdir()
        recording = sample(folder, [SimulatedMeter(time, [wave], period_s)], script)
        (device,) = summarise(recording, carbon=False).devices
        truth = true_j(wave, script)
        assert device.coverage == pytest.approx(1.0)
        assert device.low_j <= truth * (1 + 1e-9) + 1e-6
        assert truth <= device.high_j * (1 + 1e-9) + 1e-6


@pytest.mark.parametrize("period_s", [0.001, 0.1])
@pytest.mark.parametrize("life_s", [0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 3.0])
def test_a_run_of_a_replay(tmp_path, life_s, period_s):
    """The same of 300 W in a file, at 20 phases."""
    table, draw = tmp_path / "300w.csv", np.random.default_rng(int(life_s * 100))
    rows = (f"{at * period_s},{300 * at * period_s}" for at in range(round(5 / period_s)))
    table.write_text("time_s,GPU 0:energy_j\n" + "\n".join(rows))
    for at in range(20):
        time = Time(1000 * SECOND + int(draw.integers(SECOND)))
        meter = Replay(str(table), clock=lambda time=time: time.now_ns)
        time.now_ns += int(draw.integers(SECOND // 10))
        lateness = Late(at) if at % 2 else float
        script = Script(time, life_s, start_s=draw.uniform(0.001, 0.1), lateness=lateness)
        folder = tmp_path / f"{at}"
        folder.mkdir()
        (device,) = summarise(sample(folder, [meter], script), carbon=False).devices
        assert device.low_j * (1 - 1e-9) <= 300 * life_s <= device.high_j * (1 + 1e-9)


class Card(SimulatedMeter):
    """A GPU without an energy counter, whose power is the mean of the last 25 of every 100 ms."""

    name = "nvml"

    def channels(self):
        properties = {"model": "NVIDIA A100-SXM4-40GB"}
        return [
            replace(one, name="power_instant", device=replace(one.device, properties=properties), latency_s=0.125)
            for one in super().channels()
        ]


@pytest.mark.parametrize("life_s", [0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 3.0])
def test_a_run_of_a_gauge_is_metered_to_its_end(tmp_path, life_s):
    """At 50 phases of a gauge that reads 300 W."""
    draw = np.random.default_rng(int(life_s * 100))
    for at in range(50):
        time = Time(1000 * SECOND + int(draw.integers(SECOND)))
        script = Script(time, life_s, start_s=draw.uniform(0.001, 0.1), lateness=Late(at) if at % 2 else float)
        meter = Card(time, [Wave(300)], 0.1, kind="gauge", known=0.1)
        (tmp_path / f"{at}").mkdir()
        (device,) = summarise(sample(tmp_path / f"{at}", [meter], script), carbon=False).devices
        assert device.coverage >= 0.99
        assert device.low_j <= 300 * life_s <= device.high_j


@pytest.mark.parametrize("life_s", [0.3, 1.0])
def test_short_runs_are_not_biased(tmp_path, life_s):
    """An update is dated to the middle of the time in which it can have been made, so that errors cancel."""
    draw, errors = np.random.default_rng(1), []
    for at in range(200):
        time = Time(1000 * SECOND + int(draw.integers(SECOND)))
        script = Script(time, life_s, start_s=draw.uniform(0.001, 0.1))
        (tmp_path / f"{at}").mkdir()
        recording = sample(tmp_path / f"{at}", [SimulatedMeter(time, [Wave(300)], 0.1)], script)
        errors.append(summarise(recording, carbon=False).energy_j / (300 * life_s) - 1)
    assert abs(np.mean(errors)) < 0.003  # dated by the readings that show them it would be 1 % at 1 s
