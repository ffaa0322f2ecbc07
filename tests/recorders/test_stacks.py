"""Python programs seen from inside: as if run bare, and whatever they do (threads, forks, generators, kills)."""

import os
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from tests.recorders.profiled import calls, files, joined, profiled, seconds, spans
from tests.test_pythons import interpreter
from wattribute.errors import OptionError
from wattribute.model import Clock, Recording
from wattribute.readers import stack_files
from wattribute.recorders.stacks import Profiling, environment

BUSY = """
import time
def busy(s):
    end = time.monotonic() + s
    while time.monotonic() < end:
        pass
"""
MODES = ("sample", "trace", "cprofile")


def nested_right(columns):
    for i, parent in enumerate(columns.parent):
        assert columns.start[i] <= columns.end[i]
        assert columns.depth[i] == (columns.depth[parent] + 1 if parent >= 0 else 0)
        if parent >= 0:
            assert parent < i
            assert columns.start[parent] <= columns.start[i]
            assert columns.end[i] <= columns.end[parent]


ODD = """
import sys, os, threading, json
def fails():
    raise ValueError("<b>[red]no[/red]")
print(json.dumps([sys.argv, __name__, sys.path, [t.name for t in threading.enumerate()], __file__,
                  sys.modules["__main__"].__dict__["__name__"]]))
fails()
"""


