"""Signals that are not energy, as lines over time: utilisation, power, temperature, memory, clocks of a run.

A device has one colour in all panels; further signals of it in a panel are dashed. Limits of devices are dotted lines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import NoDataError, OptionError
from ...model import Attribution, Clock, Recording, Signal
from ...plugins import chart
from .. import names
from ..numbers import count, seconds, si
from ..panel_lines import (
    DASHES,
    DOTS,
    PANELS,
    WIDE,
    PanelLine,
    byte_ticks,
    dash_numbers,
    device_hues,
    device_key,
    limit_lines,
    name_places,
    plain_words,
    value_range,
)
from ..theme import Theme
from ..theme import theme as theme_of
from .canvas import Rows, altair, finish, hover, layer, quantity, span_axis, time_axis, time_unit, wall_axis
from .captions import run_name, sentence
from .curves import extent, metered_energy
from .tracks import track

Floats = npt.NDArray[np.float64]
_CARD = {"series": "signal", "when": "at", "value": "value", "range": "range"}
_BINS = 300


@chart("panels", about="utilisation, power, temperature, memory, clocks of a run", needs="signals")
def panels(source: Attribution | Recording, *, theme: str = "light") -> Any:
    """Utilisation, power, temperature, memory and clocks, a panel each and a line per device."""
    return panels_of(source, theme_of(theme), dict(PANELS), "utilisation, power or temperature")


def panels_of(source: Attribution | Recording, look: Theme, wanted: dict[str, str], what: str) -> Any:
    """A panel per unit; one whose every reading is 0 is left out and named in the caption, unless it is alone."""
    recording = source if isinstance(source, Recording) else source.recording
    clock, ends = recording.clock, extent(recording)
    by_unit = {unit: _series(recording, unit, title) for unit, title in wanted.items()}
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
    foot = wall_axis(clock.epoch_ns, window[1] - window[0], per_s) if clock.epoch_ns else time_axis(unit)
    hues = device_hues([line.device for series in by_unit.values() for line in series], look)
    parts, peaks = [], []
    for i, (of_unit, series) in enumerate(by_unit.items()):
        axis = foot if i == len(by_unit) - 1 else None
        height = 110 if len(by_unit) > 1 else 260
        limits = _limits(recording, of_unit, series)
        parts.append(panel(wanted[of_unit], of_unit, series, look, window, per_s, axis, height, hues, limits))
        most = max(series, key=lambda one: float(one.high.max(initial=-np.inf)))
        peaks.append(f"{wanted[of_unit]} at most {si(float(most.high.max(initial=0.0)), of_unit)} ({most.label})")
    readings = sum(one.readings for series in by_unit.values() for one in series)
    started = f" · {datetime.fromtimestamp(clock.epoch_ns / 1e9, timezone.utc):%Y-%m-%d}" if clock.epoch_ns else ""
    return finish(parts, look, title=_headline(recording, ends),
                  subtitle=f"{run_name(recording)}{started}",
                  caption=[sentence("; ".join(peaks)), f"{count(readings)} readings; where there "
                           "are more than can be seen, a line is the mean of a bin and the band its range.", zero],
                  spacing=28)  # fmt: skip


def _headline(recording: Recording, ends: tuple[int, int]) -> str:
    """Energy and wall time of the command, or of all that was recorded: "3.49 kJ in 12.0 s"."""
    begin, end = (mine if mine is not None else all_ for mine, all_ in zip(recording.life, ends, strict=True))
    took = seconds(recording.clock.seconds(end - begin))
    try:
        curves = [energy for _, energy, counted in metered_energy(recording, None) if counted]
    except (NoDataError, OptionError):
        curves = []
    used_j = sum(float(np.diff(energy.at(np.array([begin, end], np.int64)))[0]) for energy in curves)
    return f"{si(used_j, 'J')} in {took}" if curves else took


def _limits(recording: Recording, unit: str, lines: Sequence[PanelLine]) -> dict[str, float]:
    """Devices with lines in a panel → the limit that they state: of power, or the size of memory."""
    name = {"W": "power_limit_w", "B": "memory_bytes"}.get(unit)
    drawn = {line.device for line in lines}
    stated = {
        device_key(device.host, device.name): device.properties.get(name or "")
        for device in recording.devices
        if device_key(device.host, device.name) in drawn
    }
    return {key: float(value) for key, value in stated.items() if value is not None}


def _series(recording: Recording, unit: str, title: str) -> list[PanelLine]:
    """The gauges of a unit; power is the slope of energy where only energy was read."""
    signals = [signal for signal in recording.signals if _is_level(signal, unit)]
    if signals or unit != "W":
        labels = _signal_labels(recording, signals, title)
        short = names.labels(_telling(labels), 25).values()
        given = zip(labels, signals, short, strict=True)
        return [series(label, signal, recording.clock, text) for label, signal, text in given]
    try:
        curves = metered_energy(recording, None)
    except NoDataError:
        return []
    keys = {names.clean(text): device_key(one.host, one.name) for one in recording.devices
            for text in (one.name, f"{one.host} {one.name}")}  # fmt: skip
    tracks = [track(label, energy.times, energy.values, recording.clock) for label, energy, _ in curves]
    return [
        PanelLine(one.label, one.start_s, one.mean_w, one.low_w, one.high_w, float(one.end_s[-1]), len(one.start_s) + 1,
               one.label, keys.get(one.label, one.label))
        for one in tracks
        if len(one.start_s)
    ]  # fmt: skip


def _is_level(signal: Signal, unit: str) -> bool:
    return signal.unit == unit and signal.kind == "gauge" and len(signal) > 0


def _signal_labels(recording: Recording, signals: Sequence[Signal], title: str) -> list[str]:
    """Device and what is read there, without the words of the panel's title; who recorded it where that repeats; the
    host where there are several."""
    hosts = {signal.host for signal in signals}
    meters = {(one.host, one.name): one.properties.get("meter", "") for one in recording.devices}
    devices = [(signal.host, signal.device) for signal in signals]
    out = []
    for signal in signals:
        core = re.sub(r"^A?\d*\w*:::|:?device=\d+", "", signal.name) or signal.name
        core = plain_words(core, (*title.split(), signal.device, str(meters.get((signal.host, signal.device), ""))))
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
    is_distinct = len(set(short)) == len(labels) and all(any(map(str.isalpha, text)) for text in short)
    return short if is_distinct else list(labels)


def _process_of(recording: Recording, signal: Signal) -> str:
    process = int(recording.locations.process[signal.location]) if signal.location >= 0 else -1
    return recording.processes.name[process] if process >= 0 else ""


def _location_of(recording: Recording, signal: Signal) -> str:
    return recording.locations.name[signal.location] if signal.location >= 0 else ""


def series(label: str, signal: Signal, clock: Clock, short: str = "") -> PanelLine:
    """The readings of a gauge in its unit, binned when there are more than can be seen."""
    times = np.asarray(clock.seconds(signal.times), np.float64)
    values = np.asarray(signal.values, np.float64) * float(signal.scale)
    device = device_key(signal.host, signal.device) if signal.device else label
    good = np.isfinite(values)
    order = np.argsort(times[good], kind="stable")
    times, values = times[good][order], values[good][order]
    last = float(times[-1]) if len(times) else 0.0
    if len(times) <= 2 * _BINS:
        return PanelLine(label, times, values, values, values, last, len(times), short or label, device)
    place = np.minimum(((times - times[0]) / max(last - times[0], 1e-300) * _BINS).astype(np.int64), _BINS - 1)
    begins = np.flatnonzero(np.concatenate([[True], np.diff(place) > 0]))
    count = np.diff(np.append(begins, len(times)))
    return PanelLine(
        label, times[begins], np.add.reduceat(values, begins) / count, np.minimum.reduceat(values, begins),
        np.maximum.reduceat(values, begins), last, len(times), short or label, device,
    )  # fmt: skip


def _rows(lines: Sequence[PanelLine], unit: str, per_s: float, hues: Sequence[str]) -> Rows:
    rows: Rows = []
    dashes = dash_numbers(lines)
    for line, hue, dash in zip(lines, hues, dashes, strict=True):
        at = np.append(line.time_s, line.last_s)
        for j in range(len(at) if len(line.mean) else 0):
            k = min(j, len(line.mean) - 1)
            rows.append(
                {
                    "start": float(at[j]) * per_s, "mean": float(line.mean[k]), "low": float(line.low[k]),
                    "high": float(line.high[k]), "ground": hue, "series": line.label, "dash": dash,
                    "when": si(float(at[j]), "s", 6), "value": si(float(line.mean[k]), unit),
                    "range": f"{si(float(line.low[k]), unit)} – {si(float(line.high[k]), unit)}",
                }
            )  # fmt: skip
    return rows


def panel(
    title: str, unit: str, lines: Sequence[PanelLine], theme: Theme, window: tuple[float, float], per_s: float,
    time: Any = None, height: int = 110, hues: Mapping[str, str] | None = None,
    limits: Mapping[str, float] | None = None,
) -> Any:  # fmt: skip
    """One panel: a step line per signal with its name at the end, in the order of the last values; limits as lines."""
    alt = altair()
    each = [(hues or {}).get(line.device) or theme.series[i % len(theme.series)] for i, line in enumerate(lines)]
    rows = _rows(lines, unit, per_s, each)
    axis = time or alt.Axis(title=None, labels=False, ticks=False, grid=False)
    x = alt.X("start:Q", scale=span_axis(window[0] * per_s, window[1] * per_s), axis=axis)
    bottom, top = value_range(unit, lines, limits or {})
    ticks = {"values": byte_ticks(top), "labelExpr": _BYTES} if unit == "B" else {"labelExpr": quantity(unit)}
    y = {
        "scale": alt.Scale(domain=[bottom, top], nice=False),
        "axis": alt.Axis(title=None, tickCount=4, minExtent=60, **ticks),
    }
    colour = alt.Color("ground:N", scale=None, legend=None)
    base = layer(rows, width=WIDE, height=height)
    band = base.mark_area(interpolate="step-after", opacity=0.18, clip=True).encode(
        x=x, y=alt.Y("low:Q", **y), y2=alt.Y2("high:Q"), color=colour, detail=alt.Detail("series:N")
    )
    dash = alt.StrokeDash("dash:N", scale=alt.Scale(domain=list(range(len(DASHES))), range=DASHES), legend=None)
    curves = base.mark_line(interpolate="step-after", strokeWidth=1.4, clip=True).encode(
        x=x,
        y=alt.Y("mean:Q", **y),
        color=colour,
        strokeDash=dash,
        detail=alt.Detail("series:N"),
        tooltip=hover(rows, **_CARD),
    )
    stated = [
        {"y": value, "text": text, "ground": hue}
        for value, text, hue in limit_lines(limits or {}, unit, hues or {}, theme)
    ]
    rules = layer(stated).mark_rule(strokeDash=DOTS, strokeWidth=1.2).encode(y=alt.Y("y:Q", **y), color=colour)
    said = layer(stated).mark_text(align="left", baseline="bottom", dx=4, dy=-1).encode(
        x=alt.XValue(0), y=alt.Y("y:Q", **y), text=alt.Text("text:N"), color=colour
    )  # fmt: skip
    head = [{"text": title}]
    words = layer(head).mark_text(align="left", baseline="bottom", fontWeight=600, dy=-4).encode(
        x=alt.XValue(0), y=alt.YValue(0), text=alt.Text("text:N")
    )  # fmt: skip
    return alt.layer(band, curves, words, _names(lines, y, height, theme, each), *([rules, said] if stated else []))


def _names(lines: Sequence[PanelLine], y: dict[str, Any], height: int, theme: Theme, hues: Sequence[str]) -> Any:
    """Names beside the lines' ends; too many are counted."""
    alt = altair()
    bottom, top = y["scale"].domain
    places = name_places(lines, bottom, top, height)
    rows: Rows = [{"px": at, "text": names.shorten(lines[i].short, 25), "ground": hues[i]} for at, i in places]
    if len(places) < len(lines):
        rows.append({"px": places[-1][0] + 12, "text": f"and {len(lines) - len(places)} more", "ground": theme.muted})
    for row in rows:
        row["y"] = bottom + (1 - row["px"] / height) * (top - bottom)
    return (
        layer(rows)
        .mark_text(align="left", baseline="middle", dx=6)
        .encode(
            x=alt.XValue(WIDE),
            y=alt.Y("y:Q", **y),
            text=alt.Text("text:N"),
            color=alt.Color("ground:N", scale=None, legend=None),
        )
    )


_BYTES = " : ".join(
    f"datum.value >= {2**power} ? format(datum.value / {2**power}, '~g') + ' {unit}'"
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB"))
)
_BYTES += " : datum.value + ' B'"
