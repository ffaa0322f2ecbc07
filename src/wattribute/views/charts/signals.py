"""Signals that are not energy, as lines over time: utilisation, power, temperature, memory, clocks of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...model import Clock, Signal
from .. import names
from ..numbers import si
from ..theme import WIDTH, Theme
from .canvas import Rows, altair, hover, layer, quantity, span_axis, time_axis

Floats = npt.NDArray[np.float64]
# unit → title of its panel, in the order in which panels stand
PANELS = {"%": "utilisation", "W": "power", "°C": "temperature", "B": "memory", "Hz": "clock"}
_CARD = {"series": "signal", "when": "at", "value": "value", "range": "range"}
_BINS = 300
_WIDE = WIDTH - 150


@dataclass(frozen=True)
class Series:
    """A signal's values over time; binned ones keep mean, least and greatest."""

    label: str
    time_s: Floats
    mean: Floats
    low: Floats
    high: Floats
    last_s: float
    readings: int
    short: str = ""  # the label beside the line


def series(label: str, signal: Signal, clock: Clock, short: str = "") -> Series:
    """The readings of a gauge in its unit, binned when there are more than can be seen."""
    times = np.asarray(clock.seconds(signal.times), np.float64)
    values = np.asarray(signal.values, np.float64) * float(signal.scale)
    good = np.isfinite(values)
    order = np.argsort(times[good], kind="stable")
    times, values = times[good][order], values[good][order]
    last = float(times[-1]) if len(times) else 0.0
    if len(times) <= 2 * _BINS:
        return Series(label, times, values, values, values, last, len(times), short or label)
    place = np.minimum(((times - times[0]) / max(last - times[0], 1e-300) * _BINS).astype(np.int64), _BINS - 1)
    begins = np.flatnonzero(np.concatenate([[True], np.diff(place) > 0]))
    count = np.diff(np.append(begins, len(times)))
    return Series(
        label, times[begins], np.add.reduceat(values, begins) / count, np.minimum.reduceat(values, begins),
        np.maximum.reduceat(values, begins), last, len(times), short or label,
    )  # fmt: skip


def _rows(lines: Sequence[Series], unit: str, per_s: float, theme: Theme) -> Rows:
    rows: Rows = []
    for i, line in enumerate(lines):
        hue = theme.series[i % len(theme.series)]
        at = np.append(line.time_s, line.last_s)
        for j in range(len(at) if len(line.mean) else 0):
            k = min(j, len(line.mean) - 1)
            rows.append(
                {
                    "start": float(at[j]) * per_s, "mean": float(line.mean[k]), "low": float(line.low[k]),
                    "high": float(line.high[k]), "ground": hue, "series": line.label,
                    "when": si(float(at[j]), "s", 6), "value": si(float(line.mean[k]), unit),
                    "range": f"{si(float(line.low[k]), unit)} – {si(float(line.high[k]), unit)}",
                }
            )  # fmt: skip
    return rows


def panel(
    title: str, unit: str, lines: Sequence[Series], theme: Theme, window: tuple[float, float], per_s: float,
    time: str | None, height: int = 110,
) -> Any:  # fmt: skip
    """One panel: a step line per signal with its name at the end, in the order of the last values."""
    alt = altair()
    rows = _rows(lines, unit, per_s, theme)
    axis = time_axis(time) if time else alt.Axis(title=None, labels=False, ticks=False, grid=False)
    x = alt.X("start:Q", scale=span_axis(window[0] * per_s, window[1] * per_s), axis=axis)
    top = max((float(line.high.max()) for line in lines if len(line.high)), default=1.0)
    bottom = min(0.0, min((float(line.low.min()) for line in lines if len(line.low)), default=0.0))
    top = 100.0 if unit == "%" and 50 < top <= 100 else top * 1.05 or 1.0
    ticks = {"values": _byte_ticks(top), "labelExpr": _BYTES} if unit == "B" else {"labelExpr": quantity(unit)}
    y = {
        "scale": alt.Scale(domain=[bottom, top], nice=False),
        "axis": alt.Axis(title=None, tickCount=4, minExtent=60, **ticks),
    }
    colour = alt.Color("ground:N", scale=None, legend=None)
    base = layer(rows, width=_WIDE, height=height)
    band = base.mark_area(interpolate="step-after", opacity=0.18, clip=True).encode(
        x=x, y=alt.Y("low:Q", **y), y2="high:Q", color=colour, detail="series:N"
    )
    curves = base.mark_line(interpolate="step-after", strokeWidth=1.4, clip=True).encode(
        x=x, y=alt.Y("mean:Q", **y), color=colour, detail="series:N", tooltip=hover(rows, **_CARD)
    )
    head = [{"text": title}]
    words = layer(head).mark_text(align="left", baseline="bottom", fontWeight=600, dy=-4).encode(
        x=alt.value(0), y=alt.value(0), text="text:N"
    )  # fmt: skip
    return alt.layer(band, curves, words, _names(lines, y, height, theme))


def _names(lines: Sequence[Series], y: dict[str, Any], height: int, theme: Theme) -> Any:
    """Names beside the lines' ends, pushed apart so that none covers another; too many are counted."""
    alt = altair()
    bottom, top = y["scale"].domain
    ends = sorted(
        ((float(line.mean[-1]) if len(line.mean) else 0.0, i) for i, line in enumerate(lines)), key=lambda end: -end[0]
    )
    room = height // 12 + 1
    shown = ends if len(ends) <= room else ends[: room - 1]
    rows: Rows = []
    lowest = -6.0
    for number, (value, i) in enumerate(shown):
        wanted = height * (1 - (value - bottom) / (top - bottom))
        at = max(lowest, min(wanted, height - 12.0 * (len(shown) - number - 1)))
        hue = theme.series[i % len(theme.series)]
        rows.append({"px": at, "text": names.shorten(lines[i].short, 25), "ground": hue})
        lowest = at + 12
    if len(shown) < len(ends):
        rows.append({"px": lowest, "text": f"and {len(ends) - len(shown)} more", "ground": theme.muted})
    for row in rows:
        row["y"] = bottom + (1 - row["px"] / height) * (top - bottom)
    return (
        layer(rows)
        .mark_text(align="left", baseline="middle", dx=6)
        .encode(
            x=alt.value(_WIDE),
            y=alt.Y("y:Q", **y),
            text="text:N",
            color=alt.Color("ground:N", scale=None, legend=None),
        )
    )


_BYTES = " : ".join(
    f"datum.value >= {2**power} ? format(datum.value / {2**power}, '~g') + ' {unit}'"
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB"))
)
_BYTES += " : datum.value + ' B'"


def _byte_ticks(top: float) -> list[float]:
    """Round numbers of bytes: powers of two, about four of them."""
    step = 2.0 ** max(0, int(np.ceil(np.log2(max(top, 1.0) / 5))))
    return [step * i for i in range(int(top / step) + 1)]
