"""Which devices make a total: the rules by hand, and the same joules from every verb by hypothesis."""

import json
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import wattribute
from wattribute.carbon import with_emissions
from wattribute.engines.middle import metered_devices
from wattribute.errors import NoDataError
from wattribute.model import Device, Signal
from wattribute.outputs.timeseries.series import ENERGY, series
from wattribute.sessions.summary import summarise
from wattribute.testing.recordings import RecordingBuilder
from wattribute.views.charts.totals import total
from wattribute.views.page.session import Session

S = 10**9


def made(devices, length_s=10, streams=()):
    """A thread that runs ``main`` all the time, with ``work`` inside, on host n; devices are (Device, Signal)."""
    builder = RecordingBuilder(S, length_ticks=length_s * S, epoch_ns=1_700_000_000 * S).host("n")
    builder.process("p").thread(f"main 0s..{length_s - 1}s, work 2s..5s", "t")
    devices, signals = zip(*devices, strict=True) if devices else ((), ())
    return builder.recording(devices=devices, signals=signals)


def meter(name, kind, watts, times=None, noise=(), **how):
    """A device with a counter that rises by ``watts`` per second, plus noise per reading."""
    times = np.arange(0, 11) * S if times is None else np.asarray(times, np.int64)
    extra = np.concatenate([[0], np.cumsum(np.resize(np.asarray([*noise, 0]), len(times) - 1))])
    values = np.round(watts * (times - times[0]) / S).astype(np.int64) + extra.astype(np.int64)
    properties = how.pop("properties", {})
    signal = Signal(how.pop("signal", f"{name} energy"), "counter", "J", times, values, host="n", device=name, **how)
    return Device(name, kind, "n", properties), signal


def gauge(name, signal, watts, every_s=0.01):
    """A GPU whose power is read now and then."""
    times = np.arange(len(watts)) * round(every_s * S)
    return Device(name, "gpu", "n"), Signal(signal, "gauge", "W", times, watts, host="n", device=name)


def entries(recording):
    return {one.device.name: (one.entry.counted, one.entry.why) for one in metered_devices(recording)}


def counted(recording):
    return {name for name, (yes, _) in entries(recording).items() if yes}


def test_a_node_counts_as_its_parts_and_the_rest_of_it():
    found = entries(made([meter("node", "node", 100), meter("cpu", "cpu", 40)]))
    assert found["node"] == (False, "counts as its parts and the rest of it")
    assert found["cpu"] == found["rest of node"] == (True, "")


def test_parts_that_exceed_their_whole_count_and_it_is_said():
    recording = made([meter("node", "node", 100), meter("cpu", "cpu", 160)])
    assert entries(recording)["node"] == (False, "its parts exceed it")
    found = wattribute.attribute(recording, by="frame")
    assert found.rows["self_j"].sum() + _idle(found) == pytest.approx(1600)
    assert any("used more than node" in problem.message for problem in found.problems)


def test_parts_that_exceed_their_whole_by_the_sensors_errors_count_without_a_problem():
    recording = made([meter("node", "node", 100), meter("cpu", "cpu", 104)])
    assert entries(recording)["node"] == (False, "its parts exceed it")
    found = wattribute.attribute(recording, by="frame")
    assert found.rows["self_j"].sum() + _idle(found) == pytest.approx(1040)
    assert not found.problems


def test_parts_and_rests_are_the_node_also_where_they_exceed_it_for_a_while():
    """The CPU is metered in the first half only, and more than the node then."""
    recording = made([meter("node", "node", 100), meter("cpu", "cpu", 130, np.arange(0, 6) * S)])
    joules = {one.device.name: one.energy(recording).measured for one in metered_devices(recording)}
    # the CPU counts for a window longer than it is read: 650 of the node's 600 J, so that 350 of 400 J are left later
    assert joules == pytest.approx({"node": 1000, "cpu": 650, "rest of node": 0, "node, parts not metered": 350})


