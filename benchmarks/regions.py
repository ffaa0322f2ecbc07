"""What a region costs, and how wrong its joules are on RAPL.

Cost: nothing recording, recording, with RAPL read at edges, in an asyncio task; against a bare ``with`` of nothing, the
best of a hundred rounds. Error: two alternating regions of 78 and 30 W on a simulated powercap counter that moves every
millisecond (simulated clock, the rest is real), with the readings at edges and without.
Run it with ``python benchmarks/regions.py [--count 200000] [--lengths 20,50,100]``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import wattribute
from wattribute import region
from wattribute.journal.layouts import COUNTERS
from wattribute.recorders import regions
from wattribute.testing.edges import alternating


def best_ns(make: Callable[[], AbstractContextManager[Any]], count: int) -> float:
    """The least of a hundred means: what else runs on the machine only adds."""
    means = []
    for _ in range(100):
        begin = time.perf_counter_ns()
        for _ in range(count // 100):
            with make():
                pass
        means.append((time.perf_counter_ns() - begin) / (count // 100))
    return min(means)


def best_count_ns(count: int) -> float:
    """The same of a count."""
    means = []
    for _ in range(100):
        begin = time.perf_counter_ns()
        for _ in range(count // 100):
            wattribute.count("tokens", 3)
        means.append((time.perf_counter_ns() - begin) / (count // 100))
    return min(means)


def errors(length_s: float, edges: bool) -> dict[str, float]:
    """By region, how wrong its joules are: attributed ÷ true − 1."""
    with tempfile.TemporaryDirectory() as folder:
        made = alternating(Path(folder), length_s, edges)
    rows = wattribute.attribute(made.recording, by=("frame",)).rows
    said = dict(zip(rows["frame"].to_list(), rows["total_j"].to_list(), strict=True))
    return {name: said[name] / true_j - 1 for name, true_j in made.true_j.items()}


async def in_task(count: int) -> float:
    return best_ns(lambda: region("x"), count)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200_000)
    parser.add_argument("--lengths", default="20,50,100", help="ms, of the regions whose error is printed")
    arguments = parser.parse_args()
    count = arguments.count
    rows = [("contextlib.nullcontext", best_ns(contextlib.nullcontext, count))]
    rows.append(("region, nothing records", best_ns(lambda: region("x"), count)))
    with tempfile.TemporaryDirectory() as folder:
        regions.start(folder)
        rows.append(("region, recorded", best_ns(lambda: region("x"), count)))
        rows.append(("region, recorded, in a task", asyncio.run(in_task(count))))
        rows.append(("count, recorded", best_count_ns(count)))
        regions.stop()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "energy_uj").write_text("00000000000000000001\n")
        (Path(folder) / COUNTERS).write_text(f"{folder}/energy_uj\n")
        regions.start(folder)
        rows.append(("region, counter at edges", best_ns(lambda: region("x"), count)))
        regions.stop()
    for name, ns in rows:
        print(f"{name:30s} {ns:8.0f} ns  {ns / rows[0][1]:5.1f} ×")
    for length_ms in map(float, filter(None, arguments.lengths.split(","))):
        for how, edges in (("sampler only", False), ("at edges, too", True)):
            wrong = errors(1.0137 * length_ms / 1e3, edges)  # at every phase of readings and updates
            print(f"{length_ms:4.0f} ms on RAPL, {how:14s} " + "  ".join(f"{k} {v:+.1%}" for k, v in wrong.items()))


if __name__ == "__main__":
    main()
