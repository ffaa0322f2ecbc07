"""The archive: an exact round trip, a partial one that says so, and clear errors."""

import dataclasses
import json
import os
import resource
import shutil
import signal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattribute import archive, errors, read
from wattribute.model import Frames, Recording, Signal, SpanTable
from wattribute.testing.recordings import small, spans


def same(a, b) -> bool:
    """Equal to the last bit, NaN equal to itself."""
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    if dataclasses.is_dataclass(a):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a))
    if isinstance(a, tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return a == b


def assert_same(a: Recording, b: Recording) -> None:
    for f in dataclasses.fields(Recording):
        if f.name != "spans":
            assert same(getattr(a, f.name), getattr(b, f.name)), f.name
    for location in range(len(a.locations)):
        assert same(a.spans.spans(location), b.spans.spans(location))


def test_round_trip_is_exact_and_the_second_archive_identical(tmp_path):
    archive.save(small(), tmp_path / "a.watt")
    loaded = read(tmp_path / "a.watt")
    assert_same(small(), loaded)
    archive.save(loaded, tmp_path / "b.watt")
    for file in (tmp_path / "a.watt").rglob("*"):
        if file.is_file():
            assert file.read_bytes() == (tmp_path / "b.watt" / file.relative_to(tmp_path / "a.watt")).read_bytes()


@given(
    names=st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=5),
    times=st.lists(st.integers(-(2**62), 2**62), max_size=20),
    data=st.data(),
)
def test_any_names_and_readings_survive(tmp_path_factory, names, times, data):
    values = data.draw(st.lists(st.integers(0, 2**64 - 1), min_size=len(times), max_size=len(times)))
    recording = Recording(
        frames=Frames.of([(name,) for name in names]),
        signals=(Signal(names[0], "counter", "J", np.array(times, np.int64), np.array(values, np.uint64)),),
    )
    path = tmp_path_factory.mktemp("any") / "x.watt"
    archive.save(recording, path)
    assert_same(recording, archive.load(path))


def test_an_existing_folder_is_never_overwritten(tmp_path):
    archive.save(small(), tmp_path / "a.watt")
    with pytest.raises(errors.OutputError, match="exists already"):
        archive.save(small(), tmp_path / "a.watt")


def test_an_interrupted_save_leaves_nothing_in_the_way(tmp_path):
    def interrupt(done, whole):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        archive.save(small(), tmp_path / "a.watt", progress=interrupt)
    archive.save(small(), tmp_path / "a.watt")


def test_a_killed_writer_leaves_a_partial_archive_that_still_loads(tmp_path):
    path = tmp_path / "a.watt"
    archive.save(small(), path)
    state = json.loads((path / archive.JSON).read_text())
    (path / archive.JSON).write_text(json.dumps(state | {"state": "partial"}))
    cut = path / "spans" / "1.parquet"
    cut.write_bytes(cut.read_bytes()[:-20])
    (path / "nodes.parquet").unlink()
    loaded = archive.load(path)
    assert len(loaded.spans.spans(0)) == 4
    assert len(loaded.spans.spans(1)) == 0
    messages = [p.message for p in loaded.problems if p.kind == "partial"]
    assert any("archive is partial" in m for m in messages)
    assert any("1.parquet" in m for m in messages)
    assert any("nodes.parquet: is missing" in m for m in messages)


@pytest.mark.parametrize("table", ["frames", "processes", "locations"])
def test_a_writer_stopped_before_the_tables_leaves_one_line(tmp_path, table):
    archive.save(small(), tmp_path / "a.watt")
    (tmp_path / "a.watt" / f"{table}.parquet").unlink()
    with pytest.raises(errors.FormatError, match=rf"{table}.parquet: is missing.*make it again"):
        read(tmp_path / "a.watt")


def test_a_full_disk_is_said_and_leaves_a_partial_archive(tmp_path):
    many = spans([(i, i + 1, 0, -1) for i in np.random.default_rng(1).integers(0, 2**40, 100_000)])
    recording = dataclasses.replace(small(), spans=SpanTable({0: many}))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(errors.OutputError, match="kept and marked partial"):
            archive.save(recording, tmp_path / "a.watt")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, old)
    assert any(p.kind == "partial" for p in archive.load(tmp_path / "a.watt").problems)


