"""Reaching a cluster: what is not one is refused in seconds; workers with other code or other files are refused; one
cluster serves a whole session."""

import errno
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from unittest.mock import Mock

import pytest

import wattribute
from tests.conftest import ROOT
from tests.engines.listeners import KINDS, listener
from tests.engines.processes import scheduler, worker
from tests.engines.test_contract import answer
from wattribute.engines import cluster, identity
from wattribute.engines import dask as engines_dask
from wattribute.engines.convert import convert
from wattribute.errors import ClusterError, NoDataError, OutputError
from wattribute.readers.otf2.writer import Writer

pytest.importorskip("distributed")


@pytest.fixture
def hurry(monkeypatch):
    """Not the patience of the other tests: nobody will answer."""
    monkeypatch.setattr(cluster, "CONNECT_S", 1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_port_where_something_else_listens(command, trace, kind, hurry):
    """Without an end before; one line after some seconds."""
    with listener(kind) as port:
        done = command("attribute", trace, "--engine", f"dask:tcp://127.0.0.1:{port}")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    said = rf"wattribute: no Dask scheduler answers at tcp://127.0.0.1:{port} within \d+ s \(.+\)"
    assert re.match(said, done.stderr)


def test_a_worker_is_no_scheduler(dask_cluster):
    address = next(iter(dask_cluster.scheduler_info["workers"]))
    with pytest.raises(ClusterError, match="it answers as a Worker"), cluster.connected(address, None):
        pass


@pytest.mark.parametrize("ask", [wattribute.attribute, convert])
def test_the_cluster_is_reached_before_anything_is_read(tmp_path, ask):
    arguments = [tmp_path / "out.watt"] if ask is convert else []
    with listener("closing") as port, pytest.raises(ClusterError, match="no Dask scheduler answers"):
        ask(tmp_path / "none", *arguments, engine=f"dask:tcp://127.0.0.1:{port}")
    assert not (tmp_path / "out.watt").exists()


def test_a_session_has_one_cluster(monkeypatch):
    with cluster.session():
        with cluster.connected("", 1) as first:
            pass
        with cluster.session(), cluster.connected("", 1) as second:
            assert second is first
        assert first.status == "running"
    assert first.status == "closed"


def test_a_script_that_workers_cannot_import(trace, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(f"import wattribute\nwattribute.attribute({str(trace)!r}, engine='dask', threads=1)\n")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("wattribute.errors.ClusterError: Dask workers cannot be started on this machine (")
    assert "if __name__ == '__main__':" in last


def test_runs_of_an_ensemble_share_one_cluster(trace, monkeypatch):
    opened = []
    own = cluster._own
    monkeypatch.setattr(cluster, "_own", lambda *given: opened.append(given) or own(*given))
    monkeypatch.chdir(trace.parent)
    wattribute.compare([trace.name, trace], [trace], by="frame", engine="dask", threads=1)
    assert len(opened) == 1


def test_work_follows_the_workers_that_come(tmp_path):
    at = scheduler(tmp_path)
    with at as (address, _), cluster.connected(address, None) as client, worker(address, tmp_path / "a"):
        assert cluster.check(client, wait_s=60) == 1
        assert cluster.check(client, 2, wait_s=0.5) == 1  # the second did not come
        with worker(address, tmp_path / "b"):
            assert cluster.check(client, 2, wait_s=60) == 2


def test_workers_are_waited_for_once_in_a_session(dask_cluster, monkeypatch):
    awaited = []
    with cluster.session(), cluster.connected(dask_cluster.scheduler_address, 8) as client:
        monkeypatch.setattr(client, "wait_for_workers", lambda workers, timeout: awaited.append(workers))
        for _ in range(3):  # to read, to solve, the next question
            assert cluster.check(client, 8) == 2
    assert awaited == [8, 1, 1]


def test_a_worker_that_is_there_and_silent(tmp_path, monkeypatch):
    """Its process is stopped, as it is on a node that has no memory left."""
    with (
        scheduler(tmp_path) as (address, _),
        worker(address, tmp_path / "a"),
        cluster.connected(address, None) as client,
    ):
        with worker(address, tmp_path / "b") as stopped:
            cluster.check(client, 2, wait_s=600)
            silent = next(name for name, pid in client.run(os.getpid).items() if pid == stopped)
            os.kill(stopped, signal.SIGSTOP)
            monkeypatch.setattr(cluster, "SILENCE_S", 2)
            with pytest.raises(ClusterError, match=f"the Dask worker {silent} does not answer within 2 s"):
                cluster.check(client)
        monkeypatch.setattr(cluster, "SILENCE_S", 600)
        assert cluster.check(client, wait_s=600) == 1  # it ended, and the other does the work


# ------------------------------------------------------------------------------------------------------- other code


@pytest.mark.parametrize("changed", ["attribution/shares.py", "sensors/table.toml"])
def test_other_code_of_the_same_version(tmp_path, trace, changed):
    """A worker whose package differs by a line."""
    other = tmp_path / "other"
    shutil.copytree(ROOT / "src" / "wattribute", other / "wattribute", ignore=shutil.ignore_patterns("__pycache__"))
    with (other / "wattribute" / changed).open("a") as file:
        file.write("# a rule that was changed\n")
    with scheduler(tmp_path) as (address, _), worker(address, tmp_path / "w", PYTHONPATH=str(other)):
        told = answer(trace, engine=f"dask:{address}")
    assert "runs other code of wattribute than the client, though the version is the same" in told
    assert told.startswith("worker tcp://")


def test_a_worker_that_comes_late_with_other_code_refuses(trace, monkeypatch):
    """The check at the beginning does not see it; the task does."""
    from wattribute.engines import dask

    with pytest.raises(ClusterError, match=r"worker .*, process \d+ runs other code"):
        dask._check("another hash", None, {}, ())


# ------------------------------------------------------------------------------------------------------ other files


def write(folder, work_ticks, calls=1):
    """One thread and a counter; archives of two lengths of work differ in their event files only."""
    step = work_ticks // calls
    with Writer(folder) as trace:
        node = trace.node("host", "node", domain="shared_memory")
        process = trace.process("MPI Rank 0", node)
        main, work = trace.region("main"), trace.region("work")
        thread = trace.location("Master thread", process)
        thread.enter(0, main)
        for begin in range(1_000, 1_000 + work_ticks, step):
            thread.enter(begin, work)
            thread.leave(begin + step, work)
        thread.leave(1_000_000, main)
        meter = trace.location("energy", process, "metric")
        metric = trace.metric_class([trace.member("powercap:::ENERGY_UJ:ZONE0", "uJ")])
        instance = trace.metric_instance(metric, meter.number, "node", node)
        for i in range(11):
            meter.readings([i * 100_000], instance, [i * 1_000_000])
    return folder


def test_identity_of_a_file_is_its_status_and_of_a_copy_all_bytes(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(b"a" * 20_000)
    shutil.copy2(one, other)
    assert identity.of_file(str(one)) == identity.of_file(str(one))
    assert identity.of_file(str(one)) != identity.of_file(str(other))
    content = [identity.of_file(str(path), content=True).content for path in (one, other)]
    assert content[0] == content[1]
    write_same_status(other, b"a" * 10_000 + b"b" + b"a" * 9_999)
    assert identity.of_file(str(other), content=True).content != content[0]
    assert identity.of_file(str(tmp_path / "none")) == identity.FileIdentity()


def write_same_status(path, content):
    """Other bytes; size and time of the last change stay."""
    before = path.stat()
    assert len(content) == before.st_size
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def elsewhere(here, there):
    """The command in front of a worker on whose node another folder lies under the client's path."""
    mount = subprocess.run(["unshare", "-m", "mount", "--bind", there, here], capture_output=True)
    if mount.returncode:
        pytest.skip(f"no mounts here: {mount.stderr.decode()}")
    return ["unshare", "-m", "sh", "-c", f'mount --bind {there} {here} && exec "$@"', "sh"]


REFUSED = r"worker .* has another file than the client under .*\.evt \(its size or its bytes differ\)"


def test_another_file_under_the_same_path(tmp_path):
    """Another archive of the same definitions."""
    here, there = write(tmp_path / "here", 300_000), write(tmp_path / "there", 700_000)
    definitions = [(folder / "traces.def").read_bytes() for folder in (here, there)]
    assert definitions[0] == definitions[1]
    refused = pytest.raises(NoDataError, match=REFUSED)
    with scheduler(tmp_path) as (address, _), worker(address, tmp_path / "w", elsewhere(here, there)), refused:
        wattribute.attribute(here, engine=f"dask:{address}")


def test_a_copy_is_as_good_and_other_bytes_of_the_same_size_and_time_are_refused(tmp_path):
    """One byte in the middle of a file of events tells; a copy may have times of its own."""
    here, there = write(tmp_path / "here", 300_000, calls=3_000), tmp_path / "there"
    shutil.copytree(here, there, copy_function=shutil.copy)
    expected = wattribute.attribute(here)
    with scheduler(tmp_path) as (address, _), worker(address, tmp_path / "w", elsewhere(here, there)):
        found = wattribute.attribute(here, engine=f"dask:{address}")
        assert found.rows.equals(expected.rows)
        convert(here, tmp_path / "out.watt", engine=f"dask:{address}")
        assert wattribute.attribute(tmp_path / "out.watt").rows.equals(expected.rows)
        events = there / "traces" / "0.evt"
        shutil.copy2(here / "traces" / "0.evt", events)
        content = bytearray(events.read_bytes())
        content[content.index((201_000).to_bytes(8, "little"))] += 1  # the end of a call, one tick later
        write_same_status(events, bytes(content))
        with pytest.raises(NoDataError, match=REFUSED):
            wattribute.attribute(here, engine=f"dask:{address}")


def test_a_file_that_changes_on_the_way(tmp_path):
    """Read by the client, changed before the workers fold it."""
    folder = write(tmp_path / "trace", 300_000)
    recording = wattribute.read(folder)
    files = identity.of_locations(recording.spans, recording.spans.locations())
    assert not identity.different(recording.spans, files, recording.spans.locations())
    os.utime(folder / "traces" / "0.evt", ns=(1, 1))
    with pytest.raises(identity.CopyError, match=r"0\.evt"):
        identity.different(recording.spans, files, recording.spans.locations())
    with pytest.raises(NoDataError, match=r"0\.evt was changed while it was read"):
        identity.with_content(recording.spans, files)


def test_a_file_that_only_the_worker_has(tmp_path):
    folder = write(tmp_path / "trace", 300_000)
    events = folder / "traces" / "0.evt"
    events.rename(tmp_path / "elsewhere")
    recording = wattribute.read(folder)
    files = identity.of_locations(recording.spans, [0])
    assert not identity.different(recording.spans, files, [0])  # it is missing on both sides
    (tmp_path / "elsewhere").rename(events)
    assert identity.different(recording.spans, files, [0]).endswith("0.evt")


# -------------------------------------------------------------------------------------------------- partial results


def test_a_partial_result_has_an_exit_code_of_its_own(tmp_path, trace):
    """The scheduler dies while the last location is folded; the command shows the rest, says so, and exits 4."""
    with scheduler(tmp_path) as (address, pid), worker(address, tmp_path / "w"):
        script = (
            "import sys, dataclasses, pathlib\n"
            "import wattribute.engines as engines\n"
            "from wattribute.engines import cluster\n"
            "from tests.engines.deadly import Deadly\n"
            "cluster.CONNECT_S = 2\n"
            "prepare = engines._prepare\n"
            "def deadly(*given, **named):\n"
            "    base, recording, *rest = prepare(*given, **named)\n"
            "    last = list(recording.spans.locations())[-1]\n"
            f"    spans = Deadly(recording.spans, last, pathlib.Path({str(tmp_path / 'died')!r}), {pid}, after_s=1)\n"
            "    return base, dataclasses.replace(recording, spans=spans), *rest\n"
            "engines._prepare = deadly\n"
            "from wattribute.cli import main\n"
            "main()\n"
        )
        options = ["--metric", "energy_count", "--by", "location", "--engine", f"dask:{address}"]
        call = [sys.executable, "-c", script, "attribute", str(trace), *options]
        done = subprocess.run(call, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 4, done.stderr
    lines = [
        line for line in done.stderr.splitlines() if line.startswith("wattribute: partial result: 1 of 4 locations")
    ]
    assert len(lines) == 1
    assert "GPU" in done.stdout


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), r"worker .*, process \d+: .*No space left on device"),
        (OutputError("busy intervals do not fit into /tmp; set TMPDIR"), r"worker .*, process \d+: busy .* set TMPDIR"),
    ],
)
def test_an_error_of_a_full_disk_names_its_worker(error, message):
    with pytest.raises(OutputError, match=message):
        engines_dask._task(Mock(side_effect=error))()
    with pytest.raises(OSError, match=r"^another reason$"):
        engines_dask._task(Mock(side_effect=OSError("another reason")))()


