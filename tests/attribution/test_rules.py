"""One hand-computed case per rule: shares, of, windows, slices, loads, statistics, who is asked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from wattribute.engines import attribute, user_curves
from wattribute.engines.middle import metered_devices, used_range
from wattribute.errors import NoDataError, OptionError
from wattribute.model import Clock, Device, Locations, Question
from wattribute.testing.recordings import HOST, RecordingBuilder, counter, gauge
from wattribute.testing.simulation import Simulation
from wattribute.views.charts.totals import total

KERNELS = (("a", "hip", "kernel"), ("b", "hip", "kernel"))


def machine(columns, *signals, devices=("GPU 0",), owners=None, kind="gpu"):
    """Locations that each hold the given spans; stream i belongs to process owners[i] (else to process 0)."""
    made = RecordingBuilder().frames(*KERNELS, ("copy", "hip", "copy"), ("c", "mpi", "wait"))
    owners = owners or [0] * len(columns)
    ranks = [f"rank {owner}" for owner in range(max(owners) + 1)]
    for rank in ranks:
        made.process(rank)
    for rank in ranks:
        made.process(rank).context("0")  # also where there are only threads: their process owns the GPU
    for i, (rows, owner) in enumerate(zip(columns, owners, strict=True)):
        made.process(ranks[owner])
        made.stream(rows, f"l{i}", gpu="0") if kind == "gpu" else made.thread(rows, f"l{i}")
    for device in devices:
        made.device(device)
    return made.signals(*signals).recording()


def own(found, key="frame"):
    return dict(zip(found.rows[key], found.rows["self_j"], strict=True))


def test_nested_regions_split_60_to_40():
    # a [0, 10) holds b [3, 7): of 100 J a keeps 6 ticks of 10
    recording = machine(["a 0..10, b 3..7"], counter([0, 100], every=10))
    for method in ("linear", "window"):
        assert own(attribute(recording, method=method)) == pytest.approx({"a": 60, "b": 40})


def test_overlapping_streams_by_busy_time():
    # window: stream 0 is busy 5 ticks, stream 1 all 10: 100 J go 1/3 to 2/3
    recording = machine(["a 0..5", "b 0..10"], counter([0, 100], every=10))
    assert own(attribute(recording, method="window")) == pytest.approx({"a": 100 / 3, "b": 200 / 3})
    # linear: 50 J of the first half are split evenly, the second half is b's
    assert own(attribute(recording)) == {"a": 25, "b": 75}
    assert own(attribute(recording, share="full")) == {"a": 50, "b": 100}


def test_process_share_does_not_let_many_streams_outvote_one():
    # rank 0 has three streams in a, rank 1 one in b, all busy: 100 J go 50 to 50, not 75 to 25
    recording = machine(["a 0..10"] * 3 + ["b 0..10"], counter([0, 100], every=10), owners=[0, 0, 0, 1])
    assert own(attribute(recording, share="process")) == pytest.approx({"a": 50, "b": 50})
    assert own(attribute(recording, share="process", method="window")) == pytest.approx({"a": 50, "b": 50})
    assert own(attribute(recording)) == {"a": 75, "b": 25}


def test_load_share_follows_each_users_load():
    loads = [
        gauge(values, every=5, name=f"load {i}", unit="%", host="", device="", location=i)
        for i, values in enumerate([(30, 0), (10, 0)])
    ]
    recording = machine(["a 0..10", "b 0..10"], counter([0, 100], every=10), *loads)
    # first half 30 : 10, second half nobody reports a load although both are active: evenly
    found = attribute(recording, metric="energy", share="load", load="load")
    assert own(found) == pytest.approx({"a": 37.5 + 25, "b": 12.5 + 25})
    with pytest.raises(OptionError, match="unknown load signal"):
        attribute(recording, metric="energy", share="load", load="nothing")
    with pytest.raises(OptionError, match="no single load signal for 'l1'"):
        attribute(recording, metric="energy", share="load", load="load 0")


def test_who_counts():
    recording = machine(["a 0..4, copy 4..10"], counter([0, 100], every=10))
    assert own(attribute(recording)) == {"a": 40}
    assert own(attribute(recording, of="copies")) == {"copy": 60}
    assert own(attribute(recording, of="kernels,copies")) == {"copy": 60, "a": 40}
    both = attribute(recording, of=["kernels", "copies"])
    assert both.devices.select("of", "attributed_j", "idle_j").rows() == [("kernels", 40, 60), ("copies", 60, 40)]
    with pytest.raises(NoDataError, match="no location uses GPU 0"):
        attribute(recording, of="host")


def test_a_gpu_without_streams_goes_to_the_host():
    recording = machine(["a 0..10"], counter([0, 100], every=10), kind="cpu")
    assert attribute(recording).devices["of"].to_list() == ["host"]


def test_zero_length_spans_and_ties_get_nothing_but_a_call():
    recording = machine(["a 0..5, b 5..5, a 5..10"], counter([0, 100], every=10))
    rows = {row["frame"]: row for row in attribute(recording).rows.to_dicts()}
    assert (rows["a"]["self_j"], rows["a"]["calls"], rows["a"]["self_low_j"]) == (100, 2, 100)
    assert (rows["b"]["self_j"], rows["b"]["calls"], rows["b"]["self_high_j"], rows["b"]["power_w"]) == (0, 1, 0, None)


def test_bounds_by_hand():
    # readings at 0, 10, 20 with 10 J and 30 J; a runs [5, 20): it may have got none or all of the first 10 J
    recording = machine(["a 5..20"], counter([0, 10, 40], every=10))
    (row,) = attribute(recording).rows.to_dicts()
    assert (row["self_low_j"], row["self_j"], row["self_high_j"]) == (30, 35, 40)
    # a sensor that is up to 6 s late: the 30 J reported in (10, 20] may have been used from 4 on, before a began
    late = replace(recording, signals=(counter([0, 10, 40], every=10, latency_s=6.0),))
    (row,) = attribute(late).rows.to_dicts()
    assert (row["self_low_j"], row["self_j"], row["self_high_j"]) == (0, 35, 40)
    (row,) = attribute(recording, bounds=False).rows.to_dicts()
    assert row["self_low_j"] is None


@pytest.mark.parametrize("seed", range(12))
def test_bounds_hold_at_the_end_of_a_part_of_the_time(seed):
    """1 kW up to the end of the part, by a counter that shows it 0.09 s later or more: readings after the end tell."""
    draw = np.random.default_rng(seed)
    begin, end = 0.2 + draw.uniform(0, 0.1), 1.0 + draw.uniform(0, 0.3)
    burst = draw.uniform(0.02, 0.15)
    machine = Simulation(length_s=2.5, seed=seed)
    gpu = machine.device("GPU 0").counter(period_s=0.1, lag_s=0.09, phase_s=draw.uniform(0, 0.1), quantum=0.001)
    machine.stream(gpu, [("low", 0.1, end - burst, 50.0), ("burst", end - burst, end, 1000.0)])
    run = machine.run()
    recording = replace(run.recording, signals=tuple(replace(one, latency_s=0.19) for one in run.recording.signals))
    attribution = attribute(recording, by="frame", begin=begin, end=end)
    rows = {row["frame"]: row for row in attribution.rows.to_dicts()}
    truth = {"burst": 1000.0 * burst, "low": 50.0 * (end - burst - begin)}
    for frame, joules in truth.items():
        assert rows[frame]["self_low_j"] <= joules <= rows[frame]["self_high_j"], frame
    (device,) = attribution.devices.to_dicts()
    assert device["measured_low_j"] <= sum(truth.values()) <= device["measured_high_j"]
    question = Question(begin=begin, end=end)
    window = question.window(recording)
    (metered,) = metered_devices(recording)
    used = used_range(recording, metered, metered.energy(recording).between(*window), *window, None)
    assert used is not None
    assert (used.low_j, used.high_j) == pytest.approx((device["measured_low_j"], device["measured_high_j"]))


def test_by_reading_and_by_bin():
    recording = machine(["a 2..18, b 12..14"], counter([0, 10, 40], every=10))
    by_reading = attribute(recording, by="reading,frame").rows
    assert by_reading.select("reading", "begin_ns", "end_ns", "frame", "self_j", "total_j", "calls").rows() == [
        (0, 0, 10**10, "a", 8.0, 8.0, 1),
        (1, 10**10, 2 * 10**10, "a", 18.0, 24.0, 0),
        (1, 10**10, 2 * 10**10, "b", 6.0, 6.0, 1),
    ]
    by_bin = attribute(recording, by="bin=5s").rows
    assert by_bin["self_j"].to_list() == [3.0, 5.0, 15.0, 9.0]
    assert by_bin["begin_ns"].to_list() == [0, 5 * 10**9, 10**10, 15 * 10**9]
    by_path = attribute(recording, by="bin=10s,path").rows
    assert by_path.select("bin", "path", "self_j").rows() == [(0, ["a"], 8.0), (1, ["a"], 18.0), (1, ["a", "b"], 6.0)]


def test_a_location_with_several_devices_counts_its_calls_once():
    signals = [counter([0, 100], every=10), counter([0, 40], every=10, name="other", device="package 0")]
    recording = machine(["a 0..10"], *signals, devices=("GPU 0", "package 0"), kind="cpu")
    (row,) = attribute(recording, by="frame").rows.to_dicts()
    assert (row["self_j"], row["calls"], row["self_ns"]) == (140, 1, 10 * 10**9)


def test_a_node_counts_as_its_parts_and_the_rest_of_it():
    signals = [
        counter([0, 100], every=10, name="node", device="node"),
        counter([0, 40], every=10, name="pkg", device="package 0"),
    ]
    recording = machine(["a 0..10"], *signals, devices=("node", "package 0"), kind="cpu")
    found = attribute(recording, by="frame")
    assert found.rows["self_j"].to_list() == [100]
    books = {row["device"]: (row["measured_j"], row["counted"]) for row in found.devices.to_dicts()}
    assert books == {"node": (100, False), "package 0": (40, True), "rest of node": (60, True)}
    assert attribute(recording, by="device").rows.select("device", "self_j").rows() == [
        ("rest of node", 60),
        ("package 0", 40),
    ]


def test_meters_of_one_thing_are_not_added():
    def solved(*named):
        signals = [counter(np.arange(11) * rise, name=name, device=name) for name, _, rise in named]
        recording = machine(["a 0..10"], *signals, devices=(), kind="cpu")
        recording = replace(recording, devices=tuple(Device(name, kind, HOST) for name, kind, _ in named))
        found = attribute(recording, by="frame")
        sums = found.rows["self_j"].to_list()
        assert total(found, "attributed") == sum(sums)  # pictures add up the same devices
        return sums

    assert solved(("package 0", "cpu", 4), ("package 1", "cpu", 6)) == [100]
    assert solved(("package 0", "cpu", 4), ("package 1", "cpu", 4)) == [40]  # equal increments: a mirror
    assert solved(("blade", "psys", 4), ("package 0", "cpu", 4)) == [40]  # a mirror of what is left out stays
    assert solved(("GPU 0", "gpu", 4), ("accel 0", "gpu", 5)) == [40]  # a die and the board it sits on
    assert solved(("package 0", "cpu", 4), ("core 0", "core", 1)) == [40]  # cores are a part of their package


def test_one_source_per_device():
    power = gauge([7.0, 7.0], every=10)
    dead = counter([5, 5], every=10, name="dead")
    recording = machine(["a 0..10"], power, counter([0, 100], every=10))
    assert attribute(recording).devices["signal"].to_list() == ["energy"]
    assert attribute(replace(recording, signals=(dead, power))).devices["measured_j"].to_list() == [70]
    model = counter([0, 90], every=10, name="model", estimated=True)
    assert attribute(replace(recording, signals=(model, power))).devices["signal"].to_list() == ["power"]
    with pytest.raises(OptionError, match="--by signal"):
        attribute(recording, metric="power|energy")
    both = attribute(recording, metric="power|energy", by="signal")
    assert both.rows.select("signal", "self_j").rows() == [("energy", 100), ("power", 70)]


def test_a_counter_that_never_moved_does_not_count():
    still = attribute(machine(["a 0..10"], counter([5, 5], every=10)))
    assert still.devices.select("counted", "why").rows() == [(False, "did not move")]
    board = (counter([0, 100], every=10), counter([5, 5], every=10, device="board"))
    answer = attribute(machine(["a 0..10"], *board, devices=("GPU 0", "board")))
    assert answer.devices.filter("counted")["device"].to_list() == ["GPU 0"]


def test_other_metrics_have_values_and_a_unit():
    memory = counter([0, 1000], every=10, name="bytes moved", unit="B")
    found = attribute(machine(["a 0..5"], memory), metric="bytes")
    (row,) = found.rows.to_dicts()
    assert (row["self_value"], row["unit"], row["self_rate"]) == (500, "B", 100)
    assert found.devices["idle_value"].to_list() == [500]


def test_a_single_reading_is_listed_but_tells_nothing():
    recording = machine(["a 0..5"], counter([3], [2]))
    with pytest.raises(NoDataError, match="more than one reading"):
        attribute(recording)
    two = counter([0, 10], every=10, device="GPU 1", name="other")
    both = replace(
        recording, signals=(*recording.signals, two), devices=(*recording.devices, Device("GPU 1", "gpu", HOST))
    )
    found = attribute(both, maps=["other -> l0"])
    assert found.devices.select("measured_j", "idle_j").rows() == [(0, 0), (10, 5)]
    assert "one reading only" in " ".join(problem.message for problem in found.problems)


def test_readings_and_spans_that_share_no_time():
    recording = machine(["a 100..200"], counter([0, 100], every=10))
    with pytest.raises(NoDataError, match=r"readings \(0 … 10 s\) and spans share no time"):
        attribute(recording)


def test_options_are_checked_before_anything_is_read():
    for options, words in (
        ({"by": "frme"}, "did you mean 'frame'"),
        ({"by": "funtion"}, "did you mean 'frame'"),
        ({"by": "module"}, "did you mean 'file'"),
        ({"by": "Rank"}, "did you mean 'process'"),
        ({"by": "interval"}, "did you mean 'bin=100ms'"),
        ({"share": "independent"}, "did you mean 'full'"),
        ({"integrate": "left"}, "did you mean 'step'"),
        ({"by": ()}, "key to group by"),
        ({"by": "frame,frame"}, "twice"),
        ({"by": "reading,bin=1s"}, "not both"),
        ({"by": "bin=0s"}, "bin=100ms"),
        ({"method": "window", "share": "load", "load": "x"}, "busy time"),
        ({"threads": 0}, "at least 1"),
        ({"sahre": "even"}, "did you mean 'share'"),
        ({"statistics": True, "by": "bin=1s"}, "per span"),
    ):
        with pytest.raises(OptionError, match=words):
            attribute("/nonexistent", **options)


def test_bins_too_narrow_to_hold_are_refused():
    # a tick is a second here (see machine), so 10 s of 1 ns are 10^10 pieces
    recording = machine(["a 0..10"], counter([0, 100], every=10))
    with pytest.raises(OptionError, match="wider bin="):
        attribute(recording, by="bin=1ns")


def test_names_that_repeat_are_told_apart():
    recording = machine(["a 0..10", "b 0..10"], counter([0, 100], every=10), owners=[0, 1])
    same = Locations.of([(7, "stream", "gpu", 2), (8, "stream", "gpu", 3)])
    found = attribute(replace(recording, locations=same), by="location")
    assert sorted(found.rows["location"]) == ["rank 0/stream", "rank 1/stream"]
    twins = replace(recording, locations=Locations.of([(7, "stream", "gpu", 2), (8, "stream", "gpu", 2)]))
    assert sorted(attribute(twins, by="location").rows["location"]) == ["rank 0/stream #7", "rank 0/stream #8"]


def test_span_rows_and_user_curves_tell_the_same(tmp_path):
    recording = machine(["a 0..5, b 2..3", "b 0..10"], counter([0, 100], every=10))
    each = attribute(recording, spans=True).rows
    assert each.select("location", "frame", "depth", "start_ns", "self_j", "total_j").rows() == [
        ("l0", "a", 0, 0, 20.0, 25.0),
        ("l0", "b", 1, 2 * 10**9, 5.0, 5.0),
        ("l1", "b", 0, 0, 75.0, 75.0),
    ]
    found = attribute(recording, spans=tmp_path / "spans.parquet")
    assert pl.read_parquet(tmp_path / "spans.parquet").equals(each)
    assert own(found) == {"b": 80, "a": 20}
    (device,) = user_curves(recording)
    assert device.energy.measured == 100
    assert device.split.curves[1].values[-1] == 75
    assert device.split.idle == 0


def test_time_in_seconds_or_on_the_wall():
    recording = machine(["a 0..10"], counter([0, 100], every=10))
    recording = replace(recording, clock=Clock(1, epoch_ns=1_700_000_000 * 10**9))
    assert own(attribute(recording, begin=2, end="4.0")) == {"a": 20}
    (row,) = attribute(recording, begin=2, end=4).rows.to_dicts()
    assert (row["self_ns"], row["total_ns"], row["covered_ns"], row["calls"]) == (2 * 10**9, 2 * 10**9, 2 * 10**9, 1)
    outside = attribute(recording, begin=50, end=60)
    assert (len(outside.rows), outside.devices["measured_j"][0], outside.problems[-1].kind) == (0, 0, "outside")
    assert own(attribute(recording, begin="2023-11-14T22:13:22Z", end="2023-11-14T23:13:24+01:00")) == {"a": 20}


def test_locations_of_one_name_that_meter_themselves_are_told_apart():
    # two threads "worker" of one process, each with a counter of its own: 10 and 20 units while it worked
    made = RecordingBuilder().process("python").thread("work 0..10", "worker", 7).thread("work 0..10", "worker", 8)
    for at, used in ((0, 10), (1, 20)):
        made.counter("", [0, used], every=10, name="cpu time", unit="s", location=at)
    recording = made.recording()
    found = attribute(recording, metric="^cpu time$")
    assert dict(zip(found.rows["device"], found.rows["self_value"], strict=True)) == {
        "python worker #7": 10.0,
        "python worker #8": 20.0,
    }
