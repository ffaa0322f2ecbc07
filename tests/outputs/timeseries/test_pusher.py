"""The pusher's decisions without waiting: a clock by hand, a client that does as it is told, a real spool."""

import gzip
import os
from dataclasses import replace

import pytest

from tests.outputs.timeseries.test_protocols import tiny
from wattribute.outputs.timeseries.client import RefusedError, SendError
from wattribute.outputs.timeseries.target import Request, parse
from wattribute.sessions.pusher import LONGEST_PAUSE_S, RECENT_S, Pusher
from wattribute.sessions.spool import Spool, place

TARGET = parse("victoria+http://host")
AWAY = SendError("refused", again=True, lost=True)


class Journal:
    """A follower that has one point at a time, numbered."""

    behind = False

    def __init__(self):
        self.number = 0

    def devices(self):
        return {}

    def poll(self, last=False):
        self.number += 1
        return [tiny([self.number * 10**6], [self.number])]


class Server:
    """A client that fails as long as ``failure`` is set, and remembers what it got."""

    target, timeout_s = TARGET, 5.0

    def __init__(self):
        self.failure, self.got = None, []

    def post(self, request):
        if self.failure is not None:
            raise self.failure
        self.got.append(float(gzip.decompress(request.body).split()[-2].partition(b"=")[2]))

    def close(self): ...


@pytest.fixture
def world(tmp_path):
    """(pusher, server, a function that lets time pass, the spool's folder)"""
    now = [0.0]

    def wait(seconds):
        now[0] += seconds

    server = Server()
    pusher = Pusher(Journal(), server, Spool(tmp_path / "spool"), lambda: now[0], wait)
    return pusher, server, wait, tmp_path / "spool"


def test_while_the_server_is_there_nothing_touches_the_disk(world):
    pusher, server, _, folder = world
    for _ in range(3):
        pusher.round()
    report = pusher.finish()
    assert server.got == [1, 2, 3, 4]
    assert (report["sent"], report["kept"], report["why"]) == (4, 0, "")
    assert not folder.exists()


def test_what_waited_is_sent_in_order_with_longer_and_longer_pauses(world):
    pusher, server, wait, _ = world
    tried = []
    server.failure = SendError("HTTP 503", again=True)
    post = server.post
    server.post = lambda request: (tried.append(pusher._clock()), post(request))
    for _ in range(40):
        pusher.round()
        wait(0.25)
    # 0, then at least 0.5, 1, 2, 4 seconds apart, in rounds of a quarter
    assert tried == [0, 0.5, 1.5, 3.5, 7.5]
    server.failure = None
    for _ in range(40):
        pusher.round()
        wait(0.25)
    assert server.got == list(range(1, 81))
    assert pusher.finish()["kept"] == 0


def test_a_server_that_broke_off_gets_the_last_half_minute_again(world):
    pusher, server, wait, _ = world
    for _ in range(40):
        pusher.round()
        wait(1)
    server.failure = AWAY
    pusher.round()  # the 41st
    server.failure = None
    wait(1)
    pusher.round()
    assert server.got[:40] == list(range(1, 41))
    again = server.got[40:]
    # the 40th was sent at 39 s, the 10th 30 s before it; then the new ones
    assert again == list(range(40 - int(RECENT_S), 43))
    assert pusher.sent == 42


def test_what_is_refused_does_not_hold_up_the_rest(world):
    pusher, server, _, folder = world
    server.failure = RefusedError("HTTP 400: field type conflict")
    pusher.round()
    server.failure = None
    pusher.round()
    report = pusher.finish()
    assert (server.got, report["refused"], report["why"]) == ([2, 3], 1, "HTTP 400: field type conflict")
    assert not folder.exists()


def test_a_wrong_password_is_tried_again_seldom_and_kept(world):
    pusher, server, wait, folder = world
    server.failure = SendError("HTTP 401")
    tried = []
    server.post = lambda request: (tried.append(pusher._clock()), Server.post(server, request))
    for _ in range(70):
        pusher.round()
        wait(1)
    assert tried == [0, LONGEST_PAUSE_S, 2 * LONGEST_PAUSE_S]
    report = pusher.finish()
    assert (report["sent"], report["kept"], report["why"]) == (0, 71, "HTTP 401")
    later = Spool(folder)
    assert [request.points for _, request in later.requests()] == [1] * 71
    later.close()


def test_patience_at_the_end_is_short(world):
    pusher, server, _, folder = world
    server.failure = AWAY
    pusher.round()
    assert pusher.finish()["kept"] == 2
    assert pusher._clock() < 4
    assert len(list(folder.glob("*/0*"))) == 2


def test_a_run_does_not_wait_for_a_long_spool(world):
    pusher, server, wait, folder = world
    earlier = Spool(folder)
    for number in range(100):
        earlier.put(Request("/write", "text/plain", gzip.compress(b"x y=%d 1" % number), 1))
    earlier.close()
    pusher = Pusher(Journal(), server, Spool(folder), pusher._clock, wait)
    server.post = lambda request: (wait(0.5), Server.post(server, request))
    report = pusher.finish()
    assert server.got == list(range(21))  # half a second each, for ten seconds
    assert (report["kept"], report["why"]) == (80, "there was no time to send all")


# ------------------------------------------------------------------------------------------------------- the spool

REQUEST = Request("/write?precision=ms", "text/plain", b"\x00body\nwith lines\n", 7)


def test_spools_of_runs_that_are_gone_come_first_and_those_of_the_living_are_left_alone(tmp_path):
    gone, alive = Spool(tmp_path), Spool(tmp_path)
    gone.put(REQUEST)
    gone.put(replace(REQUEST, points=8))
    alive.put(replace(REQUEST, points=9))
    for handle in gone._locks.values():
        os.close(handle)  # as a kill does
    new = Spool(tmp_path)
    new.put(replace(REQUEST, points=10))
    assert [request for _, request in new.requests()] == [REQUEST, *(replace(REQUEST, points=n) for n in (8, 10))]
    assert Spool(tmp_path).points() == 0  # everybody's is taken
    for path, _ in list(new.requests()):
        new.remove(path)
    new.close()
    assert [request.points for _, request in alive.requests()] == [9]
    alive.close()
    assert len(list(tmp_path.iterdir())) == 1


def test_a_spool_is_bounded_and_says_so(tmp_path):
    spool = Spool(tmp_path / "s", most_bytes=200)
    assert [spool.put(REQUEST) for _ in range(3)] == [True, True, False]
    assert "is full" in spool.failure
    assert len(spool) == 2
    spool.close()
    assert not Spool(tmp_path / "s", most_bytes=200).put(REQUEST)  # what is left counts too


def test_a_spool_that_cannot_be_written_or_read_is_no_crash(tmp_path):
    (tmp_path / "file").write_text("")
    spool = Spool(tmp_path / "file" / "s")
    assert not spool.put(REQUEST)
    assert "Not a directory" in spool.failure
    spool.close()
    spool = Spool(tmp_path / "s")
    spool.put(REQUEST)
    (cut,) = (tmp_path / "s").glob("*/0*")
    cut.write_bytes(b'{"path": "/wr')
    assert list(spool.requests()) == []
    spool.close()


def test_each_server_and_each_way_to_write_has_its_own_folder(tmp_path):
    names = [
        place(parse(address), tmp_path).name
        for address in (
            "victoria+http://a",
            "victoria+http://a?format=csv",
            "victoria+https://a",
            "influx+http://a/../x",
        )
    ]
    assert len(set(names)) == 4
    assert not any("/" in name or ".." in name for name in names)
