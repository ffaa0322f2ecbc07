"""SCI = (E · I + M) / R, market-based beside it, and the Impact Framework's own arithmetic on our manifest."""

import json
import shutil
import subprocess

import numpy as np
import pytest

import wattribute
from wattribute.carbon import Site, sci
from wattribute.errors import NoDataError, OptionError
from wattribute.model import Signal, counts
from wattribute.testing.recordings import RecordingBuilder

START_NS = 1_767_225_600_000_000_000  # 2026-01-01T00:00Z


def served(tokens=1000, **how):
    """3.6 MJ, which is 1 kWh, in two hours of 500 W, and so many tokens."""
    made = RecordingBuilder(epoch_ns=START_NS, **how).thread("serve 0..7200")
    made.counter("package 0", np.linspace(0, 3_600_000, 7201))
    count = Signal("tokens", "delta", counts.UNIT, np.array([3000]), np.array([float(tokens)]), location=0)
    return made.signals(count).recording()


def test_every_factor_by_hand():
    # (1 kWh × 1.5 × 100 g/kWh + 876.6 kg × 2 h / 4 years × 0.5) / 1000 tokens
    # 4 years = 35,064 h: 876,600 g × 2 / 35,064 × 0.5 = 25 g; (150 + 25) / 1000 = 0.175 g
    site = Site(pue=1.5, embodied_kg=876.6, lifetime_years=4, embodied_share=0.5)
    found = sci(served(), "tokens", intensity=100, site=site)
    assert found.energy_kwh.value == pytest.approx(1.5)
    assert found.g_per_kwh.value == pytest.approx(100)
    assert found.embodied_g.value == pytest.approx(25)
    assert found.count.value == 1000
    assert found.sci == pytest.approx(0.175)
    assert found.low <= found.sci <= found.high
    factors = (found.energy_kwh, found.g_per_kwh, found.embodied_g, found.count)
    assert all(one.source for one in factors)
    assert [one.uncertainty for one in factors] == [
        "range: that of the sensors", "no range: the source gives none", "no range: as given", "exact: a count",
    ]  # fmt: skip
    assert found.energy_kwh.low <= 1.5 <= found.energy_kwh.high
    assert not found.problems


def test_intensity_is_that_of_the_time(tmp_path):
    # 100 g/kWh in the first hour, 300 in the second, half a kWh each: 200 g over 1000 tokens
    table = tmp_path / "grid.csv"
    table.write_text("time,g_per_kwh\n2026-01-01T00:00Z,100\n2026-01-01T01:00Z,300\n2026-01-01T02:00Z,300\n")
    found = sci(served(), "tokens", intensity=str(table))
    assert found.sci == pytest.approx(0.2)
    assert found.g_per_kwh.value == pytest.approx(200)
    assert "slices of time" in found.g_per_kwh.source
    assert "M is 0" in found.problems[0]


def test_an_assumed_zone_widens_the_range():
    found = sci(served(), "tokens")
    assert found.low < 0.5 * found.sci < found.sci < found.high
    assert found.g_per_kwh.uncertainty.startswith("range: 90 % of countries")
    assert found.g_per_kwh.low < found.g_per_kwh.value < found.g_per_kwh.high


def test_nothing_to_divide_by():
    with pytest.raises(NoDataError, match="no tokens were counted"):
        sci(served(0), "tokens", intensity=1)
    with pytest.raises(OptionError, match="per unit of work"):
        sci(served(), intensity=1)
    with pytest.raises(OptionError, match="did you mean 'tokens'"):
        sci(served(), "token", intensity=1)


def test_the_verb_shows_both_scopes_apart(command, tmp_path):
    wattribute.save(served(), tmp_path / "a.watt")
    words = ("carbon", "a.watt", "--intensity", "100", "--sci", "--per", "tokens", "--embodied-kg", "876.6")
    done = command(*words, "--market", "20", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "150 mg CO2e per tokens" in done.stdout  # (100 + 50) / 1000
    shown = " ".join(done.stdout.split())
    assert "no range: as given" in shown
    assert "exact: a count" in shown
    assert "20.0 mg CO2e of the energy, no SCI" in done.stdout
    told = json.loads(command(*words, "--market", "20", "--format", "json").stdout)
    assert told["sci"]["sci"] == pytest.approx(0.15)
    assert told["co2e_g"] == pytest.approx(100)
    assert told["market"]["co2e_g"] == pytest.approx(20)
    shown = command(*(word for word in words if word != "--sci")).stdout
    assert "100 mg of the energy (1,000 counted)" in shown  # without the hardware
    shown = " ".join(command("carbon", "a.watt", "--per", "tokens").stdout.split())
    assert "473 mg (36.7 … 784) of the energy" in shown  # an assumed zone
    done = command("carbon", "a.watt", "--sci")
    assert done.returncode == 2 or "--per UNIT" in done.stderr
    assert "--market gb" in command("carbon", "a.watt", "--market", "gb").stderr


def manifest(folder, **how):
    table = folder / "grid.csv"
    table.write_text("time,g_per_kwh\n2026-01-01T00:00Z,100\n2026-01-01T01:00Z,317.5\n2026-01-01T02:00Z,300\n")
    found = wattribute.attribute(served(700), by="frame", per="tokens")
    given = {"intensity": str(table), "site": Site(pue=1.13, embodied_kg=876.6, embodied_share=0.25)} | how
    wattribute.write(found, folder / "run.if.yml", **given)
    return sci(found, **given)


def test_a_manifest_holds_what_the_sci_is_made_of(tmp_path):
    yaml = pytest.importorskip("yaml", reason="the docker extra is not installed")
    found = manifest(tmp_path)
    content = yaml.safe_load((tmp_path / "run.if.yml").read_text())
    inputs = content["tree"]["children"]["run"]["inputs"]
    assert len(inputs) == 2
    whole = 0.0
    for one in inputs:
        operational = one["energy-machine"] * one["pue"] * one["grid/carbon-intensity"]
        made = one["device/emissions-embodied"] * one["device/time-share"] * one["device/resource-share"]
        whole += (operational + made) / one["functional-units"]
    assert whole == pytest.approx(found.sci, rel=1e-9)


@pytest.fixture(scope="module")
def if_run(tmp_path_factory):
    """The Impact Framework's program: the one that is installed, else that of npm."""
    if installed := shutil.which("if-run"):
        return installed
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed: the Impact Framework comes from it")
    folder = tmp_path_factory.mktemp("if")
    quick = ["--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=0", "--fetch-timeout=20000"]
    command = [npm, "install", "--prefix", folder, "--loglevel=error", *quick, "@grnsft/if@1"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    program = folder / "node_modules" / ".bin" / "if-run"
    if done.returncode or not program.exists():
        pytest.skip(f"npm cannot install @grnsft/if here: {done.stderr[-200:]}")
    return program


def test_if_run_computes_our_sci(tmp_path, if_run):
    yaml = pytest.importorskip("yaml", reason="the docker extra is not installed")
    found = manifest(tmp_path)
    done = subprocess.run([if_run, "-m", "run.if.yml"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    content = yaml.safe_load(done.stdout.partition("# start")[2] or done.stdout)
    assert content["tree"]["aggregated"]["sci"] == pytest.approx(found.sci, rel=1e-6)
    assert content["tree"]["aggregated"]["carbon"] == pytest.approx(found.sci * 700, rel=1e-6)
