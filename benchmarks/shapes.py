"""Unusual shapes of recordings at a size and at ten times that size: time, memory, and the exponent between the two.

``python benchmarks/shapes.py [--only RE] [--folder DIR] [--save FILE] [--against FILE] [--limit S]``: archives are
generated once. Each measurement is a process of its own on one thread; time is CPU time, which other programs disturb
less, memory is the peak over the imported interpreter. ``--save`` writes the figures, ``--against`` prints those of an
earlier run beside these.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from helpers import peer
from wattribute.readers.otf2.writer import LocationWriter, Writer

MS = 1_000_000  # ticks
MOST_EXPONENT = 1.15
GPU = "rocm_smi:::energy_count:device={}"
NVML = "nvml:::device=0:energy"  # known to be 100 ms late


def _trace(folder: Path, chunk: int = 1 << 20) -> tuple[Writer, int, int]:
    trace = Writer(folder, event_chunk=chunk)
    node = trace.node("host0", "node", domain="shared_memory")
    return trace, node, trace.process("MPI Rank 0", node)


def _meter(
    trace: Writer, node: int, process: int, name: str, times: Any, values: Any, unit: str = "uJ"
) -> LocationWriter:
    """A METRIC location with one counter."""
    location = trace.location(name, process, "metric")
    metric = trace.metric_class([trace.member(name, unit)])
    location.readings(times, trace.metric_instance(metric, location.number, "node", node), values)
    return location


def _steady(trace: Writer, node: int, process: int, end: int, readings: int = 1000, begin: int = 0) -> None:
    """One counter of 100 W."""
    times = np.linspace(begin, end, readings).astype(np.int64)
    _meter(trace, node, process, GPU.format(0), times, times // 10)


# ------------------------------------------------------------------------------------------------------ what is written


def deep(folder: Path, depth: int) -> None:
    """One stack of that depth, each level a function of its own."""
    trace, node, process = _trace(folder)
    with trace:
        thread = trace.location("thread", process)
        regions = [trace.region(f"level {i}") for i in range(depth)]
        order = np.concatenate([np.arange(depth), np.arange(depth)[::-1]])
        thread.calls(MS * np.arange(2 * depth), np.arange(2 * depth) < depth, np.array(regions)[order])
        _steady(trace, node, process, 2 * depth * MS)


def meters(folder: Path, count: int) -> None:
    """So many METRIC locations of one host, each a counter of a device; four threads."""
    trace, node, process = _trace(folder)
    random = np.random.default_rng(1)
    with trace:
        main = trace.region("main")
        for i in range(4):
            thread = trace.location(f"thread {i}", process)
            thread.enter(0, main)
            thread.leave(100 * MS, main)
        times = np.arange(11) * 10 * MS
        for i in range(count):
            _meter(trace, node, process, f"acme_meter:::energy:{i}", times, random.integers(0, 10**9, 11).cumsum())


def mirrors(folder: Path, count: int) -> None:
    """Counters that differ a little at each of 200 readings, every fiftieth a mirror of the one before."""
    trace, node, process = _trace(folder)
    random = np.random.default_rng(2)
    with trace:
        thread, main = trace.location("thread", process), trace.region("main")
        thread.enter(0, main)
        thread.leave(2000 * MS, main)
        times = np.arange(200) * 10 * MS
        for i in range(count):
            if i % 50 != 1:
                steps = 1_000_000 + random.integers(-100, 100, 200)
            _meter(trace, node, process, f"acme_meter:::energy:{i}", times, 10**9 + steps.cumsum())


def falls(folder: Path, readings: int, every: int, wraps: bool) -> None:
    """A counter that wraps around, or is reset, every so many readings."""
    trace, node, process = _trace(folder)
    with trace:
        thread, main = trace.location("thread", process), trace.region("main")
        thread.enter(0, main)
        thread.leave(readings * MS, main)
        times = MS * np.arange(readings)
        values = np.arange(readings) * (2**32 // every) % 2**32 if wraps else np.arange(readings) % every * 1000
        _meter(trace, node, process, GPU.format(0), times, values.astype(np.uint64))


def orphans(folder: Path, leaves: int) -> None:
    """Leaves of a region that was never entered, on a stack a hundredth as deep."""
    depth = leaves // 100
    trace, node, process = _trace(folder)
    with trace:
        thread, main, other = trace.location("thread", process), trace.region("main"), trace.region("other")
        thread.calls(MS * np.arange(depth), np.ones(depth, bool), np.full(depth, main))
        last = MS * depth
        thread.calls(last + 1000 * np.arange(leaves), np.zeros(leaves, bool), np.full(leaves, other))
        _steady(trace, node, process, last + 1000 * leaves)


def renamed(folder: Path, events: int) -> None:
    """Enters whose leaves name another region: a runtime that renames its tasks while they run."""
    trace, node, process = _trace(folder)
    with trace:
        thread, main = trace.location("thread", process), trace.region("main")
        tasks = np.array([trace.region(f"task {i}") for i in range(100)])
        thread.enter(0, main)
        random = np.random.default_rng(3)
        pairs = events // 2
        regions = np.stack([tasks[random.integers(0, 50, pairs)], tasks[50 + random.integers(0, 50, pairs)]], 1)
        thread.calls(1000 * np.arange(1, 2 * pairs + 1), np.tile([True, False], pairs), regions.ravel())
        thread.leave(1000 * (2 * pairs + 1), main)
        _steady(trace, node, process, 1000 * 2 * pairs)


def ranks(folder: Path, count: int, events: int) -> None:
    """So many ranks, sixteen to a node with a counter, and so many events in all."""
    trace = Writer(folder)
    random = np.random.default_rng(4)
    pairs = events // count // 2
    with trace:
        main = trace.region("main")
        regions = np.array([trace.region(f"function {i}") for i in range(50)])
        metric = trace.metric_class([trace.member(GPU.format(0), "uJ")])
        for rank in range(count):
            if rank % 16 == 0:
                node = trace.node(f"host{rank // 16}", "node", domain="shared_memory")
            process = trace.process(f"MPI Rank {rank}", node)
            thread = trace.location("Master thread", process)
            thread.enter(0, main)
            thread.calls(
                1000 * np.arange(1, 2 * pairs + 1),
                np.tile([True, False], pairs),
                np.repeat(regions[random.integers(0, 50, pairs)], 2),
            )
            thread.leave(1000 * (2 * pairs + 1), main)
            if rank % 16 == 0:
                meter = trace.location("energy", process, "metric")
                times = np.linspace(0, 1000 * (2 * pairs + 1), 100).astype(np.int64)
                meter.readings(times, trace.metric_instance(metric, meter.number, "node", node), times // 10)


def definitions(folder: Path, locations: int = 10, regions: int = 10, metrics: int = 1) -> None:
    """Many of one thing: locations (sixty-four to a process), regions, or metric names."""
    trace, node, process = _trace(folder, 1 << 14)  # a chunk of each location is in memory
    with trace:
        numbers = [trace.region(f"function {i}", file=f"file {i % 1000}.c", line=i) for i in range(regions)]
        end = 100 * MS
        each = max(1, regions // locations)
        for i in range(locations):
            if i and i % 64 == 0:
                process = trace.process(f"MPI Rank {i // 64}", node)
            thread = trace.location(f"thread {i}", process)
            own = np.array(numbers)[np.arange(i * each, (i + 1) * each) % regions]
            times = np.linspace(1, end - 1, 2 * len(own)).astype(np.int64)
            thread.calls(times, np.tile([True, False], len(own)), np.repeat(own, 2))
        _steady(trace, node, process, end, 100)
        recorder = trace.location("counters", process, "metric")
        for i in range(metrics - 1):
            metric = trace.metric_class([trace.member(f"papi::COUNTER_{i}", "#")])
            recorder.readings(
                [i, end - metrics + i], trace.metric_instance(metric, recorder.number, "node", node), [0, i]
            )


def intervals(folder: Path, count: int) -> None:
    """Eight threads that share a counter and begin and end that many outermost spans in all."""
    trace, node, process = _trace(folder)
    random = np.random.default_rng(5)
    each = count // 8
    with trace:
        work = trace.region("work")
        for i in range(8):
            thread = trace.location(f"thread {i}", process)
            times = np.cumsum(random.integers(100, 1000, 2 * each))
            thread.calls(times, np.tile([True, False], each), np.full(2 * each, work))
        _steady(trace, node, process, 1100 * each)


def spread(folder: Path, events: int, covered: bool) -> None:
    """Short spans, and readings that cover all of them, or only the first thousandth."""
    trace, node, process = _trace(folder)
    with trace:
        thread = trace.location("thread", process)
        regions = np.array([trace.region(f"function {i}") for i in range(50)])
        own = np.repeat(regions[np.random.default_rng(6).integers(0, 50, events // 2)], 2)
        thread.calls(1000 * np.arange(1, events + 1), np.tile([True, False], events // 2), own)
        _steady(trace, node, process, 1000 * events // (1 if covered else 1000), 100)


def late(folder: Path, readings: int, name: str) -> None:
    """Two threads share a counter that is read every 10 µs."""
    trace, node, process = _trace(folder)
    random = np.random.default_rng(7)
    with trace:
        work = trace.region("work")
        for i in range(2):
            thread = trace.location(f"thread {i}", process)
            times = np.cumsum(random.integers(10_000, 90_000, readings // 5 // 2 * 2))
            thread.calls(times, np.tile([True, False], len(times) // 2), np.full(len(times), work))
        times = 10_000 * np.arange(readings)
        _meter(trace, node, process, name, times, times // 10)


def hosts(folder: Path, count: int) -> None:
    """So many hosts with a rank and a counter each."""
    trace = Writer(folder, event_chunk=1 << 14)
    with trace:
        main, times = trace.region("main"), np.arange(5) * 25 * MS
        metric = trace.metric_class([trace.member(GPU.format(0), "uJ")])
        for i in range(count):
            node = trace.node(f"host{i}", "node", domain="shared_memory")
            process = trace.process(f"MPI Rank {i}", node)
            thread = trace.location("Master thread", process)
            thread.enter(0, main)
            thread.leave(100 * MS, main)
            meter = trace.location("energy", process, "metric")
            meter.readings(times, trace.metric_instance(metric, meter.number, "node", node), times // 10 * (1 + i % 3))


def gauge(folder: Path, readings: int) -> None:
    """A power gauge whose windows are far longer than the time between its updates, and short spans."""
    trace, node, process = _trace(folder)
    random = np.random.default_rng(9)
    with trace:
        thread, work = trace.location("thread", process), trace.region("work")
        times = np.cumsum(random.integers(10_000, 90_000, readings // 5 * 2))
        thread.calls(times, np.tile([True, False], len(times) // 2), np.full(len(times), work))
        watts = 100_000 + random.integers(0, 1000, readings)
        _meter(trace, node, process, "nvml:::device=0:power", 10_000 * np.arange(readings), watts, "mW")


# ------------------------------------------------------------------------------ what is asked, in a process of its own


def info(anchor: str) -> None:
    import wattribute
    from wattribute.views.description import describe

    describe(wattribute.read(anchor, threads=1), 1)


def attribute(anchor: str, **how: Any) -> None:
    import wattribute

    wattribute.attribute(anchor, threads=1, **how)


def printed(anchor: str) -> None:
    import io

    from rich.console import Console

    import wattribute
    from wattribute.views.console import attribution_tables

    Console(file=io.StringIO(), width=160).print(attribution_tables(wattribute.attribute(anchor, threads=1)))


def curves(anchor: str) -> None:
    import wattribute
    from wattribute.alignment import energy

    recording = wattribute.read(anchor, threads=1)
    for signal in recording.signals:
        energy(signal, recording.clock)


def by_path(anchor: str) -> None:
    attribute(anchor, by=("device", "path"))


def by_process(anchor: str) -> None:
    attribute(anchor, by=("process", "frame"))


@dataclass(frozen=True)
class Shape:
    """A row of the table: what to write at a size, and what to ask of it."""

    name: str
    write: Callable[[Path, int], None]
    size: int
    ask: Callable[[str], None]
    like: str = ""  # the shape whose time per unit of size is compared with
    folder: str = ""  # shapes that ask other questions of the same archive

    def anchor(self, folder: Path, size: int) -> Path:
        where = folder / f"{self.folder or re.sub(r'[^a-z0-9]+', '-', self.name)}-{size}"
        anchor = where / "traces.otf2"
        if not anchor.exists():
            shutil.rmtree(where, ignore_errors=True)
            self.write(where, size)
        return anchor


SHAPES = (
    Shape("attribute by path, a deep stack", deep, 1_000, by_path),
    Shape("metric locations of one host, info", meters, 1_000, info, folder="meters"),
    Shape("metric locations of one host, attribute", meters, 1_000, attribute, folder="meters"),
    Shape("nearly equal counters, info", mirrors, 300, info),
    Shape("readings, a wrap every 10th", lambda folder, n: falls(folder, n, 10, True), 10_000, attribute),
    Shape("readings, a reset every 20th", lambda folder, n: falls(folder, n, 20, False), 10_000, curves),
    Shape("orphan leaves on a deep stack", orphans, 100_000, attribute),
    Shape("leaves that name another region", renamed, 100_000, attribute),
    Shape("events of 16 ranks", lambda folder, n: ranks(folder, 16, n), 1_638_400, by_process),
    Shape(
        "events of 2,048 ranks", lambda folder, n: ranks(folder, 2048, n), 1_638_400, by_process, "events of 16 ranks"
    ),
    Shape("ranks with 1,000 events each", lambda folder, n: ranks(folder, n, 1000 * n), 205, by_process),
    Shape("locations", lambda folder, n: definitions(folder, locations=n), 5_000, attribute),
    Shape("regions", lambda folder, n: definitions(folder, regions=n), 100_000, attribute),
    Shape("metric names", lambda folder, n: definitions(folder, metrics=n), 10_000, attribute),
    Shape("busy intervals of a shared counter", intervals, 400_000, attribute),
    Shape("hosts with a counter each, printed", hosts, 200, printed),
    Shape("updates of a gauge inside its window", gauge, 2_000, attribute),
    Shape("events inside the readings", lambda folder, n: spread(folder, n, True), 400_000, attribute),
    Shape(
        "events outside of the readings",
        lambda folder, n: spread(folder, n, False),
        400_000,
        attribute,
        "events inside the readings",
    ),
    Shape("readings every 10 µs, no latency", lambda folder, n: late(folder, n, GPU.format(0)), 40_000, attribute),
    Shape(
        "readings every 10 µs, latency 100 ms",
        lambda folder, n: late(folder, n, NVML),
        40_000,
        attribute,
        "readings every 10 µs, no latency",
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "wattribute-shapes")
    parser.add_argument("--only", default="", help="shapes whose name matches")
    parser.add_argument("--save", type=Path, help="write the figures to this JSON file")
    parser.add_argument("--against", type=Path, help="figures of an earlier run")
    parser.add_argument("--limit", type=float, default=300, help="seconds until a measurement is given up")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(_measure(given.child[0], given.child[1])))
        return
    before = json.loads(given.against.read_text()) if given.against else {}
    done: dict[str, Any] = {}
    print(
        f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; CPU time of one thread, best of {given.repeats}"
    )
    print(f"{'':42} {'size':>11} {'s':>8} {'×10: s':>8} {'exponent':>8} {'MB':>7} {'×10: MB':>8}")
    for shape in SHAPES:
        if re.search(given.only, shape.name):
            done[shape.name] = _row(shape, given, before.get(shape.name))
            _judge(shape, done)
    if given.save:
        known = json.loads(given.save.read_text()) if given.save.exists() else {}
        given.save.write_text(json.dumps(known | done, indent=1))


def _row(shape: Shape, given: argparse.Namespace, before: Any) -> list[dict[str, float]]:
    sizes = (shape.size, 10 * shape.size)
    found = [_child(shape, shape.anchor(given.folder, size), given) for size in sizes]
    _print(shape.name, shape.size, found)
    if before:
        _print("    before", shape.size, before)
    return found


def _print(name: str, size: int, found: list[dict[str, float]]) -> None:
    (small, big), exponent = found, _exponent(found)
    print(
        f"{name:42} {size:11,} {small['cpu_s']:8.2f} {big['cpu_s']:8.2f} {exponent:8.2f} "
        f"{small['peak_mb']:7.1f} {big['peak_mb']:8.1f}",
        flush=True,
    )


def _exponent(found: list[dict[str, float]]) -> float:
    return math.log10(found[1]["cpu_s"] / found[0]["cpu_s"])


def _judge(shape: Shape, done: dict[str, Any]) -> None:
    exponent = _exponent(done[shape.name])
    if not exponent <= MOST_EXPONENT:
        peer.verdict("exponent", f"{exponent:.2f}", f"≤ {MOST_EXPONENT}", False)
    if shape.like in done:
        times = done[shape.name][1]["cpu_s"] / done[shape.like][1]["cpu_s"]
        peer.verdict(f"against {shape.like}", f"{times:.2f}×", "≤ 1.5×", times <= 1.5)


def _child(shape: Shape, anchor: Path, given: argparse.Namespace) -> dict[str, float]:
    command = [sys.executable, __file__, "--child", shape.name, str(anchor)]
    runs = []
    for _ in range(given.repeats):
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=given.limit)
            runs.append(json.loads(done.stdout.splitlines()[-1]))
        except subprocess.TimeoutExpired:
            runs.append({"cpu_s": math.inf, "wall_s": math.inf, "peak_mb": math.nan})
        except (IndexError, json.JSONDecodeError):
            runs.append({"cpu_s": math.nan, "wall_s": math.nan, "peak_mb": math.nan})
    return min(runs, key=lambda run: run["cpu_s"])


def _measure(name: str, anchor: str) -> dict[str, float]:
    [shape] = [shape for shape in SHAPES if shape.name == name]
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder:  # imports and other firsts are not measured
        ranks(Path(folder) / "small", 2, 400)
        shape.ask(str(Path(folder) / "small" / "traces.otf2"))
    before, wall, cpu = _peak_bytes(), time.perf_counter(), time.process_time()
    shape.ask(anchor)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return {"cpu_s": cpu, "wall_s": wall, "peak_mb": (_peak_bytes() - before) / 1e6}


def _peak_bytes() -> int:
    """The most memory held so far."""
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main()
