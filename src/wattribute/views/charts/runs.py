"""Many runs: energy against time, with lines of equal power; and how energy and time spread over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...errors import OptionError
from ...model import Answer, Attribution
from ...plugins import chart
from .. import names
from ..numbers import seconds, si
from ..theme import WIDTH, Theme
from ..theme import theme as theme_of
from .canvas import Rows, altair, axis_range, finish, hover, layer, nice_step, pixels, quantity
from .captions import run_name
from .curves import attributed_ticks
from .tables import with_energy
from .totals import total

if TYPE_CHECKING:
    from ...carbon import Emissions
    from ...comparison.ensemble_rows import EnsembleAttribution

_CARD = {"run": "run", "energy": "energy", "time": "time", "power": "mean power", "exact": "exactly"}
_WIDE, _HIGH = WIDTH - 60, 340
_ABREAST = 3
_EXTENT = 54  # of the labels beside a panel: the same, so that panels stand below each other


@chart("runs", about="energy against time of many runs", needs="runs", by=("device",))
def runs(
    attributions: Sequence[Attribution] | Attribution | EnsembleAttribution,
    emissions: Sequence[Emissions] | None = None,
    *,
    theme: str = "light",
    zone: str | None = None,
) -> Any:
    """Energy against time of many runs; with five or more also how they and their emissions spread.

    Takes the attributions of an ensemble, too. Emissions are those of ``zone`` unless they are given.
    """
    look = theme_of(theme)
    each = _each(attributions)
    points = [run_of(attribution) for attribution in each]
    if emissions is None:
        from ...carbon import emissions as emissions_of

        emissions = [emissions_of(attribution, zone=zone) for attribution in each]
    grams = [one.co2e_g for one in emissions]
    points = [
        RunPoint(label, point.duration_s, point.energy_j, co2e_g)
        for label, point, co2e_g in zip(_labels(points), points, grams, strict=True)
    ]
    least = min(points, key=lambda run: run.energy_j)
    energies = np.array([run.energy_j for run in points])
    parts = [scatter(points, look), *(spread(points, look) if len(points) >= 5 else [])]
    low, mean, high = (si(float(value), "J") for value in (energies.min(), energies.mean(), energies.max()))
    note = f"{len(points)} runs, mean {mean}, from {low} to {high}." if len(points) > 1 else f"One run of {mean}."
    note += _estimated_beside(each) + " On a dotted line power is the same."
    if len(points) >= 5:
        note += " Below: solid median, dotted quartiles, dashed mean."
    if emissions:
        rates = (f"{one.g_per_kwh:.3g} g/kWh" + (f" ({one.zone})" if one.zone else "") for one in emissions)
        note += f" CO2e at {', '.join(dict.fromkeys(rates))}."
    least_words = "" if len(points) == 1 else "least energy, "
    title = f"{least.label}: {least_words}{si(least.energy_j, 'J')} in {seconds(least.duration_s)}"
    return finish(parts, look, title=title, subtitle="measured energy against time", caption=[note], spacing=30)


def _each(attributions: Sequence[Attribution] | Attribution | EnsembleAttribution) -> list[Attribution]:
    if isinstance(attributions, Attribution):
        return [attributions]
    each = list(attributions.parts.values() if isinstance(attributions, Answer) else attributions)
    if not each:
        raise OptionError("a chart of runs needs at least one recording")
    return each


def _estimated_beside(attributions: Sequence[Attribution]) -> str:
    """What a model says of devices that do not count beside measured ones."""
    devices = [device for attribution in attributions for device in attribution.devices.to_dicts()]
    joules = sum(device["measured_j"] or 0.0 for device in devices if device["estimated"] and not device["counted"])
    return f" Not in it: {si(joules / len(attributions), 'J')} a run that a model estimated." if joules else ""


def run_of(attribution: Attribution) -> RunPoint:
    """One run as a point: all it measured, from its start to its end."""
    with_energy(attribution)
    first, last = attributed_ticks(attribution)
    duration = attribution.recording.clock.seconds(last - first)
    return RunPoint(run_name(attribution.recording), duration, total(attribution, "measured"))


def _labels(points: Sequence[RunPoint]) -> list[str]:
    """Names of runs, numbered where one repeats."""
    names = [run.label for run in points]
    return [name if names.count(name) == 1 else f"{name} #{i + 1}" for i, name in enumerate(names)]


@dataclass(frozen=True)
class RunPoint:
    """One run as a point."""

    label: str
    duration_s: float
    energy_j: float
    co2e_g: float | None = None

    @property
    def power_w(self) -> float:
        return self.energy_j / self.duration_s if self.duration_s > 0 else 0.0


def _rows(runs: Sequence[RunPoint]) -> Rows:
    labels = [names.shorten(names.clean(run.label), 28) for run in runs]
    return [
        {
            "number": i + 1, "duration_s": run.duration_s, "energy_j": run.energy_j, "power_w": run.power_w,
            "run": names.clean(run.label), "label": label, "energy": si(run.energy_j, "J"),
            "time": si(run.duration_s, "s"), "power": si(run.power_w, "W"), "exact": f"{run.energy_j:.9g} J",
        }
        for i, (run, label) in enumerate(zip(runs, labels, strict=True))
    ]  # fmt: skip


def scatter(runs: Sequence[RunPoint], theme: Theme) -> Any:
    """Energy against time; on a grey line power is the same, so a run below it was cooler, not only faster."""
    alt = altair()
    rows = _rows(runs)
    window = (*axis_range([run.duration_s for run in runs]), *axis_range([run.energy_j for run in runs]))
    x = {"scale": alt.Scale(domain=list(window[:2]), nice=False, zero=False),
         "axis": alt.Axis(title="time", labelExpr=quantity("s"), grid=False, tickCount=8)}  # fmt: skip
    y = {"scale": alt.Scale(domain=list(window[2:]), nice=False, zero=False),
         "axis": alt.Axis(title="energy", labelExpr=quantity("J"), tickCount=6)}  # fmt: skip
    lines, words = _equal_power(window)
    ground = layer(lines, width=_WIDE, height=_HIGH)
    rules = ground.mark_line(color=theme.muted, opacity=0.45, strokeDash=[3, 3], clip=True).encode(
        x=alt.X("duration_s:Q", **x), y=alt.Y("energy_j:Q", **y), detail=alt.Detail("power:N")
    )
    ends = layer(words).mark_text(align="left", baseline="middle", dx=4, color=theme.muted, fontSize=10).encode(
        x=alt.X("duration_s:Q", **x), y=alt.Y("energy_j:Q", **y), text=alt.Text("power:N")
    )  # fmt: skip
    base = layer(rows)
    points = base.mark_point(filled=True, size=70, opacity=0.85, color=theme.series[0]).encode(
        x=alt.X("duration_s:Q", **x), y=alt.Y("energy_j:Q", **y), tooltip=hover(rows, **_CARD)
    )
    parts = [rules, ends, points]
    named = layer(_apart(rows, window))
    parts.append(
        named.mark_text(align="left", dx=8, dy=-7).encode(
            x=alt.X("duration_s:Q", **x), y=alt.Y("energy_j:Q", **y), text=alt.Text("label:N")
        )
    )
    return alt.layer(*parts)


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


def spread(runs: Sequence[RunPoint], theme: Theme) -> list[Any]:
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
        for row in (
            [histogram(*one, theme, extent=_EXTENT) for one in line],
            [_sequence(unit, data, theme) for _, unit, data in line],
        ):
            parts.append(alt.hconcat(*row, spacing=112, bounds="flush"))
    return parts


def histogram(
    title: str, unit: str, data: npt.NDArray[np.float64], theme: Theme, wide: int = 248, colour: str = "",
    extent: int = 24,
) -> Any:  # fmt: skip
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
        x=alt.X("start:Q", **x), x2=alt.X2("end:Q"), y2=alt.Y2("zero:Q"),
        y=alt.Y("runs:Q", axis=alt.Axis(title="runs", tickCount=3, tickMinStep=1, minExtent=extent, maxExtent=extent)),
        tooltip=hover(rows, range=title, runs="runs"),
    )  # fmt: skip
    low, middle, high = (float(q) for q in np.quantile(data, (0.25, 0.5, 0.75)))
    marks = [(low, [2, 3]), (middle, [1, 0]), (high, [2, 3]), (float(data.mean()), [6, 3])]
    rules = [
        layer([{"at": at}]).mark_rule(color=theme.text, strokeDash=dash).encode(x=alt.X("at:Q", **x))
        for at, dash in marks
    ]
    summary = f"mean {si(float(data.mean()), unit)}, median {si(middle, unit)}"
    lines = [(f"{title}: {summary}", -4)] if wide >= 248 else [(title, -18), (summary, -4)]
    words = [
        layer([{"text": text}])
        .mark_text(align="left", baseline="bottom", dy=dy, fontWeight=600 if text.startswith(title) else 400)
        .encode(x=alt.XValue(0), y=alt.YValue(0), text=alt.Text("text:N"))
        for text, dy in lines
    ]
    return alt.layer(bars, *rules, *words)


def _sequence(unit: str, data: npt.NDArray[np.float64], theme: Theme) -> Any:
    alt = altair()
    rows: Rows = [{"run": i + 1, "value": float(v), "text": si(float(v), unit)} for i, v in enumerate(data)]
    x = alt.X("run:Q", axis=alt.Axis(title="run", grid=False, tickMinStep=1, format="d"),
              scale=alt.Scale(domain=[0.5, len(data) + 0.5], nice=False))  # fmt: skip
    y = alt.Y("value:Q", axis=alt.Axis(title="each", labelExpr=quantity(unit), tickCount=3, minExtent=_EXTENT,
              maxExtent=_EXTENT), scale=alt.Scale(zero=False))  # fmt: skip
    base = layer(rows, width=248, height=70)
    line = base.mark_line(color=theme.series[0], opacity=0.5).encode(x=x, y=y)
    return line + base.mark_point(filled=True, color=theme.series[0], size=20).encode(
        x=x, y=y, tooltip=hover(rows, run="run", text="value")
    )
