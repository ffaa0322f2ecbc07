"""Where the floor of a device comes from, in order, and what is said where it is not known."""

from dataclasses import replace

import numpy as np
import pytest

from wattribute import attribute
from wattribute.attribution.floors import Floor, parse
from wattribute.model import Recording, Signal
from wattribute.testing.simulation import Simulation, Steps


def recording(use_percent: list[int], **metadata: object) -> Recording:
    """A GPU that draws 20 W at rest and 120 W in a kernel of the fifth second; its utilisation is read every second."""
    machine = Simulation(length_s=5, **metadata)
    gpu = machine.device("GPU 0", floor_w=20).counter(period_s=0.05)
    machine.stream(gpu, [("gemm", 4.0, 5.0, 100.0)])
    made = machine.run().recording
    times = np.arange(6) * made.clock.ticks_per_s
    use = Signal("nvml utilisation", "gauge", "%", times, np.array([0, *use_percent]), host="n01", device="GPU 0")
    return replace(made, signals=(*made.signals, use))


def floor(found) -> dict[str, object]:
    return found.devices.select("floor_w", "floor", "static_j", "static_low_j", "static_high_j").to_dicts()[0]


def test_the_quietest_stretch_where_utilisation_shows_rest():
    """Four quiet seconds at 20 W: 100 J of the 200 J are static."""
    found = floor(attribute(recording([0, 1, 0, 1, 90])))
    assert found["floor_w"] == pytest.approx(20, rel=0.01)
    assert found["floor"] == "quietest stretch"
    assert found["static_j"] == pytest.approx(100, rel=0.01)
    assert found["static_low_j"] <= 100 <= found["static_high_j"] + 1e-9


@pytest.mark.parametrize("baseline_w", [None, 20.0])
def test_a_floor_that_drifts_has_the_range_of_all_rests(baseline_w):
    """20 W at first, 26 W in the end, as a device gets warm; work in the middle: 230 J at rest in 10 s."""
    machine = Simulation(length_s=10, floors={"devices": {"GPU 0": dict.fromkeys(("floor_w", "low_w", "high_w"), 20.0)}}
                         if baseline_w else {})  # fmt: skip
    gpu = machine.device("GPU 0").counter(period_s=0.05)
    gpu.draw(Steps(np.linspace(0, 10, 101), np.linspace(20, 26, 100)))
    machine.stream(gpu, [("gemm", 4.0, 6.0, 100.0)])
    made = machine.run().recording
    times, use_percent = np.arange(11) * made.clock.ticks_per_s, np.repeat([0, 90, 0], [5, 2, 4])
    use = Signal("nvml utilisation", "gauge", "%", times, use_percent, host="n01", device="GPU 0")
    found = attribute(replace(made, signals=(*made.signals, use)), by="frame")
    assert floor(found)["static_low_j"] <= 230 <= floor(found)["static_high_j"]
    row = found.rows.to_dicts()[0]
    assert row["dynamic_low_j"] <= 200 <= row["dynamic_high_j"]


def test_without_rest_only_a_range_is_said():
    found = attribute(recording([30, 30, 30, 30, 90]))
    about = floor(found)
    assert about["floor_w"] is None
    assert about["static_j"] is None
    assert about["static_low_j"] == 0
    assert about["static_high_j"] == pytest.approx(100, rel=0.01)
    row = found.rows.to_dicts()[0]
    assert row["static_j"] is None
    assert row["dynamic_j"] is None
    assert row["dynamic_low_j"] <= 100 <= row["dynamic_high_j"]


def test_a_rest_that_is_too_short_for_the_sensor_is_none():
    made = recording([0, 0, 0, 0, 90])
    slow = [replace(s, times=s.times[::20], values=s.values[::20]) if s.unit == "J" else s for s in made.signals]
    assert floor(attribute(replace(made, signals=tuple(slow))))["floor_w"] is None


def test_a_baseline_comes_before_the_quietest_stretch_and_what_is_said_before_both():
    known = {"host": "n01", "date": "2026-01-31T12:00:00", "devices": {}}
    known["devices"] = {"GPU 0": {"floor_w": 18.0, "low_w": 17.0, "high_w": 19.0}}
    made = recording([0, 0, 0, 0, 90], floors=known)
    found = floor(attribute(made))
    assert (found["floor_w"], found["floor"]) == (18.0, "baseline of 2026-01-31")
    # 17 to 19 W by the baseline, and 20 W in the four quiet seconds of this recording
    assert (found["static_low_j"], found["static_high_j"]) == (pytest.approx(85), pytest.approx(100))
    assert floor(attribute(made, floor="GPU 0=10W"))["floor_w"] == 10.0
    assert "static_j" not in attribute(made, floor="none").rows.columns
    elsewhere = replace(made, metadata={**made.metadata, "floors": {**known, "host": "n02"}})
    assert floor(attribute(elsewhere))["floor"] == "quietest stretch"


def test_floors_are_written_as_people_write_them():
    assert parse("GPU 0=60W") == ("GPU 0", Floor(60, 60, 60, "said"))
    assert parse("cpu = 1.5 kW") == ("cpu", Floor(1500, 1500, 1500, "said"))
    assert parse("package 0=20W±2W")[1] == Floor(20, 18, 22, "said")
    assert parse("x=y=500mW")[0] == "x=y"
