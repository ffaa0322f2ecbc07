"""Sensors and drivers that fail, seen through ``wattribute run``: what is said, and the command runs all the same."""

import io
import json
import os
import subprocess
import sys
import threading
import time

import pytest
from rich.console import Console

import wattribute
from tests.meters.fakes import FakeNvml, Wave
from wattribute.sessions.summary import summarise
from wattribute.testing.sampling import Script, SimulatedMeter, Time, prepare, sample, true_j
from wattribute.views.console_run import run_screen


def run(folder, environment, *command):
    words = [sys.executable, "-m", "wattribute", "run", "-o", "x.watt", "--", *(command or ("sleep", "0.5"))]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    return done, json.loads((folder / "x.watt" / "summary.json").read_text())


def test_a_gpu_that_is_lost_at_the_start_is_named(tmp_path):
    done, summary = run(tmp_path, FakeNvml(tmp_path, [Wave(300), Wave(200)], quirks=["gpu 1 lost"]).environment())
    assert done.returncode == 0
    assert "GPU 1 is not metered: the driver lists it but does not open it" in done.stderr
    assert "≥" in done.stderr  # a part was not seen
    assert summary["partial"]
    assert summary["high_j"] is None
    assert [device["device"] for device in summary["devices"] if device["kind"] == "gpu"] == ["GPU 0"]


def test_a_driver_that_hangs_at_the_start_keeps_no_command(tmp_path):
    fake = FakeNvml(tmp_path, [Wave(300)], fail={"nvmlDeviceGetCount_v2": -1})
    done, summary = run(tmp_path, fake.environment(), "echo", "ran")
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert "nothing is metered: the driver of meter nvml did not answer within 2 s" in done.stderr
    assert "nothing was metered" in done.stderr
    assert summary["energy_j"] is None


def test_a_jump_that_cannot_be_is_not_believed(tmp_path):
    """5 kJ within 0.1 s on a card whose limit is 400 W."""
    now_s = 5.0  # the fake's counter is that old when it is made
    fake = FakeNvml(tmp_path, [Wave(300)], quirks=[f"gpu 0 jump_at {now_s + 3} 5000"])
    program = f"import time; time.sleep(max(0.0, ({fake.start_ns} / 1e9 + {now_s + 4}) - time.monotonic()))"
    _, summary = run(tmp_path, fake.environment(), sys.executable, "-c", program)
    (gpu,) = (device for device in summary["devices"] if device["kind"] == "gpu")
    assert gpu["energy_j"] < 300 * summary["duration_s"] * 1.05
    assert any("more than its device can use" in note for note in gpu["notes"])


def test_power_goes_on_where_an_energy_counter_fails_half_way(tmp_path):
    fake = FakeNvml(tmp_path, [Wave(300)])
    (tmp_path / "after").write_text(fake.state.read_text() + "fail nvmlDeviceGetTotalEnergyConsumption 999\n")
    program = f"import os, time; time.sleep(1.5); os.replace('after', {str(fake.state)!r}); time.sleep(1.5)"
    _, summary = run(tmp_path, fake.environment(), sys.executable, "-c", program)
    (gpu,) = (device for device in summary["devices"] if device["kind"] == "gpu")
    assert gpu["energy_j"] == pytest.approx(300 * summary["duration_s"], rel=0.1)
    assert any("before its power: nvml power_instant is used instead" in note for note in summary["notes"])


def test_a_counter_that_stops_half_way_gives_a_lower_limit(tmp_path):
    """A package at 50 W whose counter no longer moves after 2 s."""
    lines = [f"{ms / 1000},{0.05 * min(ms, 2000)}" for ms in range(0, 60_000, 10)]
    (tmp_path / "meter.csv").write_text("time_s,package 0:energy_j\n" + "\n".join(lines))
    with wattribute.record(meters=[f"replay:{tmp_path}/meter.csv"]) as recorder, wattribute.region("work"):
        time.sleep(4)
    (row,) = wattribute.attribute(recorder.recording, by="frame").rows.to_dicts()
    assert row["total_j"] <= 100
    assert row["covered_ns"] < 0.7 * row["total_ns"]
    assert any("did not move in the last" in problem.message for problem in recorder.recording.problems)


