"""Every reader with damaged files, and files made to take memory, to leave their folder or to write to a terminal."""

import json
import os
import random
from pathlib import Path

import numpy as np
import pytest

import wattribute
from tests.readers import fuzzing
from tests.readers.samples import format_of
from wattribute.errors import FormatError, OptionError, WattributeError, printable
from wattribute.journal import file as journal
from wattribute.plugins import readers

FILES = 12  # `python -m tests.readers.fuzzing --files 500` looks harder


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    return fuzzing.seeds(tmp_path_factory.mktemp("seeds"))


def test_every_reader_has_a_seed(seeds):
    assert {format_of(Path(name)) for name in seeds} >= set(readers.names())


@pytest.mark.parametrize("format", sorted(readers.names()))
def test_a_damaged_file_is_read_or_refused(seeds, tmp_path, format):
    for name, seed in seeds.items():
        if format_of(Path(name)) == format:
            counts, failures = fuzzing.tried(name, seed, FILES, tmp_path)
            assert not failures, failures[0]
            assert counts.total() == FILES


# ------------------------------------------------------------------------------------------------------ made to hurt


def archived(seeds, tmp_path, change):
    """The seed archive with a changed JSON."""
    import shutil

    path = tmp_path / "x.watt"
    shutil.copytree(seeds["watt-run"], path)
    content = json.loads((path / "wattribute.json").read_text())
    change(content)
    (path / "wattribute.json").write_text(json.dumps(content))
    return path


def test_an_archives_types_do_not_leave_its_folder(seeds, tmp_path):
    path = archived(seeds, tmp_path, lambda content: content["signals"][0].update(type="../../secret"))
    for opens in (wattribute.load, wattribute.read, wattribute.scan):
        with pytest.raises(FormatError, match=r"wattribute\.json: signals of type"):
            opens(path)


def test_a_sparse_journal_takes_no_memory(tmp_path):
    path = tmp_path / "journal"
    path.write_bytes(journal.MAGIC)
    os.truncate(path, 1 << 43)  # as large as file systems have it
    with pytest.raises(FormatError, match="cut before anything"):
        wattribute.read(tmp_path)


def test_a_sparse_json_takes_no_memory(seeds, tmp_path):
    path = archived(seeds, tmp_path, lambda content: None)
    os.truncate(path / "wattribute.json", 1 << 43)
    with pytest.raises(FormatError, match="GiB of memory"):
        wattribute.read(path)


def test_a_parquet_bomb_takes_no_memory(seeds, tmp_path):
    """Equal numbers take no room in a file: 2 × 10⁹ rows in a few kilobytes are 50 GB and more in memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = archived(seeds, tmp_path, lambda content: None)
    file = path / "readings" / "int64.parquet"
    rows = 1 << 20
    schema = pq.read_schema(file)
    zeros = [pa.array(np.zeros(rows, each.type.to_pandas_dtype())) for each in schema]
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        table = pa.table(zeros, schema=schema)
        for _ in range(64):
            writer.write_table(table, row_group_size=rows)
    assert file.stat().st_size < 1 << 20
    from wattribute import archive

    with pq.ParquetFile(file) as parquet:
        decoded = archive._decoded_bytes(parquet.metadata, range(parquet.num_row_groups))
    assert decoded >= 64 * rows * 8 * 3  # what is compared with the memory that is free


def test_spans_that_point_outside_are_refused(seeds, tmp_path):
    import pyarrow.parquet as pq

    path = archived(seeds, tmp_path, lambda content: None)
    file = next((path / "spans").glob("*.parquet"))
    table = pq.read_table(file)
    at = table.column_names.index("frame")
    pq.write_table(table.set_column(at, "frame", [np.full(len(table), 10**6, np.int32)]), file)
    with pytest.raises(FormatError, match=r"spans of frames 1000000"):
        wattribute.attribute(wattribute.read(path))


def test_messages_have_no_control_characters(tmp_path):
    assert printable("a\x1b[31mb\rc\x9bd\u202ee\tf\n") == "a\ufffd[31mb\ufffdc\ufffdd\ufffde\tf\n"
    for error in (OptionError("\x1b]0;x\x07"), FormatError("\x1b[2J", "\x08"), WattributeError("\x00")):
        assert all(letter.isprintable() for letter in str(error))
    path = tmp_path / "\x1b[31mred.json"
    path.write_text("{")
    with pytest.raises(WattributeError) as raised:
        wattribute.read(path)
    assert "\x1b" not in str(raised.value)


def test_damage_is_the_same_every_time():
    draw = (random.Random("x"), random.Random("x"))
    assert fuzzing.damaged(b"abcdefgh" * 9, draw[0]) == fuzzing.damaged(b"abcdefgh" * 9, draw[1])
