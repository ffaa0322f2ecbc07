"""A selection of metrics leaves out what it says, and what is left out costs nothing."""

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


def test_metrics(archive):
    for metric, names in (("HEAT", ["heat"]), ("energy_count", ["A2rocm_smi:::energy_count:device=0"] * 2)):
        assert [s.name for s in wattribute.read(archive, metric=metric).signals] == names
    (archive / "traces" / "0.evt").write_bytes(b"garbage")
    recording = wattribute.read(archive, metric="nothing like it")
    assert recording.signals == ()
    assert not [p for p in recording.problems if p.location is not None]  # nothing was decoded


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
