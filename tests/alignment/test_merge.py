"""Recordings of ranks and nodes on one timeline: what is one thing stays one, nothing is lost."""

import sys
from dataclasses import replace

import pytest

from wattribute import load, save
from wattribute.alignment.merge import merge
from wattribute.cli import main
from wattribute.errors import NoDataError, OptionError
from wattribute.model import Problem
from wattribute.testing.recordings import RecordingBuilder


def rank(number, host, *, boot="b", offset=0, epoch=None, rate=10**9, readings=None, uncertainty=None):
    """A rank with one region of its own and one that all have; the node's counter when it samples."""
    about = {"name": f"r{number}", "clock": {"boot": boot, "uncertainty_ns": uncertainty}}
    made = RecordingBuilder(rate, offset_ticks=offset, length_ticks=100, epoch_ns=epoch, **about).host(host)
    made.frames((f"only {number}", "user", "region"), ("all", "user", "region"))
    made.process(f"rank {number}", 1000 + number).thread(f"only {number} 10..20, all 20..50", "MainThread")
    if readings is not None:
        times, values = zip(*readings, strict=True)
        made.counter("package 0", values, times).link("package 0", 0)
    return made.recording(noticed=(Problem("regions", "something", 0),))


def test_ranks_of_one_boot_are_joined_exactly():
    a = rank(0, "n0", offset=5_000, epoch=10**18, readings=[(0, 0), (100, 7)])
    b = rank(1, "n0", offset=5_030, epoch=10**18 + 999)  # the wall clock disagrees: it is not asked
    merged = merge([b, a])
    assert merged.processes.name == ("rank 1", "rank 0")
    assert len(merged.nodes) == 1
    assert [merged.host(i) for i in range(2)] == ["n0", "n0"]
    assert merged.spans.spans(0).start.tolist() == [40, 50]  # rank 1 began 30 ns later
    assert merged.spans.spans(1).start.tolist() == [10, 20]
    assert sorted(merged.frames.name) == ["all", "only 0", "only 1"]
    names = [merged.frames.name[f] for location in (0, 1) for f in merged.spans.spans(location).frame]
    assert names == ["only 1", "all", "only 0", "all"]
    assert merged.clock.length_ticks == 130
    assert merged.clock.offset_ticks == 5_000
    assert len(merged.signals) == 1
    assert [link.locations for link in merged.topology] == [(1, 0)]  # rank 1 did not sample, but it ran there too
    assert [problem.location for problem in merged.problems] == [0, 1]


def test_nodes_are_joined_by_their_wall_clocks_and_the_error_is_said():
    a = rank(0, "n0", boot="x", offset=7, epoch=10**18 + 50, readings=[(0, 0), (100, 7)], uncertainty=300_000)
    b = rank(1, "n1", boot="y", offset=999, epoch=10**18, readings=[(0, 3), (100, 9)], uncertainty=1_000_000)
    merged = merge([a, b])
    assert merged.spans.spans(0).start.tolist() == [60, 70]
    assert merged.spans.spans(1).start.tolist() == [10, 20]
    assert [signal.times.tolist() for signal in merged.signals] == [[50, 150], [0, 100]]
    assert merged.clock.epoch_ns == 10**18
    assert "up to 2 ms" in merged.problems[-1].message
    assert merged.metadata["clock"]["uncertainty_ns"] == 2_000_000
    assert {device.host for device in merged.devices} == {"n0", "n1"}


def test_a_clock_that_nobody_vouches_for():
    merged = merge([rank(0, "n0", boot="x", epoch=5), rank(1, "n1", boot="y", epoch=5)])
    assert "up to 20 ms" in merged.problems[-1].message


def test_a_sensor_read_twice_counts_once():
    a = rank(0, "n0", readings=[(0, 0), (50, 4)])
    b = rank(1, "n0", readings=[(0, 0), (100, 7)])
    merged = merge([a, b])
    assert [signal.values.tolist() for signal in merged.signals] == [[0, 7]]
    assert [problem.kind for problem in merged.problems].count("counted-once") == 1
    assert len(merged.devices) == 1


def test_runs_of_a_host_that_follow_one_another_are_refused():
    """Between them nothing was metered: neither counter may speak for the other's time."""
    first = rank(0, "n0", readings=[(0, 0), (100, 4)])
    second = rank(0, "n0", offset=5_000, readings=[(0, 9), (100, 12)])
    with pytest.raises(OptionError, match=r"on n0 was read by two recordings, one after the other: .* compare"):
        merge([first, second])
    assert len(merge([first, rank(0, "n1", offset=5_000, readings=[(0, 9), (100, 12)])]).signals) == 2


def test_different_rates_meet_in_nanoseconds():
    a = rank(0, "n0", boot="x", epoch=10**18, rate=10**9)
    b = rank(1, "n1", boot="y", epoch=10**18, rate=10**6)
    merged = merge([a, b])
    assert merged.clock.ticks_per_s == 10**9
    assert merged.spans.spans(1).end.tolist() == [20_000, 50_000]


def test_no_common_clock():
    alone = rank(0, "n0", boot="", epoch=None)
    with pytest.raises(NoDataError, match="--align start"):
        merge([alone, rank(1, "n1", boot="", epoch=5)])
    merged = merge([alone, rank(1, "n1", boot="", epoch=5, offset=77)], align="start")
    assert merged.spans.spans(1).start.tolist() == [10, 20]


def test_nothing_and_nonsense():
    with pytest.raises(NoDataError):
        merge([])
    with pytest.raises(OptionError, match="did you mean 'start'"):
        merge([rank(0, "n0")], align="strat")


def test_a_merged_recording_is_saved_and_merged_again(tmp_path):
    first = merge([rank(0, "n0", readings=[(0, 0), (100, 7)]), rank(1, "n0", offset=30)])
    save(first, tmp_path / "node.watt")
    again = merge([load(tmp_path / "node.watt"), rank(2, "n0", offset=60)])
    assert again.processes.name == ("rank 0", "rank 1", "rank 2")
    assert again.spans.spans(2).start.tolist() == [70, 80]


def test_the_verb(tmp_path, monkeypatch, capsys):
    for number in range(2):
        save(rank(number, "n0", offset=30 * number), tmp_path / f"r{number}.watt")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["wattribute", "merge", "r0.watt", "r1.watt", "-o", "job.watt"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert "job.watt: 2 recordings, 1 hosts, 2 processes" in capsys.readouterr().err
    assert load(tmp_path / "job.watt").processes.name == ("rank 0", "rank 1")
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert "exists already" in capsys.readouterr().err


def test_merged_processes_have_rank_names():
    made = [
        replace(rank(number, "n0"), metadata={"rank": {"rank": number}, "clock": {"boot": "b"}}) for number in (0, 1)
    ]
    named = [replace(one, processes=replace(one.processes, name=("python",))) for one in made]
    assert merge(named).processes.name == ("rank 0 python", "rank 1 python")
