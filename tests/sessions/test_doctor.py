"""doctor: what it says of live, dead, nested and missing sensors."""

import json
import subprocess
import sys

import pytest

from tests.meters.fakes import FakeNvml, FakePowercap, Wave
from tests.meters.test_rapl import DUMMY, power_pmu
from wattribute.model import Device
from wattribute.plugins import Availability, Channel
from wattribute.sessions.doctor import examine_machine, watch

SECOND = 1_000_000_000


def test_this_machine_is_described_with_all_it_has(own_sensors):
    told = examine_machine(watch_s=0.15)
    names = [row["meter"] for row in told["meters"]]
    assert {"amdsmi", "craypm", "hwmon", "model", "nvml", "powermetrics", "rapl", "replay"} <= set(names)
    assert all(row["ok"] or row["reason"] for row in told["meters"])
    assert told["core"] in ("c", "reference")
    assert told["versions"]["wattribute"]
    json.dumps(told)


class Clocked:
    """A counter of 200 W that updates every 50 ms of a simulated clock; a read takes 1 ms."""

    name = "clocked"

    def __init__(self):
        self.now = 0

    def clock(self):
        return self.now

    def available(self):
        return Availability(True)

    def channels(self):
        return [Channel("energy", "counter", "J", Device("GPU 0", "gpu"))]

    def read(self):
        self.now += 1_000_000
        return [(self.now, self.now // 50_000_000 * 10)]

    def close(self): ...


def test_period_and_rate_are_measured(monkeypatch):
    meter = Clocked()
    monkeypatch.setattr("wattribute.sessions.doctor.make", lambda name, clock: meter)
    told = examine_machine(["clocked"], watch_s=1.0, clock=meter.clock)
    (sensor,) = told["meters"][0]["sensors"]
    assert sensor["update_period_s"] == pytest.approx(0.05)
    assert sensor["jitter_s"] == pytest.approx(0, abs=1e-9)
    assert sensor["power_w"] == pytest.approx(200)
    columns, read_s = watch(Clocked(), 1, 0.0, lambda: 0)
    assert (columns, read_s) == ([[]], 0.0)


def test_dead_and_nested_sensors_are_found(tmp_path, monkeypatch):
    gpus = FakeNvml(tmp_path, [Wave(300), Wave(300)], quirks=["gpu 1 frozen"])
    monkeypatch.setenv("FAKE_NVML", str(gpus.state))
    zones = {"intel-rapl:0": ("package-0", 0), "intel-rapl:1": ("psys", 1)}
    with FakePowercap(tmp_path / "sys", zones, [Wave(100), Wave(150)]) as tree:
        told = examine_machine([f"nvml:{gpus.library}", f"rapl:{tree.root}"], watch_s=0.6)
    states = {(s["device"], s["name"]): s["state"] for row in told["meters"] for s in row["sensors"]}
    assert states["GPU 0", "energy"] == "live"
    assert states["GPU 1", "energy"] == "dead"
    found = {finding["kind"]: finding["message"] for finding in told["findings"]}
    assert found["dead"].startswith("GPU 1")
    assert "psys" in found["nested"]
    assert "mirrored" not in found  # two cards at the same power


def test_the_verb_prints_a_dead_pmu_and_the_fix(tmp_path):
    sysfs = power_pmu(tmp_path, {"energy-psys": DUMMY})
    command = [sys.executable, "-m", "wattribute", "doctor", "--seconds", "0.3", "--meters", f"rapl:{sysfs}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    if "perf_event_open" in done.stdout:
        pytest.skip("perf_event_open is not permitted here")
    assert "psys" in done.stdout
    assert "dead" in done.stdout
    wrong = subprocess.run([*command[:-1], "rappel"], capture_output=True, text=True)
    assert "rappel" in wrong.stdout + wrong.stderr
