"""Replay, and how meters are chosen by name."""

import pytest

from wattribute.errors import FormatError, MeterError, OptionError
from wattribute.meters import choose, make
from wattribute.meters.replay import Replay

SECOND = 1_000_000_000


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "readings.csv"
    path.write_text("time_s,GPU 0:energy_j,package 1:power_w,psys:energy_j\n0.5,0,10,0\n1.5,300,20,1\n")
    return path


def test_rows_are_played_against_the_clock(table):
    now = [100 * SECOND]
    meter = Replay(str(table), clock=lambda: now[0])
    assert [(c.device.kind, c.kind, c.unit) for c in meter.channels()] == [
        ("gpu", "counter", "J"), ("cpu", "gauge", "W"), ("psys", "counter", "J"),
    ]  # fmt: skip
    assert meter.read() == [(now[0], None)] * 3
    now[0] += SECOND
    assert meter.read() == [(now[0], 0.0), (now[0], 10.0), (now[0], 0.0)]
    now[0] += SECOND
    assert meter.read() == [(now[0], 300.0), (now[0], 20.0), (now[0], 1.0)]


@pytest.mark.parametrize(
    "text",
    ["", "time,GPU 0:energy_j\n", "time_s\n", "time_s,GPU 0\n", "time_s,GPU 0:kWh\n", "time_s,G:power_w\n1,x\n",
     "time_s,G:power_w\n1,2,3\n", "time_s,G:power_w\n2,1\n1,1\n"],
)  # fmt: skip
def test_a_file_that_is_not_readings(tmp_path, text):
    path = tmp_path / "wrong.csv"
    path.write_text(text)
    with pytest.raises(FormatError, match=r"wrong\.csv"):
        Replay(str(path))


def test_a_meter_is_named_with_its_root(table):
    ready, refused = choose([f"replay:{table}"])
    assert [m.name for m in ready] == ["replay"]
    assert refused == []
    with pytest.raises(OptionError, match="replay"):
        make("repaly:x")
    with pytest.raises(MeterError, match="cannot be used"):
        choose(["replay"])
    with pytest.raises(MeterError, match="No such file"):
        choose(["replay:/nonexistent.csv"])


def test_unnamed_all_that_work_are_chosen_and_the_others_say_why(own_sensors):
    ready, refused = choose([])
    assert "model" in [m.name for m in ready]
    assert all(r.availability.reason for r in refused)
    assert "replay" in [r.name for r in refused]