class Nonsense:
    """A meter that gives good readings for a while, and then something else."""

    name = "nonsense"

    def __init__(self, time, nonsense):
        self.inner, self.nonsense, self.reads = SimulatedMeter(time, [Wave(50)], 0.1, device_kind="cpu"), nonsense, 0

    def channels(self):
        return self.inner.channels()

    def read(self):
        self.reads += 1
        return self.inner.read() if self.reads < 20 else self.nonsense

    def close(self): ...


@pytest.mark.parametrize(
    "nonsense", [None, [], [(1, 2), (3, 4)], [("a", 1)], [(1, "b")], [(None, 1)], 7, [(1, float("nan"))], [(2**70, 1)]]
)
def test_a_meter_that_returns_nonsense_ends_itself_only(tmp_path, nonsense):
    time, wave = Time(), Wave(300)
    script = Script(time, 3.0)
    recording = sample(tmp_path, [Nonsense(time, nonsense), SimulatedMeter(time, [wave], 0.1)], script)
    summary = summarise(recording, carbon=False)
    (gpu,) = (device for device in summary.devices if device.kind == "gpu")
    assert gpu.low_j <= true_j(wave, script) <= gpu.high_j
    assert any("meter nonsense failed and was left out" in note for note in summary.notes)
    assert summary.partial


class Lost(SimulatedMeter):
    """Two GPUs, the second of which the driver loses in the middle of a run."""

    def __init__(self, script, waves, seen):
        super().__init__(script.time, waves, 0.1)
        self.script, self.seen = script, seen

    def read(self):
        first, second = super().read()
        script = self.script
        is_lost = script.start_ns and self.time.now_ns > script.start_ns + self.seen * (script.end_ns - script.start_ns)
        return [first, (second[0], None) if is_lost else second]


class Hanging(SimulatedMeter):
    """A meter whose driver does not return from its 200th reading on."""

    name = "hanging"

    def __init__(self, time):
        super().__init__(time, [Wave(50)], 0.1, device_kind="cpu", known=0.1)
        self.hangs = threading.Event()

    def read(self):
        if self.reads == 199:
            self.hangs.set()
            threading.Event().wait()
        return super().read()


def test_a_driver_that_hangs_costs_no_reading_made_before(tmp_path):
    """Between two flushes: what was only held then is there, of both meters, and the end of the command, too."""
    time, wave = Time(), Wave(300)
    hanging, good = Hanging(time), SimulatedMeter(time, [wave], 0.1, known=0.1)
    script = Script(time, 10.0)
    sampler, recorded = prepare(tmp_path, [good, hanging], script)
    assert not sampler.rescue()  # no meter is being asked
    threading.Thread(target=sampler.run, daemon=True).start()
    hanging.hangs.wait()
    hung_ns = time.now_ns
    assert hung_ns < script.end_ns
    time.now_ns = script.end_ns
    assert sampler.rescue()
    recording = recorded()
    gpu, cpu = recording.signals
    assert (len(gpu), len(cpu)) == (good.reads, 199)
    assert recording.metadata["run"]["end_ticks"] == script.end_ns - recording.clock.offset_ticks
    summary = summarise(recording, carbon=False)
    assert summary.partial
    assert summary.energy_j == pytest.approx(350 * (hung_ns - script.start_ns) / 1e9, rel=0.05)
    assert any(note.startswith("meter hanging did not answer any more") for note in summary.notes)


def test_a_run_whose_driver_hangs_ends_soon(tmp_path):
    """The core waits in the driver: the sampler's other thread answers, so nobody has to end it."""
    fake = FakeNvml(tmp_path, [Wave(300)])
    (tmp_path / "after").write_text(fake.state.read_text() + "fail nvmlDeviceGetTotalEnergyConsumption -1\n")
    program = f"import os, time; time.sleep(1); os.replace('after', {str(fake.state)!r}); time.sleep(0.3)"
    done, summary = run(tmp_path, fake.environment(), sys.executable, "-c", program)
    assert "meter nvml did not answer any more" in done.stderr
    assert "ended early" not in done.stderr
    (gpu,) = (device for device in summary["devices"] if device["kind"] == "gpu")
    assert gpu["coverage"] > 0.9 / summary["duration_s"]