def test_an_answer_that_does_not_balance_is_refused(trace, dask, monkeypatch):
    from wattribute.attribution import rollup

    found = wattribute.attribute(trace, metric="ZONE", engine=dask)
    assert found.rows.height
    monkeypatch.setattr(rollup, "_BALANCE_TOLERANCE", -1.0)  # nothing balances
    with pytest.raises(ClusterError, match=r"a worker's answer does not balance \(.* attributed and .* idle are not"):
        wattribute.attribute(trace, metric="ZONE", engine=dask)


# --------------------------------------------------------------------------------------------------- readings stay


def test_the_client_holds_no_readings(trace, dask):
    found = wattribute.attribute(trace, engine=dask)
    expected = wattribute.attribute(trace)
    assert found.recording.signals
    for one, other in zip(found.recording.signals, expected.recording.signals, strict=True):
        assert "times" not in vars(one)
        assert (len(one), one.extent, one.moves) == (len(other), other.extent, other.moves)
    one = found.recording.signals[0]
    assert one.values.tolist() == expected.recording.signals[0].values.tolist()  # looked at, they are read
    assert list(found.problems) == list(expected.problems)


# ----------------------------------------------------------------------------------------------------------- Arkouda


class Client:
    """So much of a client that a connection can be tried; ``connect`` waits for an answer that never comes."""

    searchsorted = None

    def connect(self, server, port, timeout):
        time.sleep(30)


