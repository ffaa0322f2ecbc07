"""One piece of work of a benchmark in a process of its own: what it took, printed as JSON, imports apart.

usage: python benchmarks/helpers/work.py TASK ANCHOR SMALL THREADS; the tasks are the functions below. SMALL is an
archive that the task is tried on first, so that imports and other firsts are not measured.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

BEGIN = time.perf_counter()
CHUNK = 1 << 20
SLICE = 60_000  # events for a reader that does 0.2 million a second


def read(anchor: str, threads: int) -> int:
    """Every span and every reading of the archive as columns, all of them kept."""
    import wattribute

    recording = wattribute.read(anchor, threads=threads)
    source = recording.spans
    kept = source.each_batch(source.locations(), source.spans_of, threads)
    readings = sum(len(signal.times) for signal in recording.signals)
    return 2 * sum(len(spans) for spans in kept.values()) + readings


def one_user(anchor: str, threads: int) -> int:
    """Energy per process and frame where each rank has a counter of its own; no bounds."""
    import wattribute

    ranks = len(list(Path(anchor).with_suffix("").glob("*.evt"))) // 2
    maps = [f"device={rank}$ -> MPI Rank {rank}" for rank in range(ranks)]
    return _events(wattribute.attribute(anchor, by=("process", "frame"), bounds=False, maps=maps, threads=threads))


def shared(anchor: str, threads: int, by: tuple[str, ...] = ("process", "frame")) -> int:
    """Energy per process and frame as it comes: one counter that all ranks share, with bounds."""
    import wattribute

    return _events(wattribute.attribute(anchor, metric="device=0$", by=by, threads=threads))


def shared_by_path(anchor: str, threads: int) -> int:
    return shared(anchor, threads, ("process", "path"))


def shared_numpy(anchor: str, threads: int) -> int:
    """The same as ``shared``, decoded by C to columns and rolled up by NumPy."""
    from types import SimpleNamespace

    from wattribute._core import otf2, reference, reference_otf2

    def busy(files: Any, tables: Any) -> dict[str, Any]:
        spans = otf2.decode(files, tables, metrics=False)
        start, end = reference.busy(SimpleNamespace(**spans))
        return spans | {"start": start, "end": end}

    def fold(files: Any, tables: Any, curves: Any, keys: Any) -> dict[str, Any]:
        spans = otf2.decode(files, tables, metrics=False)
        told = {name: spans[name] for name in ("counts", "program", "nesting", "undefined", "backward", "status")}
        return reference.fold(SimpleNamespace(**spans), curves, keys) | told

    def fold_many(many: Any, tables: Any, curves: Any, keys: Any, expected: Any, entered_only: bool) -> Any:
        return reference_otf2.fold_many(many, tables, curves, keys, entered_only)

    def guess_busy(many: Any, tables: Any) -> list[None]:
        return [None] * len(many.ids)  # a guess is for the fused path to verify

    reference_otf2.fold = fold
    otf2.busy, otf2.fold_many, otf2.guess_busy = busy, fold_many, guess_busy
    return shared(anchor, threads)


def convert(anchor: str, threads: int) -> int:
    """The archive as Parquet, in a folder beside it that is removed again."""
    import shutil

    import wattribute
    from wattribute.archive import save

    out = Path(anchor).with_suffix(f".{os.getpid()}.watt")
    try:
        recording = wattribute.read(anchor, threads=threads)
        save(recording, out, threads)
    finally:
        shutil.rmtree(out, ignore_errors=True)
    return sum(recording.spans.events.values())


def floor(anchor: str, threads: int) -> int:
    """read() of the same files, and nothing else."""
    buffer = bytearray(CHUNK)
    for path in sorted(Path(anchor).with_suffix("").glob("*.evt")):
        with path.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass
    return 0


def pypi(anchor: str, threads: int) -> int:
    """PyPI otf2, the first events it gives (``threads`` is not for it)."""
    import otf2

    with otf2.reader.open(anchor) as trace:
        for seen, (_, event) in enumerate(trace.events):
            if event.time < 0 or seen + 1 == SLICE:
                return seen + 1
    return 0


def _events(attribution: Any) -> int:
    return sum(attribution.recording.spans.events.values())


def measure(task: Callable[[str, int], int], anchor: str, threads: int, small: str) -> dict[str, float]:
    task(small, threads)  # imports what the work needs, where it needs it
    imports_s, before = time.perf_counter() - BEGIN, _peak_bytes()
    wall, cpu = time.perf_counter(), time.process_time()
    events = task(anchor, threads)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = _peak_bytes() - before
    return {"events": events, "wall_s": wall, "cpu_s": cpu, "peak_bytes": peak, "imports_s": imports_s}


def _peak_bytes() -> int:
    """The most memory held so far. (``ru_maxrss`` would begin with what the parent process held.)"""
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    name, given, few, count = sys.argv[1:]
    print(json.dumps(measure(globals()[name], given, int(count), few)))
