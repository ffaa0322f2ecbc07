"""Write a small OTF2 trace of a made-up GPU cluster job whose true energy is known: `python make_trace.py FOLDER`.

Two nodes, two ranks each, a GPU per rank. Every time step launches a stencil and a matrix product, then waits for its
neighbours; rank 3 has more to do, so the others wait for it. GPU power follows what runs (idle 90 W), the energy
counters are read every 10 ms, a package counter per node likewise; how busy a GPU is and what it holds, every 50 ms.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

import numpy as np

from wattribute.readers.otf2.writer import LocationWriter, Writer

TICKS_PER_S = 1_000_000_000
MS = TICKS_PER_S // 1000
STEPS, RANKS_PER_NODE, NODES = 60, 2, 2
READ_EVERY, GAUGE_EVERY = 10 * MS, 50 * MS
LENGTH = 6_000 * MS
IDLE_W, STENCIL_W, GEMM_W, COPY_W = 90.0, 310.0, 480.0, 140.0
PACKAGE_W, BUSY_CORE_W = 80.0, 25.0
STENCIL = "void stencil27<double, 256>(double*, double const*, Grid<3>, double)"
GEMM = "Cijk_Ailk_Bljk_DB_MT128x128x16_SE_1LDSB0_APM1_ABV0_ACED0_AF0EM1_AF1EM1_AMAS3_ASAE01_ASCE01"


@dataclass
class Power:
    """Watts over time, as pieces; its integral is the truth."""

    base_w: float
    pieces: list[tuple[int, int, float]] = field(default_factory=list)  # start, end, watts above base

    def energy_uj(self, times: np.ndarray) -> np.ndarray:
        total = times / TICKS_PER_S * self.base_w
        for start, end, watts in self.pieces:
            total += np.clip(times - start, 0, end - start) / TICKS_PER_S * watts
        return np.rint(total * 1e6).astype(np.uint64)


def write(folder: str) -> None:
    """The whole job."""
    with Writer(folder, ticks_per_s=TICKS_PER_S, length_ticks=LENGTH, creator="wattribute demo") as trace:
        regions = {
            name: trace.region(name, paradigm, role)
            for name, paradigm, role in (
                ("main", "compiler", "function"),
                ("read_input", "compiler", "function"),
                ("time_step", "compiler", "function"),
                ("exchange_halo", "compiler", "function"),
                ("hipLaunchKernel", "hip", "function"),
                ("hipStreamSynchronize", "hip", "function"),
                ("MPI_Waitall", "mpi", "point2point"),
                ("MPI_Allreduce", "mpi", "coll_all2all"),
                (STENCIL, "hip", "kernel"),
                (GEMM, "hip", "kernel"),
            )
        }
        machine = trace.node("demo cluster", "machine", domain="machine")
        for number in range(NODES):
            write_node(trace, regions, machine, number)


def write_node(trace: Writer, regions: dict[str, int], machine: int, number: int) -> None:
    host = trace.node(f"gpu{number + 1:02}", "node", machine, "shared_memory")
    package = Power(PACKAGE_W)
    metric_process = -1
    gpus = []
    for local in range(RANKS_PER_NODE):
        rank = number * RANKS_PER_NODE + local
        device = trace.node(
            str(local),
            "ROCm Device",
            host,
            "accelerator_device",
            {"UUID": f"GPU-{rank:04x}", "PCI Bus ID": str(local + 2)},
        )
        process = trace.process(f"MPI Rank {rank}", host)
        context = trace.process(f"HIP Context {local}", device, "accelerator", process)
        metric_process = process if local == 0 else metric_process
        gpu = Power(IDLE_W)
        thread, stream = trace.location("Master thread", process), trace.location(f"HIP[{local}:0]", context, "gpu")
        write_rank(thread, stream, regions, rank, gpu, package)
        gpus.append(gpu)
    for local, gpu in enumerate(gpus):
        energy = trace.member(f"rocm_smi:::energy_count:device={local}")  # real plug-ins declare no unit either
        write_metric(trace, metric_process, host, energy, *counter(gpu))
        busy = trace.member(f"rocm_smi:::busy_percent:device={local}", "%", "absolute_point")
        held = trace.member(f"rocm_smi:::mem_usage_VRAM:device={local}", "B", "absolute_point")
        times = np.arange(0, LENGTH + 1, GAUGE_EVERY)
        write_metric(trace, metric_process, host, busy, times, busy_percent(gpu, times))
        write_metric(trace, metric_process, host, held, times, memory_bytes(local, times))
    write_metric(trace, metric_process, host, trace.member("powercap:::ENERGY_UJ:ZONE0"), *counter(package))


def write_rank(
    thread: LocationWriter, stream: LocationWriter, regions: dict[str, int], rank: int, gpu: Power, package: Power
) -> None:
    """One rank's life: read the input, then time steps that launch, synchronise and exchange."""
    load = (0.97, 1.0, 1.03, 1.3)[rank]
    thread.enter(20 * MS, regions["main"])
    thread.enter(25 * MS, regions["read_input"])
    thread.leave(400 * MS, regions["read_input"])
    package.pieces.append((25 * MS, 400 * MS, BUSY_CORE_W))
    step = 88 * MS
    for number in range(STEPS):
        at = 420 * MS + number * step
        stencil, gemm = int(28 * MS * load), int(22 * MS * load)
        thread.enter(at, regions["time_step"])
        now = at
        for name, length, watts in ((STENCIL, stencil, STENCIL_W), (GEMM, gemm, GEMM_W)):
            thread.enter(now, regions["hipLaunchKernel"])
            thread.leave(now + MS // 2, regions["hipLaunchKernel"])
            begin = now + MS // 2
            stream.enter(begin, regions[name])
            stream.leave(begin + length, regions[name])
            gpu.pieces.append((begin, begin + length, watts - IDLE_W))
            thread.enter(now + MS // 2, regions["hipStreamSynchronize"])
            now = begin + length
            thread.leave(now, regions["hipStreamSynchronize"])
        thread.enter(now, regions["exchange_halo"])
        thread.enter(now + MS, regions["MPI_Waitall"])
        thread.leave(at + step - 4 * MS, regions["MPI_Waitall"])
        thread.leave(at + step - 3 * MS, regions["exchange_halo"])
        thread.enter(at + step - 3 * MS, regions["MPI_Allreduce"])
        thread.leave(at + step - MS, regions["MPI_Allreduce"])
        thread.leave(at + step - MS, regions["time_step"])
        package.pieces.append((at, at + step - MS, BUSY_CORE_W))
    thread.leave(5_900 * MS, regions["main"])


def counter(power: Power) -> tuple[np.ndarray, np.ndarray]:
    """When an energy counter was read, and what it said in µJ; it had counted before the job began."""
    times = np.arange(0, LENGTH + 1, READ_EVERY)
    return times, power.energy_uj(times) + np.uint64(10**12)


def busy_percent(gpu: Power, times: np.ndarray) -> np.ndarray:
    """How much of the time since the last reading a kernel ran."""
    ran = sum(np.clip(times - start, 0, end - start) for start, end, _ in gpu.pieces)
    return np.rint(100 * np.diff(ran, prepend=0) / GAUGE_EVERY).astype(np.uint64)


def memory_bytes(local: int, times: np.ndarray) -> np.ndarray:
    """Filled while the input is read, freed at the end."""
    filled = np.clip((times - 25 * MS) / (375 * MS), 0, 1) * (times < 5_900 * MS)
    return (filled * (48 + 4 * local) * 2**30).astype(np.uint64)


def write_metric(trace: Writer, process: int, host: int, member: int, times: np.ndarray, values: np.ndarray) -> None:
    """An asynchronous metric of a node, as plug-ins record them: on a location of its own."""
    recorder = trace.location("", process, "metric")
    of = trace.metric_class([member], recorder=recorder.number)
    recorder.readings(times, trace.metric_instance(of, recorder.number, "node", host), values)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python make_trace.py FOLDER (which must not exist)")
    write(sys.argv[1])
