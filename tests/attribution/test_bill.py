"""The bill of a shared device: static, the command's part, other processes, with books that balance."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattribute import attribute
from wattribute.carbon import emissions
from wattribute.errors import OptionError
from wattribute.model import Recording, Signal
from wattribute.model.constants import COMMAND_CPU_TIME, COMMAND_SHARE, COMMAND_SLICES, CPU_TIME
from wattribute.sessions.summary import summarise
from wattribute.testing.simulation import SimulatedRun, Simulation, Steps, Wave

FLOOR_W = 20.0


def shared(
    command_w: float = 30.0, neighbours: int = 1, neighbour_w: float = 30.0, period_s: float = 0.02, **metadata: str
) -> SimulatedRun:
    """A package with a floor: the command works from 1 to 7 s and sleeps until 9 s, neighbours keep a core each."""
    machine = Simulation(length_s=10, seed=1, scope="process", **metadata)
    cpu = machine.device("package 0", floor_w=FLOOR_W).counter(period_s=period_s)
    machine.thread(cpu, [("work", 1.0, 7.0, command_w), ("sleep", 7.0, 9.0, 0.0)], sleeping=["sleep"])
    for number in range(neighbours):
        machine.tenant(cpu, f"neighbour {number}", Wave(neighbour_w), cores=1.0)
    if not neighbours:
        machine.tenant(cpu, "nothing", Wave(0.0), cores=1e-9)
    return machine.run()


def of_frame(found, frame: str, column: str = "self_j") -> float:
    return found.rows.filter(found.rows["frame"] == frame)[column].sum()


def balance(found) -> None:
    measured, idle = found.devices["measured_j"].sum(), found.devices["idle_j"].sum()
    assert found.rows["self_j"].sum() + idle == pytest.approx(measured, rel=1e-9)


def test_the_bill_of_a_command_beside_a_neighbour_by_hand():
    """20 W × 10 s static; 30 W × 6 s the command; 30 W × 10 s the neighbour: 680 J."""
    found = attribute(shared().recording, by="frame", floor="package 0=20W", static="apart")
    assert of_frame(found, "work") == pytest.approx(180, rel=1e-3)
    assert of_frame(found, "other processes") == pytest.approx(300, rel=1e-3)
    assert of_frame(found, "static") == pytest.approx(200, rel=1e-6)
    assert of_frame(found, "sleep") < 0.01 * 480  # a sleeping function has almost no dynamic energy
    assert found.devices["static_j"].item() == pytest.approx(200, rel=1e-6)
    balance(found)


@pytest.mark.parametrize(
    ("rule", "command_j", "others_j", "static_j"),
    [
        ("apart", 180, 300, 200),
        ("mine", 180 + 160, 300, 0),  # of the floor 8 s lie in its spans, 2 s are idle
        ("even", 180 + 80, 300 + 100, 0),
        ("reserved", 180 + 40, 300 + 150, 0),  # a quarter of the CPUs
    ],
)
def test_static_energy_follows_its_rule(rule, command_j, others_j, static_j):
    found = attribute(shared(reserved=0.25).recording, by="frame", floor="cpu=20W", static=rule)
    assert of_frame(found, "work") + of_frame(found, "sleep") == pytest.approx(command_j, rel=2e-3)
    assert of_frame(found, "other processes") == pytest.approx(others_j, rel=2e-3)
    assert of_frame(found, "static") == pytest.approx(static_j, rel=1e-6)
    rows = found.rows
    assert (rows["static_j"] + rows["dynamic_j"] - rows["self_j"]).abs().max() < 1e-9
    balance(found)


@pytest.mark.parametrize("neighbours", range(1, 7))
def test_equal_tenants_get_equal_dynamic_energy(neighbours):
    """Concave power over load: the command's core is as good as any other one, whatever the sum."""
    machine = Simulation(length_s=6, scope="process")
    cpus = [machine.device(f"package {i}", floor_w=25).counter(period_s=0.001) for i in range(2)]
    tenants = neighbours + 1
    whole_w = 40 * tenants**0.7  # concave: the second thread of a core adds less than the first
    for number, cpu in enumerate(cpus):
        each_w = whole_w / tenants * (1 + 0.3 * number)
        machine.thread(cpu, [("work", 0.0, 6.0, each_w)])
        for tenant in range(neighbours):
            machine.tenant(cpu, f"tenant {tenant}", Wave(each_w), cores=1.0)
    run = machine.run()
    found = attribute(run.recording, by=("device", "frame"), floor="cpu=25W")
    for cpu in cpus:
        mine = found.rows.filter((found.rows["device"] == cpu.name) & (found.rows["frame"] == "work"))["dynamic_j"]
        assert mine.item() == pytest.approx(run.frames_j[cpu.name, "work"], rel=0.05)
    balance(found)


