"""Recordings made by hand for pictures: ranks with deep stacks, GPUs with streams, and awkward ones."""

from __future__ import annotations

import numpy as np

from tests.recordings import spans
from wattribute.model import (
    Clock,
    Device,
    Frames,
    Link,
    Locations,
    Nodes,
    Processes,
    Recording,
    Signal,
    SpanTable,
)  # fmt: skip

HOSTILE = (
    "<script>alert(1)</script>",
    "内核计算函数·求解器",
    "_ZN5Eigen8internal26call_dense_assignment_loopINS_6MatrixIdLin1ELin1ELi0ELin1ELin1EEES3_EEvRT_RKT0_",
    "void ns::very::deeply::nested::kernel<std::vector<std::pair<int, long>, float>, 128>(double const*, int) const",
    "quote\"back\\slash'tick`${x}",
    "bad\x00control\x1b[31m\nnewline\ttab",
    "",
    "x" * 400,
    "[data:image](javascript:alert(1))",
)


def ranks(count: int = 4, depth: int = 12, power_w: float = 200.0, hosts: int = 1) -> Recording:
    """MPI ranks that recurse ``depth`` levels, compute, communicate and wait; a CPU package per host."""
    names = [
        ("main", "compiler", "function"),
        ("solve", "compiler", "function"),
        ("MPI_Allreduce", "mpi", "coll_all2all"),
    ]
    names += [("MPI_Barrier", "mpi", "barrier"), ("write", "io", "file_io")]
    names += [(f"level_{i}", "compiler", "function") for i in range(depth)]
    columns = {}
    for rank in range(count):
        rows = [(0, 1000, 0, -1), (20, 980, 1, 0)]
        for step in range(4):
            begin, parent = 30 + step * 230, 1
            for level in range(depth):
                rows.append((begin + level, begin + 150 - level, 5 + level, parent))
                parent = len(rows) - 1
            rows.append((begin + 150, begin + 170 + 5 * rank, 2, 1))
            rows.append((begin + 170 + 5 * rank, begin + 200, 3, 1))
            rows.append((begin + 200, begin + 210, 4, 1))
        columns[rank] = spans(rows)
    times = np.arange(0, 1001, 5)
    wave = power_w * (1 + 0.5 * np.sin(times / 40)) * 0.005
    return Recording(
        clock=Clock(ticks_per_s=1000, length_ticks=1000),
        frames=Frames.of(names),
        nodes=Nodes.of([(0, "cluster", "machine"), *((1 + i, f"n{i:02d}", "node", 0) for i in range(hosts))]),
        processes=Processes.of([(r, f"MPI Rank {r}", "process", 1 + r % hosts) for r in range(count)]),
        locations=Locations.of([(r, "Master thread", "cpu", r, 100) for r in range(count)]),
        spans=SpanTable(columns),
        signals=tuple(
            Signal("package_energy", "counter", "J", times, np.cumsum(wave) * (1 + host), host=f"n{host:02d}",
                   device="package 0")
            for host in range(hosts)
        ),
        devices=tuple(Device("package 0", "cpu", f"n{host:02d}") for host in range(hosts)),
        metadata={"name": "ranks"},
    )  # fmt: skip


def streams(
    names: list[str], lengths: int = 10, energy_j: float = 1000.0, readings: int = 50, calls: int = 3
) -> Recording:
    """A GPU with one stream that runs ``names`` one after another, ``calls`` times over; idle before and after."""
    frames = [(name, "hip", "kernel") for name in names]
    rows, at = [], 100
    for _ in range(calls):
        for i in range(len(names)):
            rows.append((at, at + lengths, i, -1))
            at += lengths + 2
    end = at + 100
    times = np.unique(np.linspace(0, end, readings).astype(np.int64))
    return Recording(
        clock=Clock(ticks_per_s=1000, length_ticks=end),
        frames=Frames.of(frames),
        nodes=Nodes.of([(0, "n00", "node")]),
        processes=Processes.of([(0, "Process", "process", 0), (1, "HIP Context 0", "accelerator", 0, 0)]),
        locations=Locations.of([(0, "Master thread", "cpu", 0, 0), (1, "HIP[0:0]", "gpu", 1, 2 * len(rows))]),
        spans=SpanTable({1: spans(rows)} if rows else {}),
        signals=(
            Signal("gpu_energy", "counter", "J", times, times / max(end, 1) * energy_j, host="n00", device="GPU 0"),
            Signal("gpu_busy", "gauge", "%", times, np.full(len(times), 60.0), host="n00", device="GPU 0"),
            Signal("gpu_memory", "gauge", "B", times, np.full(len(times), 3.0 * 2**30), host="n00", device="GPU 0"),
        ),
        devices=(Device("GPU 0", "gpu", "n00"),),
        topology=(Link("n00", "GPU 0", (1,), "made so"),),
        metadata={"name": "streams"},
    )  # fmt: skip