def test_readings_that_cover_a_part_of_the_run_give_a_lower_limit(tmp_path):
    """A GPU of 200 W seen for 70 % of ten seconds beside one of 300 W that is seen to the end."""
    waves = [Wave(300), Wave(200)]
    script = Script(Time(), 10.0)
    summary = summarise(sample(tmp_path, [Lost(script, waves, 0.7)], script), carbon=False)
    whole, cut = summary.devices
    assert (whole.partial, cut.partial, summary.partial) == (False, True, True)
    assert cut.coverage == pytest.approx(0.7, abs=0.02)
    assert (cut.high_j, summary.high_j) == (None, None)
    assert summary.low_j <= sum(true_j(wave, script) for wave in waves)
    assert summary.energy_j == pytest.approx(3000 + 0.7 * 2000, rel=0.02)  # what was seen
    console = Console(width=200, file=io.StringIO())
    console.print(run_screen(summary))
    headline, *rest = console.file.getvalue().splitlines()
    assert headline.startswith("≥ ")
    assert "seen)" in headline
    said = f"{cut.device}: readings cover {cut.coverage:.0%} of the run; the rest is not counted"
    assert any(said in line for line in rest)
    assert not any(f"{whole.device}: readings cover" in line for line in rest)


def test_a_gpu_that_is_lost_at_once_leaves_a_lower_limit(tmp_path):
    """Its counter was read, but not long enough to move."""
    script = Script(Time(), 3.0)
    summary = summarise(sample(tmp_path, [Lost(script, [Wave(300), Wave(200)], 0.001)], script), carbon=False)
    seen, lost = summary.devices
    assert (seen.partial, lost.partial, summary.partial) == (False, True, True)
    assert (lost.energy_j, summary.high_j) == (None, None)
    console = Console(width=200, file=io.StringIO())
    console.print(run_screen(summary))
    assert console.file.getvalue().startswith("≥ ")
    assert f"{lost.device} " in console.file.getvalue()
    assert "not known  " in console.file.getvalue()


def test_a_sampler_that_dies_is_not_a_sensor_that_stands_still(tmp_path):
    """Killed right after the start: the counters were read, but not during the run."""
    program = (
        "import os, signal, subprocess, sys, time\n"
        "family = subprocess.run(['pgrep', '-P', str(os.getppid())], capture_output=True, text=True).stdout.split()\n"
        "for pid in map(int, family):\n    if pid != os.getpid(): os.kill(pid, signal.SIGKILL)\n"
        "time.sleep(1.5)\n"
    )
    fake = FakeNvml(tmp_path, [Wave(300)])
    done, summary = run(tmp_path, fake.environment(), sys.executable, "-c", program)
    assert done.returncode == 0
    assert "did not move" not in done.stderr
    assert "sampler ended early" in done.stderr
    assert "below resolution" not in done.stderr
    gpus = [device for device in summary["devices"] if device["kind"] == "gpu"]
    if not gpus:
        pytest.skip("the machine is busy: the sampler was killed before it had read anything")
    (gpu,) = gpus
    assert gpu["energy_j"] is None or gpu["coverage"] < 0.5


def test_the_command_does_not_inherit_our_secrets(tmp_path):
    secrets = {"WATTRIBUTE_PUSH_TOKEN": "geheim", "WATTRIBUTE_PUSH_PASSWORD": "geheim", "WATTRIBUTE_ZONE": "FR"}
    done, _ = run(tmp_path, os.environ | secrets, "env")
    assert "geheim" not in done.stdout
    assert "WATTRIBUTE_ZONE=FR" in done.stdout


def test_nothing_is_open_to_others_under_a_tight_umask(tmp_path):
    words = [sys.executable, "-m", "wattribute", "run", "-o", "x.watt", "--", "sleep", "0.1"]
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, preexec_fn=lambda: os.umask(0o077))
    made = [tmp_path / "x.watt", *(tmp_path / "x.watt").rglob("*")]
    assert len(made) > 5
    assert {path.stat().st_mode & 0o077 for path in made} == {0}
