"""NVML against a compiled libnvidia-ml.so.1."""

import os
import subprocess
import sys
import time
from fractions import Fraction

import pytest

from tests.meters.fakes import FakeNvml, Wave
from wattribute.meters import nvidia
from wattribute.meters.nvml import Nvml


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """Opens a meter on a fake, and closes it."""
    meters = []

    def open_fake(waves, **how):
        fake = FakeNvml(tmp_path, waves, **how)
        monkeypatch.setenv("FAKE_NVML", str(fake.state))
        meter = Nvml(str(fake.library))
        meters.append(meter)
        return fake, meter

    yield open_fake
    for meter in meters:
        meter.close()


def names(meter):
    return [f"{channel.device.name} {channel.name}" for channel in meter.channels()]


def test_what_is_offered_and_in_which_units(opened):
    _, meter = opened([Wave(300), Wave(100)])
    assert meter.available().ok
    quantities = ["energy", "power_instant", "power_average", "utilisation", "memory", "temperature"]
    quantities += ["sm_clock", "memory_clock"]
    assert names(meter) == [f"GPU {i} {what}" for i in (0, 1) for what in quantities]
    values = dict(zip(names(meter), meter.read(), strict=True))
    scales = {f"{c.device.name} {c.name}": c.scale for c in meter.channels()}
    assert values["GPU 0 power_instant"][1] * scales["GPU 0 power_instant"] == 300
    assert values["GPU 1 power_average"][1] * scales["GPU 1 power_average"] == 100
    assert scales["GPU 0 energy"] == Fraction(1, 1000)
    assert values["GPU 0 sm_clock"][1] * scales["GPU 0 sm_clock"] == 1_410_000_000
    properties = meter.channels()[0].device.properties
    assert properties["power_limit_w"] == "400.0"
    assert properties["power_limits_w"] == "100 to 400"
    assert properties["pci"] == "00000000:01:00.0"
    assert properties["architecture"] == "Ampere"


def test_the_counter_is_the_simulators_integral(opened):
    fake, meter = opened([Wave(400, 100, 0.05, 0.3)], period_s=0.001)
    assert meter.available().ok
    (begin, first), *_ = meter.read()
    time.sleep(0.2)
    (end, second), *_ = meter.read()
    # two refreshes of 1 ms at most 400 W may be unseen at the ends
    assert (second - first) / 1e3 == pytest.approx(fake.energy_j(0, begin, end), abs=0.9)


def test_each_channel_is_read_as_often_as_it_can_change(tmp_path, monkeypatch):
    fake = FakeNvml(tmp_path, [Wave(300)])
    monkeypatch.setenv("FAKE_NVML", str(fake.state))
    now = [0]
    meter = Nvml(str(fake.library), clock=lambda: now[0])
    assert meter.available().ok

    def read_after(milliseconds):
        now[0] += milliseconds * 1_000_000
        return {name for name, (_, value) in zip(names(meter), meter.read(), strict=True) if value is not None}

    power = {"GPU 0 power_instant", "GPU 0 power_average"}
    assert read_after(0) == set(names(meter))
    assert read_after(50) == {"GPU 0 energy"}
    assert read_after(50) == {"GPU 0 energy"} | power
    assert read_after(67) == {"GPU 0 energy", "GPU 0 utilisation"}  # a sixth of a second
    assert read_after(783) == {"GPU 0 energy", "GPU 0 utilisation"} | power
    assert read_after(50) == {
        "GPU 0 energy",
        "GPU 0 memory",
        "GPU 0 temperature",
        "GPU 0 sm_clock",
        "GPU 0 memory_clock",
    }
    meter.close()


def test_without_a_counter_power_is_read_every_time(opened):
    _, meter = opened([Wave(300)], fail={"nvmlDeviceGetTotalEnergyConsumption": 3})
    assert meter.available().ok
    meter.read()
    assert meter.read()[0][1] == 300_000


