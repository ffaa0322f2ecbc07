"""``wattribute profile`` as a stranger would use it."""

import json
import subprocess
import sys

import pytest

import wattribute
from tests.recorders.profiled import constant_power

WORK = """
import sys, time
def works(s):
    end = time.monotonic() + s
    while time.monotonic() < end: pass
works(0.4)
print("out", *sys.argv[1:])
"""


def profile(folder, *arguments, **how):
    meter = constant_power(folder / "p.csv", length_s=30)
    command = [sys.executable, "-m", "wattribute", "profile", "--meters", meter, *map(str, arguments)]
    how = {"cwd": folder, "capture_output": True, "text": True, "timeout": 60} | how
    return subprocess.run(command, **how)


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "odd [red]name.py"
    path.write_text(WORK)
    return path


def test_the_table_goes_to_stderr_and_the_rest_is_the_program_s(tmp_path, script):
    done = profile(tmp_path, "-o", "x.watt", script, "-o", "--mode", "a b")
    assert (done.returncode, done.stdout) == (0, "out -o --mode a b\n")
    assert "works" in done.stderr
    assert "[red]name.py:3" in done.stderr
    assert "package 0" in done.stderr
    assert wattribute.read(tmp_path / "x.watt").metadata["profile"]["mode"] == "sample"


def test_rows_as_json_have_name_file_and_line_apart(tmp_path, script):
    done = profile(tmp_path, "--format", "json", "-o", "rows.json", "--mode", "trace", script)
    assert done.returncode == 0
    assert done.stderr == ""
    told = json.loads((tmp_path / "rows.json").read_text())
    row = next(row for row in told["rows"] if row["frame"] == "works")
    assert (row["file"], row["line"], row["calls"]) == (str(script), 3, 1)
    assert row["self_j"] == pytest.approx(40, rel=0.3)
    assert row["self_low_j"] <= row["self_j"] <= row["self_high_j"]
    assert {"self_cpu_s", "total_cpu_s", "self_ns"} <= row.keys()
    (device,) = told["devices"]
    assert sum(r["self_j"] for r in told["rows"]) + device["idle_j"] == pytest.approx(device["measured_j"], rel=1e-9)
    assert not list(tmp_path.glob("*.watt"))


def test_modules_code_and_exit_codes(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package/__main__.py").write_text("import sys; print(sys.argv[1:]); sys.exit(5)")
    done = profile(tmp_path, "-q", "-o", "m.watt", "-m", "package", "-m", "--tree")
    assert (done.returncode, done.stdout, done.stderr) == (5, "['-m', '--tree']\n", "")
    done = profile(tmp_path, "-q", "-o", "c.watt", "-c", "import sys; print(sys.argv); 1/0", "-c")
    assert (done.returncode, done.stdout) == (1, "['-c', '-c']\n")
    assert done.stderr.splitlines()[:2] == [
        "Traceback (most recent call last):",
        '  File "<string>", line 1, in <module>',
    ]
    done = profile(tmp_path, "-q", "-o", "k.watt", "-c", "import os; os.kill(os.getpid(), 15)")
    assert done.returncode == 143
    done = profile(tmp_path, "-q", "-o", "n.watt", "nowhere.py")
    assert done.returncode == 2
    assert "nowhere.py" in done.stderr


@pytest.mark.parametrize(("target", "begins"), [("x.html", b"<!"), ("x.svg", b"<svg"), ("x.dot", b"digraph")])
def test_pictures_and_the_page(tmp_path, script, target, begins):
    done = profile(tmp_path, "-o", target, script)
    assert (done.returncode, done.stderr) == (0, "")
    content = (tmp_path / target).read_bytes()
    assert content.lstrip().startswith(begins)
    assert b"works" in content


def test_the_tree_and_memory(tmp_path, script):
    done = profile(tmp_path, "--tree", "--memory", "-o", "x.watt", script)
    assert done.returncode == 0
    lines = done.stderr.splitlines()
    assert any("└── " in line and "works" in line for line in lines)
    assert any("(idle)" in line for line in lines)
    assert any(signal.unit == "B" for signal in wattribute.read(tmp_path / "x.watt").signals)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--mode", "sampel", "x.py"], "sampel"),
        (["--interval", "0", "x.py"], "choose from"),
        (["-o", "x.xyz", "x.py"], "ending"),
        (["-o", "nowhere/x.svg", "x.py"], "no such folder"),
        (["--format", "jsn", "x.py"], "json"),
        (["--mode", "trace", "--lines", "x.py"], "--mode sample"),
    ],
)
def test_what_cannot_be_is_said_before_anything_runs(tmp_path, arguments, words):
    (tmp_path / "x.py").write_text("open('ran', 'w')")
    done = profile(tmp_path, *arguments)
    assert done.returncode in (1, 2)
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "ran").exists()


def test_run_takes_any_command_with_python_in_it(tmp_path, script):
    meter = constant_power(tmp_path / "p.csv", length_s=30)
    command = [
        sys.executable,
        "-m",
        "wattribute",
        "run",
        "--profile",
        "sample",
        "--meters",
        meter,
        "-o",
        "x.watt",
        "--",
    ]
    done = subprocess.run(
        [*command, "sh", "-c", f"'{sys.executable}' '{script}' one"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "out one\n")
    rows = wattribute.functions(wattribute.read(tmp_path / "x.watt")).rows
    assert rows["frame"][0] == "works"
