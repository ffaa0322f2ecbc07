"""Power of devices over time: the slope of joules(t), never the ramp itself, with what ran below it.

A curve with more readings than pixels is binned: a bin keeps its energy (so the area is the measured energy), and the
least and greatest power of the readings in it as a band.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import OptionError
from ...model import Attribution, Clock
from ..numbers import si
from ..theme import ROW, WIDTH, Theme
from .canvas import Rows, altair, fixed, hover, layer, lookup, quantity, scale_legend, span_axis, time_axis
from .captions import device_label

AXES = ("shared", "own", "full")
Floats = npt.NDArray[np.float64]
_CARD = {"device": "device", "when": "from", "mean": "mean", "range": "range", "energy": "energy", "exact": "exactly"}


@dataclass(frozen=True)
class Track:
    """A device's power in stretches of time; ``energy_j`` adds up to what was measured in the window."""

    label: str
    start_s: Floats
    end_s: Floats
    energy_j: Floats
    low_w: Floats
    high_w: Floats
    estimated: bool = False
    binned: bool = False

    @property
    def mean_w(self) -> Floats:
        return self.energy_j / np.maximum(self.end_s - self.start_s, 1e-300)


def track(
    label: str, times: npt.NDArray[np.int64], energy_j: Floats, clock: Clock, *, bins: int = 450,
    estimated: bool = False,
) -> Track:  # fmt: skip
    """The track of a curve of joules(t) given at its knots."""
    if len(times) < 2:
        none = np.empty(0, np.float64)
        return Track(label, none, none, none, none, none, estimated)
    seconds = clock.seconds(times)
    slopes = np.diff(energy_j) / np.maximum(np.diff(seconds), 1e-300)
    if len(slopes) <= 2 * bins:
        return Track(label, seconds[:-1], seconds[1:], np.diff(energy_j), slopes, slopes, estimated)
    edges = np.linspace(seconds[0], seconds[-1], bins + 1)
    energy = np.diff(np.interp(edges, seconds, energy_j))
    first = np.clip(np.searchsorted(seconds, edges[:-1], side="right") - 1, 0, len(slopes) - 1)
    last = np.clip(np.searchsorted(seconds, edges[1:], side="left") - 1, first, len(slopes) - 1)
    low = np.array([slopes[a : b + 1].min() for a, b in zip(first, last, strict=True)])
    high = np.array([slopes[a : b + 1].max() for a, b in zip(first, last, strict=True)])
    return Track(label, edges[:-1], edges[1:], energy, low, high, estimated, binned=True)


def rows_of(track: Track, per_s: float) -> Rows:
    """A row per stretch, and a last one that closes the step."""
    mean = track.mean_w
    rows: Rows = [
        {
            "start": float(track.start_s[i]) * per_s,
            "end": float(track.end_s[i]) * per_s,
            "power": float(mean[i]),
            "low": float(track.low_w[i]),
            "high": float(track.high_w[i]),
            "energy_j": float(track.energy_j[i]),
            "device": track.label,
            "when": si(float(track.start_s[i]), "s", 6),
            "mean": si(float(mean[i]), "W"),
            "range": f"{si(float(track.low_w[i]), 'W')} – {si(float(track.high_w[i]), 'W')}",
            "energy": si(float(track.energy_j[i]), "J"),
            "exact": f"{track.energy_j[i]:.9g} J",
        }
        for i in range(len(mean))
    ]
    if rows:
        rows.append(rows[-1] | {"start": rows[-1]["end"], "energy_j": 0.0})
    return rows


def area(
    track: Track, theme: Theme, window: tuple[float, float], per_s: float, most_w: float, *, height: int = 64,
    axis: Any = None, behind: Rows = [],  # noqa: B006 (never changed)
) -> Any:  # fmt: skip
    """One device: area over what ran ``behind``, band where binned, name on the left, joules on the right."""
    alt = altair()
    rows = rows_of(track, per_s)
    x = {"scale": span_axis(window[0] * per_s, window[1] * per_s), "axis": axis}
    y = {
        "scale": alt.Scale(domain=[0, most_w or 1.0], nice=False),
        "axis": alt.Axis(title=None, labelExpr=quantity("W"), tickCount=2, minExtent=52),
    }
    base = layer(rows, width=WIDTH, height=height)
    place = {"x": alt.X("start:Q", **x)}
    power = {"y": alt.Y("power:Q", **y), **place}
    dash = [4, 3] if track.estimated else [1, 0]
    step = {"interpolate": "step-after", "color": theme.line, "clip": True}
    parts = _ground(behind, x, height) if behind else []
    if track.binned:
        parts.append(base.mark_area(opacity=0.22, **step).encode(y=alt.Y("low:Q", **y), y2=alt.Y2("high:Q"), **place))
    parts += [
        base.mark_area(opacity=0.30, **step).encode(**power),
        base.mark_line(strokeWidth=1.2, strokeDash=dash, **step).encode(**power),
        base.mark_rect(opacity=0, clip=True).encode(
            y=alt.YValue(0), y2=alt.Y2Value(height), x2=alt.X2("end:Q"), tooltip=hover(rows, **_CARD), **place
        ),
    ]
    if behind:
        named = layer([row for row in behind if row["text"]])
        text = named.mark_text(align="left", baseline="top", dx=4, dy=3, clip=True, color=theme.text)
        parts.append(text.encode(x=alt.X("start:Q", **x), y=alt.YValue(0), text=alt.Text("text:N")))
    return alt.layer(*parts, *_sides(track, theme, height))


