"""Regions as a program marks them: threads, tasks, generators, exceptions, forks, kills, full disks."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest

from tests.meters.fakes import FakePowercap, Wave
from tests.meters.test_rapl import CPU_CLOCK, opened, power_pmu
from wattribute import attribute, count, read, record, region
from wattribute.errors import OptionError
from wattribute.meters import perf
from wattribute.model import Clock, Recording
from wattribute.readers import region_files
from wattribute.recorders import regions
from wattribute.testing.edges import RANGE_UJ, alternating


@pytest.fixture
def folder(tmp_path):
    regions.start(str(tmp_path))
    yield tmp_path
    regions.stop()


def collected(folder):
    """The recording of what was written so far."""
    return region_files.join(Recording(clock=Clock(epoch_ns=0)), folder)


def tree(recording, location):
    """The spans of a location as (frame, depth, resumed), in the order they began."""
    spans = recording.spans.spans(location)
    names = [recording.frames.name[f] for f in spans.frame]
    return list(zip(names, spans.depth.tolist(), spans.resumed.tolist(), strict=True))


def nested_right(spans):
    for i, parent in enumerate(spans.parent):
        assert spans.start[i] <= spans.end[i]
        if parent < 0:
            assert spans.depth[i] == 0
        else:
            assert parent < i
            assert spans.depth[i] == spans.depth[parent] + 1
            assert spans.start[parent] <= spans.start[i] <= spans.end[i] <= spans.end[parent]


def test_nothing_records_nothing_is_written(tmp_path):
    with region("quiet"):
        pass
    assert regions._sink is None
    assert not list(tmp_path.iterdir())


def test_nesting_names_and_places(folder):
    with region("outer"):
        with region("inner"):
            pass
        with region("inner"):
            pass
    recording = collected(folder)
    assert tree(recording, 0) == [("outer", 0, False), ("inner", 1, False), ("inner", 1, False)]
    nested_right(recording.spans.spans(0))
    assert recording.frames.file[0] == __file__
    assert recording.frames.paradigm[0] == "user"
    assert recording.locations.name == ("MainThread",)
    assert recording.processes.id[0] == os.getpid()
    assert recording.host(0) == os.uname().nodename


def test_an_exception_closes_its_region(folder):
    with contextlib.suppress(ZeroDivisionError), region("outer"), region("fails"):
        1 / 0  # noqa: B018
    with region("after"):
        pass
    recording = collected(folder)
    assert tree(recording, 0) == [("outer", 0, False), ("fails", 1, False), ("after", 0, False)]
    assert not recording.problems


@region
def plain(x):
    return x + 1


@region("named")
async def waits():
    await asyncio.sleep(0)
    return 7


@region
def numbers(n):
    got = []
    try:
        for i in range(n):
            got.append((yield i))
    except ValueError:
        yield "caught"
    return got


@region
async def letters():
    for letter in "ab":
        await asyncio.sleep(0)
        yield letter


async def read_letters():
    return [letter async for letter in letters()]


def test_decorated_functions_of_every_kind(folder):
    assert plain(1) == 2
    assert plain.__name__ == "plain"
    assert asyncio.run(waits()) == 7
    assert list(numbers(3)) == [0, 1, 2]
    assert asyncio.run(read_letters()) == ["a", "b"]
    recording = collected(folder)
    calls = {}
    for location in recording.spans.locations():
        for name, _, resumed in tree(recording, location):
            calls.setdefault(name, []).append(resumed)
    assert calls == {"plain": [False], "named": [False], "numbers": [False, True, True, True], "letters": [False]}
    at = recording.frames.name.index("numbers")
    assert recording.frames.line[at] == numbers.__wrapped__.__code__.co_firstlineno


def test_a_driven_generator_is_still_a_generator(folder):
    def delegate():
        return (yield from numbers(2))

    generator = delegate()
    assert next(generator) == 0
    assert generator.send("x") == 1
    with pytest.raises(StopIteration) as stop:
        generator.send("y")
    assert stop.value.value == ["x", "y"]
    thrown = numbers(5)
    next(thrown)
    assert thrown.throw(ValueError()) == "caught"
    thrown.close()  # or else the collector closes it, in some later test: that is a piece of its region too
    closed = numbers(5)
    next(closed)
    closed.close()
    assert not collected(folder).problems


def test_a_generators_time_is_not_its_consumers(folder):
    for _ in numbers(2):
        with region("consumer"):
            time.sleep(0.002)
    recording = collected(folder)
    assert [row[:2] for row in tree(recording, 0)] == [
        ("numbers", 0),
        ("consumer", 0),
        ("numbers", 0),
        ("consumer", 0),
        ("numbers", 0),
    ]


def test_a_region_inside_a_generator_that_overlaps_its_consumers(folder):
    def produce():
        with region("producer"):
            yield 1

    generator = produce()
    next(generator)
    with region("consumer"):
        next(generator, None)  # ends the producer's region inside the consumer's
        time.sleep(0.001)
    recording = collected(folder)
    # the consumer is cut where the producer ended: one call in two pieces
    assert tree(recording, 0) == [("producer", 0, False), ("consumer", 1, False), ("consumer", 0, True)]
    nested_right(recording.spans.spans(0))
    spans = recording.spans.spans(0)
    assert spans.end[1] == spans.start[2] == spans.end[0]


def test_one_region_object_used_again_and_by_threads(folder):
    shared, ready = region("shared"), threading.Barrier(4)

    def work():
        for _ in range(50):
            with shared:
                ready.wait()
                with shared:
                    ready.wait()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recording = collected(folder)
    assert len(recording.spans.locations()) == 4
    for location in recording.spans.locations():
        assert [depth for _, depth, _ in tree(recording, location)] == [0, 1] * 50
        nested_right(recording.spans.spans(location))
    assert not recording.problems


def test_eight_threads(folder):
    def work(number):
        for _ in range(1500):  # more than one mapped piece in all
            with region(f"outer {number}"), region("inner"):
                pass

    threads = [threading.Thread(target=work, args=(i,), name=f"worker {i}") for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recording = collected(folder)
    # a thread that ends early may leave its id, and so its lane, to another
    assert 1 <= len(recording.spans.locations()) <= 8
    rows = [row for location in recording.spans.locations() for row in tree(recording, location)]
    assert len(rows) == 8 * 3000
    for location in recording.spans.locations():
        nested_right(recording.spans.spans(location))
        found = tree(recording, location)
        assert [depth for _, depth, _ in found] == [0, 1] * (len(found) // 2)


def test_a_thousand_tasks(folder):
    async def work(number):
        with region("outer"):
            await asyncio.sleep(0.001 * (number % 7))
            with region("inner"):
                await asyncio.sleep(0.001 * (number % 3))

    async def main():
        await asyncio.gather(*(work(i) for i in range(1000)))
        with region("alone"):
            pass

    asyncio.run(main())
    recording = collected(folder)
    rows = [row for location in recording.spans.locations() for row in tree(recording, location)]
    assert rows.count(("outer", 0, False)) == 1000
    assert rows.count(("inner", 1, False)) == 1000
    assert len(rows) == 2001
    for location in recording.spans.locations():
        nested_right(recording.spans.spans(location))
    assert not recording.problems


def test_tasks_one_after_the_other_share_a_lane(folder):
    async def work():
        with region("step"):
            await asyncio.sleep(0)

    async def main():
        for _ in range(100):
            await asyncio.create_task(work())
            await asyncio.sleep(0)

    asyncio.run(main())
    recording = collected(folder)
    assert len(recording.spans.locations()) <= 2
    assert sum(len(recording.spans.spans(i)) for i in recording.spans.locations()) == 100


def test_a_cancelled_task_closes_its_region(folder):
    async def work():
        with region("cancelled"):
            await asyncio.sleep(60)

    async def main():
        task = asyncio.create_task(work())
        await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())
    assert not collected(folder).problems


def test_fork(folder):
    with region("parent"):
        child = os.fork()
        if child == 0:
            with region("child"):
                pass
            os._exit(0)
        os.waitpid(child, 0)
    recording = collected(folder)
    assert sorted(recording.processes.id.tolist()) == sorted([os.getpid(), child])
    assert sorted(tree(recording, i)[0][0] for i in recording.spans.locations()) == ["child", "parent"]
    assert not recording.problems


def run_program(folder, code, **options):
    environment = {**os.environ, regions.FOLDER: str(folder)}
    return subprocess.Popen([sys.executable, "-c", code], env=environment, **options)


def test_another_process_and_a_spawned_worker(tmp_path):
    code = (
        "import multiprocessing, wattribute\n"
        "def work(i):\n"
        "    with wattribute.region('worker'): return i\n"
        "if __name__ == '__main__':\n"
        "    with wattribute.region('main'):\n"
        "        with multiprocessing.get_context('spawn').Pool(2) as pool: assert pool.map(work, range(2)) == [0, 1]\n"
    )
    script = tmp_path / "program.py"
    script.write_text(code)
    environment = {**os.environ, regions.FOLDER: str(tmp_path)}
    subprocess.run([sys.executable, str(script)], env=environment, check=True)
    recording = collected(tmp_path)
    names = [recording.frames.name[f] for i in recording.spans.locations() for f in recording.spans.spans(i).frame]
    assert sorted(names) == ["main", "worker", "worker"]
    assert recording.processes.name[0].startswith("program.py [")


def test_a_killed_process_loses_nothing(tmp_path):
    code = "import os, time, wattribute\nwith wattribute.region('done'): pass\n"
    code += "with wattribute.region('open'):\n    print('now', flush=True)\n    time.sleep(60)\n"
    with run_program(tmp_path, code, stdout=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"now\n"
        child.send_signal(signal.SIGKILL)
    end_ns = time.monotonic_ns()
    recording = region_files.join(Recording(clock=Clock(length_ticks=end_ns)), tmp_path)
    assert tree(recording, 0) == [("done", 0, False), ("open", 0, False)]
    assert recording.spans.spans(0).end[1] == end_ns
    assert "1 regions were still open" in recording.problems[0].message


def test_no_room_does_not_stop_the_program(tmp_path):
    code = (
        "import resource, wattribute\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "for i in range(10):\n    with wattribute.region('x'): pass\n"
        "print('finished')"
    )
    with run_program(tmp_path, code, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        out, error = child.communicate()
    assert (out, error, child.returncode) == (b"finished\n", b"", 0)
    recording = collected(tmp_path)
    assert "could not record its regions" in recording.problems[0].message


def test_a_folder_that_is_not_there(tmp_path):
    code = "import wattribute\nwith wattribute.region('x'): print('fine')"
    with run_program(tmp_path / "none", code, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.communicate() == (b"fine\n", b"")


def test_stopping_inside_a_region(tmp_path):
    regions.start(str(tmp_path))
    with region("cut"):
        regions.stop()
    assert regions.FOLDER not in os.environ
    assert collected(tmp_path).problems[0].kind == "regions"


def test_what_cannot_be_a_region():
    with pytest.raises(OptionError, match="needs a name"):
        region(7)
    with pytest.raises(OptionError, match="not classes"):
        region(type("C", (), {}))


def test_a_hostile_name_survives(folder):
    name = '<script>"\\\n\x00\ud800[bold]'
    with region(name):
        pass
    assert collected(folder).frames.name == (name,)


def test_importing_region_loads_no_numpy():
    code = "import sys, wattribute; wattribute.region; print([m for m in ('numpy', 'asyncio') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def amounts(recording):
    """(unit, location) → what was counted there, in order."""
    return {(one.name, one.location): one.values.tolist() for one in recording.signals}


def test_counts_belong_to_the_thread_that_counts(folder):
    def work():
        with region("worker"):
            count("tokens", 5)

    with region("main"):
        count("tokens", 3)
        count("steps")
        count("tokens", 0.5)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    recording = collected(folder)
    assert amounts(recording) == {("tokens", 0): [3, 0.5], ("steps", 0): [1], ("tokens", 1): [5]}
    for one in recording.signals:
        spans = recording.spans.spans(one.location)
        assert (one.times >= spans.start[0]).all()
        assert (one.times < spans.end[0]).all()
        assert (one.kind, one.unit, one.device) == ("delta", "#", "")


def test_counts_of_tasks_lie_on_their_lanes(folder):
    async def request(n):
        with region("request"):
            await asyncio.sleep(0)
            count("tokens", n)
            await asyncio.sleep(0)

    async def main():
        await asyncio.gather(*(request(n) for n in (1, 2, 3)))

    asyncio.run(main())
    recording = collected(folder)
    assert sorted(values for values in amounts(recording).values()) == [[1], [2], [3]]
    for one in recording.signals:
        spans = recording.spans.spans(one.location)
        assert ((spans.start <= one.times[0]) & (one.times[0] < spans.end)).any()


def test_counts_without_regions_and_of_forked_children(folder):
    count("tokens", 2)
    pid = os.fork()
    if pid == 0:
        count("tokens", 40)
        os._exit(0)
    os.waitpid(pid, 0)
    recording = collected(folder)
    assert sorted(sum(one.values) for one in recording.signals) == [2, 40]
    assert len(recording.processes) == 2
    assert not recording.spans.locations()


def test_more_counts_than_a_piece_holds(folder):
    for _ in range(10_000):
        count("tokens")
    assert sum(collected(folder).signals[0].values) == 10_000


def test_a_count_that_is_no_number_is_an_error_of_the_caller(folder):
    with pytest.raises(TypeError):
        count("tokens", "many")
    assert not collected(folder).signals


def test_counting_without_a_recording_does_nothing(tmp_path):
    count("tokens", 3)
    assert regions._sink is None


def error_of(made, name):
    rows = attribute(made.recording, by=("frame",)).rows
    said = dict(zip(rows["frame"].to_list(), rows["total_j"].to_list(), strict=True))
    return said[name] / made.true_j[name] - 1


@pytest.mark.parametrize("strong_w", [78, 114, 300])
@pytest.mark.parametrize("length_s", [0.0203, 0.0507, 0.1014])  # edges at every phase of readings and updates
def test_quick_counters_are_read_at_the_edges(tmp_path, length_s, strong_w):
    (tmp_path / "with").mkdir()
    (tmp_path / "without").mkdir()
    made = alternating(tmp_path / "with", length_s, strong_w=strong_w)
    assert abs(error_of(made, "weak")) < 0.03  # 20 % at 20 ms and 300 W if a reading spoke of its own moment
    assert abs(error_of(made, "strong")) < 0.02
    assert abs(error_of(alternating(tmp_path / "without", length_s, edges=False), "weak")) > 0.05
    assert not made.recording.noticed


def test_readings_at_edges_go_with_a_counter_that_wraps(tmp_path):
    """It turns in the middle: the clock begins at 1000 s × 54 W."""
    made = alternating(tmp_path, 0.0203, base_uj=RANGE_UJ - 54_000_000_000 - 50_000_000)
    (signal,) = made.recording.signals
    assert (np.diff(signal.values) < 0).sum() == 1
    assert abs(error_of(made, "weak")) < 0.05


def counters_in(folder, *contents):
    paths = [folder / f"counter{i}" for i, _ in enumerate(contents)]
    for path, content in zip(paths, contents, strict=True):
        path.write_text(content)
    (folder / "counters").write_text("".join(f"{path}\n" for path in paths))
    return list(map(str, paths))


def test_edges_read_no_counter_that_is_slow_or_no_number(tmp_path):
    first, second, _ = counters_in(tmp_path, "5\n", "6\n", "none\n")
    steps = iter([4_000] * 10 + [6_000] * 10 + [0] * 10)
    now = [0]

    def clock():
        now[0] += next(steps)
        return now[0]

    counters = regions.EdgeCounters(str(tmp_path), clock)
    assert counters.paths == [first]
    assert second not in counters.paths
    counters.close()


def test_edges_read_at_most_once_per_pause(tmp_path):
    counters_in(tmp_path, "5\n")
    now = [10**9]
    with patch.object(regions, "monotonic_ns", lambda: now[0]):
        sink = regions.Sink(str(tmp_path))
        for _ in range(3):
            sink.begin("x", None, False)
            now[0] += 499_999 // 2
        now[0] += 10
        sink.begin("x", None, False)
        sink.close()
    edges = {path: columns for path, *columns in region_files.edge_readings(tmp_path)}
    times, values = edges[str(tmp_path / "counter0")]
    assert times.tolist() == [10**9, 10**9 + 3 * (499_999 // 2) + 10]
    assert values.tolist() == [5, 5]


class KernelEvent:
    """A counter of the kernel that is open until it is closed."""

    file = 99

    def __init__(self):
        self.is_open = True

    def read(self):
        return 7

    def close(self):
        assert self.is_open
        self.is_open = False


def test_counters_that_another_reader_does_not_take_are_closed(tmp_path):
    paths = [*counters_in(tmp_path, "5\n", "6\n"), "perf:1:2:0"]
    (tmp_path / "counters").write_text("".join(f"{path}\n" for path in [paths[2], *paths[:2]]))
    event, files = KernelEvent(), {path: regions._CounterFile(path) for path in paths[:2]}
    with patch.object(regions, "_open_counter", lambda path: files.get(path, event)):
        counters = regions.EdgeCounters(str(tmp_path), lambda: 0)
    assert counters.paths == [paths[2], *paths[:2]]
    assert counters.hand_over(2) == {paths[2]: 99, paths[0]: files[paths[0]].file}
    assert not counters
    assert event.is_open
    assert files[paths[1]].read() is None
    assert files[paths[0]].read() == 5
    files[paths[0]].close()


def test_a_program_that_closes_every_file_records_its_regions_all_the_same(tmp_path):
    path = counters_in(tmp_path, "5\n")[0]
    counters = regions.EdgeCounters(str(tmp_path), time.monotonic_ns)
    if not counters:  # this machine is busy: five readings of more than 5 µs
        counters = regions.EdgeCounters(str(tmp_path), lambda: 0)
    os.truncate(path, 0)  # as a file of that number which holds something else
    assert counters.read(0) == []
    assert not counters
    assert counters.due_ns == sys.maxsize


def test_a_recorded_block_reads_powercap_at_its_edges(tmp_path):
    zones = {"intel-rapl:0": ("package-0", 0)}
    with FakePowercap(tmp_path / "sys", zones, [Wave(100)]), record(meters=[f"rapl:{tmp_path / 'sys'}"]) as recorder:
        for _ in range(20):
            with region("x"):
                time.sleep(0.005)
    signal = recorder.recording.signals[0]
    spans = recorder.recording.spans.spans(0)
    before = np.searchsorted(signal.times, spans.start) - 1
    assert (spans.start - signal.times[before]).min() < 100_000  # ns: the best of twenty; the sampler's are 20 ms apart
    assert signal.declared["file"] == str(tmp_path / "sys/class/powercap/intel-rapl:0/energy_uj")


def test_a_traced_program_reads_powercap_where_functions_begin(tmp_path):
    zones = {"intel-rapl:0": ("package-0", 0)}
    program = tmp_path / "program.py"
    program.write_text(
        "import time, wattribute\n"
        "def work():\n    time.sleep(0.005)\n"
        "for _ in range(20):\n    work()\n"
        "with wattribute.region('marked'):\n    pass\n"
    )
    with FakePowercap(tmp_path / "sys", zones, [Wave(100)]):
        words = ["profile", "--mode", "trace", "--meters", f"rapl:{tmp_path / 'sys'}", "-o", "x.watt", str(program)]
        subprocess.run([sys.executable, "-m", "wattribute", *words], cwd=tmp_path, check=True, capture_output=True)
    recording = read(tmp_path / "x.watt")
    (signal,) = (signal for signal in recording.signals if signal.unit == "J")
    spans = recording.spans.spans(0)
    names = np.array(recording.frames.name)[spans.frame]
    assert (names == "marked").sum() == 1
    begins = spans.start[names == "work"]
    before = np.searchsorted(signal.times, begins) - 1
    assert len(begins) == 20
    assert (begins - signal.times[before]).min() < 100_000  # ns: the best of twenty; the sampler's are 20 ms apart


@pytest.mark.parametrize("amount", [-3, float("nan"), float("inf")])
def test_what_cannot_be_a_count_is_refused(amount):
    with pytest.raises(OptionError, match="tokens cannot be counted"):
        count("tokens", amount)


def test_a_counter_that_counts_from_its_own_beginning_is_aligned_to_the_samplers():
    """1 per ns up to 60 ns, then 3; the program's counter began 17 ns and 17 counts later."""
    times = np.arange(0, 101, 20)
    values = np.where(times < 60, times, 60 + 3 * (times - 60))
    edges = np.array([25, 50, 65, 95])
    own = np.where(edges < 60, edges, 60 + 3 * (edges - 60)) - 17
    aligned = region_files.aligned(times, values, edges, own)
    # between the readings around each edge: 8 … 28 − 8, so that 17 is known to a few counts
    assert np.diff(aligned).tolist() == np.diff(own).tolist()
    assert abs(int(aligned[0]) - 25) <= 6
    joined = region_files.with_edges(times, values, edges, aligned, None)
    assert joined[0].tolist() == sorted([*times.tolist(), *edges.tolist()])
    assert (np.diff(joined[1]) >= 0).all()
    assert len(region_files.aligned(times, values, np.array([-5, 200]), np.array([1, 2]))) == 0


