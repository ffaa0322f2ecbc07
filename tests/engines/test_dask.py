"""The Dask engine when things go wrong: every failure is one clear line, and a lost worker changes nothing but time."""

import contextlib
import dataclasses
import os
import re
import shutil
import signal
import threading
import time

import pytest

import wattribute
from tests.engines.deadly import Deadly
from tests.engines.processes import scheduler, worker
from tests.engines.test_contract import answer
from wattribute.engines import cluster
from wattribute.engines import dask as engine
from wattribute.engines.tasks import Large, cut
from wattribute.errors import ClusterError, NoDataError, OptionError, PartialResultWarning
from wattribute.readers.otf2.writer import Writer

pytest.importorskip("distributed")


def connected(address):
    return cluster.connected(address, None)


def deadly(trace, tmp_path, **how):
    recording = wattribute.read(trace)
    chosen = list(recording.spans.locations())[-1]
    return dataclasses.replace(recording, spans=Deadly(recording.spans, chosen, tmp_path / "died", **how))


def test_a_group_that_is_most_of_the_work_is_cut(tmp_path, dask, monkeypatch):
    """Eight ranks of one node that share its counter: their locations go to several tasks."""
    with Writer(tmp_path / "trace") as trace:
        node, main = trace.node("host", "node", domain="shared_memory"), trace.region("main")
        for rank in range(8):
            process = trace.process(f"MPI Rank {rank}", node)
            thread = trace.location("Master thread", process)
            for begin in range(0, 1_000_000, 1_000):
                thread.enter(begin, main)
                thread.leave(begin + 500 + rank, main)
        meter = trace.location("energy", process, "metric")
        metric = trace.metric_class([trace.member("powercap:::ENERGY_UJ:ZONE0", "uJ")])
        instance = trace.metric_instance(metric, meter.number, "node", node)
        for i in range(11):
            meter.readings([i * 100_000], instance, [i * 1_000_000])
    tasks = []
    # for two workers, also while one of them starts again after a test that killed it
    monkeypatch.setattr(engine, "cut", lambda work, slots: tasks.extend(cut(work, 2)) or tasks)
    found, expected = (wattribute.attribute(tmp_path / "trace", engine=one) for one in (dask, "local"))
    assert [type(one) for one in tasks] == [Large]
    assert found.rows.equals(expected.rows)
    assert found.devices.equals(expected.devices)


ONE_GROUP = {"metric": "ZONE", "process": "Rank [01]$"}


@pytest.mark.parametrize("asked", [{}, ONE_GROUP], ids=["a group per task", "a group in several tasks"])
def test_a_killed_worker_changes_nothing(trace, tmp_path, dask, asked):
    expected = wattribute.attribute(wattribute.read(trace), **asked)
    recording = wattribute.read(trace)
    device = expected.recording.spans.locations()
    kind = "cpu" if asked else "gpu"
    chosen = [row for row in device if recording.locations.kind[row] == kind][-1]
    spans = Deadly(recording.spans, chosen, tmp_path / "died")
    found = wattribute.attribute(dataclasses.replace(recording, spans=spans), engine=dask, **asked)
    assert (tmp_path / "died").exists()
    assert found.rows.equals(expected.rows)
    assert found.devices.equals(expected.devices)
    assert found.problems == expected.problems


def test_all_workers_are_lost_and_another_comes(trace, tmp_path):
    import distributed

    expected = wattribute.attribute(trace)
    recording = deadly(trace, tmp_path)

    def later(address, stack):
        while not (tmp_path / "died").exists():
            time.sleep(0.05)
        stack.enter_context(worker(address, tmp_path / "b"))

    with (
        contextlib.ExitStack() as stack,
        scheduler(tmp_path) as (address, _),
        worker(address, tmp_path / "a"),
        distributed.Client(address, timeout=60) as client,
    ):
        client._timeout = 0.1  # how long Dask itself waits for a worker to send something to
        another = threading.Thread(target=later, args=(address, stack))
        another.start()
        found = wattribute.attribute(recording, engine="dask")
        another.join()
    assert found.rows.equals(expected.rows)
    assert found.devices.equals(expected.devices)


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:9", "nonsense://x", "tcp://127.0.0.1:port", "nonsense", "tcp://127.0.0.1"]
)
def test_nobody_answers(monkeypatch, address):
    monkeypatch.setattr(cluster, "CONNECT_S", 1)
    with pytest.raises(ClusterError, match=f"no Dask scheduler answers at {address} within 1 s"), connected(address):
        pass


