"""Share by load: each user's own load signal, held from one reading to the next."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from ..alignment.topology import device_index
from ..errors import OptionError
from ..model import Device, Recording, Signal
from .select import Source
from .shares import Floats, Ints, Load


def of_users(recording: Recording, source: Source, pattern: str | None) -> tuple[Load, list[Ints]]:
    """A function (user, times) → load, and the moments at which loads change."""
    found = [s for s in recording.signals if len(s) and re.search(pattern or "", s.name, re.IGNORECASE)]
    if not found:
        raise OptionError.unknown("load signal", pattern or "", (signal.name for signal in recording.signals))
    mine = {user: _signal(recording, user, source, found) for user in source.users}
    tidy = {user: _held(signal) for user, signal in mine.items()}

    def load(user: int, at: Ints) -> Floats:
        times, values = tidy[user]
        row = np.searchsorted(times, at, side="right") - 1
        return values[np.maximum(row, 0)]

    return load, [times for times, _ in tidy.values()]


def _held(signal: Signal) -> tuple[Ints, Floats]:
    values = np.asarray(signal.values, np.float64)
    good = np.isfinite(values)
    order = np.argsort(signal.times[good], kind="stable")
    return np.asarray(signal.times[good], np.int64)[order], values[good][order]


def _signal(recording: Recording, user: int, source: Source, found: list[Signal]) -> Signal:
    """The load signal that the user recorded itself, else one of its process, else one of its own die."""
    owner = recording.owner(user)
    context = int(recording.locations.process[user])
    node = int(recording.processes.node[context]) if context >= 0 else -1
    number = device_index(Device(recording.nodes.name[node], "")) if node >= 0 else None
    tests: tuple[Callable[[Signal], bool], ...] = (
        lambda s: s.location == user,
        lambda s: (
            s.location >= 0 and s.location not in source.users and recording.owner(s.location) == owner and not s.device
        ),
        lambda s: bool(s.device) and s.host == source.device.host and device_index(Device(s.device, "")) == number,
    )
    for test in tests:
        fits = [signal for signal in found if test(signal)]
        if len(fits) == 1:
            return fits[0]
    name = recording.locations.name[user]
    raise OptionError(f"no single load signal for {name!r}; narrow --load so that each user of a device has one")
