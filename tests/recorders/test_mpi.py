"""A real mpirun: four ranks on two simulated nodes (each with a host name and a counter of its own)."""

import json
import os
import subprocess
import sys

import polars as pl
import pytest

from tests.conftest import need
from wattribute import attribute, load, merge
from wattribute.carbon.recordings import counted

PROGRAM = """
import json, os, sys, time
from wattribute import region
rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
stamps = {}
for name, seconds in (("setup", 0.1), (f"work {rank}", 0.2 + 0.1 * rank)):
    stamps[name] = time.monotonic_ns()
    with region(name):
        time.sleep(seconds)
    stamps[name + " end"] = time.monotonic_ns()
json.dump(stamps, open(f"stamps{rank}.json", "w"))
"""
# mpirun's own idea of nodes would need several machines; UTS namespaces give each rank its node's name
WRAPPER = """#!/bin/sh
node=$((OMPI_COMM_WORLD_RANK / 2))
OMPI_COMM_WORLD_LOCAL_RANK=$((OMPI_COMM_WORLD_RANK % 2))
export node OMPI_COMM_WORLD_LOCAL_RANK
exec unshare --uts sh -c 'hostname node$node && exec "$@"' sh "$@"
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """The folder in which a job of four ranks has left its recordings."""
    mpirun = need("mpirun")
    if subprocess.run(["unshare", "--uts", "true"], capture_output=True).returncode:
        pytest.skip("no right to make UTS namespaces (needs root)")
    folder = tmp_path_factory.mktemp("job")
    (folder / "program.py").write_text(PROGRAM)
    (folder / "wrapper.sh").write_text(WRAPPER)
    (folder / "wrapper.sh").chmod(0o755)
    for node, watts in enumerate((100, 300)):
        lines = [f"{i / 200},{watts * i / 200}" for i in range(12_000)]
        (folder / f"node{node}.csv").write_text("time_s,package 0:energy_j\n" + "\n".join(lines))
    run = "$PYTHON -m wattribute run --quiet --meters replay:node$node.csv -o job.watt -- $PYTHON program.py"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMPI_", "PMI"))}
    environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PYTHON": sys.executable}
    done = subprocess.run(
        [mpirun, "--oversubscribe", "-n", "4", "./wrapper.sh", "sh", "-c", run],
        cwd=folder, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def ranks(job):
    return [load(job / f"job-rank{rank}.watt") for rank in range(4)]


def test_one_sampler_per_node(ranks):
    assert [len(recording.signals) for recording in ranks] == [1, 0, 1, 0]
    assert [recording.metadata["rank"]["rank"] for recording in ranks] == [0, 1, 2, 3]
    assert [recording.hosts() for recording in ranks] == [["node0"], ["node0"], ["node1"], ["node1"]]


def test_regions_are_joined_by_clock(job, ranks):
    merged = merge(ranks)
    assert merged.processes.name == ("rank 0", "rank 1", "rank 2", "rank 3")
    uncertainty_ns = merged.metadata["clock"]["uncertainty_ns"]
    assert uncertainty_ns == 0  # one boot: one monotonic clock
    for location in merged.spans.locations():
        spans = merged.spans.spans(location)
        rank = int(merged.locations.process[location])
        stamps = json.loads((job / f"stamps{rank}.json").read_text())
        for i, frame in enumerate(spans.frame):
            name = merged.frames.name[frame]
            begin, end = (int(at) + merged.clock.offset_ticks for at in (spans.start[i], spans.end[i]))
            assert stamps[name] - uncertainty_ns <= begin
            assert end <= stamps[name + " end"] + uncertainty_ns


def test_the_job_is_the_sum_of_its_nodes(ranks):
    merged = merge(ranks)
    nodes = {one.device.host: energy.measured for one, energy in counted(merged)}
    alone = {one.device.host: energy.measured for i in (0, 2) for one, energy in counted(ranks[i])}
    assert nodes == pytest.approx(alone)
    attribution = attribute(merged, by=("host", "process"))
    for device in attribution.devices.iter_rows(named=True):
        rows = attribution.rows.filter(host=device["host"])
        assert rows["self_j"].sum() + device["idle_j"] == pytest.approx(device["measured_j"], rel=1e-9)
    assert attribution.devices["measured_j"].sum() == pytest.approx(sum(nodes.values()))
    assert set(attribution.rows.filter(host="node1")["process"]) == {"rank 2", "rank 3"}


def test_ranks_of_a_node_share_it(ranks):
    """While both ranks of a node are in a region each gets half of its power; alone all of it."""
    rows = attribute(merge(ranks), by=("host", "frame")).rows
    for host, watts in (("node0", 100), ("node1", 300)):
        for row in rows.filter(host=host).iter_rows(named=True):
            assert 0.45 * watts <= row["power_w"] <= 1.05 * watts, row


@pytest.mark.realtime
def test_the_sampler_waits_for_the_last_rank_of_its_node(ranks):
    """Ranks 1 and 3 work 0.1 s longer than those that sample: their last joules are metered too."""
    rows = attribute(merge(ranks), by=("host", "frame")).rows
    for name in ("work 1", "work 3"):
        row = rows.row(by_predicate=pl.col("frame") == name, named=True)
        assert row["covered_ns"] == pytest.approx(row["total_ns"], rel=0.001), row


def test_the_merged_job_survives_the_disk(job):
    command = [
        sys.executable,
        "-m",
        "wattribute",
        "merge",
        *(f"job-rank{rank}.watt" for rank in range(4)),
        "-o",
        "all.watt",
    ]
    done = subprocess.run(command, cwd=job, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "4 recordings, 2 hosts, 4 processes" in done.stderr
    assert len(load(job / "all.watt").spans.locations()) == 4
