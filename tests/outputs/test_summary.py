"""The summary of a run, by hand: sums, bounds with their causes, shares, what was below resolution, repeats."""

import json
import statistics
from datetime import datetime
from fractions import Fraction

import numpy as np
import pytest

from wattribute.errors import OptionError
from wattribute.model import Clock, Device, Recording, Signal
from wattribute.outputs.summary import interval, repeats, summarise

SECOND = 1_000_000_000


def device(name, kind, **properties):
    return Device(name, kind, "h", {"source": "test", "uuid": name, **properties})


def signal(device, name, times_s, values, kind="counter", unit="J", **how):
    times = np.array([round(t * SECOND) for t in times_s], np.int64)
    return Signal(f"m {name}", kind, unit, times, np.array(values), host="h", device=device, **how)


def recording(devices, signals, start_s=1.0, end_s=3.0, scope="machine", problems=(), **run):
    ticks = {"start_ticks": round(start_s * SECOND), "end_ticks": round(end_s * SECOND), "exit_code": 0}
    return Recording(
        clock=Clock(SECOND, length_ticks=10 * SECOND, epoch_ns=1_700_000_000 * SECOND),
        devices=tuple(devices),
        signals=tuple(signals),
        noticed=tuple(problems),
        metadata={"command": ["x"], "scope": scope, "run": {**ticks, **run}},
    )


def by_device(summary):
    return {row["device"]: row for row in summary["devices"]}


STEADY = [0, 1, 2, 3, 4], [0, 100, 200, 300, 400]  # 100 W


def test_energy_between_start_and_end_with_bounds_by_hand():
    counter = signal("GPU 0", "energy", [0, 1.5, 2.5, 4], [0, 150, 250, 400], latency_s=0.25)
    summary = summarise(recording([device("GPU 0", "gpu")], [counter]), carbon=False)
    (row,) = summary["devices"]
    assert row["energy_j"] == pytest.approx(200)
    # surely inside [1, 3]: reported in (1.5, 2.5], used in (1.25, 2.5] → 100 J. Possibly: all three intervals → 400 J
    assert (row["low_j"], row["high_j"]) == (100, 400)
    assert row["causes"] == ["update period"]
    assert row["mean_w"] == pytest.approx(100)
    assert summary["energy_j"] == pytest.approx(200)


def test_the_latency_admits_what_was_reported_late():
    counter = signal("GPU 0", "energy", [0, 1, 3, 3.1, 5], [0, 100, 300, 310, 500], latency_s=0.2)
    (row,) = summarise(recording([device("GPU 0", "gpu")], [counter]), carbon=False)["devices"]
    # (1, 3] may hold what was used from 0.8 on: not sure, possible. (3, 3.1] reaches back to 2.8: possible.
    # (3.1, 5] reaches back to 2.9: possible
    assert (row["low_j"], row["high_j"]) == (0, 400)


def test_what_readings_do_not_cover_is_not_counted_and_said():
    counter = signal("GPU 0", "energy", [0, 1, 2], [0, 100, 200])
    (row,) = summarise(recording([device("GPU 0", "gpu")], [counter]), carbon=False)["devices"]
    assert (row["energy_j"], row["coverage"], row["mean_w"]) == (100, 0.5, 100)
    assert row["notes"] == ["GPU 0: readings cover 50% of the run; the rest is not counted"]


def test_gain_widens_both_sides_and_is_named():
    counter = signal("GPU 0", "energy", *STEADY, gain_error=0.05)
    (row,) = summarise(recording([device("GPU 0", "gpu")], [counter]), carbon=False)["devices"]
    assert row["low_j"] == pytest.approx(200 * 0.95)
    assert row["high_j"] == pytest.approx(200 * 1.05)
    assert row["causes"] == ["update period", "gain ±5%"]


def test_sums_leave_out_what_stands_apart_and_what_mirrors():
    names = [("package 0", "cpu"), ("dram 0", "dram"), ("psys", "psys")]
    devices = [Device(n, k, "h", {"apart": "it sees the packages too"} if k == "psys" else {}) for n, k in names]
    noisy = [0, 90, 211, 300, 405]
    devices.append(Device("package 0 die 1", "cpu", "h", {}))
    signals = [
        signal("package 0", "energy", STEADY[0], noisy),
        signal("dram 0", "energy", [0, 1, 2, 3, 4], [0, 10, 20, 30, 40]),
        signal("psys", "energy", [0, 1, 2, 3, 4], [0, 150, 300, 450, 600]),
        signal("package 0 die 1", "energy", STEADY[0], noisy),
    ]
    summary = summarise(recording(devices, signals), carbon=False)
    assert summary["energy_j"] == pytest.approx(210 + 20)
    assert by_device(summary)["package 0 die 1"]["apart"] == "mirrors package 0"
    assert by_device(summary)["psys"]["energy_j"] == pytest.approx(300)


