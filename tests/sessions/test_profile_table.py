"""Joules per function of known programs: what the profile says against what the program itself clocked."""

import subprocess
import sys
import threading
import time

import pytest

import wattribute
from tests.recorders.profiled import constant_power, rows
from wattribute.errors import NoDataError, OptionError
from wattribute.recorders.stacks import Profiling

# each phase is clocked by the program itself: a busy machine stretches phases, and the profile has to follow
PHASES = """
import json, sys, time
def spin(seconds):
    begin = time.monotonic()
    while time.monotonic() < begin + seconds: pass
def half(): spin(2.5)
def third(): spin(1.5)
def fifth(): spin(1.0)
took = {}
for phase in (half, third, fifth):
    begin = time.monotonic(); phase(); took[phase.__name__] = time.monotonic() - begin
json.dump(took, open(sys.argv[1], "w"))
"""


def run(folder, code, mode, meters, *arguments, interval_s=None):
    program = folder / "program.py"
    program.write_text(code)
    done = wattribute.run(
        [sys.executable, str(program), *map(str, arguments)], folder / f"{mode}.watt", meters=[meters],
        interval_s=interval_s, profiling=Profiling(mode),
    )  # fmt: skip
    assert done.exit_code == 0
    assert done.trouble == ()
    return done.recording


@pytest.mark.realtime
@pytest.mark.parametrize(("mode", "tolerance"), [("sample", 0.02), ("trace", 0.01)])
def test_three_functions_get_what_their_time_is_worth(tmp_path, mode, tolerance):
    import json

    recording = run(tmp_path, PHASES, mode, constant_power(tmp_path / "p.csv"), tmp_path / "took.json")
    took = json.loads((tmp_path / "took.json").read_text())
    by_name, device, found = rows(recording)
    for name, seconds in took.items():  # 100 W
        assert by_name[name]["total_j"] == pytest.approx(100 * seconds, rel=tolerance), name
        assert by_name[name]["total_low_j"] <= 100 * seconds * (1 + tolerance)
    assert float(found.rows["self_j"].sum()) + device["idle_j"] == pytest.approx(device["measured_j"], rel=1e-9)
    if mode == "trace":
        assert by_name["spin"]["calls"] == 3
    else:
        assert by_name["spin"]["calls"] is None
    assert by_name["spin"]["self_cpu_s"] <= 1.02 * sum(took.values())
    again = wattribute.read(tmp_path / f"{mode}.watt")  # and from the disk
    assert rows(again)[0] == by_name


ALTERNATING = """
import json, sys, time
took = []
def until(end):
    while time.monotonic() < end: pass
def hot(end): until(end)
def cold(end): until(end)
begin = int(time.monotonic()) + 1
until(begin)
for second in range(begin, begin + 6):
    phase = hot if second % 2 else cold
    start = time.monotonic(); phase(second + 1); took.append((phase.__name__, start, time.monotonic()))
json.dump(took, open(sys.argv[1], "w"))
"""


def alternating_j(at_s):
    """The energy up to a moment: 250 W in odd seconds, 50 W in even ones."""
    pairs, rest = divmod(at_s, 2.0)
    return 300 * pairs + (50 * rest if rest < 1 else 50 + 250 * (rest - 1))


@pytest.mark.realtime
@pytest.mark.parametrize(("mode", "tolerance"), [("sample", 0.02), ("trace", 0.01)])
def test_functions_that_draw_250_and_50_watts_in_turns(tmp_path, mode, tolerance):
    """A counter in a powercap tree that another process keeps writing, as the kernel would."""
    import json

    zone = tmp_path / "sys/class/powercap/intel-rapl:0"
    zone.mkdir(parents=True)
    (zone / "name").write_text("package-0\n")
    (zone / "max_energy_range_uj").write_text("262143328850\n")
    counter = zone / "energy_uj"
    kernel = (
        "import os, sys, time\n"
        "def j(t):\n p, r = divmod(t, 2.0)\n return 300 * p + (50 * r if r < 1 else 50 + 250 * (r - 1))\n"
        "file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)\n"
        "while True:\n os.pwrite(file, b'%020d\\n' % int(j(time.monotonic()) * 1e6), 0)\n time.sleep(0.001)\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", kernel, str(counter)])
    try:
        while not counter.exists():
            time.sleep(0.01)
        recording = run(
            tmp_path, ALTERNATING, mode, f"rapl:{tmp_path / 'sys'}", tmp_path / "took.json", interval_s=0.004
        )
    finally:
        writer.kill()
        writer.wait()
    took = json.loads((tmp_path / "took.json").read_text())
    by_name, device, found = rows(recording)
    for name in ("hot", "cold"):  # what the counter counted while the function ran, however late it was
        truth = sum(alternating_j(end) - alternating_j(start) for phase, start, end in took if phase == name)
        assert by_name[name]["total_j"] == pytest.approx(truth, rel=tolerance), name
    assert float(found.rows["self_j"].sum()) + device["idle_j"] == pytest.approx(device["measured_j"], rel=1e-9)


