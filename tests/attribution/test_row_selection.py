"""Selecting by process, host, location or frame chooses rows; what a row gets never changes."""

import numpy as np
import pytest

import wattribute
from tests.comparison.made import run
from wattribute import samples
from wattribute.model import Recording
from wattribute.testing.recordings import RecordingBuilder

S = 10**9


def two_hosts() -> Recording:
    """Two ranks on two hosts; on each host one thread per rank; rank 0 and 1 share the counter of host a.

    Host a: 100 W. Thread 0 runs main 0…10 s with work 2…6 s inside, thread 1 runs main 0…10 s: each gets 50 W.
    Host b: 30 W, thread 2 alone runs main 0…10 s.
    """
    made = RecordingBuilder(S).host("a").process("Rank 0").thread("main 0s..10s, work 2s..6s", "t0")
    made.process("Rank 1").thread("main 0s..10s", "t1").counter("package", np.arange(11) * 100, every=S, name="a")
    made.host("b").process("Rank 2").thread("main 0s..10s", "t2")
    return made.counter("package", np.arange(11) * 30, every=S, name="b").recording()


@pytest.mark.parametrize(
    ("by", "chosen", "rows", "left_out"),
    [
        ("process", {"process": "Rank 0"}, {"Rank 0": 500.0}, 800.0),  # 10 s × 100 W / 2; before it was all 1000 J
        ("process", {"host": "b"}, {"Rank 2": 300.0}, 1000.0),
        ("process", {"location": "T[12]"}, {"Rank 1": 500.0, "Rank 2": 300.0}, 500.0),
        ("frame", {"frame": "^work$"}, {"work": 200.0}, 1100.0),  # 4 s × 50 W
        ("frame", {"exclude_frame": "work"}, {"main": 1100.0}, 200.0),
        ("process", {"frame": "work"}, {"Rank 0": 200.0}, 1100.0),
        ("host", {"process": "rank 1"}, {"a": 500.0}, 800.0),
        ("device", {"process": "rank 1"}, {"package": 500.0}, 800.0),
    ],
)
def test_rows_are_chosen_after_sharing(by, chosen, rows, left_out):
    found = wattribute.attribute(two_hosts(), by=by, **chosen)
    assert {row[by]: row["self_j"] for row in found.rows.to_dicts()} == pytest.approx(rows)
    assert found.left_out == pytest.approx(left_out)
    assert found.devices["attributed_j"].sum() == pytest.approx(1300.0)


def test_a_total_counts_outermost_activations_of_the_chosen_frames():
    found = wattribute.attribute(two_hosts(), by="process", frame="work|main")
    assert found.rows.filter(process="Rank 0")["total_j"][0] == pytest.approx(500.0)
    only = wattribute.attribute(two_hosts(), by="process", frame="work")
    assert only.rows["total_j"].to_list() == pytest.approx([200.0])


def test_call_paths_are_chosen_by_their_last_frame():
    found = wattribute.attribute(two_hosts(), by="path", frame="work")
    assert found.rows["path"].to_list() == [["main", "work"]]
    assert found.rows["self_j"].to_list() == pytest.approx([200.0])


def test_what_matches_nothing_is_said():
    found = wattribute.attribute(two_hosts(), by="process", process="Nobody", frame="nothing")
    assert found.rows.is_empty()
    messages = [problem.message for problem in found.problems if problem.kind == "selection"]
    assert [text.split(";")[0] for text in messages] == ["no process matches 'Nobody'", "no frame matches 'nothing'"]


def test_a_selection_changes_no_row_of_a_trace():
    path = samples.path("trace")
    every = wattribute.attribute(path, by="process").rows
    one = wattribute.attribute(path, by="process", process="MPI Rank 0$").rows
    assert one["self_j"].to_list() == every.filter(process="MPI Rank 0")["self_j"].to_list()


def test_an_ensemble_counts_all_runs():
    from wattribute.errors import OptionError

    ensemble = wattribute.Ensemble.of({"a": run(0), "b": run(1)}).attribute()
    parts = [part.devices["measured_j"].sum() for part in ensemble.parts.values()]
    assert ensemble.devices["measured_j"].sum() == pytest.approx(sum(parts))
    with pytest.raises(OptionError, match="one run"):
        wattribute.emissions(ensemble, zone="FR")
