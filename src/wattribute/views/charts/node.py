"""Node: device power above the lanes of ranks, on one time axis."""

from __future__ import annotations

from typing import Any

from ...model import Attribution
from ...plugins import chart
from ..theme import theme as theme_of
from .canvas import finish, time_unit
from .captions import caption, finding, subtitle
from .curves import device_curves, shown_ticks
from .tables import with_stacks
from .timeline import lane_parts
from .tracks import area, carpet, device_track, scales_w, track_words


@chart("node", about="device power above the lanes of ranks, on one time axis", needs="stacks")
def node(
    attribution: Attribution, *, theme: str = "light", colour: str = "kind", axes: str = "shared", top: int = 32,
    detail: bool = False,
) -> Any:  # fmt: skip
    """Device power above the lanes of ranks, on one time axis; of host threads when they have spans."""
    look = theme_of(theme)
    grouped = with_stacks(attribution, node.by)
    clock, ends = grouped.recording.clock, shown_ticks(grouped)
    window = clock.seconds(ends[0]), clock.seconds(ends[1])
    per_s, unit = time_unit(window[1] - window[0])
    devices = device_curves(grouped) if grouped.unit == "J" else []  # time has no power
    tracks = [device_track(grouped, device) for device in devices]
    tracks = [track for track in tracks if float(track.energy_j.sum()) > 0] or tracks
    most = scales_w(tracks, axes) if tracks else []
    if len(tracks) > 6:
        above = carpet(tracks, look, window, per_s, max(most), unit)
    else:
        above = [area(one, look, window, per_s, top_w, height=44) for one, top_w in zip(tracks, most, strict=True)]
    below, notes, sums, spans = lane_parts(grouped, look, colour, top, detail)
    drawn = finish([*above, *below], look, title=finding(grouped, sums), subtitle=subtitle(grouped),
                   caption=caption(grouped, track_words(tracks, most) if tracks else "", *notes))  # fmt: skip
    return drawn.properties(usermeta={"spans": spans}) if spans else drawn