@pytest.mark.parametrize("watts", [(40.0, 20.0), (20.0, 40.0), (30.0, 30.0), (45.0, 22.5)])
@pytest.mark.parametrize("neighbours", [1, 3, 6])
def test_unequal_tenants_are_inside_the_range(watts, neighbours):
    run = shared(watts[0], neighbours, watts[1])
    found = attribute(run.recording, by="frame", floor="cpu=20W", static="apart")
    for frame, truth in (
        ("work", run.frames_j["package 0", "work"]),
        ("other processes", sum(joules for joules in run.tenants_j.values())),
    ):
        row = found.rows.filter(found.rows["frame"] == frame).to_dicts()[0]
        assert row["self_low_j"] <= truth <= row["self_high_j"]
        assert row["dynamic_low_j"] <= truth <= row["dynamic_high_j"]
    balance(found)


def test_a_program_alone_gets_what_it_got_before():
    run = shared(neighbours=0)
    machine, alone = (
        attribute(run.recording, by="frame", scope=scope, floor="cpu=20W", begin=1, end=7)
        for scope in ("machine", "process")
    )
    assert of_frame(alone, "work") == pytest.approx(of_frame(machine, "work"), rel=1e-6)
    assert "other processes" not in machine.rows["frame"].to_list()


def test_the_part_is_taken_interval_by_interval():
    """Power and neighbours vary: 10 W alone for 5 s, 100 W with an equal neighbour for 5 s: 50 + 250 J."""
    machine = Simulation(length_s=10, scope="process")
    cpu = machine.device("package 0").counter(period_s=0.02)
    machine.thread(cpu, [("alone", 0.0, 5.0, 10.0), ("crowded", 5.0, 10.0, 50.0)])
    machine.tenant(cpu, "late", Steps([0, 5, 10], [0.0, 50.0]), cores=Steps([0, 5, 10], [0.0, 1.0]))
    found = attribute(machine.run().recording, by="frame")
    assert of_frame(found, "alone") == pytest.approx(50, rel=5e-3)
    assert of_frame(found, "crowded") == pytest.approx(250, rel=5e-3)  # one number for the run would say 450 x 2/3
    balance(found)


@pytest.mark.parametrize("by", ["frame", "path", "process", "location", "device", "frame,bin=500ms", "reading", "role"])
@pytest.mark.parametrize("method", ["linear", "window"])
def test_books_balance_however_rows_are_grouped(by, method):
    for rule in ("apart", "mine", "even"):
        balance(attribute(shared().recording, by=by, method=method, floor="cpu=20W", static=rule))


def test_rows_of_spans_add_up_too():
    found = attribute(shared().recording, floor="cpu=20W", static="apart", spans=True)
    assert set(found.rows["frame"]) == {"work", "sleep", "other processes", "static"}
    balance(found)


def test_the_row_can_be_selected_and_left_out():
    found = attribute(shared().recording, by="frame", floor="cpu=20W", frame="work")
    assert found.rows["frame"].to_list() == ["work"]
    assert found.rows["self_j"].sum() + found.left_out + found.devices["idle_j"].sum() == pytest.approx(680, rel=1e-3)


