"""Our engines fulfil their contract on an OTF2 trace, and report a damaged one alike.

A new engine is a class here and a fixture (in conftest.py) that gives what users write for ``engine=``, or skips with a
reason.
"""

import pytest

from wattribute.testing.contracts import EngineContract, answer, assert_same


class OnTrace(EngineContract):
    """The contract, asked about a trace."""

    @pytest.fixture
    def source(self, trace):
        return trace

    def test_damaged_files_are_reported_alike(self, tmp_path, trace, engine):
        damaged = tmp_path / "damaged"
        damaged.mkdir()
        (damaged / "traces").mkdir()
        files = sorted(path for path in trace.rglob("*") if path.is_file())
        largest = max((path for path in files if path.suffix == ".evt"), key=lambda path: path.stat().st_size)
        for path in files:
            content = path.read_bytes()
            (damaged / path.relative_to(trace)).write_bytes(content[:2000] if path == largest else content)
        expected = answer(damaged, of="host", threads=1)
        assert any(problem.kind == "truncated" for problem in expected.problems)
        assert_same(answer(damaged, of="host", engine=engine), expected, self.within)


class TestLocal(OnTrace):
    name = "local"


class TestLocalOnAnArchive(EngineContract):
    name = "local"


class TestDask(OnTrace):
    @pytest.fixture
    def engine(self, dask):
        return dask


class TestArrays(OnTrace):
    """The Arkouda engine without its server."""

    within = 1e-12
    refuses = dict.fromkeys(
        ("by bin", "by reading", "statistics", "per"), "engine 'arkouda' has no rows by reading or bin"
    )

    @pytest.fixture
    def engine(self, arrays):
        return arrays


class TestArkouda(TestArrays):
    @pytest.fixture
    def engine(self, arkouda):
        return arkouda
