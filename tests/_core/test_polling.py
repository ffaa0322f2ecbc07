"""Meters read by the compiled core: the same numbers, pauses and times for the next reading as by the Python twin."""

import ctypes
import os
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.meters.fakes import FakeNvml, FakePowercap, Wave
from tests.meters.test_rapl import CPU_CLOCK, opened, power_pmu
from wattribute._core.polling import Polling, polling
from wattribute._core.shared import opened as library
from wattribute.journal.file import Journal
from wattribute.meters.files import CounterFile, WordSum
from wattribute.meters.hwmon import Hwmon
from wattribute.meters.model import PowerModel
from wattribute.meters.nvml import Nvml
from wattribute.meters.rapl import Rapl
from wattribute.meters.sources import Call, Sources
from wattribute.recorders.schedule import MeterSchedule

pytestmark = pytest.mark.skipif(library() is None, reason="no compiled core here")
MS = 1_000_000


def values(row):
    return [value for _, value in row]


def both(meter):
    """(what the core reads, what Python reads), of which the times lie in the order of reading."""
    core = polling([meter.sources])
    begin = time.monotonic_ns()
    row, again = core.read(0), meter.sources.read()
    end = time.monotonic_ns()
    for one, other in zip(row, again, strict=True):
        assert (one[1] is None) == (other[1] is None)
        assert one[1] is None or begin <= one[0] <= other[0] <= end
    return row, again


@pytest.fixture
def nvml(tmp_path, monkeypatch):
    meters = []

    def make(waves, **how):
        fake = FakeNvml(tmp_path, waves, period_s=1e6, **how)  # a counter that stands still can be compared
        monkeypatch.setenv("FAKE_NVML", str(fake.state))
        meters.append(Nvml(str(fake.library)))
        assert meters[-1].available().ok
        return fake, meters[-1]

    yield make
    for meter in meters:
        meter.close()


def test_a_gpu_says_the_same_to_both(nvml):
    _, meter = nvml([Wave(300), Wave(100)], quirks=["gpu 1 base 77000"])
    row, again = both(meter)
    assert values(row) == values(again)
    assert len(row) == len(meter.channels()) == 16
    assert None not in values(row)
    assert row[8][1] == 77000  # mJ of the second card


def test_pauses_are_kept(nvml):
    _, meter = nvml([Wave(300)])
    core = polling([meter.sources])
    assert None not in values(core.read(0))
    assert [value is not None for value in values(core.read(0))] == [True] + [False] * 7  # the counter alone
    time.sleep(0.18)
    assert [value is not None for value in values(core.read(0))] == [True] * 4 + [False] * 4  # power and utilisation


def test_what_fails_later_has_no_reading(nvml):
    fake, meter = nvml([Wave(300), Wave(200)])
    fake.write({"nvmlDeviceGetTotalEnergyConsumption": 15}, ["gpu 1 silent"])  # "GPU is lost"; fields refuse one by one
    row, again = both(meter)
    assert values(row) == values(again)
    assert [values(row)[i] is None for i in (0, 1, 2, 8, 9, 10)] == [True, False, False, True, True, True]


def test_an_old_driver(nvml):
    _, meter = nvml([Wave(250)], flags=("-DOLD_DRIVER",))
    row, again = both(meter)
    assert values(row) == values(again)
    assert row[0][1] == 250_000


def test_powercap_and_hwmon(tmp_path):
    tree = FakePowercap(tmp_path / "sys", {"intel-rapl:0": ("package-0", 0)}, [Wave(1)])
    (tmp_path / "hwmon/hwmon0").mkdir(parents=True)
    (tmp_path / "hwmon/hwmon0/power1_average").write_text("12500000\n")
    for meter in (Rapl(str(tree.root)), Hwmon(str(tmp_path / "hwmon"))):
        assert meter.available().ok
        row, again = both(meter)
        assert values(row) == values(again)
        meter.close()


