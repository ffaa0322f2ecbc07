"""Every sample goes through the same four checks, every reader leaves the others' files alone."""

import shutil
from pathlib import Path

import pytest

import wattribute
from tests.readers.samples import SAMPLES, as_gzip, as_parquet, as_utf16, format_of, made, told
from wattribute import archive
from wattribute.plugins import readers

named = pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)


pytestmark = pytest.mark.usefixtures("utc")


@named
def test_golden_detected_and_archived_twice_the_same(sample, tmp_path):
    path = made(sample, tmp_path)
    unknown = tmp_path / "who knows"
    (shutil.copytree if path.is_dir() else shutil.copy)(path, unknown)
    recording = wattribute.read(unknown)
    assert recording.metadata["format"] == format_of(sample)
    assert told(recording) == Path(f"{sample}.golden").read_text(encoding="utf-8")
    wattribute.save(recording, tmp_path / "once.watt")
    once = wattribute.load(tmp_path / "once.watt")
    assert told(once) == told(recording)
    wattribute.save(once, tmp_path / "twice.watt")
    written = {p.relative_to(tmp_path / "once.watt"): p.read_bytes() for p in (tmp_path / "once.watt").rglob("*.*")}
    assert written == {
        p.relative_to(tmp_path / "twice.watt"): p.read_bytes() for p in (tmp_path / "twice.watt").rglob("*.*")
    }
    assert archive.load(tmp_path / "twice.watt").metadata == once.metadata


@named
def test_no_reader_takes_the_files_of_another(sample, tmp_path):
    path = made(sample, tmp_path)
    assert [name for name in readers.names() if readers.get(name).detects(path)] == [format_of(sample)]


@pytest.mark.parametrize("other", [as_gzip, as_utf16])
@pytest.mark.parametrize(
    "sample",
    [s for s in SAMPLES if s.suffix in (".json", ".csv", ".txt") and format_of(s) != "powermetrics"],
    ids=lambda s: s.name,
)
def test_compressed_and_in_the_encoding_of_powershell(sample, other, tmp_path):
    if other is as_utf16 and "\\ud800" in sample.read_text(encoding="utf-8"):
        pytest.skip("half a character has no UTF-16")
    assert told(wattribute.read(other(sample, tmp_path))) == told(wattribute.read(sample))


def test_tables_are_the_same_in_parquet(tmp_path):
    folder = next(sample for sample in SAMPLES if sample.name == "table-intervals")
    for file in folder.iterdir():
        as_parquet(file, tmp_path)
    as_csv, found = wattribute.read(folder), wattribute.read(tmp_path)
    assert told(found).replace("0:1000000.0", "0:1000000") == told(as_csv).replace("0:1000000.0", "0:1000000")
