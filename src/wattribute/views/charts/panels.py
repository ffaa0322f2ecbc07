"""Signals that are not energy, as lines over time: utilisation, power, temperature, memory, clocks of a run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import NoDataError
from ...model import Attribution, Clock, Recording, Signal
from ...plugins import chart
from .. import names
from ..numbers import count, seconds, si
from ..theme import WIDTH, Theme
from ..theme import theme as theme_of
from .canvas import Rows, altair, finish, hover, layer, quantity, span_axis, time_axis, time_unit
from .captions import run_name
from .curves import extent, metered_energy
from .tracks import track

Floats = npt.NDArray[np.float64]
# unit → title of its panel, in the order in which panels stand
PANELS = {"%": "utilisation", "W": "power", "°C": "temperature", "B": "memory", "Hz": "clock"}
_CARD = {"series": "signal", "when": "at", "value": "value", "range": "range"}
_BINS = 300
_WIDE = WIDTH - 150


@chart("panels", about="utilisation, power, temperature, memory, clocks of a run", needs="signals")
def panels(source: Attribution | Recording, *, theme: str = "light") -> Any:
    """Utilisation, power, temperature, memory and clocks, a panel each and a line per device."""
    return panels_of(source, theme_of(theme), dict(PANELS), "utilisation, power or temperature")


def panels_of(source: Attribution | Recording, look: Theme, wanted: dict[str, str], what: str) -> Any:
    """A panel per unit; one whose every reading is 0 is left out and named in the caption, unless it is alone."""
    recording = source if isinstance(source, Recording) else source.recording
    clock, ends = recording.clock, extent(recording)
    by_unit = {unit: _series(recording, unit) for unit in wanted}
    by_unit = {unit: series for unit, series in by_unit.items() if series}
    if not by_unit:
        listed = ", ".join(sorted({signal.name for signal in recording.signals})[:8]) or "none"
        raise NoDataError(f"no signal of {what} in this recording (signals: {listed})")
    flat = [unit for unit, series in by_unit.items() if not any(one.high.any() or one.low.any() for one in series)]
    flat = flat[1:] if len(flat) == len(by_unit) else flat
    by_unit = {unit: series for unit, series in by_unit.items() if unit not in flat}
    zero = f"Not drawn, as every reading is 0: {', '.join(wanted[unit] for unit in flat)}." if flat else ""
    window = clock.seconds(ends[0]), clock.seconds(ends[1])
    per_s, unit = time_unit(window[1] - window[0])
    parts, peaks = [], []
    for i, (of_unit, series) in enumerate(by_unit.items()):
        last = i == len(by_unit) - 1
        height = 110 if len(by_unit) > 1 else 260
        parts.append(panel(wanted[of_unit], of_unit, series, look, window, per_s, unit if last else None, height))
        most = max(series, key=lambda one: float(one.high.max(initial=-np.inf)))
        peaks.append(f"{wanted[of_unit]} at most {si(float(most.high.max(initial=0.0)), of_unit)} ({most.label})")
    readings = sum(one.readings for series in by_unit.values() for one in series)
    return finish(parts, look, title=f"{peaks[0][0].upper()}{peaks[0][1:]}",
                  subtitle=f"{run_name(recording)} · {seconds(window[1] - window[0])}",
                  caption=[f"{'; '.join(peaks[1:])}." if peaks[1:] else "", f"{count(readings)} readings; where there "
                           "are more than can be seen, a line is the mean of a bin and the band its range.", zero],
                  spacing=28)  # fmt: skip


def _series(recording: Recording, unit: str) -> list[PanelLine]:
    """The gauges of a unit; power is the slope of energy where only energy was read."""
    signals = [signal for signal in recording.signals if _is_level(signal, unit)]
    if signals or unit != "W":
        labels = _signal_labels(recording, signals)
        short = names.labels(_telling(labels), 25).values()
        given = zip(labels, signals, short, strict=True)
        return [series(label, signal, recording.clock, text) for label, signal, text in given]
    try:
        curves = metered_energy(recording, None)
    except NoDataError:
        return []
    tracks = [track(label, energy.times, energy.values, recording.clock) for label, energy, _ in curves]
    return [
        PanelLine(one.label, one.start_s, one.mean_w, one.low_w, one.high_w, float(one.end_s[-1]), len(one.start_s) + 1,
               one.label)
        for one in tracks
        if len(one.start_s)
    ]  # fmt: skip


def _is_level(signal: Signal, unit: str) -> bool:
    return signal.unit == unit and signal.kind == "gauge" and len(signal) > 0


def _signal_labels(recording: Recording, signals: Sequence[Signal]) -> list[str]:
    """Device and what is read there; who recorded it where that repeats; the host where there are several."""
    hosts = {signal.host for signal in signals}
    devices = [(signal.host, signal.device) for signal in signals]
    out = []
    for signal in signals:
        core = re.sub(r"^A?\d*\w*:::|:?device=\d+", "", signal.name) or signal.name
        alone = devices.count((signal.host, signal.device)) == 1
        label = signal.device if signal.device and alone else f"{signal.device} {core}".strip()
        out.append(names.clean(f"{signal.host} {label}" if len(hosts) > 1 and signal.host else label))
    for who in (_process_of, _location_of):  # as much as it takes to tell them apart
        repeated = {label for label in out if out.count(label) > 1}
        out = [
            names.clean(f"{label} {who(recording, signal)}") if label in repeated else label
            for label, signal in zip(out, signals, strict=True)
        ]
    seen: dict[str, int] = {}
    for i, label in enumerate(out):
        seen[label] = seen.get(label, 0) + 1
        out[i] = label if seen[label] == 1 else f"{label} #{seen[label]}"
    return out


def _telling(labels: Sequence[str]) -> list[str]:
    """Labels too long without the words that all of them share; as they are where that would make two alike."""
    if all(names.columns(label) <= 25 for label in labels):
        return list(labels)
    words = [label.split() for label in labels]
    common = set.intersection(*map(set, words)) if len(words) > 1 else set()
    short = [" ".join(word for word in each if word not in common) for each in words]
    return short if len(set(short)) == len(labels) and all(short) else list(labels)


def _process_of(recording: Recording, signal: Signal) -> str:
    process = int(recording.locations.process[signal.location]) if signal.location >= 0 else -1
    return recording.processes.name[process] if process >= 0 else ""


def _location_of(recording: Recording, signal: Signal) -> str:
    return recording.locations.name[signal.location] if signal.location >= 0 else ""


@dataclass(frozen=True)
class PanelLine:
    """A signal's values over time; binned ones keep mean, least and greatest."""

    label: str
    time_s: Floats
    mean: Floats
    low: Floats
    high: Floats
    last_s: float
    readings: int
    short: str = ""  # the label beside the line


