"""Speedscope's files (py-spy, rbspy, pyinstrument, stackprof … write them) → Recording: one location per profile.

Evented profiles are spans as they stand; sampled ones are stacks that follow each other. Weights without a unit of time
are counts: such a profile has no timeline, and a power log's energy is shared out by its samples.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ..errors import FormatError, UnsupportedError
from ..model import Recording
from ..plugins import Selection
from .building import FARTHEST, Builder
from .documents import listed, load, number
from .files import start

_SCHEMA = "speedscope.app/file-format-schema"
_SHAPE = re.compile(r'"type"\s*:\s*"(?:evented|sampled)"')
_NS_PER = {"seconds": 10**9, "milliseconds": 10**6, "microseconds": 10**3, "nanoseconds": 1}
_SAMPLE_NS = 10**6  # what a count is drawn as


def detects(path: Path) -> bool:
    text = start(path, 1 << 18)
    return text[:1] == "{" and (_SCHEMA in text or ('"shared"' in text and bool(_SHAPE.search(text))))


def read(path: Path, selection: Selection) -> Recording:
    out = Builder(path, selection, "speedscope")
    document = load(path, out)
    frames = [_frame(out, frame) for frame in listed(document.get("shared"), "frames")]
    profiles = [profile for profile in listed(document, "profiles") if isinstance(profile, dict)]
    if not profiles:
        raise FormatError(path, "has no profiles in it")
    units = {str(profile.get("unit")) for profile in profiles}
    if units - {*_NS_PER, "none"} or len(units) > 1:
        raise UnsupportedError(
            f"{path}: its profiles count in {', '.join(sorted(units))}; only time and samples are read"
        )
    factor = _NS_PER.get(units.pop(), _SAMPLE_NS)
    process = out.process(0, str(document.get("name") or "program"))
    counts, start_ns = profiles[0].get("unit") == "none", 0
    for at, profile in enumerate(profiles):
        location = out.thread(at, process, str(profile.get("name") or f"profile {at}"))
        if profile.get("type") == "evented":
            _evented(out, location, profile, frames, factor)
        else:
            end_ns = _sampled(out, location, profile, frames, factor, start_ns)
            start_ns = end_ns if counts else 0  # counts were not taken at the same time, nor at any we know
    if counts:
        out.timeless("samples")
    return out.recording()


def _frame(out: Builder, frame: Any) -> int:
    about = frame if isinstance(frame, dict) else {}
    line = about.get("line")
    line = line if isinstance(line, int) and 0 <= line < 1 << 31 else 0
    return out.frame(str(about.get("name", "?")), "unknown", "function", str(about.get("file") or ""), line)


def _ns(value: Any, factor: int) -> int | None:
    parsed = number(value)
    return None if parsed is None or abs(parsed) * factor >= FARTHEST else round(parsed * factor)


def _evented(out: Builder, location: int, profile: dict[str, Any], frames: list[int], factor: int) -> None:
    open_: list[tuple[int, int]] = []  # frame, span
    for event in listed(profile, "events"):
        at = _ns(event.get("at"), factor) if isinstance(event, dict) else None
        frame = event.get("frame") if at is not None else None
        if at is None or not isinstance(frame, int) or not 0 <= frame < len(frames):
            out.counts["events without a valid time or frame"] += 1
        elif event.get("type") == "O":
            open_.append((frame, out.begin(location, at, frames[frame])))
        elif any(frame == other for other, _ in open_):
            while True:  # what was opened above it ends with it
                other, span = open_.pop()
                out.finish(span, at)
                if other == frame:
                    break
        else:
            out.counts["ends of frames that were not open"] += 1


def _sampled(
    out: Builder, location: int, profile: dict[str, Any], frames: list[int], factor: int, start_ns: int
) -> int:
    """Add the samples from there on; returns where they end."""
    at = start_ns or _ns(profile.get("startValue", 0), factor) or 0
    samples, weights = listed(profile, "samples"), listed(profile, "weights")
    if len(samples) != len(weights):
        out.problem(
            "truncated", f"a profile has {len(samples)} samples and {len(weights)} weights; the rest is left out"
        )
    seen = []
    for sample, weight in zip(samples, weights, strict=False):
        lasts = _ns(weight, factor)
        good = isinstance(sample, list) and all(isinstance(f, int) and 0 <= f < len(frames) for f in sample)
        if not good or lasts is None or lasts < 0 or at + lasts >= FARTHEST:
            out.counts["samples without a valid stack or weight"] += 1
            continue
        seen.append((at, at + lasts, [frames[frame] for frame in sample]))
        at += lasts
    out.stacks(location, seen)
    return at