def test_static_and_dynamic_without_other_processes():
    """A trace: 20 W at rest, the rows keep their floor and say how much it is."""
    machine = Simulation(length_s=4)
    gpu = machine.device("GPU 0", floor_w=20).counter(period_s=0.01)
    machine.stream(gpu, [("gemm", 1.0, 2.0, 100.0), ("copy", 2.0, 3.0, 10.0)])
    run = machine.run()
    plain = attribute(run.recording, by="frame")
    assert "static_j" not in plain.rows.columns  # no floor is known: nothing is guessed
    found = attribute(run.recording, by="frame", floor="GPU 0=20W")
    assert found.rows["self_j"].to_list() == plain.rows["self_j"].to_list()
    for frame, dynamic_j in (("gemm", 100), ("copy", 10)):
        assert of_frame(found, frame, "static_j") == pytest.approx(20, rel=1e-6)
        assert of_frame(found, frame, "dynamic_j") == pytest.approx(dynamic_j, rel=1e-3)
    unsure = attribute(run.recording, by="frame", floor="gpu=20W±5W").rows
    row = unsure.filter(unsure["frame"] == "gemm").to_dicts()[0]
    assert (row["static_low_j"], row["static_high_j"]) == (pytest.approx(15), pytest.approx(25))
    assert row["dynamic_low_j"] <= 100 <= row["dynamic_high_j"]
    apart = attribute(run.recording, by="frame", floor="gpu=20W", static="apart")
    assert of_frame(apart, "static") == pytest.approx(80, rel=1e-6)
    assert of_frame(apart, "gemm") == pytest.approx(100, rel=1e-3)
    balance(apart)


def test_static_energy_is_no_more_than_what_was_used():
    """A floor that is said too high: ∫ min(floor, P) dt."""
    machine = Simulation(length_s=2)
    gpu = machine.device("GPU 0", floor_w=20).counter(period_s=0.01)
    machine.stream(gpu, [("gemm", 0.0, 1.0, 100.0), ("rest", 1.0, 2.0, 0.0)])
    found = attribute(machine.run().recording, by="frame", floor="gpu=50W")
    assert of_frame(found, "gemm", "static_j") == pytest.approx(50, rel=1e-3)
    assert of_frame(found, "rest", "static_j") == pytest.approx(20, rel=1e-2)
    assert of_frame(found, "rest", "dynamic_j") == pytest.approx(0, abs=0.2)


def test_clocks_of_packages_speak_for_their_own_package():
    """The neighbour works on package 1 only; the command on both."""
    machine = Simulation(length_s=4, scope="process")
    cpus = [machine.device(f"package {i}").counter(period_s=0.01) for i in range(2)]
    for cpu in cpus:
        machine.thread(cpu, [("work", 0.0, 4.0, 10.0)])
    machine.tenant(cpus[1], "neighbour", Wave(10.0), cores=1.0)
    found = attribute(machine.run().recording, by=("device", "frame"))
    work = dict(found.rows.filter(found.rows["frame"] == "work").select("device", "self_j").iter_rows())
    assert work == {"package 0": pytest.approx(40, rel=1e-3), "package 1": pytest.approx(40, rel=1e-3)}
    balance(found)


