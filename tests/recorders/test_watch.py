"""The watch sees what computes, in every Python, and what it sees has the names that Python gives it."""

import sys

import numpy as np
import pytest

from tests.recorders.profiled import files, joined, profiled, seconds
from tests.test_pythons import interpreter
from wattribute.journal.layouts import COUNTER_LANE, COUNTERS
from wattribute.meters.perf import open_counter
from wattribute.readers import stack_files
from wattribute.recorders import watch

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a watch reads its own memory by a call of Linux")

MIX = """
import time
def computes():
    end = time.thread_time() + 0.005
    while time.thread_time() < end: pass
def sleeps(): time.sleep(0.005)
computing = sleeping = 0.0
begin = at = time.monotonic()
while at < begin + 2:
    computes(); between = time.monotonic(); sleeps()
    computing += between - at
    at, before = time.monotonic(), at
    sleeping += at - between
print(computing / (computing + sleeping), time.thread_time() / computing)
"""


@pytest.mark.realtime
@pytest.mark.parametrize("version", ["this", "3.10", "3.12", "3.13", "3.14"])
def test_what_computes_between_sleeps_is_seen(tmp_path, version):
    """A thread that needed the GIL to look saw it never: 0 to 3 of 100. On a quiet machine the error is below 1."""
    python = sys.executable if version == "this" else interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    done, parts = files(tmp_path, MIX, python=python)
    assert (done.returncode, done.stderr) == (0, "")
    (process,) = stack_files.profiled_processes(parts)
    assert process.is_watched
    recording = joined(parts)
    took = seconds(recording)
    share = took["computes"] / (took["computes"] + took["sleeps"])
    true_share, part_on_cpu = map(float, done.stdout.split())
    assert share == pytest.approx(true_share, abs=0.2)
    if part_on_cpu > 0.7:  # else it mostly waited for a CPU, and looks see too little of who computes
        assert cpu_seconds(recording)["computes"] > cpu_seconds(recording)["sleeps"]


def cpu_seconds(recording):
    """CPU seconds per function, of its own."""
    import wattribute

    rows = wattribute.attribute(recording, by="frame", metric=f"^{stack_files.CPU_TIME}$", bounds=False).rows
    return dict(zip(rows["frame"], rows["self_value"], strict=True))


ODD_NAMES = """
import time
class Größe:
    def 天気(self):
        until = time.thread_time() + 0.1
        while time.thread_time() < until:
            pass
    def waits(self): time.sleep(0.3)
def numbers():
    until = time.thread_time() + 0.1
    while time.thread_time() < until:
        yield 1
exec(compile("def strange():\\n\\n    import time; time.sleep(0.3)\\n", 'a "\\\\\\U0001f600".py', "exec"))
Größe().天気(); Größe().waits(); sum(numbers()); strange()
"""


@pytest.mark.parametrize("lines", [False, True])
def test_names_are_those_that_python_gives(tmp_path, lines):
    """The same frames as the thread that looks with Python's own means."""
    seen = []
    for core in ("c", "reference"):
        (tmp_path / core).mkdir()
        recording, parts = profiled_in(tmp_path / core, core, lines)
        assert stack_files.profiled_processes(parts)[0].is_watched == (core == "c")
        names = zip(recording.frames.name, recording.frames.file, recording.frames.line, strict=True)
        seen.append({(name, file.rpartition("/")[2], line) for name, file, line in names if "waits" in name
                     or "strange" in name or "天気" in name or name == "numbers"})  # fmt: skip
    if not lines:
        assert seen[0] == seen[1]
        assert {("strange", 'a "\\\U0001f600".py', 1)} <= seen[0]
        assert {"numbers", "strange"} < {name for name, _, _ in seen[0]}
    else:  # of loops either may have seen another line
        assert {("strange", 'a "\\\U0001f600".py', 3)} <= seen[0]
        waits = [{row for row in rows if "waits" in row[0]} for rows in seen]
        assert waits[0] == waits[1] != set()
        assert {line for name, _, line in seen[0] if "天気" in name} <= {5, 6, 7}
        assert {line for name, _, line in seen[0] if name == "numbers"} <= {10, 11, 12}


def profiled_in(folder, core, lines):
    done, parts = files(folder, ODD_NAMES, lines=lines, variables={"WATTRIBUTE_CORE": core})
    assert (done.returncode, done.stderr) == (0, "")
    return joined(parts), parts


def test_generators_recursion_and_deep_stacks(tmp_path):
    code = """
    import sys, time
    sys.setrecursionlimit(3000)
    def down(n): return spin() if n == 0 else down(n - 1)
    def spin():
        until = time.thread_time() + 0.2
        while time.thread_time() < until: pass
    down(900)
    """
    recording = profiled(tmp_path, code)
    at = recording.spans.locations()[0]
    columns = recording.spans.spans(at)
    spin = recording.frames.name.index("spin")
    assert set(columns.depth[columns.frame == spin]) == {902}


def test_more_rows_than_are_mapped_at_a_time(tmp_path):
    """Threads that come and go, forks, deep stacks, code that is thrown away: enough to fill the mapped part."""
    code = """
    import os, threading, time
    def deep(n): return n and deep(n - 1)
    def work():
        for _ in range(300):
            deep(50); time.sleep(0.0003)
    end = time.monotonic() + 3
    while time.monotonic() < end:
        threads = [threading.Thread(target=work) for _ in range(12)]
        for thread in threads: thread.start()
        exec(compile("def f(x): return x", "<generated>", "exec"))
        if os.fork() == 0: os._exit(0)
        os.wait()
        for thread in threads: thread.join()
    """
    done, parts = files(tmp_path, code, interval_s=0.0005)
    assert (done.returncode, done.stderr) == (0, "")
    first = stack_files.profiled_processes(parts)[0]
    assert first.is_watched
    assert first.samples["time"].min() > 0
    assert set(first.samples["lane"].tolist()) <= {lane | flag for lane in first.lanes for flag in (0, 1 << 30)} | {
        0xFFFFFFFE
    }