def test_cards_at_the_same_steady_power_are_not_mirrors():
    signals = [signal(f"GPU {i}", "energy", *STEADY) for i in range(4)]
    summary = summarise(recording([device(f"GPU {i}", "gpu") for i in range(4)], signals), carbon=False)
    assert summary["energy_j"] == pytest.approx(800)
    assert not [note for note in summary["notes"] if "mirror" in note]


def test_an_estimate_is_never_added_to_a_measurement():
    devices = [device("GPU 0", "gpu"), device("CPU", "cpu")]
    signals = [
        signal("GPU 0", "energy", *STEADY),
        signal("CPU", "energy", *STEADY, estimated=True, gain_error=0.5),
    ]
    summary = summarise(recording(devices, signals), carbon=False)
    assert (summary["energy_j"], summary["estimated"]) == (pytest.approx(200), False)
    assert by_device(summary)["CPU"]["apart"] == "an estimate beside measurements"
    alone = summarise(recording(devices[1:], signals[1:]), carbon=False)
    assert (alone["energy_j"], alone["estimated"]) == (pytest.approx(200), True)
    assert by_device(alone)["CPU"]["causes"] == ["model ±50%"]
    assert (alone["low_j"], alone["high_j"]) == (pytest.approx(100), pytest.approx(300))


def test_below_resolution_is_said_and_never_a_bare_zero():
    counter = signal("GPU 0", "energy", [0, 5, 10], [7, 7, 8])
    summary = summarise(recording([device("GPU 0", "gpu")], [counter], 1.0, 1.1), carbon=False)
    assert summary["energy_j"] is None or summary["energy_j"] > 0
    counter = signal("GPU 0", "energy", [0, 1, 2], [7, 7, 7])
    summary = summarise(recording([device("GPU 0", "gpu")], [counter], 1.0, 1.1), carbon=False)
    assert summary["energy_j"] is None
    assert "below resolution" in summary["devices"][0]["notes"][-1]


def test_power_serves_where_the_counter_was_reset():
    devices = [device("GPU 0", "gpu")]
    counter = signal("GPU 0", "energy", [0, 1, 2, 3, 4], [9000, 9100, 3, 103, 203])
    power = signal("GPU 0", "power", [0, 1, 2, 3, 4], [100, 100, 100, 100, 100], "gauge", "W")
    (row,) = summarise(recording(devices, [counter, power]), carbon=False)["devices"]
    assert row["energy_j"] == pytest.approx(200)
    assert row["signal"] == "m power"
    assert any("was reset" in note for note in row["notes"])


def test_peak_is_the_largest_reading_or_the_steepest_stretch():
    devices = [device("GPU 0", "gpu")]
    counter = signal("GPU 0", "energy", [0, 1, 1.5, 2, 4], [0, 100, 350, 400, 600])
    (row,) = summarise(recording(devices, [counter]), carbon=False)["devices"]
    assert row["peak_w"] == pytest.approx(500)  # 250 J in half a second
    power = signal("GPU 0", "power", [0, 1, 2, 3.5], [999, 120, 430, 999], "gauge", "W")
    (row,) = summarise(recording(devices, [counter, power]), carbon=False)["devices"]
    assert row["peak_w"] == 430  # what was read outside the run does not count


def test_power_is_integrated_with_the_real_times():
    power = signal("GPU 0", "power", [0, 1, 1.2, 3, 4], [50, 100, 300, 300, 50], "gauge", "W")
    (row,) = summarise(recording([device("GPU 0", "gpu")], [power]), carbon=False)["devices"]
    assert row["energy_j"] == pytest.approx(0.2 * 200 + 1.8 * 300)  # trapezia between 1 and 3 s
    assert (row["low_j"], row["high_j"]) == (None, None)


def test_a_recorded_run_of_an_earlier_tool_with_its_real_times(shared):
    run = json.loads((shared / "oracles/oracles.json").read_text())["iris"]["run_0cd3d17"]
    at = [datetime.fromisoformat(text).timestamp() for text in run["timestamps"]]
    times = [1 + t - at[0] for t in at]
    power = signal("GPU 0", "power", times, run["powers_W"], "gauge", "W")
    (row,) = summarise(recording([device("GPU 0", "gpu")], [power], 1.0, times[-1]), carbon=False)["devices"]
    assert row["energy_j"] / 3.6e6 == pytest.approx(9.487472e-05, rel=1e-7)  # not the 5.775417e-05 of a nominal 2 s


