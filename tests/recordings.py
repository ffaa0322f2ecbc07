"""Small recordings made by hand, for tests."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from wattribute.model import (
    Clock,
    Device,
    Frames,
    Link,
    Locations,
    Missing,
    Nodes,
    Problem,
    Processes,
    Recording,
    Signal,
    Spans,
    SpanTable,
)


def spans(rows) -> Spans:
    """Spans from (start, end, frame, parent) rows in the order they began."""
    rows = list(rows)
    depth = []
    for _, _, _, parent in rows:
        depth.append(0 if parent < 0 else depth[parent] + 1)
    start, end, frame, parent = (list(column) for column in zip(*rows, strict=True)) if rows else ([], [], [], [])
    return Spans(
        np.array(start, np.int64),
        np.array(end, np.int64),
        np.array(frame, np.int32),
        np.array(parent, np.int64),
        np.array(depth, np.int32),
        np.zeros(len(rows), np.bool_),
    )


def small() -> Recording:
    """Two ranks on one host sharing a GPU with one stream each, a counter, a gauge, and something missing."""
    return Recording(
        clock=Clock(ticks_per_s=1_000, offset_ticks=5, length_ticks=100, epoch_ns=1_700_000_000_000_000_000),
        frames=Frames.of(
            [("main", "user", "function", "a.c", 3), ("MPI_Wait", "mpi", "wait"), ("kernel", "hip", "kernel")]
        ),
        nodes=Nodes.of([(0, "cluster", "machine"), (1, "n01", "node", 0, {"os": "Linux"})]),
        processes=Processes.of([(7, "MPI Rank 0", "process", 1), (9, "HIP Context 0", "accelerator", 1, 0)]),
        locations=Locations.of(
            [(70, "Master thread", "cpu", 0, 6), (90, "HIP[0:0]", "gpu", 1, 4), (91, "", "metric", 0, 5)]
        ),
        spans=SpanTable(
            {
                0: spans([(0, 100, 0, -1), (10, 30, 1, 0), (40, 60, 0, 0), (45, 50, 1, 2)]),
                1: spans([(12, 20, 2, -1), (20, 20, 2, -1), (20, 35, 2, -1)]),
            }
        ),
        signals=(
            Signal(
                "energy",
                "counter",
                "J",
                np.array([0, 50, 100]),
                np.array([2**53 + 1, 2**53 + 5, 2**53 + 9]),
                Fraction(1, 3),
                "n01",
                "GPU 0",
                2,
                0.1,
                2**63,
                True,
                False,
                0.05,
                {"mode": "ABSOLUTE"},
            ),
            Signal("power", "gauge", "W", np.array([0, 50]), np.array([1.5, float("nan")]), host="n01", device="GPU 0"),
            Signal("huge", "counter", "#", np.array([3]), np.array([2**64 - 1], np.uint64)),
            Signal("nothing", "delta", "J", np.empty(0, np.int64), np.empty(0, np.float64)),
        ),
        devices=(Device("GPU 0", "gpu", "n01", {"uuid": "x"}),),
        topology=(Link("n01", "GPU 0", (1,), "said so"),),
        missing=(Missing(2, 5, "no file"),),
        noticed=(Problem("missing", "location 2", 2),),
        metadata={"name": "名前 <b>", "nested": {"a": [1, 2.5, None]}},
    )
