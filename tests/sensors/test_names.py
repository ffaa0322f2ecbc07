"""Sensors by name: the table of real Score-P metrics, and what happens to names nobody knows."""

from fractions import Fraction

import pytest

from wattribute import sensors
from wattribute.errors import OptionError
from wattribute.sensors import Declaration, Override, describe, identify

MICRO, MILLI, ONE = Fraction(1, 10**6), Fraction(1, 1000), Fraction(1)


@pytest.mark.parametrize(
    ("name", "kind", "unit", "scale", "device"),
    [
        ("A2rocm_smi:::energy_count:device=3", "counter", "J", MICRO, "GPU 3"),
        ("rocm_smi:::energy_count:device=12", "counter", "J", MICRO, "GPU 12"),
        ("A3rocm_smi:::power_average:device=0:sensor=0", "gauge", "W", MICRO, "GPU 0"),
        ("A2rocm_smi:::current_socket_power:device=1", "gauge", "W", MICRO, "GPU 1"),
        ("rocm_smi:::temp_current:device=0:sensor=1", "gauge", "°C", MILLI, "GPU 0"),
        ("rocm_smi:::gpu_clk_freq_current:device=0", "gauge", "Hz", ONE, "GPU 0"),
        ("A2rocm_smi:::memory_busy_percent:device=2", "gauge", "%", ONE, "GPU 2"),
        ("rocm_smi:::power_cap:device=0", "gauge", "W", MICRO, ""),
        ("A2coretemp:::hwmon5:power1_input", "gauge", "W", MICRO, "hwmon5"),
        ("A2coretemp:::hwmon5:freq2_input", "gauge", "Hz", ONE, "hwmon5"),
        ("A2coretemp:::craypm:accel0_energy", "counter", "J", ONE, "accel 0"),
        ("coretemp:::craypm:energy", "counter", "J", ONE, "node"),
        ("coretemp:::craypm:cpu_power", "gauge", "W", ONE, "cpu"),
        ("coretemp:::craypm:memory_energy", "counter", "J", ONE, "memory"),
        ("coretemp:::craypm:freshness", "counter", "#", ONE, ""),
        ("AMD RAPL PACKAGE 1 energy", "counter", "J", ONE, "package 1"),
        ("x86_energy/PACKAGE0/E", "counter", "J", ONE, "package 0"),
        ("AMD RAPL PCKG[0]", "counter", "J", ONE, "package 0"),
        ("AMD RAPL SINGLE_CORE[63]", "counter", "J", ONE, "core 63"),
        ("x86_energy/BLADE/E", "counter", "J", ONE, "blade"),
        ("x86_energy/BLADE/P", "gauge", "W", ONE, "blade"),
        ("Intel RAPL psys", "counter", "J", ONE, "psys"),
        ("nvml:::Tesla_K40c:device_0:power", "gauge", "W", MILLI, "GPU 0"),
        ("nvml GPU 1 energy", "counter", "J", MILLI, "GPU 1"),
        ("perf::RAPL_ENERGY_PKG:cpu=0", "counter", "J", Fraction(1, 2**32), "package 0"),
        ("rapl:::DRAM_ENERGY:PACKAGE1", "counter", "J", Fraction(1, 10**9), "dram 1"),
        ("taurus.n1.elab watts", "gauge", "W", ONE, "taurus.n1.elab"),
        ("HIP Memory", "gauge", "B", ONE, ""),
    ],
)
def test_known_names(name, kind, unit, scale, device):
    sensor = identify(name)
    assert (sensor.kind, sensor.unit, sensor.scale, sensor.device) == (kind, unit, scale, device)
    assert describe(name, Declaration("counter", "#")) == sensor  # the declaration of real traces is wrong: names win


def test_cray_counters_are_stale_with_a_latency():
    sensor = identify("coretemp:::craypm:accel3_energy")
    assert sensor.stale
    assert sensor.latency_s == 0.104


@pytest.mark.parametrize("name", ["PAPI_TOT_CYC", "my.power", "rapl:::PACKAGE_ENERGY_CNT:PACKAGE0", "", "energy", "A2"])
def test_unknown_names_are_never_watts(name):
    sensor = describe(name)
    assert (sensor.unit, sensor.device, sensor.known) == ("#", "", False)


def test_an_unknown_name_is_what_its_file_declares_with_the_exponent():
    sensor = describe("joules of the oven", Declaration("counter", "J", Fraction(10) ** -6))
    assert (sensor.kind, sensor.unit, sensor.scale) == ("counter", "J", MICRO)
    assert (sensor.device, sensor.device_kind) == ("joules of the oven", "other")
    assert describe("x", Declaration("delta", "furlongs", Fraction(10))).unit == "#"


def test_a_users_word_beats_the_table():
    override = Override.parse("device=0=gauge:mW")  # split at the last "="
    sensor = describe("rocm_smi:::energy_count:device=0", overrides=[override])
    assert (sensor.kind, sensor.unit, sensor.scale, sensor.device) == ("gauge", "W", MILLI, "GPU 0")
    assert describe("rocm_smi:::energy_count:device=1", overrides=[override]).kind == "counter"
    made = describe("my.power", overrides=[Override.parse("POWER=gauge:W")])  # case does not matter
    assert (made.unit, made.device) == ("W", "my.power")
    assert describe("nvml GPU 1 energy", overrides=[Override.parse("nvml=delta")]).scale == MILLI  # unit left out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("energy", "RE=KIND:UNIT"),
        ("=counter:J", "RE=KIND:UNIT"),
        ("x=conter:J", "did you mean 'counter'"),
        ("x=counter:joule", "did you mean 'joules'"),
        ("(=counter:J", "regular expression"),
    ],
)
def test_wrong_overrides_say_what_is_wrong(text, says):
    with pytest.raises(OptionError, match=says):
        Override.parse(text)


def test_what_contains_what():
    assert sensors.contains("node", "gpu")
    assert sensors.contains("psys", "cpu")
    assert not sensors.contains("cpu", "dram")  # package excludes DRAM although powercap lists it below
    assert not sensors.contains("gpu", "gpu")
