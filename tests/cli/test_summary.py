"""``run --experiment --label`` and ``summary``: appended by several at once, read back, wrong flags told."""

import csv
import io
import json
import subprocess
import sys

import pytest

import wattribute

WATTRIBUTE = [sys.executable, "-m", "wattribute"]


def run(folder, *arguments, **how):
    how = {"cwd": folder, "capture_output": True, "text": True} | how
    return subprocess.run([*WATTRIBUTE, *map(str, arguments)], **how)


@pytest.fixture(scope="module")
def series(tmp_path_factory):
    """Two labels, appended by two processes at the same time; one more run that fails."""
    folder = tmp_path_factory.mktemp("series")
    arguments = [*WATTRIBUTE, "run", "--quiet", "--meters", "model", "--repeat", "2", "--experiment", "runs dir"]
    commands = [[*arguments, "--label", f"mode={mode}", "--", "sleep", "0.3"] for mode in ("a", "b [red]")]
    for process in [subprocess.Popen(command, cwd=folder) for command in commands]:
        assert process.wait() == 0
    assert run(folder, "run", "-q", "--label", "mode=a", "--experiment", "runs dir", "--", "false").returncode == 1
    return folder


def test_every_run_is_a_recording_with_its_labels(series):
    paths = sorted((series / "runs dir").iterdir())
    assert len(paths) == 5
    labels = [wattribute.read(path).metadata["labels"] for path in paths]
    assert sorted(each["mode"] for each in labels) == ["a", "a", "a", "b [red]", "b [red]"]


def test_the_table_names_every_group_and_what_is_left_out(command, series):
    done = command("summary", "runs dir", cwd=series)
    assert done.returncode == 0, done.stderr
    assert "mode=a  2 runs" in done.stdout
    assert "mode=b [red]  2 runs" in done.stdout
    assert "4 runs, mean ± 95 %" in done.stdout
    assert "1 left out" in done.stdout
    assert "its exit code is 1" in done.stdout
    for line in done.stdout.splitlines():
        if line.startswith(("  energy", "  kWh", "  kg", "  g CO2e")):
            assert line.rstrip().endswith("est.")


def test_statistics_of_every_quantity_and_device(command, tmp_path, monkeypatch):
    """Power 4, 5 and 9 W: mean 6, median 5, quartiles 4.5 and 7, deviation sqrt((4 + 1 + 9) / 2)."""
    rows = [
        f"2024-05-01T12:0{i}:20,train,10,1e-6,{w},{w * 10 / 3.6e6},{w * 10 / 3.6e6}" for i, w in enumerate((4, 5, 9))
    ]
    head = "timestamp,project_name,duration,emissions,cpu_power,cpu_energy,energy_consumed"
    (tmp_path / "emissions.csv").write_text("\n".join([head, *rows]) + "\n")
    monkeypatch.setenv("COLUMNS", "120")
    done = command("summary", "emissions.csv", "--statistics", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (power,) = [line.split() for line in done.stdout.splitlines() if line.startswith("mean_w_CPU")]
    assert power == ["mean_w_CPU", "6", "2.6458", "4", "4.5", "5", "7", "9"]
    assert "quantity" not in command("summary", "emissions.csv").stdout


def test_json_and_csv_have_all_there_is(command, series):
    told = json.loads(command("summary", "runs dir", "--format", "json", "--zone", "FR", cwd=series).stdout)
    assert sorted((group["group"], group["n"]) for group in told["groups"]) == [("mode=a", 2), ("mode=b [red]", 2)]
    assert told["groups"][0]["places"] == {"France": 2}
    mean = told["groups"][0]["duration_s"]
    assert mean["q25"] <= mean["median"] <= mean["q75"]
    rows = list(csv.DictReader(io.StringIO(command("summary", "runs dir", "--format", "csv").stdout)))
    assert len(rows) == 5
    assert [row["label_mode"] for row in rows if row["left_out"]] == ["a"]
    assert float(rows[0]["energy_j"]) == pytest.approx(float(rows[0]["energy_kwh"]) * 3.6e6)


def test_an_experiment_can_be_compared_and_attributed(command, series):
    done = command("attribute", "runs dir", "--by", "run", "--format", "json", cwd=series)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "--label", "mode", "--", "true"], "KEY=VALUE"),
        (["run", "--label", "=x", "--", "true"], "KEY=VALUE"),
        (["run", "--label", "a b=x", "--", "true"], "KEY=VALUE (keys: letters, digits, _ . -)"),
        (["run", "--experiment", "d", "-o", "x.watt", "--", "true"], "leave out --output"),
        (["run", "--experiment", "d", "--compare", "--", "true", "---", "true"], "leave out --experiment"),
        (["run", "--experiment", "file/d", "--", "true"], "cannot be made"),
        (["summary", "nowhere"], "no such file or folder"),
        (["summary", "."], "unrecognised format"),
        (["summary", "file"], "the file is empty"),
    ],
)
def test_a_wrong_option_is_one_line_and_nothing_runs(command, tmp_path, arguments, words):
    (tmp_path / "file").write_text("")
    done = command(*arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_per_unit_of_work(command, tmp_path):
    from tests.sessions.test_experiment import counted_run

    counted_run(tmp_path, "a.watt", 100.0, 10)
    counted_run(tmp_path, "b.watt", 120.0, 20)
    done = command("summary", tmp_path, "--per", "tokens")
    assert (done.returncode, done.stderr) == (0, "")
    assert "J per tokens" in done.stdout
    assert "8.00 J" in done.stdout
