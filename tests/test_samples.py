"""The samples of the package are what ``tools/make_samples.py`` writes, and hold the energy that it put in."""

import subprocess
import sys

import pytest

import wattribute
from tests.conftest import ROOT
from wattribute import samples
from wattribute.errors import OptionError, OutputError


def files(folder):
    return {
        path.relative_to(folder): path.read_bytes()
        for name in samples.SAMPLES
        for path in ([folder / name] if (folder / name).is_file() else sorted((folder / name).rglob("*")))
        if path.is_file()
    }


def test_the_samples_are_what_the_tool_writes(tmp_path):
    code = "import sys, pathlib; from tools.make_samples import main; main(pathlib.Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, check=True)
    made, shipped = files(tmp_path), files(samples.FOLDER)
    assert [*made] == [*shipped]
    # Parquet carries the version of its writer: compare what the recordings say
    for name in (path for path in made if path.parts[0] != "run.watt"):
        assert made[name] == shipped[name], f"{name}: run python tools/make_samples.py"
    old, new = (wattribute.attribute(folder / "run.watt").rows for folder in (samples.FOLDER, tmp_path))
    assert old.equals(new)


def test_they_are_small():
    assert sum(map(len, files(samples.FOLDER).values())) < 300_000


def test_the_run_holds_the_energy_that_was_put_in():
    """2 s × 48 W, 6.5 s × 118 W, 1.5 s × 83 W of the package; its counter wraps on the way."""
    answer = wattribute.attribute(samples.path("run.watt"))
    used = {(row["device"], row["frame"]): row["self_j"] for row in answer.rows.to_dicts()}
    assert used["package 0", "load"] == pytest.approx(96.0)
    assert used["package 0", "train"] == pytest.approx(767.0)
    assert used["package 0", "evaluate"] == pytest.approx(124.5)
    assert used["dram 0", "train"] == pytest.approx(91.0)


def test_the_ranges_of_the_profile_contain_the_truth():
    """8 steps × (640 − 3) ms at 290 W and so on; the log sees means over 100 ms."""
    answer = wattribute.attribute(samples.path("pytorch.json.gz"), signals=[samples.path("gpu.csv")])
    rows = {row["frame"]: row for row in answer.rows.to_dicts()}
    for kernel, seconds, watts in (
        ("ampere_sgemm_128x64_nt", 8 * 0.6397, 290),
        ("ampere_sgemm_128x64_tn", 8 * 0.4197, 285),
        ("ampere_sgemm_64x64_tn", 8 * 0.2997, 240),
        ("softmax_warp_forward", 8 * 0.1497, 150),
    ):
        assert rows[kernel]["self_low_j"] <= seconds * watts <= rows[kernel]["self_high_j"]


def test_copy_overwrites_nothing(tmp_path):
    assert samples.copy(tmp_path / "new") == tmp_path / "new"
    assert files(tmp_path / "new") == files(samples.FOLDER)
    with pytest.raises(OutputError, match="remove it, or name another folder"):
        samples.copy(tmp_path / "new")
    with pytest.raises(OptionError, match="did you mean 'trace'"):
        samples.path("trase")
