"""``wattribute monitor`` as a stranger would use it: lines, JSON, signals, a recording, wrong flags."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request

import pytest

import wattribute
from tests.conftest import until
from tests.meters.fakes import FakeNvml, Wave
from wattribute.journal.file import is_being_written

MONITOR = [sys.executable, "-m", "wattribute", "monitor"]


def start(folder, *arguments, **how):
    how = {"cwd": folder, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | how
    return subprocess.Popen([*MONITOR, *map(str, arguments)], **how)


def run(folder, *arguments, **how):
    process = start(folder, *arguments, **how)
    out, err = process.communicate()
    return process.returncode, out, err


def test_without_a_terminal_there_are_lines_that_say_how_each_number_is_known(tmp_path):
    code, out, err = run(tmp_path, "--duration", 1.5, "--interval", 0.4, "--meters", "model", "--zone", "FR")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert "CPU" in lines[-1]
    assert "France" in lines[-1]
    for part in lines[-1].split(" | "):
        assert "est" in part
    assert list(tmp_path.iterdir()) == []  # nothing is kept unless asked for


def test_json_lines_with_everything_a_gpu_says(tmp_path):
    fake = FakeNvml(tmp_path, [Wave(300), Wave(50)])
    code, out, err = run(
        tmp_path, "--duration", 1.5, "--format", "json", "--interval", 0.3, "--intensity", 100, env=fake.environment()
    )
    assert (code, err) == (0, "")
    last = json.loads(out.splitlines()[-1])
    gpus = [row for row in last["live"] if row["kind"] == "gpu"]
    assert [row["power_w"] for row in gpus] == [300.0, 50.0]
    assert {"utilisation_percent", "temperature_c", "memory_bytes", "power_limit_w"} <= gpus[0].keys()
    assert last["power_w"] == 350.0
    assert not last["estimated"]
    assert last["energy_j"] == pytest.approx(350 * last["elapsed_s"], rel=0.25)  # the counter moves every 0.1 s
    assert last["carbon"]["co2e_g"] == pytest.approx(last["energy_j"] / 3.6e6 * 100)


def test_a_recording_is_an_ordinary_one(tmp_path):
    fake = FakeNvml(tmp_path, [Wave(300)])
    code, _, err = run(tmp_path, "--duration", 1, "--record", "x.watt", env=fake.environment())
    assert (code, err) == (0, "saved: x.watt\n")
    recording = wattribute.read(tmp_path / "x.watt")
    assert recording.metadata["source"] == "wattribute monitor"
    assert recording.metadata["name"].startswith("monitor of ")
    summary = json.loads((tmp_path / "x.watt/summary.json").read_text())
    (gpu,) = (device for device in summary["devices"] if device["kind"] == "gpu")
    assert gpu["energy_j"] == pytest.approx(300 * summary["duration_s"], rel=0.05)
    assert wattribute.attribute(recording).devices["measured_j"].sum() > 0
    assert not (tmp_path / "x.watt/journal").exists()


def test_a_killed_monitor_is_recovered(tmp_path):
    process = start(tmp_path, "--record", "x.watt", "--interval", 0.1, "--meters", "model")
    assert process.stdout.readline()
    journal = tmp_path / "x.watt/journal"
    begin = journal.stat().st_size
    until(lambda: journal.stat().st_size > begin)  # it is flushed every second
    process.kill()
    process.communicate()
    until(lambda: not is_being_written(tmp_path / "x.watt"))  # the sampler notices and ends
    recording = wattribute.read(tmp_path / "x.watt")
    assert any("recovered" in problem.message for problem in recording.problems)
    assert len(recording.signals[0]) > 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_in_order(tmp_path, number):
    process = start(tmp_path, "--record", "x.watt", "--interval", 0.2, "--meters", "model")
    assert process.stdout.readline()
    process.send_signal(number)
    _, err = process.communicate()
    assert (process.returncode, err) == (0, "saved: x.watt\n")
    assert wattribute.read(tmp_path / "x.watt").problems == ()


def test_a_reader_that_goes_away_ends_it(tmp_path):
    process = start(tmp_path, "--interval", 0.1, "--meters", "model")
    assert process.stdout.readline()
    process.stdout.close()
    assert process.wait() == 0
    with process.stderr as told:
        assert told.read() == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--meters", "nvlm"], "did you mean 'nvml'"),
        (["--interval", "0"], "0.001 to 3600"),
        (["--duration", "-1"], "more than 0"),
        (["--duration", "nan"], "more than 0"),
        (["--zone", "Frnace"], "zone"),
        (["--web", "nowhere"], "an address and a port"),
        (["--web", "127.0.0.1:99999"], "an address and a port"),
        (["--record", "there.watt"], "exists already"),
        (["--record", "x.watt", "--meters", "craypm:/nonexistent"], "not a Cray node"),
    ],
)
def test_a_wrong_option_is_one_line_and_nothing_is_left_behind(command, tmp_path, arguments, words):
    (tmp_path / "there.watt").mkdir()
    done = command("monitor", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert os.listdir(tmp_path) == ["there.watt"]


def test_in_python_observers_get_every_status(tmp_path):
    seen = []

    def broken(status):
        raise RuntimeError("no")

    done = wattribute.monitor(meters=["model"], duration_s=1.5, interval_s=0.2, observers=[broken, seen.append])
    assert done.last is seen[-1]
    assert done.folder is None
    (trouble,) = done.trouble  # told once, and the others went on
    assert "RuntimeError" in trouble


def test_however_short_it_was_its_end_is_told(tmp_path):
    done = wattribute.monitor(meters=["model"], duration_s=0.4)  # less than the second between two statuses
    assert done.last.energy_j > 0
    assert done.last.elapsed_s > 0.3


def test_quietly_served_for_months(tmp_path):
    """Nothing is printed but the address that was asked for, and no label says when it was started."""
    process = start(tmp_path, "--quiet", "--meters", "model", "--serve", "127.0.0.1:0")
    address = process.stderr.readline().split()[-1]

    def scraped():
        with urllib.request.urlopen(address, timeout=60) as answer:
            return answer.read().decode()

    until(lambda: "wattribute_energy" in scraped())
    runs = set(re.findall(r'run="([^"]*)"', scraped()))
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate()
    assert (process.returncode, out, err) == (0, "", "")
    assert runs == {"monitor"}
    assert list(tmp_path.iterdir()) == []
