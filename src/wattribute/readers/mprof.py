"""Logs of memory_profiler (``mprof run``) → Recording: resident memory over time, functions marked with @profile."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .. import sensors
from ..model import Recording
from ..plugins import Selection
from .building import Builder
from .documents import nanoseconds
from .files import Text, start

_WORDS = {"CMDLINE": 1, "MEM": 2, "CHLD": 3, "FUNC": 5}  # and how many fields follow at least


def detects(path: Path) -> bool:
    """The command line, then rows of memory."""
    lines = [line.split() for line in start(path, 1 << 13).split("\n")[:8] if line.strip()]
    return len(lines) > 1 and lines[0][0] == "CMDLINE" and lines[1][0] in _WORDS


def read(path: Path, selection: Selection) -> Recording:
    out, text = Builder(path, selection, "mprof"), Text(path)
    memory: dict[str, list[tuple[int, float]]] = {}
    process = location = -1
    for line in text.lines():
        word, *rest = line.split(" ") if line.strip() else [""]
        if word == "CMDLINE":
            out.metadata["command"] = rest
            process = out.process(0, " ".join(rest) or "program")
            location = out.thread(0, process, "main")
            continue
        try:
            if word in ("MEM", "CHLD"):
                who = "" if word == "MEM" else f" child {rest[0]}"
                value, at = (float(cell) for cell in rest[word == "CHLD" :][:2])
                time = nanoseconds(at)
                if time is None or not np.isfinite(value):
                    raise ValueError
                memory.setdefault(who, []).append((time, value))
            elif word == "FUNC":
                begins, ends = nanoseconds(float(rest[2])), nanoseconds(float(rest[4]))
                if begins is None or ends is None or ends < begins:
                    raise ValueError
                out.span(location, begins, ends, out.frame(rest[0], "python", "function"))
            elif word:
                raise ValueError
        except (ValueError, IndexError):
            out.counts["lines that are cut or no reading"] += 1
    for who, readings in memory.items():
        times, values = zip(*readings, strict=True)
        out.signal(f"memory resident{who}", times, np.array(values), sensors.Declaration("gauge", "MiB"))
    out.problems += text.problems
    return out.recording(0, {"uncertainty_ns": 1_000_000})
