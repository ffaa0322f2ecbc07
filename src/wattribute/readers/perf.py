"""What ``perf script`` prints (``perf record -g``) → Recording: one location per thread, its sampled stacks as spans.

A stack holds until the next sample of its thread, but not longer than two usual distances: after that the thread was
not on a CPU. perf's clock counts from some moment in the past: a power log joins by an offset or by marks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..model import Recording
from ..plugins import Selection
from .building import Builder
from .files import Text, start

_HEAD = re.compile(
    r"^(?P<comm>\S.*?)\s+(?:(?P<pid>\d{1,10})/)?(?P<tid>\d{1,10})\s+(?:\[\d+\]\s+)?(?P<s>\d{1,9})\.(?P<f>\d{6,9}):\s+\S"
)
_FRAME = re.compile(r"^\s+[0-9a-f]+ (?P<symbol>.*?)(?:\+0x[0-9a-f]+)?(?: \((?P<file>[^()]*(?:\(deleted\))?)\))?$")
_ALONE_NS = 10**6  # how long the only sample of all threads is taken to hold


@dataclass
class _Sample:
    thread: tuple[str, str, str]  # comm, pid, tid
    time_ns: int
    frames: list[tuple[str, str]] = field(default_factory=list)  # from the leaf on


def detects(path: Path) -> bool:
    """A sample's first line, and a frame below it."""
    lines = [line for line in start(path, 1 << 14).split("\n") if line.strip() and not line.startswith("#")]
    return len(lines) > 1 and bool(_HEAD.match(lines[0])) and bool(_FRAME.match(lines[1].rstrip("\r")))


def read(path: Path, selection: Selection) -> Recording:
    out, text = Builder(path, selection, "perf"), Text(path)
    threads: dict[int, list[tuple[int, list[int]]]] = {}
    for sample in _samples(text, out):
        comm, pid, tid = sample.thread
        process = out.process(pid or tid, f"{comm} [{pid or tid}]", int(pid or tid))
        location = out.thread(tid, process, f"{comm} {tid}", int(tid))
        frames = [out.frame(name, "unknown", "function", file) for name, file in reversed(sample.frames)]
        threads.setdefault(location, []).append((sample.time_ns, frames))
    for seen in threads.values():
        seen.sort(key=lambda one: one[0])
    gaps = np.concatenate([np.diff([at for at, _ in seen]) for seen in threads.values()] or [np.empty(0)])
    usual = int(np.median(gaps[gaps > 0])) if (gaps > 0).any() else _ALONE_NS
    for location, seen in threads.items():
        ends = [at for at, _ in seen[1:]] + [seen[-1][0] + usual]
        held = [(at, min(end, at + 2 * usual), stack) for (at, stack), end in zip(seen, ends, strict=True)]
        out.stacks(location, held)
    out.problems += text.problems
    return out.recording()


def _samples(text: Text, out: Builder) -> Iterator[_Sample]:
    sample: _Sample | None = None
    for line in text.lines():
        if match := _HEAD.match(line):
            if sample is not None:
                yield sample
            fraction = int(match["f"].ljust(9, "0"))
            sample = _Sample((match["comm"], match["pid"] or "", match["tid"]), int(match["s"]) * 10**9 + fraction)
        elif match := _FRAME.match(line):
            if sample is not None:
                name = (
                    match["symbol"]
                    if match["symbol"] != "[unknown]"
                    else f"[{Path(match['file'] or '?').name.strip('[]')}]"
                )
                sample.frames.append((name, match["file"] or ""))
        elif line.strip() and not line.startswith("#"):
            out.counts["lines that are neither a sample nor a frame"] += 1
    if sample is not None:
        yield sample