def test_programs_read_counters_of_the_kernel_at_the_edges_of_regions(tmp_path):
    """A real event of the kernel: its clock, which counts a nanosecond per nanosecond."""
    event = perf.Event("pkg", "0", 0, 1, 0, Fraction(1))
    try:
        perf.open_counter(event.address).close()
    except OSError:
        pytest.skip("perf_event_open is not permitted here (kernel.perf_event_paranoid, or a container)")
    (tmp_path / "counters").write_text(f"{event.address}\nperf:nonsense\n")
    with patch.object(regions, "_CHEAP_NS", 10**9), patch.object(regions, "_STALE_NS", 10**12):  # a busy machine
        sink = regions.Sink(str(tmp_path))
        for _ in range(3):
            sink.begin("x", None, False)
            sink.due_ns = 0
        sink.close()
    [(address, times, values)] = region_files.edge_readings(tmp_path)
    assert address == event.address
    assert len(times) == 3
    assert (np.diff(values) > 0).all()


def test_a_recorded_block_reads_events_of_the_kernel_at_its_edges(tmp_path):
    """The stand-in of the kernel's power PMU counts nanoseconds: a region's energy is its time."""
    root = power_pmu(tmp_path / "sys", {"energy-pkg": CPU_CLOCK})
    opened(root).close()  # skips where events are not permitted
    # a read may take longer on a busy machine, or under coverage
    with patch.object(regions, "_CHEAP_NS", 10**9), record(meters=[f"rapl:{root}"]) as recorder:
        for _ in range(20):
            with region("x"):
                time.sleep(0.005)
    (signal,) = (signal for signal in recorder.recording.signals if signal.unit == "J")
    spans = recorder.recording.spans.spans(0)
    before = np.searchsorted(signal.times, spans.start) - 1
    assert (spans.start - signal.times[before]).min() < 100_000  # ns: the best of twenty; the sampler's are 20 ms apart
    assert signal.declared["file"] == f"perf:1:{CPU_CLOCK}:0"
    assert (np.diff(signal.values) >= 0).all()
    # one count per ns, whoever of the two read it: edges are aligned to the sampler's counter
    slopes = np.diff(signal.values) / np.diff(signal.times)
    assert np.median(np.abs(slopes - 1)) < 0.1