def test_without_workers(tmp_path):
    with scheduler(tmp_path) as (address, _), connected(address) as client, pytest.raises(ClusterError) as told:
        cluster.check(client, wait_s=0.1)
    assert f"has no workers; start some (dask worker {address})" in str(told.value)


def test_a_scheduler_that_goes_away_leaves_what_was_finished(tmp_path, trace, monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT_S", 15)  # how long it is waited for
    asked = {"metric": "energy_count", "by": "location"}  # a task per stream
    whole = wattribute.attribute(trace, **asked)
    with scheduler(tmp_path) as (address, pid), worker(address, tmp_path / "w"):
        recording = deadly(trace, tmp_path, victim=pid, after_s=1)
        with pytest.warns(PartialResultWarning, match="1 of 4 locations are not in these numbers"):
            found = wattribute.attribute(recording, engine=f"dask:{address}", spans=tmp_path / "spans", **asked)
    (problem,) = [problem for problem in found.problems if problem.kind == "partial"]
    assert problem.message.startswith("1 of 4 locations are not in these numbers: the Dask scheduler went away")
    assert found.rows.height == 3
    kept = whole.rows.filter(whole.rows["location"].is_in(found.rows["location"].to_list()))
    assert found.rows.sort("location").equals(kept.sort("location"))
    assert found.devices.height == 3
    assert '"partial"' in (tmp_path / "spans" / "_wattribute.json").read_text()


def test_a_scheduler_that_goes_away_at_once_is_an_error(tmp_path, trace, monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT_S", 15)
    with scheduler(tmp_path) as (address, pid), worker(address, tmp_path / "w"):
        recording = wattribute.read(trace)
        first = next(row for row in recording.spans.locations() if recording.locations.kind[row] == "gpu")
        recording = dataclasses.replace(recording, spans=Deadly(recording.spans, first, tmp_path / "died", pid))
        with pytest.raises(ClusterError, match="went away before anything was finished"):
            wattribute.attribute(recording, engine=f"dask:{address}", process="Rank 0$", metric="energy_count")


def test_a_scheduler_that_hangs_is_given_up(tmp_path, trace, monkeypatch):
    """Stopped, it keeps its connections and answers nothing."""
    with cluster.session(), scheduler(tmp_path) as (address, pid), worker(address, tmp_path / "w"):
        wattribute.attribute(trace, engine=f"dask:{address}")
        monkeypatch.setattr(cluster, "SILENCE_S", 1)
        monkeypatch.setattr(cluster, "CONNECT_S", 1)
        os.kill(pid, signal.SIGSTOP)
        with pytest.raises(ClusterError, match=r"was lost|no Dask scheduler answers|scheduler at \S+ does not answer"):
            wattribute.attribute(trace, engine=f"dask:{address}")


def test_other_versions_are_told(tmp_path, trace):
    (tmp_path / "other" / "wattribute").mkdir(parents=True)
    (tmp_path / "other" / "wattribute" / "__init__.py").write_text("__version__ = '0.0.9'")
    (tmp_path / "other" / "wattribute-0.0.9.dist-info").mkdir()
    (tmp_path / "other" / "wattribute-0.0.9.dist-info" / "METADATA").write_text("Name: wattribute\nVersion: 0.0.9\n")
    path = str(tmp_path / "other")
    with scheduler(tmp_path) as (address, _), worker(address, tmp_path / "w", PYTHONPATH=path):
        told = answer(trace, engine=f"dask:{address}")
    assert re.fullmatch("worker tcp://.* has wattribute 0.0.9, here is .*; install the same on both sides", told)


def test_workers_that_do_not_see_the_trace(tmp_path, trace, dask, monkeypatch):
    shutil.copytree(trace, tmp_path / "here")
    monkeypatch.chdir(tmp_path)
    recording = wattribute.read("here")  # read by a name that means nothing elsewhere
    with pytest.raises(NoDataError, match=r"worker .* cannot read the recording: .*is not there.*all workers see"):
        wattribute.attribute(recording, engine=dask)
    assert wattribute.attribute("here", engine=dask).rows.height  # a path is made absolute


def test_options_that_make_no_sense(tmp_path, trace, dask):
    for spans in (True, tmp_path / "spans.parquet"):
        with pytest.raises(OptionError, match="one row per span to a folder"):
            wattribute.attribute(trace, engine=dask, spans=spans)
    with pytest.raises(OptionError, match="takes no address"):
        wattribute.attribute(trace, engine="local:tcp://x:1")
    with pytest.raises(OptionError, match="did you mean 'dask'"):
        wattribute.attribute(trace, engine="dusk:tcp://x:1")