@pytest.mark.parametrize("kind", KINDS)
def test_no_arkouda_server(trace, kind, monkeypatch):
    monkeypatch.setitem(sys.modules, "arkouda", Client())
    with listener(kind) as port, pytest.raises(ClusterError, match=rf"127.0.0.1:{port} .*\((it says|it speaks)"):
        wattribute.attribute(trace, engine=f"arkouda:127.0.0.1:{port}")


def test_the_server_is_reached_before_anything_is_read(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "arkouda", Client())
    with listener("closing") as port, pytest.raises(ClusterError, match="does not answer as an Arkouda server"):
        wattribute.attribute(tmp_path / "none", engine=f"arkouda:127.0.0.1:{port}")


def test_another_server_of_zeromq(trace, monkeypatch):
    """It greets as Arkouda's does, and never answers."""
    monkeypatch.setitem(sys.modules, "arkouda", Client())
    with socket.create_server(("127.0.0.1", 0)) as made:
        import threading

        def serve():
            for _ in range(2):
                peer, _ = made.accept()
                peer.sendall(b"\xff" + bytes(7) + b"\x01\x7f")
                open_.append(peer)

        open_ = []
        threading.Thread(target=serve, daemon=True).start()
        with pytest.raises(ClusterError, match=r"no answer within \d+ s"):
            wattribute.connect("127.0.0.1", made.getsockname()[1])


def test_a_socket_of_zeromq_greets_so():
    zmq = pytest.importorskip("zmq")
    from wattribute.engines import arkouda

    with zmq.Context() as context, context.socket(zmq.REP) as server:
        port = server.bind_to_random_port("tcp://127.0.0.1")
        greeting = arkouda._greeting("127.0.0.1", port)
    assert greeting[:1] + greeting[9:] == arkouda._ZMTP
