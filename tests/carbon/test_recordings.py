"""Emissions of recordings and attributions: what is summed, what is not, and grams per row that add up."""

import json
import re
import sys
from dataclasses import replace

import numpy as np
import pytest

from wattribute import attribute, save
from wattribute.carbon import Site, World, emissions, with_emissions
from wattribute.carbon.cache import Cache
from wattribute.carbon.recordings import counted
from wattribute.cli import main
from wattribute.errors import OptionError
from wattribute.model import Device, Signal
from wattribute.model.constants import COMMAND_CPU_TIME, COMMAND_SHARE, OTHERS_CPU_TIME
from wattribute.testing import recordings
from wattribute.testing.recordings import RecordingBuilder

S = 10**9
T0 = 1_725_458_400 * S  # 2024-09-04T14:00Z
HALF_HOUR = 1800 * S


def counter(device, readings, name="energy", **more):
    times, values = zip(*readings, strict=True)
    return recordings.counter(values, np.array(times) * S, name, device=device, host="n0", **more)


def recording(epoch_ns=T0, devices=None, signals=None):
    """An hour and a half: "early" in the first half hour, "late" in the last, nothing in the middle."""
    made = RecordingBuilder(S, epoch_ns=epoch_ns, length_ticks=5400 * S).host("n0").process("program")
    made.thread("early 0s..1800s, late 3600s..5400s", "MainThread")
    if signals is not None:
        return made.recording(signals=signals, devices=devices)
    # 1 kWh, 0.5 kWh and 2 kWh per half hour
    return made.counter("package 0", [0, 3_600_000, 5_400_000, 12_600_000], every=HALF_HOUR).recording()


@pytest.fixture
def grid_table(tmp_path):
    path = tmp_path / "grid.csv"
    path.write_text("time,g_per_kwh\n2024-09-04T14:00Z,100\n2024-09-04T14:30Z,200\n2024-09-04T15:00Z,400\n")
    return str(path)


@pytest.fixture
def offline(tmp_path):
    return World(cache=Cache(tmp_path / "cache"), offline=True, zone=None)


def test_a_recording_sliced_by_time(grid_table, offline):
    result = emissions(recording(), intensity=grid_table, outside=offline)
    # 1 × 100 + 0.5 × 200 + 2 × 400 = 1,000 g; the mean of the three would say 3.5 × 233.3 = 816.7 g
    assert result.co2e_g == pytest.approx(1000)
    assert [part.energy_j for part in result.slices] == pytest.approx([3.6e6, 1.8e6, 7.2e6])


def test_a_part_of_the_time_emits_its_part(grid_table, offline):
    # the first half hour uses 1 kWh at 100 g; of the second, of 0.5 kWh at 200 g, a half
    part = attribute(recording(), end=2700.0)
    assert emissions(part, intensity=grid_table, outside=offline).co2e_g == pytest.approx(100 + 0.25 * 200)
    assert emissions(attribute(recording()), intensity=grid_table, outside=offline).co2e_g == pytest.approx(1000)


def test_grams_of_every_row_by_the_hour_it_ran(grid_table, offline):
    attribution = attribute(recording())
    priced, whole = with_emissions(attribution, intensity=grid_table, site=Site(pue=1.5), outside=offline)
    grams = dict(priced.rows.select("frame", "co2e_g").iter_rows())
    assert grams == {"early": pytest.approx(150), "late": pytest.approx(1200)}
    assert priced.devices["co2e_g"].to_list() == pytest.approx([1500])
    assert whole.co2e_g == pytest.approx(1500)
    assert priced.rows.drop("co2e_g").equals(attribution.rows)


def test_grams_per_unit_of_work(grid_table, offline):
    # 200 tokens in the early one, which used 1 kWh at 100 g/kWh; the late one counted nothing
    tokens = Signal("tokens", "delta", "#", np.array([60 * S]), np.array([200.0]), location=0)
    made = recording()
    made = replace(made, signals=(*made.signals, tokens))
    priced, _ = with_emissions(attribute(made, by="frame", per="tokens"), intensity=grid_table, outside=offline)
    rows = {row["frame"]: row for row in priced.rows.to_dicts()}
    early = rows["early"]
    assert early["co2e_g_per_unit"] == pytest.approx(100 / 200)
    ratio = early["j_per_unit_high"] / early["j_per_unit"]
    assert early["co2e_g_per_unit_high"] == pytest.approx(early["co2e_g_per_unit"] * ratio)
    assert rows["late"]["co2e_g_per_unit"] is None
    assert "_total_co2e_g" not in priced.rows.columns


def test_grams_at_one_figure(offline):
    priced, whole = with_emissions(attribute(recording()), zone="FR", outside=offline)
    assert sum(priced.rows["co2e_g"]) == pytest.approx(3 * 44.18)
    assert whole.co2e_g == pytest.approx(3.5 * 44.18)


