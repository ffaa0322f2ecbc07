"""An experiment's runs: against time, and as histograms per label. ``sessions.experiment`` reads them.

Rows are one run each and hold the values themselves; Vega adds nothing up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import NoDataError
from ...plugins import chart
from .. import names
from ..numbers import si
from ..theme import WIDTH, Theme
from ..theme import theme as theme_of
from .canvas import Rows, altair, axis_range, finish, fixed, hover, layer, pixels, quantity

if TYPE_CHECKING:
    from ...sessions.experiment import Experiment, RunRow

PANELS = {"time": "s", "energy": "J", "emissions": "g", "emission rate": "g/s"}
_HIGH = 104
_FAR = 30.0  # values that lie farther apart than this are drawn on a logarithmic scale
_CARD = {"run": "run", "group": "runs of", "value": "value", "exact": "exactly", "at": "at", "left_out": "left out"}
LABEL = 60  # letters of a group's name


def panels(experiment: Experiment) -> dict[str, str]:
    """What is drawn of an experiment, with its unit; energy and power by device where a run has several."""
    several = any(len(run.device_j) > 1 for run in experiment.counted)
    devices = experiment.devices if several else []
    return PANELS | {f"energy of {one}": "J" for one in devices} | {f"power of {one}": "W" for one in devices}


def values(run: RunRow) -> dict[str, float | None]:
    """What is drawn of a run, by panel; a panel that is not in it has no value."""
    grams, time_s = run.co2e_g, run.duration_s
    rate = grams / time_s if grams is not None and time_s else None
    whole = dict(zip(PANELS, (time_s, run.energy_j, grams, rate), strict=True))
    energies = {f"energy of {device}": energy_j for device, energy_j in run.device_j.items()}
    return whole | energies | {f"power of {device}": power_w for device, power_w in run.device_w.items()}


@chart("history", about="time, energy and emissions of an experiment's runs against time", needs="experiment")
def history(experiment: Experiment, *, by: Sequence[str] = (), top: int = 8, theme: str = "light") -> Any:
    """Time, energy, emissions and their rate of every run against the time at which it began, a colour per label."""
    look = theme_of(theme)
    parted, merged = groups(experiment, by, top)
    colours = {name: look.series[at % len(look.series)] for at, name in enumerate(parted)}
    clock = all(run.start_ns is not None for runs in parted.values() for run in runs)
    left_out = [run for run in experiment.runs if run.left_out and (run.start_ns is not None or not clock)]
    numbers = {id(run): at for at, run in enumerate(experiment.runs, 1)}
    parts = [_legend(parted, colours)] if len(parted) > 1 else []
    drawn = [values(run) for runs in parted.values() for run in runs]
    shown = {name: unit for name, unit in panels(experiment).items() if any(of.get(name) for of in drawn)}
    for name, unit in shown.items():
        own = [(run, group, colours[group]) for group in parted for run in parted[group]]
        rows = [_point(run, name, unit, group, colour, clock, numbers) for run, group, colour in own]
        lost = [_point(run, name, unit, "", look.muted, clock, numbers) for run in left_out]
        axis = name == list(shown)[-1]
        parts.append(_panel(name, unit, [r for r in rows if r], [r for r in lost if r], look, clock, axis))
    note = "A line is the mean of its runs." + (" Crosses at the foot are runs that are left out." if left_out else "")
    return finish(
        parts, look, title=finding(parted), subtitle=subtitle(experiment, parted),
        caption=[note, merged, *warnings(experiment, by)], spacing=22,
    )  # fmt: skip


# -------------------------------------------------------------------------------------------------------------- pieces


def groups(experiment: Experiment, by: Sequence[str], top: int) -> tuple[dict[str, list[RunRow]], str]:
    """The groups with most runs, the rest as one; and a sentence about that."""
    groups = experiment.groups(by)
    if not groups:
        raise NoDataError(f"no run can be drawn: {'; '.join(experiment.notes[:3]) or 'there is none'}")
    if len(groups) <= top + 1:
        return groups, ""
    order = sorted(groups, key=lambda name: -len(groups[name]))
    rest = [run for name in order[top:] for run in groups[name]]
    kept = {name: runs for name, runs in groups.items() if name in order[:top]}
    return kept | {f"other ({len(order) - top} labels)": rest}, f"The {top} labels with most runs are shown apart."


def finding(groups: Mapping[str, Sequence[RunRow]]) -> str:
    means = {}
    for name, runs in groups.items():
        known = [run.energy_j for run in runs if run.energy_j is not None]
        if known:
            means[name] = float(np.mean(known))
    if not means:
        return "runs over time"
    mark = " (estimated)" if any(run.estimated for runs in groups.values() for run in runs) else ""
    least, most = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    label = names.shorten(names.clean(least), LABEL)
    if len(means) == 1:
        return f"{label}: {si(means[least], 'J')} per run{mark}"
    ratio = means[most] / means[least] if means[least] else float("inf")
    return f"{label}: least energy, {si(means[least], 'J')} per run{mark}; the most takes {ratio:.3g} times as much"


def subtitle(experiment: Experiment, groups: Mapping[str, Sequence[RunRow]]) -> str:
    count = sum(map(len, groups.values()))
    lost = len(experiment.runs) - len(experiment.counted)
    places = dict.fromkeys(run.place for runs in groups.values() for run in runs if run.place)
    words = f"{count} run{'' if count == 1 else 's'}" + (f", {lost} left out" if lost else "")
    return words + (f"; CO2e as of {', '.join(map(names.clean, list(places)[:4]))}" if places else "")


def warnings(experiment: Experiment, by: Sequence[str]) -> list[str]:
    notes = [names.clean(note) for note in experiment.summary(by)["notes"]]
    return [f"{note}." for note in notes[:4]] + ([f"… and {len(notes) - 4} more notes."] if len(notes) > 4 else [])


def _point(
    run: RunRow, panel: str, unit: str, group: str, colour: str, clock: bool, numbers: Mapping[int, int]
) -> dict[str, Any] | None:
    value = values(run).get(panel)
    if value is None or value <= 0:  # nothing to see, and nothing for a logarithm
        return None
    at = run.start_ns / 1e6 if clock and run.start_ns is not None else numbers[id(run)]
    row = {"x": at, "y": value, "run": names.clean(run.name), "group": names.clean(group), "colour": colour}
    row |= {"value": si(value, unit), "exact": f"{value:.9g} {unit}"}
    return row | ({"left_out": names.clean(run.left_out)} if run.left_out else {})


def _panel(name: str, unit: str, rows: Rows, lost: Rows, theme: Theme, clock: bool, axis: bool) -> Any:
    alt = altair()
    kind = "T" if clock else "Q"
    everyone = [row["y"] for row in rows] or [1.0]
    far = max(everyone) > _FAR * min(everyone)
    spread = {"type": "log"} if far else {"domain": list(axis_range(everyone)), "zero": False}
    if axis:
        times = {"format": _clock_format(rows)} if clock else {"format": "d", "tickMinStep": 1}
        under = alt.Axis(title="began at (UTC)" if clock else "run", grid=False, tickCount=8, **times)
    else:
        under = alt.Axis(title=None, grid=False, labels=False, ticks=False)
    x = {"scale": alt.Scale(type="utc" if clock else "linear", nice=False, zero=False, padding=12), "axis": under}
    ticks = {"values": _decades(min(everyone), max(everyone))} if far else {"tickCount": 4}
    y = {"scale": alt.Scale(nice=not far, padding=6, **spread),
         "axis": alt.Axis(title=None, labelExpr=quantity(unit), minExtent=56, **ticks)}  # fmt: skip
    shared = {"x": alt.X(f"x:{kind}", **x), "y": alt.Y("y:Q", **y)}
    ground = layer(rows, width=WIDTH, height=_HIGH)
    points = ground.mark_point(filled=True, size=34, opacity=0.8).encode(
        **shared, color=fixed("colour"), tooltip=hover(rows, **_CARD)
    )
    means = layer(_means(rows)).mark_rule(strokeWidth=1.5, opacity=0.9).encode(
        **shared, x2=alt.X2("x2:Q"), color=fixed("colour")
    )  # fmt: skip
    # at the foot, independent of their value: what does not count shall not stretch the scale
    crosses = layer(lost).mark_point(shape="cross", angle=45, size=46, color=theme.muted, filled=True).encode(
        x=shared["x"], y=alt.YValue(_HIGH - 5), tooltip=hover(lost, **_CARD)
    )  # fmt: skip
    words = layer([{"text": f"{name}{', logarithmic' if far else ''}"}]).mark_text(
        align="left", baseline="bottom", dy=-4, fontWeight=600
    ).encode(x=alt.XValue(0), y=alt.YValue(0), text=alt.Text("text:N"))  # fmt: skip
    return alt.layer(points, means, *([crosses] if lost else []), words)


def _clock_format(rows: Rows) -> str:
    """As much of date and time as distinguishes the runs."""
    times_ms = [row["x"] for row in rows]
    long_s = (max(times_ms) - min(times_ms)) / 1000 if times_ms else 0.0
    steps = ((600, "%H:%M:%S"), (86_400, "%H:%M"), (4 * 86_400, "%d %b %H:%M"), (300 * 86_400, "%d %b"))
    return next((words for limit, words in steps if long_s < limit), "%b %Y")


def _decades(low: float, high: float) -> list[float]:
    """Powers of ten around and between two values, at most six or so."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return [10.0**power for power in range(first, last + 1, max(1, (last - first) // 5))]


