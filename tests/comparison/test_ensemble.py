"""Ensembles: names, metadata, joined tables, statistics over runs, and runs that do not fit."""

import dataclasses

import numpy as np
import polars as pl
import pytest

import wattribute
from tests.comparison.made import MAIN_W, NAMES, OUTER_S, POWER_W, run, runs
from wattribute import Ensemble, WattributeError
from wattribute.comparison.paths import names
from wattribute.model import Frames, Recording, SpanTable
from wattribute.testing.recordings import spans


def test_two_copies_of_a_real_trace_have_a_run_column_and_equal_rows(shared):
    path = shared / "traces" / "simple-mi300"
    ensemble = Ensemble.read([path, path / "traces.otf2"], metadata=r"mi(?P<model>\d+)")
    found = ensemble.attribute(by=("device", "frame"))
    assert found.rows["run"].unique(maintain_order=True).to_list() == ["simple-mi300", "simple-mi300 #2"]
    assert found.rows["model"].to_list() == [300] * 4
    alone = wattribute.attribute(path).rows
    for name in found.parts:
        assert found.rows.filter(pl.col("run") == name).drop("run", "model").equals(alone)
    table = found.aggregate("frame")
    # heavy_kernel 1842.495723400 J in both: mean = median = min = max, no spread
    assert table["mean"].to_list() == pytest.approx([1842.495723400, 1119.269555645], rel=1e-9)
    assert table["std"].to_list() == [0, 0]
    assert table["runs"].to_list() == [2, 2]


def test_statistics_by_hand():
    found = Ensemble.of({name: run(spread=0, factor=factor) for name, factor in zip("abc", (1, 2, 4), strict=True)})
    table = found.attribute(by="frame").aggregate("frame")
    # dgemm: 0.2 s at 400 W = 80 J, times 1, 2, 4 → 80, 160, 320: mean 560/3, median 160, q1 120, q3 240, std of them
    row = table.row(by_predicate=pl.col("frame") == "dgemm", named=True)
    assert row["mean"] == pytest.approx(560 / 3, rel=1e-4)
    assert (row["min"], row["q1"], row["median"], row["q3"], row["max"]) == pytest.approx(
        (80, 120, 160, 240, 320), rel=1e-4
    )
    assert row["std"] == pytest.approx(np.std([80, 160, 320], ddof=1), rel=1e-4)


def test_a_run_without_a_frame_counts_as_zero_and_groups_keep_their_own_runs():
    lacking = run(1, spread=0)
    lacking = dataclasses.replace(
        lacking, frames=Frames.of([(n, "user", "function") for n in ("main", "dgemm", "copy", "other")])
    )
    ensemble = Ensemble.of({"a": run(0, spread=0), "b": lacking}, {"a": {"nodes": 1}, "b": {"nodes": 2}})
    found = ensemble.attribute(by="frame")
    waits = found.aggregate("frame").row(by_predicate=pl.col("frame") == "wait", named=True)
    assert waits["runs"] == 2
    assert waits["min"] == 0
    assert waits["mean"] == pytest.approx(POWER_W["wait"] * 0.05 / 2, rel=1e-3)
    by_nodes = found.aggregate(["nodes", "frame"])
    assert by_nodes["runs"].unique().to_list() == [1]
    assert by_nodes.filter((pl.col("nodes") == 2) & (pl.col("frame") == "wait"))["mean"].to_list() == [0]
    wide = found.pivot("frame")
    assert wide.columns == ["frame", "a", "b"]
    assert wide.row(by_predicate=pl.col("frame") == "other", named=True)["a"] == 0


def test_call_paths_are_one_across_runs_however_their_frames_are_numbered():
    ensemble = Ensemble.of({"a": run(0, spread=0), "b": run(0, spread=0, order=NAMES[::-1])})
    wide = ensemble.attribute(by="path").pivot("path")
    assert sorted(wide["path"].to_list()) == [["main"], ["main", "copy"], ["main", "dgemm"], ["main", "wait"]]
    assert wide["a"].to_list() == pytest.approx(wide["b"].to_list(), rel=1e-12)
    table = ensemble.attribute(by="path").aggregate("path")
    assert table["path"][0].to_list() == ["main", "dgemm"]
    assert table["runs"].to_list() == [2] * 4
    main = wide.row(by_predicate=pl.col("path").list.len() == 1, named=True)
    assert main["a"] == pytest.approx(MAIN_W * OUTER_S, rel=1e-6)


def test_by_run_alone_gives_a_row_per_run():
    rows = Ensemble.of(runs(0, 3)).attribute(by="run").rows
    assert rows["run"].to_list() == ["r0", "r1", "r2"]
    assert "device" not in rows.columns


