"""Every sample goes through the contract of readers; compressed, in UTF-16 and as Parquet it is the same."""

import pytest

import wattribute
from tests.readers.samples import SAMPLES, as_gzip, as_parquet, as_utf16, format_of, made
from wattribute.testing.contracts import ReaderContract
from wattribute.testing.recordings import as_text

pytestmark = pytest.mark.usefixtures("utc")


class TestReaders(ReaderContract):
    samples = SAMPLES

    def path(self, sample, folder):
        return made(sample, folder)

    def reader(self, sample):
        return format_of(sample)


@pytest.mark.parametrize("other", [as_gzip, as_utf16])
@pytest.mark.parametrize(
    "sample",
    [s for s in SAMPLES if s.suffix in (".json", ".csv", ".txt") and format_of(s) != "powermetrics"],
    ids=lambda s: s.name,
)
def test_compressed_and_in_the_encoding_of_powershell(sample, other, tmp_path):
    if other is as_utf16 and "\\ud800" in sample.read_text(encoding="utf-8"):
        pytest.skip("half a character has no UTF-16")
    assert as_text(wattribute.read(other(sample, tmp_path))) == as_text(wattribute.read(sample))


def test_tables_are_the_same_in_parquet(tmp_path):
    folder = next(sample for sample in SAMPLES if sample.name == "table-intervals")
    for file in folder.iterdir():
        as_parquet(file, tmp_path)
    as_csv, found = wattribute.read(folder), wattribute.read(tmp_path)
    assert as_text(found).replace("0:1000000.0", "0:1000000") == as_text(as_csv).replace("0:1000000.0", "0:1000000")
