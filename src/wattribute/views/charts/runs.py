"""Many runs: energy against time, with lines of equal power; and how energy and time spread over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import names
from ..numbers import si
from ..theme import WIDTH, Theme
from .canvas import Rows, altair, hover, layer, nice_step, pixels, quantity

_CARD = {"run": "run", "energy": "energy", "time": "time", "power": "mean power", "exact": "exactly"}
_WIDE, _HIGH = WIDTH - 60, 340
_ABREAST = 3


@dataclass(frozen=True)
class Run:
    """One run as a point."""

    label: str
    duration_s: float
    energy_j: float
    co2e_g: float | None = None

    @property
    def power_w(self) -> float:
        return self.energy_j / self.duration_s if self.duration_s > 0 else 0.0


def _rows(runs: Sequence[Run]) -> Rows:
    labels = [names.shorten(names.clean(run.label), 28) for run in runs]
    return [
        {
            "number": i + 1, "duration_s": run.duration_s, "energy_j": run.energy_j, "power_w": run.power_w,
            "run": names.clean(run.label), "label": label, "energy": si(run.energy_j, "J"),
            "time": si(run.duration_s, "s"), "power": si(run.power_w, "W"), "exact": f"{run.energy_j:.9g} J",
        }
        for i, (run, label) in enumerate(zip(runs, labels, strict=True))
    ]  # fmt: skip


def scatter(runs: Sequence[Run], theme: Theme) -> Any:
    """Energy against time; on a grey line power is the same, so a run below it was cooler, not only faster."""
    alt = altair()
    rows = _rows(runs)
    window = (*_range([run.duration_s for run in runs]), *_range([run.energy_j for run in runs]))
    x = {"scale": alt.Scale(domain=list(window[:2]), nice=False, zero=False),
         "axis": alt.Axis(title="time", labelExpr=quantity("s"), grid=False, tickCount=8)}  # fmt: skip
    y = {"scale": alt.Scale(domain=list(window[2:]), nice=False, zero=False),
         "axis": alt.Axis(title="energy", labelExpr=quantity("J"), tickCount=6)}  # fmt: skip
    lines, words = _equal_power(window)
    ground = layer(lines, width=_WIDE, height=_HIGH)
    rules = ground.mark_line(color=theme.muted, opacity=0.45, strokeDash=[3, 3], clip=True).encode(
        x=alt.X("duration_s:Q", **x), y=alt.Y("energy_j:Q", **y), detail="power:N"
    )
    ends = layer(words).mark_text(align="left", baseline="middle", dx=4, color=theme.muted, fontSize=10).encode(
        x=alt.X("duration_s:Q", **x), y=alt.Y("energy_j:Q", **y), text="power:N"
    )  # fmt: skip
    base = layer(rows)
    points = base.mark_point(filled=True, size=70, opacity=0.85, color=theme.series[0]).encode(
        x=alt.X("duration_s:Q", **x), y=alt.Y("energy_j:Q", **y), tooltip=hover(rows, **_CARD)
    )
    parts = [rules, ends, points]
    named = layer(_apart(rows, window))
    parts.append(
        named.mark_text(align="left", dx=8, dy=-7).encode(
            x=alt.X("duration_s:Q", **x), y=alt.Y("energy_j:Q", **y), text="label:N"
        )
    )
    return alt.layer(*parts)


def _range(values: Sequence[float]) -> tuple[float, float]:
    """From 0, or, where the values lie close together, from a little below them."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    if low < 0.5 * high or high <= 0 or len(values) == 1:
        return 0.0, high * 1.12 or 1.0
    margin = max(high - low, 0.04 * high) * 0.4
    return max(0.0, low - margin), high + margin


def _equal_power(window: tuple[float, float, float, float]) -> tuple[Rows, Rows]:
    """Lines through the origin at round powers that cross the window, and their names where they leave it."""
    first, last, low, high = window
    if first and low:
        step = nice_step((high / first - low / last) / 6)
        powers = [step * i for i in range(int(low / last / step) + 1, int(high / first / step) + 1)]
    else:
        powers = [nice_step(high / last * factor) for factor in (0.1, 0.3, 0.7, 1.5, 4.0)]
    lines: Rows = []
    words: Rows = []
    for power in powers:
        begin, end = max(first, low / power), min(last, high / power)
        if begin >= end:
            continue
        word = si(power, "W", 3)
        lines += [{"duration_s": at, "energy_j": at * power, "power": word} for at in (begin, end)]
        words.append({"duration_s": end, "energy_j": end * power, "power": word})
    return lines, words


