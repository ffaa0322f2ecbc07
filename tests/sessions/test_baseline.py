"""The baseline of a machine: measured at rest, refused at work, kept per host and carried by later recordings."""

import json
import os
from functools import partial

import pytest

import wattribute
from tests.recorders.profiled import constant_power
from wattribute.errors import MeterError, NoDataError, OptionError
from wattribute.recorders import baselines
from wattribute.sessions.baseline import known, measure, save


@pytest.fixture(autouse=True)
def data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data"


def test_power_at_rest_with_its_spread_is_kept_and_carried(tmp_path, data_folder):
    meter = constant_power(tmp_path / "p.csv", length_s=600)
    found = measure(1.5, meters=[meter], busy_s=lambda: 0.0)
    floor = found.devices["package 0"]
    assert floor.floor_w == pytest.approx(100, rel=0.02)
    assert floor.low_w <= floor.floor_w <= floor.high_w
    path = save(found)
    assert path.is_relative_to(data_folder)
    assert known() == json.loads(path.read_text())
    made = wattribute.run(["sleep", "0.2"], tmp_path / "x.watt", meters=[meter]).recording
    assert made.metadata["floors"]["devices"]["package 0"]["floor_w"] == floor.floor_w
    devices = wattribute.attribute(made).devices
    assert devices["floor"].item().startswith("baseline of 20")
    assert devices["static_j"].item() == pytest.approx(devices["measured_j"].item(), rel=0.3)  # 0.2 s on a busy machine


def test_a_busy_machine_is_refused(tmp_path):
    spent = iter(range(10**6))  # a core-second per look
    meter = constant_power(tmp_path / "p.csv", length_s=600)
    with pytest.raises(MeterError, match=r"busy \(\d+% of its CPUs"):
        measure(3, meters=[meter], busy_s=lambda: float(next(spent)))
    assert known() == {}


def test_a_model_has_no_baseline_and_a_second_is_the_least():
    with pytest.raises(NoDataError, match="doctor"):
        measure(1, meters=["model"], busy_s=lambda: 0.0)
    with pytest.raises(OptionError, match="--seconds"):
        measure(0.1)


def test_a_baseline_of_another_host_or_a_broken_file_is_none(tmp_path):
    baselines.save({"host": "n1", "devices": {}})
    assert baselines.of_host("n1")["host"] == "n1"
    assert baselines.of_host("n2") == {}
    baselines.path_of("n2").write_text('{"host": "n1"')
    assert baselines.of_host("n2") == {}
    assert baselines.path_of("../x/y").parent == baselines.folder()


def test_the_verb_shows_what_is_known(command):
    baseline = partial(command, "baseline")
    assert "no baseline" in baseline("--show").stdout
    floors = {"GPU 0": {"floor_w": 60.0, "low_w": 58.0, "high_w": 62.0}}
    baselines.save({"host": os.uname().nodename, "date": "2026-01-31T12:00:00", "seconds": 10.0, "devices": floors})
    assert "60.0 W ± 2.0" in baseline("--show").stdout
    assert json.loads(baseline("--show", "--format", "json").stdout)["devices"] == floors
    assert baseline("--seconds", "0").returncode != 0
