"""What ran on a device, as a faint ground behind its power."""

from __future__ import annotations

from functools import partial
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


def behind(users: Users, device: Any, window: tuple[int, int], per_s: float) -> Rows:
    """Stretches of time with the frame that used most of this device's energy in them."""
    recording = users.recording
    frames, clock = recording.frames, recording.clock
    best: dict[tuple[int, int], tuple[float, int, float]] = {}
    of = device.source.of
    for location, curve in device.split.curves.items():
        spans = users.spans(of, location)
        made = bars(spans, partial(evaluate, curve), window, _EXACT, _BINS, 24)
        for i in np.argsort(made.depth, kind="stable"):
            key = (int(made.start[i]), int(made.end[i]))
            share = float(made.busy[i]) / max(1, key[1] - key[0])
            if made.self_j[i] > best.get(key, (0.0, 0, 0.0))[0]:
                best[key] = (float(made.self_j[i]), int(made.frame[i]), min(1.0, share))
    out: Rows = []
    for (start, end), (_, frame, share) in best.items():
        what = kind(frames.paradigm[frame], frames.role[frame], frames.name[frame])
        out.append(
            {
                "start": clock.seconds(start) * per_s, "end": clock.seconds(end) * per_s, "kind": what,
                "ground": shade(what, frames.name[frame]), "opacity": 0.32 * share,
                "frame": names.full(frames.name[frame]), "length": end - start,
            }
        )  # fmt: skip
    out.sort(key=lambda row: -row["length"])  # the innermost are the shortest, and lie on top
    for row in out:
        room = row.pop("length") / (window[1] - window[0]) * WIDTH - 8
        row["text"] = fitting(names.plain(row["frame"]), room) if room > 60 else ""
    return out