def tenants(generator: np.random.Generator, count: int, ratio: float, sensor: str, period_s: float) -> SimulatedRun:
    """The command and up to so many tenants on two packages: each begins and pauses at random, power is concave over
    load, and the command draws ``ratio`` times the watts of the others."""
    machine = Simulation(length_s=8, seed=1, scope="process")
    for number in range(2):
        cpu = getattr(machine.device(f"package {number}", floor_w=20), sensor)(period_s=period_s)
        edges = np.unique([0, 8, *generator.uniform(0, 8, 6)])
        own = generator.random(len(edges) - 1) < 0.7
        others = generator.random((generator.integers(1, count) if number else count - 1, len(own))) < 0.6
        load = others.sum(axis=0) + ratio * own
        each_w = 30 * load**0.7 / np.maximum(load, 1e-9)
        steps = zip(edges[:-1].tolist(), edges[1:].tolist(), own, each_w.tolist(), strict=True)
        tasks = [("work" if on else "sleep", begin, end, ratio * on * watts) for begin, end, on, watts in steps]
        machine.thread(cpu, tasks, sleeping=["sleep"], name=f"thread {number}")
        for tenant, busy in enumerate(others):
            machine.tenant(cpu, f"tenant {tenant}", Steps(edges, busy * each_w), cores=Steps(edges, 1.0 * busy))
    return machine.run()


def seldom_read(recording: Recording) -> Recording:
    """The clocks as a sampler reads them: four times a second, the machine's in ticks of 10 ms, none of threads."""

    def clock(signal: Signal) -> Signal:
        times, values = signal.times[::25], signal.values[::25]
        ticks = values if signal.name == COMMAND_CPU_TIME else values // 10_000 * 10_000
        return replace(signal, times=times, values=ticks)

    clocks = [clock(signal) for signal in recording.signals if signal.unit == "s" and signal.name != CPU_TIME]
    return replace(recording, signals=(*(signal for signal in recording.signals if signal.unit != "s"), *clocks))


