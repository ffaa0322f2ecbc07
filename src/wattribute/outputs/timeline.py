"""What a timeline shows: each span's joules, each device's energy and power over time, the other gauges.

Asked of the attribution's own curves, so that the slices of a viewer add up to the rows of the table.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _core
from ..attribution.join import DeviceCurves, masks
from ..engines import user_curves
from ..model import Attribution, Keys, Recording, Signal, Spans
from ..sensors import outer

Floats = npt.NDArray[np.float64]


class Counter(NamedTuple):
    """A track of values; each holds until the next."""

    name: str
    unit: str
    times: npt.NDArray[np.int64]  # ticks
    values: Floats


class Timeline:
    """The curves of an attribution, worked out once."""

    def __init__(self, attribution: Attribution) -> None:
        self.recording = attribution.recording
        self._curves = user_curves(attribution.recording, **attribution.options)

    def joules(self, location: int, spans: Spans) -> dict[str, Floats]:
        """Columns ``self_j`` and ``total_j``, and those of each device if there are several; NaN where not counted."""
        mine = [found for found in self._curves if location in found.split.curves]
        columns: dict[str, Floats] = {}
        if sum(found.energy.unit == "J" for found in mine) > 1:
            _, columns["self_j"], columns["total_j"] = self.summed(location, spans)
        for found in mine:
            prefix = "" if len(mine) == 1 else f"{_label(self.recording, found.source.signal)} {found.source.of} "
            unit = "j" if found.energy.unit == "J" else "value"
            for name, column in _per_span(self.recording, found, location, spans).items():
                columns[f"{prefix}{name}_{unit}"] = column
        return columns

    def summed(self, location: int, spans: Spans) -> tuple[str, Floats, Floats]:
        """Devices, self and total joules of each span, over the location's devices (none twice, one view)."""
        mine = [f for f in self._curves if location in f.split.curves and f.energy.unit == "J"]
        again = outer([(f.source.device.host, f.source.device.name, f.source.device.kind) for f in mine])
        mine = [f for f, out in zip(mine, again, strict=True) if f.source.of == mine[0].source.of and not out]
        both = np.zeros((2, len(spans))) if mine else np.full((2, len(spans)), np.nan)
        for found in mine:
            values = _per_span(self.recording, found, location, spans)
            both += (values["self"], values["total"])
        return ", ".join(found.source.device.name for found in mine), both[0], both[1]

    def counters(self) -> list[Counter]:
        """Energy and power of every device that was attributed, then every gauge that did not serve for it."""
        tracks: list[Counter] = []
        used = set()
        for found in self._curves:
            signal = found.source.signal
            if id(signal) in used or not len(found.energy.times):
                continue
            used.add(id(signal))
            tracks.extend(_rise_and_rate(found, _label(self.recording, signal), self.recording.clock.ticks_per_s))
        gauges = [signal for signal in self.recording.signals if signal.kind == "gauge" and len(signal)]
        return tracks + [_gauge(self.recording, signal) for signal in gauges]


def _per_span(recording: Recording, found: DeviceCurves, location: int, spans: Spans) -> dict[str, Floats]:
    """Self and total of each span, by a fold in which every span has a row of its own."""
    kept = masks(recording, found.source.of)(location)[spans.frame]
    rows = np.arange(len(spans), dtype=np.int32)
    curve = replace(found.split.curves[location], edges=None, low=None, high=None)
    fold = _core.fold(replace(spans, frame=rows), [curve], Keys(np.where(kept, rows, -1).astype(np.int32), len(spans)))
    return {name: np.where(kept, fold[f"{name}_value"][0], np.nan) for name in ("self", "total")}


def _rise_and_rate(found: DeviceCurves, label: str, ticks_per_s: int) -> list[Counter]:
    """Joules so far, and watts between the readings."""
    energy = found.energy
    seconds = np.diff(energy.times) / ticks_per_s
    rate = np.append(np.diff(energy.values) / seconds, 0.0)
    what, per_s = ("energy", "W") if energy.unit == "J" else (found.source.signal.name, f"{energy.unit}/s")
    return [
        Counter(f"{label} {what}", energy.unit, energy.times, energy.values),
        Counter(f"{label} {'power' if energy.unit == 'J' else what + ' rate'}", per_s, energy.times, rate),
    ]


def _gauge(recording: Recording, signal: Signal) -> Counter:
    values = signal.values.astype(np.float64) * (signal.scale.numerator / signal.scale.denominator)
    known = np.isfinite(values)
    host = f"{signal.host} " if len(recording.hosts()) > 1 and signal.host else ""
    return Counter(f"{host}{signal.name}", signal.unit, signal.times[known], values[known])


def _label(recording: Recording, signal: Signal) -> str:
    """The device, with its host where there are several."""
    name = signal.device or signal.name
    return f"{signal.host} {name}" if len(recording.hosts()) > 1 and signal.host else name
