"""Statuses of messages: what is added, what is dead, power from counters, grams by the intensity given."""

from types import SimpleNamespace

import pytest

from wattribute.recorders import regions
from wattribute.sessions import status as status_module
from wattribute.sessions.status import CountFolder, StatusBuilder
from wattribute.views.console_monitor import line

S = 1_000_000_000


def channel(name, kind, period_s=0.1, **properties):
    return {"device": {"name": name, "kind": kind, "properties": properties}, "period_s": period_s}


def about(**meters):
    return {"host": "here", "meters": [{"name": name, "channels": channels} for name, channels in meters.items()]}


def row(device, energy_j=None, counted_s=0.0, estimated=False, **more):
    counted = {} if energy_j is None else {"energy_j": energy_j, "counted_at": int(counted_s * S)}
    return {"device": device, "at": int(counted_s * S), "estimated": estimated, **counted, **more}


def status_of(machine, at_s, *rows):
    return machine({"live": list(rows), "at": int(at_s * S), "problems": []})


def test_power_from_a_counter_is_its_slope_between_its_updates():
    machine = StatusBuilder(about(rapl=[channel("package 0", "cpu")]), 10 * S)
    first = status_of(machine, 11, row("package 0", 90.0, 10.9))
    assert first.power_w == pytest.approx(100)  # 90 J in 0.9 s
    assert first.elapsed_s == pytest.approx(1.0)
    second = status_of(machine, 12, row("package 0", 290.0, 11.9))
    assert (second.power_w, second.energy_j) == (pytest.approx(200), 290.0)  # 200 J in 1 s
    same = status_of(machine, 12.05, row("package 0", 290.5, 11.95))
    assert same.power_w == pytest.approx(200)  # 50 ms say nothing about power


def test_a_device_inside_another_is_shown_and_not_added():
    machine = StatusBuilder(about(craypm=[channel("node", "node"), channel("accel0", "gpu")]), 0)
    found = status_of(machine, 2, row("node", 900.0, 1.0), row("accel0", 400.0, 1.0))
    assert found.energy_j == 900.0
    assert {r.device: r.apart for r in found.devices} == {"node": "", "accel0": "inside node"}


def test_an_estimate_is_not_added_to_measurements_and_vanishes_where_they_are_of_its_kind():
    meters = about(
        nvml=[channel("GPU 0", "gpu")],
        rapl=[channel("package 0", "cpu")],
        model=[channel("CPU", "cpu"), channel("memory", "dram")],
    )
    model = [row("CPU", 5.0, 1.0, estimated=True), row("memory", 7.0, 1.0, estimated=True)]
    alone = status_of(StatusBuilder(meters, 0), 2, *model)
    assert (alone.energy_j, alone.estimated) == (12.0, True)
    beside = status_of(StatusBuilder(meters, 0), 2, row("GPU 0", 100.0, 1.0), *model)
    assert (beside.energy_j, beside.estimated) == (100.0, False)
    assert [r.apart for r in beside.devices] == ["", *["an estimate beside measurements"] * 2]
    measured = status_of(StatusBuilder(meters, 0), 2, row("package 0", 50.0, 1.0), *model)
    assert [r.device for r in measured.devices] == ["package 0"]


def test_a_counter_that_does_not_move_is_dead_and_its_estimate_stays():
    machine = StatusBuilder(about(rapl=[channel("package 0", "cpu")], model=[channel("CPU", "cpu")]), 0)
    rows = row("package 0", 0.0, 0.0), row("CPU", 5.0, 1.0, estimated=True)
    early = status_of(machine, 0.2, *rows)
    assert [r.note for r in early.devices if r.device == "package 0"] == [""]
    late = status_of(machine, 2, *rows)
    dead = next(r for r in late.devices if r.device == "package 0")
    assert (dead.energy_j, dead.power_w) == (None, None)
    assert "dead" in dead.note
    assert (late.energy_j, late.estimated) == (5.0, True)


def test_grams_follow_the_intensity_of_the_moment(monkeypatch):
    """3.6 MJ (1 kWh) at 100 g/kWh, then another at 300: 400 g, not 2 kWh × 300."""
    now = iter([100.0, 300.0])

    def resolve(zone, intensity, start_ns, end_ns):
        step = SimpleNamespace(g_per_kwh=next(now), fallback=False, source="a test")
        return SimpleNamespace(profile=SimpleNamespace(steps=[step]), name="x", zone=None, assumed=False)

    monkeypatch.setattr("wattribute.carbon.intensity.resolve", resolve)
    grams = status_module.Grams(None, None)
    assert grams.take(3.6e6, 0).co2e_g == pytest.approx(100)
    assert grams.take(3.6e6, 599 * S).g_per_kwh == 100  # not asked again within ten minutes
    assert grams.take(7.2e6, 601 * S).co2e_g == pytest.approx(400)


def test_a_given_intensity_needs_no_zone():
    machine = StatusBuilder(about(rapl=[channel("package 0", "cpu")]), 0, intensity="250")
    found = status_of(machine, 2, row("package 0", 3600.0, 1.0))
    assert found.carbon.co2e_g == pytest.approx(0.25)  # 1 Wh × 250 g/kWh
    assert not found.carbon.assumed


def test_a_machine_without_proc_has_no_use(tmp_path):
    found = status_of(
        StatusBuilder(about(rapl=[channel("package 0", "cpu")]), 0, proc=tmp_path), 2, row("package 0", 3.0, 1.0)
    )
    assert (found.cpu_percent, found.memory_bytes) == (None, None)


def test_counts_of_a_long_run_are_read_once(tmp_path, monkeypatch):
    from wattribute.readers import region_files

    read = []
    whole = region_files.np.fromfile
    monkeypatch.setattr(
        region_files.np, "fromfile", lambda *args, **how: read.append(len(rows := whole(*args, **how))) or rows
    )
    counted = CountFolder(tmp_path, "tokens")
    regions.start(str(tmp_path))
    try:
        for second in range(1, 8):
            for _ in range(5000):
                regions.count("tokens", 2)
                regions.count("requests")
            assert counted.total() == 10_000 * second
        read.clear()
        assert counted.total() == 70_000
        assert counted.total() == 70_000
        assert sum(read) < 2 * 70_000  # of 70,000 records, and free room behind them
        read.clear()
        assert counted.total() == 70_000
        assert sum(read) < 10_000
    finally:
        regions.stop()


def test_energy_per_unit_of_work_now_and_since_the_start(tmp_path):
    regions.start(str(tmp_path))
    try:
        regions.count("tokens", 1000)  # before: not ours
        machine = StatusBuilder(about(rapl=[channel("package 0", "cpu")]), 0, counted=CountFolder(tmp_path, "tokens"))
        first = status_of(machine, 1, row("package 0", 50.0, 1.0))
        assert (first.count, first.j_per_unit, first.recent_j_per_unit) == (0, None, None)
        regions.count("tokens", 20)
        second = status_of(machine, 2, row("package 0", 100.0, 2.0))
        assert (second.count, second.j_per_unit, second.recent_j_per_unit) == (20, 5.0, 5.0)
        regions.count("tokens", 20)
        third = status_of(machine, 3, row("package 0", 300.0, 3.0))
        assert (third.count, third.j_per_unit, third.recent_j_per_unit) == (40, 7.5, 10.0)
        assert third.as_dict()["j_per_unit"] == 7.5
        each = f"{third.carbon.co2e_g / 40 * 1e6:.0f} µg"  # 300 J at the assumed intensity, over 40
        assert f"per tokens: 10.0 J now, 7.50 J, CO2e {each} since the start (40 counted)" in line(third)
    finally:
        regions.stop()
