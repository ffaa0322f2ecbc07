"""Time as a quantity: every thread and stream has its own seconds; metrics without spans give books."""

import io
import json

import pytest
from rich.console import Console

from wattribute import attribute, compare, samples
from wattribute.cli import main
from wattribute.comparison import Ensemble, Run
from wattribute.errors import NoDataError, OptionError
from wattribute.testing.recordings import RecordingBuilder
from wattribute.views.console_compare import comparison_table


def recording(energy=False, long=4000):
    """A host with two threads and a stream, 4 s: main [0, 4) calls work [1, 3); other [1, 2); kernel [2, 3)."""
    made = RecordingBuilder(1000, length_ticks=long).host("n0").process("rank 0")
    made.thread(f"main 0..{long}, work 1000..3000", "Master").thread("other 1000..2000", "Helper")
    made.stream("kernel 2000..3000", "HIP[0:0]", context="HIP Context 0")
    if energy:
        made.counter("package 0", [0.0, 100.0], [0, long], name="package_energy")
    return made.recording()


def test_seconds_of_threads_and_streams_add_up():
    found = attribute(recording())
    assert (found.unit, found.in_seconds) == ("s", True)
    books = {row["device"]: row for row in found.devices.to_dicts()}
    assert set(books) == {"threads", "streams"}
    assert books["threads"]["measured_value"] == 8.0  # two threads of 4 s
    assert books["threads"]["attributed_value"] == 5.0  # main and work 4 s, other 1 s
    assert books["threads"]["idle_value"] == 3.0
    assert books["streams"]["idle_value"] == 3.0
    rows = {row["frame"]: (row["self_value"], row["total_value"], row["calls"]) for row in found.rows.to_dicts()}
    assert rows == {"main": (2.0, 4.0, 1), "work": (2.0, 2.0, 1), "other": (1.0, 1.0, 1), "kernel": (1.0, 1.0, 1)}
    (said,) = (problem.message for problem in found.problems if problem.kind == "no-energy")
    assert "no energy was metered" in said
    assert "--signals FILE" in said


def test_time_can_be_asked_for_and_energy_comes_first():
    assert attribute(recording(energy=True)).unit == "J"
    found = attribute(recording(energy=True), quantity="time", by="path")
    assert found.unit == "s"
    assert not [problem for problem in found.problems if problem.kind == "no-energy"]
    with pytest.raises(NoDataError, match="no energy or power metric"):
        attribute(recording(), quantity="energy")
    with pytest.raises(OptionError, match="did you mean 'time'"):
        attribute(recording(), quantity="tme")


def test_a_part_of_the_time_and_one_view():
    found = attribute(recording(), begin=1.0, end=2.0, of="host")
    (books,) = found.devices.to_dicts()
    assert (books["measured_value"], books["attributed_value"]) == (2.0, 2.0)


def test_threads_and_engines_agree():
    one, two = (attribute(recording(), by="process,frame", threads=n) for n in (1, 4))
    assert one.rows.equals(two.rows)


def test_comparison_in_seconds():
    runs = [Ensemble((Run(name, recording(long=long)),)) for name, long in (("a", 4000), ("b", 5000))]
    found = compare(*runs, of="host")
    assert found.unit == "s"
    assert found.verdict.startswith("+25.0 % time")
    rows = {row["frame"]: row for row in found.rows.to_dicts()}
    assert (rows["main"]["time_a_s"], rows["main"]["time_b_s"], rows["main"]["delta_s"]) == (2.0, 3.0, 1.0)
    assert rows["main"]["changed"]
    assert rows["work"]["changed"] is False
    assert not [name for name in found.rows.columns if name.endswith(("_j", "_w"))]
    printed = io.StringIO()
    Console(file=printed, width=200).print(comparison_table(found))
    assert "\na: no energy was metered" in printed.getvalue()  # a remark, which "!" does not mark
    with pytest.raises(OptionError, match="--quantity time"):
        compare(runs[0], Ensemble((Run("c", recording(energy=True)),)))


def test_metrics_without_any_span_give_books():
    made = RecordingBuilder(1000).host("n0").counter("GPU 0", [0.0, 40.0], [0, 2000], name="gpu_energy")
    found = attribute(made.recording())
    assert found.rows.is_empty()
    (books,) = found.devices.to_dicts()
    assert (books["measured_j"], books["idle_j"]) == (40.0, 40.0)


VERBS = (
    ("attribute", "--by", "frame"),
    ("attribute", "--format", "json"),
    ("report", "-o", "OUT.html"),
    ("plot", "timeline", "-o", "OUT.svg"),
    ("plot", "heatmap", "-o", "OUT.svg"),
    ("plot", "flame", "-o", "OUT.svg"),
    ("plot", "icicle", "-o", "OUT.svg"),
    ("plot", "sunburst", "-o", "OUT.svg"),
    ("plot", "callgraph", "-o", "OUT.dot"),
    ("plot", "books", "-o", "OUT.svg"),
    ("plot", "distribution", "-o", "OUT.svg"),
    ("plot", "node", "-o", "OUT.svg"),
    ("export", "--to", "speedscope", "-o", "OUT"),
    ("export", "--to", "folded", "-o", "OUT"),
    ("export", "--to", "hatchet", "-o", "OUT"),
    ("export", "--to", "csv", "-o", "OUT"),
)


@pytest.mark.parametrize("words", VERBS, ids=lambda words: "-".join(words[:3]))
def test_every_verb_works_on_a_trace_without_energy(words, tmp_path, monkeypatch, capsys):
    trace = str(samples.path("pytorch.json.gz"))
    at = 2 if words[0] == "plot" else 1
    line = [word.replace("OUT", str(tmp_path / "out")) for word in (*words[:at], trace, *words[at:])]
    monkeypatch.setattr("sys.argv", ["wattribute", *line])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (None, 0)
    printed = capsys.readouterr()
    if words[:2] == ("attribute", "--format"):
        told = json.loads(printed.out)
        assert any("no energy was metered" in str(problem) for problem in told["problems"])
    written = [path for path in tmp_path.iterdir() if path.stat().st_size]
    assert written if words[0] != "attribute" else not written


def test_exports_are_in_seconds():
    from wattribute.outputs import hatchet, speedscope

    found = attribute(recording())
    (threads, streams) = speedscope.profile(found)["profiles"]
    assert (threads["unit"], threads["endValue"], streams["endValue"]) == ("seconds", 8.0, 4.0)
    assert "energy_j" not in hatchet.literal(found)[0]["metrics"]