def _ground(behind: Rows, x: dict[str, Any], height: int) -> list[Any]:
    """What ran, in the colour of its kind."""
    alt = altair()
    return [
        layer(behind).mark_rect(clip=True).encode(
            x=alt.X("start:Q", **x), x2=alt.X2("end:Q"), y=alt.YValue(0), y2=alt.Y2Value(height),
            color=alt.Color("ground:N", scale=None, legend=None),
            opacity=alt.Opacity("opacity:Q", scale=None, legend=None),
            tooltip=hover(behind, frame="frame", kind="kind of work"),
        )
    ]  # fmt: skip


def _sides(track: Track, theme: Theme, height: int) -> list[Any]:
    """The device's name above, its joules and mean power at the right."""
    alt = altair()
    energy_j = float(track.energy_j.sum())
    name = [{"text": track.label + (" (estimated)" if track.estimated else "")}]
    joules = [{"text": "no readings"}]
    if len(track.energy_j):
        mean_w = energy_j / float(track.end_s[-1] - track.start_s[0])
        joules = [{"text": f"{si(energy_j, 'J')}\nmean {si(mean_w, 'W')}"}]
    return [
        layer(name).mark_text(align="left", baseline="bottom", fontWeight=600, dy=-3, color=theme.text).encode(
            x=alt.XValue(0), y=alt.YValue(0), text=alt.Text("text:N")),
        layer(joules).mark_text(align="left", baseline="middle", dx=8, lineBreak="\n").encode(
            x=alt.XValue(WIDTH), y=alt.YValue(height / 2), text=alt.Text("text:N")),
    ]  # fmt: skip


def carpet(
    tracks: Sequence[Track], theme: Theme, window: tuple[float, float], per_s: float, most_w: float, unit: str
) -> list[Any]:  # fmt: skip
    """Many devices: a row each, colour = power; and the scale of the colours."""
    alt = altair()
    rows = [row | {"row": i, "row2": i + 1} for i, track in enumerate(tracks) for row in rows_of(track, per_s)[:-1]]
    labels = {f"{i + 0.5:g}": track.label for i, track in enumerate(tracks)}
    height = ROW * len(tracks)
    y = {
        "scale": alt.Scale(domain=[0, len(tracks)], nice=False, reverse=True),
        "axis": alt.Axis(
            values=[i + 0.5 for i in range(len(tracks))], labelExpr=lookup(labels), title=None, grid=False
        ),
    }
    for row in rows:
        row["ground"] = theme.ramp(row["power"] / most_w if most_w else 0.0)
    boxes = layer(rows, width=WIDTH, height=height).mark_rect(clip=True).encode(
        x=alt.X("start:Q", scale=span_axis(window[0] * per_s, window[1] * per_s), axis=time_axis(unit)),
        x2=alt.X2("end:Q"), y=alt.Y("row:Q", **y), y2=alt.Y2("row2:Q"),
        color=fixed("ground"), tooltip=hover(rows, **_CARD),
    )  # fmt: skip
    sums = [{"row": i + 0.5, "text": si(float(track.energy_j.sum()), "J")} for i, track in enumerate(tracks)]
    texts = layer(sums).mark_text(align="left", baseline="middle", dx=6).encode(
        x=alt.XValue(WIDTH), y=alt.Y("row:Q", **y), text=alt.Text("text:N")
    )  # fmt: skip
    return [alt.layer(boxes, texts), scale_legend("power", most_w, "W", theme)]


def device_track(attribution: Attribution, device: Any) -> Track:
    source, energy = device.source, device.energy.drawn
    label = device_label(attribution, source.device.host, source.device.name)
    return track(label, energy.times, energy.values, attribution.recording.clock, estimated=source.signal.estimated)


def scales_w(tracks: Sequence[Track], axes: str = "shared") -> list[float]:
    """The top of each track's axis: of all the same robust maximum, each its "own", or "full", which cuts nothing."""
    if axes not in AXES:
        raise OptionError.unknown("kind of axes", axes, AXES)
    robust = [_robust_w(one) for one in tracks] or [0.0]
    if axes == "own":
        return robust
    most = max(float(one.high_w.max(initial=0.0)) for one in tracks) if axes == "full" and tracks else max(robust)
    return [most] * max(1, len(tracks))


def _robust_w(track: Track) -> float:
    """The power that a track exceeds for less than a hundredth of its time, and a tenth more; its maximum if near."""
    mean = track.mean_w
    if not len(mean):
        return 0.0
    order = np.argsort(mean)
    lasted = np.cumsum((track.end_s - track.start_s)[order])
    held = float(mean[order][min(int(np.searchsorted(lasted, 0.99 * lasted[-1])), len(mean) - 1)])
    highest = float(track.high_w.max())
    return highest if highest <= 1.25 * held or held <= 0 else 1.1 * held


def track_words(tracks: Sequence[Track], most: Sequence[float]) -> str:
    """What bins mean, and what the axes cut off."""
    text = ""
    if any(one.binned for one in tracks):
        text = "Power is the mean of bins that keep the energy; a band is the least and greatest power inside."
    highest = [(float(one.high_w.max(initial=0.0)), top_w) for one, top_w in zip(tracks, most, strict=False)]
    cut = max((high for high, top_w in highest if high > top_w * (1 + 1e-9)), default=0.0)
    return f"{text} Short rises, up to {si(cut, 'W')}, are cut off.".strip() if cut else text
