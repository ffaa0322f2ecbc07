"""Sessions of pyinstrument (``pyinstrument -r pyisession -o X.pyisession``, ``Session.save``) → Recording.

A session is a list of (stack, how long it was seen) in the order of time, from a wall-clock start: stacks become spans,
and what two stacks in a row have in common goes on. Frames below the profiled code are pyinstrument's own and left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..model import Recording
from ..plugins import Selection
from .building import Builder
from .documents import listed, load, nanoseconds
from .files import start

_KEYS = ('"start_call_stack"', '"sample_count"', '"min_interval"')


def detects(path: Path) -> bool:
    text = start(path)
    return text[:1] == "{" and all(key in text for key in _KEYS)


def read(path: Path, selection: Selection) -> Recording:
    """One location per thread."""
    out = Builder(path, selection, "pyinstrument")
    session = load(path, out)
    began = nanoseconds(session.get("start_time"))
    at = began or 0
    below = [_parts(frame)[:3] for frame in listed(session, "start_call_stack") if isinstance(frame, str)]
    process = out.process(0, str(session.get("target_description") or "program"))
    seen: dict[tuple[str, str], list[tuple[int, int, list[int]]]] = {}
    for record in listed(session, "frame_records"):
        lasts = nanoseconds(record[1]) if isinstance(record, list) and len(record) > 1 else None
        if lasts is None or lasts < 0 or not isinstance(record[0], list):
            out.counts["records without a stack or a valid time"] += 1
            continue
        thread, frames = _stack(out, [_parts(frame) for frame in record[0] if isinstance(frame, str)], below)
        seen.setdefault(thread, []).append((at, at + lasts, frames))
        at += lasts
    for (name, key), stacks in seen.items():
        out.stacks(out.thread(key, process, name, int(key) if key.isdigit() else 0), stacks)
    out.metadata["cpu_s"] = session.get("cpu_time")
    return out.recording(None if began is None else 0, {"uncertainty_ns": 1_000_000})


def _parts(frame: str) -> tuple[str, str, str]:
    """(name, file, line) of ``name\\0file\\0line\\1attributes``."""
    name, _, rest = frame.partition("\1")[0].partition("\0")
    file, _, line = rest.partition("\0")
    return name, file, line


def _stack(
    out: Builder, frames: list[tuple[str, str, str]], below: list[tuple[str, str, str]]
) -> tuple[tuple[str, str], list[int]]:
    """((thread's name, its id), rows of frames above pyinstrument's own)."""
    same = 0
    while same < min(len(frames), len(below)) and frames[same] == below[same]:
        same += 1
    thread = next(((name, line) for name, file, line in frames if file == "<thread>"), ("thread", ""))
    return thread, [_frame(out, *frame) for frame in frames[same:] if frame[1] != "<thread>"]


def _frame(out: Builder, name: str, file: str, line: str) -> int:
    where: Any = ("", 0) if file == "<built-in>" else (file, int(line) if line.isdigit() and len(line) < 10 else 0)
    return out.frame(name, "python", "function", *where)
