"""Selections leave out what they say, and what is left out costs nothing: its files are not opened."""

import pickle
from fractions import Fraction

import numpy as np
import pytest

import wattribute

from .archives import rich

CALLS, READINGS = 40, 30


@pytest.fixture
def archive(tmp_path):
    return rich(tmp_path / "rich", CALLS, READINGS)


def spans_of(recording):
    return {row: recording.spans.spans(row) for row in recording.spans.locations()}


def test_files_of_other_processes_are_not_opened(archive):
    for file in ("0.evt", "2.evt", "0.def", "2.def"):
        (archive / "traces" / file).write_bytes(b"garbage")
    recording = wattribute.read(archive, process="^MPI Rank 1$")
    assert [recording.locations.name[row] for row in recording.spans.locations()] == ["Master thread", "never used"]
    assert len(recording.spans.spans(1)) == 2
    recording.spans.count_events()
    assert recording.problems == wattribute.read(archive, process="rank 1", metric="nothing").problems
    assert not [p for p in recording.problems if p.location is not None]
    assert any(p.location == 0 for p in wattribute.read(archive).problems)  # and without a selection they are


def test_a_stream_belongs_to_the_process_that_created_its_context(archive):
    recording = wattribute.read(archive, process="rank 0")
    kinds = [recording.locations.kind[row] for row in recording.spans.locations()]
    assert kinds == ["cpu", "gpu"]


def test_a_nodes_energy_stays_with_any_rank_of_the_node(tmp_path):
    from wattribute.readers.otf2.writer import Writer

    with Writer(tmp_path / "x") as trace:
        hosts = [trace.node(f"h{n}", "node") for n in range(2)]
        ranks = [trace.process(f"MPI Rank {n}", hosts[n // 2]) for n in range(4)]
        threads = [trace.location("t", rank) for rank in ranks]
        main = trace.region("main")
        for thread in threads:
            thread.enter(1, main)
            thread.leave(9, main)
        energy = trace.metric_class([trace.member("coretemp:::craypm:energy")])
        memory = trace.metric_class([trace.member("HIP Memory")])
        for n, rank in ((0, 0), (1, 2)):  # the first rank of each node records
            meter = trace.location("", ranks[rank], "metric")
            meter.metric(5, trace.metric_instance(energy, meter.number, "node", hosts[n]), 7)
        for rank in ranks:
            own = trace.location("", rank, "metric")
            own.metric(5, trace.metric_instance(memory, own.number, "process", rank), 8)
    signals = wattribute.read(tmp_path / "x", process="Rank 3").signals
    assert [(s.name.rpartition(":")[2], s.host) for s in signals] == [("energy", "h1"), ("HIP Memory", "h1")]
    assert len(wattribute.read(tmp_path / "x").signals) == 6


def test_metrics(archive):
    for metric, names in (("HEAT", ["heat"]), ("energy_count", ["A2rocm_smi:::energy_count:device=0"] * 2)):
        assert [s.name for s in wattribute.read(archive, metric=metric).signals] == names
    (archive / "traces" / "0.evt").write_bytes(b"garbage")
    recording = wattribute.read(archive, metric="nothing like it")
    assert recording.signals == ()
    assert not [p for p in recording.problems if p.location is not None]  # nothing was decoded


def test_frames_that_are_left_out_hand_their_children_up(archive):
    kept = spans_of(wattribute.read(archive, exclude_frame="^main$"))
    assert (kept[0].depth == 0).all()
    assert (kept[0].parent == -1).all()
    assert len(kept[0]) == CALLS
    only = wattribute.read(archive, frame="KERNEL")
    names = {only.frames.name[frame] for spans in spans_of(only).values() for frame in spans.frame}
    assert names == {"kernel(float*)"}


def test_one_thread_and_many_give_the_same(archive):
    one, many = wattribute.read(archive, threads=1), wattribute.read(archive, threads=7)
    assert [s.name for s in one.signals] == [s.name for s in many.signals]
    for mine, theirs in zip(one.signals, many.signals, strict=True):
        np.testing.assert_array_equal(mine.values, theirs.values)


def test_progress_is_told(archive):
    told = []
    wattribute.read(archive, progress=lambda done, whole: told.append((done, whole)))
    assert told[-1][0] == told[-1][1] > 0
    assert told == sorted(told)


def test_real_trace_without_mpi_or_hip(shared):
    path = shared / "traces" / "jacobi-mpi-omp-cuda"
    whole = wattribute.read(path)
    names = np.array(whole.frames.name)

    def calls(recording):
        return sum(len(spans) for spans in spans_of(recording).values())

    frames = np.concatenate([spans.frame for spans in spans_of(whole).values()])
    mpi = np.char.startswith(names, "MPI_")
    assert mpi[frames].sum() > 0
    assert calls(wattribute.read(path, exclude_frame="^MPI_")) == len(frames) - mpi[frames].sum()
    assert calls(wattribute.read(path, process="Rank 1$")) == sum(
        len(spans) for row, spans in spans_of(whole).items() if whole.processes.name[whole.owner(row)] == "MPI Rank 1"
    )


def test_metric_kinds(archive):
    [heat] = [s for s in wattribute.read(archive, metric_kinds=["heat=gauge:W"]).signals if s.name == "heat"]
    assert (heat.kind, heat.unit, heat.device) == ("gauge", "W", "heat")


def test_a_recording_travels_to_another_process(archive):
    before = wattribute.read(archive)
    after = pickle.loads(pickle.dumps(before))
    np.testing.assert_array_equal(after.spans.spans(0).end, before.spans.spans(0).end)
    after.spans.count_events()
    assert after.metadata["events"] == after.spans.events != before.metadata["events"]


@pytest.mark.parametrize(
    ("unit", "exponent", "kinds", "disputed"),
    [
        ("J", 0, [], False),  # what the name stands for
        ("kJ", -3, [], False),
        ("J", -6, [], True),  # the name says joules, the file microjoules
        ("J", -6, ["PACKAGE=counter:uJ"], False),  # the user knows
        ("bytes", 0, [], False),
    ],
)
def test_a_disputed_scale_is_said(tmp_path, unit, exponent, kinds, disputed):
    from wattribute.readers.otf2.writer import Writer

    with Writer(tmp_path / "x") as trace:
        thread = trace.location("t", trace.process("p", trace.node("n")))
        metric = trace.metric_class([trace.member("x86_energy/PACKAGE0", unit, exponent=exponent)], "strict")
        thread.metric(1, metric, 5)
    recording = wattribute.read(tmp_path / "x", metric_kinds=kinds)
    assert bool(recording.problems) == disputed
    assert recording.signals[0].scale == (Fraction(1, 10**6) if kinds else 1)
