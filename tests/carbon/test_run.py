"""``wattribute run --zone …`` whatever the intensity server does: the run finishes, its energy is untouched."""

import json
import os
import subprocess
import sys

import pytest


@pytest.fixture
def run(tmp_path, grid):
    lines = [f"{i / 200},{i / 2}" for i in range(4000)]
    (tmp_path / "meter.csv").write_text("time_s,package 0:energy_j\n" + "\n".join(lines))

    def run(*options):
        command = [
            sys.executable,
            "-m",
            "wattribute",
            "run",
            "--meters",
            "replay:meter.csv",
            "--format",
            "json",
            *options,
        ]
        environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
        done = subprocess.run(
            [*command, "--", "sh", "-c", "sleep 0.3; exit 3"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
        return done.returncode, json.loads(done.stderr.splitlines()[-1])

    return run


@pytest.mark.parametrize("mode", ["good", "500", "slow"])
def test_the_server_decides_only_the_grams(run, grid, mode):
    grid.mode, grid.figures = mode, _Always(100)
    code, summary = run("--zone", "GB-13")
    assert code == 3
    assert summary["energy_j"] == pytest.approx(100 * summary["duration_s"], rel=0.1)
    assert summary["mean_w"] == pytest.approx(100, rel=0.1)
    figure = 100 if mode == "good" else 215.79
    assert summary["co2e_g"] == pytest.approx(summary["energy_j"] / 3.6e6 * figure, rel=1e-6)
    assert summary["carbon"]["fallback"] is (mode != "good")
    assert bool(summary["carbon"]["problems"]) is (mode != "good")
    assert summary["carbon"]["sources"]


def test_an_unknown_zone_is_said_before_the_command_runs(tmp_path):
    command = [sys.executable, "-m", "wattribute", "run", "--zone", "Atlantis", "--", "touch", "ran"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("wattribute: unknown zone 'Atlantis'")
    assert not (tmp_path / "ran").exists()


class _Always(dict):
    """The same figure for every half hour, whenever this test runs."""

    def __init__(self, figure):
        self.figure = figure

    def get(self, *_):
        return self.figure