@pytest.mark.parametrize(
    ("devices", "count"),
    [
        ([("psys", "psys", 100), ("package 0", "cpu", 40)], {"package 0"}),
        ([("psys", "psys", 100)], {"psys"}),  # alone it can repeat nothing
        ([("Combined", "soc", 60), ("CPU", "cpu", 30), ("GPU", "gpu", 20)], {"CPU", "GPU"}),
        ([("Package", "soc", 60), ("CPU", "cpu", 30), ("DRAM", "dram", 10)], {"CPU", "DRAM"}),
        ([("hwmon1", "hwmon", 9), ("hwmon2", "hwmon", 8), ("package 0", "cpu", 40)], {"package 0"}),
        ([("hwmon1", "hwmon", 9), ("hwmon2", "hwmon", 8)], set()),
        ([("board A", "other", 9), ("board B", "other", 8)], {"board A", "board B"}),  # a user's own devices
        ([("package 0", "cpu", 40), ("core 0", "core", 30)], {"package 0"}),
        (
            [("package 0", "cpu", 40), ("package 1", "cpu", 30), ("dram 0", "dram", 5)],
            {"package 0", "package 1", "dram 0"},
        ),
    ],
)
def test_places(devices, count):
    assert counted(made([meter(*one) for one in devices])) == count


def test_mirrors_and_families_count_once_unless_ids_prove_two():
    noise = [1, 0, 2, 0, 1, 3]
    equal = [meter("GPU 0", "gpu", 100, noise=noise), meter("GPU 1", "gpu", 100, noise=noise)]
    assert counted(made(equal)) == {"GPU 0"}
    ids = [meter(f"GPU {i}", "gpu", 100, noise=noise, properties={"uuid": f"GPU-{i}"}) for i in range(2)]
    assert counted(made(ids)) == {"GPU 0", "GPU 1"}
    families = [
        meter("GPU 0", "gpu", 100, signal="A2rocm_smi:::energy_count:device=0"),
        meter("GPU 1", "gpu", 90, signal="A2rocm_smi:::energy_count:device=1"),
        meter("accel 0", "gpu", 191, signal="coretemp:::craypm:accel0_energy"),
    ]
    assert counted(made(families)) == {"GPU 0", "GPU 1"}
    assert entries(made(families))["accel 0"][1] == "metered by rocm_smi, too"


def test_dead_and_reset_counters_do_not_count_and_power_takes_their_place():
    dead = meter("package 0", "cpu", 0)
    assert entries(made([dead, meter("GPU 0", "gpu", 5)]))["package 0"] == (False, "did not move")
    device, counter = meter("package 0", "cpu", 50)
    broken = replace(counter, values=np.array([900, 950, 1000, 3, 53, 103, 153, 203, 253, 303, 353]))
    assert entries(made([(device, broken)]))["package 0"] == (False, "was reset")
    power = Signal("power", "gauge", "W", counter.times, np.full(11, 50.0), host="n", device="package 0")
    recording = made([(device, broken)])
    with pytest.raises(NoDataError, match=r"can be counted \(package 0: was reset\); .*--by signal"):
        wattribute.attribute(recording)
    assert wattribute.attribute(recording, by="signal").rows["self_j"].sum() > 0
    recording = replace(recording, signals=(*recording.signals, power))
    (one,) = metered_devices(recording)
    assert (recording.signals[one.row].name, one.entry.counted) == ("power", True)


