"""Many locations in one call give what each gives alone, from C and twin, however some of their files are."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wattribute._core import otf2, reference_otf2
from wattribute._core.records import LocationBatch, Read
from wattribute.model import Curve, Intervals, Keys

from . import fuzzing
from .test_fidelity import compiled, same
from .test_hostile import CHUNK, CORES, tables

SPANS = ("start", "end", "frame", "parent", "depth", "resumed")
EVENTS, MEMBERS = ("metric_time", "metric_id", "metric_n"), ("metric_type", "metric_bits")
SOUND = range(6)


def many(folder: Path, ids: Any, declared: int = 400) -> LocationBatch:
    return LocationBatch(str(folder), np.array(ids, np.uint64), np.full(len(ids), declared, np.uint64), CHUNK, CHUNK, 7)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Six sound locations; then missing, empty, cut, damaged, a folder, a pipe, without or with a cut .def file."""
    fuzzing.seeds(tmp_path)
    content = (tmp_path / "1.evt").read_bytes()
    (tmp_path / "11.evt").touch()
    (tmp_path / "12.evt").write_bytes(content[: len(content) // 2])
    (tmp_path / "13.evt").write_bytes(content[:700] + b"\4\4\4" + content[703:])
    (tmp_path / "14.evt").mkdir()
    os.mkfifo(tmp_path / "15.evt")
    (tmp_path / "16.evt").write_bytes(content)
    (tmp_path / "17.evt").write_bytes(content)
    (tmp_path / "17.def").write_bytes((tmp_path / "1.def").read_bytes()[:30])
    (tmp_path / f"{2**64 - 1}.evt").write_bytes(content)
    return tmp_path


def of_one(read: Read, i: int, column: str) -> Any:
    bound = read.ends[:, 1 if column in MEMBERS else 0]
    return read.columns[column][bound[i - 1] if i else 0 : bound[i]]


def as_alone(given: LocationBatch, read: Read, spans: bool) -> None:
    names = SPANS if spans else EVENTS + MEMBERS
    assert tuple(read.columns) == names
    for i in range(len(given.ids)):
        alone = otf2.decode(given.files(i), tables(), spans, not spans)
        told = read.details(i)
        same({name: alone[name] for name in (*names, *told)}, {name: of_one(read, i, name) for name in names} | told)
        np.testing.assert_array_equal(read.counts[i], alone["counts"])
        quiet = not (alone["status"]["code"] or alone["nesting"].any() or alone["undefined"] or alone["backward"])
        assert read.plain[i] <= (quiet and alone["status"]["events"] == given.declared[i])


IDS = [3, 11, 12, 0, 13, 14, 99, 15, 16, 1, 17, 2**64 - 1, 5, 2, 4, 3]


@CORES
@pytest.mark.parametrize("spans", [True, False])
def test_each_as_alone(folder: Path, core: Any, spans: bool) -> None:
    given = many(folder, IDS)
    read = core.decode_many(given, tables(), spans)
    as_alone(given, read, spans)
    codes = [read.details(i)["status"]["code"] for i in range(len(IDS))]
    assert codes[1:8] == ["empty", "truncated", "", "corrupt", "io", "missing", "io"]
    assert codes[10] == "truncated"
    assert read.details(10)["status"]["message"].startswith(f"{folder}/17.def: ends early")


@pytest.mark.parametrize("spans", [True, False])
def test_c_and_twin_agree(folder: Path, spans: bool) -> None:
    compiled()
    twin, found = (core.decode_many(many(folder, IDS), tables(), spans) for core in (reference_otf2, otf2))
    same(twin.columns, found.columns)
    np.testing.assert_array_equal(found.ends, twin.ends)
    np.testing.assert_array_equal(found.counts, twin.counts)


def test_plain_is_what_has_nothing_to_tell(folder: Path) -> None:
    compiled()
    with fuzzing.Writer(folder / "t") as trace:
        process, main = trace.process("p", trace.node("n")), trace.region("main")
        for end in ([10], [], [10]):  # the second never leaves
            location = trace.location("l", process)
            location.enter(1, main)
            for time in end:
                location.leave(time, main)
    chunk = 1 << 20
    declared = np.array([2, 1, 3], np.uint64)  # the third has two
    given = LocationBatch(str(folder / "t" / "traces"), np.arange(3, dtype=np.uint64), declared, chunk, chunk, 0)
    assert otf2.decode_many(given, tables(), True).plain.tolist() == [True, False, False]


@pytest.mark.parametrize("declared", [0, 10_000_000, 2**63, 2**64 - 1])
def test_what_is_declared_is_not_trusted(folder: Path, declared: int) -> None:
    """Too little makes columns grow from location to location, too much may not ask for all memory."""
    given = many(folder, [*SOUND] * 40, declared)
    as_alone(given, otf2.decode_many(given, tables(), True), True)


def test_files_that_can_be_read_are_found(folder: Path) -> None:
    compiled()
    found = otf2.find_many(many(folder, IDS)).tolist()
    assert [i for i, there in zip(IDS, found, strict=True) if not there] == [11, 14, 99, 15]


@CORES
@pytest.mark.parametrize("entered_only", [False, True])
@pytest.mark.parametrize("by_path", [False, True])
def test_folds_stand_side_by_side(folder: Path, core: Any, entered_only: bool, by_path: bool) -> None:
    given, frames = many(folder, [*SOUND, 12]), len(tables().keep)
    edges = np.arange(0, 2**40, 2**36)
    pieces = Intervals(edges[:1], edges[-1:])
    ones = np.ones(len(edges) - 1)
    curves = [
        Curve(edges, edges / 7.0, pieces, edges, ones, 2 * ones),
        Curve(edges, edges / 3.0, pieces),
        Curve(edges[:5], edges[:5] / 2.0, pieces),
    ]
    keys = Keys(np.arange(frames, dtype=np.int32) % 3, 3, by_path)
    others = [replace(curve, values=5 * curve.values) for curve in curves]
    each = [curves if i % 3 else others for i in range(len(given.ids))]
    read, columns = core.fold_many(given, tables(), each, keys, entered_only=entered_only)
    assert len(columns["calls"]) == read.ends[-1, 0]
    for i, (begin, end) in enumerate(pairwise([0, *read.ends[:, 0].tolist()])):
        alone = otf2.fold(given.files(i), tables(), each[i], keys)
        rows = columns["row"][begin:end] if entered_only and not by_path else np.arange(end - begin)
        for name in ("calls", "self_ticks", "total_ticks", "self_covered", "self_value", "total_value", "total_high"):
            np.testing.assert_array_equal(columns[name][..., begin:end], alone[name][..., rows])
        if by_path:
            for ours, its in zip(columns["paths"], alone["paths"], strict=True):
                np.testing.assert_array_equal(ours[begin:end], its)
