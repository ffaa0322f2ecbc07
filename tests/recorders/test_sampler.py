"""The sampler in simulated time: exact brackets, rates, wraps, stalls."""

import json

import numpy as np
import pytest

from tests.conftest import until
from wattribute.plugins import Availability
from wattribute.recorders.accounting import descendants
from wattribute.recorders.sampler import END_LIMIT_NS, START_LIMIT_NS
from wattribute.sessions.summary import summarise
from wattribute.testing.sampling import SECOND, Script, SimulatedMeter, Time, sample, true_j
from wattribute.testing.simulation import Wave


@pytest.fixture
def time():
    return Time()


def energies(recording):
    return {d.device: d.energy_j for d in summarise(recording, carbon=False).devices}


@pytest.mark.parametrize("gpus", [1, 2, 4, 8])
def test_a_constant_power_is_exact(tmp_path, time, gpus):
    waves = [Wave(300)] * gpus
    script = Script(time, 10.0)
    recording = sample(tmp_path, [SimulatedMeter(time, waves, 0.1)], script)
    summary = summarise(recording, carbon=False)
    assert summary.duration_s == 10
    # 300 W × 10 s; a change is seen at most one look (50 ms) after it happened, only at the ends does that matter
    assert summary.energy_j == pytest.approx(3000 * gpus, rel=0.005)
    for device in summary.devices:
        assert device.low_j <= 3000 <= device.high_j


@pytest.mark.parametrize("phase", [0.0, 0.13, 0.37])
def test_a_square_wave(tmp_path, time, phase):
    time.now_ns += int(phase * SECOND)
    wave = Wave(400, 100, 0.73, 0.3)
    script = Script(time, 10.0)
    recording = sample(tmp_path, [SimulatedMeter(time, [wave], 0.1)], script)
    assert energies(recording)["gpu 0"] == pytest.approx(true_j(wave, script), rel=0.02)


def test_package_and_dram_are_added_and_psys_is_not(tmp_path, time):
    meters = [
        SimulatedMeter(time, [Wave(100)], 0.001, device_kind="cpu", known=0.001),
        SimulatedMeter(time, [Wave(20)], 0.001, device_kind="dram", known=0.001),
    ]
    summary = summarise(sample(tmp_path, meters, Script(time, 5.0)), carbon=False)
    assert summary.energy_j == pytest.approx(600, rel=0.001)


def test_a_wrap_in_the_middle(tmp_path, time):
    wave = Wave(150)
    meter = SimulatedMeter(time, [wave], 0.001, wraps_at=262_143_328, device_kind="cpu", known=0.001)  # wraps at 262 J
    script = Script(time, 5.0)  # 750 J
    recording = sample(tmp_path, [meter], script)
    assert energies(recording)["cpu 0"] == pytest.approx(750, rel=0.001)
    (device,) = summarise(recording, carbon=False).devices
    (note,) = device.notes
    assert note.startswith("cpu 0: simulated energy: wrapped around")


def test_a_stall_loses_nothing_on_a_counter(tmp_path, time):
    wave = Wave(400, 100, 0.5, 0.3)
    script = Script(time, 5.0, stalls={2.0: 1.0})
    recording = sample(tmp_path, [SimulatedMeter(time, [wave], 0.1)], script)
    assert np.diff(recording.signals[0].times).max() >= SECOND
    assert energies(recording)["gpu 0"] == pytest.approx(true_j(wave, script), rel=0.02)


def test_a_gauge_counts_the_partial_first_and_last_interval(tmp_path, time):
    meter = SimulatedMeter(time, [Wave(250)], 0.1, kind="gauge", known=0.1)
    script = Script(time, 1.234, late_ns=3_000_000)
    recording = sample(tmp_path, [meter], script, interval_s=0.5)
    assert energies(recording)["gpu 0"] == pytest.approx(250 * 1.234, rel=1e-9)


