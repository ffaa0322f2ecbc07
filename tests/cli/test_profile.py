"""``wattribute profile`` as a stranger would use it."""

import json
import re
import sys
from functools import partial

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


@pytest.fixture
def profile(command, tmp_path):
    meter = constant_power(tmp_path / "p.csv", length_s=600)
    return partial(command, "profile", "--meters", meter, cwd=tmp_path)


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "odd [red]name.py"
    path.write_text(WORK)
    return path


def test_the_table_goes_to_stderr_and_the_rest_is_the_program_s(profile, tmp_path, script):
    done = profile("-o", "x.watt", script, "-o", "--mode", "a b")
    assert (done.returncode, done.stdout) == (0, "out -o --mode a b\n")
    assert "works" in done.stderr
    assert "red]name.py:3" in done.stderr
    assert "package 0" in done.stderr
    assert wattribute.read(tmp_path / "x.watt").metadata["profile"]["mode"] == "sample"


def test_rows_as_json_have_name_file_and_line_apart(profile, tmp_path, script):
    done = profile("--format", "json", "-o", "rows.json", "--mode", "trace", "--scope", "machine", script)
    assert done.returncode == 0
    assert done.stderr == ""
    told = json.loads((tmp_path / "rows.json").read_text())
    row = next(row for row in told["rows"] if row["frame"] == "works")
    assert (row["file"], row["line"], row["calls"]) == (str(script), 3, 1)
    assert row["self_ns"] > 0.3e9
    assert row["self_j"] == pytest.approx(100 * row["self_ns"] / 1e9, rel=0.1)  # at 100 W
    assert row["self_low_j"] <= row["self_j"] <= row["self_high_j"]
    assert {"self_cpu_s", "total_cpu_s", "self_ns"} <= row.keys()
    (device,) = told["devices"]
    assert sum(r["self_j"] for r in told["rows"]) + device["idle_j"] == pytest.approx(device["measured_j"], rel=1e-9)
    assert not list(tmp_path.glob("*.watt"))


def test_functions_share_the_program_s_own_part(profile, tmp_path, script):
    """However busy the machine is: what the program did not use is in the row of other processes, and books balance."""
    done = profile("--format", "json", "-o", "rows.json", script)
    assert done.returncode == 0
    told = json.loads((tmp_path / "rows.json").read_text())
    rows = {row["frame"]: row for row in told["rows"]}
    assert {"works", "other processes"} <= rows.keys()
    assert rows["works"]["self_j"] <= 100 * rows["works"]["self_ns"] / 1e9 * 1.05
    assert rows["works"]["calls"] is None  # samples see stacks, not calls
    (device,) = told["devices"]
    assert sum(r["self_j"] for r in told["rows"]) + device["idle_j"] == pytest.approx(device["measured_j"], rel=1e-9)


def test_the_legend_says_what_shares_are_of(profile, tmp_path, script):
    """Not of what was measured, but of what the program itself got."""
    done = profile("-o", "table.txt", script)
    assert done.returncode == 0
    assert "J, what the program itself got" in (tmp_path / "table.txt").read_text()


def test_modules_code_and_exit_codes(profile, tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package/__main__.py").write_text("import sys; print(sys.argv[1:]); sys.exit(5)")
    done = profile("-q", "-o", "m.watt", "-m", "package", "-m", "--tree")
    assert (done.returncode, done.stdout, done.stderr) == (5, "['-m', '--tree']\n", "")
    done = profile("-q", "-o", "c.watt", "-c", "import sys; print(sys.argv); 1/0", "-c")
    assert (done.returncode, done.stdout) == (1, "['-c', '-c']\n")
    assert done.stderr.splitlines()[:2] == [
        "Traceback (most recent call last):",
        '  File "<string>", line 1, in <module>',
    ]
    done = profile("-q", "-o", "k.watt", "-c", "import os; os.kill(os.getpid(), 15)")
    assert done.returncode == 143
    done = profile("-q", "-o", "n.watt", "nowhere.py")
    assert done.returncode == 2
    assert "nowhere.py" in done.stderr


@pytest.mark.parametrize(("target", "begins"), [("x.html", b"<!"), ("x.svg", b"<svg"), ("x.dot", b"digraph")])
def test_pictures_and_the_page(profile, tmp_path, script, target, begins):
    done = profile("-o", target, script)
    assert (done.returncode, done.stderr) == (0, "")
    content = (tmp_path / target).read_bytes()
    assert content.lstrip().startswith(begins)
    assert b"works" in content


def test_the_tree_and_memory(profile, tmp_path, script):
    script.write_text(WORK + "kept = bytearray(b'x') * (64 << 20)\nworks(0.2)\n")
    done = profile("--tree", "--memory", "-o", "x.watt", script)
    assert done.returncode == 0
    lines = done.stderr.splitlines()
    assert any("└── " in line and "works" in line for line in lines)
    assert any("(idle)" in line for line in lines)
    assert any(signal.unit == "B" for signal in wattribute.read(tmp_path / "x.watt").signals)
    assert any(line.startswith("resident memory grew in") for line in lines)
    assert any(line.startswith("held at the peak (memray)") and line.endswith("allocations") for line in lines)


def test_the_tree_hides_frames_of_libraries_and_begins_at_a_root(profile, tmp_path, script):
    called = "import json\njson.dumps(object(), default=lambda _: works(0.5))\n"
    script.write_text(WORK.replace("works(0.4)", called))
    hidden = profile("--tree", "-o", "-", script).stdout.splitlines()
    head = next(line for line in hidden if "samples, " in line)
    assert re.search(r"J measured  [\d.]+ m?s, [\d,]+ samples, .* of CPU time$", head)
    (dumps,) = [line for line in hidden if " dumps " in line]
    assert re.search(r"\[\d frames hidden\]$", dumps)  # encode, iterencode, _iterencode of json
    assert any("works" in line for line in hidden[hidden.index(dumps) :])  # a function of the program's own stays
    assert not any("JSONEncoder" in line for line in hidden)
    rooted = profile("--tree", "--all-frames", "--root", "dumps", "-o", "-", script).stdout
    assert "JSONEncoder" in rooted
    assert "<module>" not in rooted
    wrong = profile("--tree", "--root", "nothing", "-o", "-", script)
    assert "unknown function to start at (--root) 'nothing'" in wrong.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--root", "main", "x.py"], "--root is for --tree"),
        (["--mode", "sampel", "x.py"], "sampel"),
        (["--interval", "0", "x.py"], "choose from"),
        (["-o", "x.xyz", "x.py"], "ending"),
        (["-o", "nowhere/x.svg", "x.py"], "no such folder"),
        (["--format", "jsn", "x.py"], "json"),
        (["--mode", "trace", "--lines", "x.py"], "--mode sample"),
    ],
)
def test_what_cannot_be_is_said_before_anything_runs(command, tmp_path, arguments, words):
    (tmp_path / "x.py").write_text("open('ran', 'w')")
    done = command("profile", *arguments, cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "ran").exists()


