"""Both decoders give what the official reader gives: times, kinds, references, metric values; 0 differences."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wattribute._core import reference_otf2
from wattribute._core.records import TYPE

from .oracle import Oracle

TRACES = (
    "cloverleaf-openacc-cuda frontier-hpl-partial jacobi-mpi-omp-cuda mpi-otf2-3 ompt-nested opencl-cubex "
    "ping-pong-papi simple-mi300"
)


@pytest.mark.parametrize("name", TRACES.split())
def test_real_traces_are_read_like_the_official_reader(shared: Path, name: str) -> None:
    oracle = Oracle(shared / "traces" / name / "traces.otf2")
    assert oracle.locations
    for location, expected in oracle.events().items():
        found = reference_otf2.events(oracle.files(location))
        assert found["status"]["code"] == ""
        assert found["status"]["events"] == oracle.locations[location] == len(found["time"])
        for column, values in expected.items():
            np.testing.assert_array_equal(found[column], values, err_msg=f"{location} {column}")


@pytest.mark.parametrize("name", ["jacobi-mpi-omp-cuda", "ping-pong-papi", "simple-mi300"])
def test_spans_are_the_enters_and_leaves(shared: Path, name: str) -> None:
    oracle = Oracle(shared / "traces" / name / "traces.otf2")
    for location in oracle.locations:
        files = oracle.files(location)
        events, spans = reference_otf2.events(files), reference_otf2.decode(files, oracle.tables())
        enters = events["kind"] == TYPE["Enter"]
        times = (events["time"] - np.uint64(oracle.offset_ticks)).view(np.int64)
        np.testing.assert_array_equal(spans["start"], times[enters])
        np.testing.assert_array_equal(spans["frame"], events["ref"][enters])
        np.testing.assert_array_equal(np.sort(spans["end"]), times[events["kind"] == TYPE["Leave"]])
        assert spans["nesting"].tolist() == [0, 0, 0, 0]
        nested = spans["parent"] >= 0
        assert (spans["start"][spans["parent"][nested]] <= spans["start"][nested]).all()
        assert (spans["end"][spans["parent"][nested]] >= spans["end"][nested]).all()
