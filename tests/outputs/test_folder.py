"""Tables of calls and metrics as CSV and Parquet."""

import polars as pl
import pytest

import wattribute
from tests.comparison.made import run, runs
from wattribute import Ensemble, WattributeError
from wattribute.outputs import recording_tables as tables
from wattribute.outputs.folder import write_folder
from wattribute.testing.recordings import small


def load(folder, name, format):
    return (pl.read_csv if format == "csv" else pl.read_parquet)(folder / f"{name}.{format}")


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_calls_and_metrics_of_a_real_trace(shared, tmp_path, format):
    attribution = wattribute.attribute(shared / "traces" / "simple-mi300")
    for repeats, readings in (("keep", 72_584), ("drop", 19_722)):  # 19,722 is what a known converter gives
        folder = tmp_path / repeats
        write_folder(attribution, str(folder), format, repeats)
        assert len(load(folder, "metrics", format)) == readings
        calls = load(folder, "calls", format)
        assert len(calls) == 40  # 38 of the thread, and the two kernels that the converter dropped
        assert len(calls.filter(pl.col("location") == "Master thread")) == 38
        heavy = calls.row(by_predicate=pl.col("frame").str.starts_with("heavy_kernel"), named=True)
        assert heavy["self_j"] == pytest.approx(1842.495723400, rel=1e-9)
        assert heavy["device"] == "GPU 0"
        assert load(folder, "attribution", format)["self_j"].sum() == pytest.approx(2961.765279, rel=1e-9)


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_an_ensemble_stands_below_each_other(tmp_path, format):
    write_folder(Ensemble.of(runs(0, 3)).attribute(by="path"), str(tmp_path / "x"), format)
    calls = load(tmp_path / "x", "calls", format)
    assert calls["run"].unique().sort().to_list() == ["r0", "r1", "r2"]
    assert len(calls) == 12
    rows = load(tmp_path / "x", "attribution", format)
    assert "main;dgemm" in rows["path"].to_list()
    # each call's own joules add up to the rows
    assert calls["self_j"].sum() == pytest.approx(rows["self_j"].sum(), rel=1e-12)


def test_counters_start_at_zero_and_keep_all_digits():
    found = pl.concat(list(tables.readings(small())))
    counter = found.filter(pl.col("signal") == 0)
    assert counter["value"].to_list() == [0, 4 / 3, 8 / 3]  # raw 2**53 + 1, + 5, + 9 at a scale of 1/3
    assert counter["time_ns"].to_list() == [0, 50_000_000, 100_000_000]


def test_an_existing_folder_is_never_touched_and_a_failed_one_leaves_nothing(tmp_path, monkeypatch):
    attribution = wattribute.attribute(run(0))
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine").write_text("x")
    with pytest.raises(WattributeError, match="exists already"):
        write_folder(attribution, str(tmp_path / "there"))
    monkeypatch.setattr(tables, "metrics", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(WattributeError, match="No space left"):
        write_folder(attribution, str(tmp_path / "new"))
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    assert (tmp_path / "there" / "mine").read_text() == "x"


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_name_that_is_not_utf_8_is_refused_in_a_line(tmp_path, format):
    found = wattribute.attribute(run())
    with pytest.raises(WattributeError, match="the name is not UTF-8"):
        write_folder(found, str(tmp_path / "\udcff"), format)


def test_typos(tmp_path):
    attribution = wattribute.attribute(run(0))
    with pytest.raises(WattributeError, match="did you mean 'drop'"):
        write_folder(attribution, str(tmp_path / "x"), repeats="dropp")
    with pytest.raises(WattributeError, match="did you mean 'csv'"):
        write_folder(attribution, str(tmp_path / "x"), "cvs")
    assert list(tmp_path.iterdir()) == []
