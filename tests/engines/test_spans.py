"""One row per span as a folder: what is in it, when it is whole, and what is refused."""

import json
import os
import subprocess
import sys

import polars as pl
import pytest

import wattribute
from wattribute.attribution import rows
from wattribute.errors import OutputError


def state(folder):
    return json.loads((folder / "_wattribute.json").read_text())


def test_a_file_per_device_and_location(trace, tmp_path):
    found = wattribute.attribute(trace, metric="ZONE", spans=tmp_path / "new" / "spans")
    files = sorted(path.name for path in (tmp_path / "new" / "spans").glob("*.parquet"))
    assert state(tmp_path / "new" / "spans") == {
        "format": "wattribute-spans",
        "version": 1,
        "state": "complete",
        "parts": len(files),
    }
    assert len(files) == 4  # two packages, two threads each
    table = pl.read_parquet(tmp_path / "new" / "spans" / "*.parquet")
    assert table["self_j"].sum() == pytest.approx(found.devices["attributed_j"].sum(), rel=1e-12)


def test_small_pieces_say_the_same(trace, tmp_path, monkeypatch):
    wattribute.attribute(trace, of="host", spans=tmp_path / "whole", statistics=True)
    monkeypatch.setattr(rows, "CHUNK", 7)
    wattribute.attribute(trace, of="host", spans=tmp_path / "pieces", statistics=True)
    order = ["device", "host", "location", "start_ns", "depth"]
    whole, pieces = (pl.read_parquet(tmp_path / name / "*.parquet").sort(order) for name in ("whole", "pieces"))
    assert whole.equals(pieces)


def test_what_is_there_is_never_overwritten(trace, tmp_path):
    (tmp_path / "spans").mkdir()
    (tmp_path / "spans" / "mine").write_text("precious")
    with pytest.raises(OutputError, match="is not empty"):
        wattribute.attribute(trace, spans=tmp_path / "spans")
    with pytest.raises(OutputError, match="cannot be made"):
        wattribute.attribute(trace, spans=tmp_path / "spans" / "mine" / "below")


def test_a_disk_that_fills_up_leaves_no_half_file(trace, tmp_path):
    script = (
        "import resource, signal, sys, wattribute\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))\n"
        "try:\n    wattribute.attribute(sys.argv[1], of='host', spans=sys.argv[2])\n"
        "except wattribute.WattributeError as error:\n    print(error)\n"
    )
    command = [sys.executable, "-c", script, str(trace), str(tmp_path / "spans")]
    told = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ).stdout
    assert "File too large" in told
    assert state(tmp_path / "spans")["state"] == "partial"
    assert not list((tmp_path / "spans").glob("*.partial"))
    for path in (tmp_path / "spans").glob("*.parquet"):
        pl.read_parquet(path)