@pytest.mark.parametrize(("last", "chosen"), [(10, "energy"), (5, "power")])
def test_power_takes_the_place_of_a_counter_that_ends_before_it(last, chosen):
    """A counter that is read to the end of its power, and one that fails half-way."""
    times = np.arange(0, 1001) * S // 100
    until = times <= last * S
    device = Device("GPU 0", "gpu", "n")
    counter = Signal("energy", "counter", "J", times[until], np.arange(1001)[until], host="n", device="GPU 0")
    power = Signal("power", "gauge", "W", times, np.full(1001, 100.0), host="n", device="GPU 0")
    recording = replace(made([(device, counter)]), signals=(counter, power))
    (one,) = metered_devices(recording)
    assert (recording.signals[one.row].name, one.entry.counted) == (chosen, True)
    assert one.energy(recording).measured == pytest.approx(1000, rel=0.01)
    replaced = [p.message for p in wattribute.attribute(recording).problems if p.kind == "replaced"]
    instead = "energy of GPU 0 ends 5 s before its power: power is used instead"
    assert replaced == ([instead] if chosen == "power" else [])


def test_a_part_that_was_not_metered_for_a_while_has_a_row_of_its_own():
    late = np.arange(5, 11) * S  # the CPU's meter begins in the middle
    recording = made([meter("node", "node", 100), meter("cpu", "cpu", 40, late)])
    joules = {one.device.name: one.energy(recording).measured for one in metered_devices(recording)}
    # node 1000 J; cpu 5 s × 40 W; a window of 1 s is within the cpu's own spacing, so 4 s are not metered
    assert joules == pytest.approx({"node": 1000, "cpu": 200, "rest of node": 400, "node, parts not metered": 400})


# -------------------------------------------------------------------------------------------- the same from every verb


KINDS = [
    ("package 0", "cpu"),
    ("dram 0", "dram"),
    ("GPU 0", "gpu"),
    ("GPU 1", "gpu"),
    ("psys", "psys"),
    ("hwmon1", "hwmon"),
]


@st.composite
def machines(draw):
    """Machines with nested, mirrored, doubled, estimated, dead and partly covered meters."""
    devices = []
    noise = draw(st.lists(st.integers(0, 5), min_size=3, max_size=6))
    for name, kind in draw(st.lists(st.sampled_from(KINDS), min_size=1, unique=True)):
        watts = draw(st.sampled_from([0, 7, 30, 50]))
        first, last = draw(st.integers(0, 4)), draw(st.integers(7, 10))
        phase = draw(st.sampled_from([0, 137_000_000, 500_000_000]))
        times = np.arange(first, last + 1) * S + phase
        estimated = draw(st.booleans()) and kind in ("cpu", "dram")
        devices.append(meter(name, kind, watts, times, noise if draw(st.booleans()) else (), estimated=estimated))
    if draw(st.booleans()):
        devices.append(meter("node", "node", draw(st.sampled_from([60, 150, 400])), noise=noise))
    run = draw(st.sampled_from([{}, {"start_ticks": 1 * S, "end_ticks": 8 * S, "exit_code": 0, "pid": 1}]))
    if draw(st.booleans()):
        watts = draw(st.lists(st.integers(20, 300), min_size=5, max_size=5))
        devices.append(gauge("GPU 2", "nvidia-smi GPU 2 power.draw.instant", np.repeat(watts, 40), every_s=0.05))
    recording = made(devices)
    return replace(recording, metadata={"name": "x", "run": run} if run else {"name": "x"})


def apart(labels):
    return "apart" in dict(labels)


def _idle(found):
    devices = found.devices.filter("counted")
    return float(devices["idle_j"].sum())


