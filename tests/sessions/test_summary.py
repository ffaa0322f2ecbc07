"""The summary of a run, by hand: sums, bounds with their causes, shares, what was below resolution, repeats."""

import json
import statistics
from dataclasses import replace
from datetime import datetime
from fractions import Fraction

import pytest

import wattribute
from wattribute.comparison.repeats import Repeats, interval
from wattribute.errors import OptionError
from wattribute.model import Device
from wattribute.model.constants import COMMAND_CPU_TIME, COMMAND_SHARE, OTHERS_CPU_TIME
from wattribute.sessions import summary as sessions_summary
from wattribute.testing import recordings
from wattribute.testing.recordings import RecordingBuilder
from wattribute.testing.simulation import Simulation, Wave
from wattribute.views.console_run import bill_line

SECOND = 1_000_000_000


def summarise(*given, **named):
    return sessions_summary.summarise(*given, **named).as_dict()


def device(name, kind, **properties):
    return Device(name, kind, "h", {"source": "test", "uuid": name, **properties})


def signal(device, name, times_s, values, kind="counter", unit="J", **how):
    times = [round(t * SECOND) for t in times_s]
    return recordings.signal(kind, values, times, f"m {name}", unit, device=device, host="h", **how)


def recording(devices, signals, start_s=1.0, end_s=3.0, scope="machine", problems=(), **run):
    ticks = {"start_ticks": round(start_s * SECOND), "end_ticks": round(end_s * SECOND), "exit_code": 0}
    about = {"command": ["x"], "scope": scope, "run": {**ticks, **run}}
    made = RecordingBuilder(SECOND, length_ticks=10 * SECOND, epoch_ns=1_700_000_000 * SECOND, **about)
    return made.signals(*signals).recording(devices=tuple(devices), noticed=tuple(problems))


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
    devices = [Device(n, k, "h", {"x": "y"} if k == "psys" else {}) for n, k in names]
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
    summary = summarise(recording(devices, [counter, power]), carbon=False)
    (row,) = summary["devices"]
    assert row["energy_j"] == pytest.approx(200)
    assert row["signal"] == "m power"
    assert any("was reset" in note for note in summary["notes"])


def test_peak_is_the_largest_reading_or_the_steepest_stretch():
    devices = [device("GPU 0", "gpu")]
    counter = signal("GPU 0", "energy", [0, 1, 1.5, 2, 4], [0, 100, 350, 400, 600])
    (row,) = summarise(recording(devices, [counter]), carbon=False)["devices"]
    assert row["peak_w"] == pytest.approx(500)  # 250 J in half a second
    power = signal("GPU 0", "power", [0, 1, 2, 3.5], [999, 120, 430, 999], "gauge", "W")
    (row,) = summarise(recording(devices, [counter, power]), carbon=False)["devices"]
    assert row["peak_w"] == 430  # what was read outside the run does not count


def test_a_peak_that_a_late_update_may_have_made_is_not_told():
    # 100 W; the update of 1.5 s was read 0.1 s late, so [1.6, 2] says 125 W. It may be late by 0.2 s: of its 50 J, 0 to
    # 50 J were used in any stretch there, and 100 W are not sure
    times, values = [0, 0.5, 1, 1.6, 2, 2.5, 3, 3.5, 4], [0, 50, 100, 150, 200, 250, 300, 350, 400]
    (row,) = summarise(
        recording([device("GPU 0", "gpu")], [signal("GPU 0", "energy", times, values, latency_s=0.2)]), carbon=False
    )["devices"]
    assert row["peak_w"] is None
    assert row["mean_w"] == pytest.approx(100)


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
    signals += [
        signal("", COMMAND_CPU_TIME, [1, 3], [0, 1], unit="s"),
        signal("", OTHERS_CPU_TIME, [1, 3], [0, 3], unit="s"),
        signal("GPU 0", COMMAND_SHARE, [2, 3], [50, 50], "gauge", "%"),
    ]
    signals = [replace(s, name=s.name.removeprefix("m ")) for s in signals]
    summary = summarise(recording(devices, signals, scope="process"), carbon=False)
    rows = by_device(summary)
    assert rows["package 0"]["energy_j"] == pytest.approx(50)  # a quarter of the busy CPU time
    assert rows["package 0"]["low_j"] == pytest.approx(200 / 7)  # 1 of 1 + 2 x 3: others may burn twice as much …
    assert rows["dram 0"]["high_j"] == pytest.approx(200 * 2 / 5)  # … or the command does, 2 of 2 + 3
    assert rows["GPU 0"]["energy_j"] == pytest.approx(100)
    assert rows["GPU 1"]["energy_j"] == pytest.approx(200)
    assert any("all of it is counted" in note for note in rows["GPU 1"]["notes"])
    assert "package 0 25.0%" in summary["share_rule"]
    assert (summary["command_j"], summary["others_j"]) == (pytest.approx(400), pytest.approx(400))
    assert summary["static_j"] is None


