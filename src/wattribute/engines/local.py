"""The engine of one machine: threads over locations, in one process.

The kernels release the GIL, so threads help with many locations. Sums are exact, so one thread and ten give the same
bits.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

from ..errors import OptionError
from .work import EngineResult, Work, reduce, solve


def run(work: Work) -> EngineResult:
    """Solve every group; ``threads`` defaults to the processors this process may use."""
    if work.where:
        raise OptionError(f"engine 'local' is this machine and takes no address ({work.where!r})")
    count = work.threads if work.threads is not None else available()
    if count <= 1:
        return EngineResult(reduce(work, (solve(work, group) for group in work.groups)))
    pool = ThreadPoolExecutor(count)
    try:
        return EngineResult(reduce(work, (solve(work, group, pool.map) for group in work.groups)))
    finally:  # after Ctrl-C what has not begun does not begin
        pool.shutdown(cancel_futures=True)


def available() -> int:
    """Processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
