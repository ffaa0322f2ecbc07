"""Which meters are used when none is named, and what becomes of those that cannot be."""

import json
import subprocess
import sys

import pytest

import wattribute
from tests.meters.fakes import FakePowercap, Wave
from wattribute import meters as found
from wattribute.errors import MeterError, OptionError
from wattribute.plugins import meters
from wattribute.sessions.doctor import examine_machine


def test_a_meter_that_breaks_leaves_the_others(monkeypatch):
    def make(spec, clock, made=found.make):
        if spec == "rapl":
            raise RuntimeError("a plug-in's mistake")
        return made(spec, clock)

    monkeypatch.setattr(found, "make", make)
    monkeypatch.setenv("WATTRIBUTE_METERS", "rapl,model")
    ready, refused = found.choose(())
    assert [meter.name for meter in ready] == ["model"]
    assert [one.availability.reason for one in refused if one.name == "rapl"] == ["a plug-in's mistake"]
    with pytest.raises(MeterError, match="meter 'rapl' failed: a plug-in's mistake"):
        found.choose(["rapl"])


def test_without_the_variable_every_meter_is_tried(own_sensors):
    assert found.installed() == meters.names()


def test_the_variable_names_meters_and_roots(tmp_path, monkeypatch):
    zones = {"intel-rapl:0": ("package-0", 0)}
    with FakePowercap(tmp_path / "sys", zones, [Wave(100)]) as tree:
        monkeypatch.setenv("WATTRIBUTE_METERS", f" rapl:{tree.root} ,craypm:{tmp_path}")
        ready, refused = found.choose(())
        assert [channel.device.name for meter in ready for channel in meter.channels()] == ["package 0"]
        assert [one.name for one in refused] == [f"craypm:{tmp_path}"]
        for meter in ready:
            meter.close()
        (named,), _ = found.choose(["rapl"])  # a name alone has the root that the variable gives it
        assert [channel.device.name for channel in named.channels()] == ["package 0"]
        named.close()
        told = examine_machine(watch_s=0.01)
        assert [(row["meter"], row["ok"]) for row in told["meters"]] == [
            (f"rapl:{tree.root}", True),
            (f"craypm:{tmp_path}", False),
        ]
        with wattribute.record() as recorder:
            pass
        assert [device.name for device in recorder.recording.devices] == ["package 0"]
        for verb in (["run", "-o", "r.watt", "--", "true"], ["monitor", "--duration", "0.2", "--record", "m.watt"]):
            done = subprocess.run([sys.executable, "-m", "wattribute", *verb], cwd=tmp_path, capture_output=True)
            assert done.returncode == 0, done.stderr
        for name in ("r.watt", "m.watt"):
            summary = json.loads((tmp_path / name / "summary.json").read_text())
            assert [device["device"] for device in summary["devices"]] == ["package 0"]


def test_a_wrong_name_in_the_variable_is_one_line(command, tmp_path, monkeypatch):
    monkeypatch.setenv("WATTRIBUTE_METERS", "model,nvlm:x")
    with pytest.raises(OptionError, match="WATTRIBUTE_METERS: unknown meter 'nvlm'; did you mean 'nvml'"):
        found.choose(())
    for verb in (["run", "--", "true"], ["monitor"], ["doctor"]):
        done = command(*verb, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == "wattribute: WATTRIBUTE_METERS: unknown meter 'nvlm'; did you mean 'nvml'?\n"
    assert list(tmp_path.iterdir()) == []