@pytest.mark.realtime
def test_a_thread_that_waits_pays_nothing_while_another_works(tmp_path):
    code = """
import threading, time
def works():
    end = time.monotonic() + 0.8
    while time.monotonic() < end: pass
def main():
    thread = threading.Thread(target=works); thread.start(); thread.join()
main()
"""
    recording = run(tmp_path, code, "sample", constant_power(tmp_path / "p.csv"))
    by_name, _, found = rows(recording)
    assert found.question.share == "load"
    assert by_name["works"]["total_j"] > 10 * by_name["main"]["total_j"]
    even, _, _ = rows(recording, share="even")
    assert even["works"]["total_j"] == pytest.approx(even["main"]["total_j"], rel=0.3)


def test_cprofile_counts_and_keeps_a_file_that_others_read(tmp_path):
    import pstats

    code = "def work(n): return sum(range(n))\nfor _ in range(200): work(50_000)\n"
    recording = run(tmp_path, code, "cprofile", constant_power(tmp_path / "p.csv"))
    stats = pstats.Stats(str(tmp_path / "cprofile.watt" / "profile.prof")).stats
    assert stats[str(tmp_path / "program.py"), 1, "work"][:2] == (200, 200)
    assert all(len(entry) == 5 and all(len(c) == 4 for c in entry[4].values()) for entry in stats.values())
    by_name, _, _ = rows(recording, sort="calls")
    assert by_name["work"]["calls"] == 200
    assert not (tmp_path / "cprofile.watt" / "regions").exists()


def test_calls_are_the_same_by_trace_and_by_cprofile(tmp_path):
    code = """
import time
def numbers(n):
    for i in range(n): yield i
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def works():
    end = time.monotonic() + 0.3
    while time.monotonic() < end: sum(numbers(2000))
fib(15); works(); works()
"""
    counted = {}
    for mode in ("trace", "cprofile"):
        by_name, _, _ = rows(run(tmp_path, code, mode, constant_power(tmp_path / "p.csv")))
        counted[mode] = {name: row["calls"] for name, row in by_name.items()}
    assert counted["trace"]["fib"] == 1973  # 2 F(16) − 1
    assert counted["trace"]["works"] == counted["cprofile"]["works"] == 2
    assert counted["cprofile"].get("fib", 1973) == 1973  # samples may have missed it
    assert counted["trace"]["numbers"] > 10
    assert counted["cprofile"]["numbers"] is None  # cProfile counts how often a generator goes on


def test_memory_grows_in_the_line_that_asked_for_it(tmp_path):
    from wattribute.sessions.profile_table import memory_lines

    program = tmp_path / "program.py"
    program.write_text("import time\ntime.sleep(0.1)\nkept = [bytearray(8 << 20) for _ in range(8)]\ntime.sleep(0.1)\n")
    done = wattribute.run(
        [sys.executable, str(program)], tmp_path / "m.watt", profiling=Profiling(memory=True, lines=True)
    )
    mine = [row for row in memory_lines(done.recording) if row["file"] == str(program)]
    assert sum(row["bytes"] for row in mine) > 40 << 20
    assert {row["line"] for row in mine} <= {2, 3, 4}


@pytest.mark.realtime
def test_inside_a_program(tmp_path):
    def works():
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            pass

    before = threading.active_count()
    with wattribute.profile(tmp_path / "x.watt", meters=[constant_power(tmp_path / "p.csv")]) as recorder:
        works()
    found = wattribute.functions(recorder.recording)
    row = next(row for row in found.rows.to_dicts() if row["frame"].endswith("works"))
    assert row["file"] == __file__
    assert row["total_j"] == pytest.approx(30, rel=0.25)
    assert threading.active_count() == before
    assert wattribute.functions(wattribute.read(tmp_path / "x.watt")).rows.equals(found.rows)


def test_a_function_is_wrapped_and_traced_inside_its_caller(tmp_path):
    meter = constant_power(tmp_path / "p.csv")
    seen = []

    def inner(n):
        return n + 1

    @wattribute.profile(tmp_path / "x.watt", mode="trace", meters=[meter])
    def outer():
        seen.append([inner(n) for n in range(3)])

    outer()
    recording = wattribute.read(tmp_path / "x.watt")
    found = wattribute.functions(recording, by=("device", "frame"), bounds=False).rows
    calls = dict(zip(found["frame"], found["calls"], strict=True))
    assert calls[inner.__qualname__] == 3
    assert calls[outer.__wrapped__.__qualname__] == 1
    assert seen == [[1, 2, 3]]
    assert sys.getprofile() is None


def test_what_has_no_profile_is_told_how_to_make_one(tmp_path):
    done = wattribute.run(["true"], tmp_path / "x.watt", meters=[constant_power(tmp_path / "p.csv")])
    with pytest.raises(NoDataError, match="wattribute profile"):
        wattribute.functions(done.recording)
    with pytest.raises(OptionError, match="did you mean 'total'"):
        wattribute.functions(done.recording, sort="totl")
