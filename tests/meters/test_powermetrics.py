"""powermetrics: its text, its plist, and a program that behaves like it."""

import plistlib
import time

from wattribute.meters.powermetrics import Powermetrics
from wattribute.readers.powermetrics_samples import parse_plist, parse_text

APPLE = """Machine model: MacBookPro18,3
*** Sampled system activity (Wed Nov  6 15:23:31 2024 +0000) (1002.25ms elapsed) ***

**** Processor usage ****
E-Cluster Power: 37 mW
CPU 0 frequency: 1018 MHz
CPU Power: 823 mW
GPU Power: 26 mW
ANE Power: 0 mW
Combined Power (CPU + GPU + ANE): 849 mW

**** GPU usage ****
GPU Power: 26 mW
*** Sampled system activity (Wed Nov  6 15:23:32 2024 +0000) (1010.50ms elapsed) ***
CPU Power: 1.5 W
Combined Power (CPU + GPU + ANE): 1500 mW
"""
INTEL = """*** Sampled system activity (x) (500.00ms elapsed) ***
Intel energy model derived package power (CPUs+GT+SA): 1.52W
"""


def test_text_of_apple_silicon():
    first, second = parse_text(APPLE)
    assert first == {"CPU": 823, "GPU": 26, "ANE": 0, "Combined": 849}  # the cluster's power lies inside the CPU's
    assert first.elapsed_ns == 1_002_250_000
    assert second == {"CPU": 1500, "Combined": 1500}


def test_text_of_an_intel_mac_and_none_at_all():
    assert parse_text(INTEL) == [{"Package": 1520}]
    assert parse_text("powermetrics must be invoked as the superuser\n") == []


def document(**processor):
    return plistlib.dumps({"elapsed_ns": 200_000_000, "processor": processor})


def test_plist_documents_are_parted_by_nul_and_a_cut_one_is_left_out():
    whole = document(cpu_power=823.4, gpu_power=26, ane_power=0, combined_power=849.4)
    assert (
        parse_plist(whole + b"\0" + whole + b"\0" + whole[:-20])
        == [{"CPU": 823, "GPU": 26, "ANE": 0, "Combined": 849}] * 2
    )
    assert parse_plist(document(package_watts=1.52)) == [{"Package": 1520}]


def test_a_program_that_streams(tmp_path):
    program = tmp_path / "powermetrics"
    (tmp_path / "sample").write_bytes(document(cpu_power=1000, gpu_power=50, ane_power=0, combined_power=1050) + b"\0")
    program.write_text(f"#!/bin/sh\nwhile :; do cat {tmp_path}/sample; sleep 0.05; done\n")
    program.chmod(0o755)
    meter = Powermetrics(str(program))
    assert meter.available().ok
    channels = [(c.device.name, c.device.kind) for c in meter.channels()]
    assert channels == [("CPU", "cpu"), ("GPU", "gpu"), ("ANE", "npu"), ("Combined", "soc")]
    readings = []
    deadline = time.monotonic() + 5
    while not readings and time.monotonic() < deadline:
        time.sleep(0.02)
        readings = [reading for reading in meter.read() if reading[1] is not None]
    assert [value for _, value in readings] == [1000, 50, 0, 1050]
    assert time.monotonic_ns() - readings[0][0] >= 100_000_000  # in the middle of its 200 ms
    meter.close()


def test_a_program_that_refuses_names_the_way(tmp_path):
    program = tmp_path / "powermetrics"
    program.write_text("#!/bin/sh\necho must be invoked as the superuser >&2\nexit 1\n")
    program.chmod(0o755)
    said = Powermetrics(str(program)).available()
    assert not said.ok
    assert "NOPASSWD" in said.fix
