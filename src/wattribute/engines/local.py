"""The engine of one machine: threads over locations, in one process.

The kernels release the GIL, so threads help with many locations. Results are gathered in location order, so one thread
and ten give the same bits.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from ..attribution.join import Plan, Solved, solve
from ..model import Recording


def run(recording: Recording, plan: Plan, groups: Sequence[Sequence[int]], threads: int | None = None) -> list[Solved]:
    """Solve every group; ``threads`` defaults to the processors this process may use."""
    count = threads if threads is not None else available()
    if count <= 1:
        return [solve(recording, plan, group) for group in groups]
    pool = ThreadPoolExecutor(count)
    try:
        return [solve(recording, plan, group, pool.map) for group in groups]
    finally:  # after Ctrl-C what has not begun does not begin
        pool.shutdown(cancel_futures=True)


def available() -> int:
    """Processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