def test_native_threads_are_charged_to_who_called_them(tmp_path):
    """CPU time of threads that BLAS started counts for the function that called it."""
    blas = """
    import os, time
    os.environ["OPENBLAS_NUM_THREADS"] = "2"
    import numpy as np
    a = np.random.default_rng(1).random((700, 700))
    def product():
        for _ in range(20): a @ a
    def sleeps(): time.sleep(0.2)
    before = time.process_time(), time.thread_time()
    product()
    print(time.process_time() - before[0], time.thread_time() - before[1])
    sleeps()
    """
    done, parts = files(tmp_path, blas)
    assert done.returncode == 0, done.stderr
    whole, own = map(float, done.stdout.split())
    found = cpu_seconds(joined(parts))
    assert found["product"] > 0.8 * own + 0.5 * (whole - own)  # a BLAS that computes in its caller alone: all is own
    assert found.get("sleeps", 0) < 0.1 * whole


def test_quick_counters_are_read_at_looks(tmp_path):
    """Functions that take turns between two readings of the sampler: what they used is read when they are looked at."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "energy").write_text(f"{10**6:020d}\n")
    (tmp_path / "parts" / COUNTERS).write_text(f"{tmp_path / 'energy'}\n{tmp_path / 'not there'}\n")
    code = """
    import os, time
    counter = os.open(os.path.join(os.path.dirname(__file__), "energy"), os.O_WRONLY)
    until, micro = time.thread_time() + 0.3, 10**6
    while time.thread_time() < until:
        micro += 7
        os.pwrite(counter, b"%020d" % micro, 0)
    """
    done, parts = files(tmp_path, code)
    assert done.returncode == 0, done.stderr
    (process,) = stack_files.profiled_processes(parts)
    ((path, times, values),) = process.edge_readings()
    assert path == str(tmp_path / "energy")
    assert len(times) > 10
    assert (times[1:] > times[:-1]).all()
    assert (values[1:] >= values[:-1]).all()
    assert 10**6 <= values[0] < values[-1]
    assert not len(process.samples[process.samples["lane"] == COUNTER_LANE])  # no looks


def test_events_of_the_kernel_are_read_at_looks_until_the_program_closes_them(tmp_path):
    """A clock that counts nanoseconds; the program puts an event of its own under the number, which nobody reads."""
    address = "perf:1:0:0"
    try:
        open_counter(address).close()
    except OSError:
        pytest.skip("perf_event_open is not permitted here (kernel.perf_event_paranoid, or a container)")
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / COUNTERS).write_text(f"{address}\n")
    code = """
    import ctypes, os, time
    def busy():
        until = time.thread_time() + 0.2
        while time.thread_time() < until: pass
    busy()
    links = [f"/proc/self/fd/{file}" for file in range(3, 64)]
    ours = [int(link[14:]) for link in links if os.path.lexists(link) and "perf_event" in os.readlink(link)]
    eventfd = ctypes.CDLL(None).eventfd(5, 0)
    for file in ours:
        os.dup2(eventfd, file)
    closed = time.monotonic_ns()
    busy()
    print(closed, len(ours), int.from_bytes(os.read(eventfd, 8), "little"))
    """
    done, parts = files(tmp_path, code)
    assert done.returncode == 0, done.stderr
    closed, count, untouched = map(int, done.stdout.split())
    assert (count, untouched) == (1, 5)
    (process,) = stack_files.profiled_processes(parts)
    ((path, times, values),) = process.edge_readings()
    assert path == address
    assert len(times) > 5
    assert times[-1] <= closed
    assert np.median(np.diff(values) / np.diff(times)) == pytest.approx(1, rel=0.05)


def test_a_program_that_closes_all_files_keeps_its_own(tmp_path):
    code = """
    import os, sys, time
    os.closerange(3, 256)
    files = [open(os.path.join(os.path.dirname(__file__), f"mine-{i}"), "w+") for i in range(12)]
    def busy():
        until = time.thread_time() + 0.3
        while time.thread_time() < until: pass
    busy()
    for file in files: file.write("mine"); file.flush()
    """
    done, _ = files(tmp_path, code)
    assert done.returncode == 0
    assert {path.read_text() for path in tmp_path.glob("mine-*")} == {"mine"}


@pytest.mark.parametrize("field", ["state_frame", "frame_code", "frame_previous", "code_name", "code_lines"])
def test_a_layout_that_is_wrong_is_not_used(tmp_path, field, monkeypatch):
    """A Python that keeps its frames otherwise is looked at by the ticker."""
    from wattribute.recorders.stacks import Names, Profiling

    version = sys.version_info[:2]
    names = Names(str(tmp_path / "x"), Profiling())
    monkeypatch.setitem(watch.LAYOUTS, version, watch.LAYOUTS[version] | {field: watch.LAYOUTS[version][field] + 8})
    assert watch.watch(str(tmp_path / "x"), names, None) is None
    names.close()
    assert not list(tmp_path.glob("*.samples"))