def test_a_part_of_the_bill_too_small_to_see_is_not_printed_as_zero():
    signals = [
        signal("package 0", "energy", *STEADY),
        replace(signal("", "", [1, 3], [0, 0], unit="s"), name=COMMAND_CPU_TIME),
        replace(signal("", "", [1, 3], [0, 3], unit="s"), name=OTHERS_CPU_TIME),
    ]
    made = recording([device("package 0", "cpu")], signals)
    line = bill_line(sessions_summary.summarise(made, carbon=False))
    assert line.startswith("200 J on this machine: this command below resolution, 200 J other processes")


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
    half = 4.30265 * statistics.stdev(values) / 3**0.5  # t for two degrees of freedom
    assert told.ci95_low == pytest.approx(11 - half)
    assert told.ci95_high == pytest.approx(11 + half)
    assert interval([5.0]).ci95_low is None
    few = interval([1.0, 2.0])  # 1.5 ± 12.706 × 0.7071 / √2 = 1.5 ± 6.35; no duration and no energy is below 0
    assert (few.ci95_low, few.ci95_high) == (0, pytest.approx(1.5 + 6.353, rel=1e-3))
    assert interval([-1.0, 2.0]).ci95_low < 0
    # t for 99 degrees of freedom; the normal 1.96 would be too narrow
    assert interval([1.0, 3.0] * 50).ci95_high == pytest.approx(2 + 1.9842 * statistics.stdev([1.0, 3.0] * 50) / 10)
    assert interval([1.0, 3.0] * 16).ci95_high == pytest.approx(
        2 + 2.039513 * statistics.stdev([1.0, 3.0] * 16) / 32**0.5
    )


def test_repeats_keep_every_run():
    made = recording([device("GPU 0", "gpu")], [signal("GPU 0", "energy", *STEADY)])
    told = Repeats([sessions_summary.summarise(made, intensity=1) for _ in "ab"]).as_dict()
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


def test_the_range_of_an_estimate_that_is_split_is_attribution_s():
    """The command's part by the range of its share, and the model's ± 50 %: the same from run and from attribute."""
    machine = Simulation(length_s=6, scope="process", run={"start_ticks": 0, "end_ticks": 6 * 10**9})
    cpu = machine.device("package 0", floor_w=20).counter(0.02, estimated=True, signal={"gain_error": 0.5})
    machine.thread(cpu, [("work", 0.0, 6.0, 30.0)])
    machine.tenant(cpu, "neighbour", Wave(30.0), cores=1.0)
    made = machine.run().recording
    signals = [
        replace(one, times=one.times[::25], values=one.values[::25]) if one.name == OTHERS_CPU_TIME else one
        for one in made.signals
    ]  # looks come four times a second
    made = replace(made, signals=tuple(signals))
    rows = {row["process"]: row for row in wattribute.attribute(made, by="process", static="mine").rows.to_dicts()}
    summary = sessions_summary.summarise(made, carbon=False)
    assert summary.energy_j == pytest.approx(rows["process"]["self_j"])
    # a third of 80 W x 6 s to two thirds, with the tick of the clocks, a half of the one to one and a half of the other
    ends = summary.low_j, summary.high_j
    assert ends == pytest.approx((rows["process"]["self_low_j"], rows["process"]["self_high_j"]), rel=1e-6)
    assert ends == pytest.approx((0.5 * 480 / 3, 1.5 * 480 * 2 / 3), rel=0.15)


def test_devices_of_the_same_name_on_two_hosts_keep_their_own_readings():
    """GPU 0 of host a: 100 W, 20 °C, in use; of host b: 300 W, 60 °C, in use in the third second only."""
    signals = []
    for host, watts, celsius, use in (("a", 100, 20, [50] * 5), ("b", 300, 60, [0, 0, 0, 50, 0])):
        for name, kind, unit, values in (
            ("energy", "counter", "J", [watts * t for t in range(5)]),
            ("power", "gauge", "W", [watts, watts, watts + 5, watts, watts]),
            ("temperature", "gauge", "°C", [celsius] * 5),
            ("utilisation", "gauge", "%", use),
        ):
            signals.append(replace(signal("GPU 0", name, range(5), values, kind, unit), host=host))
    devices = [Device("GPU 0", "gpu", host, {"uuid": host}) for host in "ab"]
    summary = summarise(recording(devices, signals), carbon=False)
    first, second = summary["devices"]
    assert [first["peak_w"], second["peak_w"]] == [105, 305]
    assert [first["temperature_c"], second["temperature_c"]] == [20, 60]
    assert first["busy_mean_w"] == pytest.approx((100 + 105 + 100) / 3)
    assert second["busy_mean_w"] == 305  # use is of the second before its reading
