"""Power of each device over time, with what ran on it behind."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from ..._core.reference import evaluate
from ...model import Attribution, Clock, Recording
from ...plugins import chart
from .. import names
from ..kinds import kind, shade
from ..numbers import si
from ..theme import WIDTH, Theme
from ..theme import theme as theme_of
from .canvas import Rows, finish, fitting, legend, time_axis, time_unit
from .captions import caption, run_name, subtitle
from .curves import Users, extent, metered_energy, shown_ticks
from .lanes import bars
from .tables import with_energy
from .totals import summed
from .tracks import Track, area, carpet, device_track, scales_w, track, track_words

_AREAS = 12  # devices drawn as areas; more become rows of colour
_EXACT, _BINS = 300, 240
Stretch = tuple[int, int, int, float]  # start, end, frame, the part of it that was busy


def bare_power(recording: Recording, *, metric: str | None = None, because: str = "", theme: str = "light",
               axes: str = "shared", top: int = 64) -> Any:  # fmt: skip
    """Power of each device of a recording without users: no spans, or none while the device was read."""
    look = theme_of(theme)
    devices = metered_energy(recording, metric)
    tracks = [
        track(label, energy.times, energy.values, recording.clock, estimated=energy.signal.estimated)
        for label, energy, _ in devices
    ]
    shown, ends = _largest(tracks, top), extent(recording)
    ends = ends if ends[1] > ends[0] else (ends[0], ends[0] + 1)
    parts, note = _power_parts(tracks, shown, [], recording.clock, ends, look, axes)
    return finish(
        parts,
        look,
        title=_title(tracks, [counted for *_, counted in devices]),
        subtitle=run_name(recording),
        caption=[because, note],
    )


@chart("power", about="power of each device over time, what ran behind it", fallback=bare_power)
def power(attribution: Attribution, *, theme: str = "light", axes: str = "shared", top: int = 64) -> Any:
    """Power of each device over time, with what ran on it behind."""
    look = theme_of(theme)
    view = with_energy(attribution)
    users, ends = Users(view), shown_ticks(view)
    tracks = [device_track(view, device) for device in users.devices]
    books = {(book["host"], book["device"], book["of"]) for book in summed(view)}
    sources = [device.source for device in users.devices]
    counted = [(source.device.host, source.device.name, source.of) in books for source in sources]
    shown = _largest(tracks, top)
    per_s, _ = time_unit(view.recording.clock.seconds(ends[1] - ends[0]))
    grounds = [_ground(users, users.devices[i], ends, per_s) for i in shown] if len(shown) <= _AREAS else []
    parts, note = _power_parts(tracks, shown, grounds, view.recording.clock, ends, look, axes)
    return finish(parts, look, title=_title(tracks, counted), subtitle=subtitle(view),
                  caption=caption(view, note))  # fmt: skip


def _largest(tracks: Sequence[Track], top: int) -> list[int]:
    """The tracks to draw, in their order: the largest of those that measured anything."""
    live = [i for i, track in enumerate(tracks) if float(track.energy_j.sum()) > 0] or list(range(len(tracks)))
    return sorted(sorted(live, key=lambda i: -float(tracks[i].energy_j.sum()))[:top])


def _power_parts(
    tracks: Sequence[Track], shown: Sequence[int], grounds: Sequence[Rows], clock: Clock, ends: tuple[int, int],
    look: Theme, axes: str,
) -> tuple[list[Any], str]:  # fmt: skip
    """The tracks that are shown, and what is to be said of them and of the others."""
    window = clock.seconds(ends[0]), clock.seconds(ends[1])
    per_s, unit = time_unit(window[1] - window[0])
    drawn = [tracks[i] for i in shown]
    most = scales_w(drawn, axes)
    note = f"{track_words(drawn, most)} {_not_drawn(tracks, shown)}".strip()
    if len(shown) > _AREAS:
        return carpet(drawn, look, window, per_s, max(most), unit), note
    room = 1.3 if any(grounds) else 1.0  # for the names of what ran, the same on all
    foot = [None] * (len(shown) - 1) + [time_axis(unit)]
    parts = [
        area(one, look, window, per_s, top_w * room, axis=axis, behind=ground)
        for one, top_w, axis, ground in zip(drawn, most, foot, grounds or [[]] * len(shown), strict=True)
    ]
    present = {row["kind"] for ground in grounds for row in ground}
    return [legend(present, look), *parts] if present else parts, note


def _not_drawn(tracks: Sequence[Track], shown: Sequence[int]) -> str:
    """What happened to the devices that are not in the picture."""
    rest = [float(track.energy_j.sum()) for i, track in enumerate(tracks) if i not in set(shown)]
    silent, small = sum(energy == 0 for energy in rest), sum(energy > 0 for energy in rest)
    note = f"{small} devices with less energy ({si(sum(rest), 'J')}) are not drawn." if small else ""
    return f"{note} {silent} devices measured nothing and are not drawn.".strip() if silent else note


def _title(tracks: Sequence[Track], counted: Sequence[bool]) -> str:
    """Who used most, of the devices that count."""
    sums = {one.label: float(one.energy_j.sum()) for one, counts in zip(tracks, counted, strict=True) if counts}
    if not sums or max(sums.values()) <= 0:
        return "No energy was measured"
    most = max(sums, key=lambda label: sums[label])
    if len(sums) == 1:
        return f"{most}: {si(sums[most], 'J')} measured"
    return f"{most} used most: {si(sums[most], 'J')} of {si(sum(sums.values()), 'J')}"


def _ground(users: Users, device: Any, window: tuple[int, int], per_s: float) -> Rows:
    """Stretches of time, one after another, with the frame that used most of this device's energy in them."""
    stretches = _stretches(users, device, window, _EXACT)
    if any(later[0] < sooner[1] for sooner, later in pairwise(stretches)):  # nested, or side by side: ask bin by bin
        stretches = _joined(_stretches(users, device, window, -1))
    frames, clock = users.recording.frames, users.recording.clock
    out: Rows = []
    for start, end, frame, share in stretches:
        what = kind(frames.paradigm[frame], frames.role[frame], frames.name[frame], device.source.of)
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
        bins = bars(users.spans(device.source.of, location), partial(evaluate, curve), window, exact, _BINS, 24)
        for i in np.argsort(bins.depth, kind="stable"):
            key = (int(bins.start[i]), int(bins.end[i]))
            share = float(bins.busy[i]) / max(1, key[1] - key[0])
            if bins.self_j[i] > best.get(key, (0.0, 0, 0.0))[0]:
                best[key] = (float(bins.self_j[i]), int(bins.frame[i]), min(1.0, share))
    return [(*key, frame, share) for key, (_, frame, share) in sorted(best.items())]


def _joined(stretches: list[Stretch]) -> list[Stretch]:
    """Neighbours of one frame become one."""
    joined: list[Stretch] = []
    for start, end, frame, share in stretches:
        if joined and joined[-1][1:3] == (start, frame):
            before, middle, _, part = joined[-1]
            share = (part * (middle - before) + share * (end - start)) / (end - before)
            start = before
            joined.pop()
        joined.append((start, end, frame, share))
    return joined
