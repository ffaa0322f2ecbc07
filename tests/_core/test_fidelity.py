"""Both decoders give what the official reader gives: times, kinds, references, metric values; 0 differences."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wattribute._core import library, otf2, reference_otf2
from wattribute._core.records import FIRST_KIND, KINDS, TYPE, LookUpTables

from . import every_kind
from .oracle import Oracle

TRACES = (
    "cloverleaf-openacc-cuda",
    "frontier-hpl-partial",
    "jacobi-mpi-omp-cuda",
    "mpi-otf2-3",
    "ompt-nested",
    "opencl-cubex",
    "ping-pong-papi",
    "simple-mi300",
)


def same(expected: dict[str, Any], found: dict[str, Any]) -> None:
    """The same columns of the same types with the same bits."""
    assert expected.keys() == found.keys()
    for name, values in expected.items():
        if isinstance(values, np.ndarray):
            assert found[name].dtype == values.dtype, name
            np.testing.assert_array_equal(found[name], values, err_msg=name)
        else:
            assert found[name] == values, name


def like_the_oracle(oracle: Oracle, events: Callable[[Any], dict[str, Any]]) -> None:
    assert oracle.locations
    for location, expected in oracle.events().items():
        found = events(oracle.files(location))
        assert found["status"]["code"] == ""
        assert found["status"]["events"] == oracle.locations[location] == len(found["time"])
        for column, values in expected.items():
            np.testing.assert_array_equal(found[column], values, err_msg=f"{location} {column}")


def compiled() -> None:
    if library.LIBRARY is None:
        pytest.skip("the C core was not compiled")


def busy_tables(oracle: Oracle) -> LookUpTables:
    """Tables with every sort of look-up: a frame left out, undefined regions and contexts, all pseudo-frames."""
    tables, frames = oracle.tables(), max(oracle.regions, default=0) + 1
    region = tables.region.copy()
    region[5::11] = -1
    keep = np.ones(frames + 5, np.uint8)
    keep[3::7] = 0
    contexts = np.array([0, 1, 2, -1, 4, 5, 6], np.int32), np.array([-1, 0, 0, 1, 1, 5, 2], np.int32)
    return LookUpTables(region, *contexts, keep, *range(frames, frames + 5))


@pytest.mark.parametrize("name", TRACES)
def test_real_traces_are_read_like_the_official_reader(shared: Path, name: str) -> None:
    compiled()
    like_the_oracle(Oracle(shared / "traces" / name / "traces.otf2"), otf2.events)


@pytest.mark.parametrize("name", TRACES)
def test_the_twin_reads_real_traces_like_c(shared: Path, name: str) -> None:
    compiled()
    oracle = Oracle(shared / "traces" / name / "traces.otf2")
    tables = busy_tables(oracle)
    locations = sorted(oracle.locations, key=lambda ref: Path(oracle.files(ref).evt).stat().st_size)
    for location in locations[:6]:  # the smaller ones: the twin is a thousand times slower
        files = oracle.files(location)
        same(reference_otf2.events(files), otf2.events(files))
        same(reference_otf2.parameters(files), otf2.parameters(files))
        same(reference_otf2.decode(files, tables), otf2.decode(files, tables))


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Oracle:
    official = pytest.importorskip("otf2", reason="the official writer has wheels for CPython ≤ 3.11 on x86 only")
    return Oracle(every_kind.write(tmp_path_factory.mktemp("otf2") / "every", official))


@pytest.mark.parametrize("core", [otf2, reference_otf2], ids=["c", "twin"])
def test_every_kind_is_read_like_the_official_reader(everything: Oracle, core: Any) -> None:
    like_the_oracle(everything, core.events)
    counts = sum(core.events(everything.files(location))["counts"] for location in everything.locations)
    assert (counts[FIRST_KIND : FIRST_KIND + len(KINDS)] > 0).all()
    assert len(KINDS) == 83


def test_every_kind_nests_alike_in_c_and_twin(everything: Oracle) -> None:
    compiled()
    tables = busy_tables(everything)
    for location in everything.locations:
        files = everything.files(location)
        same(reference_otf2.decode(files, tables), otf2.decode(files, tables))
        chosen = tables._replace(metric=np.array([1, 0, 1], np.uint8))
        same(reference_otf2.decode(files, chosen, spans=False), otf2.decode(files, chosen, spans=False))


@pytest.mark.parametrize("name", ["jacobi-mpi-omp-cuda", "ping-pong-papi", "simple-mi300"])
def test_spans_are_the_enters_and_leaves(shared: Path, name: str) -> None:
    oracle = Oracle(shared / "traces" / name / "traces.otf2")
    for location in oracle.locations:
        files = oracle.files(location)
        events, spans = otf2.events(files), otf2.decode(files, oracle.tables())
        enters = events["kind"] == TYPE["Enter"]
        times = (events["time"] - np.uint64(oracle.offset_ticks)).view(np.int64)
        np.testing.assert_array_equal(spans["start"], times[enters])
        np.testing.assert_array_equal(spans["frame"], events["ref"][enters])
        np.testing.assert_array_equal(np.sort(spans["end"]), times[events["kind"] == TYPE["Leave"]])
        assert spans["nesting"].tolist() == [0, 0, 0, 0, 0]
        nested = spans["parent"] >= 0
        assert (spans["start"][spans["parent"][nested]] <= spans["start"][nested]).all()
        assert (spans["end"][spans["parent"][nested]] >= spans["end"][nested]).all()
