"""Emissions and intensity over time: grams as they add up, and the grid they were drawn from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..numbers import si
from ..theme import WIDTH, Theme
from .canvas import Rows, altair, hover, layer, quantity, time_axis

if TYPE_CHECKING:
    from ...carbon import Slice

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_CARD = {"when": "from", "intensity": "intensity", "energy": "energy", "grams": "emissions", "source": "source"}


def rows_of(slices: Sequence[Slice], wall_clock: bool, per_s: float) -> Rows:
    """A row per slice of one intensity."""
    rows: Rows = []
    for piece in slices:
        start, end = piece.start_ns, piece.end_ns
        if wall_clock:
            at: Any = start / 1e6
            until: Any = end / 1e6
            when = datetime.fromtimestamp(start / 1e9, timezone.utc).isoformat(sep=" ", timespec="seconds")
        else:
            at, until, when = start / 1e9 * per_s, end / 1e9 * per_s, si(start / 1e9, "s", 6)
        rows.append(
            {
                "start": at, "end": until, "co2e_g": piece.co2e_g,
                "g_per_kwh": piece.g_per_kwh, "when": when, "intensity": f"{piece.g_per_kwh:.4g} g/kWh",
                "energy": si(piece.energy_j, "J"), "grams": si(piece.co2e_g, "g"), "source": piece.source,
            }
        )  # fmt: skip
    return rows


def _clock(rows: Rows) -> str:
    """Hours and minutes; seconds too in a short run, days in a long one."""
    long_ms = rows[-1]["end"] - rows[0]["start"] if rows else 0
    return "%H:%M:%S" if long_ms < 1_200_000 else "%H:%M" if long_ms < 86_400_000 else "%d %b %H:%M"


def grown(slices: Sequence[Slice], times_ns: Ints, energy_j: Floats, wall_clock: bool, per_s: float) -> Rows:
    """Grams emitted up to each of a few hundred moments: energy of the moment × intensity of its slice."""
    if not slices:
        return []
    origin = slices[0].start_ns - int(times_ns[0])
    edges = np.array([slices[0].start_ns, *(piece.end_ns for piece in slices)], np.int64) - origin
    moments = np.unique(np.concatenate([np.linspace(edges[0], edges[-1], 301).astype(np.int64), edges]))
    first = int(times_ns[0])
    energy = np.interp(moments - first, times_ns - first, energy_j)
    at_edges = np.interp(edges - first, times_ns - first, energy_j)
    before = np.concatenate([[0.0], np.cumsum([piece.co2e_g for piece in slices])])
    which = np.clip(np.searchsorted(edges, moments, side="right") - 1, 0, len(slices) - 1)
    per_j = np.array([piece.co2e_g / piece.energy_j if piece.energy_j else 0.0 for piece in slices])
    grams = before[which] + per_j[which] * (energy - at_edges[which])
    scale = 1e-6 if wall_clock else per_s / 1e9
    return [
        {"start": float((moment + origin) * scale), "grams_g": float(gram)}
        for moment, gram in zip(moments.tolist(), grams, strict=True)
    ]


def carbon(rows: Rows, grown: Rows, theme: Theme, wall_clock: bool, unit: str) -> list[Any]:
    """Two panels on one time axis: grams so far, and grams per kilowatt-hour."""
    alt = altair()
    kind = "T" if wall_clock else "Q"
    scale = alt.Scale(type="utc", nice=False) if wall_clock else alt.Scale(nice=False, zero=False)
    foot = alt.Axis(title="time (UTC)", grid=False, format=_clock(rows), tickCount=8) if wall_clock else time_axis(unit)
    bare = alt.Axis(title=None, labels=False, ticks=False, grid=False)
    steps = [*rows, rows[-1] | {"start": rows[-1]["end"]}] if rows else []  # a last row closes the steps

    def panel(data: Rows, field: str, mark: str, title: str, label: str, axis: Any, height: int) -> Any:
        place = {
            "x": alt.X(f"start:{kind}", scale=scale, axis=axis),
            "y": alt.Y(f"{field}:Q", axis=alt.Axis(title=None, labelExpr=label, tickCount=4, minExtent=70),
                       scale=alt.Scale(zero=True)),
        }  # fmt: skip
        base = layer(data, width=WIDTH - 20, height=height)
        shape = base.mark_area(interpolate=mark, color=theme.series[1], opacity=0.3).encode(**place)
        line = base.mark_line(interpolate=mark, color=theme.series[1], strokeWidth=1.5).encode(**place)
        hovered = layer(rows).mark_rect(opacity=0).encode(
            x=place["x"], x2=f"end:{kind}", y=alt.value(0), y2=alt.value(height), tooltip=hover(rows, **_CARD)
        )  # fmt: skip
        words = layer([{"text": title}]).mark_text(align="left", baseline="bottom", fontWeight=600, dy=-4).encode(
            x=alt.value(0), y=alt.value(0), text="text:N"
        )  # fmt: skip
        return alt.layer(shape, line, hovered, words)

    intensity = "format(datum.value, '~g') + ' g/kWh'"
    return [
        panel(grown, "grams_g", "linear", "emissions so far (CO2e)", quantity("g"), bare, 170),
        panel(steps, "g_per_kwh", "step-after", "intensity of the electricity", intensity, foot, 110),
    ]