def _means(rows: Rows) -> Rows:
    """A line per group, from its first to its last run, at its mean."""
    groups: dict[str, Rows] = {}
    for row in rows:
        groups.setdefault(row["group"], []).append(row)
    return [
        {"x": min(r["x"] for r in own), "x2": max(r["x"] for r in own), "colour": own[0]["colour"],
         "y": float(np.mean([r["y"] for r in own])), "mean_of": len(own)}
        for own in groups.values()
    ]  # fmt: skip


def _legend(groups: Mapping[str, Sequence[RunRow]], colours: Mapping[str, str]) -> Any:
    alt = altair()
    rows: Rows = []
    at, line = 0.0, 0
    for name, runs in groups.items():
        title = f"{names.shorten(names.clean(name), LABEL)} ({len(runs)})"
        wide = 14 + pixels(title) + 18
        if at and at + wide > WIDTH:
            at, line = 0.0, line + 1
        rows.append({"x": at, "label_x": at + 14, "y": 7 + 18 * line, "title": title, "colour": colours[name]})
        at += wide
    height = 14 + 18 * line
    x = {"scale": alt.Scale(domain=[0, WIDTH], nice=False), "axis": None}
    y = alt.Y("y:Q", scale=alt.Scale(domain=[0, height], reverse=True, nice=False), axis=None)
    base = layer(rows, width=WIDTH, height=height)
    squares = base.mark_circle(size=80, opacity=0.9).encode(x=alt.X("x:Q", **x), y=y, color=fixed("colour"))
    return squares + base.mark_text(align="left", baseline="middle").encode(
        x=alt.X("label_x:Q", **x), y=y, text=alt.Text("title:N")
    )
