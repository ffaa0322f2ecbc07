"""A recording worked out by hand for the page's tests: two ranks, two streams, one GPU counter, hostile names."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction

import numpy as np

from tests.recordings import spans
from wattribute.model import Clock, Device, Frames, Link, Locations, Nodes, Processes, Recording, Signal, SpanTable

SECOND = 1000  # ticks
HOSTILE = "<script>alert(1)</script>"


def recording(kernels: int = 4, length_s: int = 10) -> Recording:
    """Rank 0's stream runs ``kernels`` kernels back to back up to 8 s; a counter at 100 W, then 300 W."""
    frames = Frames.of(
        [
            ("main", "user", "function", "main.c", 3),
            (HOSTILE, "user", "function"),
            ("MPI_Waitall", "mpi", "wait"),
            ("heavy_kernel(float*, float const*)", "hip", "kernel"),
            ("计算能量", "hip", "kernel"),
        ]
    )
    nodes = Nodes.of([(0, "node01", "node", -1)])
    processes = Processes.of(
        [(0, "MPI Rank 0", "process", 0), (1, "MPI Rank 1", "process", 0), (2, "HIP Context 0", "accelerator", 0, 0)]
    )
    locations = Locations.of(
        [
            (0, "Master thread", "cpu", 0),
            (1, "Master thread", "cpu", 1),
            (2, "HIP[0:1]", "gpu", 2),
            (3, "idle", "gpu", 2),
        ]
    )
    host = spans([(0, 10000, 0, -1), (1000, 4000, 1, 0), (4000, 9000, 2, 0)])
    edges = np.linspace(0, 8000, kernels + 1).round().astype(int).tolist()
    stream = spans([(edges[i], edges[i + 1], 3 + i % 2, -1) for i in range(kernels)])
    times = np.arange(0, 10001, 500, dtype=np.int64)
    joules = np.where(times <= 5000, times * 100, 500_000 + (times - 5000) * 300)  # mJ: 100 W, then 300 W
    counter = Signal("hip:::energy:device=0", "counter", "J", times, joules, Fraction(1, 1000), "node01", "GPU 0", 3)
    return Recording(
        Clock(SECOND, 0, length_s * SECOND),
        frames,
        nodes,
        processes,
        locations,
        SpanTable({0: host, 1: host, 2: stream}),
        (counter,),
        (Device("GPU 0", "gpu", "node01"),),
        (Link("node01", "GPU 0", (2,), "given"),),
        metadata={"name": f"two ranks {HOSTILE}"},
    )


def start(*arguments: object) -> tuple[subprocess.Popen[str], str]:
    """``wattribute view`` as people run it, and the address it printed."""
    command = [sys.executable, "-m", "wattribute", "view", *(str(argument) for argument in arguments), "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    assert address.startswith("http://"), process.communicate()
    return process, address
