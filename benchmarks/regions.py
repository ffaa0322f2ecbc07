"""What a region costs: nothing recording, recording, in an asyncio task; against a bare ``with`` of nothing.

Run it with ``python benchmarks/regions.py [--count 200000]``; prints ns per region, the best of a hundred rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from wattribute import region
from wattribute.recorders import regions


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


async def in_task(count: int) -> float:
    return best_ns(lambda: region("x"), count)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200_000)
    count = parser.parse_args().count
    rows = [("contextlib.nullcontext", best_ns(contextlib.nullcontext, count))]
    rows.append(("region, nothing records", best_ns(lambda: region("x"), count)))
    with tempfile.TemporaryDirectory() as folder:
        regions.start(folder)
        rows.append(("region, recorded", best_ns(lambda: region("x"), count)))
        rows.append(("region, recorded, in a task", asyncio.run(in_task(count))))
        regions.stop()
    for name, ns in rows:
        print(f"{name:30s} {ns:8.0f} ns  {ns / rows[0][1]:5.1f} ×")


if __name__ == "__main__":
    main()
