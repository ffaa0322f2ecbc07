"""A recording worked out by hand for the page's tests: two ranks, two streams, one GPU counter, hostile names."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction

import numpy as np

from wattribute.model import Recording
from wattribute.testing.recordings import RecordingBuilder

SECOND = 1000  # ticks
HOSTILE = "<script>alert(1)</script>"


def recording(kernels: int = 4, length_s: int = 10) -> Recording:
    """Rank 0's stream runs ``kernels`` kernels back to back up to 8 s; a counter at 100 W, then 300 W."""
    made = RecordingBuilder(SECOND, length_ticks=length_s * SECOND, name=f"two ranks {HOSTILE}").host("node01")
    made.frames(("main", "user", "function", "main.c", 3), (HOSTILE, "user", "function"))
    made.frames(("MPI_Waitall", "mpi", "wait"))
    host = f"main 0s..10s, {HOSTILE} 1s..4s, MPI_Waitall 4s..9s"
    made.process("MPI Rank 0").process("MPI Rank 1").process("MPI Rank 0").thread(host, "Master thread")
    made.process("MPI Rank 1").thread(host, "Master thread").process("MPI Rank 0")
    edges = np.linspace(0, 8000, kernels + 1).round().astype(int).tolist()
    names = ("heavy_kernel(float*, float const*)", "计算能量")
    rows = [(edges[i], edges[i + 1], names[i % 2]) for i in range(kernels)]
    made.stream(rows, "HIP[0:1]", context="HIP Context 0").stream(name="idle").link("GPU 0", 2)
    times = np.arange(0, 10001, 500)
    joules = np.where(times <= 5000, times * 100, 500_000 + (times - 5000) * 300)  # mJ: 100 W, then 300 W
    made.counter("GPU 0", joules, times, name="hip:::energy:device=0", scale=Fraction(1, 1000), location=3)
    return made.recording()


def start(*arguments: object) -> tuple[subprocess.Popen[str], str]:
    """``wattribute view`` as people run it, and the address it printed."""
    command = [sys.executable, "-m", "wattribute", "view", *(str(argument) for argument in arguments), "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    assert address.startswith("http://"), process.communicate()
    return process, address
