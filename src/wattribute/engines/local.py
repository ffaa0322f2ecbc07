"""The engine of one machine: threads over groups, and over the locations of a large group, in one process.

The kernels release the GIL, so threads help with many locations. Sums are exact, so one thread and ten give the same
bits.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from ..attribution.join import GroupResult, users
from ..errors import OptionError
from .tasks import events_of
from .work import EngineResult, Work, reduce, solve, together


def run(work: Work) -> EngineResult:
    """Solve every group; ``threads`` defaults to the processors this process may use."""
    if work.where:
        raise OptionError(f"engine 'local' is this machine and takes no address ({work.where!r})")
    count = work.threads if work.threads is not None else available()
    if count <= 1:
        return EngineResult(reduce(work, (solve(work, group) for group in together(work, work.groups))))
    pool = ThreadPoolExecutor(count)
    try:
        return EngineResult(reduce(work, _solved(work, pool, count)))
    finally:  # after Ctrl-C what has not begun does not begin
        pool.shutdown(cancel_futures=True)


def _solved(work: Work, pool: ThreadPoolExecutor, count: int) -> Iterator[GroupResult]:
    """The groups that one thread would still work on while the others are done, by all threads; then one per thread."""
    members = [users(work.plan, group) for group in work.groups]
    weights = [events_of(work.recording, locations) for locations in members]
    most = sum(weights) // (2 * count)
    small: list[tuple[int, ...]] = []
    for group, locations, weight in zip(work.groups, members, weights, strict=True):
        if weight > most and len(locations) > 1:
            yield solve(work, group, pool.map)
        else:
            small.append(group)
    running = deque[Future[GroupResult]]()
    for group in together(work, small):
        running.append(pool.submit(solve, work, group))
        if len(running) > 2 * count:  # no more are held than threads need
            yield running.popleft().result()
    while running:
        yield running.popleft().result()


def available() -> int:
    """Processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