def test_grams_need_joules():
    bytes_read = replace(recording().signals[0], unit="B", name="bytes")
    other = recording(signals=(bytes_read,), devices=(Device("package 0", "cpu", "n0"),))
    with pytest.raises(OptionError, match="grams need joules"):
        with_emissions(attribute(other, metric="bytes"), zone="FR")


def test_what_another_device_includes_is_not_added(offline):
    one_kwh = [(0, 0), (5400, 3_600_000)]  # two readings: too few to look mirrored
    devices = (
        Device("package 0", "cpu", "n0"),
        Device("core 0", "core", "n0"),
        Device("dram 0", "dram", "n0"),
        Device("psys", "psys", "n0"),
        Device("chip", "cpu", "n0", {"apart": "metered by another sensor"}),
    )
    signals = tuple(counter(device.name, one_kwh) for device in devices)
    whole = recording(devices=devices, signals=signals)
    assert [one.device.name for one, _ in counted(whole)] == ["package 0", "dram 0"]
    assert emissions(whole, intensity=100, outside=offline).co2e_g == pytest.approx(200)
    four_kwh = counter("node", [(at, 4 * joules) for at, joules in one_kwh])
    node = recording(devices=(*devices, Device("node", "node", "n0")), signals=(*signals, four_kwh))
    assert [one.device.name for one, _ in counted(node)] == ["package 0", "dram 0", "rest of node"]
    assert emissions(node, intensity=100, outside=offline).co2e_g == pytest.approx(400)


def test_a_mirrored_counter_and_an_estimate_are_not_added():
    readings = [(0, 0), (10, 70), (20, 90)]
    devices = (Device("package 0", "cpu", "n0"), Device("package 1", "cpu", "n0"), Device("dram 0", "dram", "n0"))
    signals = (
        counter("package 0", readings),
        counter("package 1", [(at, 5000 + value) for at, value in readings]),
        counter("dram 0", [(0, 0), (20, 8)], estimated=True),
    )
    whole = recording(devices=devices, signals=signals)
    assert [one.device.name for one, _ in counted(whole)] == ["package 0"]
    guessed = recording(devices=devices[2:], signals=signals[2:])
    assert [one.device.name for one, _ in counted(guessed)] == ["dram 0"]
    # two cards at the same steady power are two cards: their ids say so
    cards = tuple(Device(f"GPU {i}", "gpu", "n0", {"uuid": f"GPU-{i}"}) for i in range(2))
    both = recording(devices=cards, signals=tuple(counter(card.name, readings) for card in cards))
    assert len(counted(both)) == 2


def test_of_a_command_its_share_counts_and_it_is_said(tmp_path, carbon):
    devices = (Device("package 0", "cpu", "n0"), Device("GPU 0", "gpu", "n0"), Device("GPU 1", "gpu", "n0"))
    signals = tuple(counter(device.name, [(0, 0), (5400, 1000)]) for device in devices)
    made = recording(devices=devices, signals=signals)
    clocks = (("", COMMAND_CPU_TIME, 10), ("", OTHERS_CPU_TIME, 30), ("GPU 0", COMMAND_SHARE, 0.5))
    told = [replace(counter(device, [(0, 0), (5400, end)]), name=name, unit="s") for device, name, end in clocks]
    told[-1] = replace(told[-1], kind="gauge", unit="%", values=np.array([50, 50]))
    made = replace(made, signals=(*signals, *told))
    of_command = replace(made, metadata={"scope": "process"})
    # a quarter of the CPU, half of GPU 0, all of GPU 1 as nobody knows: 250 + 500 + 1000
    assert emissions(of_command, intensity=100).energy_j == pytest.approx(1750)
    assert emissions(made, intensity=100).energy_j == pytest.approx(3000)
    assert emissions(attribute(of_command), intensity=100).energy_j == pytest.approx(1750)
    assert emissions(attribute(of_command, scope="machine"), intensity=100).energy_j == pytest.approx(3000)
    save(of_command, tmp_path / "x.watt")
    said = " ".join(carbon(str(tmp_path / "x.watt"))[1].split())
    assert "1.75 kJ ± 0.33 in 1 h 30 min, the command's share of the machine (--scope process)" in said


def test_devices_with_readings_at_other_times(tmp_path, offline):
    devices = (Device("GPU 0", "gpu", "n0"), Device("GPU 1", "gpu", "n0"))
    signals = (counter("GPU 0", [(0, 0), (10, 100)]), counter("GPU 1", [(5, 7), (15, 57)]))
    table = tmp_path / "grid.csv"
    table.write_text("time,g_per_kwh\n" + "".join(f"2024-09-04T14:00:{s:02}Z,{100 + s}\n" for s in (0, 5, 10)))
    found = emissions(recording(devices=devices, signals=signals), intensity=str(table), outside=offline)
    # 0 s: 0; 5 s: 50 + 0; 10 s: 100 + 25; 15 s: 100 + 50
    assert [part.energy_j for part in found.slices] == pytest.approx([50, 75, 25])
    assert found.duration_s == 15


