"""Damaged, hostile and half-written archives: a one-line error that names file and byte, or a prefix and a problem."""

import os
import random
import shutil
import stat
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest

import wattribute
from wattribute.errors import FormatError, NotFoundError, UnsupportedError, WattributeError
from wattribute.readers.otf2 import definitions
from wattribute.readers.otf2.encoding import compressed, record, write_definitions
from wattribute.readers.otf2.writer import Writer

from .archives import rich

CALLS, READINGS = 60, 50
CHUNK = 1 << 18


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return rich(tmp_path_factory.mktemp("hostile") / "rich", CALLS, READINGS)


@pytest.fixture
def archive(original, tmp_path):
    return Path(shutil.copytree(original, tmp_path / "copy"))


def read_all(path, **selection):
    """The recording, after everything in it was decoded."""
    recording = wattribute.read(path, **selection)
    recording.spans.count_events()
    return recording


def outcome(path):
    """What reading everything comes to: "error: …", or "problem: …" about the definitions, or nothing."""
    try:
        recording = read_all(path)
    except WattributeError as error:
        return f"error: {error}"
    for row in recording.spans.locations():
        recording.spans.spans(row)
    wattribute.describe(recording)
    return "".join(f"problem: {p.message}" for p in recording.problems if p.kind == "definitions")


def kinds(recording):
    return sorted(problem.kind for problem in recording.problems if problem.kind != "declared")


def put(path, at, data):
    content = bytearray(path.read_bytes())
    content[at : at + len(data)] = data
    path.write_bytes(content)


# --- the anchor


def test_a_folder_without_a_trace(tmp_path):
    with pytest.raises(NotFoundError, match="unrecognised format"):
        wattribute.read(tmp_path)
    with pytest.raises(NotFoundError, match="no OTF2 anchor"):
        wattribute.read(tmp_path, format="otf2")


def test_the_anchor_is_missing(archive):
    (archive / "traces.otf2").unlink()
    with pytest.raises(NotFoundError):
        wattribute.read(archive)


def test_several_anchors_need_a_choice(archive):
    for name in ("a", "b"):
        shutil.copy(archive / "traces.otf2", archive / f"{name}.otf2")
    (archive / "traces.otf2").unlink()
    with pytest.raises(NotFoundError, match=r"2 traces \(a.otf2, b.otf2\)"):
        wattribute.read(archive)


def test_an_anchor_cut_anywhere(archive):
    anchor = archive / "traces.otf2"
    content = anchor.read_bytes()
    needed = len(content) - 11  # thumbnails, snapshots and the end mark are not looked at
    for size in range(needed):
        anchor.write_bytes(content[:size])
        with pytest.raises(FormatError, match=f"traces.otf2 at byte {size}:|not an OTF2 anchor"):
            wattribute.read(archive)
    anchor.write_bytes(content[:needed])
    assert wattribute.read(archive).signals


@pytest.mark.parametrize(
    ("at", "data", "error", "says"),
    [
        (0, b"\x04", FormatError, "at byte 0: not an OTF2 anchor"),
        (1, b"#", UnsupportedError, "at byte 1: a big-endian archive"),
        (1, b"?", FormatError, "at byte 1: unknown byte order 0x3f"),
        (2, b"OTFX", FormatError, "at byte 2: not an OTF2 anchor"),
        (12, bytes(8), FormatError, "at byte 12: event chunk size 0 is impossible"),
        (20, bytes(8), FormatError, "at byte 20: definition chunk size 0 is impossible"),
        (12, b"\xff" * 8, FormatError, "at byte 12: event chunk size 18446744073709551615"),
        (28, b"\x02", UnsupportedError, "at byte 28: file substrate SION"),
        (29, b"\x02", UnsupportedError, "at byte 29: compression zlib"),
    ],
)
def test_kinds_of_archives_we_do_not_read(archive, at, data, error, says):
    put(archive / "traces.otf2", at, data)
    with pytest.raises(error, match=says):
        wattribute.read(archive)


# --- the global definitions


def test_missing_or_empty_definitions(archive):
    (archive / "traces.def").write_bytes(b"")
    with pytest.raises(FormatError, match=r"traces.def at byte 0: the global definitions are empty"):
        wattribute.read(archive)
    (archive / "traces.def").unlink()
    with pytest.raises(NotFoundError, match=r"traces.def: the global definitions are missing"):
        wattribute.read(archive)


