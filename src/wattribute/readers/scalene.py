"""Profiles of Scalene (``scalene run -o X.json``) → Recording: a frame per line of code.

Scalene keeps each line's part of the run, no timeline: lines are laid end to end, as long as their part (Python, native
and system time). With a power log a line gets its time × mean power, marked as an estimate.
"""

from __future__ import annotations

from pathlib import Path

from ..errors import FormatError
from ..model import Recording
from ..plugins import Selection
from .building import Builder
from .documents import listed, load, nanoseconds, number
from .files import start

_KEYS = ('"alloc_samples"', '"elapsed_time_sec"', '"entrypoint_dir"', '"max_footprint_mb"', '"n_cpu_percent_python"')
_PARTS = ("n_cpu_percent_python", "n_cpu_percent_c", "n_sys_percent")


def detects(path: Path) -> bool:
    """Keys are sorted, so that most of them stand behind long lists: two of them will do."""
    text = start(path, 1 << 20)
    return text[:1] == "{" and sum(key in text for key in _KEYS) >= 2


def read(path: Path, selection: Selection) -> Recording:
    out = Builder(path, selection, "scalene")
    profile = load(path, out)
    elapsed = nanoseconds(profile.get("elapsed_time_sec"))
    if elapsed is None or elapsed <= 0:
        raise FormatError(path, "does not say how long the program ran (elapsed_time_sec)")
    began = nanoseconds(profile.get("start_time_absolute"))
    location = out.thread(0, out.process(0, str(profile.get("program") or "program")), "profile")
    files = profile.get("files")
    at = began or 0
    for file, about in files.items() if isinstance(files, dict) else ():
        for line in listed(about, "lines"):
            parts = [number(line.get(part, 0)) for part in _PARTS] if isinstance(line, dict) else [None]
            whole = sum(part for part in parts if part is not None)
            if None in parts or not 0 <= whole <= 101:
                out.counts["lines without valid percentages"] += 1
            elif whole > 0:
                where = line.get("lineno")
                where = where if isinstance(where, int) and 0 <= where < 1 << 31 else 0
                name = " ".join(str(line.get("line", "")).split()) or f"line {where}"
                lasts = round(elapsed * whole / 100)
                out.span(location, at, at + lasts, out.frame(name, "python", "line", str(file), where))
                at += lasts
    out.timeless("times")
    return out.recording(None if began is None else 0, {"uncertainty_ns": 1_000_000})
