"""Books: what each device measured = what went to kinds of work + idle, as one bar per device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .. import names
from ..kinds import KINDS, colour, ink
from ..numbers import percent, si
from ..theme import ROW, WIDTH, Theme
from .canvas import Rows, altair, fixed, hatch, hover, layer, lookup, pixels, quantity

_CARD = {"device": "device", "title": "what", "energy": "energy", "share": "of measured", "exact": "exactly"}


@dataclass(frozen=True)
class Book:
    """One device: joules per kind of work, and idle. They add up to what was measured."""

    label: str
    by_kind: dict[str, float]
    idle_j: float
    estimated: bool = False

    @property
    def measured_j(self) -> float:
        return sum(self.by_kind.values()) + self.idle_j


def books(devices: Sequence[Book], theme: Theme) -> Any:
    """A stacked bar per device, measured energy at its end."""
    alt = altair()
    most = max((book.measured_j for book in devices), default=0.0) or 1.0
    rows = [row for i, book in enumerate(devices) for row in _stack(i, book, theme, most)]
    height = (ROW + 6) * max(1, len(devices))
    x = {
        "scale": alt.Scale(domain=[0, most], nice=False),
        "axis": alt.Axis(title=None, labelExpr=quantity("J"), tickCount=6, grid=True),
    }
    labels = {f"{i + 0.5:g}": names.shorten(book.label, 40) for i, book in enumerate(devices)}
    y = {
        "scale": alt.Scale(domain=[0, max(1, len(devices))], nice=False, reverse=True),
        "axis": alt.Axis(
            values=[i + 0.5 for i in range(len(devices))], labelExpr=lookup(labels), title=None, grid=False
        ),
    }
    bars = layer(rows, width=WIDTH - 40, height=height).mark_rect(strokeWidth=1.5).encode(
        x=alt.X("start:Q", **x), x2="end:Q", y=alt.Y("y:Q", **y), y2="y2:Q", color=fixed("ground"),
        stroke=alt.Stroke("edge:N", scale=None, legend=None), strokeDash=alt.value([4, 3]),
        tooltip=hover(rows, **_CARD),
    )  # fmt: skip
    idle = [row for row in rows if row["kind"] == "idle"]
    stripes = hatch(idle, theme, x="start", x2="end", y="y", y2="y2", step=most / WIDTH * 6, scales={"x": x, "y": y})
    texts = layer([row for row in rows if row["text"]]).mark_text(align="left", dx=5, baseline="middle").encode(
        x=alt.X("start:Q", **x), y=alt.Y("middle:Q", **y), text="text:N", color=fixed("ink")
    )  # fmt: skip
    sums: Rows = [{"y": i + 0.5, "text": si(book.measured_j, "J")} for i, book in enumerate(devices)]
    ends = layer(sums).mark_text(align="left", dx=6, baseline="middle", fontWeight=600).encode(
        x=alt.value(WIDTH - 40), y=alt.Y("y:Q", **y), text="text:N"
    )  # fmt: skip
    return alt.layer(bars, stripes, texts, ends)


def _stack(index: int, book: Book, theme: Theme, most: float) -> Rows:
    rows: Rows = []
    at = 0.0
    for kind, (title, _) in KINDS.items():
        energy = book.idle_j if kind == "idle" else book.by_kind.get(kind, 0.0)
        if energy <= 0:
            continue
        ground = theme.idle if kind == "idle" else colour(kind)
        text = f"{title} {si(energy, 'J')}"
        if pixels(text) > energy / most * (WIDTH - 40) - 8:
            text = si(energy, "J")
        fits = pixels(text) <= energy / most * (WIDTH - 40) - 8
        rows.append(
            {
                "kind": kind, "title": title, "start": at, "end": at + energy, "energy_j": energy,
                "y": index + 0.12, "y2": index + 0.88, "middle": index + 0.5,
                "ground": ground, "ink": ink(ground), "edge": theme.text if book.estimated else ground,
                "device": book.label, "energy": si(energy, "J"), "share": percent(energy, book.measured_j),
                "exact": f"{energy:.9g} J", "text": text if fits else "",
            }
        )  # fmt: skip
        at += energy
    return rows
