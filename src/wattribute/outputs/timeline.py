"""Data of a timeline: each span's joules, each device's energy and power over time, the other gauges.

Asked of the attribution's own curves, so that the slices of a viewer add up to the rows of the table.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _core
from ..engines import user_curves
from ..engines.middle import DeviceCurves, location_masks
from ..model import Attribution, Keys, Recording, Signal, Spans

Floats = npt.NDArray[np.float64]


class CounterTrack(NamedTuple):
    """A track of values; each holds until the next."""

    name: str
    unit: str
    times: npt.NDArray[np.int64]  # ticks
    values: Floats


class Timeline:
    """The curves of an attribution, worked out once."""

    def __init__(self, attribution: Attribution) -> None:
        self.recording = attribution.recording
        self._curves = user_curves(attribution.recording, attribution.question)

    def joules(self, location: int, spans: Spans) -> dict[str, Floats]:
        """Columns ``self_j`` and ``total_j``, and those of each device if there are several; NaN where not counted."""
        mine = [device for device in self._curves if location in device.split.curves]
        columns: dict[str, Floats] = {}
        if sum(device.energy.unit == "J" for device in mine) > 1:
            _, columns["self_j"], columns["total_j"] = self.summed(location, spans)
        for device in mine:
            prefix = "" if len(mine) == 1 else f"{_label(self.recording, device.source.signal)} {device.source.of} "
            unit = "j" if device.energy.unit == "J" else "value"
            for name, column in _per_span(self.recording, device, location, spans).items():
                columns[f"{prefix}{name}_{unit}"] = column
        return columns

    def summed(self, location: int, spans: Spans) -> tuple[str, Floats, Floats]:
        """Devices, self and total joules of each span, over the location's devices (none twice, one view)."""
        mine = [f for f in self._curves if location in f.split.curves and f.energy.unit == "J"]
        mine = [f for f in mine if f.source.of == mine[0].source.of and f.source.entry.counted]
        both = np.zeros((2, len(spans))) if mine else np.full((2, len(spans)), np.nan)
        for device in mine:
            values = _per_span(self.recording, device, location, spans)
            both += (values["self"], values["total"])
        return ", ".join(device.source.device.name for device in mine), both[0], both[1]

    def counters(self) -> list[CounterTrack]:
        """Energy and power of every device that was attributed, then every gauge that did not serve for it."""
        tracks: list[CounterTrack] = []
        used = set()
        for device in self._curves:
            signal = device.source.signal
            if id(signal) in used or not len(device.energy.times):
                continue
            used.add(id(signal))
            tracks.extend(_rise_and_rate(device, _label(self.recording, signal), self.recording.clock.ticks_per_s))
        gauges = [signal for signal in self.recording.signals if signal.kind == "gauge" and len(signal)]
        return tracks + [_gauge(self.recording, signal) for signal in gauges]


def _per_span(recording: Recording, device: DeviceCurves, location: int, spans: Spans) -> dict[str, Floats]:
    """Self and total of each span, by a fold in which every span has a row of its own."""
    kept = location_masks(recording, device.source.of)(location)[spans.frame]
    rows = np.arange(len(spans), dtype=np.int32)
    curve = replace(device.split.curves[location], edges=None, low=None, high=None)
    fold = _core.fold(replace(spans, frame=rows), [curve], Keys(np.where(kept, rows, -1).astype(np.int32), len(spans)))
    return {name: np.where(kept, fold[f"{name}_value"][0], np.nan) for name in ("self", "total")}


def _rise_and_rate(device: DeviceCurves, label: str, ticks_per_s: int) -> list[CounterTrack]:
    """Joules so far, and watts between the readings."""
    energy, drawn = device.energy, device.energy.drawn
    seconds = np.diff(drawn.times) / ticks_per_s
    rate = np.append(np.diff(drawn.values) / seconds, 0.0)
    what, per_s = ("energy", "W") if energy.unit == "J" else (device.source.signal.name, f"{energy.unit}/s")
    return [
        CounterTrack(f"{label} {what}", energy.unit, energy.times, energy.values),
        CounterTrack(f"{label} {'power' if energy.unit == 'J' else what + ' rate'}", per_s, drawn.times, rate),
    ]


def _gauge(recording: Recording, signal: Signal) -> CounterTrack:
    values = signal.values.astype(np.float64) * (signal.scale.numerator / signal.scale.denominator)
    known = np.isfinite(values)
    host = f"{signal.host} " if len(recording.hosts()) > 1 and signal.host else ""
    return CounterTrack(f"{host}{signal.name}", signal.unit, signal.times[known], values[known])


def _label(recording: Recording, signal: Signal) -> str:
    """The device, with its host where there are several."""
    name = signal.device or signal.name
    return f"{signal.host} {name}" if len(recording.hosts()) > 1 and signal.host else name