def test_perf_events(tmp_path):
    meter = opened(power_pmu(tmp_path, {"energy-pkg": CPU_CLOCK}))
    ((at, value),), ((later, more),) = both(meter)
    assert more - value == pytest.approx(later - at, abs=MS)  # the stand-in counts one per ns
    meter.close()


def test_the_model_makes_energy_of_cpu_time(tmp_path):
    (tmp_path / "stat").write_text("cpu  5 6 7 1000 2000 8 9 3000 0 0\ncpu0 1 2 3\n")
    meter = PowerModel(str(tmp_path))
    row, again = both(meter)
    assert values(row) == values(again) == [5 + 6 + 7 + 8 + 9]  # no idle time, no waiting, nothing stolen
    assert len(meter.readings(row)) == len(meter.channels())
    assert values(meter.readings([(7, None)])) == [None, None]


WORD = st.one_of(
    st.integers(-(2**63) + 1, 2**63 - 1).map(lambda number: str(number).encode()),
    st.text("0123456789-x", max_size=25).map(str.encode),
)


@given(st.lists(WORD, max_size=5), st.sampled_from([(0,), (1, 2), (0, 2)]), st.sampled_from([b" ", b"\n", b" \t"]))
def test_words_are_added_up_or_nothing_is_said(tmp_path_factory, words, numbers, between):
    path = tmp_path_factory.getbasetemp() / "words"
    path.write_bytes(between.join(words) + b"\n")
    sources = Sources(time.monotonic_ns)
    sources.add(WordSum(CounterFile(path), numbers))
    (expected,), (found,) = values(sources.read()), values(polling([sources]).read(0))
    if expected is not None and abs(expected) >= 2**63:
        expected = None  # a number that no journal holds
    partial = max((int(word) for word in words if re.fullmatch(rb"-?\d+", word)), default=0, key=abs)
    assert found == expected or (found is None and abs(partial) >= 2**62)  # a sum whose parts do not fit
    sources.close()


def test_numbers_that_do_not_fit_are_no_readings(nvml):
    _, meter = nvml([Wave(300)])
    (energy,) = [one.source for one in meter.sources.timed if one.slot == 0]
    energy.function = None
    core = polling([meter.sources])  # the answer as it stands
    energy.value.value = 2**64 - 1  # "no value" of some drivers
    assert core.read(0)[0][1] is None
    energy.value.value = 2**63 - 1
    assert core.read(0)[0][1] == 2**63 - 1


# ---------------------------------------------------------------------------------------------------------- polling


class Offered:
    """A meter of one file, as a plan sees it."""

    name = "offered"

    def __init__(self, path):
        path.write_text("7\n")
        self.sources = Sources(time.monotonic_ns)
        self.sources.add(WordSum(CounterFile(path)))

    def channels(self):
        return ()

    def read(self):
        return self.sources.read()


@pytest.fixture
def pipe():
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)
    os.close(writing)


def polled(tmp_path, dues_and_intervals) -> Polling:
    core = polling([Offered(tmp_path / f"m{i}").sources for i in range(len(dues_and_intervals))])
    for meter, (due_ns, interval_ns) in zip(core.meters, dues_and_intervals, strict=True):
        meter.due_ns, meter.interval_ns = due_ns, interval_ns
    return core


@given(st.integers(0, 5000), st.integers(1, 1000))
def test_the_next_reading_is_planned_as_in_python(tmp_path_factory, late_ms, interval_ms):
    core = polled(tmp_path_factory.getbasetemp(), [(0, interval_ms * MS)])
    plans = [MeterSchedule(0, Offered(tmp_path_factory.getbasetemp() / "m"), interval_ms / 1e3) for _ in range(2)]
    before = time.monotonic_ns()
    for plan in (*plans, core.meters[0]):
        plan.due_ns = before - late_ms * MS
    reading, writing = os.pipe()
    ((number, row, after),) = core.poll(reading, 0, 2**62)
    os.close(reading)
    os.close(writing)
    assert (number, values(row)) == (0, [7])
    plans[0].schedule(before)
    plans[1].schedule(after)
    assert core.meters[0].due_ns in (plans[0].due_ns, plans[1].due_ns)