@pytest.mark.parametrize(("sensor", "period_s"), [("counter", 0.001), ("counter", 0.1), ("gauge", 0.1)])
@pytest.mark.parametrize("ratio", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("count", [2, 4, 7])
def test_tenants_that_come_and_go_are_inside_the_range(count, ratio, sensor, period_s):
    """The truth lies in the ranges of the command and of others, by counters and gauges, with a sampler's clocks."""
    for seed in range(2):
        run = tenants(np.random.default_rng(seed), count, ratio, sensor, period_s)
        found = attribute(seldom_read(run.recording), by=("device", "process"), floor="cpu=20W", static="apart")
        balance(found)
        for device in ("package 0", "package 1"):
            rows = {row["process"]: row for row in found.rows.filter(found.rows["device"] == device).to_dicts()}
            truth_j = {
                "process": run.frames_j.get((device, "work"), 0.0),
                "other processes": sum(joules for (name, _), joules in run.tenants_j.items() if name == device),
            }
            for process, joules in truth_j.items():
                row = rows[process]
                assert row["self_low_j"] - 1e-4 <= joules <= row["self_high_j"] + 1e-4
                assert row["dynamic_low_j"] - 1e-4 <= joules <= row["dynamic_high_j"] + 1e-4
                if ratio == 1 and sensor == "counter":
                    assert row["dynamic_j"] == pytest.approx(joules, rel=0.05, abs=2)


def crowd(seed: int, burst_s: float, sensor: str, smt: bool, **how: float) -> SimulatedRun:
    """Two packages with 2 to 7 tenants each, the command among them: each draws up to twice the watts of another, all
    come and go at random every ``burst_s`` or so, power is concave over load, siblings on one core draw less."""
    generator = np.random.default_rng(seed)
    machine = Simulation(length_s=6, seed=seed, scope="process")
    for number in range(2):
        cpu = getattr(machine.device(f"package {number}", floor_w=20), sensor)(**how)
        count = int(generator.integers(2, 8))
        edges = np.unique(np.round([0, 6, *generator.uniform(0, 6, int(6 / burst_s))], 4))
        works = generator.random((count, len(edges) - 1)) < generator.uniform(0.2, 0.9, (count, 1))
        core = np.stack([generator.permutation(8)[:count] % 4 for _ in edges[1:]], axis=1)
        mates = np.stack([(works & (core == mine)).sum(axis=0) for mine in core])
        watts = works * generator.uniform(1, 2, (count, 1)) * np.where(smt & (mates > 1), 0.8, 1.0)
        load = watts.sum(axis=0)
        watts = watts * 25 * load**0.7 / np.maximum(load, 1e-9)
        steps = zip(edges[:-1].tolist(), edges[1:].tolist(), works[0], watts[0].tolist(), strict=True)
        tasks = [("work" if on else "sleep", begin, end, each) for begin, end, on, each in steps]
        machine.thread(cpu, tasks, sleeping=["sleep"], name=f"thread {number}")
        for tenant in range(1, count):
            cores = Steps(edges, 1.0 * works[tenant])
            machine.tenant(cpu, f"tenant {tenant}", Steps(edges, watts[tenant]), cores=cores)
    return machine.run()


@pytest.mark.parametrize("smt", [False, True])
@pytest.mark.parametrize("burst_s", [0.5, 0.03])
@pytest.mark.parametrize(
    ("sensor", "how"),
    [
        ("counter", {"period_s": 0.001, "read_s": 0.02, "wraps_at_j": 30.0, "start_j": 29.0}),  # wraps twice a second
        ("counter", {"period_s": 0.1}),
        ("gauge", {"period_s": 0.1}),
    ],
)
def test_a_crowd_that_comes_and_goes_between_two_readings(sensor, how, burst_s, smt):
    """Sums are exact, ranges hold the truth, and who sleeps gets nothing, with clocks of a sampler and a profile."""
    for seed in range(2):
        run = crowd(seed, burst_s, sensor, smt, **how)
        threads = [signal for signal in run.recording.signals if signal.name == CPU_TIME]
        seldom = seldom_read(run.recording)
        recording = replace(seldom, signals=(*seldom.signals, *threads))
        found = attribute(recording, by=("device", "frame"), floor="cpu=20W", static="apart")
        balance(found)
        for device in ("package 0", "package 1"):
            rows = {row["frame"]: row for row in found.rows.filter(found.rows["device"] == device).to_dicts()}
            truth_j = {
                "work": run.frames_j.get((device, "work"), 0.0),
                "other processes": sum(joules for (name, _), joules in run.tenants_j.items() if name == device),
            }
            for frame, joules in truth_j.items():
                row = rows[frame]
                assert row["self_low_j"] - 1e-4 <= joules <= row["self_high_j"] + 1e-4
                assert row["dynamic_low_j"] - 1e-4 <= joules <= row["dynamic_high_j"] + 1e-4
            if "sleep" in rows:
                assert rows["sleep"]["dynamic_j"] <= 0.01 * sum(truth_j.values())


def test_the_range_of_an_estimate_allows_for_the_split():
    """An estimate of ±50 %: the command's 180 J are between a half of what a third of 60 W is and 1.5 x two thirds."""
    run = shared(FLOOR_W * 1.5)
    gauged = [replace(s, estimated=True, gain_error=0.5) if s.unit == "J" else s for s in run.recording.signals]
    found = attribute(replace(run.recording, signals=tuple(gauged)), by="frame", floor="cpu=20W", static="apart")
    row = found.rows.filter(found.rows["frame"] == "work").to_dicts()[0]
    assert row["self_low_j"] < 0.5 * 60 * 6 / 3 + 1
    assert row["self_high_j"] > 1.5 * 60 * 6 * 2 / 3 - 1


@pytest.mark.parametrize("rule", ["apart", "mine"])
def test_a_floor_that_is_not_known_widens_the_range(rule):
    """No rest is seen: of the 680 J up to 200 J may be static, which is the command's or no one's."""
    run = shared(cores=2)
    found = attribute(run.recording, by="process", static=rule)
    rows = {row["process"]: row for row in found.rows.to_dicts()}
    own_j = 180 + (160 if rule == "mine" else 0)
    for process, truth_j in (("process", own_j), ("other processes", 300)):
        assert rows[process]["static_j"] is None
        assert rows[process]["self_low_j"] <= truth_j <= rows[process]["self_high_j"]
    assert rows["process"]["dynamic_low_j"] <= 180 <= rows["process"]["dynamic_high_j"]


def test_a_program_alone_keeps_what_a_late_sensor_shows_after_it():
    """A gauge that averages over half a second shows the program's last joules when it sleeps already."""
    machine = Simulation(length_s=6, scope="process")
    cpu = machine.device("package 0", floor_w=20).gauge(period_s=0.5, window_s=0.5)
    machine.thread(cpu, [("work", 0.0, 3.25, 30.0), ("sleep", 3.25, 6.0, 0.0)], sleeping=["sleep"])
    machine.tenant(cpu, "nothing", Wave(0.0), cores=1e-9)
    found = attribute(machine.run().recording, by="process", floor="cpu=20W", static="apart")
    assert found.rows.filter(found.rows["process"] == "other processes")["self_j"].sum() == pytest.approx(0, abs=0.1)
    balance(found)


def shared_card(*, busy: object = None, slices: object = None, **properties: str) -> Recording:
    """A card of 60 W at rest and 160 W for 10 s; what is known of the command's part of it each second, in percent."""
    machine = Simulation(length_s=10, scope="process")
    card = machine.device("GPU 0", floor_w=60, **properties).counter(period_s=0.1)
    machine.stream(card, [("gemm", 0.0, 10.0, 100.0)])
    recording = machine.run().recording
    times = np.arange(1, 11) * recording.clock.ticks_per_s
    signals = [
        Signal(name, "gauge", "%", times, np.zeros(10) + part, host="n01", device="GPU 0")
        for name, part in ((COMMAND_SHARE, busy), (COMMAND_SLICES, slices))
        if part is not None
    ]
    return replace(recording, signals=(*recording.signals, *signals))


mig = partial(shared_card, mig="2 instances: MIG-a, MIG-b")


def test_a_card_whose_time_is_shared_is_paid_by_use_and_by_part():
    """A quarter of the work; alone on the card for 5 s, then one of two processes: 300 + 150 J of 600 J at rest."""
    slices = np.repeat([100.0, 50.0], 5)
    found = attribute(shared_card(busy=25.0, slices=slices), by="frame", floor="gpu=60W")
    assert of_frame(found, "gemm", "dynamic_j") == pytest.approx(250, rel=1e-3)
    assert of_frame(found, "gemm", "static_j") == pytest.approx(450, rel=1e-3)
    assert of_frame(found, "other processes") == pytest.approx(750 + 150, rel=1e-3)
    assert not [problem for problem in found.problems if problem.kind == "share"]
    balance(found)


@pytest.mark.parametrize("static", ["even", "reserved", None])
def test_static_energy_of_a_card_is_no_ones_where_the_driver_does_not_tell_the_part(static):
    recording = shared_card(busy=25.0)
    found = attribute(recording, by="frame", floor="gpu=60W", static=static)
    assert of_frame(found, "gemm") == of_frame(found, "gemm", "dynamic_j") == pytest.approx(250, rel=1e-3)
    assert of_frame(found, "static") == pytest.approx(600, rel=1e-3)
    for frame in ("gemm", "other processes"):
        assert of_frame(found, frame, "self_high_j") > of_frame(found, frame) + 590  # it may be this one's
        assert of_frame(found, frame, "self_low_j") < of_frame(found, frame)
    assert any("does not tell who is on the card" in problem.message for problem in found.problems)
    balance(found)
    baseline = {"devices": {"GPU 0": {"floor_w": 60, "low_w": 60, "high_w": 60}}}
    summary = summarise(replace(recording, metadata={**recording.metadata, "floors": baseline}), carbon=False)
    assert summary.energy_j == pytest.approx(250, rel=1e-3)
    assert (summary.high_j or 0) > 850
    [note] = [note for note in summary.devices[0].notes if "who is on the card" in note]
    assert note == "GPU 0: the driver does not tell who is on the card, so its static energy is a row of its own"


def test_a_card_of_one_program_alone_is_all_its_own():
    found = attribute(shared_card(busy=100.0), by="frame", floor="gpu=60W")
    assert of_frame(found, "gemm") == pytest.approx(1600, rel=1e-3)
    assert not [problem for problem in found.problems if problem.kind == "share"]


def test_a_mig_slice_pays_for_its_use_and_for_its_part_of_the_card():
    """Half of the busy time and a quarter of the slices: 500 J dynamic, 150 J static; others have the rest."""
    found = attribute(mig(busy=50.0, slices=25.0), by="frame", floor="gpu=60W")
    assert of_frame(found, "gemm", "dynamic_j") == pytest.approx(500, rel=1e-3)
    assert of_frame(found, "gemm", "static_j") == pytest.approx(150, rel=1e-3)
    assert of_frame(found, "other processes") == pytest.approx(500 + 450, rel=1e-3)
    balance(found)


def test_run_and_carbon_give_one_range_of_a_slice():
    recording = mig(busy=50.0, slices=25.0)
    summary, grams = summarise(recording, carbon=False), emissions(recording, intensity=100)
    assert (summary.low_j, summary.high_j) == (grams.energy_low_j, grams.energy_high_j)
    assert summary.low_j < summary.energy_j < summary.high_j
    assert "split between processes by utilisation" in summary.devices[0].causes


def test_a_mig_card_whose_driver_does_not_tell_is_not_split_and_says_why():
    found = attribute(mig(), by="frame", floor="gpu=60W")
    assert of_frame(found, "gemm") == pytest.approx(1600, rel=1e-3)
    assert any("MIG instances" in problem.message for problem in found.problems)
    assert not attribute(mig(), by="frame", scope="machine").problems


def test_a_card_whose_users_are_not_known_is_not_split_and_says_why():
    machine = Simulation(length_s=10, scope="process")
    card = machine.device("GPU 0", floor_w=60).counter(period_s=0.1)
    machine.stream(card, [("gemm", 0.0, 10.0, 100.0)])
    found = attribute(machine.run().recording, by="frame")
    assert of_frame(found, "gemm") == pytest.approx(1600, rel=1e-3)
    assert [p.message for p in found.problems if p.kind == "share"] == [
        "GPU 0: who used it is not known, so all of it is counted"
    ]


@pytest.mark.parametrize("text", ["60W", "GPU 0=", "GPU 0=much", "=60W", "cpu=60", "cpu=-5W", "cpu=60J", "cpu=20W±1"])
def test_a_floor_that_is_no_power_is_refused(text):
    with pytest.raises(OptionError, match="DEVICE=WATTS"):
        attribute(shared().recording, floor=text)


def test_a_floor_of_a_device_that_is_not_there_is_refused():
    with pytest.raises(OptionError, match=r"unknown device of --floor 'GPU 0'.*package 0"):
        attribute(shared().recording, floor=("cpu=20W", "GPU 0=60W"))


@given(
    st.floats(0, 50),
    st.floats(0, 50),
    st.floats(0.0, 40),
    st.sampled_from(["apart", "mine", "even", "reserved"]),
    st.sampled_from([0.001, 0.03, 0.3]),
)
def test_books_balance_for_any_powers(command_w, neighbour_w, floor_w, rule, period_s):
    run = shared(command_w, 2, neighbour_w, period_s)
    found = attribute(run.recording, by="frame", floor=f"cpu={floor_w:.3f}W", static=rule)
    measured, idle = found.devices["measured_j"].sum(), found.devices["idle_j"].sum()
    assert found.rows["self_j"].sum() + idle == pytest.approx(measured, rel=1e-9, abs=1e-9)
    assert (found.rows["self_j"] >= -1e-9).all()
    assert np.nanmin(found.rows["dynamic_j"].to_numpy()) >= -1e-9
