"""The core reads the plain definitions; whatever it leaves, and whatever is damaged, comes out as without it."""

import random
from typing import Any

import numpy as np
import pytest

from wattribute._core import otf2 as core
from wattribute._core.library import LIBRARY
from wattribute.errors import WattributeError
from wattribute.readers.otf2 import anchor, definitions
from wattribute.readers.otf2.writer import Writer

from .archives import rich

CHUNK = 1 << 18


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return rich(tmp_path_factory.mktemp("definitions") / "rich", 3, 3)


def outcome(path, chunk) -> Any:
    try:
        return definitions.read(path, chunk, 99)
    except WattributeError as error:
        return str(error)


def both(path, chunk, monkeypatch) -> tuple[Any, Any]:
    with monkeypatch.context() as patch:
        patch.setattr(core, "definitions", lambda *_: (np.empty((0, 16), np.int64), 0))
        slow = outcome(path, chunk)
    return outcome(path, chunk), slow


@pytest.mark.skipif(LIBRARY is None, reason="the core is not compiled")
def test_the_core_takes_nearly_all_of_them(original):
    told = anchor.read(original / "traces.otf2")
    data = told.definitions_path.read_bytes()
    rows, end = core.definitions(data, told.definition_chunk, {14: "cc1cc"})
    assert end == len(data) - 2  # up to the mark that ends the file
    assert rows[rows[:, 0] == 14][:, 3].all()
    assert len(rows) == told.definitions


@pytest.mark.parametrize("seed", range(40))
def test_damaged_definitions_are_the_same_with_the_core_and_without(original, tmp_path, monkeypatch, seed):
    dice = random.Random(seed)
    data = bytearray((original / "traces.def").read_bytes())
    for _ in range(seed % 4):
        data[dice.randrange(18, len(data))] = dice.choice([0, 1, 2, 3, 5, 8, 9, 254, 255, dice.randrange(256)])
    if seed % 3 == 0:
        del data[dice.randrange(18, len(data)) :]
    path = tmp_path / "x.def"
    path.write_bytes(data)
    fast, slow = both(path, CHUNK if seed % 2 else 4096, monkeypatch)
    assert fast == slow


@pytest.mark.parametrize("damaged", [None, 9_000, 36_000])
def test_definitions_are_the_same_in_pieces_of_any_size(tmp_path, monkeypatch, damaged):
    with Writer(tmp_path / "many", definition_chunk=4096) as trace:
        process = trace.process("MPI Rank 0", trace.node("host", "node"))
        for i in range(1000):
            trace.region(f"function {i} ü", file=f"file {i % 10}.c", line=i if i % 100 else 2**40)
        trace.location("thread", process).enter(0, 0)
    path = tmp_path / "many" / "traces.def"
    data = bytearray(path.read_bytes())
    assert len(data) > 10 * 4096
    if damaged is not None:
        data[damaged : damaged + 100] = bytes([9]) * 100
    path.write_bytes(data)
    whole, slow = both(path, 4096, monkeypatch)
    monkeypatch.setattr(definitions, "_PIECE", 1)  # a chunk at a time
    assert outcome(path, 4096) == whole == slow
    if damaged is None:
        assert not isinstance(whole, str)
        lines = [record[5] for record in whole.of(definitions.Kind.REGION)]
        assert lines == [i if i % 100 else 2**40 for i in range(1000)]
