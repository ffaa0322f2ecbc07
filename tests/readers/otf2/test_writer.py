"""What the writer writes is read alike by us, by the official Python reader and by ``otf2-print``."""

import re
import subprocess

import numpy as np
import pytest

import wattribute
from wattribute.readers.otf2.writer import Writer

from ..._core.oracle import Oracle
from ...conftest import need
from .archives import CALLS, READINGS, rich
from .test_fidelity import same_signals, same_spans


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    return rich(tmp_path_factory.mktemp("writer") / "rich")


def test_we_read_it(archive):
    recording = wattribute.read(archive)
    recording.spans.count_events()
    counts = {"Enter": CALLS + 4, "Leave": CALLS + 4, "Metric": READINGS + 2, "RmaOpCompleteBlocking": 1, "RmaPut": 1}
    assert recording.spans.events == counts
    assert [p.kind for p in recording.problems] == ["declared"]
    assert list(recording.hosts()) == ["host0", "host1"]
    assert recording.nodes.properties[3]["PCI Bus ID"] == "2"
    # clock: offset 5 at tick 0 and 15 at 1000, so tick 100 is 100 + 5 + 1, tick 900 is 900 + 5 + 9
    spans = recording.spans.spans(1)
    assert (spans.start.tolist(), spans.end.tolist()) == ([106, 207], [914, 308])
    assert [recording.frames.name[frame] for frame in spans.frame] == ["main", "work"]
    values = {s.name: s.values for s in recording.signals if s.location == 0}
    assert values["A2rocm_smi:::energy_count:device=0"].tolist() == [5, 2**63]
    assert values["heat"].tolist() == [1.5, float("-inf")]
    assert values["drift"].tolist() == [-7, 7]


def test_the_official_python_reader_agrees(archive):
    oracle = Oracle(archive / "traces.otf2")
    recording = wattribute.read(archive)
    rows = {int(number): row for row, number in enumerate(recording.locations.id)}
    for location, events in oracle.events().items():
        same_signals(recording, rows[location], events)
        same_spans(recording, rows[location], events, oracle.regions)
    assert sum(oracle.locations.values()) == 2 * CALLS + READINGS + 12


def test_otf2_print_agrees(archive):
    printed = subprocess.run([need("otf2-print"), str(archive / "traces.otf2")], capture_output=True, text=True)
    assert printed.returncode == 0, printed.stderr
    assert "rror" not in printed.stderr
    lines = [line for line in printed.stdout.splitlines() if re.match(r"(ENTER|LEAVE|METRIC|RMA_\w+) ", line)]
    assert len(lines) == 2 * CALLS + READINGS + 12
    assert sum(line.startswith("METRIC") for line in lines) == READINGS + 2
    second = [line.split() for line in lines if re.match(r"(ENTER|LEAVE) +1 ", line)]
    assert [(one[0], int(one[2]), one[4]) for one in second] == [
        ("ENTER", 106, '"main"'),
        ("ENTER", 207, '"work"'),
        ("LEAVE", 308, '"work"'),
        ("LEAVE", 914, '"main"'),
    ]


def test_several_chunks_of_definitions_and_any_name(tmp_path):
    with Writer(tmp_path / "x", name="big") as trace:
        thread = trace.location("t", trace.process("p", trace.node("n")))
        regions = [trace.region(f"region {n} " + "x" * 200) for n in range(3_000)]  # 630 KB: three chunks
        for n, region in enumerate(regions):
            thread.enter(2 * n, region)
            thread.leave(2 * n + 1, region)
    assert (tmp_path / "x" / "big.def").stat().st_size > 2 << 18
    for path in (tmp_path / "x", tmp_path / "x" / "big.otf2"):
        recording = wattribute.read(path)
        spans = recording.spans.spans(0)
        assert [recording.frames.name[f] for f in spans.frame[-2:]] == [
            f"region {n} " + "x" * 200 for n in (2998, 2999)
        ]
        assert recording.problems == ()
    oracle = Oracle(tmp_path / "x" / "big.otf2")
    assert len(oracle.regions) == 3_000
    assert len(oracle.events()[0]["time"]) == 6_000


def test_columns_and_calls_write_the_same_bytes(tmp_path):
    times, regions = np.array([5, 5, 7, 300]), [0, 300, 300, 0]
    for folder in ("columns", "calls"):
        with Writer(tmp_path / folder) as trace:
            thread = trace.location("t", trace.process("p", trace.node("n")))
            metric = trace.metric_class([trace.member("m", type="double")])
            trace.region("a", number=0)
            trace.region("b", number=300)
            if folder == "columns":
                thread.calls(times, [True, True, False, False], regions)
                thread.readings([400, 401], metric, [0.0, -1.5])
            else:
                thread.enter(5, 0)
                thread.enter(5, 300)
                thread.leave(7, 300)
                thread.leave(300, 0)
                thread.metric(400, metric, 0.0)
                thread.metric(401, metric, -1.5)
    for file in ("traces/0.evt", "traces/0.def", "traces.def", "traces.otf2"):
        assert (tmp_path / "columns" / file).read_bytes() == (tmp_path / "calls" / file).read_bytes()


def test_a_record_larger_than_a_chunk_is_refused(tmp_path):
    trace = Writer(tmp_path / "x", event_chunk=64, definition_chunk=64)
    thread = trace.location("t", trace.process("p", trace.node("n")))
    thread.event(0, "ParameterString", b"x" * 100)
    with pytest.raises(ValueError, match="an event of 102 bytes does not fit into a chunk of 64"):
        trace.close()