def test_the_bracket_begins_on_an_edge_and_ends_after_one(tmp_path, time):
    script = Script(time, 0.25)
    recording = sample(tmp_path, [SimulatedMeter(time, [Wave(300)], 0.1)], script)
    signal = recording.signals[0]
    changes = signal.times[1:][np.diff(signal.values) > 0] + recording.clock.offset_ticks
    assert changes[0] <= script.start_ns
    assert script.start_ns - changes[0] < 5_000_000  # the child started right after an update
    assert changes[-1] > script.end_ns
    assert changes[-1] % (SECOND // 10) < 1_100_000  # and the last one was seen within a millisecond


def test_a_dead_counter_holds_nobody_up_for_long_and_is_named(tmp_path, time):
    began = time.now_ns
    script = Script(time, 1.0)
    recording = sample(tmp_path, [SimulatedMeter(time, [Wave(0)], 0.1)], script)
    assert script.start_ns - began <= START_LIMIT_NS + 10_000_000
    assert time.now_ns - script.end_ns <= END_LIMIT_NS
    assert recording.signals == ()
    assert [p.kind for p in recording.problems] == ["dead"]
    assert "not 0 J" in recording.problems[0].message
    summary = summarise(recording, carbon=False)
    assert summary.energy_j is None
    assert summary.devices == []


@pytest.mark.parametrize(("period_s", "per_second"), [(0.001, 50), (0.02, 50), (0.1, 20), (1.0, 2)])
def test_the_rate_is_twice_the_sensors_and_at_most_50_hz(tmp_path, time, period_s, per_second):
    meter = SimulatedMeter(time, [Wave(300)], period_s)
    script = Script(time, 60.0)
    recording = sample(tmp_path, [meter], script)
    times = recording.signals[0].times
    late = (times > times[-1] - 25 * SECOND) & (times < times[-1] - 5 * SECOND)
    assert late.sum() == pytest.approx(20 * per_second, rel=0.1, abs=2)


def test_an_interval_that_was_asked_for_is_kept(tmp_path, time):
    script = Script(time, 10.0)
    recording = sample(tmp_path, [SimulatedMeter(time, [Wave(300)], 0.1)], script, interval_s=0.25)
    times = recording.signals[0].times + recording.clock.offset_ticks
    inside = times[(times > script.start_ns) & (times < script.end_ns)]
    assert np.median(np.diff(inside)) == pytest.approx(0.25 * SECOND, rel=0.01)


def test_a_late_wake_up_is_not_paid_back_by_a_burst(tmp_path, time):
    meter = SimulatedMeter(time, [Wave(300)], 0.1)
    sample(tmp_path, [meter], Script(time, 10.0, stalls={3.0: 3.0}), interval_s=0.1)
    # 7 s awake at 10 Hz, and the brackets at 1 kHz for at most one period each
    assert meter.reads < 70 + 2 * 110


def test_one_wake_up_serves_every_meter_that_is_nearly_due(tmp_path, time):
    waits = []

    class Counted(Script):
        def wait(self, until_ns):
            waits.append(until_ns)
            return super().wait(until_ns)

    # periods of 100, 203 and 417 ms: alone they would be read 20 + 9.9 + 4.8 times a second
    meters = [
        SimulatedMeter(time, [Wave(300)], period_s, device_kind=kind, known=period_s)
        for period_s, kind in ((0.1, "gpu"), (0.203, "cpu"), (0.417, "dram"))
    ]
    script = Counted(time, 20.0)
    recording = sample(tmp_path, meters, script)
    inside = [at for at in waits if script.start_ns < at < script.end_ns]
    assert len(inside) == pytest.approx(20 * 20, abs=5)  # as often as the quickest asks, and not once more to write
    times = recording.signals[2].times + recording.clock.offset_ticks
    slowest = (times > script.start_ns) & (times < script.end_ns)
    assert slowest.sum() == pytest.approx(20 / 0.2085, abs=2)
    assert summarise(recording, carbon=False).energy_j == pytest.approx(3 * 300 * 20, rel=0.005)


def test_what_is_held_reaches_the_file_within_a_second_and_a_half(tmp_path, time):
    meter = SimulatedMeter(time, [Wave(300)], 1.0, known=1.0)
    sizes = {}

    class Watched(Script):
        def wait(self, until_ns):
            sizes[self.time.now_ns] = (tmp_path / "journal").stat().st_size
            return super().wait(until_ns)

    script = Watched(time, 20.0)
    sample(tmp_path, [meter], script)
    grown = [at for (at, size), before in zip(list(sizes.items())[1:], sizes.values(), strict=False) if size > before]
    inside = [at for at in grown if script.start_ns < at < script.end_ns]
    assert np.diff(inside).max() <= 1.5 * SECOND


def test_a_master_that_vanishes_ends_it_and_what_was_sampled_stays(tmp_path, time):
    script = Script(time, 2.0, vanish=True)
    recording = sample(tmp_path, [SimulatedMeter(time, [Wave(300)], 0.1)], script)
    assert "end_ticks" not in recording.metadata["run"]
    assert summarise(recording, carbon=False).energy_j == pytest.approx(600, rel=0.1)


def test_a_meter_that_fails_is_left_out_and_the_others_go_on(tmp_path, time):
    class Broken(SimulatedMeter):
        def read(self):
            if self.reads > 300:
                raise RuntimeError("bug [in] a plug-in")
            return super().read()

    meters = [Broken(time, [Wave(1)], 0.1, device_kind="dram"), SimulatedMeter(time, [Wave(300)], 0.1)]
    recording = sample(tmp_path, meters, Script(time, 20.0))
    assert any("simulated failed and was left out" in p.message for p in recording.problems)
    assert energies(recording)["gpu 0"] == pytest.approx(6000, rel=0.01)


def test_the_live_status_is_energy_since_the_start(tmp_path, time):
    script = Script(time, 5.0)
    meter = SimulatedMeter(time, [Wave(100)], 0.001, wraps_at=262_143_328, known=0.001)
    sample(tmp_path, [meter], script, live_s=1.0)
    told = [m for m in script.sent if "live" in m]
    assert len(told) == pytest.approx(6, abs=1)
    last = told[-1]
    expected = 100 * (last["at"] - script.start_ns) / SECOND
    assert last["live"][0]["energy_j"] == pytest.approx(expected, abs=3)
    json.dumps(told)


def test_shares_of_processes_and_cpu_time_are_noted(tmp_path, time):
    class Shared(SimulatedMeter):
        def process_shares(self, pids):
            assert set(pids) == {7, 8}
            return {"gpu 0": 0.25}

        def slice_shares(self, pids):
            return {"gpu 0": 4 / 7}

    class Accounts:
        """Half a core is the command's, two are busy."""

        seen = iter([{7, 8}])  # one of them ends within the first second: the driver still tells of it

        def members(self, pid, now_ns):
            return next(self.seen, {7})

        def look(self, pid, now_ns):
            return [[(now_ns - script.start_ns) / 2e9], [100 + (now_ns - script.start_ns) * 2e-9]]

    script = Script(time, 5.0)
    recording = sample(tmp_path, [Shared(time, [Wave(300)], 0.1)], script, account=Accounts())
    signals = {signal.name: signal for signal in recording.signals}
    assert signals["command share"].device == "gpu 0"
    assert set(signals["command share"].values) == {25}
    assert signals["command slices"].values == pytest.approx(400 / 7)
    for name, cores in (("cpu time of the command", 0.5), ("cpu time of other processes", 1.5)):
        clock = signals[name]
        spent_s = (clock.values[-1] - clock.values[0]) * float(clock.scale)
        lasted_s = (clock.times[-1] - clock.times[0]) / SECOND
        assert lasted_s == pytest.approx(5, rel=0.05)
        assert spent_s == pytest.approx(cores * lasted_s, rel=1e-3)


def test_descendants_are_found():
    import os
    import subprocess

    child = subprocess.Popen(["sh", "-c", "sleep 5 & wait"], start_new_session=True)
    try:
        until(lambda: len(descendants(child.pid)) == 2)
        assert child.pid in descendants(os.getpid())
    finally:
        os.killpg(child.pid, 15)
        child.wait()


def test_the_simulated_meter_is_a_meter(time):
    assert SimulatedMeter(time, [Wave(1)], 0.1).available() == Availability(True)
