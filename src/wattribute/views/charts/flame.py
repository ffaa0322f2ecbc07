"""Flame, icicle and sunburst: call paths with widths (or angles) in joules, idle beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...model import Attribution
from ...plugins import chart
from .. import names
from ..kinds import ink, shade
from ..numbers import amount, count, percent
from ..theme import ROW, WIDTH, Theme
from ..theme import theme as theme_of
from .canvas import Rows, altair, finish, fitting, fixed, hatch, hover, layer, legend, quantity
from .captions import caption, finding, subtitle
from .launches import launched
from .tables import frame_kinds, with_stacks
from .totals import total
from .tree import Block, Leaf, blocks, rooted, self_by_frame

LEAST = 0.001  # of all energy: smaller frames are folded
_DEEPEST = 48
CARD = {
    "frame": "frame",
    "path": "call path",
    "kind": "kind of work",
    "total": "total",
    "self": "self",
    "share": "of measured",
    "calls": "calls",
    "exact": "exactly",
}


@chart("flame", about="call paths, width = joules, root at the bottom", needs="stacks", by=("path",))
def flame(attribution: Attribution, *, theme: str = "light", downwards: bool = False, root: str | None = None) -> Any:
    """Call paths with widths in joules, root at the bottom; idle stands beside the roots."""
    look = theme_of(theme)
    by_path = with_stacks(attribution, ("path",))
    used = rooted(launched(by_path), root)
    idle = total(by_path, "idle") if root is None else 0.0
    shown = blocks(used, idle, LEAST, _DEEPEST)
    rows = block_rows(shown, frame_kinds(by_path), look, by_path.unit)
    return finish(
        [legend((row["kind"] for row in rows), look), _rectangles(rows, look, by_path.unit, downwards=downwards)],
        look,
        title=finding(by_path, self_by_frame(used)),
        subtitle=subtitle(by_path),
        caption=caption(
            by_path,
            root_words(root, used, by_path.unit),
            folded_words(shown, by_path.unit),
            too_deep_words(used, _DEEPEST, by_path.unit),
        ),
    )


def root_words(root: str | None, used: list[Leaf], unit: str) -> str:
    return "" if root is None else f"Only what {root} called: {amount(sum(leaf.self_j for leaf in used), unit)}."


def folded_words(shown: list[Block], unit: str, least: float = LEAST) -> str:
    merged = [block for block in shown if block.merged]
    if not merged:
        return ""
    number, energy = sum(block.merged for block in merged), sum(block.self_j for block in merged)
    return f"{number} places under {100 * least:g} % are folded into “other” ({amount(energy, unit)} together)."


def too_deep_words(leaves: list[Leaf], deepest: int, unit: str) -> str:
    deep = [leaf for leaf in leaves if len(leaf.path) > deepest]
    if not deep:
        return ""
    energy, levels = sum(leaf.self_j for leaf in deep), max(len(leaf.path) for leaf in deep)
    return f"Levels below {deepest} of {levels} are not drawn; their {amount(energy, unit)} stay with the caller."


def block_rows(blocks: Sequence[Block], kind_of: Mapping[str, str], theme: Theme, unit: str) -> Rows:
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
                "total": amount(block.total_j, unit),
                "self": amount(block.self_j, unit),
                "share": percent(block.total_j, whole),
                "calls": count(block.calls) if block.calls else "–",
                "exact": f"{block.total_j:.9g} {unit}",
            }
        )
    return rows


def _rectangles(rows: Rows, theme: Theme, unit: str, *, downwards: bool = False) -> Any:
    """Rectangles: root at the bottom, or at the top when ``downwards`` (an icicle)."""
    alt = altair()
    whole = max((row["end"] for row in rows), default=0.0) or 1.0
    levels = max((row["depth2"] for row in rows), default=1)
    for row in rows:
        row["text"] = fitting(row["label"], (row["end"] - row["start"]) / whole * WIDTH - 8)
    scale_x = {
        "scale": alt.Scale(domain=[0, whole], nice=False),
        "axis": alt.Axis(title=None, labelExpr=quantity(unit), grid=False, orient="bottom", tickCount=8),
    }
    scale_y = {"scale": alt.Scale(domain=[0, levels], nice=False, reverse=downwards), "axis": None}
    base = layer(rows, width=WIDTH, height=(ROW + 2) * levels)
    boxes = base.mark_rect(stroke=theme.ground, strokeWidth=0.7).encode(
        x=alt.X("start:Q", **scale_x),
        x2=alt.X2("end:Q"),
        y=alt.Y("depth:Q", **scale_y),
        y2=alt.Y2("depth2:Q"),
        color=fixed("ground"),
        tooltip=hover(rows, **CARD),
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
            text=alt.Text("text:N"),
            color=fixed("ink"),
            tooltip=hover(rows, **CARD),
        )
    )
    return boxes + stripes + texts