def test_means_over_readings_in_use_per_gpu_and_pooled():
    devices = [device("GPU 0", "gpu"), device("GPU 1", "gpu")]
    at = [1, 1.5, 2, 2.5]
    signals = [
        signal("GPU 0", "power", at, [100, 200, 50, 150], "gauge", "W"),
        signal("GPU 0", "utilisation", [t + 1e-4 for t in at], [90, 100, 0, 80], "gauge", "%"),
        signal("GPU 1", "power", at, [60, 70, 250, 50], "gauge", "W"),
        signal("GPU 1", "utilisation", [t + 1e-4 for t in at], [0, 0, 100, 0], "gauge", "%"),
    ]
    summary = summarise(recording(devices, signals), carbon=False)
    assert by_device(summary)["GPU 0"]["busy_mean_w"] == 150  # (100 + 200 + 150) / 3
    assert by_device(summary)["GPU 1"]["busy_mean_w"] == 250
    assert summary["busy_mean_w"] == 175  # (100 + 200 + 150 + 250) / 4
    assert by_device(summary)["GPU 0"]["utilisation_percent"] == pytest.approx(67.5)


def test_shares_of_the_process_and_their_rule():
    devices = [device("package 0", "cpu"), device("dram 0", "dram"), device("GPU 0", "gpu"), device("GPU 1", "gpu")]
    signals = [signal(d.name, "energy", *STEADY) for d in devices]
    run = {"cpu_s": 1.0, "busy_s": 4.0, "shares": {"GPU 0": 0.5}}
    summary = summarise(recording(devices, signals, scope="process", **run), carbon=False)
    rows = by_device(summary)
    assert rows["package 0"]["energy_j"] == pytest.approx(50)  # a quarter of the busy CPU time
    assert rows["package 0"]["low_j"] == pytest.approx(50 * 0.96)
    assert rows["dram 0"]["high_j"] == pytest.approx(50 * 1.16)
    assert rows["GPU 0"]["energy_j"] == pytest.approx(100)
    assert rows["GPU 1"]["energy_j"] == pytest.approx(200)
    assert any("all of it is counted" in note for note in rows["GPU 1"]["notes"])
    assert "25.0%" in summary["share_rule"]


def test_carbon_uses_the_zone_and_a_wrong_one_is_an_error():
    made = recording([device("GPU 0", "gpu")], [signal("GPU 0", "energy", *STEADY)])
    summary = summarise(made, intensity=360)
    assert summary["co2e_g"] == pytest.approx(200 / 3.6e6 * 360)
    assert summarise(made)["carbon"]["assumed"]
    with pytest.raises(OptionError):
        summarise(made, zone="Atlantis")


def test_a_run_without_any_device_is_told_not_broken():
    summary = summarise(recording([], []))
    assert summary["energy_j"] is None
    json.dumps(summary)


def test_raw_integers_stay_exact_until_the_first_is_subtracted():
    base = 2**62
    counter = signal("GPU 0", "energy", STEADY[0], [base + v for v in STEADY[1]], scale=Fraction(1, 1))
    (row,) = summarise(recording([device("GPU 0", "gpu")], [counter]), carbon=False)["devices"]
    assert row["energy_j"] == 200.0


def test_the_confidence_interval_by_hand():
    values = [10.0, 12.0, 11.0]
    told = interval(values)
    half = 4.303 * statistics.stdev(values) / 3**0.5  # t for two degrees of freedom
    assert told["ci95_low"] == pytest.approx(11 - half)
    assert told["ci95_high"] == pytest.approx(11 + half)
    assert interval([5.0])["ci95_low"] is None
    assert interval([1.0, 3.0] * 50)["ci95_high"] == pytest.approx(2 + 1.96 * statistics.stdev([1.0, 3.0] * 50) / 10)


def test_repeats_keep_every_run():
    made = [
        summarise(recording([device("GPU 0", "gpu")], [signal("GPU 0", "energy", *STEADY)]), intensity=1) for _ in "ab"
    ]
    told = repeats(made)
    assert told["repeats"] == 2
    assert told["statistics"]["energy_j"]["mean"] == pytest.approx(200)
    assert len(told["runs"]) == 2


def test_the_peak_is_of_what_was_seen_as_the_mean_is():
    counter = signal("GPU 0", "energy", [1, 1.02, 1.04], [0, 2, 4])
    # 100 W in 0.04 s of a run of 0.05 s: 4 J over all of it would be a peak of 80 W, below the mean
    (row,) = summarise(recording([device("GPU 0", "gpu")], [counter], end_s=1.05), carbon=False)["devices"]
    assert (row["mean_w"], row["peak_w"]) == (pytest.approx(100), pytest.approx(100))


def test_grams_of_estimated_joules_are_estimated():
    counter = signal("CPU", "energy", *STEADY, estimated=True, gain_error=0.5)
    assert summarise(recording([device("CPU", "cpu")], [counter]))["carbon"]["estimated"] is True
