"""Our meters fulfil the contract of meters, each over its fake."""

import time

import pytest

from tests.meters.fakes import FakeAmdsmi, FakeCray, FakeNvml, FakePowercap, FakeRocm
from wattribute.meters.amdsmi import Amd
from wattribute.meters.craypm import CrayPm
from wattribute.meters.hwmon import Hwmon
from wattribute.meters.model import PowerModel
from wattribute.meters.nvml import Nvml
from wattribute.meters.rapl import Rapl
from wattribute.meters.replay import Replay
from wattribute.testing.contracts import MeterContract
from wattribute.testing.sampling import SECOND, SimulatedMeter, Time
from wattribute.testing.simulation import Wave

WAVES = [Wave(300, 100, 0.1, 0.5), Wave(100)]


class OfFakes(MeterContract):
    """Time passes by itself; libraries are fakes that find their state in the environment."""

    @pytest.fixture(autouse=True)
    def _environment(self, monkeypatch):
        self.setenv = monkeypatch.setenv

    def library(self, fake):
        self.setenv(fake.variable, str(fake.state))
        return str(fake.library)

    def between(self):
        time.sleep(0.01)


class TestPowercap(OfFakes):
    def make(self, folder):
        zones = {"intel-rapl:0": ("package-0", 0), "intel-rapl:0:0": ("dram", 1)}
        return Rapl(str(FakePowercap(folder / "sys", zones, WAVES).root))


class TestCray(OfFakes):
    def make(self, folder):
        return CrayPm(str(FakeCray(folder / "pm", {"": 0, "accel0_": 1}, WAVES).root))


class TestHwmon(OfFakes):
    def make(self, folder):
        (folder / "hwmon0").mkdir()
        (folder / "hwmon0" / "name").write_text("amdgpu\n")
        (folder / "hwmon0" / "power1_average").write_text("35000000\n")
        return Hwmon(str(folder))


class TestNvml(OfFakes):
    def make(self, folder):
        return Nvml(self.library(FakeNvml(folder, WAVES, period_s=0.01)))


class TestRocm(OfFakes):
    def make(self, folder):
        return Amd(self.library(FakeRocm(folder, WAVES, period_s=0.01)))


class TestAmdsmi(OfFakes):
    def make(self, folder):
        return Amd(self.library(FakeAmdsmi(folder, WAVES, period_s=0.01)))


class TestModel(OfFakes):
    def make(self, folder):
        return PowerModel()


class TestReplay(MeterContract):
    def make(self, folder):
        (folder / "readings.csv").write_text("time_s,GPU 0:energy_j,package 1:power_w\n0,0,10\n1,300,20\n2,500,30\n")
        self.time = Time()
        return Replay(str(folder / "readings.csv"), clock=self.time)

    def between(self):
        self.time.now_ns += SECOND // 2


class TestSimulatedMeter(MeterContract):
    def make(self, folder):
        return SimulatedMeter(Time(), WAVES, 0.1, wraps_at=10_000_000)

    @pytest.mark.skip(reason="it belongs to the tests")
    def test_starts_without_numpy(self): ...
