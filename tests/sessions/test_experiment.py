"""Many runs in one table: statistics, groups, what is left out, intensities that differ, one intensity for all."""

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.readers.tables_of_runs import CODECARBON, codecarbon_row, write
from wattribute.errors import NoDataError, OptionError
from wattribute.sessions.experiment import described, experiment, run_table

CANADA, INDIA = 4.452734855745869e-07, 1.1011842716001724e-05  # kg: means of the two countries, from real runs


def train(folder, name="train.csv"):
    """22 runs in Canada and 28 in India in turns, about 15 mWh each, with the means of emissions of real ones."""
    rows = []
    for at in range(50):
        canada = at % 2 == 0 and at < 44
        kg, figure, country = (CANADA, 0.029, "Canada") if canada else (INDIA, 0.718, "India")
        wobble = 1 + (at % 4 // 2 * 2 - 1) * 0.01  # evens out in both groups
        kwh = kg / figure * wobble
        rows.append(codecarbon_row(20 * at, 10.8 * wobble, kwh, kg_per_kwh=figure, country=country))
    return write(folder / name, CODECARBON, rows)


@given(st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=40))
def test_statistics_are_those_of_numpy(values):
    told = described(values)
    data = np.array(values)
    assert told["mean"] == pytest.approx(data.mean())
    wanted = np.quantile(data, [0.25, 0.5, 0.75])
    assert [told[key] for key in ("q25", "median", "q75")] == pytest.approx(list(wanted))
    assert (told["min"], told["max"], told["n"]) == (min(values), max(values), len(values))
    if len(values) > 1:
        assert told["std"] == pytest.approx(data.std(ddof=1), abs=1e-12 * data.max())
        assert told["ci95_low"] <= told["mean"] <= told["ci95_high"]


def test_locations_that_differ_are_a_warning_and_the_mean_is_still_right(tmp_path):
    told = experiment(train(tmp_path)).summary()
    (group,) = told["groups"]
    assert group["n"] == 50
    assert group["co2e_kg"]["mean"] == pytest.approx((22 * CANADA + 28 * INDIA) / 50, rel=1e-3)
    (note,) = told["notes"]
    assert "22 in Canada (29 g/kWh), 28 in India (718 g/kWh)" in note
    assert "compare nothing" in note


def test_by_place_each_has_its_own_mean(tmp_path):
    groups = {group["group"]: group for group in experiment(train(tmp_path)).summary(["place"])["groups"]}
    assert {name: group["n"] for name, group in groups.items()} == {"place=Canada": 22, "place=India": 28}
    assert groups["place=India"]["co2e_kg"]["mean"] == pytest.approx(INDIA, rel=1e-3)


def test_one_intensity_recomputes_every_run(tmp_path):
    found = experiment(train(tmp_path), intensity=100)
    told = found.summary()
    assert told["notes"] == []
    for run in found.runs:
        assert run.co2e_g == pytest.approx(run.energy_j / 3.6e6 * 100)
    in_france = experiment(train(tmp_path, "again.csv"), zone="FR")
    assert {run.place for run in in_france.runs} == {"France"}


def test_units_agree_with_one_another(tmp_path):
    (group,) = experiment(train(tmp_path)).summary()["groups"]
    assert group["energy_j"]["sum"] == pytest.approx(group["energy_kwh"]["sum"] * 3.6e6)
    run = experiment(tmp_path / "train.csv").runs[0]
    assert run.co2e_g / run.duration_s == pytest.approx(run.g_per_kwh * run.energy_j / 3.6e6 / run.duration_s)


def test_files_are_told_apart_and_so_are_their_warnings(tmp_path):
    train(tmp_path, "a.csv")
    write(tmp_path / "b.csv", CODECARBON, [codecarbon_row(20, 1.0, 1e-5)])
    told = experiment(tmp_path).summary()
    assert [group["group"] for group in told["groups"]] == ["file=a", "file=b"]
    assert told["groups"][1]["duration_s"]["std"] is None  # one run has no spread
    (note,) = told["notes"]
    assert note.startswith("file=a: the runs' locations differ")
    with pytest.raises(OptionError, match="did you mean 'file'"):
        experiment(tmp_path).summary(["fiel"])