def test_names_are_short_and_distinct(tmp_path):
    paths = [tmp_path / "a" / "x.watt", tmp_path / "b" / "x.watt", tmp_path / "c" / "traces.otf2", tmp_path / "c"]
    assert names(paths) == ["a/x", "b/x", "c", "c #2"]


def test_patterns_and_archives(tmp_path):
    for name, recording in runs(0, 3).items():
        wattribute.save(recording, tmp_path / f"{name}.watt")
    ensemble = Ensemble.read(f"{tmp_path}/r*.watt", metadata=lambda path: {"seed": int(path.stem[1:])})
    assert [run.name for run in ensemble.runs] == ["r0", "r1", "r2"]
    assert ensemble.attribute(by="frame").rows["seed"].unique().sort().to_list() == [0, 1, 2]
    with pytest.raises(WattributeError, match="matches this pattern"):
        Ensemble.read(f"{tmp_path}/z*.watt")
    with pytest.raises(WattributeError, match="at least one run"):
        Ensemble.read([])
    with pytest.raises(WattributeError, match="not a regular expression"):
        Ensemble.read(f"{tmp_path}/r*.watt", metadata="n(")
    mixed = Ensemble.read(f"{tmp_path}/r*.watt", metadata=r"r(?P<what>[01]|.)\.watt").attribute(by="frame")
    assert mixed.aggregate(["what", "frame"])["runs"].unique().to_list() == [1]


def test_a_run_that_cannot_be_read_or_used_is_left_out_and_told(tmp_path):
    wattribute.save(run(), tmp_path / "good.watt")
    (tmp_path / "bad.txt").write_text("nothing")
    wattribute.save(Recording(), tmp_path / "empty.watt")
    ensemble = Ensemble.read([tmp_path / "good.watt", tmp_path / "bad.txt", tmp_path / "empty.watt", tmp_path / "none"])
    found = ensemble.attribute(by="frame")
    assert list(found.parts) == ["good"]
    told = [problem.message for problem in found.problems if problem.kind == "run"]
    assert [message.split(" is left out: ")[0] for message in told] == ["bad", "none", "empty"]
    with pytest.raises(WattributeError, match=r"bad\.txt"):
        Ensemble.read(tmp_path / "bad.txt")


def test_typos_are_errors_not_lost_runs():
    ensemble = Ensemble.of(runs(0, 2))
    with pytest.raises(WattributeError, match="did you mean 'frame'"):
        ensemble.attribute(by="fram")
    with pytest.raises(WattributeError, match="did you mean 'even'"):
        ensemble.attribute(share="evn")
    with pytest.raises(WattributeError, match="did you mean 'frame'"):
        ensemble.attribute(by="frame").aggregate("frme")
    with pytest.raises(WattributeError, match="did you mean 'self_j'"):
        ensemble.attribute(by="frame").pivot("frame", values="selfj")
    with pytest.raises(WattributeError, match="name of a column"):
        Ensemble.of({"a": run()}, {"a": {"frame": 1}}).attribute()


def test_runs_with_other_metrics_are_kept_and_marked():
    other = run(2)
    signal = dataclasses.replace(other.signals[0], device="GPU 0")
    device = dataclasses.replace(other.devices[0], name="GPU 0")
    link = dataclasses.replace(other.topology[0], device="GPU 0")
    other = dataclasses.replace(other, signals=(signal,), devices=(device,), topology=(link,))
    found = Ensemble.of(runs(0, 2) | {"odd": other}).attribute(by="frame")
    assert "odd" in found.rows["run"].to_list()
    (told,) = [problem.message for problem in found.problems if problem.kind == "metrics"]
    assert told == "odd is metered unlike the others: lacks package 0 (J) and has GPU 0 (J)"


def test_mixed_units_are_kept_apart():
    hot = run(1)
    hot = dataclasses.replace(hot, signals=(dataclasses.replace(hot.signals[0], unit="B"),))
    found = Ensemble.of({"a": run(0), "b": hot}).attribute(by="frame", metric="energy")
    assert any("package 0 (B)" in problem.message for problem in found.problems)
    assert found.rows.filter(pl.col("run") == "b")["self_j"].null_count() == 4
    assert found.aggregate("frame")["max"].max() == pytest.approx(80, rel=0.2)


def test_a_run_without_spans_is_marked():
    silent = dataclasses.replace(run(1), spans=SpanTable({0: spans([])}))
    nobody = dataclasses.replace(run(2), spans=SpanTable({}))
    found = Ensemble.of({"a": run(0), "b": silent, "c": nobody}).attribute(by="frame")
    books = found.devices.row(by_predicate=pl.col("run") == "b", named=True)
    assert books["idle_j"] == books["measured_j"] > 0
    told = [problem.message for problem in found.problems if problem.kind in ("empty", "run")]
    assert told == [f"{name} has no spans: all of its energy is idle" for name in "bc"]
