"""Heatmap: frame × process, energy or mean power, with totals in the margins.

Frames are the rows (their names are long), processes the columns. More frames than ``top`` become one row "other",
more processes than fit become groups of neighbours: sums are kept, and the caption says what was merged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import names
from ..kinds import colour, ink
from ..numbers import percent, si
from ..theme import ROW, WIDTH, Theme
from .canvas import Rows, altair, fixed, hover, layer, lookup, pixels, scale_legend

Floats = npt.NDArray[np.float64]
_CARD = {
    "frame": "frame",
    "process": "process",
    "energy": "self energy",
    "power": "mean power",
    "share": "of all cells",
    "exact": "exactly",
}
_COLUMNS = 64


@dataclass(frozen=True)
class Table:
    """A matrix of energies and covered seconds; names of rows and columns, and the kind of each row."""

    frames: list[str]
    processes: list[str]
    kinds: list[str]
    energy_j: Floats  # frames × processes
    seconds: Floats
    merged_frames: int = 0
    merged_processes: int = 0

    @property
    def power_w(self) -> Floats:
        return np.divide(self.energy_j, self.seconds, out=np.zeros_like(self.energy_j), where=self.seconds > 0)


def reduce(table: Table, top: int) -> Table:
    """The ``top`` frames by energy and one row for the rest; neighbouring processes grouped if there are too many."""
    sums = table.energy_j.sum(axis=1)
    order = np.argsort(-sums, kind="stable")
    if sums.sum() > 0:
        top = min(top, int((sums > 1e-9 * sums.sum()).sum()))  # a row of noughts says nothing
    kept, rest = order[:top], order[top:]
    if len(rest) == 1:  # "other (1 frame)" would cost a row and say less
        kept, rest = order, order[:0]
    energy, seconds = table.energy_j[kept], table.seconds[kept]
    frames, kinds = [table.frames[i] for i in kept], [table.kinds[i] for i in kept]
    if len(rest):
        energy = np.vstack([energy, table.energy_j[rest].sum(axis=0)])
        seconds = np.vstack([seconds, table.seconds[rest].sum(axis=0)])
        frames.append(f"other ({len(rest)} frames)")
        kinds.append("other")
    processes, width = table.processes, -(-len(table.processes) // _COLUMNS)
    if width > 1:
        starts = np.arange(0, len(processes), width)
        energy, seconds = (np.add.reduceat(values, starts, axis=1) for values in (energy, seconds))
        ends = [min(start + width, len(processes)) - 1 for start in starts]
        processes = [_range(processes[a], processes[b]) for a, b in zip(starts, ends, strict=True)]
    return Table(frames, processes, kinds, energy, seconds, len(rest), width if width > 1 else 0)


def _range(first: str, last: str) -> str:
    """ "MPI Rank 8–15" for a group of ranks; both names where they share no beginning."""
    head = re.sub(r"\d+$", "", first)
    return f"{first}–{last[len(head) :]}" if head and last.startswith(head) and first != last else f"{first} … {last}"


def heatmap(table: Table, theme: Theme, value: str = "energy") -> list[Any]:
    """The matrix with a bar per frame to its right and a bar per process above it."""
    alt = altair()
    labels = list(names.labels(table.frames, 44).values())
    cell = max(9.0, min(110.0, (WIDTH - 330) / max(1, len(table.processes))))
    width, height = cell * len(table.processes), ROW * len(table.frames)
    rows = _cells(table, value, theme, cell)
    y = alt.Y("row:O", sort=None, title=None, axis=alt.Axis(labelExpr=lookup(labels), minExtent=40))
    x = alt.X("column:O", sort=None, title=None, axis=alt.Axis(**_process_axis(table.processes, cell)))
    boxes = layer(rows, width=width, height=height).mark_rect().encode(
        x=x, y=y, color=fixed("ground"), tooltip=hover(rows, **_CARD)
    )  # fmt: skip
    texts = layer([row for row in rows if row["text"]]).mark_text(baseline="middle").encode(
        x=x, y=y, text="text:N", color=fixed("ink"), tooltip=hover(rows, **_CARD)
    )  # fmt: skip
    sides = _margin(table.energy_j.sum(axis=1), table.kinds, "row", theme, height)
    tops = _margin(table.energy_j.sum(axis=0), None, "column", theme, width)
    title, unit = ("self energy", "J") if value == "energy" else ("mean power", "W")
    shown = table.energy_j if value == "energy" else table.power_w
    scale = scale_legend(title, float(shown.max(initial=0.0)), unit, theme)
    return [tops, alt.hconcat(boxes + texts, sides, spacing=8), scale]


def _cells(table: Table, value: str, theme: Theme, cell: float) -> Rows:
    shown = table.energy_j if value == "energy" else table.power_w
    most, whole = float(shown.max(initial=0.0)), float(table.energy_j.sum())
    rows: Rows = []
    for i, frame in enumerate(table.frames):
        for j, process in enumerate(table.processes):
            text = si(float(shown[i, j]), "J" if value == "energy" else "W")
            fits = pixels(text) <= cell - 4 and shown[i, j] > 0
            lightness = float(shown[i, j]) / most if most else 0.0
            rows.append(
                {
                    "row": i,
                    "column": j,
                    "value": float(shown[i, j]),
                    "cell_j": float(table.energy_j[i, j]),
                    "frame": names.full(frame),
                    "process": names.clean(process),
                    "energy": si(float(table.energy_j[i, j]), "J"),
                    "power": si(float(table.power_w[i, j]), "W") if table.seconds[i, j] > 0 else "–",
                    "share": percent(float(table.energy_j[i, j]), whole),
                    "exact": f"{table.energy_j[i, j]:.9g} J",
                    "text": text if fits else "",
                    "ground": theme.ramp(lightness),
                    "ink": ink(theme.ramp(lightness)),
                }
            )
    return rows


def _process_axis(processes: list[str], cell: float) -> dict[str, Any]:
    labels = [names.shorten(names.clean(name), 24) for name in processes]
    longest = max((pixels(label) for label in labels), default=0)
    options: dict[str, Any] = {"labelExpr": lookup(labels), "orient": "bottom", "ticks": False, "domain": False}
    if longest > cell - 4:
        options |= {"labelAngle": -45 if cell >= 14 else -90}
    else:
        options |= {"labelAngle": 0}
    if cell < 14:
        options |= {"labelOverlap": "greedy"}
    return options


def _margin(sums: Floats, kinds: list[str] | None, along: str, theme: Theme, length: float) -> Any:
    """Totals of rows (bars to the right, with numbers) or of columns (bars on top)."""
    alt = altair()
    most = float(sums.max(initial=0.0)) or 1.0
    rows: Rows = [
        {along: i, "energy_j": float(value), "text": si(float(value), "J"),
         "ground": colour(kinds[i]) if kinds else theme.muted}
        for i, value in enumerate(sums)
    ]  # fmt: skip
    band = {"sort": None, "axis": None}
    if along == "row":
        base = layer(rows, width=110, height=length)
        place = {"y": alt.Y("row:O", **band)}
        size = alt.X("energy_j:Q", axis=None, scale=alt.Scale(domain=[0, most * 2.2], nice=False))
        bars = base.mark_bar(height=ROW - 6).encode(x=size, color=fixed("ground"), tooltip=["text:N"], **place)
        return bars + base.mark_text(align="left", dx=4, color=theme.text).encode(x=size, text="text:N", **place)
    base = layer(rows, width=length, height=36)
    place = {"x": alt.X("column:O", **band)}
    room = most * 1.6 if length / max(1, len(sums)) > 46 else most
    size = alt.Y("energy_j:Q", axis=None, scale=alt.Scale(domain=[0, room], nice=False))
    bars = base.mark_bar(opacity=0.55).encode(y=size, color=fixed("ground"), tooltip=["text:N"], **place)
    if room == most:
        return bars
    return bars + base.mark_text(dy=-7, color=theme.text).encode(y=size, text="text:N", **place)