@settings(
    suppress_health_check=[HealthCheck.too_slow], max_examples=settings().max_examples // 3
)  # twenty answers each
@given(machines())
def test_every_verb_says_the_same_total(tmp_path_factory, recording):
    folder = tmp_path_factory.mktemp("verbs")
    try:
        by_frame = wattribute.attribute(recording, by="frame")
    except wattribute.WattributeError:  # nothing that counts has readings enough
        assert not [one for one in metered_devices(recording) if one.entry.counted and one.energy(recording).measured]
        return
    joules = by_frame.rows["self_j"].sum() + _idle(by_frame)

    def same(value):
        assert value == pytest.approx(joules, rel=1e-9, abs=1e-9)

    for by in ("device", "device,frame", "process", "path", "host", "location,frame", "role"):
        found = wattribute.attribute(recording, by=by)
        same(found.rows["self_j"].sum() + _idle(found))
    same(math.fsum(by_frame.devices.filter("counted")["measured_j"]))
    same(total(by_frame, "measured"))  # what the report and the charts say
    summary = summarise(recording, carbon=False)
    same(summary.energy_j or 0.0)
    if by_frame.devices["counted"].any():
        same(wattribute.emissions(recording, intensity=100).energy_j)
        same(wattribute.emissions(by_frame, intensity=100).energy_j)
        grams = with_emissions(by_frame, intensity=360)[0]  # 1e-4 g/J
        assert grams.rows["co2e_g"].sum() == pytest.approx(1e-4 * by_frame.rows["self_j"].sum(), rel=1e-9, abs=1e-12)
    sums = wattribute.sql(recording, "select sum(self_j) as j from attribution")["j"][0] or 0.0
    same(sums + _idle(by_frame))
    session = Session(recording)
    try:
        same(sum(book["measured_j"] for book in session.tiles.facts["devices"] if book["added"]))
    finally:
        session.close()
    last = {one.labels: one.values[-1] for one in series(recording, S) if one.metric is ENERGY}
    if not recording.life[1]:  # series go on after the end of a run
        same(sum(joules for labels, joules in last.items() if by_frame.devices["counted"].any() and not apart(labels)))
    wattribute.write(wattribute.attribute(recording, by="run,frame"), folder / "x.csv")
    same(pl.read_csv(folder / "x.csv", infer_schema_length=None)["self_j"].sum() + _idle(by_frame))
    wattribute.write(by_frame, folder / "x.json")
    rows = json.loads((folder / "x.json").read_text())["rows"]
    same(math.fsum(row["self_j"] for row in rows) + _idle(by_frame))
    wattribute.write(by_frame, folder / "x.parquet")
    same(pl.read_parquet(folder / "x.parquet")["self_j"].sum() + _idle(by_frame))
    wattribute.write(by_frame, folder / "x.folded")
    lines = (folder / "x.folded").read_text().splitlines()
    assert sum(int(line.rpartition(" ")[2]) for line in lines) / 1e6 == pytest.approx(joules, abs=1e-5)
    if joules:
        sides = (wattribute.Ensemble.of({name: recording}) for name in "ab")
        same(wattribute.compare(*sides).whole["energy_a_j"])


SENSORS = """
[[sensor]]
field = "power"
kind = "running mean"
period_s = 0.1
window_s = 1.0
lag_s = 0.05
gain = 0.8
offset_w = 5
source = "a bench"
"""


def test_emissions_follow_the_sensors_and_the_integration_of_an_answer(tmp_path):
    (tmp_path / "sensors.toml").write_text(SENSORS)
    table = tmp_path / "intensity.csv"
    table.write_text("time,g_per_kwh\n2023-11-14T22:13:20Z,100\n2023-11-14T22:13:24Z,300\n")
    watts = np.repeat(np.random.default_rng(1).uniform(50, 250, 20), 50)
    recording = made([gauge("GPU 0", "power", watts), meter("package 0", "cpu", 40)])
    found = {}
    for name, options in {
        "plain": {},
        "step": {"integrate": "step"},
        "sensors": {"sensors": tmp_path / "sensors.toml"},
        "part": {"sensors": tmp_path / "sensors.toml", "begin": 3},
    }.items():
        by_frame = wattribute.attribute(recording, by="frame", **options)
        found[name] = math.fsum(by_frame.devices["measured_j"])
        with_grams, whole = with_emissions(by_frame, intensity=str(table))
        assert whole.energy_j == pytest.approx(found[name], rel=1e-9)
        assert len(whole.slices) > 1
        assert with_grams.devices["co2e_g"].sum() == pytest.approx(whole.co2e_g, rel=1e-6)
    assert len(set(found.values())) == len(found)