def test_it_reads_in_step_until_it_is_enough(tmp_path, pipe):
    now = time.monotonic_ns()
    core = polled(tmp_path, [(now, 20 * MS), (now + 35 * MS, 40 * MS), (now + 900 * MS, 1000 * MS)])
    rows = list(core.poll(pipe[0], now + 100 * MS, now + 500 * MS))
    # 0, 20, …, 100; the second at 20 already, since it is half due then, and next at 75 → 60; the third not at all
    assert [number for number, _, _ in rows].count(0) == pytest.approx(6, abs=1)
    assert [number for number, _, _ in rows].count(1) == pytest.approx(3, abs=1)
    assert [number for number, _, _ in rows].count(2) == 0
    assert now + 100 * MS <= rows[-1][2] < now + 500 * MS
    assert core.meters[0].due_ns > rows[-1][2]


def test_it_ends_in_time_and_at_once_when_somebody_calls(tmp_path, pipe):
    begin = time.monotonic_ns()
    core = polled(tmp_path, [(begin + 10**12, 10**12)])
    assert list(core.poll(pipe[0], begin, begin + 30 * MS)) == []
    assert time.monotonic_ns() >= begin + 30 * MS
    os.write(pipe[1], b"x")
    begin = time.monotonic_ns()
    assert list(core.poll(pipe[0], begin, begin + 10**12)) == []
    assert time.monotonic_ns() - begin < 10**9


def test_it_comes_back_when_its_room_is_full(tmp_path, pipe):
    now = time.monotonic_ns()
    core = polled(tmp_path, [(now, MS // 10)])
    rows = list(core.poll(pipe[0], now + 10**12, now + 10**12))
    assert len(rows) == 100
    assert all(now <= row[0][0] <= at and values(row) == [7] for _, row, at in rows)


def test_what_was_read_before_a_call_that_hangs_is_known(tmp_path, pipe):
    """The third call of a driver is looked at from inside: two rounds are whole, and what was read before it."""
    answer, seen = ctypes.c_int64(5), []

    def called(handle, into):
        seen.append([(number, values(row), at > 0) for number, row, at in core.unfinished()])
        return 0

    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(called)
    driver = Offered(tmp_path / "driver")
    driver.sources.add(Call(function, ctypes.c_void_p(), answer, answer, ctypes.c_int()))
    now = time.monotonic_ns()
    core = polling([Offered(tmp_path / "file").sources, driver.sources])
    for meter in core.meters:
        meter.due_ns, meter.interval_ns = now, MS
    rows = list(core.poll(pipe[0], now + 3 * MS, now + 10**12))
    assert [values(row) for _, row, _ in rows[:2]] == [[7], [7, 5]]
    for calls, unfinished in enumerate(seen):
        assert unfinished == [*([(0, [7], True), (1, [7, 5], True)] * calls), (0, [7], True), (1, [7, None], False)]


def test_the_twin_on_request(monkeypatch, tmp_path):
    monkeypatch.setenv("WATTRIBUTE_CORE", "reference")
    assert polling([Offered(tmp_path / "m").sources]) is None


def test_the_journal_gets_the_same_bytes(tmp_path, nvml):
    _, meter = nvml([Wave(300)])
    core = polling([meter.sources])
    books = [Journal(tmp_path / name) for name in ("raw", "pairs")]
    for row in (core.read(0), core.read(0)):  # the second has no readings where pauses are not over
        for book, readings in zip(books, (row, list(row)), strict=True):
            book.about({}, [meter.channels()])
            book.readings(0, readings)
    assert books[0].unwritten() == books[1].unwritten()
    for book in books:
        book.close()
