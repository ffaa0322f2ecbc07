"""Watts of processes now: what is above the floor, by the CPU time each used since the last look."""

import os

import pytest

from wattribute.model import Device
from wattribute.model.status import CarbonStatus, DeviceStatus, Status
from wattribute.sessions.processes import SCAN_NS, SHOWN, ProcessPowers, floors_w
from wattribute.views.console_monitor import process_lines

TICKS = os.sysconf("SC_CLK_TCK")


def process(root, pid, name, ticks):
    folder = root / str(pid)
    folder.mkdir(exist_ok=True)
    (folder / "stat").write_text(f"{pid} ({name}) S 1 " + " ".join(["0"] * 9) + f" {ticks} 0 0 0\n")


def cpu(power_w):
    return [DeviceStatus("package 0", "cpu", power_w=power_w), DeviceStatus("GPU 0", "gpu", power_w=300.0)]


def test_watts_above_the_floor_go_by_cpu_time(tmp_path):
    """50 W, 20 W of it at rest: of 30 W a process that used 3 of 4 ticks has 22.5 W; the GPU is not in it."""
    powers = ProcessPowers({"package 0": 20.0, "GPU 0": 55.0}, tmp_path)
    for pid, name in ((1, "init"), (7, "a) b"), (8, "a) b"), (9, "bash")):
        process(tmp_path, pid, name, 100)
    assert powers(0 + 1, cpu(50)) == ()
    process(tmp_path, 7, "a) b", 100 + 2 * TICKS)
    process(tmp_path, 8, "a) b", 100 + 1 * TICKS)
    process(tmp_path, 9, "bash", 100 + 1 * TICKS)
    busy, other = powers(1 + 4 * SCAN_NS, cpu(50))
    assert (busy.name, busy.count, busy.cpu_percent) == ("a) b", 2, pytest.approx(75))
    assert (busy.power_w, other.power_w) == (pytest.approx(22.5), pytest.approx(7.5))
    assert powers.static_w(cpu(50)) == 75.0
    process(tmp_path, 9, "bash", 10**6)
    assert powers(2 + 4 * SCAN_NS, cpu(50)) == (busy, other)  # all of /proc at most once a second


def test_many_processes_are_the_first_few_and_the_rest(tmp_path):
    powers = ProcessPowers({}, tmp_path)
    for pid in range(1, 21):
        process(tmp_path, pid, f"p{pid}", 0)
    powers(1, cpu(42))
    for pid in range(1, 21):
        process(tmp_path, pid, f"p{pid}", pid)
    rows = powers(1 + SCAN_NS, cpu(42))
    assert len(rows) == SHOWN + 1
    assert rows[0].name == "p20"
    assert (rows[-1].name, rows[-1].count) == ("others", 12)
    assert sum(row.power_w for row in rows) == pytest.approx(42)


def test_floors_are_the_model_s_and_the_baseline_s(tmp_path, monkeypatch):
    from wattribute.recorders import baselines

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    devices = {"CPU": Device("CPU", "cpu", properties={"floor_w": "7.5"}), "GPU 0": Device("GPU 0", "gpu")}
    assert floors_w(devices, "n1") == {"CPU": 7.5}
    baselines.save({"host": "n1", "devices": {"GPU 0": {"floor_w": 60.0}, "gone": {"floor_w": 1.0}}})
    assert floors_w(devices, "n1") == {"CPU": 7.5, "GPU 0": 60.0}


def test_lines_of_the_screen(tmp_path):
    powers = ProcessPowers({"package 0": 20.0}, tmp_path)
    process(tmp_path, 7, "python", 0)
    powers(1, cpu(50))
    process(tmp_path, 7, "python", TICKS)
    rows = powers(1 + SCAN_NS, cpu(50))
    status = Status(0, 0, 1.0, "n1", cpu(50), CarbonStatus(0, 0, ""), processes=rows, static_w=20.0)
    _, head, line = (text.plain for text in process_lines(status, 80))
    assert "static 20.0 W" in head
    assert line.split() == ["python", "100", "%", "30.0", "W"]
    assert status.as_dict()["processes"] == [{"name": "python", "count": 1, "cpu_percent": 100.0, "power_w": 30.0}]
