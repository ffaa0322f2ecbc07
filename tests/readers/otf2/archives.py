"""Archives made by the project's own writer, for tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wattribute.readers.otf2.writer import Writer

CALLS = 30_000  # enough for several chunks of 256 KiB
READINGS = 50_000


def rich(folder: Path, calls: int = CALLS, readings: int = READINGS) -> Path:
    """Two ranks on two hosts, a stream with a kernel and a copy, id maps, clock offsets, metrics of every type."""
    with Writer(folder, event_chunk=1 << 18) as trace:
        machine = trace.node("cluster", "machine")
        hosts = [trace.node(f"host{n}", "node", machine, "shared_memory") for n in range(2)]
        gpu = trace.node("0", "ROCm Device", hosts[0], "accelerator_device", {"PCI Bus ID": "2"})
        ranks = [trace.process(f"MPI Rank {n}", host) for n, host in enumerate(hosts)]
        context = trace.process("HIP Context 0", gpu, "accelerator", ranks[0])
        threads = [trace.location("Master thread", rank) for rank in ranks]
        stream = trace.location("HIP[0:0]", context, "gpu")
        meter = trace.location("", ranks[0], "metric", number=1 << 32)
        main, work = trace.region("main", file="a.c", line=3), trace.region("work")
        kernel = trace.region("kernel(float*)", "hip", "kernel")
        energy = trace.member("A2rocm_smi:::energy_count:device=0")
        heat, drift = (
            trace.member("heat", "°C", "absolute_point", "double"),
            trace.member("drift", "J", "relative_last", "int64", -3),
        )
        counter = trace.metric_instance(trace.metric_class([energy]), meter.number, "node", hosts[0])
        mixed = trace.metric_class([energy, heat, drift], "strict", threads[0].number)
        window = trace.window("HIP_WINDOW", [threads[0].number, stream.number])

        threads[0].enter(10, main)
        threads[0].metric(10, mixed, 5, 1.5, -7)
        times = np.arange(20, 20 + 4 * calls, 2)
        threads[0].calls(times, np.tile([True, False], calls), np.full(2 * calls, work))
        threads[0].metric(200_000, mixed, 2**63, float("-inf"), 7)
        threads[0].leave(200_000, main)

        threads[1].map_ids("region", {0: work, 1: kernel, 9: main})
        threads[1].clock_offset(0, 5)
        threads[1].clock_offset(1_000, 15)
        threads[1].enter(100, 9)
        threads[1].enter(200, 0)
        threads[1].leave(300, 0)
        threads[1].leave(900, 9)

        stream.enter(20, kernel)
        stream.leave(30, kernel)
        stream.event(40, "RmaPut", window, 0, 1024, 1)
        stream.event(50, "RmaOpCompleteBlocking", window, 1)
        meter.readings(np.arange(readings) * 4, counter, np.arange(readings, dtype=np.uint64) ** 3)
        trace.location("never used", ranks[1])
    return folder