def series(label: str, signal: Signal, clock: Clock, short: str = "") -> PanelLine:
    """The readings of a gauge in its unit, binned when there are more than can be seen."""
    times = np.asarray(clock.seconds(signal.times), np.float64)
    values = np.asarray(signal.values, np.float64) * float(signal.scale)
    good = np.isfinite(values)
    order = np.argsort(times[good], kind="stable")
    times, values = times[good][order], values[good][order]
    last = float(times[-1]) if len(times) else 0.0
    if len(times) <= 2 * _BINS:
        return PanelLine(label, times, values, values, values, last, len(times), short or label)
    place = np.minimum(((times - times[0]) / max(last - times[0], 1e-300) * _BINS).astype(np.int64), _BINS - 1)
    begins = np.flatnonzero(np.concatenate([[True], np.diff(place) > 0]))
    count = np.diff(np.append(begins, len(times)))
    return PanelLine(
        label, times[begins], np.add.reduceat(values, begins) / count, np.minimum.reduceat(values, begins),
        np.maximum.reduceat(values, begins), last, len(times), short or label,
    )  # fmt: skip


def _rows(lines: Sequence[PanelLine], unit: str, per_s: float, theme: Theme) -> Rows:
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
    title: str, unit: str, lines: Sequence[PanelLine], theme: Theme, window: tuple[float, float], per_s: float,
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


def _names(lines: Sequence[PanelLine], y: dict[str, Any], height: int, theme: Theme) -> Any:
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
