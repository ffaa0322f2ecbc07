"""Sunburst: call paths as rings around what was measured, angles in joules."""

from __future__ import annotations

import math
from typing import Any

from ...model import Attribution
from ...plugins import chart
from ..numbers import amount
from ..theme import SIZE, WIDTH, Theme
from ..theme import theme as theme_of
from .canvas import Rows, altair, finish, fitting, fixed, hover, layer, legend, pixels
from .captions import caption, finding, subtitle
from .flame import CARD, LEAST, block_rows, folded_words, root_words, too_deep_words
from .launches import launched
from .tables import frame_kinds, with_stacks
from .totals import known, total
from .tree import blocks, rooted, self_by_frame


@chart("sunburst", about="call paths as rings, angle = joules", needs="stacks", by=("path",))
def sunburst(attribution: Attribution, *, theme: str = "light", rings: int = 8, root: str | None = None) -> Any:
    """Call paths as rings around what was measured."""
    look = theme_of(theme)
    by_path = with_stacks(attribution, ("path",))
    used = rooted(launched(by_path), root)
    idle = total(by_path, "idle") if root is None else 0.0
    shown = blocks(used, idle, LEAST * 3, rings)
    rows = block_rows(shown, frame_kinds(by_path), look, by_path.unit)
    return finish(
        [legend((row["kind"] for row in rows), look), _arcs(rows, look, rings, known(by_path), by_path.unit)],
        look,
        title=finding(by_path, self_by_frame(used)),
        subtitle=subtitle(by_path),
        caption=caption(
            by_path,
            root_words(root, used, by_path.unit),
            folded_words(shown, by_path.unit, LEAST * 3),
            too_deep_words(used, rings, by_path.unit),
        ),
    )


def _arcs(rows: Rows, theme: Theme, rings: int = 8, known: str = "measured", unit: str = "J") -> Any:
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
            theta2=alt.Theta2("end:Q"),
            radius=alt.Radius("depth:Q", **radial),
            radius2=alt.Radius2("depth2:Q"),
            color=fixed("ground"),
            tooltip=hover(rows, **CARD),
        )
    )
    texts = (
        layer([row for row in shown if row["text"]])
        .mark_text(baseline="middle")
        .encode(
            theta=alt.Theta("at:Q", **theta),
            radius=alt.Radius("middle:Q", **radial),
            angle=alt.Angle("angle:Q", scale=None, legend=None),
            text=alt.Text("text:N"),
            color=fixed("ink"),
        )
    )
    centre = (
        layer([{"text": [amount(whole if rows else 0.0, unit), known]}])
        .mark_text(fontSize=18, fontWeight=600, color=theme.text, lineHeight=22, dy=-6)
        .encode(text=alt.Text("text:N"), x=alt.XValue(WIDTH / 2), y=alt.YValue(radius + 5))
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
