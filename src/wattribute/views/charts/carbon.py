"""Emissions over time: grams per hour, whose area is the sum, and the intensity of the electricity where it varies."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...model import Attribution
from ...plugins import chart
from .. import names
from ..numbers import bounded, count, percent, si
from ..theme import WIDTH, Theme
from ..theme import theme as theme_of
from .canvas import Rows, altair, finish, hover, layer, quantity, time_axis, time_unit
from .captions import run_name
from .curves import whole_curve

if TYPE_CHECKING:
    from ...carbon import Emissions, Slice

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_YEAR_NS = 31_557_600 * 10**9  # later than a year after 1970: a wall clock, not time since the start
_CARD = {"when": "from", "intensity": "intensity", "energy": "energy", "grams": "emissions", "source": "source"}


@chart("carbon", about="emissions per hour and their sum, intensity of the electricity", by=("device",))
def carbon(
    attribution: Attribution, emissions: Emissions | None = None, *, theme: str = "light", zone: str | None = None
) -> Any:
    """Emissions per hour over time with their sum; of ``zone`` unless they are given."""
    look = theme_of(theme)
    if emissions is None:
        from ...carbon import emissions as emissions_of

        emissions = emissions_of(attribution, zone=zone)
    wall_clock = bool(emissions.slices) and emissions.slices[0].start_ns > _YEAR_NS
    per_s, unit = time_unit(emissions.duration_s)
    rows = rows_of(emissions.slices, wall_clock, per_s)
    times, joules = whole_curve(attribution)
    rates = rate_rows(emissions.slices, attribution.recording.clock.ns(times), joules, wall_clock, per_s)
    title = f"{si(emissions.co2e_g, 'g')} CO2e from {si(emissions.energy_j, 'J')} at {emissions.g_per_kwh:.3g} g/kWh"
    place = f"{emissions.name} ({emissions.zone})" if emissions.name else emissions.zone
    notes = [f"Sources: {'; '.join(emissions.sources)}."]
    if attribution.count:
        each = emissions.co2e_g / attribution.count
        amount = bounded(each, each * emissions.spread[0], each * emissions.spread[1], "g")
        notes.append(f"Per {attribution.question.per}: {amount} ({count(attribution.count)} counted).")
    if emissions.assumed:
        low, high = si(emissions.low_g, "g"), si(emissions.high_g, "g")
        notes.append(f"No zone was given: the world average is assumed; by country it would be {low} to {high}.")
    if emissions.embodied_g:
        whole = emissions.total_g
        notes.append(
            f"Making the hardware adds {si(emissions.embodied_g, 'g')} ({percent(emissions.embodied_g, whole)})."
        )
    notes += [f"Noticed: {problem}." for problem in emissions.problems[:2]]
    subtitle = f"{run_name(attribution.recording)} · {place} · PUE {emissions.pue:g}"
    return finish(_panels(rows, rates, emissions.co2e_g, look, wall_clock, unit), look, title=title, subtitle=subtitle,
                  caption=[names.clean(sentence) for sentence in notes], spacing=28)  # fmt: skip


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


def rate_rows(slices: Sequence[Slice], times_ns: Ints, energy_j: Floats, wall_clock: bool, per_s: float) -> Rows:
    """Grams per hour in a few hundred stretches: energy × the intensity of the slice; a last row closes."""
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
    hours = np.diff(moments) / 3.6e12
    rate = np.append(np.diff(grams) / hours, 0.0)
    rate[-1] = rate[-2] if len(rate) > 1 else 0.0
    return [
        {"start": float((moment + origin) * scale), "g_per_h": float(value), "co2e_g": float(gram)}
        for moment, value, gram in zip(moments.tolist(), rate, np.append(np.diff(grams), 0.0), strict=True)
    ]


def _panels(rows: Rows, rates: Rows, sum_g: float, theme: Theme, wall_clock: bool, unit: str) -> list[Any]:
    """Grams per hour, and grams per kilowatt-hour where these are not always the same."""
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
            x=place["x"], x2=f"end:{kind}", y=alt.YValue(0), y2=alt.Y2Value(height), tooltip=hover(rows, **_CARD)
        )  # fmt: skip
        words = layer([{"text": title}]).mark_text(align="left", baseline="bottom", fontWeight=600, dy=-4).encode(
            x=alt.XValue(0), y=alt.YValue(0), text=alt.Text("text:N")
        )  # fmt: skip
        return alt.layer(shape, line, hovered, words)

    varies = len({row["g_per_kwh"] for row in rows}) > 1
    heading = f"emission rate (CO2e); the area is {si(sum_g, 'g')}"
    parts = [panel(rates, "g_per_h", "step-after", heading, quantity("g/h"), bare if varies else foot, 170)]
    if varies:
        intensity = "format(datum.value, '~g') + ' g/kWh'"
        parts.append(panel(steps, "g_per_kwh", "step-after", "intensity of the electricity", intensity, foot, 110))
    return parts