@pytest.mark.parametrize("mode", MODES)
def test_a_program_runs_as_if_bare(tmp_path, mode):
    """argv, path, threads, streams, traceback and exit code are those of the same program run by Python alone."""
    done, parts = files(tmp_path, ODD, mode, arguments=["a b", "--tree", "-m"])
    bare = subprocess.run(
        [sys.executable, str(tmp_path / "program.py"), "a b", "--tree", "-m"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (bare.returncode, bare.stdout, bare.stderr)
    assert done.returncode == 1
    assert "fails" in done.stderr
    if mode == "trace":
        assert calls(joined(parts)) == {"<module>": 1, "<listcomp>": 1, "fails": 1}


@pytest.mark.realtime
def test_sampled_time_is_where_it_was_spent(tmp_path):
    code = (
        "a = time.monotonic()\nbusy(0.6)\nb = time.monotonic()\ntime.sleep(0.3)\nprint(b - a, time.monotonic() - b)\n"
    )
    done, parts = files(tmp_path, BUSY + code)
    found = seconds(joined(parts))
    busy_s, asleep_s = map(float, done.stdout.split())
    assert found["busy"] == pytest.approx(busy_s, abs=0.1)
    assert found["<module>"] == pytest.approx(asleep_s, abs=0.1)


@pytest.mark.realtime
def test_a_native_call_that_holds_the_gil_counts_for_its_caller(tmp_path):
    """Nobody can look while a C function keeps the GIL: its time belongs to the stack that is seen right after."""
    code = """
    import time
    def before(): time.sleep(0.1)
    def native():
        global took
        begin = time.monotonic(); sum(range(30_000_000)); took = time.monotonic() - begin
    def after(): time.sleep(0.1)
    before(); native(); after()
    print(took)
    """
    done, parts = files(tmp_path, code)
    took = float(done.stdout)
    assert seconds(joined(parts))["native"] == pytest.approx(took, abs=max(0.05, 0.1 * took))


def test_a_program_that_is_one_native_call(tmp_path):
    """The looking thread itself cannot start before that call has ended; the CPU time is its caller's too."""
    recording = profiled(tmp_path, "sum(range(30_000_000))")
    (at,) = recording.spans.locations()
    whole = recording.spans.spans(at)
    assert seconds(recording)["<module>"] == pytest.approx((whole.end.max() - whole.start.min()) / 1e9, rel=0.2)
    cpu = next(s for s in recording.signals if s.name == stack_files.CPU_TIME)
    inside = np.interp([whole.start[0], whole.end.max()], cpu.times, cpu.values) / 1e9
    assert inside[1] - inside[0] > 0.1  # 30 million numbers take longer than that anywhere


def test_recursion_generators_and_exceptions_of_a_trace(tmp_path):
    code = """
    def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
    def numbers():
        try:
            yield 1
            yield 2
        finally:
            cleanup()
    def cleanup(): pass
    def fails(): raise KeyError
    def catches():
        try: fails()
        except KeyError: cleanup()
    def main():
        fib(5)
        for n in numbers(): cleanup()
        catches()
        g = numbers(); next(g)
        try: g.throw(ValueError)
        except ValueError: pass
    main()
    """
    recording = profiled(tmp_path, code, "trace")
    # fib(5) is 15 calls; cleanup: 2 in the loop, 1 by each of two generators' ends, 1 in catches
    expected = {"<module>": 1, "main": 1, "fib": 15, "numbers": 2, "cleanup": 5, "fails": 1, "catches": 1}
    assert calls(recording) == expected
    assert ("numbers", 2, True) in spans(recording)
    depths = {name: depth for name, depth, _ in spans(recording)}
    assert depths["main"] == 1
    assert depths["catches"] == 2
    assert depths["fails"] == 3
    nested_right(recording.spans.spans(0))


def test_coroutines_are_one_call_however_often_they_wait(tmp_path):
    code = """
    import asyncio
    async def inner(): await asyncio.sleep(0.01)
    async def outer():
        for _ in range(3): await inner()
    async def main(): await asyncio.gather(outer(), outer())
    asyncio.run(main())
    """
    found = calls(profiled(tmp_path, code, "trace"))
    assert found == {"<module>": 1, "main": 1, "outer": 2, "inner": 6}


@pytest.mark.parametrize("mode", MODES)
def test_threads_have_locations_and_cpu_clocks(tmp_path, mode):
    code = (
        BUSY
        + """
import threading
def waits():
    end = time.thread_time() + 0.4  # not of the clock: it may wait for a CPU
    while time.thread_time() < end: busy(0.01)
thread = threading.Thread(target=waits, name="worker <1>")
thread.start(); thread.join()
"""
    )
    recording = profiled(tmp_path, code, mode)
    assert set(recording.locations.name) == {"MainThread", "worker <1>"}
    worker = recording.locations.name.index("worker <1>")
    assert "busy" in {name for name, _, _ in spans(recording, worker)}
    clocks = {s.location: s for s in recording.signals if s.name == stack_files.CPU_TIME}
    spent = {at: float((s.values[-1] - s.values[0]) * s.scale) for at, s in clocks.items()}
    assert spent[worker] > 3 * spent[1 - worker]
    loads = [s for s in recording.signals if s.name == stack_files.CPU_LOAD]
    assert {s.location for s in loads} == {0, 1}


@pytest.mark.parametrize("how", ["os._exit(7)", "os.kill(os.getpid(), 9)", "import ctypes; ctypes.string_at(1)"])
@pytest.mark.parametrize("mode", ["sample", "trace"])
def test_what_was_seen_outlives_a_crash(tmp_path, mode, how):
    begin_ns = time.monotonic_ns()
    done, parts = files(tmp_path, BUSY + f"import os\nbusy(0.4)\n{how}\n", mode)
    end_ns = time.monotonic_ns()
    assert done.returncode in (7, -9, -11)
    (process,) = stack_files.profiled_processes(parts)
    run = {"pid": process.pid, "end_ticks": end_ns}  # a killed program's last stack is held until its end
    recording = Recording(clock=Clock(epoch_ns=0), metadata={"run": run})
    found = seconds(stack_files.join(recording, parts, [process]))
    assert found["busy"] > 0.2
    assert found["busy"] + found["<module>"] < (end_ns - begin_ns) / 1e9


@pytest.mark.parametrize("way", ["fork", "spawn", "forkserver"])
def test_workers_of_multiprocessing_join(tmp_path, way):
    code = (
        BUSY
        + f"""
import multiprocessing
def work(s):
    busy(s)
    return s
if __name__ == "__main__":
    with multiprocessing.get_context("{way}").Pool(2) as pool:
        print(sum(pool.map(work, [0.2, 0.2])))
"""
    )
    done, parts = files(tmp_path, code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0.4\n", "")
    recording = joined(parts)
    working = {
        int(recording.locations.process[at])
        for at in recording.spans.locations()
        if "work" in {name for name, _, _ in spans(recording, at)}
    }
    assert working
    assert 0 not in working  # the parent waits
    assert seconds(recording)["busy"] > 0.2


def test_a_worker_s_statistics_are_counted_too(tmp_path):
    code = """
    import multiprocessing
    def work(n): return n
    if __name__ == "__main__":
        process = multiprocessing.get_context("fork").Process(target=work, args=(1,))
        process.start(); process.join(); work(2)
    """
    recording = profiled(tmp_path, code, "cprofile")
    counted = {line: n for file, line, _, n in recording.metadata["calls"] if file.endswith("program.py")}
    assert counted[3] == 2


def test_regions_stand_among_the_functions_that_marked_them(tmp_path):
    code = """
    import time, os
    os.environ["WATTRIBUTE_REGIONS"] = os.path.join(os.path.dirname(__file__), "parts")
    from wattribute import region
    def inner(): time.sleep(0.05)
    def outer():
        with region("marked"):
            inner()
    outer()
    """
    recording = profiled(tmp_path, code, "trace")
    frames = recording.frames
    (at,) = recording.spans.locations()
    columns = recording.spans.spans(at)
    chain, row = [], [frames.name[f] for f in columns.frame].index("inner")
    while row >= 0:
        chain.append(frames.name[columns.frame[row]])
        row = int(columns.parent[row])
    assert [name for name in chain if "Region" not in name] == ["inner", "marked", "outer", "<module>"]


def test_lines_are_frames_and_not_calls(tmp_path):
    code = """
    import time
    def two():
        time.sleep(0.2)
        time.sleep(0.2)
    two()
    """
    recording = profiled(tmp_path, code, lines=True)
    lines = {line for name, line in zip(recording.frames.name, recording.frames.line, strict=True) if name == "two"}
    assert lines == {4, 5}
    assert [resumed for name, _, resumed in spans(recording) if name == "two"] == [False, True]


def test_memory_that_grows_before_anybody_looks(tmp_path):
    from wattribute.sessions.profile_table import memory_lines

    code = "kept = bytearray(b'x') * (96 << 20); sum(range(10_000_000))"
    done, parts = files(tmp_path, code, memory=True, lines=True)
    assert done.returncode == 0
    rows = memory_lines(joined(parts))
    assert rows[0]["bytes"] > 80 << 20
    assert (rows[0]["frame"], rows[0]["line"]) == ("<module>", 1)


@pytest.mark.parametrize("arguments", [["program.py"], ["-c", "import program"], ["-m", "program"]])
def test_allocations_are_tabulated_by_line(tmp_path, arguments):
    pytest.importorskip("memray")
    from wattribute.sessions.profile_table import held_lines

    code = """
    import threading
    def asks(size): return bytearray(size)
    kept = [asks(24 << 20)]
    thread = threading.Thread(target=lambda: kept.append(asks(8 << 20)))
    thread.start(); thread.join()
    kept.append(bytearray(16 << 20))
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(code))
    (tmp_path / "parts").mkdir()
    order = environment(Profiling(memory=True), str(tmp_path / "parts"), os.environ)
    subprocess.run([sys.executable, *arguments], env=order, cwd=tmp_path, check=True)
    rows = {row["line"]: row for row in held_lines(joined(tmp_path / "parts"), top=2)}
    assert rows[3]["frame"] == "asks"
    assert rows[3]["bytes"] == pytest.approx(32 << 20, rel=0.01)
    assert rows[3]["allocations"] == 2
    assert rows[7]["bytes"] == pytest.approx(16 << 20, rel=0.01)
    assert not any("recorders" in row["file"] for row in held_lines(joined(tmp_path / "parts"), top=200))


def test_memory_is_a_track_and_grows_in_its_line(tmp_path):
    code = """
    import sys, time
    while len(sys._current_frames()) < 2: time.sleep(0.01)  # until it is looked at
    time.sleep(0.2)
    kept = bytearray(64 << 20)
    time.sleep(0.2)
    """
    recording = profiled(tmp_path, code, memory=True, lines=True)
    resident = next(s for s in recording.signals if s.name == stack_files.RESIDENT)
    assert resident.unit == "B"
    assert int(resident.values.max() - resident.values[0]) >= 60 << 20


@pytest.mark.parametrize("version", ["3.10", "3.12", "3.13"])
@pytest.mark.parametrize("mode", MODES)
def test_other_pythons_that_have_no_wattribute(tmp_path, version, mode):
    python = interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    code = (
        BUSY
        + """
def numbers():
    yield 1
    yield 2
sum(numbers())
busy(0.2)
"""
    )
    done, parts = files(tmp_path, code, mode, python=python)
    assert (done.returncode, done.stderr) == (0, "")
    recording = joined(parts)
    assert seconds(recording)["busy"] > 0.1
    if mode == "trace":
        assert calls(recording) == {"<module>": 1, "numbers": 1, "busy": 1}


def test_an_old_python_and_a_broken_order_do_no_harm(tmp_path):
    done, _ = files(tmp_path, "print(1)")
    program = tmp_path / "program.py"
    hostile = os.environ | {"PYTHONPATH": str(stack_files.Path(stack_files.__file__).parent / "hook")}
    for order in ("not an order", f"sample 0.005 0 0 {tmp_path / 'nowhere'}"):
        again = subprocess.run(
            [sys.executable, str(program)], env=hostile | {"WATTRIBUTE_STACKS": order}, capture_output=True, text=True
        )
        assert (again.returncode, again.stdout) == (0, "1\n")
        assert len(again.stderr.splitlines()) <= 1
    assert done.stdout == "1\n"


def test_a_sitecustomize_of_the_machine_still_runs(tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site/sitecustomize.py").write_text("print('theirs')\n")
    done, _ = files(tmp_path, "import sitecustomize; print(sitecustomize.__file__)")
    assert "theirs" not in done.stdout
    base = os.environ | {"PYTHONPATH": str(tmp_path / "site")}
    order = environment(Profiling(), str(tmp_path / "parts"), base)
    again = subprocess.run(
        [sys.executable, "-c", "import sitecustomize; print(sitecustomize.__file__)"],
        env=order, capture_output=True, text=True,
    )  # fmt: skip
    assert again.stdout.splitlines() == ["theirs", str(tmp_path / "site/sitecustomize.py")]


def test_cut_files_give_what_was_whole(tmp_path):
    # the end of the names is that of the newest stack, which must not be the only one with busy in it
    _, parts = files(tmp_path, BUSY + "def last():\n    busy(0.2)\n\nbusy(0.3)\nlast()\n")
    (names,) = parts.glob("*.stacknames")
    samples = names.with_suffix(".samples")
    samples.write_bytes(samples.read_bytes()[:-7])
    names.write_bytes(names.read_bytes() + b'{"stack": 99, "par')
    recording = joined(parts)
    assert seconds(recording)["busy"] > 0.1
    nested_right(recording.spans.spans(0))


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (Profiling("sampel"), "did you mean 'sample'"),
        (Profiling(interval_s=0), "choose from 0.0005"),
        (Profiling("trace", lines=True), "--mode sample"),
    ],
)
def test_wrong_orders_say_what_would_do(how, words):
    with pytest.raises(OptionError, match=words):
        how.checked()
