"""Metrics and time series of a run of two GPUs, by hand."""

import csv
import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow.parquet
import pytest

from wattribute.model import Recording
from wattribute.sessions import metrics
from wattribute.sessions import result_series as series
from wattribute.sessions.summary import summarise
from wattribute.testing.recordings import RecordingBuilder

SECOND = 1_000_000_000
EPOCH_NS = 1_725_460_045 * SECOND + 250_000_000  # 2024-09-04T14:27:25.25Z


@pytest.fixture
def recording():
    """Four readings a second apart; the run is all of it. GPU 1 is idle in the second half."""
    about = {
        "name": "train: x # y",
        "command": ["train:", 'a"b\nc'],
        "run": {"start_ticks": 0, "end_ticks": 3 * SECOND, "exit_code": 7},
        "score": {"value": 2.5, "file": "m.json", "key": "t"},
    }
    made = RecordingBuilder(SECOND, epoch_ns=EPOCH_NS, length_ticks=3 * SECOND, **about).host("")
    made.device("GPU 0", power_limit_w="400.0", memory_bytes="1000", model="T [bold]")

    def gauge(device, name, values, unit="W", times=None):
        made.gauge(device, values, times, every=SECOND, name=f"nvml {name}", unit=unit)

    energy = [5_000, 105_000, 305_000, 605_000]
    made.counter("GPU 0", energy, every=SECOND, name="nvml energy", scale=Fraction(1, 1000))
    gauge("GPU 0", "power_instant", [100.0, 150.0, 250.0, 350.0])
    gauge("GPU 0", "power_average", [1.0, 1.0, 1.0, 1.0])
    gauge("GPU 0", "utilisation", [0, 50, 100, 100], "%")
    gauge("GPU 0", "temperature", [40, 60], "°C", [3 * SECOND // 2, 5 * SECOND // 2])
    gauge("GPU 1", "power", [40.0, 60.0, 20.0, 20.0])
    gauge("GPU 1", "utilisation", [10, 10, 0, 0], "%")
    made.counter("package 0", [90, 95, 4, 14], every=SECOND, name="rapl package 0", wraps_at=100)
    return made.recording()


@pytest.fixture
def found(recording):
    return metrics.metrics(recording, summarise(recording, intensity=500))


def test_energy_carbon_and_time_span(found):
    # GPU 0 600 J; GPU 1 (40+60)/2 + (60+20)/2 + 20 = 110 J; package 5 + 9 + 10 = 24 J
    assert found["energy_j"] == pytest.approx(734)
    assert found["energy_kwh"] == pytest.approx(734 / 3.6e6)
    assert [d["energy_j"] for d in found["devices"]] == pytest.approx([600, 110, 24])
    assert found["carbon"]["co2e_g"] == pytest.approx(734 / 3.6e6 * 500)
    assert found["carbon"]["start"] == found["start"] == "2024-09-04T14:27:25.250000Z"
    assert found["carbon"]["end"] == found["end"] == "2024-09-04T14:27:28.250000Z"
    assert (found["score"], found["exit_code"], found["elapsed_s"]) == (2.5, 7, 3.0)


def test_averages_are_over_busy_readings(found):
    first, second, package = found["devices"]
    # power is followed by the next reading of utilisation: 50, 100, 100 and again 100 for the last
    assert first["busy_average"]["power_w"] == pytest.approx((100 + 150 + 250 + 350) / 4)
    assert first["busy_average"]["utilisation_percent"] == pytest.approx((50 + 100 + 100) / 3)
    assert first["busy_average"]["temperature_c"] == 50
    assert (first["power_limit_w"], first["memory_total_bytes"]) == (400, 1000)
    assert second["busy_average"]["power_w"] == 40  # then 10 %, later nothing
    assert package["busy_average"] == {}
    assert found["busy_average"]["power_w"] == pytest.approx((100 + 150 + 250 + 350 + 40) / 5)  # pooled


def test_both_files_say_the_same_whatever_names_are_in_them(found, tmp_path):
    yaml = pytest.importorskip("yaml", reason="the docker extra is not installed")
    found["carbon"]["co2e_g"] = 1e-05
    found["busy_average"]["power_w"] = 1e22
    metrics.write(found, tmp_path)
    assert json.loads((tmp_path / "metrics.json").read_text(encoding="utf-8")) == found
    assert yaml.safe_load((tmp_path / "metrics.yml").read_text(encoding="utf-8")) == found


def test_series_has_a_row_per_reading_with_the_time_of_day(recording, tmp_path):
    series.write(recording, tmp_path)
    rows = list(csv.DictReader((tmp_path / "timeseries.csv").read_text().splitlines()))
    assert len(rows) == 12
    assert rows[1]["timestamp"] == "2024-09-04T14:27:26.250000Z"
    first = [row for row in rows if row["device"] == "GPU 0"]
    assert [float(row["energy_j"]) for row in first] == [0, 100, 300, 600]
    assert [float(row["power_w"]) for row in first] == [100, 150, 250, 350]
    assert [row["temperature_c"] for row in first] == ["", "", "40", "60"]  # the latest so far
    package = [row for row in rows if row["device"] == "package 0"]
    assert [row["energy_j"] for row in package] == ["0", "5", "14", "24"]  # over the wrap
    assert [row["power_w"] for row in package] == ["", "5", "9", "10"]  # by its slope
    kept = pyarrow.parquet.read_table(tmp_path / "timeseries.parquet")
    assert str(kept.schema.field("timestamp").type) == "timestamp[ns, tz=UTC]"
    assert kept["timestamp"].cast("int64").to_pylist()[:2] == [EPOCH_NS, EPOCH_NS + SECOND]
    assert kept["elapsed_s"].to_pylist()[:4] == [0, 1, 2, 3]


def test_a_long_run_is_thinned(recording, monkeypatch):
    monkeypatch.setattr(series, "MOST", 2)
    assert series.table(recording)["elapsed_s"].to_pylist() == [0, 2] * 3


def test_nothing_metered_makes_empty_files(tmp_path):
    empty = Recording(metadata={"run": {}})
    series.write(empty, tmp_path)
    assert (tmp_path / "timeseries.csv").read_text() == '"timestamp","elapsed_s","device"\n'
    found = metrics.metrics(empty, summarise(empty))
    metrics.write(found, tmp_path)
    assert found["energy_kwh"] is None
    assert found["busy_average"] == {}
    assert not any(isinstance(value, float) and math.isnan(value) for value in found.values())


def test_equally_named_devices_of_two_hosts_are_kept_apart(recording):
    """A second node whose GPU 0 reads twice as much."""
    devices = tuple(replace(device, host="n1", properties={"model": "other"}) for device in recording.devices)
    signals = tuple(replace(signal, host="n1", values=2 * signal.values) for signal in recording.signals[:4])
    both = replace(recording, devices=(*recording.devices, *devices), signals=(*recording.signals, *signals))
    found = metrics.metrics(both, summarise(both, carbon=False))
    first, second = (device for device in found["devices"] if device["device"] == "GPU 0")
    assert (first["model"], second["model"]) == ("T [bold]", "other")
    assert second["busy_average"]["power_w"] == 2 * first["busy_average"]["power_w"]
    rows = [row for row in series.table(both).to_pylist() if row["device"] == "GPU 0"]
    assert [row["power_w"] for row in rows if row["host"] == "n1"] == [200, 300, 500, 700]
    assert [row["power_w"] for row in rows if row["host"] == ""] == [100, 150, 250, 350]


def test_a_counter_that_is_read_more_often_than_it_moves_has_no_spikes_of_power():
    """A Cray node at 1.7 kW: an update every 100 ms, three in ten of them up to 90 ms late, read every millisecond."""
    random = np.random.default_rng(0)
    due = np.arange(0, 20_000, 100)
    shown = due + np.where(random.random(200) < 0.3, random.integers(0, 91, 200), 4)
    times = np.arange(250, 19_500)
    values = (due * 1700 // 1000)[np.searchsorted(shown, times, side="right") - 1]
    made = RecordingBuilder(1000, length_ticks=20_000).host("").device("node")
    made.counter("node", values, times, name="craypm energy", stale=True, latency_s=0.104)
    power = np.array(series.table(made.recording())["power_w"].to_pylist(), float)
    assert np.nanmax(power) < 1.05 * 1700
    assert np.nanmean(power) == pytest.approx(1700, rel=0.01)
