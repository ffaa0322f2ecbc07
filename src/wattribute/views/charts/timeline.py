"""Timeline: spans per lane along one time axis, joules on hover; ``node`` puts device power above it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...engines.middle import frame_mask
from ...errors import OptionError
from ...model import Attribution, Clock
from ...plugins import chart
from .. import names
from ..kinds import ink, kinds, own_colour, shade
from ..numbers import amount, count, si
from ..theme import ROW, SIZE, WIDTH, Theme
from ..theme import theme as theme_of
from .canvas import (
    Rows,
    altair,
    finish,
    fitting,
    fixed,
    hover,
    layer,
    legend,
    lookup,
    scale_legend,
    span_axis,
    time_axis,
    time_unit,
)
from .captions import by_frame, caption, finding, subtitle
from .curves import Users, shown_ticks
from .lanes import Bars, bars, exact
from .tables import one_view

_CARD = {
    "frame": "frame",
    "lane": "lane",
    "kind": "kind of work",
    "self": "self",
    "total": "total",
    "power": "mean power",
    "when": "from",
    "long": "for",
    "calls": "calls",
    "top": "most energy",
    "exact": "self, exactly",
}
MOST_SPANS = 400_000  # that a page keeps for zooming in
_MARKS = 6000  # bars before lanes are binned
_LANES = 48
_DENSE_ROWS = 60  # beyond, rows are thin and without words
_THIN_ROW = 9
_LANE_GAP = 4
COLOURS = ("kind", "frame", "energy", "power")
_COLUMN = {"energy": "self_j", "power": "power_w"}


@chart("timeline", about="spans per device and stream, joules on hover")
def timeline(
    attribution: Attribution, *, theme: str = "light", colour: str = "kind", top: int = _LANES, detail: bool = False
) -> Any:
    """Spans per device and stream (or per thread), joules on hover; ``detail`` keeps spans for zooming into bins."""
    look = theme_of(theme)
    view = one_view(attribution)
    parts, notes, sums, spans = lane_parts(view, look, colour, top, detail)
    drawn = finish(parts, look, title=finding(view, sums), subtitle=subtitle(view), caption=caption(view, *notes))
    return drawn.properties(usermeta={"spans": spans}) if spans else drawn


def lane_parts(
    attribution: Attribution, look: Theme, colour: str, top: int, detail: bool = False
) -> tuple[list[Any], list[str], dict[str, float], dict[str, Any]]:
    """The timeline's parts, what was merged in them, self energy by frame, and with ``detail`` spans behind bins."""
    if colour not in COLOURS:
        raise OptionError.unknown("colour", colour, COLOURS)
    every, spans = lanes_of(attribution, detail)
    filled = [lane for lane in every if len(lane.bars)] or every[:1]
    recording, ends = attribution.recording, shown_ticks(attribution)
    shown, merged = crowd(filled, top, ends, len(recording.frames))
    per_s, unit = time_unit(recording.clock.seconds(ends[1] - ends[0]))
    by_place = {on: (*kinds(recording.frames, on), "other") for on in ("gpu", "cpu")}
    words = BarLabels((*recording.frames.name, "other lanes"), by_place, attribution.unit)
    hosts = dict.fromkeys(lane.host for lane in shown)
    nodes = {f"bars_{i}": [lane for lane in shown if lane.host == host] for i, host in enumerate(hosts)}
    most = greatest(shown, recording.clock, colour)
    row = _THIN_ROW if sum(lane.levels for lane in shown) > _DENSE_ROWS else ROW
    views = [
        _rectangles(
            lanes, words, recording.clock, ends, per_s, unit, look, colour, heading=host if len(nodes) > 1 else "",
            foot=name == f"bars_{len(nodes) - 1}", most=most, row_height=row, name=name,
        )
        for host, (name, lanes) in zip(hosts, nodes.items(), strict=True)
    ]  # fmt: skip
    present = {words.kind[lane.on][int(frame)] for lane in shown for frame in np.unique(lane.bars.frame)}
    notes = []
    if any(lane.bars.binned for lane in shown):
        notes.append(
            f"{count(spans)} spans in bins that keep their energy; a bin shows its busiest frame, paler where idle."
        )
    if len(filled) < len(every):
        notes.append(f"{len(every) - len(filled)} lanes without such spans are not drawn.")
    if merged:
        notes.append(f"{merged} lanes with less energy are one bar, “other”.")
    parts = [legend(present, look), *views] if colour == "kind" and present else views
    if colour in _COLUMN:
        parts.append(scale(shown, recording.clock, colour, look, attribution.unit))
    behind = span_columns(nodes, words, recording.clock, per_s, look, colour, most, row)
    if behind:
        notes.append("Zoom in to see single calls.")
    return parts, notes, by_frame(attribution), behind


