"""Recordings made by hand for pictures: ranks with deep stacks, GPUs with streams, and awkward ones."""

from __future__ import annotations

import numpy as np

from wattribute.model import Frames, Recording
from wattribute.testing.recordings import RecordingBuilder

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
    made = RecordingBuilder(1000, length_ticks=1000, name="ranks").node("cluster")
    made.frames(*((name, "compiler", "function") for name in ("main", "solve")))
    made.frames(("MPI_Allreduce", "mpi", "coll_all2all"), ("MPI_Barrier", "mpi", "barrier"), ("write", "io", "file_io"))
    made.frames(*((f"level_{i}", "compiler", "function") for i in range(depth)))
    for host in range(hosts):
        made.host(f"n{host:02d}")
    for rank in range(count):
        rows = [(0, 1000, "main"), (20, 980, "solve")]
        for begin in range(30, 950, 230):
            rows += [(begin + level, begin + 150 - level, f"level_{level}") for level in range(depth)]
            late = begin + 170 + 5 * (rank % 7)
            rows += [(begin + 150, late, "MPI_Allreduce"), (late, begin + 200, "MPI_Barrier")]
            rows.append((begin + 200, begin + 210, "write"))
        made.host(f"n{rank % hosts:02d}").process(f"MPI Rank {rank}").thread(rows, "Master thread")
    times = np.arange(0, 1001, 5)
    wave = power_w * (1 + 0.5 * np.sin(times / 40)) * 0.005
    for host in range(hosts):
        made.host(f"n{host:02d}").counter("package 0", np.cumsum(wave) * (1 + host), times, name="package_energy")
    return made.recording()


def streams(
    names: list[str], lengths: int = 10, energy_j: float = 1000.0, readings: int = 50, calls: int = 3
) -> Recording:
    """A GPU with one stream that runs ``names`` one after another, ``calls`` times over; idle before and after."""
    starts = [100 + i * (lengths + 2) for i in range(calls * len(names))]
    rows = [(at, at + lengths, i % len(names)) for i, at in enumerate(starts)]
    end = 200 + len(rows) * (lengths + 2)
    times = np.unique(np.linspace(0, end, readings).astype(np.int64))
    made = RecordingBuilder(1000, length_ticks=end, name="streams").host("n00").process("Process")
    made.thread(name="Master thread").stream(rows or None, "HIP[0:0]", context="HIP Context 0").link("GPU 0", 1)
    made.counter("GPU 0", times / max(end, 1) * energy_j, times, name="gpu_energy")
    made.gauge("GPU 0", np.full(len(times), 60.0), times, name="gpu_busy", unit="%")
    made.gauge("GPU 0", np.full(len(times), 3.0 * 2**30), times, name="gpu_memory", unit="B")
    return made.recording(frames=Frames.of([(name, "hip", "kernel") for name in names]))
