"""The contracts as plug-in authors use them: plug-ins that are right pass, each fault fails the test that names it."""

import re
import subprocess
import sys

import pytest

READER = """
from wattribute.model import Recording
from wattribute.testing.recordings import RecordingBuilder

def detects(path):
    return path.is_file() and path.open("rb").read(5) == b"MINE "

def read(path, selection):
    end = int(path.read_text().split()[1])
    return RecordingBuilder(10**9, format="mine").thread([(0, end, "main")]).recording()
"""
METER = """
import time
from wattribute.model import Device
from wattribute.plugins import Availability, Channel

class Mine:
    name = "mine"
    def __init__(self, root=None, clock=time.monotonic_ns):
        self.clock, self.value = clock, 0
    def available(self):
        return Availability(True)
    def channels(self):
        return [Channel("energy", "counter", "J", Device("board", "node"))]
    def read(self):
        self.value += 5
        return [(self.clock(), self.value)]
    def close(self): ...
"""
OUTPUT = """
from wattribute.files import replacing

SUFFIXES = (".mine",)

def write(attribution, target, **options):
    text = "".join(f"{joules!r}\\n" for joules in attribution.rows["self_j"])
    with replacing(target) as file:
        file.write(text.encode())
"""
ENGINE = """
from wattribute.engines.work import EngineResult, solve

def run(work):
    return EngineResult([solve(work, group) for group in work.groups])
"""
TESTS = """
from pathlib import Path
from wattribute.testing.contracts import EngineContract, MeterContract, OutputContract, ReaderContract
import mine_meter

class TestReader(ReaderContract):
    name = "mine"
    samples = [Path(__file__).parent / "small.txt"]

class TestMeter(MeterContract):
    def make(self, folder):
        return mine_meter.Mine()

class TestOutput(OutputContract):
    name, file = "mine", "x.mine"
    def sum_j(self, path):
        return sum(map(float, path.read_text().split()))

class TestEngine(EngineContract):
    name = "mine"
"""
POINTS = """[wattribute.readers]
mine = mine_reader
[wattribute.outputs]
mine = mine_output
[wattribute.engines]
mine = mine_engine
"""


@pytest.fixture
def outcome(tmp_path):
    """Install the plug-ins with one thing changed and run their tests: the test classes, and the tests that failed."""

    def run(kind="", *change, only="", **environment):
        sources = {"reader": READER, "meter": METER, "output": OUTPUT, "engine": ENGINE}
        if kind:
            assert change[0] in sources[kind]
            sources[kind] = sources[kind].replace(*change)
        for name, source in sources.items():
            (tmp_path / f"mine_{name}.py").write_text(source)
        (tmp_path / "mine-1.0.dist-info").mkdir(exist_ok=True)
        (tmp_path / "mine-1.0.dist-info" / "METADATA").write_text("Name: mine\nVersion: 1.0\n")
        (tmp_path / "mine-1.0.dist-info" / "entry_points.txt").write_text(POINTS)
        (tmp_path / "test_mine.py").write_text(TESTS)
        (tmp_path / "small.txt").write_text("MINE 42\n")
        command = [sys.executable, "-m", "pytest", "-rA", "-q", "-p", "no:cacheprovider", "-k", only or kind, "."]
        environment = {"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"} | environment
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        lines = re.findall(r"^(PASSED|FAILED|ERROR) \S+?::(\w+)::(\w+)", done.stdout, re.MULTILINE)
        assert lines, done.stdout + done.stderr
        return {kind for _, kind, _ in lines}, {test for word, _, test in lines if word != "PASSED"}

    return run


def test_plug_ins_that_are_right_pass(outcome):
    assert outcome(only="golden")[1] == {"test_is_the_golden_recording"}
    assert outcome(only="golden", WATTRIBUTE_GOLDEN="write")[1] == set()
    assert outcome() == ({"TestReader", "TestMeter", "TestOutput", "TestEngine"}, set())


@pytest.mark.parametrize(
    ("kind", "old", "new", "test"),
    [
        ("reader", '== b"MINE "', "!= b'x'", "test_leaves_other_files_alone"),
        ("reader", "path.is_file() and", "path.suffix and", "test_is_detected_under_an_unknown_name"),
        ("meter", "self.value += 5", "self.value -= 5", "test_readings_fit_their_channels"),
        ("meter", "self.value += 5", "self.value += 0.5", "test_readings_fit_their_channels"),
        ("meter", "(self.clock(), self.value)", "(-self.value, self.value)", "test_times_never_fall"),
        ("meter", "import time\n", "import time, numpy\n", "test_starts_without_numpy"),
        ("meter", "Availability(True)", "Availability(False, 'no')", "test_is_available"),
        ("output", "replacing(target)", "open(target, 'wb')", "test_takes_the_place_of_a_file_at_once"),
        ("output", "{joules!r}", "{joules / 2!r}", "test_writes_one_file_with_the_joules"),
        ("output", '(".mine",)', '"mine"', "test_says_how_its_files_end"),
        ("engine", "in work.groups", "in work.groups[:1]", "test_the_same_answer"),
    ],
    ids=lambda text: text if text.startswith("test") else "",
)  # fmt: skip
def test_each_fault_fails_the_test_that_names_it(outcome, kind, old, new, test):
    assert test in outcome(kind, old, new, WATTRIBUTE_GOLDEN="write")[1]


@pytest.mark.parametrize("module", ["recordings", "simulation", "sampling"])
def test_only_contracts_and_strategies_need_test_tools(module):
    program = f"import sys, wattribute.testing.{module}; sys.exit(bool({{'pytest', 'hypothesis'}} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
