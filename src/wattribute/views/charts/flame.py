"""Flame, icicle and sunburst: call paths with widths (or angles) in joules, idle beside them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from .. import names
from ..kinds import ink, shade
from ..numbers import count, percent, si
from ..theme import ROW, SIZE, WIDTH, Theme
from .canvas import Rows, altair, fitting, fixed, hatch, hover, layer, pixels, quantity
from .tree import Block

_CARD = {
    "frame": "frame",
    "path": "call path",
    "kind": "kind of work",
    "total": "total",
    "self": "self",
    "share": "of measured",
    "calls": "calls",
    "exact": "exactly",
}


def block_rows(blocks: Sequence[Block], kind_of: Mapping[str, str], theme: Theme) -> Rows:
    """A row per block with everything a mark or a hover card needs."""
    whole = max((block.end_j for block in blocks), default=0.0)
    labels = names.labels((block.name for block in blocks), 60)
    rows: Rows = []
    for block in blocks:
        kind = "idle" if block.idle else "other" if block.merged else kind_of.get(block.name, "other")
        ground = theme.idle if block.idle else shade(kind, block.name)
        rows.append(
            {
                "start": block.start_j,
                "end": block.end_j,
                "depth": block.depth,
                "depth2": block.depth + 1,
                "self_j": block.self_j,
                "kind": kind,
                "ground": ground,
                "ink": ink(ground),
                "frame": names.full(block.name),
                "label": labels[block.name],
                "path": " → ".join(names.plain(name) for name in block.path[-12:]),
                "total": si(block.total_j, "J"),
                "self": si(block.self_j, "J"),
                "share": percent(block.total_j, whole),
                "calls": count(block.calls) if block.calls else "–",
                "exact": f"{block.total_j:.9g} J",
            }
        )
    return rows


def flame(rows: Rows, theme: Theme, *, downwards: bool = False) -> Any:
    """Rectangles: root at the bottom, or at the top when ``downwards`` (an icicle)."""
    alt = altair()
    whole = max((row["end"] for row in rows), default=0.0) or 1.0
    levels = max((row["depth2"] for row in rows), default=1)
    for row in rows:
        row["text"] = fitting(row["label"], (row["end"] - row["start"]) / whole * WIDTH - 8)
    scale_x = {
        "scale": alt.Scale(domain=[0, whole], nice=False),
        "axis": alt.Axis(title=None, labelExpr=quantity("J"), grid=False, orient="bottom", tickCount=8),
    }
    scale_y = {"scale": alt.Scale(domain=[0, levels], nice=False, reverse=downwards), "axis": None}
    base = layer(rows, width=WIDTH, height=(ROW + 2) * levels)
    boxes = base.mark_rect(stroke=theme.ground, strokeWidth=0.7).encode(
        x=alt.X("start:Q", **scale_x),
        x2="end:Q",
        y=alt.Y("depth:Q", **scale_y),
        y2="depth2:Q",
        color=fixed("ground"),
        tooltip=hover(rows, **_CARD),
    )
    stripes = hatch(
        [row for row in rows if row["kind"] == "idle"],
        theme,
        x="start",
        x2="end",
        y="depth",
        y2="depth2",
        step=whole / WIDTH * 6,
        scales={"x": scale_x, "y": scale_y},
    )
    texts = (
        layer([row for row in rows if row["text"]])
        .transform_calculate(middle="(datum.depth + datum.depth2) / 2")
        .mark_text(align="left", dx=4, baseline="middle")
        .encode(
            x=alt.X("start:Q", **scale_x),
            y=alt.Y("middle:Q", **scale_y),
            text="text:N",
            color=fixed("ink"),
            tooltip=hover(rows, **_CARD),
        )
    )
    return boxes + stripes + texts


def sunburst(rows: Rows, theme: Theme, rings: int = 8, known: str = "measured") -> Any:
    """Arcs around the whole; deeper rings than ``rings`` are left to the flame graph."""
    alt = altair()
    whole = max((row["end"] for row in rows), default=0.0) or 1.0
    shown = [row for row in rows if row["depth"] < rings]
    levels = max((row["depth2"] for row in shown), default=1)
    inner, ring = 70, min(110.0, max(40, 300 / levels))
    radius = inner + ring * levels
    for row in shown:
        row.update(_arc_text(row, whole, inner + ring * (row["depth"] + 0.5), ring))
    theta = {"scale": alt.Scale(domain=[0, whole], range=[0, 2 * math.pi], nice=False), "stack": None}
    radial = {"scale": alt.Scale(domain=[0, levels], range=[inner, radius], nice=False, zero=False), "stack": None}
    arcs = (
        layer(shown, width=WIDTH, height=2 * radius + 10)
        .mark_arc(stroke=theme.ground, strokeWidth=1)
        .encode(
            theta=alt.Theta("start:Q", **theta),
            theta2="end:Q",
            radius=alt.Radius("depth:Q", **radial),
            radius2="depth2:Q",
            color=fixed("ground"),
            tooltip=hover(rows, **_CARD),
        )
    )
    texts = (
        layer([row for row in shown if row["text"]])
        .mark_text(baseline="middle")
        .encode(
            theta=alt.Theta("at:Q", **theta),
            radius=alt.Radius("middle:Q", **radial),
            angle=alt.Angle("angle:Q", scale=None, legend=None),
            text="text:N",
            color=fixed("ink"),
        )
    )
    centre = (
        layer([{"text": [si(whole if rows else 0.0, "J"), known]}])
        .mark_text(fontSize=18, fontWeight=600, color=theme.text, lineHeight=22, dy=-6)
        .encode(text="text:N", x=alt.value(WIDTH / 2), y=alt.value(radius + 5))
    )
    return arcs + texts + centre


def _arc_text(row: dict[str, Any], whole: float, radius: float, ring: float) -> dict[str, Any]:
    """A label along the arc or along the radius, whichever has more room, never upside down."""
    share = (row["end"] - row["start"]) / whole
    at = (row["start"] + row["end"]) / 2
    degrees = at / whole * 360
    arc = share * 2 * math.pi * radius
    # a straight text leaves the curved ring by its sagitta, length² / 8 r
    along = min(0.9 * arc, math.sqrt(8 * radius * (ring / 2 - SIZE * 0.7))) - 8
    across = ring - 8 if arc > SIZE + 3 else 0
    if along >= min(across, pixels(row["label"])):
        room, angle = along, degrees - 180 if 90 < degrees < 270 else degrees
    else:
        room, angle = across, degrees - 90 if degrees < 180 else degrees + 90
    return {"at": at, "middle": row["depth"] + 0.5, "angle": angle % 360, "text": fitting(row["label"], room)}
