"""How fast is attribution on an Arkouda server? Spans per second, next to one thread here and to the same array verbs
on NumPy, from an archive of kernels on streams that share GPUs, and from nested host functions.

The server is named by ``WATTRIBUTE_ARKOUDA=host:port``; without one the other two are shown. Run it with
``python benchmarks/server.py [--spans 2000000] [--folder DIR]``.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np

import wattribute
from wattribute.engines import arkouda
from wattribute.engines.verbs import NumPy
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
    Spans,
    SpanTable,
)

STREAMS, THREADS, FRAMES = 8, 4, 40
TICKS_PER_S = 1_000_000_000


def kernels(draw: np.random.Generator, count: int) -> Spans:
    """One after another, a third of them touching."""
    length = draw.integers(1_000, 200_000, count)
    pause = draw.integers(0, 100_000, count) * (draw.random(count) < 0.66)
    start = np.cumsum(length + pause) - length
    none = np.zeros(count, np.int32)
    frame = draw.integers(0, FRAMES, count).astype(np.int32)
    return Spans(start, start + length, frame, none.astype(np.int64) - 1, none, none.astype(bool))


def functions(draw: np.random.Generator, count: int) -> Spans:
    """Outer calls of three inner ones each."""
    outer = count // 4
    start = np.arange(outer) * 400_000 + draw.integers(0, 1_000, outer)
    inner = start[:, None] + 1_000 + np.arange(3) * 100_000
    starts = np.concatenate([start[:, None], inner], axis=1).ravel()
    ends = np.concatenate([start[:, None] + 350_000, inner + draw.integers(1_000, 90_000, (outer, 3))], axis=1).ravel()
    parent = np.concatenate([np.full((outer, 1), -1), np.repeat(np.arange(outer)[:, None] * 4, 3, axis=1)], axis=1)
    depth = np.tile(np.array([0, 1, 1, 1], np.int32), outer)
    frame = (FRAMES + draw.integers(0, 10, outer * 4)).astype(np.int32)
    return Spans(starts, ends, frame, parent.ravel().astype(np.int64), depth, np.zeros(outer * 4, bool))


def recording(spans: int) -> Recording:
    draw = np.random.default_rng(1)
    columns = {i: kernels(draw, spans // (STREAMS + THREADS)) for i in range(STREAMS)}
    columns |= {STREAMS + i: functions(draw, spans // (STREAMS + THREADS)) for i in range(THREADS)}
    last = max(int(one.end.max()) for one in columns.values())
    times = np.arange(0, last, TICKS_PER_S // 100)

    def counter(name: str, device: str) -> Signal:
        return Signal(name, "counter", "J", times, np.cumsum(draw.integers(1, 5, len(times))), host="n", device=device)

    gpus = [f"GPU {i}" for i in range(STREAMS // 2)]
    return Recording(
        clock=Clock(ticks_per_s=TICKS_PER_S),
        frames=Frames.of([(f"kernel {i}", "hip", "kernel") for i in range(FRAMES)] + [(f"f{i}",) for i in range(10)]),
        nodes=Nodes.of([(0, "n", "node")]),
        processes=Processes.of([(0, "rank 0", "process", 0)]),
        locations=Locations.of(
            [(i, f"stream {i}", "gpu", 0) for i in range(STREAMS)]
            + [(STREAMS + i, f"t{i}", "cpu", 0) for i in range(THREADS)]
        ),
        spans=SpanTable(columns),
        signals=(*(counter(f"energy {name}", name) for name in gpus), counter("package", "package 0")),
        devices=(*(Device(name, "gpu", "n") for name in gpus), Device("package 0", "cpu", "n")),
        topology=(
            *(Link("n", name, (2 * i, 2 * i + 1), "two streams each") for i, name in enumerate(gpus)),
            Link("n", "package 0", tuple(range(STREAMS, STREAMS + THREADS)), "all threads"),
        ),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spans", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the archive is made; the server has to see it")
    options = parser.parse_args()
    where = os.environ.get("WATTRIBUTE_ARKOUDA")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "made.watt"
        made = recording(options.spans)
        count = sum(len(one) for one in made.spans.columns.values())
        wattribute.save(made, path)
        servers = {"local, 1 thread": None, "array verbs on NumPy": arkouda.Server(NumPy(), "here")}
        if where:
            host, _, port = where.rpartition(":")
            servers[f"Arkouda server {where}"] = wattribute.connect(host, int(port))
        for bounds in (False, True):
            expected = None
            for name, server in servers.items():
                arkouda._current = server
                best = np.inf
                for _ in range(options.repeats):
                    began = time.perf_counter()
                    engine = {"engine": "arkouda"} if server else {"threads": 1}
                    found = wattribute.attribute(path, bounds=bounds, **engine)
                    best = min(best, time.perf_counter() - began)
                rows = found.rows.sort("device", "frame")
                expected = rows if expected is None else expected
                apart = float((rows["self_j"] / expected["self_j"] - 1).abs().max())
                told = "with bounds" if bounds else "without bounds"
                print(f"{name:28s} {told:15s} {count / best / 1e6:6.2f} M spans/s   {apart:.0e} from local")
    if not where:
        print("WATTRIBUTE_ARKOUDA=host:port names no server, so none was measured")


if __name__ == "__main__":
    main()
