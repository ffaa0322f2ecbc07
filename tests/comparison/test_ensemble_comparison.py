"""``wattribute.compare`` from recordings to the verdict."""

import dataclasses
import re

import polars as pl
import pytest

import wattribute
from tests.comparison.made import IDLE_S, IDLE_W, NAMES, POWER_W, run, runs
from wattribute import Ensemble, WattributeError
from wattribute.model import Frames, Problem
from wattribute.sessions.summary import summarise
from wattribute.testing.recordings import RecordingBuilder


def test_a_known_change_of_one_frame_is_found():
    found = wattribute.compare(Ensemble.of(runs(0, 8)), Ensemble.of(runs(100, 8, 0.9)))
    top = found.rows.row(0, named=True)
    assert top["frame"] == "dgemm"
    assert top["changed"] is True
    assert top["change_low"] < -0.1 < top["change_high"]
    assert [row["frame"] for row in found.rows.to_dicts() if row["changed"]] == ["dgemm"]
    assert "dgemm" in found.verdict
    assert "shorter" in top["verdict"]
    # keys and idle add up to the whole
    assert found.rows["energy_a_j"].sum() == pytest.approx(found.whole["energy_a_j"], rel=1e-9)
    assert found.rows["delta_j"].sum() == pytest.approx(found.whole["delta_j"], rel=1e-9)


def test_a_single_run_by_hand():
    a, b = (Ensemble.of({"x": run(spread=0, factor=factor)}) for factor in (1, 2))
    found = wattribute.compare(a, b)
    # 0.2 s more of dgemm at 400 W: 80 J, all of it time; power did not change
    dgemm = found.rows.row(by_predicate=pl.col("frame") == "dgemm", named=True)
    assert dgemm["delta_j"] == pytest.approx(80, rel=1e-3)
    assert dgemm["time_part_j"] == pytest.approx(80, rel=1e-3)
    assert dgemm["power_part_j"] == pytest.approx(0, abs=0.1)
    assert dgemm["changed"] is True
    assert found.rows.row(by_predicate=pl.col("frame") == "copy", named=True)["changed"] is False
    idle = found.rows.row(by_predicate=pl.col("frame") == "(idle)", named=True)
    assert idle["energy_a_j"] == pytest.approx(2 * IDLE_W * IDLE_S, rel=1e-3)
    assert found.whole["time_b_s"] - found.whole["time_a_s"] == pytest.approx(0.2, rel=1e-3)
    assert found.exceeds(0.5)
    assert not found.exceeds(0.9)


@pytest.mark.parametrize("by", ["path", "process", "device", "device,frame", "frame,path"])
def test_other_keys_add_up_too(by):
    found = wattribute.compare(Ensemble.of(runs(0, 2)), Ensemble.of(runs(10, 2)), by=by)
    assert found.rows["energy_b_j"].sum() == pytest.approx(found.whole["energy_b_j"], rel=1e-9)
    if by == "path":
        assert "main → dgemm" in found.rows["path"].to_list()


