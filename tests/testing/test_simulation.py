"""The simulator: its truth adds up, its sensors say what their parameters say, and a seed gives the same bits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattribute import attribute
from wattribute.errors import OptionError
from wattribute.testing.recordings import as_text
from wattribute.testing.simulation import Fault, SimulatedSensor, Simulation, Steps, Sum, Wave

RAMP = Steps([0, 1, 2, 3], [100, 200, 50])  # 100 + 200 + 50 J


def machine(seed=0, **sensor):
    """A GPU with two kernels, a package with nested spans and a tenant, a node around both, a mirror."""
    made = Simulation(length_s=10, seed=seed)
    gpu = made.device("GPU 0", floor_w=50).counter(**({"period_s": 0.1} | sensor))
    package = made.device("package 0", floor_w=20).counter(0.001, read_s=0.01)
    made.device("node", 40, contains=[gpu, package]).counter(0.1)
    made.mirror(gpu, "accel 0")
    made.stream(gpu, [("gemm", 1.0, 3.0, 250.0), ("reduce", 3.0, 4.0, 60.0), ("gemm", 5.0, 5.5, 250.0)])
    made.thread(package, [("main", 0.0, 10.0, 5.0), ("solve", 2.0, 4.0, 30.0), ("inner", 2.5, 3.0, 60.0)])
    made.tenant(package, "other", Wave(20, 5, 1.0, 0.5), cores=2)
    package.draw(Wave(3))
    return made


def values(sensor, power=RAMP, length_s=3.0, seed=0):
    generator = np.random.default_rng(seed)
    at = sensor.read_times_s(length_s, generator)
    return at, sensor.raw(power, at, generator) * sensor.quantum


# ------------------------------------------------------------------------------------------------------------- power


def test_integrals_by_hand():
    assert RAMP.energy_j(np.array([0, 0.5, 1, 2, 2.5, 3, 4])).tolist() == [0, 50, 100, 300, 325, 350, 400]
    assert RAMP.energy_j(-1.0) == -100  # the first step reaches on
    assert RAMP.power_w([0, 0.99, 1, 2.5, 9]).tolist() == [100, 100, 200, 50, 50]
    wave = Wave(400, 100, 0.5, 0.2)  # 400 W for 0.1 s of every 0.5 s
    assert wave.energy_j(1.0) == pytest.approx(2 * (40 + 40))
    assert Sum(RAMP, wave).energy_j(1.0) == pytest.approx(260)
    assert Steps.of(lambda s: 10 * s, 4.0, 0.5).energy_j(4.0) == pytest.approx(80)
    with pytest.raises(OptionError, match="edges that ascend"):
        Steps([0, 2, 1], [1, 2])


@given(st.lists(st.tuples(st.floats(0.01, 5), st.floats(0, 500)), min_size=1, max_size=8), st.floats(-3, 20))
def test_energy_is_the_integral_of_power(pieces, at):
    steps = Steps(np.concatenate([[0], np.cumsum([length for length, _ in pieces])]), [watts for _, watts in pieces])
    grid = np.linspace(0, at, 20_001)
    integral = steps.power_w((grid[1:] + grid[:-1]) / 2) @ np.diff(grid)
    assert steps.energy_j(at) == pytest.approx(integral, abs=500 * abs(at) / 1000 + 1e-6)


# ------------------------------------------------------------------------------------------------------------ sensors


def test_a_counter_updates_lags_and_counts_quanta():
    # updates at 0, 0.5, 1 …; read at 0, 0.4, 0.8 …: 0.4 shows the update of 0, 0.8 that of 0.5; 0.2 s late
    at, joules = values(SimulatedSensor("counter", "e", period_s=0.5, read_s=0.4, lag_s=0.2, start_j=0.0))
    expected = RAMP.energy_j(np.floor(at / 0.5 + 1e-9) * 0.5 - 0.2)
    assert joules == pytest.approx(expected, abs=2e-6)
    assert at[-1] == 3.0
    # 262 J wide, in steps of 1 J: 1000 + 350 J is 1350 mod 262 = 40
    assert values(SimulatedSensor("counter", "e", 1.0, quantum=1.0, wraps_at_j=262))[1].tolist() == [214, 52, 252, 40]
    # gain 1.1 and 10 W too much for 3 s
    assert values(SimulatedSensor("counter", "e", 3.0, gain=1.1, offset_w=10))[1][-1] == pytest.approx(1000 + 385 + 30)


def test_a_gauge_is_a_mean_over_its_window():
    # 0.5 s before 1.25 s lie 0.25 s at 100 W and 0.25 s at 200 W
    gauge = SimulatedSensor("gauge", "p", read_s=1.25, window_s=0.5, quantum=0.5)
    assert values(gauge)[1].tolist() == [100, 150, 50, 50]
    assert values(SimulatedSensor("gauge", "p", read_s=1.25, window_s=0.5, lag_s=0.25))[1][1] == pytest.approx(100)
    assert values(SimulatedSensor("gauge", "p", read_s=1.0))[1].tolist() == pytest.approx([100, 200, 50, 50])
    assert values(SimulatedSensor("gauge", "p", read_s=1.0, gain=0.5, offset_w=7))[1][0] == pytest.approx(57)


def test_a_low_pass_follows_a_step():
    # τ = 0.2 s after the step from 100 to 200 W at 1 s: 200 − 100 e^(−t/τ)
    at, watts = values(SimulatedSensor("gauge", "p", read_s=0.1, window_s=0.2, shape="low pass"), length_s=1.9)
    after = at > 1.0
    assert watts[after] == pytest.approx(200 - 100 * np.exp(-(at[after] - 1) / 0.2), rel=2e-3)
    with pytest.raises(OptionError, match="did you mean 'low pass'"):
        values(SimulatedSensor("gauge", "p", read_s=0.1, window_s=0.2, shape="lowpass"))


def test_noise_is_per_update_and_jitter_per_reading():
    noisy = SimulatedSensor("gauge", "p", period_s=0.5, read_s=0.1, noise_w=5.0, jitter_s=0.05, update_jitter_s=0.01)
    at, watts = values(noisy, Wave(100))
    assert len(np.unique(watts)) in (6, 7, 8)  # one value per update of 0.5 s
    assert 1 < np.std(watts) < 12
    assert (np.diff(at) > 0).all()
    assert len(np.unique(np.round(np.diff(at), 6))) > 20


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        # a reading per second of 1000 J + 100, 200, 50 J
        (Fault("dead", 1.0), [1000, 1100, 1100, 1100]),
        (Fault("frozen", 1.5, 2.5), [1000, 1100, 1100, 1350]),
        (Fault("reset", 1.5), [1000, 1100, 100, 150]),  # what it counted before 1.5 s is gone
        (Fault("backwards", 1.0, 2.0), [1000, 1100, 900, 950]),
        (Fault("gap", 0.5, 2.5), [1000, 1350]),
        (Fault("lost", 1.5), [1000, 1100]),
    ],
    ids=lambda case: case.kind if isinstance(case, Fault) else "",
)
def test_faults_of_a_counter(fault, expected):
    assert values(SimulatedSensor("counter", "e", 1.0, faults=(fault,)))[1].tolist() == pytest.approx(
        expected, abs=2e-6
    )


def test_faults_of_a_gauge():
    assert values(SimulatedSensor("gauge", "p", 1.0, faults=(Fault("dead", 0.5),)))[1].tolist() == [100, 0, 0, 0]
    assert values(SimulatedSensor("gauge", "p", 1.0, faults=(Fault("frozen", 0.5),)))[1].tolist() == [
        100,
        100,
        100,
        100,
    ]
    with pytest.raises(OptionError, match="did you mean 'frozen'"):
        Fault("frosen")


# ------------------------------------------------------------------------------------------------------------ machine


def test_the_truth_adds_up():
    run = machine().run()
    # gemm 2.5 s × 250 W; main is innermost for 8 s, solve for 1.5 s, inner for 0.5 s; the tenant is half high, half low
    assert run.frames_j == pytest.approx(
        {("GPU 0", "gemm"): 625, ("GPU 0", "reduce"): 60, ("package 0", "main"): 40, ("package 0", "solve"): 45,
         ("package 0", "inner"): 30}
    )  # fmt: skip
    assert run.tenants_j == pytest.approx({("package 0", "other"): 125})
    assert run.others_j == pytest.approx({"GPU 0": 0, "package 0": 30})
    for device in run.floor_j:
        parts = [joules for (at, _), joules in (*run.frames_j.items(), *run.tenants_j.items()) if at == device]
        assert sum(parts) + run.floor_j[device] + run.others_j[device] == pytest.approx(run.energy_j(device))
    assert run.energy_j("node") == pytest.approx(400 + run.energy_j("GPU 0") + run.energy_j("package 0"))
    assert run.energy_j("accel 0") == run.energy_j("GPU 0")
    assert run.energy_j("GPU 0", 1.0, 3.0) == pytest.approx(600)
    assert run.spans_j[0].tolist() == pytest.approx([500, 60, 125])


def test_attribution_of_an_ideal_counter_is_the_truth_under_the_rule():
    run = machine().run()
    rows = attribute(run.ideal(), by="device,frame").rows
    own = {(row["device"], row["frame"]): row["self_j"] for row in rows.to_dicts()}
    # one stream: kernels get what they drew and the floor of 50 W while they ran
    assert own["GPU 0", "gemm"] == pytest.approx(625 + 2.5 * 50)
    assert own["GPU 0", "reduce"] == pytest.approx(60 + 50)


def test_what_sensors_say_is_near_the_truth():
    run = machine(lag_s=0.02, noise_w=2.0, quantum=0.001).run()
    (gpu,) = attribute(run.recording, metric="energy").devices.filter(device="GPU 0").to_dicts()
    assert gpu["measured_j"] == pytest.approx(run.energy_j("GPU 0"), rel=0.01)
    signals = {signal.device: signal for signal in run.recording.signals if signal.device}
    assert np.array_equal(signals["accel 0"].values, signals["GPU 0"].values)
    assert signals["GPU 0"].latency_s == pytest.approx(0.12)


def test_cpu_time_of_threads_and_tenants():
    cpu, others = (signal for signal in machine().run().recording.signals if signal.unit == "s")
    assert (cpu.location, float(cpu.values[-1] * cpu.scale)) == (1, 10.0)
    assert (others.name, float(others.values[-1] * others.scale)) == ("cpu time of other processes", 20.0)


def test_a_seed_gives_the_same_bits():
    noisy = {"noise_w": 5.0, "jitter_s": 0.01, "update_jitter_s": 0.01}
    texts = [as_text(machine(seed, **noisy).run().recording) for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]
    made = machine(1, **noisy)
    made.run()
    assert as_text(made.run().recording) == texts[0]


def test_a_hundred_thousand_spans_take_no_python_loop_per_reading():
    made = Simulation(length_s=1000)
    gpu = made.device("GPU 0", 50).counter(0.01)
    made.stream(gpu, [("k", i * 0.01, i * 0.01 + 0.005, 200.0) for i in range(100_000)])
    run = made.run()
    assert len(run.recording.signals[0]) == 100_001
    assert run.energy_j("GPU 0") == pytest.approx(50_000 + 100_000)


def test_a_second_host_is_in_the_name_of_its_devices():
    made = Simulation(length_s=1, host="a")
    for host in ("a", "b"):
        made.thread(made.device("package 0", 10, host=host).counter(0.1), [("f", 0.0, 1.0, 5.0)], f"rank on {host}")
    run = made.run()
    assert run.energy_j("package 0") == run.energy_j("b/package 0") == 15
    assert attribute(run.recording, by="host").rows["self_j"].to_list() == pytest.approx([15, 15])