def test_definitions_cut_anywhere(archive):
    path = archive / "traces.def"
    content = path.read_bytes()
    read = failed = 0
    for size in range(len(content) - 2):
        path.write_bytes(content[:size])
        try:
            found = definitions.read(path, CHUNK, 99)
            told, read = found.problems[0].message, read + 1
        except WattributeError as error:
            told, failed = str(error), failed + 1
        assert str(path) in told
        if size % 20 == 0:
            assert "traces.def" in outcome(archive)
    assert read > 100  # after the first location definition
    assert failed > 100


def test_definitions_of_several_chunks_cut_at_their_boundaries(tmp_path):
    with Writer(tmp_path / "x") as trace:
        thread = trace.location("t", trace.process("p", trace.node("n")))
        for n in range(3_000):
            trace.region(f"region {n} " + "x" * 200)
        thread.enter(1, 0)
        thread.leave(2, 0)
    path = tmp_path / "x" / "traces.def"
    content = path.read_bytes()
    boundaries = [n * CHUNK + d for n in range(1, len(content) // CHUNK + 1) for d in (-1, 0, 1)]
    assert len(boundaries) >= 6
    for size in [*boundaries, *random.Random(1).sample(range(len(content) - 2), 50)]:
        path.write_bytes(content[:size])
        assert "traces.def" in outcome(tmp_path / "x")


@pytest.mark.parametrize("seed", range(5))
def test_definitions_with_flipped_bytes(archive, seed):
    path = archive / "traces.def"
    content, dice = path.read_bytes(), random.Random(seed)
    for _ in range(20):
        broken = bytearray(content)
        for _ in range(dice.randint(1, 4)):
            broken[dice.randrange(len(broken))] = dice.choice((0, 1, 2, 3, 255, dice.randrange(256)))
        path.write_bytes(broken)
        assert "\n" not in outcome(archive)


def test_a_record_that_claims_to_be_endless(archive):
    path = archive / "traces.def"
    path.write_bytes(path.read_bytes()[:-2] + bytes([10, 255]) + b"\xff" * 8)
    assert "definitions" in kinds(wattribute.read(archive))


def hostile_definitions(folder, *more):
    """An archive whose definitions are followed by these records."""
    with Writer(folder) as trace:
        thread = trace.location("t", trace.process("p", trace.node("n")))
        main = trace.region("main")
        thread.enter(1, main)
        thread.leave(5, main)
        trace._records.extend(more)
    return folder


def define(kind, *fields):
    return record(kind, *(compressed(field) if isinstance(field, int) else field for field in fields))


def test_references_to_nothing(tmp_path):
    folder = hostile_definitions(
        tmp_path / "x",
        define(12, 7, 999_999, 4_000_000_000, 123),  # a node with undefined name, class and parent
        define(13, 8, 999_999, b"\x01", 77, 66),  # a process on an undefined node
        define(15, 9, 999_999, 0, b"\0", 5_555, 1, 1, 999_999, b"\xff\xff", 0),  # a region without a name
        define(20, 3, b"\x02", 500, 501, b"\x02\x01"),  # metrics without members
        define(21, 4, 600, 2**63, b"\x09", 2**63),  # an instance of nothing, anywhere
        define(34, 1, 700, -1, 800),
    )
    recording = read_all(folder)
    assert recording.nodes.parent.tolist() == [-1, -1]
    assert recording.host(1) == ""
    assert recording.frames.name[1] == "region 9"
    assert recording.frames.role[1] == "number 255"
    assert wattribute.describe(recording)["events"] == 2


def test_rings_are_cut(tmp_path):
    nodes = [define(12, n, 0, 0, parent) for n, parent in ((5, 6), (6, 7), (7, 5), (8, 8))]
    contexts = [define(34, n, 0, -1, parent) for n, parent in ((0, 1), (1, 0), (2, 1))]
    folder = hostile_definitions(tmp_path / "x", *nodes, *contexts)
    recording = read_all(folder)
    assert kinds(recording).count("definitions") == 3
    for node in range(len(recording.nodes)):
        recording.node_host(node)  # ends


def test_huge_ids_do_not_ask_for_huge_tables(tmp_path):
    region = define(15, 2**32 - 2, 0, 0, b"\0", -1, 0, 0, 0, b"\x01\x01", 0)
    metric = define(20, 2**32 - 2, b"\x00", b"\x02\x01")
    recording = read_all(hostile_definitions(tmp_path / "x", region, metric), metric=".")
    assert "definitions" in kinds(recording)
    assert len(recording.spans.spans(0)) == 1


def test_an_id_defined_twice_counts_once(tmp_path):
    recording = read_all(hostile_definitions(tmp_path / "x", define(14, 0, 0, b"\x01", 2, 0)))
    assert len(recording.locations) == 1
    assert kinds(recording) == ["definitions"]


# --- events


def evt(archive, location=0):
    return archive / "traces" / f"{location}.evt"


def test_missing_empty_and_strange_event_files(archive):
    evt(archive, 0).unlink()
    evt(archive, 1).write_bytes(b"")
    evt(archive, 2).unlink()
    os.mkfifo(evt(archive, 2))  # would block whoever opens it
    evt(archive, 1 << 32).unlink()
    evt(archive, 1 << 32).mkdir()
    recording = read_all(archive)
    assert kinds(recording) == ["missing"] * 4
    assert [one.reason.split(": ")[-1] for one in recording.missing] == [
        "the file is not there",
        "the file is empty",
        "not a regular file",
        "not a regular file",
    ]
    assert [one.events for one in recording.missing] == [2 * CALLS + 4, 4, 4, READINGS]
    assert not recording.signals


def test_events_cut_anywhere_give_the_correct_prefix(archive):
    whole = read_all(archive).spans.spans(0)
    file = evt(archive)
    content = file.read_bytes()
    for size in [*range(1, 40), *random.Random(2).sample(range(40, len(content) - 2), 50), len(content) - 2]:
        file.write_bytes(content[:size])
        recording = read_all(archive)
        [problem] = [p for p in recording.problems if p.location == 0 and p.kind not in ("nesting", "count")]
        assert problem.kind in ("truncated", "corrupt")
        assert str(file) in problem.message
        assert "at byte" in problem.message
        spans = recording.spans.spans(0)
        np.testing.assert_array_equal(spans.start, whole.start[: len(spans)])
        np.testing.assert_array_equal(spans.frame, whole.frame[: len(spans)])


def test_a_cut_local_definition_file_does_not_misattribute(archive):
    file = archive / "traces" / "1.def"
    content = file.read_bytes()
    for size in range(len(content) - 2):
        file.write_bytes(content[:size])
        recording = read_all(archive)
        problems = [p for p in recording.problems if p.location == 1]
        assert any(str(file) in p.message for p in problems), size
        assert len(recording.spans.spans(1)) == 0  # without its id maps events would be charged to the wrong code


def test_ids_out_of_range(tmp_path):
    with Writer(tmp_path / "x") as trace:
        thread = trace.location("t", trace.process("p", trace.node("n")))
        main = trace.region("main")
        metric = trace.metric_class([trace.member("m")], "strict")
        thread.enter(1, main)
        thread.enter(2, 4_000_000_000)
        thread.metric(3, 4_000_000_000, 1, 2)
        thread.metric(3, metric, 1, 2)  # one member is defined
        thread.event(4, "CallingContextSample", 4_000_000_000, 0, 0)
        thread.leave(5, 4_000_000_000)
        thread.leave(6, main)
    recording = read_all(tmp_path / "x")
    assert kinds(recording) == ["undefined"]
    assert [s.name for s in recording.signals] == [
        "m",
        "metric 0 member 1 (undefined)",
        "metric 4000000000 member 0 (undefined)",
        "metric 4000000000 member 1 (undefined)",
    ]
    assert {s.unit for s in recording.signals} == {"#"}
    assert recording.spans.spans(0).end.tolist() == [6]


def test_declared_counts_are_checked(archive):
    path = archive / "traces.def"
    content = path.read_bytes()
    broken = content.replace(b"\x01\x04\x01\x01", b"\x01\x05\x01\x01", 1)  # location 1 holds 4 events, not 5
    assert broken != content
    path.write_bytes(broken)
    recording = read_all(archive)
    assert kinds(recording) == ["count"]
    assert "holds 4 events, 5 are declared" in recording.problems[-1].message


def test_a_file_that_grows_while_it_is_read(archive):
    file = evt(archive)
    content = file.read_bytes()
    whole = read_all(archive).spans.spans(0)
    half = len(content) // 2
    file.write_bytes(content[:half])
    done = threading.Event()

    def grow():
        with file.open("ab", buffering=0) as out:
            for at in range(half, len(content), 64):
                out.write(content[at : at + 64])
        done.set()

    writer = threading.Thread(target=grow)
    writer.start()
    while not done.is_set():
        spans = read_all(archive).spans.spans(0)
        np.testing.assert_array_equal(spans.start, whole.start[: len(spans)])
    writer.join()
    assert len(read_all(archive).spans.spans(0)) == len(whole)
    file.write_bytes(content + b"\x0c\x01\x01" * 1000)  # nothing counts behind the end mark
    assert len(read_all(archive).spans.spans(0)) == len(whole)


def test_no_permission_as_another_user(archive):
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    with tempfile.TemporaryDirectory() as place:  # pytest's own folders are closed to others
        folder = Path(shutil.copytree(archive, Path(place) / "trace"))
        Path(place).chmod(0o755)
        evt(folder).chmod(0)
        assert as_nobody(missing_of, folder) == "[(0, 'no permission to read it')] 2"
        (folder / "traces.def").chmod(0)
        assert as_nobody(missing_of, folder).endswith("traces.def: cannot be read: Permission denied")
        (folder / "traces.otf2").chmod(0)
        assert as_nobody(missing_of, folder).endswith("traces.otf2: cannot be read: Permission denied")
        for mode in (0o000, 0o444, 0o711):  # closed, listed but not entered, entered but not listed
            folder.chmod(mode)
            assert "cannot be read" in as_nobody(missing_of, folder), oct(mode)
        folder.chmod(0o755)
        Path(place).chmod(0o700)
        assert "cannot be read" in as_nobody(missing_of, folder)


def missing_of(folder):
    recording = read_all(folder)
    missing = [(one.location, one.reason.split(": ")[-1]) for one in recording.missing]
    return f"{missing} {len(recording.spans.spans(1))}"


def as_nobody(work, *arguments):
    """What a function returns, or the error it raises, in a child that is another user."""
    from_child, to_parent = os.pipe()
    child = os.fork()  # everything is imported already: the other user may not see our Python
    if not child:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            os.write(to_parent, work(*arguments).encode())
        except BaseException as error:
            os.write(to_parent, str(error).encode())
        os._exit(0)
    os.close(to_parent)
    os.waitpid(child, 0)
    with os.fdopen(from_child) as pipe:
        return pipe.read()


def test_an_anchor_that_is_a_pipe_does_not_block(archive):
    anchor = archive / "traces.otf2"
    anchor.unlink()
    os.mkfifo(anchor)
    for path in (archive, anchor):
        with pytest.raises(NotFoundError, match="not a regular file"):
            wattribute.read(path)


def test_pipes_beside_the_trace_do_not_block(archive):
    for name in ("scorep.cfg", "MANIFEST.md"):
        os.mkfifo(archive / name)
    assert read_all(archive).signals
    local = archive / "traces" / "0.def"
    local.unlink()
    os.mkfifo(local)
    assert stat.S_ISFIFO(local.stat().st_mode)
    assert any(str(local) in p.message for p in read_all(archive).problems)


def test_the_writers_own_limit_is_the_readers(tmp_path):
    write_definitions(tmp_path / "traces.def", [record(10, compressed(0), b"x" * 100 + b"\0")], 256)
    assert (tmp_path / "traces.def").stat().st_size < 256


def test_a_file_of_another_kind_beside_a_trace_is_not_the_trace(archive):
    anchor = next(archive.glob("*.otf2"))
    other = anchor.with_suffix(".txt")
    other.write_text("hello\n")
    with pytest.raises(WattributeError, match=other.name):
        wattribute.read(other)
    assert wattribute.read(anchor.with_suffix(".def")).metadata["format"] == "otf2"