def test_a_recording_without_a_wall_clock(grid_table, offline):
    bare = recording(epoch_ns=None)
    assert emissions(bare, intensity=grid_table, outside=offline).fallback
    given = emissions(bare, intensity=grid_table, start="2024-09-04T14:00Z", outside=offline)
    assert given.co2e_g == pytest.approx(1000)


@pytest.fixture
def carbon(monkeypatch, capsys):
    """The verb, in this process: (exit code, stdout, stderr)."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["wattribute", "carbon", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code or 0, *capsys.readouterr()

    return run


def test_an_old_recording_computed_anew(tmp_path, grid_table, carbon):
    save(recording(), tmp_path / "old.watt")
    code, out, error = carbon(str(tmp_path / "old.watt"), "--zone", "FR", "--format", "json", "--price", "0.2")
    assert (code, error) == (0, "")
    assert json.loads(out)["co2e_g"] == pytest.approx(3.5 * 44.18)
    assert json.loads(out)["cost"] == pytest.approx(0.7)
    _, out, _ = carbon(str(tmp_path / "old.watt"), "--intensity", grid_table, "--format", "json")
    assert json.loads(out)["co2e_g"] == pytest.approx(1000)


def test_the_table_says_what_was_assumed(tmp_path, carbon):
    save(recording(), tmp_path / "old.watt")
    _, text, _ = carbon(str(tmp_path / "old.watt"))
    assert "assumed, name yours with --zone" in text
    assert "World average" in text
    assert "90 % of countries" in text
    assert "CC BY 4.0" in text


def test_grams_have_the_range_of_an_estimate(tmp_path, carbon):
    """± 50 % of the energy are ± 50 % of the grams, in a zone that is known."""
    made = recording()
    guessed = [replace(s, estimated=True, gain_error=0.5) if s.unit in ("J", "W") else s for s in made.signals]
    save(replace(made, signals=tuple(guessed)), tmp_path / "old.watt")
    _, out, _ = carbon(str(tmp_path / "old.watt"), "--zone", "FR", "--format", "json")
    found = json.loads(out)
    assert (found["co2e_low_g"], found["co2e_high_g"]) == pytest.approx((0.5 * found["co2e_g"], 1.5 * found["co2e_g"]))
    _, text, _ = carbon(str(tmp_path / "old.watt"), "--zone", "FR")
    assert re.search(r"CO2e +155 g ± 77 estimated", text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("--zone", "Atlantis"), "unknown zone 'Atlantis'"), (("--pue", "0.5"), "PUE of 0.5"),
     (("--intensity", "nowhere.csv"), "file not found"), (("--start", "yesterday"), "'yesterday' is not a time")],
)  # fmt: skip
def test_wrong_options_are_one_line(tmp_path, carbon, arguments, message):
    save(recording(epoch_ns=None), tmp_path / "old.watt")
    code, out, error = carbon(str(tmp_path / "old.watt"), *arguments)
    assert (code, out) == (1, "")
    assert message in error
    assert len(error.splitlines()) == 1


def test_attribute_adds_grams(tmp_path, monkeypatch, capsys):
    save(recording(), tmp_path / "old.watt")
    path = str(tmp_path / "old.watt")

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["wattribute", "attribute", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code or 0, *capsys.readouterr()

    code, out, _ = run(path, "--zone", "FR", "--format", "json")
    assert code == 0
    grams = {row["frame"]: row["co2e_g"] for row in json.loads(out)["rows"]}
    assert grams == {"early": pytest.approx(44.18), "late": pytest.approx(2 * 44.18)}
    code, out, _ = run(path, "--zone", "FR")
    assert "CO2e" in out
    assert "44.2 g" in out
    code, _, error = run(path, path, "--zone", "FR")
    assert code == 1
    assert "one recording at a time" in error


def test_a_trace_at_a_given_hour(grid_table, offline):
    """The sample has no wall clock; its energy counters go through the same alignment as attribution."""
    from wattribute import read, samples

    trace = read(samples.path("trace"))
    whole = emissions(trace, intensity=grid_table, start="2024-09-04T14:10Z", outside=offline)
    assert whole.energy_j == pytest.approx(sum(energy.measured for _, energy in counted(trace)), rel=1e-12)
    assert whole.co2e_g == pytest.approx(whole.energy_j / 3.6e6 * 100)


@pytest.mark.parametrize("estimated", [False, True])
def test_estimated_energy_and_its_grams_say_so(tmp_path, monkeypatch, capsys, estimated):
    signals = (replace(recording().signals[0], estimated=estimated),)
    save(recording(signals=signals, devices=(Device("package 0", "cpu", "n0"),)), tmp_path / "x.watt")
    monkeypatch.setattr(sys, "argv", ["wattribute", "carbon", str(tmp_path / "x.watt"), "--zone", "FR", "--price", "1"])
    with pytest.raises(SystemExit):
        main()
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert {name: "estimated" in lines[name] for name in ("energy", "CO2e", "cost")} == dict.fromkeys(
        ("energy", "CO2e", "cost"), estimated
    )