def recording(folder, name, energy_j=100.0, exit_code=0, labels=None, state="complete"):
    """A finished recording as far as ``summary`` looks at it."""
    path = folder / f"{name}.watt"
    path.mkdir(parents=True)
    carbon = {"g_per_kwh": 36.0, "name": "X"}
    told = {"duration_s": 2.0, "energy_j": energy_j, "co2e_g": 0.001, "exit_code": exit_code, "estimated": False}
    (path / "summary.json").write_text(json.dumps({**told, "carbon": carbon}))
    about = {"format": "wattribute-recording", "version": 1, "state": state, "clock": {"epoch_ns": 10**18}}
    about |= {"devices": [], "signals": [], "topology": [], "missing": []}
    about["metadata"] = {"labels": labels or {}, "run": {"start_ticks": 5}}
    (path / "wattribute.json").write_text(json.dumps(about))


def test_runs_that_failed_or_broke_are_kept_marked_and_left_out(tmp_path):
    recording(tmp_path, "good", 100.0, labels={"mode": "a"})
    recording(tmp_path, "better", 50.0, labels={"mode": "a"})
    recording(tmp_path, "failed", 9e9, exit_code=3, labels={"mode": "a"})
    recording(tmp_path, "unseen", None)
    recording(tmp_path, "partial", 9e9, state="partial")
    (tmp_path / "empty.watt").mkdir()
    (tmp_path / "notes.txt").write_text("not a recording")
    (tmp_path / "power.csv").write_text("time_s,power_w\n0,1\n1,2\n")  # readable, but no table of runs
    found = experiment(tmp_path)
    why = {run.name: run.left_out for run in found.runs}
    assert {name for name, words in why.items() if not words} == {"good", "better"}
    assert "exit code is 3" in why["failed"]
    assert "resolve" in why["unseen"]
    assert "not written to the end" in why["partial"]
    assert "unrecognised format" in why["empty"]
    told = found.summary()
    assert (told["runs"], told["counted"]) == (6, 2)
    assert told["groups"][0]["energy_j"]["mean"] == 75.0
    assert sum("left out" in note for note in told["notes"]) == 4
    table = run_table(found)
    assert table.height == 6
    assert table.filter(table["left_out"] == "")["energy_j"].sum() == 150.0


def test_nothing_to_count_is_told(tmp_path):
    recording(tmp_path, "failed", exit_code=1)
    with pytest.raises(NoDataError, match="exit code is 1"):
        experiment(tmp_path).summary()


def counted_run(folder, name, energy_j, tokens):
    """A finished run as ``run --experiment`` leaves one, with its summary."""
    from wattribute import archive
    from wattribute.model import Summary
    from wattribute.testing.recordings import RecordingBuilder

    recording = RecordingBuilder().thread("serve 0..10").counter("package 0", [0, energy_j], every=10).recording()
    archive.save(recording, folder / name)
    summary = Summary(10.0, exit_code=0, energy_j=energy_j, co2e_g=energy_j / 10, counts={"tokens": tokens})
    (folder / name / "summary.json").write_text(json.dumps(summary.as_dict()))


def test_statistics_per_unit_of_work(tmp_path):
    counted_run(tmp_path, "a.watt", 100.0, 10)  # 10 J, 1 g, 1 s per token
    counted_run(tmp_path, "b.watt", 120.0, 20)  # 6 J, 0.6 g, 0.5 s
    found = experiment([tmp_path])
    (group,) = found.summary(per="tokens")["groups"]
    assert group["energy_j_per_unit"]["mean"] == pytest.approx(8.0)
    assert group["co2e_g_per_unit"]["mean"] == pytest.approx(0.8)
    assert group["s_per_unit"]["mean"] == pytest.approx(0.75)
    # t(0.975, 1) = 12.706, std of (10, 6) = 2.828, over √2: ± 25.41
    assert group["energy_j_per_unit"]["ci95_high"] == pytest.approx(8 + 25.41, abs=0.01)
    assert run_table(found)["count_tokens"].to_list() == [10, 20]
    with pytest.raises(OptionError, match="did you mean 'tokens'"):
        found.summary(per="token")


def test_runs_without_a_meter_count_by_their_time(tmp_path):
    (tmp_path / "p.py").write_text("sum(range(100_000))\n")
    for name in ("a.prof", "b.prof"):
        subprocess.run([sys.executable, "-m", "cProfile", "-o", name, "p.py"], cwd=tmp_path, check=True)
    found = experiment([tmp_path / "a.prof", tmp_path / "b.prof"])
    assert [run.left_out for run in found.runs] == ["", ""]
    assert all(run.duration_s > 0 and run.energy_j is None for run in found.runs)
    assert any("no energy was metered" in remark for remark in found.remarks)
    assert not found.notes
