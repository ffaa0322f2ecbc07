"""Folded stacks (``a;b;c 42``, as stackcollapse, py-spy, bpftrace write them) → Recording.

Counts have no order and no unit: the profile has no timeline. Stacks are laid end to end, a millisecond per count, and
a power log's energy is shared out by the counts.
"""

from __future__ import annotations

import re
from pathlib import Path

from ..model import Recording
from ..plugins import Selection
from .building import FARTHEST, Builder
from .files import Text, start

_LINE = re.compile(r"^(\S.*?) (\d+(?:\.\d+)?)$")
_SAMPLE_NS = 10**6
_LOOKED_AT = 50


def detects(path: Path) -> bool:
    """Every line a stack and a count, and at least one stack with more than one frame."""
    whole = start(path)
    lines = [line.rstrip("\r") for line in whole.split("\n")[: _LOOKED_AT + 1] if line.strip()]
    lines = lines[:_LOOKED_AT] if len(whole) < 1 << 16 else lines[:-1]  # the last one may be cut
    return bool(lines) and all(map(_LINE.match, lines)) and any(";" in line for line in lines)


def read(path: Path, selection: Selection) -> Recording:
    out, text = Builder(path, selection, "folded"), Text(path)
    location = out.thread(0, out.process(0, "program"), "stacks")
    seen, at = [], 0
    for line in text.lines():
        if not line.strip():
            continue
        match = _LINE.match(line)
        lasts = round(float(match[2]) * _SAMPLE_NS) if match and len(match[2]) < 20 else FARTHEST
        if match is None or at + lasts >= FARTHEST:
            out.counts["lines that are no stack and count"] += 1
            continue
        seen.append((at, at + lasts, [out.frame(name) for name in match[1].split(";")]))
        at += lasts
    out.stacks(location, seen)
    out.problems += text.problems
    out.timeless("samples")
    return out.recording()
