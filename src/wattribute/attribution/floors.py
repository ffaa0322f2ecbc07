"""The floor of a device, its power at rest: given by the user, measured before (a baseline), or seen in the recording.

In this order: ``Question.floor``; the baseline that a recording carries (``metadata["floors"]``, see ``wattribute
baseline``); what a model says of itself (the property ``floor_w`` of its device); the quietest stretch of the recording
if utilisation shows rest there. Where utilisation shows work all the time the floor is only known to be no higher than
the quietest stretch. A floor drifts with temperature: its range has all stretches at rest, also that of a baseline.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..alignment.energy import Energy
from ..errors import OptionError
from ..model import Device, Recording
from ..model.constants import COMMAND_CPU_TIME, CPU_TIME, OTHERS_CPU_TIME

REST = 0.02  # utilisation below which a device is at rest
STRETCH_S = 1.0  # the shortest stretch that shows a floor …
UPDATES = 8  # … and how often its sensor has to have moved in it
_STRETCH_PARTS = 4  # of a stretch, whose means differ by the spread of its floor
_WATTS_PATTERN = r"(\d+(?:\.\d+)?)\s*(m|k)?w"

Floats = npt.NDArray[np.float64]


class Floor(NamedTuple):
    """Watts at rest; ``likely`` None: only its range is known."""

    likely_w: float | None
    low_w: float
    high_w: float
    source: str

    @property
    def powers_w(self) -> tuple[float, ...]:
        """(likely, low, high); (low, high) where nothing is likely; one number where it is exact."""
        if self.likely_w is None:
            return self.low_w, self.high_w
        if self.low_w == self.likely_w == self.high_w:
            return (self.likely_w,)
        return self.likely_w, self.low_w, self.high_w


def floor_of(
    recording: Recording, device: Device, texts: Sequence[str], curve: Energy | None, use: Utilisation | None
) -> Floor | None:
    """The floor of a device, or None. ``curve`` and ``use`` are its joules(t) and its utilisation, if it says one."""
    for text in reversed(texts):
        name, floor = parse(text)
        if name is None or _names(name, device):
            return floor
    known = recording.metadata.get("floors", {}).get("devices", {}).get(device.name)
    if isinstance(known, Mapping) and recording.metadata["floors"].get("host", device.host) == device.host:
        baseline = _baseline(known, str(recording.metadata["floors"].get("date", "")))
        if baseline is None or curve is None or use is None or not len(curve.times):
            return baseline
        seen = _rests(curve, use, recording.clock.ticks_per_s)
        if seen is None:
            return baseline
        return baseline._replace(low_w=min(baseline.low_w, seen[1]), high_w=max(baseline.high_w, seen[2]))
    if (declared := device.properties.get("floor_w")) is not None:  # a model knows its own
        return Floor(float(declared), float(declared), float(declared), "the model's")
    if curve is None or use is None or not len(curve.times):
        return None
    return quietest(curve, use, recording.clock.ticks_per_s)


def parse(text: str) -> tuple[str | None, Floor | None]:
    """ "GPU 0=60W±2W" → its device and floor; "none" → no floor for any device."""
    if text.strip().lower() == "none":
        return None, None
    name, _, power = text.rpartition("=")
    match = re.fullmatch(rf"{_WATTS_PATTERN}(?:\s*(?:±|\+-)\s*{_WATTS_PATTERN})?", power.strip().lower())
    if not name.strip() or match is None:
        raise OptionError(f"--floor {text!r}: write DEVICE=WATTS, such as 'GPU 0=60W' or 'cpu=20W±1W', or none")
    watts, spread = (float(match[i] or 0) * {"m": 1e-3, "k": 1e3, None: 1.0}[match[i + 1]] for i in (1, 3))
    return name.strip(), Floor(watts, max(0.0, watts - spread), watts + spread, "said")


def _names(name: str, device: Device) -> bool:
    return name.lower() in (device.name.lower(), device.kind.lower())


def check_devices(texts: Sequence[str], devices: Sequence[Device]) -> None:
    """Raise OptionError for a floor of a device that is not there."""
    for text in texts:
        name, _ = parse(text)
        if name is not None and not any(_names(name, device) for device in devices):
            known = [n for one in devices for n in (one.name, one.kind) if n]
            raise OptionError.unknown("device of --floor", name, known)


def _baseline(known: Mapping[str, Any], date: str) -> Floor | None:
    try:
        likely, low, high = (float(known[name]) for name in ("floor_w", "low_w", "high_w"))
    except (KeyError, TypeError, ValueError):
        return None
    return Floor(likely, min(low, likely), max(high, likely), f"baseline of {date[:10]}" if date else "baseline")


class Utilisation(NamedTuple):
    """How busy a device was, 0 to 1, from each time to the next (ticks)."""

    times: npt.NDArray[np.int64]
    parts: Floats  # one fewer than times


def utilisation_of(recording: Recording, device: Device) -> Utilisation | None:
    """The utilisation of a device: its gauge, or the CPU time of all processes where cores are known."""
    for signal in recording.signals_of(device):
        if signal.kind == "gauge" and signal.unit == "%" and signal.name.endswith("utilisation"):
            if len(signal) > 1:  # a reading tells of the time before it
                return Utilisation(np.asarray(signal.times), np.asarray(signal.values[1:], np.float64) / 100)
            return None
    cores = recording.metadata.get("cores")
    if device.kind == "gpu" or not cores:
        return None
    here = [signal for signal in recording.signals_on(device.host) if len(signal) > 1]
    command, others = ([s for s in here if s.name == name] for name in (COMMAND_CPU_TIME, OTHERS_CPU_TIME))
    own = command or [signal for signal in here if signal.name == CPU_TIME and signal.location >= 0]
    if not own or not others:
        return None
    clocks = [*own, *others]
    times = np.unique(np.concatenate([signal.times for signal in clocks]))
    busy = sum(np.interp(times, signal.times, signal.values * float(signal.scale)) for signal in clocks)
    lasted = np.diff(times) / recording.clock.ticks_per_s * float(cores)
    return Utilisation(times, np.diff(np.asarray(busy)) / np.maximum(lasted, 1e-9))


def quietest(curve: Energy, use: Utilisation, ticks_per_s: int) -> Floor | None:
    """The mean power of the longest stretch at rest, and the range of all stretches.

    Without rest the range is from 0 to the power of the quietest second.
    """
    stretches = _rests(curve, use, ticks_per_s)
    if stretches is not None:
        mean, low, high = stretches
        return Floor(mean, low, high, "quietest stretch")
    first, last = int(curve.times[0]), int(curve.times[-1])
    step = round(STRETCH_S * ticks_per_s)
    grid = np.arange(first, last - step + 1, step)
    if not len(grid):
        return None
    least = float(((curve.at(grid + step) - curve.at(grid)) / STRETCH_S).min())
    return Floor(None, 0.0, max(least, 0.0), "no rest seen: at most the quietest second")


def _rests(curve: Energy, use: Utilisation, ticks_per_s: int) -> tuple[float, float, float] | None:
    """The mean power of the longest stretch at rest, and the least and the most of parts of any; None without rest.

    Stretches that are too short for the sensor do not count; a floor drifts with temperature.
    """
    rest = np.flatnonzero(np.diff(np.concatenate([[False], use.parts < REST, [False]]).astype(np.int8)))
    starts = np.maximum(use.times[rest[::2]], curve.times[0])
    ends = np.minimum(use.times[rest[1::2]], curve.times[-1])
    moved = np.searchsorted(curve.times, ends, "right") - np.searchsorted(curve.times, starts, "right")
    fits = (ends - starts >= STRETCH_S * ticks_per_s) & (moved >= UPDATES)
    if not fits.any():
        return None
    edges = np.linspace(starts[fits], ends[fits], _STRETCH_PARTS + 1).astype(np.int64)
    rises, lengths = np.diff(curve.at(edges.ravel()).reshape(edges.shape), axis=0), np.diff(edges, axis=0)
    means, longest = rises / lengths * ticks_per_s, int(lengths.sum(axis=0).argmax())
    mean = float(rises[:, longest].sum() / lengths[:, longest].sum() * ticks_per_s)
    return mean, min(float(means.min()), mean), max(float(means.max()), mean)
