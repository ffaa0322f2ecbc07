"""Attribution as array operations, on NumPy's arrays: what ``_core`` says, for any spans and curves; and the engine's
own failures, told in a line."""

from __future__ import annotations

import socket
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import wattribute
from tests.engines import counting
from wattribute import _core
from wattribute.engines import arkouda, arrays
from wattribute.engines.verbs import NumPy
from wattribute.errors import ClusterError, NoDataError, OptionError, PartialResultWarning
from wattribute.model import Fold, Keys
from wattribute.model.spans import BOUNDS
from wattribute.testing.recordings import small
from wattribute.testing.strategies import curves, nested_spans, recordings

VERBS = NumPy()


def lanes(tables):
    return arkouda._sent(VERBS, tables)


@given(
    st.lists(nested_spans(), min_size=1, max_size=3),
    st.lists(curves(), min_size=0, max_size=2),
    st.lists(st.integers(-1, 2), min_size=4, max_size=4),
    st.booleans(),
)
def test_a_fold_is_that_of_the_core(tables, against, row, by_path):
    keys = Keys(np.array(row, np.int32), 3, by_path)
    spans, rows = arrays.kept(lanes(tables), np.array([row], np.int64), [0] * len(tables))
    found = arrays.fold(spans, rows, 3, [against] * len(tables), 4 if by_path else None)
    for one, table in zip(found, tables, strict=True):
        same(one, Fold.of(_core.fold(table, against, keys)), by_path)


def same(found, expected, by_path):
    """Equal, whatever the order of call paths; those of other lanes are there with zeros."""
    at = slice(None)
    if by_path:
        number = {path: i for i, path in enumerate(chains(found.paths))}
        at = np.array([number[path] for path in chains(expected.paths)], np.int64)
        others = np.setdiff1d(np.arange(len(found.calls)), at)
        assert not found.calls[others].any()
    for name in ("calls", "self_ticks", "total_ticks", "self_covered", "total_covered"):
        assert np.array_equal(getattr(found, name)[..., at], getattr(expected, name)), name
    for name in ("self_value", "total_value", *BOUNDS):
        if getattr(expected, name) is None:
            assert getattr(found, name) is None
        else:
            np.testing.assert_allclose(
                getattr(found, name)[..., at], getattr(expected, name), 1e-12, 1e-9, err_msg=name
            )


def chains(paths):
    found = []
    for frame, parent in zip(paths.frame.tolist(), paths.parent.tolist(), strict=True):
        found.append((*(found[parent] if parent >= 0 else ()), frame))
    return found


@given(st.lists(nested_spans(), min_size=1, max_size=3), st.lists(st.booleans(), min_size=4, max_size=4))
def test_busy_intervals_are_those_of_the_core(tables, keep):
    row_of = np.where(keep, 0, -1)[None].astype(np.int64)
    found = arrays.busy(arrays.kept(lanes(tables), row_of, [0] * len(tables))[0])
    for one, table in zip(found, tables, strict=True):
        start, end = _core.busy(table, np.array(keep))
        assert (one.start.tolist(), one.end.tolist()) == (start.tolist(), end.tolist())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(recordings(), st.sampled_from(["even", "process", "full"]), st.sampled_from(["frame", "path"]))
def test_any_recording(arrays, made, share, key):
    asked = {"share": share, "by": f"device,location,{key}"}
    try:
        expected = wattribute.attribute(made[0], threads=1, **asked)
    except NoDataError:
        return
    found = wattribute.attribute(made[0], engine=arrays, **asked)
    keys = ["device", "location", key]
    for name in ("self_j", "total_j", "self_low_j", "total_high_j", "calls", "covered_ns"):
        a, b = (one.rows.sort(keys).get_column(name).to_numpy() for one in (found, expected))
        np.testing.assert_allclose(a, b, 1e-12, 1e-9, err_msg=name)


# ----------------------------------------------------------------------------------------------------- when it fails


def closed_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


class Client:
    """So much of a client that a connection can be tried."""

    searchsorted = None

    def connect(self, server, port, timeout):
        raise ConnectionError("frame too large\nand more")


def test_nobody_listens(monkeypatch):
    monkeypatch.setitem(sys.modules, "arkouda", Client())
    with pytest.raises(ClusterError, match=r"no Arkouda server at 127.0.0.1:\d+ \(Connection refused\); start"):
        wattribute.connect("127.0.0.1", closed_port())


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", 70_000), ("x" * 70, 5555)])
def test_no_such_address(monkeypatch, host, port):
    monkeypatch.setitem(sys.modules, "arkouda", Client())
    with pytest.raises(ClusterError, match="no Arkouda server at"):
        wattribute.connect(host, port)


@pytest.mark.parametrize(("where", "host", "server"), [("[::1]", "::1", "[::1]"), ("node7", "node7", "node7")])
def test_brackets_of_an_address_are_the_clients_not_the_systems(monkeypatch, where, host, server):
    asked = []
    monkeypatch.setitem(sys.modules, "arkouda", Client())
    monkeypatch.setattr(Client, "connect", lambda _, *address, **__: asked.append(address))
    monkeypatch.setattr(arkouda, "_current", None)
    monkeypatch.setattr(arkouda, "_greeting", lambda *address: asked.append(address) or b"\xff" + bytes(8) + b"\x7f")
    for _ in range(2):  # connected once
        assert arkouda._server(f"{where}:5555").address == f"{where}:5555"
    assert asked == [(host, 5555), (server, 5555)]


