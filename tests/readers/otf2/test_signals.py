"""Signals of many metric locations that are read in one go, as each kind of location gives them."""

from __future__ import annotations

import numpy as np
import pytest

import wattribute
from wattribute.readers.otf2.writer import Writer


@pytest.fixture
def recording(tmp_path):
    """Meters with one metric (of each type), with none, with two in turn, with two members, with another type later."""
    with Writer(tmp_path / "t") as trace:
        host = trace.node("host", "node", domain="shared_memory")
        process = trace.process("p", host)
        trace.location("thread", process).enter(0, trace.region("main"))
        types = {"uint64": trace.member("a"), "int64": trace.member("b", type="int64")}
        types["double"] = trace.member("c", type="double")
        alone = {kind: trace.metric_class([member]) for kind, member in types.items()}
        both = trace.metric_class([types["int64"], types["double"]])

        def meter(metric):
            location = trace.location("meter", process, "metric")
            return location, trace.metric_instance(metric, location.number, "process", process)

        for kind, values in (("uint64", [1, 2**64 - 1]), ("int64", [-1, -(2**63)]), ("double", [0.5, -0.0])):
            location, metric = meter(alone[kind])
            for time, value in enumerate(values):
                location.metric(time, metric, value)
        meter(alone["uint64"])
        location, first = meter(alone["uint64"])
        second = trace.metric_instance(alone["int64"], location.number, "process", process)
        for time, (metric, value) in enumerate([(second, -5), (first, 6), (second, -7)]):
            location.metric(time, metric, value)
        location, metric = meter(both)
        location.metric(3, metric, -8, 0.25)
        location.metric(4, metric, -9, 0.75)
        location, metric = meter(alone["uint64"])
        location.metric(5, metric, 10)
        location.event(6, "Metric", metric, bytes([1, 8, 1, 11]))  # int64, of 1 byte
        location, metric = meter(alone["uint64"])
        location.metric(7, metric, 12)
    return wattribute.read(tmp_path / "t", threads=1)


def test_each_meter(recording):
    found = [(s.location, s.name, s.times.tolist(), s.values.tolist(), s.values.dtype) for s in recording.signals]
    unsigned, signed, double = (np.dtype(kind) for kind in (np.uint64, np.int64, np.float64))
    assert found == [
        (1, "a", [0, 1], [1, 2**64 - 1], unsigned),
        (2, "b", [0, 1], [-1, -(2**63)], signed),
        (3, "c", [0, 1], [0.5, -0.0], double),
        (5, "a", [1], [6], unsigned),
        (5, "b", [0, 2], [-5, -7], signed),
        (6, "b", [3, 4], [-8, -9], signed),
        (6, "c", [3, 4], [0.25, 0.75], double),
        (7, "a", [5, 6], [10.0, 11.0], double),  # of two types
        (8, "a", [7], [12], unsigned),
    ]
    assert {s.host for s in recording.signals} == {"host"}


def test_problems_name_their_location(recording):
    recording.spans.each_batch(recording.spans.locations(), recording.spans.spans_of, 1)
    assert [(p.kind, p.location) for p in recording.problems] == [("nesting", 0)]  # main is never left
