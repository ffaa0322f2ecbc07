"""Timeline: spans per lane along one time axis, joules on hover; ``node`` puts device power above it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...model import Clock
from .. import names
from ..kinds import ink, shade
from ..numbers import count, si
from ..theme import ROW, WIDTH, Theme
from .canvas import Rows, altair, fitting, fixed, hover, layer, lookup, scale_legend, span_axis, time_axis
from .lanes import Bars

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
COLOURS = ("kind", "energy", "power")
_COLUMN = {"energy": "self_j", "power": "power_w"}


@dataclass(frozen=True)
class Lane:
    """One row (or, nested, a few rows) of the timeline."""

    label: str
    host: str
    bars: Bars

    @property
    def energy_j(self) -> float:
        return float(self.bars.self_j.sum())

    @property
    def levels(self) -> int:
        return int(self.bars.depth.max()) + 1 if len(self.bars) else 1


@dataclass(frozen=True)
class Words:
    """What bars say: names and kinds of frames by row."""

    name: Sequence[str]
    kind: Sequence[str]


def timeline(
    lanes: Sequence[Lane], words: Words, clock: Clock, window: tuple[int, int], per_s: float, unit: str, theme: Theme,
    colour: str = "kind",
) -> Any:  # fmt: skip
    """The lanes as rectangles; wide enough ones carry their frame's name."""
    alt = altair()
    row_height = ROW if sum(lane.levels for lane in lanes) <= 60 else 9
    rows, middles, height = _place(lanes, words, clock, window, per_s, row_height)
    if colour != "kind":
        most = greatest(lanes, clock, colour)
        for row in rows:
            row["ground"] = theme.ramp(row[_COLUMN[colour]] / most if most else 0.0)
            row["ink"] = ink(row["ground"])
    start, end = (clock.seconds(t) * per_s for t in window)
    x = {"scale": span_axis(start, end), "axis": time_axis(unit)}
    y = {"scale": alt.Scale(domain=[0, height], nice=False, reverse=True)}
    labels = {f"{middle:g}": names.shorten(lane.label, 34) for middle, lane in zip(middles, lanes, strict=True)}
    axis = alt.Axis(values=middles, labelExpr=lookup(labels), title=None, grid=False, labelOverlap=True)
    boxes = layer(rows, width=WIDTH, height=height).mark_rect(clip=True).encode(
        x=alt.X("start:Q", **x), x2="end:Q", y=alt.Y("y:Q", axis=axis, **y), y2="y2:Q", color=fixed("ground"),
        opacity=alt.Opacity("opacity:Q", scale=None, legend=None), tooltip=hover(rows, **_CARD),
    )  # fmt: skip
    named = layer([row for row in rows if row["text"]])
    texts = named.mark_text(align="left", dx=3, baseline="middle", clip=True).encode(
        x=alt.X("from:Q", **x), y=alt.Y("middle:Q", axis=axis, **y), text="text:N", color=fixed("ink"),
    )  # fmt: skip
    sums: Rows = [
        {"middle": middle, "text": si(lane.energy_j, "J")} for middle, lane in zip(middles, lanes, strict=True)
    ]
    totals = layer(sums if row_height == ROW else sums[:0]).mark_text(align="left", baseline="middle", dx=6).encode(
        x=alt.value(WIDTH), y=alt.Y("middle:Q", axis=axis, **y), text="text:N"
    )  # fmt: skip
    return alt.layer(boxes, texts, totals)


def greatest(lanes: Sequence[Lane], clock: Clock, colour: str) -> float:
    """The top of the colour scale: the greatest self energy of a bar, or its greatest mean power."""
    if colour == "energy":
        return max((float(lane.bars.self_j.max(initial=0.0)) for lane in lanes), default=0.0)
    most = 0.0
    for bars in (lane.bars for lane in lanes):
        busy = bars.busy > 0
        most = max(most, float((bars.total_j[busy] / clock.seconds(bars.busy[busy])).max(initial=0.0)))
    return most


def scale(lanes: Sequence[Lane], clock: Clock, colour: str, theme: Theme) -> Any:
    """What the colours mean when they are numbers."""
    title, unit = ("self energy", "J") if colour == "energy" else ("mean power", "W")
    return scale_legend(title, greatest(lanes, clock, colour), unit, theme)


def _place(
    lanes: Sequence[Lane], words: Words, clock: Clock, window: tuple[int, int], per_s: float, row: int
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
        at += lane.levels * row + 4
    return rows, middles, max(at, float(row))


def _mark(lane: Lane, i: int, words: Words, clock: Clock, per_s: float) -> dict[str, Any]:
    bars = lane.bars
    frame = int(bars.frame[i])
    start, end = int(bars.start[i]), int(bars.end[i])
    seconds = clock.seconds(int(bars.busy[i]))
    power = float(bars.total_j[i]) / seconds if seconds else 0.0
    ground = shade(words.kind[frame], words.name[frame])
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
        "kind": words.kind[frame],
        "self": si(float(bars.self_j[i]), "J"),
        "total": si(float(bars.total_j[i]), "J"),
        "power": si(power, "W") if seconds else "–",
        "when": si(clock.seconds(start), "s", 6),
        "long": si(seconds, "s"),
        "calls": count(int(bars.calls[i])),
        "top": "; ".join(f"{names.shorten(names.plain(words.name[f]), 40)} {si(j, 'J')}" for f, j in bars.top[i])
        if bars.binned
        else "–",
        "exact": f"{bars.self_j[i]:.9g} J",
    }


def crowd(lanes: Sequence[Lane], most: int, window: tuple[int, int], other: int) -> tuple[list[Lane], int]:
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
    return [*kept, Lane(f"other ({len(rest)} lanes)", "", one)], len(rest)