def _apart(rows: Rows, window: tuple[float, float, float, float]) -> Rows:
    """The rows whose labels do not cover one placed before; the others keep their hover card."""
    placed: list[tuple[float, float, float]] = []
    kept: Rows = []
    for row in rows:
        x = (row["duration_s"] - window[0]) / (window[1] - window[0]) * _WIDE
        y = (row["energy_j"] - window[2]) / (window[3] - window[2]) * _HIGH
        wide = pixels(row["label"])
        if all(x + wide < a or x > a + w or abs(y - b) > 12 for a, b, w in placed):
            placed.append((x, y, wide))
            kept.append(row)
    return kept


def spread(runs: Sequence[Run], theme: Theme) -> list[Any]:
    """Histograms with mean, median and quartiles, and below each the same in the order of the runs; two lines of them
    when emissions are known."""
    alt = altair()
    shown = [
        ("energy", "J", [run.energy_j for run in runs]),
        ("time", "s", [run.duration_s for run in runs]),
        ("mean power", "W", [run.power_w for run in runs]),
    ]
    grams = [run.co2e_g for run in runs if run.co2e_g is not None]
    if len(grams) == len(runs) and all(run.duration_s > 0 for run in runs):
        shown += [("emissions", "g", grams)]
        shown += [("emission rate", "g/s", [g / run.duration_s for g, run in zip(grams, runs, strict=True)])]
    parts = []
    for at in range(0, len(shown), _ABREAST):
        line = [(title, unit, np.array(values)) for title, unit, values in shown[at : at + _ABREAST]]
        parts.append(alt.hconcat(*(histogram(*one, theme) for one in line), spacing=36))
        parts.append(alt.hconcat(*(_sequence(unit, data, theme) for _, unit, data in line), spacing=36))
    return parts


def histogram(
    title: str, unit: str, data: npt.NDArray[np.float64], theme: Theme, wide: int = 248, colour: str = ""
) -> Any:
    """How often which values: with mean (dashed), median (solid) and quartiles (dotted)."""
    alt = altair()
    number, edges = np.histogram(data, bins=min(20, max(5, round(len(data) ** 0.5) + 2)))
    rows: Rows = [
        {
            "start": float(a),
            "end": float(b),
            "runs": int(n),
            "zero": 0,
            "range": f"{si(float(a), unit)} – {si(float(b), unit)}",
        }
        for n, a, b in zip(number, edges[:-1], edges[1:], strict=True)
    ]
    x = {"scale": alt.Scale(zero=False, nice=False, domain=[float(edges[0]), float(edges[-1])]),
         "axis": alt.Axis(title=None, labelExpr=quantity(unit), tickCount=3, grid=False)}  # fmt: skip
    bars = layer(rows, width=wide, height=90).mark_rect(color=colour or theme.series[0], opacity=0.75).encode(
        x=alt.X("start:Q", **x), x2="end:Q", y2="zero:Q",
        y=alt.Y("runs:Q", axis=alt.Axis(title="runs", tickCount=3, tickMinStep=1, minExtent=24)),
        tooltip=hover(rows, range=title, runs="runs"),
    )  # fmt: skip
    low, middle, high = (float(q) for q in np.quantile(data, (0.25, 0.5, 0.75)))
    marks = [(low, [2, 3]), (middle, [1, 0]), (high, [2, 3]), (float(data.mean()), [6, 3])]
    rules = [
        layer([{"at": at}]).mark_rule(color=theme.text, strokeDash=dash).encode(x=alt.X("at:Q", **x))
        for at, dash in marks
    ]
    said = f"mean {si(float(data.mean()), unit)}, median {si(middle, unit)}"
    lines = [(f"{title}: {said}", -4)] if wide >= 248 else [(title, -18), (said, -4)]
    words = [
        layer([{"text": text}])
        .mark_text(align="left", baseline="bottom", dy=dy, fontWeight=600 if text.startswith(title) else 400)
        .encode(x=alt.value(0), y=alt.value(0), text="text:N")
        for text, dy in lines
    ]
    return alt.layer(bars, *rules, *words)


def _sequence(unit: str, data: npt.NDArray[np.float64], theme: Theme) -> Any:
    alt = altair()
    rows: Rows = [{"run": i + 1, "value": float(v), "text": si(float(v), unit)} for i, v in enumerate(data)]
    x = alt.X("run:Q", axis=alt.Axis(title="run", grid=False, tickMinStep=1, format="d"),
              scale=alt.Scale(domain=[0.5, len(data) + 0.5], nice=False))  # fmt: skip
    y = alt.Y("value:Q", axis=alt.Axis(title=None, labelExpr=quantity(unit), tickCount=3), scale=alt.Scale(zero=False))
    base = layer(rows, width=248, height=70)
    line = base.mark_line(color=theme.series[0], opacity=0.5).encode(x=x, y=y)
    return line + base.mark_point(filled=True, color=theme.series[0], size=20).encode(
        x=x, y=y, tooltip=hover(rows, run="run", text="value")
    )
