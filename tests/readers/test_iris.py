"""Recorded runs of iris-gpubench, by their real times."""

import json

import pytest

import wattribute
from wattribute.errors import FormatError
from wattribute.sessions.metrics import metrics
from wattribute.sessions.summary import summarise

HEADER = "timestamp,gpu_index,utilization,power,temperature,memory"
METRICS = """av_power: 0.0
benchmark: mnist_tf_keras
max_power_limit: 140.0
name: NVIDIA RTX A4000
start_datetime: '2024-09-04 14:27:24'
"""


pytestmark = pytest.mark.usefixtures("utc")


def write(path, rows, header=HEADER):
    path.write_text("\n".join([header, *rows]))  # the tool ends its last line with nothing
    return path


def test_a_recorded_run_by_its_real_times(shared, tmp_path):
    run = json.loads((shared / "oracles" / "oracles.json").read_text())["iris"]["run_0cd3d17"]
    rows = [f"{at},0,0,{power},31,276" for at, power in zip(run["timestamps"], run["powers_W"], strict=True)]
    write(tmp_path / "timeseries.csv", rows)
    (tmp_path / "metrics.yml").write_text(METRICS)
    recording = wattribute.read(tmp_path)  # the folder, with what the tool said
    summary = summarise(recording, intensity=run["forecast"])
    assert summary.energy_j == pytest.approx(run["actual_timestamps_J"], rel=1e-12)
    assert summary.energy_j == pytest.approx(341.549)
    found = metrics(recording, summary)
    assert found["energy_kwh"] == pytest.approx(run["actual_timestamps_kWh"])
    assert found["energy_kwh"] > 1.6 * run["reported_total_energy_kWh"]  # which took 2 s for every interval
    assert found["carbon"]["co2e_g"] == pytest.approx(run["actual_timestamps_kWh"] * 237)
    assert found["benchmark"] == "mnist_tf_keras"
    assert found["start"] == "2024-09-04T14:27:25.000000Z"
    assert found["devices"][0]["model"] == "NVIDIA RTX A4000"
    assert found["devices"][0]["power_limit_w"] == 140
    assert found["busy_average"]["power_w"] is None  # it was never in use: unknown, not 0


def test_readings_of_one_second_are_spread_over_it(tmp_path):
    rows = [f"2024-01-01 00:00:0{s},0,9,100,30,1" for s in (0, 0, 0, 0, 1)]
    recording = wattribute.read(write(tmp_path / "x.csv", rows))
    assert recording.signals[0].times.tolist() == [0, 250_000_000, 500_000_000, 750_000_000, 1_000_000_000]
    assert summarise(recording).energy_j == pytest.approx(100)


def test_attribution_gives_it_to_the_run(tmp_path):
    rows = [f"2024-01-01 00:00:0{s},{gpu},9,100,30,1" for s in (0, 5) for gpu in (0, 1)]
    found = wattribute.attribute(write(tmp_path / "x.csv", rows)).rows
    assert found["self_j"].to_list() == pytest.approx([500, 500])
    assert set(found["frame"]) == {"benchmark"}


def test_later_columns_with_clocks(tmp_path):
    header = "timestamp,gpu_idx,util,power,temp,mem,clk_speed,mem_clk_speed"
    rows = [f"2024-01-01 00:00:0{s},0,50,100,30,1,1779,6500" for s in (0, 5)]
    signals = {s.name: s for s in wattribute.read(write(tmp_path / "x.csv", rows, header)).signals}
    clock = signals["iris GPU 0 sm_clock"]
    assert (clock.unit, float(clock.values[0] * clock.scale)) == ("Hz", 1.779e9)


def test_times_of_one_character_and_cut_rows(tmp_path):
    with pytest.raises(FormatError, match="no valid times"):
        wattribute.read(write(tmp_path / "x.csv", ["-,0,9,100,30,1", "2,0,9,100,30,1"]))
    good = "2024-01-01 00:00:0{},0,9,{},30,1"
    rows = [good.format(0, 100), good.format(1, "n/a"), good.format(2, 100), "2024-01-01 00:00:03,0"]
    recording = wattribute.read(write(tmp_path / "y.csv", rows))
    assert sorted(problem.kind for problem in recording.problems) == ["left-out", "missing"]
    assert summarise(recording).energy_j == pytest.approx(200)
    with pytest.raises(FormatError, match="has no rows"):
        wattribute.read(write(tmp_path / "z.csv", []))
