"""Larger than memory: what attribution holds does not grow with the spans, be they in a trace or in an archive."""

import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import wattribute
from tests.conftest import ROOT
from wattribute import archive
from wattribute.readers.otf2.writer import Writer

FEW, MANY = 60_000, 600_000  # spans; their columns alone take 33 bytes each, a row per span several hundred
MOST_GROWTH_MB = 12  # ten times the spans as columns: 18 MB more; as rows: 150 MB more

CHILD = """
import sys
import wattribute
from wattribute.attribution import rows
rows.CHUNK = 1 << 13
options = {"spans": sys.argv[2]} if len(sys.argv) > 2 else {}
wattribute.attribute(sys.argv[1], threads=1, **options)
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def write(folder, spans):
    """main around calls of a microsecond, on one thread; a counter beside it."""
    with Writer(folder) as trace:
        node = trace.node("host", "node", domain="shared_memory")
        process = trace.process("MPI Rank 0", node)
        main, work = trace.region("main"), trace.region("work")
        thread = trace.location("Master thread", process)
        times = 1000 * np.arange(1, 2 * spans + 1)
        thread.enter(0, main)
        thread.calls(times, np.arange(2 * spans) % 2 == 0, np.full(2 * spans, work))
        thread.leave(int(times[-1]) + 1, main)
        meter = trace.location("energy", process, "metric")
        metric = trace.metric_class([trace.member("powercap:::ENERGY_UJ:ZONE0", "uJ")])
        moments = np.linspace(0, times[-1], 100).astype(np.int64)
        meter.readings(moments, trace.metric_instance(metric, meter.number, "node", node), moments * 50)
    return folder


def peak_mb(*arguments):
    command = [sys.executable, "-c", CHILD, *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=ROOT, env={"POLARS_MAX_THREADS": "1"}
    )
    return int(done.stdout) / 1000


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    folder = tmp_path_factory.mktemp("memory")
    made = {}
    for spans in (FEW, MANY):
        made["otf2", spans] = write(folder / f"otf2-{spans}", spans)
        made["watt", spans] = folder / f"{spans}.watt"
        recording = wattribute.read(made["otf2", spans])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(archive, "ROW_GROUP", 1 << 13)
            archive.save(recording, made["watt", spans])
    return made


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
@pytest.mark.parametrize("kind", ["otf2", "watt"])
@pytest.mark.parametrize("rows", [False, True], ids=["rolled up", "a row per span"])
def test_memory_does_not_grow_with_the_spans(traces, tmp_path, kind, rows):
    peaks = {}
    for spans in (FEW, MANY):
        out = [tmp_path / f"spans-{spans}"] if rows else []
        peaks[spans] = peak_mb(traces[kind, spans], *out)
        if rows:
            assert pl.scan_parquet(out[0] / "*.parquet").select(pl.len()).collect().item() == spans + 1
    assert peaks[MANY] < peaks[FEW] + MOST_GROWTH_MB, peaks


def test_a_trace_and_its_archive_give_the_same_bits(traces):
    one, other = (wattribute.attribute(traces[kind, MANY], bounds=True) for kind in ("otf2", "watt"))
    assert one.rows.equals(other.rows)
    assert one.devices.equals(other.devices)
