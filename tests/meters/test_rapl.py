"""RAPL: real perf_event_open against software PMUs that stand in for the power PMU, and a powercap tree."""

import os
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import pytest

from tests.meters.fakes import FakePowercap, Wave
from wattribute.meters.rapl import Rapl

SOFTWARE, CPU_CLOCK, DUMMY = 1, 0, 9  # the kernel's software PMU: a clock in ns, and an event that never counts


def power_pmu(sys_root: Path, events: dict[str, int], cpus: str = "0") -> Path:
    pmu = sys_root / "bus/event_source/devices/power"
    (pmu / "events").mkdir(parents=True)
    (pmu / "type").write_text(f"{SOFTWARE}\n")
    (pmu / "cpumask").write_text(cpus + "\n")
    for name, config in events.items():
        (pmu / f"events/{name}").write_text(f"event={config:#x}\n")
        (pmu / f"events/{name}.scale").write_text("2.3283064365386962890625e-10\n")
        (pmu / f"events/{name}.unit").write_text("Joules\n")
    return sys_root


def opened(root: Path) -> Rapl:
    meter = Rapl(str(root))
    if "perf_event_open" in meter.available().reason and not meter.channels():
        pytest.skip("perf_event_open is not permitted here (kernel.perf_event_paranoid, or a container)")
    return meter


def test_perf_counts_and_its_scale_is_exact(tmp_path):
    meter = opened(power_pmu(tmp_path, {"energy-pkg": CPU_CLOCK, "energy-ram": CPU_CLOCK, "energy-cores": CPU_CLOCK}))
    assert [(c.device.name, c.device.kind) for c in meter.channels()] == [("package 0", "cpu"), ("dram 0", "dram")]
    assert all(c.scale == Fraction(1, 2**32) for c in meter.channels())  # 2.328…e-10 is 2^-32, to the last digit
    (begin, first), _ = meter.read()
    time.sleep(0.05)
    (end, second), _ = meter.read()
    assert second - first == pytest.approx(end - begin, rel=0.05)  # the stand-in counts one per ns
    meter.close()


def test_a_dead_psys_is_offered_with_its_zeros(tmp_path):
    meter = opened(power_pmu(tmp_path, {"energy-psys": DUMMY}, cpus="0-1"))
    (channel,) = meter.channels()  # one, though two CPUs are listed: psys is the board's
    assert channel.device.kind == "psys"
    assert meter.read()[0][1] == meter.read()[0][1] == 0
    meter.close()


def test_a_dead_psys_of_perf_does_not_hide_the_packages_of_powercap(tmp_path):
    tree = FakePowercap(tmp_path, {"intel-rapl:0": ("package-0", 0)}, [Wave(100)], range_uj=1_000_000)
    meter = opened(power_pmu(Path(tree.root), {"energy-psys": DUMMY}))
    names = [channel.device.name for channel in meter.channels()]
    if "psys" not in names:
        pytest.skip("perf_event_open is not permitted here (kernel.perf_event_paranoid, or a container)")
    assert names == ["psys", "package 0"]
    meter.close()


def test_powercap_names_kinds_and_wrap(tmp_path):
    zones = {
        "intel-rapl:0": ("package-0", 0),
        "intel-rapl:0:0": ("core", 0),
        "intel-rapl:0:1": ("dram", 1),
        "intel-rapl:1": ("package-1", 0),
        "intel-rapl:1:0": ("dram", 1),
        "intel-rapl:2": ("psys", 0),
    }
    tree = FakePowercap(tmp_path, zones, [Wave(100), Wave(10)], range_uj=1_000_000)
    meter = Rapl(str(tree.root))
    assert meter.available().reason == "powercap"
    names = [(c.device.name, c.device.kind, c.wraps_at) for c in meter.channels()]
    assert names == [
        ("package 0", "cpu", 1_000_000),
        ("dram 0", "dram", 1_000_000),
        ("package 1", "cpu", 1_000_000),
        ("dram 1", "dram", 1_000_000),
        ("psys", "psys", 1_000_000),
    ]
    assert all(isinstance(value, int) for _, value in meter.read())
    meter.close()


def test_dies_of_one_package_keep_their_names(tmp_path):
    zones = {"intel-rapl:0": ("package-0-die-0", 0), "intel-rapl:1": ("package-0-die-1", 0)}
    meter = Rapl(str(FakePowercap(tmp_path, zones, [Wave(1)]).root))
    assert meter.available().ok
    assert [c.device.name for c in meter.channels()] == ["package 0", "package 0 die 1"]
    meter.close()


def test_times_stand_in_the_middle_of_each_read(tmp_path):
    ticks = iter(range(0, 1000, 10))
    tree = FakePowercap(tmp_path, {"intel-rapl:0": ("package-0", 0), "intel-rapl:1": ("package-1", 0)}, [Wave(1)])
    meter = Rapl(str(tree.root), clock=lambda: next(ticks))
    assert meter.available().ok
    assert [at for at, _ in meter.read()] == [5, 15]  # clock says 0, 10, 20


def test_nothing_at_all_says_so(tmp_path):
    said = Rapl(str(tmp_path)).available()
    assert not said.ok
    assert "no RAPL" in said.reason


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_another_user_is_told_the_command(everybodys):
    tree = FakePowercap(everybodys / "sys", {"intel-rapl:0": ("package-0", 0)}, [Wave(1)])
    (tree.root / "class/powercap/intel-rapl:0/energy_uj").chmod(0o400)
    code = (
        "import os, sys; sys.path[:0] = sys.argv[2].split(':'); from wattribute.meters.rapl import Rapl\n"
        "os.setuid(65534); said = Rapl(sys.argv[1]).available(); print(said.ok, said.reason, '|', said.fix)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(tree.root), ":".join(filter(None, sys.path))],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert run.stdout.startswith("False")
    assert "root only" in run.stdout
    assert "sudo chmod" in run.stdout
