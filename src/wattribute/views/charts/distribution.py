"""Distribution: energy (or power) per call, a histogram per frame on one logarithmic axis.

Calls are counted into fine bins as they are met, 100 to a decade, so any number of calls costs the same memory;
counts and joules are exact, quartiles to 1.2 %. Calls without energy are counted in the caption.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...model import Attribution
from ...plugins import chart
from .. import names
from ..kinds import colour, kinds_by_name
from ..numbers import count, si
from ..theme import WIDTH, Theme
from ..theme import theme as theme_of
from .canvas import Rows, altair, finish, hover, layer, nice_step, quantity
from .captions import caption, subtitle
from .curves import Users
from .lanes import exact, per_call
from .tables import check_value, one_view

Floats = npt.NDArray[np.float64]
_LOW, _PER_DECADE, _DECADES = -15, 100, 30  # from 1e-15 to 1e15
_PER_CALL = {"J": "energy", "s": "time", "W": "power"}
_VERB = {"J": "used", "s": "took", "W": "drew"}
_BINS = 56  # drawn
_CARD = {"frame": "frame", "range": "per call", "calls": "calls", "energy": "together", "exact": "exactly"}


@chart("distribution", about="energy or power per call, a histogram per frame")
def distribution(attribution: Attribution, *, value: str = "energy", theme: str = "light", top: int = 8) -> Any:
    """How energy (self) or power spreads over the calls of each frame."""
    look = theme_of(theme)
    view = one_view(attribution)
    histograms = histograms_of(view, check_value(value))
    filled = {name: one for name, one in histograms.items() if one.calls.any()}
    shown = reduce(filled or histograms, top)
    calls = sum(float(one.calls.sum()) + one.none for one in histograms.values())
    note = f"{calls:,.0f} calls. Solid line: median; dotted: quartiles (to 1.2 %)."
    if filled and len(filled) < len(histograms):
        empty = len(histograms) - len(filled)
        note += f" {empty} frame{' without any energy is' if empty == 1 else 's without any energy are'} not drawn."
    return finish(
        _panels(shown, look, view.unit if value == "energy" else "W", view.unit),
        look,
        title=_spread_title(shown, value, view.unit),
        subtitle=subtitle(view),
        caption=caption(view, note),
        spacing=26,
    )


def histograms_of(attribution: Attribution, value: str) -> dict[str, Histogram]:
    """A histogram per frame name, filled location by location."""
    users, clock = Users(attribution), attribution.recording.clock
    frames = attribution.recording.frames
    out: dict[str, Histogram] = {}
    kinds = {of: kinds_by_name(frames, of) for of in {of for of, _ in users}}
    for of, location in users:
        calls = per_call(exact(users.spans(of, location), users.received(of, location)))
        long = clock.seconds(calls.busy.astype(np.float64))
        power = np.divide(calls.total_j, long, out=np.zeros(len(calls)), where=long > 0)
        for frame in np.unique(calls.frame):
            mine = calls.frame == frame
            one = out.setdefault(frames.name[frame], Histogram(kinds[of][frames.name[frame]]))
            values = calls.self_j if value == "energy" else power
            one.add(values[mine], calls.self_j[mine], calls.calls[mine].astype(np.float64))
    return out


def _spread_title(shown: dict[str, Histogram], value: str, amounts: str) -> str:
    filled = [(name, one) for name, one in shown.items() if one.calls.sum()]
    if not filled:
        return "No call received any energy"
    name, one = filled[0]
    unit = amounts if value == "energy" else "W"
    label = names.shorten(names.plain(name), 44)
    if one.calls.sum() < 4:
        return f"{label}: {si(one.most, unit)} in {'its call' if one.calls.sum() == 1 else 'its largest call'}"
    return f"{label}: half of the calls {_VERB[unit]} less than {si(one.quantile(0.5), unit)}"


@dataclass
class Histogram:
    """Calls of one frame by their energy or power."""

    kind: str
    calls: Floats = field(default_factory=lambda: np.zeros(_PER_DECADE * _DECADES))
    energy_j: Floats = field(default_factory=lambda: np.zeros(_PER_DECADE * _DECADES))
    none: int = 0  # calls with nothing
    least: float = np.inf
    most: float = 0.0

    def add(self, values: Floats, energy_j: Floats, calls: Floats) -> None:
        """Count calls of these values; energies go along."""
        some = values > 0
        self.none += int(calls[~some].sum())
        place = np.clip((np.log10(values[some]) - _LOW) * _PER_DECADE, 0, len(self.calls) - 1).astype(np.int64)
        self.calls += np.bincount(place, calls[some], len(self.calls))
        self.energy_j += np.bincount(place, energy_j[some], len(self.calls))
        self.least = min(self.least, float(values[some].min(initial=np.inf)))
        self.most = max(self.most, float(values[some].max(initial=0.0)))

    def merge(self, other: Histogram) -> None:
        self.calls += other.calls
        self.energy_j += other.energy_j
        self.none += other.none
        self.least, self.most = min(self.least, other.least), max(self.most, other.most)

    def quantile(self, share: float) -> float:
        """The value below which this share of the calls lies."""
        reached = np.cumsum(self.calls)
        at = int(np.searchsorted(reached, share * reached[-1]))
        return float(np.clip(10 ** (_LOW + (at + 0.5) / _PER_DECADE), self.least, self.most))


def _edge(index: int) -> float:
    return float(10 ** (_LOW + index / _PER_DECADE))


def _ticks(low: float, high: float) -> list[float]:
    """Round values between two: powers of ten, with 2 and 5 where those are few, even steps in a narrow range."""
    if high < 12 * low:
        step = nice_step((high - low) / 6)
        return [step * i for i in range(int(low / step) + 1, int(high / step) + 1)]
    first, last = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
    digits = (1.0,) if last - first > 5 else (1.0, 2.0, 5.0)
    return [d * 10.0**e for e in range(first, last + 1) for d in digits if low <= d * 10.0**e <= high]


def reduce(histograms: dict[str, Histogram], top: int) -> dict[str, Histogram]:
    """The ``top`` frames by energy, the rest as one."""
    order = sorted(histograms, key=lambda name: (-histograms[name].energy_j.sum(), name))
    if len(order) <= top + 1:
        return {name: histograms[name] for name in order}
    rest = Histogram("other")
    for name in order[top:]:
        rest.merge(histograms[name])
    return {name: histograms[name] for name in order[:top]} | {f"other ({len(order) - top} frames)": rest}


def _panels(histograms: dict[str, Histogram], theme: Theme, unit: str, amounts: str) -> list[Any]:
    """A small histogram per frame, all on one axis."""
    filled = [index for shown in histograms.values() for index in np.flatnonzero(shown.calls)]
    low, high = (min(filled), max(filled) + 1) if filled else (0, 1)
    wide = max(1, -(-(high - low) // _BINS))
    spare = max(0, 20 - (high - low)) // 2  # calls that are all alike stand in the middle, not on the edge
    low, high = low - spare - wide, high + spare + wide
    labels = names.labels(histograms, 60)
    last = len(histograms) - 1
    return [
        _one(labels[name], name, shown, theme, (unit, amounts), (low, high, wide), axis=i == last)
        for i, (name, shown) in enumerate(histograms.items())
    ]


def _rows(name: str, shown: Histogram, unit: str, amounts: str, span: tuple[int, int, int]) -> Rows:
    rows: Rows = []
    for start in range(span[0], span[1], span[2]):
        inside = slice(max(0, start), max(0, start + span[2]))
        calls, energy = float(shown.calls[inside].sum()), float(shown.energy_j[inside].sum())
        if calls or energy:
            a, b = _edge(start), _edge(start + span[2])
            rows.append(
                {
                    "start": a, "end": b, "number": calls, "zero": 0, "energy_j": energy, "frame": names.full(name),
                    "range": f"{si(a, unit)} – {si(b, unit)}", "calls": count(round(calls)),
                    "energy": si(energy, amounts), "exact": f"{energy:.9g} {amounts}",
                }
            )  # fmt: skip
    return rows


def _one(
    label: str, name: str, shown: Histogram, theme: Theme, units: tuple[str, str], span: tuple[int, int, int], *,
    axis: bool
) -> Any:  # fmt: skip
    alt = altair()
    unit, amounts = units
    rows = _rows(name, shown, unit, amounts, span)
    height, ticks = 58, _ticks(_edge(span[0]), _edge(span[1]))
    x = {
        "scale": alt.Scale(type="log", domain=[_edge(span[0]), _edge(span[1])], nice=False),
        "axis": alt.Axis(title=f"{_PER_CALL[unit]} per call", labelExpr=quantity(unit), grid=True,
                         values=ticks) if axis else alt.Axis(labels=False, ticks=False, title=None, values=ticks),
    }  # fmt: skip
    y = alt.Y("number:Q", axis=alt.Axis(title=None, tickCount=2, tickMinStep=1, labelExpr=quantity(""), minExtent=40),
              scale=alt.Scale(domainMin=0, nice=True))  # fmt: skip
    base = layer(rows, width=WIDTH - 150, height=height)
    bars = base.mark_rect(color=colour(shown.kind), stroke=theme.ground, strokeWidth=0.5).encode(
        x=alt.X("start:Q", **x), x2=alt.X2("end:Q"), y=y, y2=alt.Y2("zero:Q"), tooltip=hover(rows, **_CARD)
    )
    marks: Rows = []
    number = round(float(shown.calls.sum()))
    text = f"{count(number)} call{'' if number == 1 else 's'}\n{si(float(shown.energy_j.sum()), amounts)}"
    if shown.calls.sum():
        marks = [{"at": shown.quantile(q), "dash": dash} for q, dash in ((0.25, [2, 3]), (0.5, [1, 0]), (0.75, [2, 3]))]
        text += f"\nmedian {si(shown.quantile(0.5), unit)}"
    if shown.none:
        text += f"\n{count(shown.none)} more of 0 {unit}"
    rules = [
        layer([mark]).mark_rule(color=theme.text, strokeDash=mark["dash"], strokeWidth=1.2).encode(x=alt.X("at:Q", **x))
        for mark in marks
    ]
    words = (
        layer([{"text": label}])
        .mark_text(align="left", baseline="bottom", fontWeight=600, dy=-4)
        .encode(x=alt.XValue(0), y=alt.YValue(0), text=alt.Text("text:N"))
    )
    sums = (
        layer([{"text": text}])
        .mark_text(align="left", baseline="top", dx=8, lineBreak="\n")
        .encode(x=alt.XValue(WIDTH - 150), y=alt.YValue(0), text=alt.Text("text:N"))
    )
    return alt.layer(bars, *rules, words, sums)
