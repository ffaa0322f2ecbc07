"""AMD GPUs against a compiled librocm_smi64.so and libamd_smi.so."""

import time
from fractions import Fraction

import pytest

from tests.meters.fakes import FakeAmdsmi, FakeRocm, Wave
from wattribute.meters.amdsmi import Amd


@pytest.fixture(params=[FakeRocm, FakeAmdsmi], ids=["rocm_smi", "amd_smi"])
def opened(request, tmp_path, monkeypatch):
    meters = []

    def open_fake(waves, **how):
        fake = request.param(tmp_path, waves, **how)
        monkeypatch.setenv("FAKE_AMD", str(fake.state))
        meter = Amd(str(fake.library))
        meters.append(meter)
        return fake, meter

    yield open_fake
    for meter in meters:
        meter.close()


def test_a_count_is_two_to_the_minus_sixteen_although_the_library_says_15_3(opened):
    fake, meter = opened([Wave(500)], period_s=0.001)
    assert meter.available().ok
    assert meter.channels()[0].scale == Fraction(1, 2**16)
    settled = time.monotonic() + 0.05
    while time.monotonic() < settled:  # the offset of the device's clock is the least of many
        (begin, first), *_ = meter.read()
    time.sleep(0.2)
    (end, second), *_ = meter.read()
    joules = float((second - first) * meter.channels()[0].scale)
    # 15.3 µJ per count would be 0.27 % more
    assert joules == pytest.approx(500 * (end - begin) / 1e9, rel=1e-3)
    assert joules == pytest.approx(fake.energy_j(0, begin, end), rel=1e-2)


def test_the_devices_own_time_is_used(opened):
    _, meter = opened([Wave(500)], period_s=0.05)
    assert meter.available().ok
    meter.read()
    time.sleep(0.06)
    times = {meter.read()[0][0] for _ in range(5)}
    assert len(times) == 1  # the reads differ, the refresh they show does not


def test_mi250_counts_per_package(opened):
    quirks = [f"gpu {i} name AMD Instinct MI250X" for i in range(2)]
    _, meter = opened([Wave(500), Wave(0)], quirks=quirks)
    assert meter.available().ok
    counters = [c.device for c in meter.channels() if c.kind == "counter"]
    assert [d.name for d in counters] == ["GPU 0"]
    assert counters[0].properties["scope"] == "package"
    odd = next(c.device for c in meter.channels() if c.device.name == "GPU 1")
    assert odd.properties["apart"] == "GPU 0 counts for both dies"


def test_what_else_is_read(opened):
    _, meter = opened([Wave(500)])
    assert meter.available().ok
    values = {c.name: value * c.scale for c, (_, value) in zip(meter.channels(), meter.read(), strict=True)}
    assert values["power"] == 500
    assert values["utilisation"] == 100
    assert values["memory"] == 8 << 30
    assert values["temperature"] == 45
    assert meter.channels()[0].device.properties["pci"] == "0000:c1:00.0"


def test_without_an_accumulator_there_is_power(opened):
    fail = {"rsmi_dev_energy_count_get": 2, "amdsmi_get_energy_count": 2}  # as in a virtual machine
    _, meter = opened([Wave(500)], fail=fail)
    assert meter.available().ok
    assert meter.channels()[0].name == "power"


def test_no_rocm(tmp_path):
    said = Amd(str(tmp_path / "librocm_smi64.so")).available()
    assert not said.ok
    assert "no ROCm" in said.reason


def test_a_library_without_a_driver(tmp_path, monkeypatch):
    fake = FakeRocm(tmp_path, [Wave(1)])
    monkeypatch.delenv("FAKE_AMD", raising=False)
    said = Amd(str(fake.library)).available()
    assert (said.ok, said.fix) == (False, "sudo modprobe amdgpu")
