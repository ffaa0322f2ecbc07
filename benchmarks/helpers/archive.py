"""A generated OTF2 archive for the benchmarks: ranks with nested calls, each beside a metric location with an energy
counter; id maps and clock offsets in every location.

All ranks repeat the same random iteration, as solvers do; the times between calls are random.
"""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path

import numpy as np

from wattribute.readers.otf2.writer import LocationWriter, Writer

REGIONS = 200
NODE_RANKS = 16  # each with a device of its own
BLOCK = 4_000  # events of an iteration, even
DEEPEST = 8
GAP_TICKS = 20_000  # mean time between two events: 20 µs
READING_TICKS = 10_000_000  # 100 Hz
OFFSET_TICKS = 10**17  # times beyond 2^53, as real clocks have them


def iteration(random: np.random.Generator, events: int) -> tuple[np.ndarray, np.ndarray]:
    """The calls of one iteration, the same in every rank: (entering, region)."""
    entering, regions, stack = np.empty(events, bool), np.empty(events, np.int64), []
    level = (REGIONS - 1) // DEEPEST  # every depth has functions of its own
    coin, pick = random.random(events), (level * random.random(events) ** 2).astype(int)
    for i in range(events):
        if len(stack) < events - i and (not stack or (len(stack) < DEEPEST and coin[i] < 0.5)):
            stack.append(1 + len(stack) * level + int(pick[i]))
            entering[i], regions[i] = True, stack[-1]
        else:
            entering[i], regions[i] = False, stack.pop()
    return entering, regions


def write_clock(location: LocationWriter, start: int, end: int, random: np.random.Generator) -> None:
    """A clock that is microseconds off and drifts by parts in a million, as measured three times."""
    offset, drift = random.uniform(-5000, 5000), random.uniform(-5e-6, 5e-6)
    for moment in (start, (start + end) // 2, end):
        location.clock_offset(moment, int(offset + drift * (moment - start) + random.uniform(-20, 20)))


def write_rank(
    trace: Writer,
    rank: int,
    process: int,
    repeats: int,
    calls: tuple[np.ndarray, np.ndarray],
    random: np.random.Generator,
) -> tuple[LocationWriter, int]:
    """main around iterations; returns the location and the raw time at which it ended."""
    location = trace.location("Master thread", process)
    entering, regions = calls
    shuffled = random.permutation(REGIONS)
    location.map_ids("region", {i: int(shuffled[i]) for i in range(REGIONS)})
    local = np.argsort(shuffled)  # global id → the rank's own
    start = time = OFFSET_TICKS + rank * 1000
    location.enter(time, int(local[0]))
    for _ in range(repeats):
        times = time + np.cumsum(random.integers(1, 2 * GAP_TICKS, len(entering)))
        location.calls(times, entering, local[regions])
        time = int(times[-1])
    location.leave(time + 5, int(local[0]))
    write_clock(location, start, time, random)
    return location, time


def write_link(trace: Writer, rank: int, process: int, count: int, end: int, random: np.random.Generator) -> int:
    """A rank whose event file will be another's, which has ``count`` events; returns its number."""
    location = trace.location("Master thread", process)
    shuffled = random.permutation(REGIONS)
    location.map_ids("region", {i: int(shuffled[i]) for i in range(REGIONS)})
    location._events.count = count  # what the definitions will declare
    write_clock(location, OFFSET_TICKS + rank * 1000, end, random)
    return location.number


def write_meter(
    trace: Writer, rank: int, process: int, node: int, metric: int, end: int, random: np.random.Generator, every: int
) -> None:
    location = trace.location("energy", process, "metric")
    instance = trace.metric_instance(metric, location.number, "node", node)
    start = OFFSET_TICKS + rank * 1000
    times = np.arange(start - 10 * every, end + 10 * every, every)
    location.map_ids("metric", {0: instance})
    microjoules = np.cumsum(random.integers(500_000, 4_000_000, len(times))) + 10**13
    location.readings(times, 0, microjoules)
    write_clock(location, start, end, random)


def generate(
    folder: Path,
    ranks: int = 16,
    events: int = 1_000_000,
    distinct: int | None = None,
    reading_ticks: int = READING_TICKS,
) -> Path:
    """An archive of that many ranks with that many enters and leaves each; made once, kept until it is deleted.

    Only the first ``distinct`` ranks have events of their own; the others' event files are links to these. Their id
    maps and clocks are their own, so that the same bytes mean other functions at other times.
    """
    anchor = folder / "traces.otf2"
    if anchor.exists():
        return anchor
    shutil.rmtree(folder, ignore_errors=True)
    random = np.random.default_rng(ranks)
    size = min(BLOCK, events)
    calls = iteration(random, size)
    own: list[tuple[LocationWriter, int]] = []
    linked: dict[int, int] = {}
    with Writer(folder, offset_ticks=OFFSET_TICKS) as trace:
        for i in range(REGIONS):
            trace.region(f"function {i}")
        devices = [trace.member(f"A2rocm_smi:::energy_count:device={i}", "uJ") for i in range(NODE_RANKS)]
        metrics = [trace.metric_class([member]) for member in devices]
        for rank in range(ranks):
            if rank % NODE_RANKS == 0:
                node = trace.node(f"host{rank // NODE_RANKS}", "node", domain="shared_memory")
            process = trace.process(f"MPI Rank {rank}", node)
            if distinct is None or rank < distinct:
                location, end = write_rank(trace, rank, process, events // size, calls, random)
                own.append((location, end))
            else:
                model, end = own[rank % distinct]
                count = events // size * size + 2  # and main
                linked[write_link(trace, rank, process, count, end, random)] = model.number
            write_meter(trace, rank, process, node, metrics[rank % NODE_RANKS], end, random, reading_ticks)
    for number, model_number in linked.items():
        (folder / "traces" / f"{number}.evt").unlink()
        os.link(folder / "traces" / f"{model_number}.evt", folder / "traces" / f"{number}.evt")
    return anchor


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ranks", type=int, default=16)
    parser.add_argument("--events", type=int, default=1_000_000)
    given = parser.parse_args()
    print(generate(given.folder, given.ranks, given.events))