def test_what_is_no_archive_is_said_in_one_line(tmp_path):
    with pytest.raises(errors.NotFoundError, match="not an archive"):
        archive.load(tmp_path)
    path = tmp_path / "a.watt"
    archive.save(small(), path)
    for content, error, match in (
        ("{", errors.FormatError, "not valid JSON"),
        ("[]", errors.FormatError, "is not a wattribute-recording"),
        ('{"format": "wattribute-recording", "version": 99}', errors.UnsupportedError, "newer wattribute"),
        ('{"format": "wattribute-recording", "version": 1}', errors.FormatError, "lacks clock"),
    ):
        (path / archive.JSON).write_text(content)
        with pytest.raises(error, match=match):
            archive.load(path)


def test_scan_gives_lazy_tables(tmp_path):
    archive.save(small(), tmp_path / "a.watt")
    tables = archive.scan(tmp_path / "a.watt")
    assert tables["spans"].collect().height == 7
    assert tables["readings"].collect().height == 6
    assert tables["frames"].collect()["name"].to_list() == ["main", "MPI_Wait", "kernel"]
    assert tables["signals"].collect()["name"].to_list() == ["energy", "power", "huge", "nothing"]


def test_selection_of_metrics(tmp_path):
    archive.save(small(), tmp_path / "a.watt")
    chosen = read(tmp_path / "a.watt", metric="POW")
    assert [s.name for s in chosen.signals] == ["power"]
    with pytest.raises(errors.OptionError, match="not a regular expression"):
        read(tmp_path / "a.watt", metric="(")
    with pytest.raises(errors.OptionError, match="unknown option 'process'"):
        read(tmp_path / "a.watt", process="rank 1")
    shutil.rmtree(tmp_path / "a.watt")
    with pytest.raises(errors.NotFoundError, match="no such file"):
        read(tmp_path / "a.watt")


def test_a_lost_file_of_spans_is_named(tmp_path):
    path = tmp_path / "x.watt"
    archive.save(small(), path)
    lost = min((path / "spans").iterdir())
    lost.unlink()
    problem = next(one for one in archive.load(path).problems if "is missing" in one.message)
    assert (problem.message, problem.location) == (f"{lost}: is missing", int(lost.stem))


@pytest.mark.parametrize("begin", ["", '{"format": "wattribute-recording", '])
def test_a_header_with_a_hole_of_terabytes_is_refused_before_it_is_read(tmp_path, begin):
    (tmp_path / "x.watt").mkdir()
    file = tmp_path / "x.watt" / "wattribute.json"
    file.write_text(begin)
    os.truncate(file, 1 << 42)
    with pytest.raises(errors.FormatError, match="of memory" if begin else "is not a wattribute-recording"):
        archive.load(tmp_path / "x.watt")


def test_a_damaged_piece_of_many_readings_is_an_error_when_it_is_looked_at(tmp_path, monkeypatch):
    archive.save(small(), tmp_path / "x.watt")
    monkeypatch.setattr(archive, "MANY_BYTES", 0)
    stored = next(one for one in archive.load(tmp_path / "x.watt").signals if len(one))
    file = next(file for file in (tmp_path / "x.watt" / "readings").iterdir() if file.stem == str(stored.dtype))
    data = bytearray(file.read_bytes())
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    data[4:footer] = b"\xff" * (footer - 4)
    file.write_bytes(data)
    with pytest.raises(errors.FormatError, match=file.name):
        assert len(stored.times) == len(stored.values)


def test_readings_that_do_not_fit_into_memory_are_damage(tmp_path):
    """A bomb: few bytes in the file, and more rows than any machine can hold."""
    columns = archive.ParquetColumns(tmp_path / "float64.parquet", (0,), 1 << 45, np.dtype(np.float64), {})
    with pytest.raises(errors.FormatError, match="GiB of memory"):
        columns.times()