@pytest.mark.parametrize(
    ("function", "lost"),
    [
        ("nvmlDeviceGetTotalEnergyConsumption", "energy"),
        ("nvmlDeviceGetUtilizationRates", "utilisation"),
        ("nvmlDeviceGetMemoryInfo", "memory"),
        ("nvmlDeviceGetTemperature", "temperature"),
        ("nvmlDeviceGetClockInfo", "sm_clock"),
    ],
)
@pytest.mark.parametrize("code", [3, 13, 999])
def test_any_function_may_be_missing(opened, function, lost, code):
    _, meter = opened([Wave(300)], fail={function: code})
    assert meter.available().ok
    assert f"GPU 0 {lost}" not in names(meter)
    assert "GPU 0 power_instant" in names(meter)


def test_without_named_fields_the_default_power_is_read(opened):
    _, meter = opened([Wave(300)], fail={"nvmlDeviceGetFieldValues": 13})
    assert meter.available().ok
    assert "GPU 0 power" in names(meter)
    assert "GPU 0 power_instant" not in names(meter)


def test_an_old_driver_lacks_the_symbols_themselves(opened):
    _, meter = opened([Wave(250)], flags=("-DOLD_DRIVER",))
    assert meter.available().ok
    assert names(meter)[0] == "GPU 0 power"


def test_a_function_that_fails_later_gives_no_reading(opened):
    fake, meter = opened([Wave(300)])
    assert meter.available().ok
    lost = ("nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetFieldValues", "nvmlDeviceGetUtilizationRates")
    fake.write(dict.fromkeys(lost, 15))  # the GPU is lost
    assert [value for _, value in meter.read()[:4]] == [None] * 4


def test_names_that_are_not_text_do_not_stop_it(opened):
    _, meter = opened([Wave(300)], fail={"nvmlDeviceGetName": 2, "nvmlDeviceGetUUID": 3, "nvmlDeviceGetPciInfo_v3": 13})
    assert meter.available().ok
    assert meter.channels()[0].device.properties["model"] == ""


def test_mig_instances_are_listed(opened):
    _, meter = opened([Wave(300)], quirks=["gpu 0 mig 3"])
    assert meter.available().ok
    assert meter.channels()[0].device.properties["mig"].startswith("3 instances")


def test_shares_of_mig_instances(opened):
    """111 keeps 4 of 7 slices half busy, 222 keeps 2 of them busy: 4 x 50 of 4 x 50 + 2 x 100."""
    instances = ["instance 0 1 4 111 50", "instance 0 5 2 222 100"]
    _, meter = opened([Wave(300)], quirks=["gpu 0 mig 2", *instances])
    assert meter.available().ok
    assert meter.process_shares([111]) == {}  # utilisation is that since the last call
    assert meter.process_shares([111]) == {"GPU 0": 0.5}
    assert meter.process_shares([333]) == {"GPU 0": 0.0}
    assert meter.slice_shares([111]) == {"GPU 0": 4 / 7}
    assert meter.slice_shares([111, 222]) == {"GPU 0": 6 / 7}


def test_mig_instances_whose_use_the_driver_does_not_tell_have_no_shares(opened):
    _, meter = opened([Wave(300)], quirks=["gpu 0 mig 3", "process 0 111 30"])
    assert meter.available().ok
    assert [meter.process_shares([111]) for _ in range(2)] == [{}, {}]
    assert meter.slice_shares([111]) == {}


def test_a_grace_hopper_module_says_its_scope(opened):
    _, meter = opened([Wave(300)], quirks=["gpu 0 name NVIDIA GH200 480GB"])
    assert meter.available().ok
    assert meter.channels()[0].device.properties["scope"] == "module"


def test_shares_of_processes(opened):
    _, meter = opened([Wave(300), Wave(300)], quirks=["process 0 111 30", "process 0 222 90"])
    assert meter.available().ok
    assert meter.process_shares([111]) == {"GPU 0": 0.25}


def test_two_processes_that_take_turns_on_a_card(opened):
    """111 works, 222 did once and holds its slice of time; GPU 1 is no one's."""
    processes = ["process 0 111 30", "process 0 222 90 1000"]
    fake, meter = opened([Wave(300), Wave(300)], quirks=processes)
    assert meter.available().ok
    assert meter.process_shares([111]) == {"GPU 0": 0.25}
    assert meter.process_shares([111]) == {"GPU 0": 1.0}  # since the last call
    assert meter.slice_shares([111]) == {"GPU 0": 0.5}
    assert meter.slice_shares([111, 222]) == {"GPU 0": 1.0}
    fake.write({"nvmlDeviceGetComputeRunningProcesses_v3": 3}, quirks=processes)
    assert meter.slice_shares([111]) == {}  # the driver does not tell who is on the card