# ------------------------------------------------------------------------------------------- a node like those of Cray


@pytest.mark.parametrize("seed", range(12))
def test_the_rest_of_a_cray_node_and_its_bounds_hold_the_truth(seed):
    """Node ⊃ cpu, memory, 4 accelerators, each with its own period, phase, latency; powers change at random."""
    draw = np.random.default_rng(seed)
    step = 1_000_000  # the truth in steps of 1 ms
    time = np.arange(0, 10_001) * step
    names = [("cpu", "cpu", 80), ("memory", "dram", 30), *((f"accel {i}", "gpu", 250) for i in range(4))]

    def power(mean):
        return np.repeat(mean * draw.uniform(0.3, 1.7, 100), 100)

    true = {name: np.concatenate([[0], np.cumsum(power(mean) * step / S)]) for name, _, mean in names}
    true["rest"] = np.concatenate([[0], np.cumsum(power(60) * step / S)])
    true["node"] = np.sum(list(true.values()), axis=0)

    def seen(name, kind):
        period = int(draw.integers(90, 120)) * step
        at = np.arange(int(draw.integers(0, period)), time[-1], period)
        latency = int(draw.integers(0, 20)) * step
        values = np.interp(np.maximum(at - latency, 0), time, true[name])
        signal = Signal(name, "counter", "J", at, values, host="n", device=name, latency_s=0.02 + period / S)
        return Device(name, kind, "n"), signal

    recording = made([seen(name, kind) for name, kind, _ in names] + [seen("node", "node")])
    found = wattribute.attribute(recording, by="device")
    books = {row["device"]: row["measured_j"] for row in found.devices.to_dicts()}
    parts = sum(books[name] for name, *_ in names)
    assert parts + books["rest of node"] == pytest.approx(books["node"], rel=1e-9)
    main = wattribute.attribute(recording, by="device,frame").rows.filter(device="rest of node")
    for row in main.to_dicts():
        inside = [(2 * S, 5 * S)] if row["frame"] == "work" else [(0, 2 * S), (5 * S, 9 * S)]
        truth = sum(np.diff(np.interp(ends, time, true["rest"]))[0] for ends in inside)
        assert row["self_low_j"] - 1e-9 <= truth <= row["self_high_j"] + 1e-9
        assert row["self_j"] == pytest.approx(truth, rel=0.35)


def test_the_range_of_a_rest_has_the_gains_of_the_node_and_of_its_parts():
    """Node 1000 J ± 10 %, CPU 400 J ± 5 %: the rest of 600 J is 480 to 720 J, for ``run`` and for ``attribute``."""
    node, cpu = meter("node", "node", 100, gain_error=0.1), meter("cpu", "cpu", 40, gain_error=0.05)
    recording = made([node, cpu])
    found = wattribute.attribute(recording, by="device")
    book = found.devices.filter(device="rest of node").row(0, named=True)
    assert (book["measured_low_j"], book["measured_high_j"]) == pytest.approx((480, 720), rel=0.01)
    row = found.rows.filter(device="rest of node").row(0, named=True)  # 9 of 10 s
    assert (row["self_low_j"], row["self_high_j"]) == pytest.approx((0.9 * 480, 0.9 * 720), rel=0.01)
    told = next(one for one in summarise(recording, carbon=False).devices if one.device == "rest of node")
    assert (told.low_j, told.high_j) == pytest.approx((480, 720), rel=0.01)


def test_an_ensemble_counts_every_run(tmp_path):
    recording = made([meter("node", "node", 100), meter("cpu", "cpu", 40)])
    for name in "abc":
        wattribute.save(recording, tmp_path / f"{name}.watt")
    found = wattribute.Ensemble.read(str(tmp_path / "*.watt")).attribute("frame")
    assert found.rows["self_j"].sum() + _idle(found) == pytest.approx(3000)