@pytest.mark.parametrize(("client", "reason"), [(None, r"cannot be imported \(.*\)"), (object(), "is too old")])
def test_no_client_that_fits(monkeypatch, client, reason):
    """Found out when a server answers."""
    monkeypatch.setitem(sys.modules, "arkouda", client)
    monkeypatch.setattr(arkouda, "_greeting", lambda *_: b"\xff" + bytes(8) + b"\x7f")
    with pytest.raises(ClusterError, match=f"client .*{reason}; install the one of the server's release: pip install"):
        wattribute.attribute(small(), metric="energy", engine="arkouda:localhost:5555")


@pytest.mark.parametrize("where", ["localhost", "localhost:", ":5555", "localhost:http"])
def test_a_wrong_address(where):
    with pytest.raises(OptionError, match="takes HOST:PORT behind the colon"):
        wattribute.attribute(small(), metric="energy", engine=f"arkouda:{where}")


class Dying(NumPy):
    """A server that is gone after so many sums."""

    def __init__(self, left: int) -> None:
        self.left = left

    def sums(self, code, size, columns):
        self.left -= 1
        if self.left < 0:
            raise ConnectionError("connection to the server is closed\nTraceback …")
        return super().sums(code, size, columns)


def test_a_server_lost_before_anything_is_finished(monkeypatch, trace):
    monkeypatch.setattr(arkouda, "_current", arkouda.Server(Dying(0), "far:5555"))
    with pytest.raises(
        ClusterError, match=r"far:5555 .* lost \(connection to the server is closed\); nothing was"
    ) as got:
        wattribute.attribute(trace, engine="arkouda")
    assert "\n" not in str(got.value)
    assert arkouda._current is None


def test_a_server_lost_on_the_way(monkeypatch, trace):
    monkeypatch.setattr(arkouda, "TOGETHER_EVENTS", 1)  # a group after the other
    monkeypatch.setattr(arkouda, "_current", arkouda.Server(Dying(4), "far:5555"))
    with pytest.warns(PartialResultWarning, match="groups are not in the result"):
        found = wattribute.attribute(trace, engine="arkouda")
    whole = wattribute.attribute(trace)
    assert 0 < found.devices.height < whole.devices.height
    told = [problem.message for problem in found.problems if problem.kind == "partial"]
    assert len(told) == 1
    assert "groups are not in the result" in told[0]
    for book in found.devices.to_dicts():  # what is there is right
        assert book in whole.devices.to_dicts()


class Small(NumPy):
    """A server with so much memory."""

    def __init__(self, free: int) -> None:
        self.free = free

    def free_bytes(self):
        return self.free


@pytest.mark.parametrize("kind", ["otf2", "watt"])
def test_more_spans_than_the_server_has_memory_for(monkeypatch, trace, tmp_path, kind):
    source = trace
    if kind == "watt":
        source = tmp_path / "a.watt"
        wattribute.save(wattribute.read(trace), source)
    monkeypatch.setattr(arkouda, "_current", arkouda.Server(Small(10_000), "small:5555"))
    with pytest.raises(
        ClusterError, match=r"[\d,]+ spans of \d+ locations need about .* GB on the Arkouda server, which"
    ):
        wattribute.attribute(source, engine="arkouda")
    monkeypatch.setattr(arkouda, "_current", arkouda.Server(Small(10**9), "small:5555"))
    assert wattribute.attribute(source, engine="arkouda").rows.height


@pytest.mark.parametrize(
    ("asked", "most"), [({"of": "host"}, 980), ({"of": "kernels"}, 550), ({"of": "host", "by": "path"}, 1150)]
)
def test_commands_do_not_grow_with_groups(monkeypatch, trace, asked, most):
    """The client of a server, with NumPy behind its messages."""
    client = counting.Client()
    monkeypatch.setattr(arkouda, "_current", arkouda.Server(arkouda.Arkouda(client), "counted:5555"))
    found = wattribute.attribute(trace, engine="arkouda", **asked)
    expected = wattribute.attribute(trace, **asked)
    assert found.rows["self_j"].sum() == pytest.approx(expected.rows["self_j"].sum(), rel=1e-12)
    commands = client.commands.total()
    assert commands < most
    client.commands.clear()
    wattribute.attribute(trace, engine="arkouda", process="Rank [01]$", **asked)  # half of the groups
    assert commands <= client.commands.total() + 10


def test_nothing_is_joined_to_nothing():
    """A question in whose time no span lies."""
    verbs = arkouda.Arkouda(counting.Client())
    none = verbs.zeros(0, int)
    assert verbs.get(verbs.join([none, none])).tolist() == []


def test_method_solve_stays_with_the_other_engines(arrays):
    with pytest.raises(OptionError, match="use engine 'local' or 'dask'"):
        wattribute.attribute(small(), metric="energy", method="solve", engine=arrays)


def test_an_archive_is_read_where_it_lies(arrays, tmp_path, trace, monkeypatch):
    """Not by way of this process."""
    wattribute.save(wattribute.read(trace), tmp_path / "a.watt")
    expected = wattribute.attribute(tmp_path / "a.watt", of=["kernels", "host"])
    monkeypatch.setattr(arkouda, "_sent", None)
    for asked in ({}, {"begin": 1, "end": 2}, {"exclude_frame": "MPI"}):
        expected = wattribute.attribute(tmp_path / "a.watt", of="host", **asked)
        found = wattribute.attribute(tmp_path / "a.watt", of="host", engine=arrays, **asked)
        assert found.rows["self_j"].sum() == pytest.approx(expected.rows["self_j"].sum(), rel=1e-12)
