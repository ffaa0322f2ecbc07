"""Curves over time: what each device measured, what each user of it received, and the time a chart shows.

No joule is computed here: attribution makes the curves S(t), charts read them at the edges of bins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..._core.reference import evaluate
from ...engines import user_curves
from ...engines.middle import location_mask, location_masks, metered_devices
from ...errors import OptionError
from ...model import Attribution, Curve, Question, Recording, Spans
from ...model.select import pattern
from .. import names
from .captions import device_label
from .lanes import kept
from .totals import summed

if TYPE_CHECKING:
    from ...engines.middle import DeviceCurves, Energy


def device_curves(attribution: Attribution) -> list[DeviceCurves]:
    """Per device its joules(t) and each user's S(t); devices of the hosts that the question asks for."""
    curves = user_curves(attribution.recording, attribution.question)
    host = attribution.question.host
    return curves if host is None else [one for one in curves if pattern(host).search(one.source.device.host)]


class Users:
    """The users that received energy and that the question asks for: label, spans that count, and the joules received
    up to any moment."""

    def __init__(self, attribution: Attribution) -> None:
        self.attribution, self.recording = attribution, attribution.recording
        self.devices = device_curves(attribution)
        inner = {(device["host"], device["device"], device["of"]) for device in summed(attribution)}
        self._mine: dict[tuple[str, int], list[DeviceCurves]] = {}
        chosen = location_mask(self.recording, attribution.question)
        for curves in self.devices:
            source = curves.source
            if (source.device.host, source.device.name, source.of) in inner:
                for location in filter(chosen.__getitem__, curves.split.curves):
                    self._mine.setdefault((source.of, location), []).append(curves)

    def __iter__(self) -> Iterator[tuple[str, int]]:
        """(of, location) by host, then as the recording orders them."""
        return iter(sorted(self._mine, key=lambda key: (self.recording.location_host(key[1]), key[1], key[0])))

    def __len__(self) -> int:
        return len(self._mine)

    def received(self, of: str, location: int) -> Callable[[npt.NDArray[np.int64]], npt.NDArray[np.float64]]:
        return partial(_received, [device.split.curves[location] for device in self._mine[of, location]])

    def spans(self, of: str, location: int) -> Spans:
        return kept(self.recording.spans.spans(location), location_masks(self.recording, of)(location))

    def label(self, of: str, location: int) -> str:
        """The device of a stream and the stream; the process of a thread and the thread."""
        recording = self.recording
        devices = self._mine[of, location]
        name = recording.locations.name[location]
        if recording.locations.kind[location] == "gpu" and len(devices) == 1:
            device = devices[0].source.device
            label = f"{device_label(self.attribution, device.host, device.name)} · {name}"
        else:
            owner = recording.owner(location)
            process = recording.processes.name[owner] if owner >= 0 else ""
            label = f"{process} · {name}" if process and process != name else name
        return names.clean(label)


def _received(curves: Sequence[Curve], ticks: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    out = np.zeros(len(ticks))
    for curve in curves:
        out += evaluate(curve, ticks)
    return out


def whole_curve(attribution: Attribution) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Ticks and the joules measured up to then, over the devices that may be added."""
    inner = {(device["host"], device["device"]) for device in summed(attribution)}
    curves = user_curves(attribution.recording, attribution.question)
    energies = [c.energy for c in curves if (c.source.device.host, c.source.device.name) in inner]
    times = np.unique(np.concatenate([energy.times for energy in energies])) if energies else np.empty(0, np.int64)
    return times, np.sum([energy.at(times) for energy in energies], axis=0) if energies else np.empty(0)


def metered_energy(recording: Recording, metric: str | None) -> list[tuple[str, Energy, bool]]:
    """The devices with their joules(t), used or not, and whether they count in a total."""
    devices = metered_devices(recording, Question(metric=metric))
    several = len({one.device.host for one in devices}) > 1
    curves = [(one.device, one.energy(recording).drawn, one.entry.counted) for one in devices]
    if any(curve.unit != "J" for _, curve, _ in curves):
        raise OptionError("power is drawn of energy and power metrics; choose another --metric, or `plot panels`")
    return [
        (names.clean(f"{device.host} {device.name}" if several and device.host else device.name), curve, counted)
        for device, curve, counted in curves
    ]


def shown_ticks(attribution: Attribution) -> tuple[int, int]:
    """The time that pictures show, in ticks: the range asked for, else the whole recording."""
    recording = attribution.recording
    clock = recording.clock
    begin, end = clock.moment(attribution.question.begin), clock.moment(attribution.question.end)
    first, last = extent(recording)
    first, last = first if begin is None else begin, last if end is None else end
    return (first, last) if last > first else (first, first + 1)


def attributed_ticks(attribution: Attribution) -> tuple[int, int]:
    """The time that joules speak of, in ticks: what pictures show, of a run only the life of its command."""
    first, last = extent(attribution.recording)
    begin, end = attribution.question.window(attribution.recording)
    first, last = first if begin is None else begin, last if end is None else end
    return (first, last) if last > first else (first, first + 1)


def extent(recording: Recording) -> tuple[int, int]:
    """From the recording's start to its end; readings may lie a little outside."""
    ends = [int(t) for signal in recording.signals if len(signal) for t in (signal.times.min(), signal.times.max())]
    first = min([0, *ends]) if recording.clock.length_ticks else min(ends, default=0)
    return first, max([recording.clock.length_ticks, *ends])
