"""The journal: what goes in comes out, a cut loses only the cut record, a full disk loses nothing."""

import resource
import signal
import struct
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattribute.errors import FormatError
from wattribute.journal import file as journal
from wattribute.model import Device
from wattribute.plugins import Channel
from wattribute.recorders.sampler import plain

CHANNELS = [
    Channel("energy", "counter", "J", Device("GPU 0", "gpu")),
    Channel("power", "gauge", "W", Device("GPU 0", "gpu"), whole=False),
]
ROW = struct.Struct("<qqqd")


def write(path, rows, events=()):
    book = journal.Journal(path)
    book.about({"meters": [{"name": "m", "channels": [plain(c) for c in CHANNELS]}]}, [CHANNELS])
    for row in rows:
        book.readings(0, row)
    for event in events:
        book.event(event)
    book.flush()
    book.close()
    return path.read_bytes()


int64 = st.integers(-(2**63) + 1, 2**63 - 1)
reading = st.tuples(int64, st.none() | int64)
double = st.tuples(int64, st.none() | st.floats(allow_nan=False))


@given(rows=st.lists(st.tuples(reading, double), max_size=20), part=st.floats(0, 1))
def test_everything_up_to_a_cut_comes_back(tmp_path_factory, rows, part):
    path = tmp_path_factory.mktemp("journal") / "journal"
    data = write(path, rows, [{"end": 5}])
    whole = journal.parse(data, path)
    expected = [
        ROW.pack(*(v for at, x in row for v in ((journal.NO_READING, 0) if x is None else (at, x)))) for row in rows
    ]
    assert whole.readings == [expected]
    assert whole.events == [{"end": 5}]
    assert not whole.cut
    sizes = [9 + 2 + ROW.size] * len(rows) + [9 + len('{"end": 5}')]
    first = len(data) - sum(sizes)  # where the record that says what is recorded ends
    ends = [first + sum(sizes[:i]) for i in range(len(sizes) + 1)]
    cut = int(part * len(data))
    if cut < first:
        with pytest.raises(FormatError):
            journal.parse(data[:cut], path)
        return
    kept = journal.parse(data[:cut], path)
    assert kept.readings[0] == expected[: sum(end <= cut for end in ends[1:])]
    assert kept.cut == (cut not in ends)


@given(at=st.integers(0, 10**6), to=st.integers(0, 255))
def test_a_changed_byte_never_gives_wrong_readings(tmp_path_factory, at, to):
    path = tmp_path_factory.mktemp("journal") / "journal"
    data = bytearray(write(path, [((1, 2), (3, 4.0))] * 5))
    at %= len(data)
    changed = data[at] != to
    data[at] = to
    try:
        content = journal.parse(bytes(data), path)
    except FormatError:
        return
    assert all(row == ROW.pack(1, 2, 3, 4.0) for row in content.readings[0])
    assert not changed or content.cut or len(content.readings[0]) == 5


def test_a_value_that_does_not_fit_is_no_reading(tmp_path):
    data = write(tmp_path / "journal", [((1, 2**64 - 1), (1, 1.0))])
    (row,) = journal.parse(data, tmp_path).readings[0]
    assert ROW.unpack(row)[0] == journal.NO_READING


@pytest.mark.parametrize("data", [b"", b"PAR1", journal.MAGIC, journal.MAGIC + b"\0" * 50])
def test_what_is_no_journal_is_refused(tmp_path, data):
    with pytest.raises(FormatError, match=r"journal|cut"):
        journal.parse(data, tmp_path / "journal")


def test_a_second_writer_does_not_touch_the_first_ones_file(tmp_path):
    write(tmp_path / "journal", [])
    with pytest.raises(FileExistsError):
        journal.Journal(tmp_path / "journal")


def test_a_full_disk_keeps_what_is_not_written(tmp_path):
    code = f"""
import resource, sys
from pathlib import Path
from tests.journal.test_file import CHANNELS, plain
from wattribute.journal import file as journal
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
book = journal.Journal(Path({str(tmp_path / "journal")!r}))
book.about({{"meters": [{{"name": "m", "channels": [plain(c) for c in CHANNELS]}}]}}, [CHANNELS])
for i in range(100):
    book.readings(0, [(i, i), (i, 1.0)])
    book.flush()
assert book.failure, "the limit did not bite"
sys.stdout.buffer.write(book.unwritten())
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    written = (tmp_path / "journal").read_bytes()
    assert len(written) == 1000
    assert len(journal.parse(written + run.stdout, tmp_path).readings[0]) == 100
    assert signal.getsignal(signal.SIGXFSZ) == signal.SIG_IGN  # Python's choice, on which this rests
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