def test_power_is_told_from_time():
    dimmed = {}
    for name, one in runs(50, 4, spread=0.001).items():
        signal = dataclasses.replace(one.signals[0], values=one.signals[0].values * 9 // 10)
        dimmed[name] = dataclasses.replace(one, signals=(signal,))
    found = wattribute.compare(Ensemble.of(runs(0, 4, spread=0.001)), Ensemble.of(dimmed))
    dgemm = found.rows.row(by_predicate=pl.col("frame") == "dgemm", named=True)
    assert dgemm["verdict"] == "less, lower power"
    assert dgemm["power_part_j"] == pytest.approx(-0.1 * POWER_W["dgemm"] * 0.2, rel=0.02)


def test_bad_input_is_told():
    a = Ensemble.of(runs(0, 2))
    with pytest.raises(WattributeError, match="not a key"):
        wattribute.compare(a, a, by="run,frame")
    with pytest.raises(WattributeError, match="did you mean 'frame'"):
        wattribute.compare(a, a, by="frmae")
    with pytest.raises(WattributeError, match="one view of each device"):
        wattribute.compare(a, a, of=["host", "kernels,host"])
    one = run()
    bytes_ = Ensemble.of({"b": dataclasses.replace(one, signals=(dataclasses.replace(one.signals[0], unit="B"),))})
    with pytest.raises(WattributeError, match="needs joules, not B"):
        wattribute.compare(a, bytes_, metric="energy")


def test_sides_that_are_not_metered_alike_are_compared_by_what_both_have():
    other = run(2)
    more = dataclasses.replace(
        other,
        signals=(*other.signals, dataclasses.replace(other.signals[0], name="dram/energy", device="dram 0")),
        devices=(*other.devices, dataclasses.replace(other.devices[0], name="dram 0", kind="dram")),
    )
    found = wattribute.compare(Ensemble.of(runs(0, 2)), Ensemble.of({"x": more, "y": run(3)}))
    told = [problem.message for problem in found.problems]
    assert told == ["not metered alike: compares package 0; leaves out dram 0 of B"]
    alike = wattribute.compare(Ensemble.of(runs(0, 2)), Ensemble.of({"x": other, "y": run(3)}))
    assert found.whole == alike.whole
    only = dataclasses.replace(more, signals=more.signals[1:], devices=more.devices[1:])
    with pytest.raises(WattributeError, match=r"no metered device in common \(package 0 of A and dram 0 of B\)"):
        wattribute.compare(Ensemble.of(runs(0, 1)), Ensemble.of({"x": only}))


def test_equal_notes_are_said_once():
    cut = {f"r{i}": dataclasses.replace(run(i), noticed=(Problem("truncated", "1.evt ends early"),)) for i in range(3)}
    found = wattribute.compare(Ensemble.of(cut), Ensemble.of(cut))
    assert [problem.message for problem in found.problems] == ["both groups: 1.evt ends early (6 runs)"]


def test_a_limit_is_passed_or_failed_in_words():
    more = wattribute.compare(Ensemble.of(runs(0, 3)), Ensemble.of(runs(3, 3, factor=1.3)))
    assert more.check(0.05)[0] is False
    assert re.fullmatch(r"failed: B against A: \+\d+\.\d % energy, more than the 5 % allowed", more.check(0.05)[1])
    assert more.check(0.5)[1].endswith(" energy, 50 % allowed")
    single = wattribute.compare(Ensemble.of(runs(0, 1)), Ensemble.of(runs(1, 1)))
    assert single.check(0.5)[0] is True
    assert single.check(0.5)[1].endswith("a single run shows no noise: repeat both, or use --strict")
    assert single.check(0.5, strict=True)[0] is False


def test_damaged_and_estimated_runs_are_marked():
    cut = dataclasses.replace(run(2), noticed=(Problem("truncated", "1.evt ends early"), Problem("stale", "as always")))
    guess = run(3)
    guess = dataclasses.replace(guess, signals=(dataclasses.replace(guess.signals[0], estimated=True),))
    found = wattribute.compare(Ensemble.of({"x": cut}), Ensemble.of({"y": guess}))
    told = [problem.message for problem in found.problems]
    assert told[0] == "group A: x: 1.evt ends early"
    assert told[1].startswith("package 0: estimated by a model")
    assert len(told) == 2


def test_a_recorded_command_is_judged_by_its_life_alone():
    sides = []
    for name, factor in (("./old --fast", 1.0), ("./new", 1.5)):
        made = run(0, factor, spread=0)
        spans = made.spans.spans(0)
        told = {"start_ticks": int(spans.start[0]), "end_ticks": int(spans.end[0])}
        named = Frames.of([(name, "command", "function"), *((n, "user", "function") for n in NAMES[1:])])
        sides.append(Ensemble.of({"x": dataclasses.replace(made, frames=named, metadata={"run": told})}))
    found = wattribute.compare(*sides)
    assert "(idle)" not in found.rows["frame"].to_list()
    assert "(command)" in found.rows["frame"].to_list()
    # 0.01 s at 100 W, 0.2 s at 400 W, 0.1 s at 150 W, 0.05 s at 60 W = 99 J in 0.36 s; then 40 J and 0.1 s more
    assert found.whole["energy_a_j"] == pytest.approx(99, rel=1e-3)
    assert found.whole["delta_j"] == pytest.approx(40, rel=1e-3)
    assert (found.whole["time_a_s"], found.whole["time_b_s"]) == pytest.approx((0.36, 0.46))
    assert found.rows["energy_b_j"].sum() == pytest.approx(found.whole["energy_b_j"], rel=1e-9)


def test_the_total_of_a_run_is_the_one_that_run_prints():
    # 50 W for 10 s, of which a region ran for 6 s; the command lived from 1 s to 9 s
    made = RecordingBuilder(name="x").thread("solve 2..8").counter("package 0", [0, 500], every=10).recording()
    ticks = made.clock.ticks_per_s
    made = dataclasses.replace(made, metadata={"run": {"start_ticks": ticks, "end_ticks": 9 * ticks}})
    found = wattribute.compare(made, made)
    assert found.whole["energy_a_j"] == pytest.approx(400)
    assert summarise(made, carbon=False).energy_j == pytest.approx(400)
    assert dict(found.rows.select("frame", "energy_a_j").rows()) == {"solve": pytest.approx(300), "(idle)": 100}


def test_recordings_are_compared_like_their_files(tmp_path):
    paths = [tmp_path / f"{name}.watt" for name in "ab"]
    for path, power_w in zip(paths, (10, 12), strict=True):
        made = RecordingBuilder(name=path.stem).thread("solve 0..10")
        wattribute.save(made.counter("package 0", [0, 10 * power_w], every=10).recording(), path)
    recordings = [wattribute.read(path) for path in paths]
    assert wattribute.compare(*recordings).rows.equals(wattribute.compare(*paths).rows)
    assert wattribute.compare(recordings[0], paths[1]).rows.equals(wattribute.compare(*paths).rows)
