"""A journal followed while it grows gives the points of the finished recording, however it is cut."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wattribute.journal.file import Journal
from wattribute.model import Clock, Device
from wattribute.outputs.timeseries.series import BILL, bill_series, last_of_each, series, slopes
from wattribute.plugins import Channel
from wattribute.readers import journal as build
from wattribute.recorders import clocks
from wattribute.recorders.sampler import plain
from wattribute.sessions import journal_series as follow
from wattribute.sessions.journal_series import JournalReader
from wattribute.sessions.running_series import Integral, Slope, Total, Value
from wattribute.testing.recordings import counter, gauge

SECOND = 1_000_000_000
EPOCH_NS = 1_760_000_000_000_000_000


def joined(parts):
    times, values = zip(*parts, strict=True)
    return np.concatenate(times), np.concatenate(values)


def fed(rule, times, values, cuts):
    """All that a rule gives of readings cut into batches."""
    edges = [0, *sorted(cut % (len(times) + 1) for cut in cuts), len(times)]
    batches = list(pairwise(edges))
    return joined([rule.feed(times[a:b], values[a:b], b == len(times) and at == len(batches) - 1)
                   for at, (a, b) in enumerate(batches)])  # fmt: skip


steps = st.lists(st.integers(0, 40), min_size=2, max_size=60)
cuts = st.lists(st.integers(0, 60), max_size=6)


@given(steps, cuts, st.booleans(), st.sampled_from([None, 100]), st.sampled_from([1, Fraction(1, 7)]))
@example([0, 1, 0, 1], [2], True, None, 1)  # one change: not collapsed, as alignment has it
@example([40, 40, 40, 40], [2, 3], False, 100, 1)  # wraps right at a cut
def test_a_counter_in_batches_is_the_curve_of_alignment(rises, cuts, stale, wraps_at, scale):
    from wattribute.alignment import energy

    values = np.cumsum(rises)
    values = values % wraps_at if wraps_at else values
    times = EPOCH_NS + np.arange(len(values), dtype=np.int64) * 20_000_000
    signal = counter(values, times, scale=Fraction(scale), wraps_at=wraps_at, stale=stale)
    whole = energy(signal, Clock())
    if not stale and whole.problems:  # found stale by its medians, which a batch cannot know
        return
    found = fed(Total(signal), times, values, cuts)
    assert found[0].tolist() == whole.times.tolist()
    assert found[1] == pytest.approx(whole.values, rel=1e-12)
    ends, power = fed(Slope(Total(signal)), times, values, cuts)
    wanted = slopes(*last_of_each(whole.times, whole.values))
    assert ends.tolist() == wanted[0].tolist()
    assert power == pytest.approx(wanted[1], rel=1e-9, abs=1e-6)


def test_a_faulty_reading_at_the_end_of_a_batch_waits_for_the_next():
    times = EPOCH_NS + np.arange(6) * SECOND
    values = np.array([10, 20, 3, 30, 40, 50])  # 3 is a fault of the reading, not a reset: 30 follows
    signal = counter(values, times)
    assert fed(Total(signal), times, values, [3])[1].tolist() == [0, 10, 20, 30, 40]
    values = np.array([10, 20, 3, 4, 6, 9])  # a reset: what was used between 20 and 3 is not known
    assert fed(Total(signal), times, values, [3])[1].tolist() == [0, 10, 10, 11, 13, 16]


@given(st.lists(st.floats(0, 1e3), min_size=2, max_size=60), cuts)
def test_a_gauge_in_batches_is_the_integral_of_alignment(watts, cuts):
    from wattribute.alignment import energy

    times = EPOCH_NS + np.cumsum(np.arange(len(watts), dtype=np.int64) * 7_000_000 + 1)
    signal = gauge(watts, times)
    found = fed(Integral(signal), times, signal.values, cuts)
    assert found[0].tolist() == times.tolist()
    assert found[1] == pytest.approx(energy(signal, Clock()).values, rel=1e-12)
    assert fed(Value(signal, 2.0), times, signal.values, cuts)[1].tolist() == [2 * w for w in watts]


GPU, CPU, DRAM = Device("GPU 0", "gpu"), Device("package 0", "cpu"), Device("dram", "dram")
CHANNELS = [
    [
        Channel("energy", "counter", "J", GPU, Fraction(1, 1000), period_s=0.1),
        Channel("power", "gauge", "W", GPU, Fraction(1, 1000)),
        Channel("temperature", "gauge", "°C", GPU),
    ],
    [
        Channel("energy", "counter", "J", CPU, Fraction(1, 2**14), wraps_at=2**32, period_s=0.001, latency_s=0.001),
        Channel("dead", "counter", "J", Device("package 1", "cpu"), 1, period_s=0.001),
        Channel("estimate", "gauge", "W", DRAM, whole=False, estimated=True),
    ],
]


# of the package a baseline is known from the start, of the GPU the bill waits for the end
FLOORS = {"host": "here", "devices": {"package 0": {"floor_w": 20.0, "low_w": 18.0, "high_w": 22.0}}}


def write(path, seconds=4.0, flushed=lambda: None):
    """A journal as the sampler writes it, flushed twice a second; a neighbour works in the second half of it."""
    generator = np.random.default_rng(3)
    journal = Journal(path)
    meters = [{"name": name, "channels": [plain(c) for c in offered]}
              for name, offered in zip(("nvml", "rapl"), CHANNELS, strict=True)]  # fmt: skip
    journal.about(
        {"host": "here", "command": ["sleep", "9"], "zone": "FR", "clock": clocks.stamp(), "monotonic_ns": 5 * SECOND,
         "epoch_ns": EPOCH_NS, "meters": meters, "floors": FLOORS, "cores": 2}, CHANNELS,
    )  # fmt: skip
    journal.event({"start": 5 * SECOND + 1, "pid": 1})
    gpu, cpu = 7**17, 2**32 - 100_000
    for number in range(int(seconds * 50)):
        now = 5 * SECOND + number * 20_000_000
        gpu += int(generator.integers(900, 1100)) * 4 if number % 5 == 0 else 0
        cpu += int(generator.integers(1, 20_000))
        journal.readings(0, [(now, gpu), (now + 1, int(generator.integers(10**5, 2 * 10**5))),
                             (now, 40 + number % 9 if number % 10 == 0 else None)])  # fmt: skip
        journal.readings(1, [(now + 7, cpu % 2**32), (now + 8, 77), (now + 9, float(number % 3))])
        if number % 13 == 6:
            own = 0.015 * number
            journal.event({"cpu_s": [[own], [100 + own + 0.02 * max(number - 25 * seconds, 0)]], "at": now + 5_000_000})
        if number % 50 == 30:
            journal.event({"shares": {"GPU 0": 0.75 if number < 100 else 0.25}, "at": now + 6_000_000})
        if number % 25 == 24:
            journal.flush()
            flushed()
    journal.event({"end": now, "exit_code": 0, "cpu_s": 0.0151 * number})
    journal.event({"cpu_s": [[0.015 * number], [100 + 0.035 * number]], "at": now + 1_000_000})
    journal.flush()
    journal.close()


def told(parts):
    """{(metric, labels): [(time, value)]} of batches of series."""
    found = {}
    for each in parts:
        points = zip(each.times_ns.tolist(), each.values.tolist(), strict=True)
        found.setdefault((each.metric.field, each.labels), []).extend(points)
    return found


def all_series(recording):
    """What a recording tells when it is finished."""
    epoch_ns = recording.clock.epoch_ns
    return [*series(recording, epoch_ns), *bill_series(recording, epoch_ns)]


def test_what_is_followed_is_what_the_recording_tells(tmp_path):
    path, batches = tmp_path / "journal", []
    follower = JournalReader(path)
    assert follower.poll() == []  # it is not there yet
    write(path, flushed=lambda: batches.append(follower.poll()))
    assert [bool(batch) for batch in batches] == [False, False, True, True, True, True, True, True]
    batches.append(follower.poll(last=True))
    follower.close()
    recording = build.build(path.read_bytes(), path)
    whole = told(all_series(recording))
    live = told([each for batch in batches for each in batch])
    assert live.keys() == whole.keys()
    bills = [dict(each.labels) for batch in batches[:-1] for each in batch if each.metric is BILL]
    assert {(one["device"], one["part"]) for one in bills} == {
        ("package 0", part) for part in ("command", "others", "static")
    }
    assert ("bill_joules_total", "GPU 0", "others") in {
        (name, dict(labels)["device"], dict(labels).get("part")) for name, labels in live
    }
    assert {dict(labels)["device"] for _, labels in live} == {"GPU 0", "package 0"}  # not the dead, nor the estimate
    for key, points in whole.items():
        assert [at for at, _ in live[key]] == [at for at, _ in points]
        assert [v for _, v in live[key]] == pytest.approx([v for _, v in points], rel=1e-12, abs=1e-9)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """(a journal's bytes, what its recording tells)"""
    path = tmp_path_factory.mktemp("whole") / "journal"
    write(path, seconds=2)
    recording = build.build(path.read_bytes(), path)
    return path.read_bytes(), told(all_series(recording))


@given(st.lists(st.integers(1, 40_000), max_size=8))
def test_a_journal_cut_anywhere_gives_the_same(whole, tmp_path_factory, cuts):
    data, wanted = whole
    path = tmp_path_factory.mktemp("cut") / "journal"
    follower, parts, at = JournalReader(path), [], 0
    with path.open("wb", buffering=0) as file:
        for cut in sorted({min(cut, len(data)) for cut in cuts} | {len(data)}):
            file.write(data[at:cut])
            parts += follower.poll(last=cut == len(data))
            at = cut
    follower.close()
    live = told(parts)
    assert live.keys() == wanted.keys()
    for key, points in wanted.items():
        assert live[key] == [(at, pytest.approx(value, rel=1e-12, abs=1e-9)) for at, value in points]


def test_a_run_too_short_to_settle_is_told_at_its_end(tmp_path):
    write(tmp_path / "journal", seconds=0.3)
    follower = JournalReader(tmp_path / "journal")
    assert follower.poll() == []
    assert {each.metric.name for each in follower.poll(last=True)} >= {"energy", "power"}
    follower.close()


def test_a_journal_of_nobody_else_gives_its_room_back(tmp_path, monkeypatch):
    monkeypatch.setattr(follow, "FORGET_BYTES", 4096)
    path = tmp_path / "journal"
    follower = JournalReader(path, forget=True)
    before = []
    write(path, seconds=4, flushed=lambda: before.append(follower.poll()))
    assert follower.poll(last=True)
    follower.close()
    told = path.stat()
    assert told.st_size > 20_000
    assert told.st_blocks * 512 <= 16_384  # the rest is a hole
    assert sum(len(each) for batch in before for each in batch) > 400
