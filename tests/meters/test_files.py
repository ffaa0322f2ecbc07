"""Meters that read the kernel's files: pm_counters, hwmon, and the model's /proc."""

import os
import time
from itertools import pairwise

import pytest

from tests.meters.fakes import FakeCray, Wave
from wattribute.meters.craypm import CrayPm
from wattribute.meters.hwmon import Hwmon
from wattribute.meters.model import MEMORY_W_PER_GB, PowerModel

SECOND = 1_000_000_000


def test_cray_uses_the_times_in_the_files(tmp_path):
    folder = tmp_path / "pm"
    cray = FakeCray(folder, {"": 0, "cpu_": 1, "accel0_": 2}, [Wave(900), Wave(200), Wave(400)])
    (folder / "energy").write_text("1000 J 5000000 us\n")
    # the wall clock stands at 5.25 s, ours at 77 s: the value was taken at 76.75 s
    meter = CrayPm(str(cray.root), clock=lambda: 77 * SECOND, wall=lambda: 5_250_000_000)
    assert meter.available().ok
    devices = {(c.device.name, c.name): c.device for c in meter.channels()}
    assert devices["node", "energy"].properties.get("apart") is None
    assert devices["accel0", "power"].kind == "gpu"
    assert devices["cpu", "energy"].kind == "cpu"  # inside the node: the ledger knows
    at = [(c.device.name, c.name) for c in meter.channels()].index(("node", "energy"))
    assert meter.read()[at] == (76_750_000_000, 1000)
    assert meter.read()[at][1] is None  # freshness stood still: nothing new
    (folder / "freshness").write_text("99\n")
    assert meter.read()[at][1] == 1000
    meter.close()


def test_cray_files_that_are_cut_or_gone(tmp_path):
    folder = tmp_path / "pm"
    FakeCray(folder, {"": 0}, [Wave(900)])
    meter = CrayPm(str(folder))
    assert meter.available().ok
    os.truncate(folder / "energy", 0)
    assert [value for _, value in meter.read()] == [None, 900]
    meter.close()
    assert not CrayPm(str(tmp_path / "nothing")).available().ok


def write(folder, **files):
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_text(f"{content}\n")


def test_hwmon_knows_grace_and_leaves_strangers_apart(tmp_path):
    for i, name in enumerate(["Module", "Grace", "CPU", "SysIO"]):
        write(tmp_path / f"hwmon{i}", name="power_meter")
        write(
            tmp_path / f"hwmon{i}/device",
            power1_average=f"{(i + 1) * 10**8}",
            power1_oem_info=f"{name} Power Socket 0",
            power1_average_interval="50",
        )
    write(tmp_path / "hwmon4", name="ina3221", power1_input="5000000", power1_label="VDD_IN")
    write(tmp_path / "hwmon5", name="amd_energy", energy1_input="123456", energy1_label="Esocket0")
    write(tmp_path / "hwmon6", name="broken", power1_input="")
    meter = Hwmon(str(tmp_path))
    assert meter.available().ok
    summed = [(c.device.name, c.device.kind) for c in meter.channels() if "apart" not in c.device.properties]
    assert summed == [("Grace 0", "cpu"), ("Esocket0", "cpu")]
    values = {
        c.device.name: float(value * c.scale) for c, (_, value) in zip(meter.channels(), meter.read(), strict=True)
    }
    assert values == {
        "Module 0": 100, "Grace 0": 200, "CPU 0": 300, "SysIO 0": 400, "ina3221 4.1": 5, "Esocket0": 0.123456,
    }  # fmt: skip
    assert meter.channels()[0].period_s == 0.05
    meter.close()


def test_no_hwmon(tmp_path):
    assert not Hwmon(str(tmp_path)).available().ok


@pytest.fixture
def proc(tmp_path):
    (tmp_path / "cpuinfo").write_text("vendor_id : AuthenticAMD\ncpu family : 25\nmodel : 1\nmodel name : EPYC 7763\n")
    (tmp_path / "meminfo").write_text("MemTotal:       31250000 kB\n")  # 32 GB
    (tmp_path / "stat").write_text("cpu  0 0 0 0 0 0 0 0 0 0\n")
    return tmp_path


def test_the_model_is_time_and_work(proc, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    now = [0]
    meter = PowerModel(str(proc), clock=lambda: now[0])
    assert meter.generation == "epyc 3"
    now[0] = 10 * SECOND
    ticks = os.sysconf("SC_CLK_TCK")
    (proc / "stat").write_text(
        f"cpu  {16 * ticks} 0 {4 * ticks} 999 999 0 0 999 0 0\n"
    )  # 20 core-seconds; steal is not ours
    (_, cpu_uj), (_, memory_uj) = meter.read()
    # 8 cores × 0.45 W × 10 s + 20 s × (2.02 − 0.45) W = 36 + 31.4 J
    assert cpu_uj / 1e6 == pytest.approx(67.4)
    assert memory_uj / 1e6 == pytest.approx(32 * MEMORY_W_PER_GB * 10)
    assert all(c.estimated and c.gain_error == 0.5 for c in meter.channels())


def test_the_model_never_exceeds_all_cores_busy(proc, monkeypatch):
    """The kernel counts in steps of 10 ms: of those that come within 2 ms no more than 2 ms of 8 cores count, the rest
    with the next reading."""
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    now = [0]
    meter = PowerModel(str(proc), clock=lambda: now[0])
    readings = []
    for ms, ticks in ((10, 0), (12, 8), (30, 8), (40, 8)):
        now[0] = ms * SECOND // 1000
        (proc / "stat").write_text(f"cpu  {ticks} 0 0 999 999 0 0 999 0 0\n")
        readings.append(meter.read()[0])
    most_w = 8 * 2.02
    watts = [1e3 * (uj - before) / (at - since) for (since, before), (at, uj) in pairwise(readings)]
    assert max(watts) <= most_w * (1 + 1e-3)
    # 8 steps of 10 ms in all, by 30 ms: 8 × 0.45 W × 40 ms + 80 ms × 1.57 W
    assert readings[-1][1] / 1e6 == pytest.approx(0.144 + 0.1256, rel=1e-3)


def test_the_model_without_proc_still_says_something(tmp_path):
    meter = PowerModel(str(tmp_path))
    assert meter.generation == "average"
    time.sleep(0.01)
    assert all(value > 0 for _, value in meter.read())