def test_a_script_that_is_not_there_is_one_line_and_python_s_exit_code(profile, tmp_path):
    done = profile("-o", "x.watt", "nosuch [red].py")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "wattribute: nosuch [red].py: no such file, so there is nothing to run\n"
    assert not (tmp_path / "x.watt").exists()


def test_a_program_of_which_no_stack_was_seen_is_not_given_one(profile, tmp_path):
    done = profile("-o", "x.watt", "-c", "import os; os._exit(4)")
    assert done.returncode == 4
    assert "(no name)" not in done.stderr
    assert "no stack was seen" in done.stderr or "<module>" in done.stderr  # it may take longer than 5 ms


def test_an_estimate_carries_its_error_in_every_row(command, tmp_path, script):
    wattribute = partial(command, cwd=tmp_path)
    done = wattribute("profile", "--meters", "model", "--scope", "machine", "-o", "x.watt", script)
    head, *lines = [line for line in done.stderr.splitlines() if line.startswith(("CPU estimated", "works"))]
    assert " ± " in head
    assert len(lines) == 1  # one table, whatever the number of devices
    value, error = re.search(r"([\d.]+) m?J ± ([\d.]+)", lines[0]).groups()
    assert float(error) == pytest.approx(float(value) / 2, rel=0.1)  # the model says ± 50 %
    shown = wattribute("attribute", "x.watt").stdout
    assert re.search(r"works .* ± .*%", shown)
    assert not re.search(r" 0 J", shown)  # <module> was never on top: nothing of its own to show
    row = wattribute(
        "attribute", "x.watt", "--scope", "process", "--by", "frame", "--frame", "works", "--format", "json"
    )
    value, low, high = (json.loads(row.stdout)["rows"][0][name] for name in ("self_j", "self_low_j", "self_high_j"))
    assert low <= value / 2 * 1.001  # beside others the split is unsure too
    assert high >= value * 1.5 / 1.001


def test_run_takes_any_command_with_python_in_it(command, tmp_path, script):
    meter = constant_power(tmp_path / "p.csv", length_s=600)
    words = ["run", "--profile", "sample", "--meters", meter, "-o", "x.watt", "--"]
    done = command(*words, "sh", "-c", f"'{sys.executable}' '{script}' one", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "out one\n")
    rows = wattribute.functions(wattribute.read(tmp_path / "x.watt")).rows
    assert rows["frame"][0] == "works"


def test_an_interpreter_before_the_script_and_the_table_on_standard_output(command, tmp_path):
    (tmp_path / "x.py").write_text("import time\nt = time.time()\nwhile time.time() - t < 0.3:\n    sum(range(999))\n")
    done = command("profile", "--tree", "-o", "-", "--", sys.executable, "x.py", cwd=tmp_path)
    assert done.returncode == 0
    assert "<module>" in done.stdout
    assert " J estimated\n" in done.stdout or " mJ estimated\n" in done.stdout
    assert " measured\n" not in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["x.py"]


@pytest.mark.parametrize("mode", ["sample", "trace"])
def test_imports_are_one_row_unless_asked(profile, tmp_path, mode):
    busy = "import time\nend = time.thread_time() + 0.1\nwhile time.thread_time() < end: pass\n"
    (tmp_path / "inner.py").write_text(busy)
    (tmp_path / "outer.py").write_text("import inner\ndef work():\n    " + busy.replace("\n", "\n    ") + "\nwork()\n")
    (tmp_path / "script.py").write_text("import outer\nouter.work()\n")
    done = profile("--mode", mode, "-o", "x.watt", "script.py")
    assert re.search(r"^imports, \d+ modules ", done.stderr, re.MULTILINE), done.stderr
    assert "inner.py" not in done.stderr
    assert re.search(r"^work +.*outer.py", done.stderr, re.MULTILINE)  # the call that is no import's
    done = profile("--imports", "--mode", mode, "-o", "y.watt", "script.py")
    assert "inner.py" in done.stderr
    assert "imports," not in done.stderr
    recording = wattribute.read(tmp_path / "x.watt")
    whole, folded = (wattribute.functions(recording, imports=imports) for imports in (True, False))
    books = [float(found.rows["self_j"].sum()) + float(found.devices["idle_j"].sum()) for found in (whole, folded)]
    assert books[0] == pytest.approx(books[1], rel=1e-9)
    row = next(row for row in folded.rows.to_dicts() if row["frame"].startswith("imports"))
    assert row["self_ns"] == row["total_ns"] > 0
