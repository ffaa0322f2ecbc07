"""Real seconds: ``run`` against fakes at the lowest seam, compared with the simulator's own integral.

Few and short; run alone (``-m realtime``): a machine that is busy with something else delays every reading.
"""

import json
import subprocess
import sys

import pytest

import wattribute
from tests.meters.fakes import FakeCray, FakeNvml, FakePowercap, FakeRocm, Wave

pytestmark = pytest.mark.realtime


RUN = [sys.executable, "-m", "wattribute", "run", "--format", "json"]


def begin_run(folder, environment, command, *options):
    arguments = [*RUN, "-o", folder / "x.watt", *options, "--", *command]
    return subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end_run(folder, process):
    """The summary, and the child's start and end in monotonic ns."""
    _, told = process.communicate()
    assert process.returncode == 0, told
    recording = wattribute.load(folder / "x.watt")
    run, origin = recording.metadata["run"], recording.clock.offset_ticks
    return json.loads(told.splitlines()[-1]), origin + run["start_ticks"], origin + run["end_ticks"]


def measure(folder, environment, seconds, *options):
    return end_run(folder, begin_run(folder, environment, ["sleep", str(seconds)], *options))


def of_kind(summary, kind):
    return [device for device in summary["devices"] if device["kind"] == kind]


def test_constant_power_on_one_to_eight_gpus(tmp_path):
    """300 W for 10 s; the four machines are simulated side by side."""
    runs = []
    for gpus in (1, 2, 4, 8):
        folder = tmp_path / str(gpus)
        folder.mkdir()
        fake = FakeNvml(folder, [Wave(300)] * gpus)
        runs.append((fake, folder, begin_run(folder, fake.environment(), ["sleep", "10"])))
    for fake, folder, process in runs:
        summary, begin, end = end_run(folder, process)
        truth = [fake.energy_j(i, begin, end) for i in range(len(fake.waves))]
        assert summary["energy_j"] == pytest.approx(sum(truth), rel=0.01)
        for device, joules in zip(of_kind(summary, "gpu"), truth, strict=True):
            assert device["energy_j"] == pytest.approx(joules, rel=0.01)
            assert device["low_j"] <= joules <= device["high_j"]
            assert not device["estimated"]


def test_a_square_wave_on_a_gpu(tmp_path):
    fake = FakeNvml(tmp_path, [Wave(400, 100, 0.7, 0.3)])
    summary, begin, end = measure(tmp_path, fake.environment(), 6)
    assert summary["energy_j"] == pytest.approx(fake.energy_j(0, begin, end), rel=0.02)


def test_an_amd_gpu(tmp_path):
    fake = FakeRocm(tmp_path, [Wave(500, 90, 0.9, 0.5)], period_s=0.001)
    summary, begin, end = measure(tmp_path, fake.environment(), 3)
    assert summary["energy_j"] == pytest.approx(fake.energy_j(0, begin, end), rel=0.01)


def test_package_and_dram_wrap_in_the_middle_and_psys_is_not_added(tmp_path):
    zones = {"intel-rapl:0": ("package-0", 0), "intel-rapl:0:0": ("dram", 1), "intel-rapl:1": ("psys", 2)}
    waves = [Wave(100), Wave(20), Wave(170)]
    # 100 W wrap a counter of 262 J every 2.6 s
    with FakePowercap(tmp_path / "sys", zones, waves, range_uj=262_143_328) as tree:
        summary, begin, end = measure(tmp_path, None, 5, "--meters", f"rapl:{tree.root}")
    truth = [tree.energy_j(i, begin, end) for i in range(3)]
    assert summary["energy_j"] == pytest.approx(truth[0] + truth[1], rel=0.005)
    (psys,) = of_kind(summary, "psys")
    assert psys["energy_j"] == pytest.approx(truth[2], rel=0.005)
    assert psys["apart"]


def test_a_cray_node(tmp_path):
    with FakeCray(tmp_path / "pm", {"": 0, "cpu_": 1, "accel0_": 2}, [Wave(900), Wave(200), Wave(400)]) as cray:
        summary, begin, end = measure(tmp_path, None, 4, "--meters", f"craypm:{cray.root}")
    assert summary["energy_j"] == pytest.approx(cray.energy_j(0, begin, end), rel=0.01)  # the node includes the rest
    apart = {d["device"]: bool(d["apart"]) for d in summary["devices"]}
    assert apart == {"node": True, "cpu": False, "accel0": False, "rest of node": False}


def test_a_sampler_that_is_stopped_for_a_second_loses_nothing(tmp_path):
    fake = FakeNvml(tmp_path, [Wave(400, 100, 0.5, 0.3)])
    stall = (
        "import os, signal, time; from wattribute.recorders.accounting import descendants\n"
        "family = set(descendants(os.getppid())) - {os.getpid(), os.getppid()}\n"
        "(sampler,) = [p for p in family if b'recorders.sampler' in open(f'/proc/{p}/cmdline', 'rb').read()]\n"
        "time.sleep(1); os.kill(sampler, signal.SIGSTOP); time.sleep(1)\n"
        "os.kill(sampler, signal.SIGCONT); time.sleep(1)"
    )
    process = begin_run(tmp_path, fake.environment(), [sys.executable, "-c", stall])
    summary, begin, end = end_run(tmp_path, process)
    assert summary["energy_j"] == pytest.approx(fake.energy_j(0, begin, end), rel=0.03)
    times = wattribute.load(tmp_path / "x.watt").signals[0].times
    assert max(times[1:] - times[:-1]) > 900_000_000


def test_a_counter_reset_falls_back_on_power(tmp_path):
    fake = FakeNvml(tmp_path, [Wave(300)], quirks=["gpu 0 base 9000000", "gpu 0 reset_at 7.5"])  # 2.5 s from now
    summary, begin, end = measure(tmp_path, fake.environment(), 4)
    (gpu,) = of_kind(summary, "gpu")
    assert gpu["energy_j"] == pytest.approx(fake.energy_j(0, begin, end), rel=0.02)
    assert any("reset" in note for note in summary["notes"])
