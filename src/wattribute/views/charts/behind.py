"""What ran on a device, as a faint ground behind its power."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._core.reference import evaluate
from .. import names
from ..kinds import kind, shade
from ..theme import WIDTH
from .canvas import Rows, fitting
from .lanes import bars

if TYPE_CHECKING:
    from .ask import Users

_EXACT, _BINS = 300, 240
Stretch = tuple[int, int, int, float]  # start, end, frame, the part of it that was busy


def behind(users: Users, device: Any, window: tuple[int, int], per_s: float) -> Rows:
    """Stretches of time, one after another, with the frame that used most of this device's energy in them."""
    found = _stretches(users, device, window, _EXACT)
    if any(later[0] < sooner[1] for sooner, later in pairwise(found)):  # nested, or side by side: ask bin by bin
        found = _joined(_stretches(users, device, window, -1))
    frames, clock = users.recording.frames, users.recording.clock
    out: Rows = []
    for start, end, frame, share in found:
        what = kind(frames.paradigm[frame], frames.role[frame], frames.name[frame])
        name, room = names.full(frames.name[frame]), (end - start) / (window[1] - window[0]) * WIDTH - 8
        out.append(
            {
                "start": clock.seconds(start) * per_s, "end": clock.seconds(end) * per_s, "kind": what,
                "ground": shade(what, frames.name[frame]), "opacity": 0.32 * share, "frame": name,
                "text": fitting(names.plain(name), room) if room > 60 else "",
            }
        )  # fmt: skip
    return out


def _stretches(users: Users, device: Any, window: tuple[int, int], exact: int) -> list[Stretch]:
    """Of every stretch the frame with most energy of its own, in order; spans themselves while at most ``exact``."""
    best: dict[tuple[int, int], tuple[float, int, float]] = {}
    for location, curve in device.split.curves.items():
        made = bars(users.spans(device.source.of, location), partial(evaluate, curve), window, exact, _BINS, 24)
        for i in np.argsort(made.depth, kind="stable"):
            key = (int(made.start[i]), int(made.end[i]))
            share = float(made.busy[i]) / max(1, key[1] - key[0])
            if made.self_j[i] > best.get(key, (0.0, 0, 0.0))[0]:
                best[key] = (float(made.self_j[i]), int(made.frame[i]), min(1.0, share))
    return [(*key, frame, share) for key, (_, frame, share) in sorted(best.items())]


def _joined(found: list[Stretch]) -> list[Stretch]:
    """Neighbours of one frame become one."""
    joined: list[Stretch] = []
    for start, end, frame, share in found:
        if joined and joined[-1][1:3] == (start, frame):
            before, middle, _, part = joined[-1]
            share = (part * (middle - before) + share * (end - start)) / (end - before)
            start = before
            joined.pop()
        joined.append((start, end, frame, share))
    return joined
