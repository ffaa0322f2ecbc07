"""Damaged, odd and growing files: the correct prefix and a status that names the place, the same from C and twin."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wattribute._core import otf2, reference_otf2
from wattribute._core.records import LocationFiles, LookUpTables
from wattribute.readers.otf2.writer import Writer

from . import fuzzing
from .test_fidelity import same

CORES = pytest.mark.parametrize("core", [otf2, reference_otf2], ids=["c", "twin"])
CHUNK = fuzzing.CHUNK
HEADER = bytes([3, 0x42]) + (1).to_bytes(8, "little") + (0).to_bytes(8, "little")


def files(evt: Path, local: Path | str = "", chunk: int = CHUNK, offset: int = 0) -> LocationFiles:
    return LocationFiles(str(evt), str(local), chunk, CHUNK, offset, 400)


def tables() -> LookUpTables:
    """Forty frames, the last five of them pseudo-frames; contexts 0 → 1 → 2 and 0 → 3."""
    keep = np.ones(40, np.uint8)
    keep[7] = 0
    region = np.arange(20, dtype=np.int32)
    region[11] = -1
    contexts = np.array([21, 22, -1, 23], np.int32), np.array([-1, 0, 1, 0], np.int32)
    return LookUpTables(region, *contexts, keep, 33, 34, 35, 36, 37)


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("seeds")
    fuzzing.seeds(folder)
    return folder


def prefix_of(whole: dict[str, Any], part: dict[str, Any]) -> None:
    for name in ("time", "kind", "ref", "metric_time", "metric_bits"):
        np.testing.assert_array_equal(part[name], whole[name][: len(part[name])], err_msg=name)
    assert part["status"]["events"] == len(part["time"])


def test_a_cut_file_gives_its_prefix_and_says_where_it_ends(seeds: Path, tmp_path: Path) -> None:
    content = (seeds / "0.evt").read_bytes()
    whole = reference_otf2.events(files(seeds / "0.evt", seeds / "0.def"))
    assert whole["status"]["code"] == ""
    assert len(content) > 8 * CHUNK
    boundaries = [at + near for at in range(CHUNK, len(content), CHUNK) for near in (-1, 0, 1)]
    cuts = {
        *boundaries,
        1,
        17,
        18,
        19,
        len(content) - 2,
        *map(int, np.random.default_rng(5).integers(2, len(content), 50)),
    }
    for cut in sorted(cuts):
        path = tmp_path / "cut.evt"
        path.write_bytes(content[:cut])
        found = otf2.events(files(path, seeds / "0.def"))
        same(reference_otf2.events(files(path, seeds / "0.def")), found)
        prefix_of(whole, found)
        state = found["status"]
        assert state["code"] == "truncated", cut
        assert cut - CHUNK < state["byte"] <= cut
        assert state["message"] == f"{path}: ends early at byte {state['byte']}"
        same(reference_otf2.decode(files(path), tables()), otf2.decode(files(path), tables()))


def test_without_the_last_byte_nothing_is_lost(seeds: Path, tmp_path: Path) -> None:
    path = tmp_path / "last.evt"
    path.write_bytes((seeds / "0.evt").read_bytes()[:-1])  # it only says that the buffer ends, which the file does too
    assert otf2.events(files(path))["status"]["code"] == ""


def test_a_cut_definition_file_gives_nothing_rather_than_wrong_ids(seeds: Path, tmp_path: Path) -> None:
    content = (seeds / "1.def").read_bytes()
    for cut in range(1, len(content) - 2):
        path = tmp_path / "cut.def"
        path.write_bytes(content[:cut])
        found = otf2.events(files(seeds / "1.evt", path))
        same(reference_otf2.events(files(seeds / "1.evt", path)), found)
        assert len(found["time"]) == 0
        assert found["status"]["code"] == "truncated"
        assert found["status"]["message"].startswith(f"{path}: ends early at byte ")


def test_c_and_twin_agree_on_damage(seeds: Path, tmp_path: Path) -> None:
    random = np.random.default_rng(11)
    evt, local = tmp_path / "x.evt", tmp_path / "x.def"
    codes = set()
    for i in range(150):
        for path, source in ((evt, seeds / f"{i % 6}.evt"), (local, seeds / f"{i % 6}.def")):
            content = bytearray(source.read_bytes())
            for _ in range(int(random.integers(3))):
                content[int(random.integers(len(content)))] = int(
                    random.choice([0, 1, 2, 5, 8, 12, 13, 31, 60, 68, 255])
                )
            path.write_bytes(content)
        given = files(evt, local, offset=7)
        same(reference_otf2.events(given), otf2.events(given))
        same(reference_otf2.decode(given, tables()), otf2.decode(given, tables()))
        codes.add(otf2.events(given)["status"]["code"])
    assert codes >= {"", "corrupt", "truncated", "count"}


@CORES
@pytest.mark.parametrize("chunk", [0, 1, 31])
def test_a_chunk_size_that_cannot_be(seeds: Path, core: Any, chunk: int) -> None:
    assert core.events(files(seeds / "0.evt", chunk=chunk))["status"]["code"] == "corrupt"


@CORES
@pytest.mark.parametrize(
    ("record", "code"),
    [
        (b"\x1f\xff" + b"\xff" * 8, "truncated"),  # a metric of 2^64 − 1 bytes
        (b"\x1f\xff" + (1 << 62).to_bytes(8, "little"), "truncated"),
        (b"\x1f\x40", "truncated"),
        (b"\x0c\x09" + bytes(9), "corrupt"),  # an integer of nine bytes
        (b"\x04\x00\x02\x01", "corrupt"),  # a kind that does not exist below the events
        (b"\x1f\x02\x00\x03\x02\x01", "corrupt"),  # a metric that claims three members and has none
        (b"\x42\x00\x02\x01", "corrupt"),  # a calling context without its number
    ],
)
def test_lengths_and_kinds_that_lie(tmp_path: Path, core: Any, record: bytes, code: str) -> None:
    path = tmp_path / "lies.evt"
    path.write_bytes(HEADER + b"\x05" + bytes(8) + b"\x0c\x01\x03" + record)
    found = core.events(files(path))
    assert found["kind"].tolist() == [12]
    assert (found["status"]["code"], found["status"]["byte"], found["status"]["events"]) == (code, 30, 1)


@CORES
def test_unknown_kinds_are_skipped_and_counted(tmp_path: Path, core: Any) -> None:
    path = tmp_path / "new.evt"
    path.write_bytes(HEADER + b"\x0c\x00\xf0\x02\xff\xff\x0d\x00\x02\x01")
    found = core.decode(files(path), tables())
    assert found["nesting"].tolist() == [0, 0, 0, 1, 0]
    assert len(found["start"]) == 1


@CORES
def test_files_that_are_none(tmp_path: Path, core: Any) -> None:
    (tmp_path / "empty.evt").touch()
    (tmp_path / "folder.evt").mkdir()
    os.mkfifo(tmp_path / "pipe.evt")
    (tmp_path / "big.evt").write_bytes(bytes([3, 0x23]) + bytes(30))
    expected = {"absent": "missing", "empty": "empty", "folder": "io", "pipe": "io", "big": "endian"}
    found = {name: core.decode(files(tmp_path / f"{name}.evt"), tables())["status"]["code"] for name in expected}
    assert found == expected


@CORES
def test_no_permission(tmp_path: Path, core: Any) -> None:
    path = tmp_path / "secret.evt"
    path.write_bytes(HEADER)
    path.chmod(0)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        state = core.events(files(path))["status"]
    finally:
        if root:
            os.seteuid(0)
    assert state["code"] == "permission"
    assert state["message"] == f"{path}: may not be read by this user"


@CORES
def test_ids_out_of_range(tmp_path: Path, core: Any) -> None:
    """Regions nobody defined make no spans, but their leaves still find them."""
    with Writer(tmp_path / "t") as trace:
        location = trace.location("l", trace.process("p", trace.node("n")))
        for time, region in ((1, 3), (2, 4_000_000_000), (3, 19), (4, 11)):
            location.enter(time, region)
        for time, region in ((5, 11), (6, 19), (7, 4_000_000_000), (8, 3)):
            location.leave(time, region)
        location.event(9, "CallingContextEnter", 77, 1)
    found = core.decode(files(tmp_path / "t" / "traces" / "0.evt", chunk=1 << 20), tables())
    assert found["frame"].tolist() == [3, 19]
    assert found["end"].tolist() == [8, 6]
    assert found["parent"].tolist() == [-1, 0]
    assert found["undefined"] == 3
    assert found["nesting"].tolist() == [0, 0, 0, 0, 0]


def test_a_file_that_grows_while_it_is_read(seeds: Path, tmp_path: Path) -> None:
    content, path = (seeds / "2.evt").read_bytes(), tmp_path / "growing.evt"
    whole = otf2.events(files(seeds / "2.evt"))
    path.touch()

    def grow() -> None:
        with path.open("ab", buffering=0) as file:
            for at in range(0, len(content), 7):
                file.write(content[at : at + 7])

    writer = threading.Thread(target=grow)
    writer.start()
    codes = set()
    while writer.is_alive():
        found = otf2.events(files(path))
        prefix_of(whole, found)
        codes.add(found["status"]["code"])
    writer.join()
    assert codes <= {"", "empty", "truncated"}
    same(whole, otf2.events(files(path)))
