"""``pytest --energy`` run as users run it, in a process of its own."""

import os
import re
import subprocess
import sys

import pytest

TESTS = """
import time
import pytest

def test_long():
    time.sleep(0.3)

@pytest.mark.parametrize("x", ["[bold]"])
def test_short(x):
    time.sleep(0.002)

def test_fails():
    assert False

def test_fixture(energy):
    with energy() as used:
        time.sleep(0.2)
    assert used.energy_j == pytest.approx(100 * used.seconds, rel=0.1)
    assert used.low_j <= used.energy_j <= used.high_j
    assert not used.estimated
    assert used.recording.frames.name == ("block",)
"""


@pytest.fixture
def suite(tmp_path):
    (tmp_path / "test_it.py").write_text(TESTS)
    lines = [f"{i / 100},{i}" for i in range(6000)]
    (tmp_path / "meter.csv").write_text("time_s,package 0:energy_j\n" + "\n".join(lines))

    def run(*arguments):
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", *arguments]
        environment = {**os.environ, "COLUMNS": "160", "PYTEST_ADDOPTS": ""}
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
        return done.returncode, done.stdout + done.stderr

    return run


def test_a_table_per_test(suite, tmp_path):
    options = ("--energy", "--energy-meters", "replay:meter.csv", "--energy-output", "suite.watt")
    code, text = suite(*options, "test_it.py")
    assert code == 1, text  # one test fails, as it should
    assert "3 passed" in text
    assert "1 failed" in text
    long = next(line for line in text.splitlines() if line.startswith("test_it.py::test_long"))
    match = re.search(r"([\d.]+) J (?:±|\()", long)  # a range is printed as ± or, if uneven, as (low … high)
    assert match, long
    assert 25 <= float(match[1]) <= 36  # 0.3 s at 100 W
    short = next(line for line in text.splitlines() if line.startswith("test_it.py::test_short[[bold]]"))
    its_range = r"< [\d.]+ m?J|J ± [\d.]+|J \([\d.]+( [mµ]?J)? … [\d.]+( [mµ]?J)?\)"  # < where the estimate is 0
    assert re.search(its_range, short), short
    assert "shorter than the sensor's period" in short
    assert "test_it.py::test_fails" in text
    assert (tmp_path / "suite.watt" / "wattribute.json").is_file()


def test_without_the_flag_nothing_happens(suite):
    code, text = suite("test_it.py", "-k", "long")
    assert code == 0
    assert "energy" not in text.replace("rootdir", "")


def test_wrong_meters_are_one_line(suite):
    code, text = suite("test_it.py", "--energy", "--energy-meters", "nosuchmeter")
    assert code == 4
    assert "unknown meter 'nosuchmeter'" in text
    assert "Traceback" not in text


def test_the_plug_in_is_cheap_to_load():
    code = (
        "import sys, wattribute.integrations.pytest_plugin; print([m for m in ('numpy', 'rich') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
