"""What every engine has to fulfil: the answers of one thread on this machine, whatever is asked.

A new engine is a line in ENGINES and a fixture of that name (in conftest.py) that gives what users write for
``engine=``, or skips with a reason.
"""

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import wattribute
from tests.recordings import small
from wattribute.errors import WattributeError

# engine → how far its numbers may be from local's, relatively; 0: the same bits
ENGINES = {"local": 0, "dask": 0, "arrays": 1e-12, "arkouda": 1e-12}
# what an engine says it cannot do
REFUSED = {"arkouda": {"by bin", "by reading", "statistics"}}

QUESTIONS = {
    "default": {},
    "host": {"of": "host"},
    "views side by side": {"of": ["kernels", "host"]},
    "by path": {"of": "host", "by": "process,path"},
    "by everything": {"by": "device,signal,of,host,process,location,frame,paradigm,role,run,file,line"},
    "by bin": {"by": "device,bin=250ms"},
    "by reading": {"by": "device,reading", "of": "kernels", "metric": "energy_count:device=0"},
    "without bounds": {"bounds": False, "of": "host"},
    "statistics": {"statistics": True},
    "by process": {"share": "process", "of": "host"},
    "by load": {"share": "load", "load": "energy", "metric": "energy_count", "of": "kernels"},
    "full": {"share": "full", "of": "host"},
    "window": {"method": "window", "of": "host"},
    "step": {"integrate": "step"},
    "a part of the time": {"begin": 1, "end": 3.5},
    "nothing there": {"begin": 100, "end": 101},
    "some processes and frames": {"process": "Rank [12]", "exclude_frame": "MPI", "of": "host"},
    "a map": {"maps": ["ZONE -> MPI Rank 0, MPI Rank 3"], "metric": "ZONE"},
    "one group": {"metric": "ZONE", "process": "Rank [01]$"},
    "another kind of metric": {"metric_kinds": ["ZONE=gauge:W"], "metric": "ZONE", "of": "host"},
    "no such metric": {"metric": "nothing like it"},
    "nobody uses it": {"maps": ["energy -> nobody"], "metric": "energy_count"},
}


@pytest.fixture
def engine(request):
    return request.param if request.param == "local" else request.getfixturevalue(request.param)


def answer(source, **asked):
    """An attribution, or the line that says why there is none."""
    try:
        return wattribute.attribute(source, **asked)
    except WattributeError as error:
        return str(error)


def assert_same(found, expected, within):
    if isinstance(expected, str):
        assert found == expected
        return
    for name in ("devices", "rows"):
        a, b = getattr(found, name), getattr(expected, name)
        if within:
            assert_frame_equal(a, b, check_row_order=False, check_exact=False, rel_tol=within, abs_tol=within)
        else:
            assert a.equals(b), name
            assert a.schema == b.schema
    assert list(found.problems) == list(expected.problems)


each_engine = pytest.mark.parametrize(
    ("engine", "within"), [pytest.param(name, within, id=name) for name, within in ENGINES.items()], indirect=["engine"]
)


@each_engine
@pytest.mark.parametrize("question", QUESTIONS)
def test_the_same_answer(trace, engine, within, question):
    asked = QUESTIONS[question]
    if question in REFUSED.get(engine.partition(":")[0], ()):
        assert f"engine {engine.partition(':')[0]!r} has no rows by reading or bin" in answer(
            trace, engine=engine, **asked
        )
        return
    assert_same(answer(trace, engine=engine, **asked), answer(trace, threads=1, **asked), within)


@each_engine
def test_recordings_in_memory_and_archives(tmp_path, engine, within):
    wattribute.save(small(), tmp_path / "a.watt")
    for source in (small(), tmp_path / "a.watt"):
        for asked in (
            {"metric": "energy"},
            {"metric": "energy", "of": "host", "by": "path"},
            {"metric": "energy", "by": "reading"},
        ):
            if engine.startswith("arkouda") and asked.get("by") == "reading":
                continue
            assert_same(answer(source, engine=engine, **asked), answer(source, threads=1, **asked), within)


@each_engine
def test_damaged_files_are_told_alike(tmp_path, trace, engine, within):
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
    assert_same(answer(damaged, of="host", engine=engine), expected, within)


@each_engine
def test_one_row_per_span_as_a_folder_of_parquet(tmp_path, trace, engine, within):
    expected = wattribute.attribute(trace, spans=True, of=["kernels", "host"]).rows
    found = wattribute.attribute(trace, spans=tmp_path / "spans", of=["kernels", "host"], engine=engine)
    order = ["of", "device", "host", "location", "start_ns", "depth", "end_ns"]
    got = pl.read_parquet(tmp_path / "spans" / "*.parquet").sort(order, maintain_order=True)
    assert_frame_equal(got, expected.sort(order, maintain_order=True), check_exact=not within, rel_tol=within or 1e-5)
    assert found.rows.height < expected.height