def lanes_of(attribution: Attribution, detail: bool = False) -> tuple[list[TimelineLane], int]:
    """A lane per user with its bars, binned where there are too many spans to see; and the number of spans.

    With ``detail`` binned lanes keep their spans, too, as long as a page can hold them.
    """
    users, ends = Users(attribution), shown_ticks(attribution)
    limit = max(40, _MARKS // max(1, len(users)))
    out, number = [], 0
    question, named = attribution.question, attribution.recording.frames.name
    frames = frame_mask(named, question) if question.frame or question.exclude_frame else None
    for of, location in users:
        spans = users.spans(of, location)
        number += len(spans)
        levels = int(spans.depth.max()) + 1 if len(spans) else 1
        bins = int(np.clip(limit // min(levels, 24), 60, 450))
        on = "gpu" if attribution.recording.locations.kind[location] == "gpu" else "cpu"
        drawn = bars(spans, users.received(of, location), ends, limit, bins, frames=frames)
        single = None
        if detail and drawn.binned and number <= MOST_SPANS:
            single = exact(spans, users.received(of, location), frames)
        host = attribution.recording.location_host(location)
        out.append(TimelineLane(users.label(of, location), host, drawn, on, single))
    return out, number


@dataclass(frozen=True)
class TimelineLane:
    """One row (or, nested, a few rows) of the timeline."""

    label: str
    host: str
    bars: Bars
    on: str = "cpu"  # the kind of its location, gpu or cpu
    single: Bars | None = None  # one per span, where ``bars`` are bins

    @property
    def energy_j(self) -> float:
        return float(self.bars.self_j.sum())

    @property
    def levels(self) -> int:
        return int(self.bars.depth.max()) + 1 if len(self.bars) else 1


@dataclass(frozen=True)
class BarLabels:
    """Labels of bars: names of frames by row, and their kinds on a GPU and on a CPU."""

    name: Sequence[str]
    kind: Mapping[str, Sequence[str]]
    unit: str = "J"


def _rectangles(
    lanes: Sequence[TimelineLane], words: BarLabels, clock: Clock, window: tuple[int, int], per_s: float, unit: str,
    theme: Theme, colour: str, *, heading: str, foot: bool, most: float, row_height: int, name: str,
) -> Any:  # fmt: skip
    """The lanes of a node as rectangles; wide enough ones carry their frame's name."""
    alt = altair()
    rows, middles, height = _place(lanes, words, clock, window, per_s, row_height)
    if colour == "frame":
        for row in rows:
            row["ground"] = own_colour(row["frame"].removeprefix("mostly "))
            row["ink"] = ink(row["ground"])
    elif colour != "kind":
        for row in rows:
            row["ground"] = theme.ramp(row[_COLUMN[colour]] / most if most else 0.0)
            row["ink"] = ink(row["ground"])
    start, end = (clock.seconds(t) * per_s for t in window)
    axis = time_axis(unit) if foot else alt.Axis(title=None, labels=False, ticks=False, grid=False)
    x = {"scale": span_axis(start, end), "axis": axis}
    y = {"scale": alt.Scale(domain=[0, height], nice=False, reverse=True)}
    labels = {
        f"{middle:g}": names.shorten(lane.label.removeprefix(f"{heading} "), 34)
        for middle, lane in zip(middles, lanes, strict=True)
    }
    axis = alt.Axis(values=middles, labelExpr=lookup(labels), title=None, grid=False, labelOverlap=True)
    boxes = alt.Chart({"name": name, "values": tuple(rows)}, width=WIDTH, height=height).mark_rect(clip=True).encode(
        x=alt.X("start:Q", **x), x2=alt.X2("end:Q"), y=alt.Y("y:Q", axis=axis, **y), y2=alt.Y2("y2:Q"),
        color=fixed("ground"), opacity=alt.Opacity("opacity:Q", scale=None, legend=None), tooltip=hover(rows, **_CARD),
    )  # fmt: skip
    named = layer([row for row in rows if row["text"]])
    texts = named.mark_text(align="left", dx=3, baseline="middle", clip=True).encode(
        x=alt.X("from:Q", **x), y=alt.Y("middle:Q", axis=axis, **y), text=alt.Text("text:N"), color=fixed("ink"),
    )  # fmt: skip
    sums: Rows = [
        {"middle": middle, "text": amount(lane.energy_j, words.unit)}
        for middle, lane in zip(middles, lanes, strict=True)
    ]
    totals = layer(sums if row_height == ROW else sums[:0]).mark_text(align="left", baseline="middle", dx=6).encode(
        x=alt.XValue(WIDTH), y=alt.Y("middle:Q", axis=axis, **y), text=alt.Text("text:N")
    )  # fmt: skip
    drawn = alt.layer(boxes, texts, totals)
    if not heading:
        return drawn
    return drawn.properties(title=alt.TitleParams(names.clean(heading), fontSize=SIZE, frame="group", offset=4))


def span_columns(
    nodes: Mapping[str, Sequence[TimelineLane]], words: BarLabels, clock: Clock, per_s: float, theme: Theme,
    colour: str, most: float, row: int,
) -> dict[str, Any]:  # fmt: skip
    """The single spans of binned lanes for ``span_zoom.js``: columns in base64, names and colours of frames."""

    def packed(values: npt.NDArray[Any], kind: str) -> str:
        return b64encode(np.ascontiguousarray(values.astype(kind)).tobytes()).decode()

    data = []
    for name, lanes in nodes.items():
        at = 0.0
        for lane in lanes:
            if lane.single is not None:
                one = lane.single
                seen = one.depth < lane.levels
                columns = {
                    "start": packed(clock.seconds(one.start[seen]) * per_s, "<f8"),
                    "end": packed(clock.seconds(one.end[seen]) * per_s, "<f8"),
                    "self": packed(one.self_j[seen], "<f4"), "total": packed(one.total_j[seen], "<f4"),
                    "frame": packed(one.frame[seen], "<u4"), "depth": packed(one.depth[seen], "u1"),
                }  # fmt: skip
                data.append({"data": name, "lane": lane.label, "y": at, "on": lane.on, "columns": columns})
            at += lane.levels * row + _LANE_GAP
    if not data:
        return {}
    used = sorted({int(f) for lanes in nodes.values() for lane in lanes if lane.single for f in set(lane.single.frame)})
    frames = {
        on: {
            f: [names.full(words.name[f]), words.kind[on][f],
                own_colour(names.full(words.name[f])) if colour == "frame" else shade(words.kind[on][f], words.name[f])]
            for f in used
        }
        for on in sorted({str(one["on"]) for one in data})
    }  # fmt: skip
    ramp = {"column": colour, "most": most, "scheme": theme.scheme} if colour in _COLUMN else None
    return {"lanes": data, "frames": frames, "unit": words.unit, "per_s": per_s, "row": row, "ramp": ramp,
            "marks": _MARKS}  # fmt: skip


def greatest(lanes: Sequence[TimelineLane], clock: Clock, colour: str) -> float:
    """The top of the colour scale: the greatest self energy of a bar, or its greatest mean power; 0 without a scale."""
    if colour not in _COLUMN:
        return 0.0
    if colour == "energy":
        return max((float(lane.bars.self_j.max(initial=0.0)) for lane in lanes), default=0.0)
    most = 0.0
    for drawn in (lane.bars for lane in lanes):
        busy = drawn.busy > 0
        most = max(most, float((drawn.total_j[busy] / clock.seconds(drawn.busy[busy])).max(initial=0.0)))
    return most


def scale(lanes: Sequence[TimelineLane], clock: Clock, colour: str, theme: Theme, unit: str = "J") -> Any:
    """The legend of colours that stand for numbers."""
    title, of = ("self energy" if unit == "J" else "self time", unit) if colour == "energy" else ("mean power", "W")
    return scale_legend(title, greatest(lanes, clock, colour), of, theme)


def _place(
    lanes: Sequence[TimelineLane], words: BarLabels, clock: Clock, window: tuple[int, int], per_s: float, row: int
) -> tuple[Rows, list[float], float]:  # fmt: skip
    """Rows of marks, the middle of each lane and the height of all."""
    rows: Rows = []
    middles: list[float] = []
    at = 0.0
    scale = WIDTH / max(1, window[1] - window[0])
    used = {int(frame) for lane in lanes for frame in lane.bars.frame}
    labels = names.labels((words.name[frame] for frame in sorted(used)), 60)
    for lane in lanes:
        middles.append(at + lane.levels * row / 2)
        for i in range(len(lane.bars)):
            mark = _mark(lane, i, words, clock, per_s)
            top = at + int(lane.bars.depth[i]) * row
            first, last = max(int(lane.bars.start[i]), window[0]), min(int(lane.bars.end[i]), window[1])
            room = (last - first) * scale - 6
            label = labels[words.name[int(lane.bars.frame[i])]]
            fits = row == ROW and not lane.bars.binned
            mark |= {
                "y": top + 0.5, "y2": top + row - 0.5, "middle": top + row / 2, "from": clock.seconds(first) * per_s,
                "text": fitting(label, room) if fits else "",
            }  # fmt: skip
            rows.append(mark)
        at += lane.levels * row + _LANE_GAP
    return rows, middles, max(at, float(row))


def _mark(lane: TimelineLane, i: int, words: BarLabels, clock: Clock, per_s: float) -> dict[str, Any]:
    bars = lane.bars
    frame = int(bars.frame[i])
    start, end = int(bars.start[i]), int(bars.end[i])
    seconds = clock.seconds(int(bars.busy[i]))
    power = float(bars.total_j[i]) / seconds if seconds else 0.0
    kind = words.kind[lane.on][frame]
    ground = shade(kind, words.name[frame])
    covered = float(bars.busy[i]) / max(1, end - start)
    most = "mostly " if bars.binned else ""
    return {
        "start": clock.seconds(start) * per_s,
        "end": clock.seconds(end) * per_s,
        "self_j": float(bars.self_j[i]),
        "power_w": power,
        "ground": ground,
        "ink": ink(ground),
        "opacity": max(0.15, min(1.0, covered)) if bars.binned else 1.0,
        "frame": most + names.full(words.name[frame]),
        "lane": lane.label,
        "kind": kind,
        "self": amount(float(bars.self_j[i]), words.unit),
        "total": amount(float(bars.total_j[i]), words.unit),
        "power": si(power, "W") if seconds and words.unit == "J" else "–",
        "when": si(clock.seconds(start), "s", 6),
        "long": si(seconds, "s"),
        "calls": count(int(bars.calls[i])),
        "top": "; ".join(
            f"{names.shorten(names.plain(words.name[f]), 40)} {amount(j, words.unit)}" for f, j in bars.top[i]
        )
        if bars.binned
        else "–",
        "exact": f"{bars.self_j[i]:.9g} {words.unit}",
    }


def crowd(
    lanes: Sequence[TimelineLane], most: int, window: tuple[int, int], other: int
) -> tuple[list[TimelineLane], int]:
    """The ``most`` lanes with the greatest energy, in order, the rest as one bar of frame ``other``; their number."""
    if len(lanes) <= most:
        return list(lanes), 0
    order = np.argsort([-lane.energy_j for lane in lanes], kind="stable")
    kept = [lanes[i] for i in sorted(order[:most])]
    rest = [lanes[i].bars for i in order[most:]]

    def ints(value: int) -> npt.NDArray[np.int64]:
        return np.array([value], np.int64)

    energy = np.array([float(sum(bars.self_j.sum() for bars in rest))])
    busy = sum(int(bars.busy[bars.depth == 0].sum()) for bars in rest)
    calls = sum(int(bars.calls.sum()) for bars in rest)
    one = Bars(
        ints(window[0]), ints(window[1]), ints(0), ints(other), ints(busy), energy, energy, ints(calls), [], False
    )
    hosts = {lane.host for lane in lanes}
    return [*kept, TimelineLane(f"other ({len(rest)} lanes)", hosts.pop() if len(hosts) == 1 else "", one)], len(rest)
