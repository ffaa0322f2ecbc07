"""What each kind of event does to a location's stack, by hand; the same from C and twin."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wattribute._core import otf2, reference_otf2
from wattribute.readers.otf2.writer import LocationWriter, Writer

from .test_hostile import files, tables

Decode = Callable[[Callable[[LocationWriter], None]], dict[str, Any]]


@pytest.fixture(params=[otf2, reference_otf2], ids=["c", "twin"])
def decode(request: pytest.FixtureRequest, tmp_path: Path) -> Decode:
    def of(write: Callable[[LocationWriter], None]) -> dict[str, Any]:
        with Writer(tmp_path / "t") as trace:
            write(trace.location("l", trace.process("p", trace.node("n"))))
        stem = tmp_path / "t" / "traces" / "0"
        given = files(stem.with_suffix(".evt"), stem.with_suffix(".def"), chunk=1 << 20)
        found: dict[str, Any] = request.param.decode(given._replace(def_chunk=1 << 18), tables())
        assert found["status"]["code"] == ""
        return found

    return of


def rows(found: dict[str, Any]) -> list[tuple[int, ...]]:
    """(frame, start, end, parent, depth, resumed)"""
    names = ("frame", "start", "end", "parent", "depth", "resumed")
    return list(zip(*(found[name].tolist() for name in names), strict=True))


def test_leaves_out_of_order_and_without_enter(decode: Decode) -> None:
    def write(location: LocationWriter) -> None:
        location.enter(1, 1)
        location.enter(2, 2)
        location.leave(5, 1)  # closes 2 as well
        location.leave(6, 2)  # nothing is left to close
        location.enter(7, 3)  # never left: ends with the last event
        location.event(9, "MpiIsendComplete", 1)

    found = decode(write)
    assert rows(found) == [(1, 1, 5, -1, 0, False), (2, 2, 5, 0, 1, False), (3, 7, 9, -1, 0, False)]
    assert found["nesting"].tolist() == [1, 1, 1, 0, 0]


def test_a_leave_of_another_region_closes_the_innermost_span(decode: Decode) -> None:
    """A task that was renamed while it ran: the stack does not grow, and what is outside goes on."""

    def write(location: LocationWriter) -> None:
        location.enter(0, 1)
        for time in (10, 20, 30):
            location.enter(time, 2)
            location.leave(time + 4, 3)  # nothing of that name is open
        location.leave(40, 1)
        location.leave(41, 3)  # nothing at all is open

    found = decode(write)
    assert rows(found) == [
        (1, 0, 40, -1, 0, False),
        (2, 10, 14, 0, 1, False),
        (2, 20, 24, 0, 1, False),
        (2, 30, 34, 0, 1, False),
    ]
    assert found["nesting"].tolist() == [1, 0, 0, 0, 3]


def test_leaves_in_the_wrong_order_do_not_close_what_is_outside(decode: Decode) -> None:
    def write(location: LocationWriter) -> None:
        location.enter(0, 1)
        location.enter(1, 2)
        location.enter(2, 3)
        location.leave(5, 2)  # closes 3 as well
        location.leave(6, 3)  # which was closed: 1 goes on
        location.leave(7, 3)  # a second one has no excuse: 1 ends
        location.enter(8, 2)
        location.leave(9, 2)

    found = decode(write)
    assert [row[:3] for row in rows(found)] == [(1, 0, 7), (2, 1, 5), (3, 2, 5), (2, 8, 9)]
    assert found["nesting"].tolist() == [1, 1, 0, 0, 1]


def test_a_leave_of_another_region_spares_copies_and_pauses(decode: Decode) -> None:
    def write(location: LocationWriter) -> None:
        location.event(1, "RmaPut", 0, 1, 4096, 70)
        location.leave(2, 1)
        location.event(3, "RmaOpCompleteBlocking", 0, 70)
        location.event(4, "MeasurementOnOff", b"\2")
        location.leave(5, 1)
        location.event(6, "MeasurementOnOff", b"\1")

    found = decode(write)
    assert [row[:3] for row in rows(found)] == [(33, 1, 3), (37, 4, 6)]
    assert found["nesting"].tolist() == [2, 0, 0, 0, 0]


_ACTS = st.one_of(
    st.tuples(st.sampled_from(["enter", "leave"]), st.integers(0, 7)),
    st.tuples(st.just("burst"), st.integers(0, 7)),
    st.tuples(st.sampled_from(["switch", "complete"]), st.integers(0, 2)),
    st.tuples(st.sampled_from(["put", "done"]), st.integers(0, 3)),
    st.tuples(st.sampled_from(["on", "off"]), st.just(0)),
)


@given(st.lists(_ACTS, max_size=60))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_core_and_its_twin_agree_on_any_stack(tmp_path_factory: Any, acts: list[tuple[str, int]]) -> None:
    """The core finds open regions by an index, the twin looks through the whole stack."""
    folder = tmp_path_factory.mktemp("stack") / "t"
    with Writer(folder) as trace:
        location = trace.location("l", trace.process("p", trace.node("n")))
        for time, (act, which) in enumerate(acts):
            match act:
                case "enter" | "leave":
                    getattr(location, act)(time, which)
                case "burst":
                    for _ in range(6):
                        location.enter(time, which)
                case "switch" | "complete":
                    location.event(time, f"ThreadTask{act.title()}", 0, 0, which)
                case "put":
                    location.event(time, "RmaPut", 0, 1, 8, which)
                case "done":
                    location.event(time, "RmaOpCompleteBlocking", 0, which)
                case _:
                    location.event(time, "MeasurementOnOff", b"\1" if act == "on" else b"\2")
    stem = folder / "traces" / "0"
    given_files = files(stem.with_suffix(".evt"), stem.with_suffix(".def"), 1 << 20)._replace(def_chunk=1 << 18)
    core, twin = otf2.decode(given_files, tables()), reference_otf2.decode(given_files, tables())
    assert rows(core) == rows(twin)
    assert core["nesting"].tolist() == twin["nesting"].tolist()


def test_a_frame_left_out_hands_its_children_up(decode: Decode) -> None:
    def write(location: LocationWriter) -> None:
        location.enter(1, 1)
        location.enter(2, 7)  # frame 7 is not kept
        location.enter(3, 2)
        location.leave(4, 2)
        location.leave(5, 7)
        location.leave(6, 1)

    assert rows(decode(write)) == [(1, 1, 6, -1, 0, False), (2, 3, 4, 0, 1, False)]


def test_a_task_is_cut_when_switched_away_and_resumed(decode: Decode) -> None:
    def write(location: LocationWriter) -> None:
        location.enter(1, 1)
        location.event(2, "ThreadTaskSwitch", 0, 0, 5)
        location.enter(3, 2)
        location.event(5, "ThreadTaskSwitch", 0, 0, 6)  # task 5 is cut
        location.enter(6, 3)
        location.leave(7, 3)
        location.event(8, "ThreadTaskComplete", 0, 0, 6)
        location.event(9, "ThreadTaskSwitch", 0, 0, 5)  # and goes on
        location.leave(11, 2)
        location.event(12, "ThreadTaskSwitch", 0, 0, 0)
        location.leave(13, 1)

    found = decode(write)
    assert rows(found) == [
        (1, 1, 13, -1, 0, False),
        (2, 3, 5, 0, 1, False),
        (3, 6, 7, 0, 1, False),
        (2, 9, 11, 0, 1, True),
    ]
    assert found["nesting"].tolist() == [0, 0, 0, 0, 0]


def test_a_task_cannot_leave_what_it_did_not_enter(decode: Decode) -> None:
    def write(location: LocationWriter) -> None:
        location.enter(1, 1)
        location.event(2, "ThreadTaskSwitch", 0, 0, 5)
        location.leave(3, 1)  # the implicit task's
        location.enter(4, 2)
        location.event(5, "ThreadTaskComplete", 0, 0, 5)  # with 2 still open
        location.leave(6, 1)

    found = decode(write)
    assert rows(found) == [(1, 1, 6, -1, 0, False), (2, 4, 5, 0, 1, False)]
    assert found["nesting"].tolist() == [1, 0, 1, 0, 0]


def test_the_stack_becomes_the_chain_of_a_calling_context(decode: Decode) -> None:
    def write(location: LocationWriter) -> None:
        location.event(1, "CallingContextEnter", 1, 2)  # 0 → 1, frames 21, 22
        location.event(4, "CallingContextSample", 3, 1, 0)  # 0 → 3, frame 23: 22 ends
        location.event(6, "CallingContextSample", 0, 1, 0)
        location.event(9, "CallingContextLeave", 0)

    assert rows(decode(write)) == [(21, 1, 9, -1, 0, False), (22, 1, 4, 0, 1, False), (23, 4, 6, 0, 1, False)]


def test_copies_flushes_and_pauses_are_pseudo_frames(decode: Decode) -> None:
    def write(location: LocationWriter) -> None:
        location.event(1, "RmaPut", 0, 1, 4096, 70)
        location.event(3, "RmaOpCompleteBlocking", 0, 70)
        location.event(4, "RmaGet", 0, 1, 4096, 71)
        location.event(5, "RmaOpCompleteNonBlocking", 0, 71)
        location.event(5, "RmaOpCompleteRemote", 0, 71)  # a second completion ends nothing
        location.event(6, "RmaAtomic", 0, 1, b"\2", 8, 8, 72)
        location.event(7, "RmaOpCompleteBlocking", 0, 72)
        location.event(8, "BufferFlush", (20).to_bytes(8, "little"))
        location.event(21, "MeasurementOnOff", b"\2")
        location.event(22, "MeasurementOnOff", b"\2")
        location.event(25, "MeasurementOnOff", b"\1")

    found = decode(write)
    assert [row[:3] for row in rows(found)] == [(33, 1, 3), (34, 4, 5), (35, 6, 7), (36, 8, 20), (37, 21, 25)]
    assert found["nesting"].tolist() == [0, 0, 0, 0, 0]


def test_time_only_goes_forward(decode: Decode) -> None:
    def write(location: LocationWriter) -> None:
        location.enter(10, 1)
        location.enter(6, 2)  # claims to be earlier: takes effect at 10
        location.leave(12, 2)
        location.leave(11, 1)

    found = decode(write)
    assert rows(found) == [(1, 10, 12, -1, 0, False), (2, 10, 12, 0, 1, False)]
    assert found["backward"] == 2


def test_when_the_program_ran(decode: Decode) -> None:
    def write(location: LocationWriter) -> None:
        location.event(3, "ProgramBegin", 0, 0)
        location.event(8, "ProgramEnd", 0)

    assert decode(write)["program"] == (3, 8)


@pytest.mark.parametrize("bytes_of_id", [1, 2, 3, 4])
def test_ids_that_differ_in_their_last_byte_alone_are_two(decode: Decode, bytes_of_id: int) -> None:
    """An Enter and the Leave behind it are one span only if all bytes of their ids agree."""
    last = 8 * (bytes_of_id - 1)

    def write(location: LocationWriter) -> None:
        location.map_ids("region", {1 << last: 1, 2 << last: 2})
        for time in (0, 10):
            location.enter(time, 1 << last)
            location.leave(time + 1, 2 << last)  # another region: closes the one that is open
            location.leave(time + 2, 1 << last)
        location.enter(20, 2 << last)

    found = decode(write)
    assert [row[:3] for row in rows(found)] == [(1, 0, 1), (1, 10, 11), (2, 20, 20)]
    assert found["nesting"].tolist() == [2, 0, 1, 0, 2]  # leaves without an enter, and of another region
