"""Stack formats: speedscope, folded, hatchet, Extra-P; each read by the program it is for where that is here."""

import dataclasses
import json
import os
import shutil
import subprocess
import tarfile

import polars as pl
import pytest

import wattribute
from tests.comparison.made import IDLE_S, IDLE_W, run, runs
from wattribute import Ensemble, WattributeError
from wattribute.model import Frames
from wattribute.outputs import extrap, folded, speedscope
from wattribute.outputs import hatchet as graphframe
from wattribute.outputs.stacks import stacks, trees
from wattribute.plugins import outputs


def peers(program, *arguments):
    """Run a program with a Python that has the other tools (their NumPy is older than ours), or skip."""
    python = os.environ.get("WATTRIBUTE_PEERS")
    if not python:
        pytest.skip("WATTRIBUTE_PEERS names no Python that has hatchet and extrap")
    done = subprocess.run([python, "-W", "ignore", "-c", program, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def attribution():
    return wattribute.attribute(run(4))


def test_stacks_add_up_to_what_was_measured(attribution):
    found = stacks(attribution)
    books = attribution.devices.row(0, named=True)
    assert sum(stack.self_j for stack in found) == pytest.approx(books["measured_j"], rel=1e-12)
    assert found[-1].frames == ("(idle)",)
    assert found[-1].self_j == pytest.approx(2 * IDLE_W * IDLE_S, rel=1e-2)
    (tree,) = trees(found)
    assert tree.total_j == pytest.approx(books["measured_j"], rel=1e-12)
    assert sorted(tree.children) == ["(idle)", "main"]
    assert sorted(tree.children["main"].children) == ["copy", "dgemm", "wait"]


def test_the_options_of_the_attribution_are_kept():
    whole, part = (wattribute.attribute(run(4), begin=begin) for begin in (None, 0.1))
    measured = [sum(stack.self_j for stack in stacks(one)) for one in (whole, part)]
    assert measured == pytest.approx([one.devices["measured_j"][0] for one in (whole, part)])
    assert measured[1] < measured[0]


def test_speedscope(attribution, tmp_path):
    speedscope.write(attribution, str(tmp_path / "x.json"))
    document = json.loads((tmp_path / "x.json").read_text())
    (profile,) = document["profiles"]
    frames = [frame["name"] for frame in document["shared"]["frames"]]
    weights = {
        tuple(frames[number] for number in sample): weight
        for sample, weight in zip(profile["samples"], profile["weights"], strict=True)
    }
    rows = wattribute.attribute(run(4), by="path").rows
    for row in rows.to_dicts():
        assert weights[tuple(row["path"])] == pytest.approx(1000 * row["self_j"])
    assert profile["endValue"] == pytest.approx(1000 * attribution.devices["measured_j"][0])
    assert "mJ" in profile["name"]


def test_speedscope_passes_its_own_schema(attribution, tmp_path):
    jsonschema = pytest.importorskip("jsonschema")
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed: speedscope's schema comes from its package")
    command = [npm, "pack", "speedscope", "--silent", "--fetch-retries=0", "--fetch-timeout=20000"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"npm cannot fetch speedscope here: {done.stderr[-200:]}")
    with tarfile.open(next(tmp_path.glob("speedscope-*.tgz"))) as package:
        schema = json.load(package.extractfile("package/dist/release/file-format-schema.json"))
    document = speedscope.profile(attribution)
    jsonschema.validate(document, schema)
    document["profiles"][0]["unit"] = "joules"  # that the schema would notice
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema)


def test_folded_lines_have_clean_names_and_whole_microjoules(tmp_path):
    odd = run(4, spread=0)
    odd = dataclasses.replace(
        odd, frames=Frames.of([(n, "user", "function") for n in ("a;b", "x\ny", "copy 1", "wait")])
    )
    folded.write(wattribute.attribute(odd), str(tmp_path / "x"))
    lines = dict(line.rsplit(" ", 1) for line in (tmp_path / "x").read_text().splitlines())
    assert sorted(lines) == [
        *("package 0;(idle)", "package 0;a:b", "package 0;a:b;copy 1", "package 0;a:b;wait", "package 0;a:b;x y"),
    ]
    assert int(lines["package 0;a:b;x y"]) == pytest.approx(80e6, rel=1e-4)  # 0.2 s at 400 W


HATCHET = """
import json, sys, hatchet
gf = hatchet.GraphFrame.from_literal(json.load(open(sys.argv[1])))
roots = gf.dataframe.loc[gf.graph.roots]
frame = gf.dataframe
print(json.dumps({
    "inclusive": float(roots["energy_j (inc)"].sum()), "exclusive": float(frame["energy_j"].sum()),
    "nodes": len(frame), "dgemm": float(frame[frame["name"] == "dgemm"]["energy_j"].iloc[0]),
    "calls": int(frame["calls"].sum()), "inc": gf.inc_metrics, "exc": gf.exc_metrics,
}))
"""


def test_hatchet_loads_it_and_its_inclusive_sum_is_ours(attribution, tmp_path):
    outputs.get("hatchet").write(attribution, str(tmp_path / "x.json"))
    found = peers(HATCHET, str(tmp_path / "x.json"))
    measured = attribution.devices["measured_j"][0]
    assert found["inclusive"] == pytest.approx(measured, rel=1e-12)
    assert found["exclusive"] == pytest.approx(measured, rel=1e-12)
    assert found["nodes"] == 6  # the device, idle, main and its three
    rows = wattribute.attribute(run(4), by="frame").rows
    assert found["dgemm"] == rows.row(by_predicate=pl.col("frame") == "dgemm", named=True)["self_j"]
    assert found["calls"] == 4


def test_graphframe_literal(attribution):
    (device,) = graphframe.literal(attribution)
    assert device["frame"] == {"name": "package 0", "type": "device"}
    names = {child["frame"]["name"]: child for child in device["children"]}
    assert names["main"]["metrics"]["energy_j (inc)"] + names["(idle)"]["metrics"]["energy_j"] == pytest.approx(
        attribution.devices["measured_j"][0]
    )
    assert names["main"]["metrics"]["calls"] == 1


EXTRAP = """
import json, sys
from extrap.fileio.file_reader.json_file_reader import JsonFileReader
from extrap.modelers.model_generator import ModelGenerator
experiment = JsonFileReader().read_experiment(sys.argv[1])
ModelGenerator(experiment, use_median=False).model_all()
models = experiment.modelers[0].models.items()
models = {path.name: str(m.hypothesis.function) for (path, metric), m in models if metric.name == "energy_j"}
print(json.dumps({
    "parameters": [p.name for p in experiment.parameters], "points": len(experiment.coordinates),
    "callpaths": sorted(c.name for c in experiment.callpaths), "metrics": sorted(m.name for m in experiment.metrics),
    "model": models["main->dgemm"],
}))
"""


def scaled():
    """Five sizes, two repetitions each; dgemm takes time in proportion to the size."""
    made = {f"n{n}-{i}": run(10 * n + i, factor=n, spread=0.002) for n in (1, 2, 4, 8, 16) for i in (0, 1)}
    return Ensemble.of(made, {name: {"n": int(name[1:].split("-")[0])} for name in made}).attribute(by="path")


def test_extra_p_reads_it_and_finds_the_law(tmp_path):
    extrap.write(scaled(), str(tmp_path / "x.json"))
    found = peers(EXTRAP, str(tmp_path / "x.json"))
    assert found["parameters"] == ["n"]
    assert found["points"] == 5
    assert found["metrics"] == ["energy_j", "time_s"]
    assert "main->dgemm" in found["callpaths"]
    assert found["model"].endswith("p^(1)") or "* n^(1)" in found["model"], found["model"]


def test_extra_p_measurements():
    document = extrap.measurements(scaled())
    dgemm = document["measurements"]["main->dgemm"]["energy_j"]
    assert [one["point"] for one in dgemm] == [[1], [2], [4], [8], [16]]
    assert [len(one["values"]) for one in dgemm] == [2] * 5
    assert dgemm[4]["values"] == pytest.approx([16 * 80] * 2, rel=0.02)
    with pytest.raises(WattributeError, match="several runs"):
        extrap.measurements(wattribute.attribute(run(0)))
    with pytest.raises(WattributeError, match="same processes"):
        extrap.measurements(Ensemble.of(runs(0, 2)).attribute())
    with pytest.raises(WattributeError, match="did you mean 'n'"):
        extrap.measurements(scaled(), parameters=["nn"])
    worded = Ensemble.of(runs(0, 2), {"r0": {"size": "S"}, "r1": {"size": "L"}}).attribute()
    with pytest.raises(WattributeError, match="not a number"):
        extrap.measurements(worded, parameters=["size"])


@pytest.mark.parametrize("name", ["speedscope", "folded", "hatchet"])
def test_what_shows_one_run_refuses_many(name, tmp_path):
    with pytest.raises(WattributeError, match="one run"):
        wattribute.write(Ensemble.of(runs(0, 2)).attribute(), tmp_path / "x", name)


@pytest.mark.parametrize("name", ["speedscope", "folded", "hatchet"])
def test_what_is_weighed_in_joules_refuses_other_units(name, tmp_path):
    one = run(0)
    bytes_ = dataclasses.replace(one, signals=(dataclasses.replace(one.signals[0], unit="B"),))
    with pytest.raises(WattributeError, match="joules, not B"):
        outputs.get(name).write(wattribute.attribute(bytes_, metric="energy"), str(tmp_path / "x"))