def test_gpus_that_say_nothing_are_not_a_meter(opened):
    fail = dict.fromkeys(("nvmlDeviceGetUtilizationRates", "nvmlDeviceGetMemoryInfo"), 3)
    fail |= dict.fromkeys(("nvmlDeviceGetTemperature", "nvmlDeviceGetClockInfo"), 3)
    _, meter = opened([Wave(300)], quirks=["gpu 0 silent"], fail=fail)
    assert not meter.available().ok


def test_no_driver(tmp_path):
    said = Nvml(str(tmp_path / "libnvidia-ml.so.1")).available()
    assert not said.ok
    assert "no NVIDIA driver" in said.reason


def test_a_driver_that_does_not_start_names_a_command(tmp_path, monkeypatch):
    fake = FakeNvml(tmp_path, [Wave(1)])
    monkeypatch.delenv("FAKE_NVML", raising=False)
    said = Nvml(str(fake.library)).available()
    assert (said.ok, said.fix) == (False, "sudo modprobe nvidia")


def test_without_nvidia_ml_py_the_command_is_named(tmp_path):
    fake = FakeNvml(tmp_path, [Wave(1)])
    code = (
        "import sys; sys.modules['pynvml'] = None\n"
        "from wattribute.meters.nvml import Nvml; print(Nvml(sys.argv[1]).available().fix)"
    )
    environment = {**os.environ, "PYTHONPATH": ":".join(filter(None, sys.path))}
    run = subprocess.run(
        [sys.executable, "-c", code, str(fake.library)], capture_output=True, text=True, check=True, env=environment
    )
    assert run.stdout == "pip install 'wattribute[nvidia]'\n"


@pytest.mark.parametrize(
    ("arch", "capability", "driver", "field", "period_s", "window_s"),
    [
        (nvidia.VOLTA, (7, 0), 535, "power", 0.02, 0.01),
        (nvidia.TURING, (7, 5), 535, "power", 0.1, 0.1),
        (nvidia.AMPERE, (8, 0), 535, "power", 0.1, 0.025),  # A100: a quarter of the time
        (nvidia.AMPERE, (8, 0), 535, "power_instant", 0.1, 0.025),
        (nvidia.AMPERE, (8, 6), 535, "power", 0.1, 1.0),  # RTX 3090: the mean of a second
        (nvidia.AMPERE, (8, 6), 535, "power_instant", 0.1, 0.1),
        (nvidia.AMPERE, (8, 6), 530, "power_average", 0.1, 0.1),
        (nvidia.ADA, (8, 9), 550, "power", 0.1, 1.0),
        (nvidia.HOPPER, (9, 0), 550, "power", 0.1, 1.0),
        (nvidia.HOPPER, (9, 0), 550, "power_instant", 0.1, 0.025),
    ],
)
def test_what_a_power_field_shows(arch, capability, driver, field, period_s, window_s):
    assert nvidia.power_field(arch, capability, driver, field) == (period_s, window_s)


def test_a_fake_replays_a_recording(opened, tmp_path):
    table = tmp_path / "table"
    table.write_text("0 100 110 120\n1 200 210 220\n")
    fake, meter = opened([Wave(0)], period_s=0.001)  # began five seconds ago: the second row is in force
    fake.write(quirks=[f"gpu 0 table {table}", "gpu 0 capability 8 6"])
    assert meter.available().ok
    values = dict(zip(names(meter), meter.read(), strict=True))
    assert values["GPU 0 power_average"][1] == 210_000
    assert values["GPU 0 power_instant"][1] == 220_000
    assert values["GPU 0 energy"][1] >= 100_000 + 4 * 200_000  # mJ: one second of 100 W, then 200 W


def test_a_gpu_that_falls_off_the_bus_answers_nothing(opened):
    fake, meter = opened([Wave(300), Wave(100)])
    assert meter.available().ok
    fake.write(quirks=["gpu 1 lost"])
    values = dict(zip(names(meter), meter.read(), strict=True))
    assert values["GPU 0 energy"][1] is not None
    assert values["GPU 1 energy"][1] is None
