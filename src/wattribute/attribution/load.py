"""Share by load: each user's own load signal, held from one reading to the next.

What users count is a load too: requests of a batch share a step of the device by the tokens each of them did in it. A
count was done evenly since the count before it, or since its location began to be busy.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from ..alignment.topology import device_index
from ..errors import OptionError
from ..model import Device, Question, Recording, Signal, counts
from ..model.constants import CPU_LOAD
from .select import DeviceView
from .shares import Floats, Ints, Load


def of_users(recording: Recording, source: DeviceView, pattern: str | None) -> tuple[Load, list[Ints]]:
    """Return a function (user, times) → load, and the moments at which loads change."""
    signals = [s for s in recording.signals if len(s) and re.search(pattern or "", s.name, re.IGNORECASE)]
    if not signals:
        raise OptionError.unknown("load signal", pattern or "", (signal.name for signal in recording.signals))
    if all(counts.is_count(signal) for signal in signals):
        return _counted(recording, source, signals)
    mine = {user: _signal(recording, user, source, signals) for user in source.users}
    tidy = {user: _held(signal) for user, signal in mine.items()}

    def load(user: int, at: Ints) -> Floats:
        times, values = tidy[user]
        row = np.searchsorted(times, at, side="right") - 1
        return values[np.maximum(row, 0)]

    return load, [times for times, _ in tidy.values()]


def fitting(recording: Recording, question: Question) -> Question:
    """The question with the share rule that fits the recording, unless one was asked for."""
    if question.share is not None:
        return question
    with_load = {signal.location for signal in recording.signals if signal.name == CPU_LOAD}
    if with_load and question.method != "window" and set(recording.spans.locations()) <= with_load:
        return question.but(share="load", load=f"^{CPU_LOAD}$")
    return question.but(share="even")


def _counted(recording: Recording, source: DeviceView, signals: list[Signal]) -> tuple[Load, list[Ints]]:
    """Loads from counts: all that a user counted; one that counted nothing has no load."""
    rates: dict[int, list[tuple[Ints, Floats]]] = {user: [] for user in source.users}
    for signal in signals:
        if signal.location in rates:
            busy = recording.spans.busy(signal.location)
            rates[signal.location].append(_rates(*counts.amounts(signal), busy.start))

    def load(user: int, at: Ints) -> Floats:
        whole: Floats = np.zeros(len(at))
        for times, values in rates[user]:
            whole += values[np.searchsorted(times, at, side="right")]
        return whole

    return load, [times for each in rates.values() for times, _ in each]


def _rates(times: Ints, amounts: Floats, begins: Ints) -> tuple[Ints, Floats]:
    """Moments at which the rate changes, and the rates before, between and after them."""
    order = np.argsort(times, kind="stable")
    times, amounts = times[order], amounts[order]
    ends, group = np.unique(times + (amounts > 0), return_inverse=True)  # a count at t is done within that tick
    done = np.bincount(group, amounts, len(ends))
    at = np.searchsorted(begins, ends - 1, side="right") - 1
    begun = begins[np.maximum(at, 0)] if len(begins) else ends
    start = np.maximum(np.where(at >= 0, begun, ends - 1), np.concatenate([[np.iinfo(np.int64).min], ends[:-1]]))
    kept = (done > 0) & (ends > start)
    start, ends, done = start[kept], ends[kept], done[kept]
    edges = np.stack([start, ends], axis=1).ravel()
    rates = np.stack([done / (ends - start), np.zeros(len(ends))], axis=1).ravel()
    return edges, np.concatenate([[0.0], rates])


def _held(signal: Signal) -> tuple[Ints, Floats]:
    values = np.asarray(signal.values, np.float64)
    good = np.isfinite(values)
    order = np.argsort(signal.times[good], kind="stable")
    return np.asarray(signal.times[good], np.int64)[order], values[good][order]


def _signal(recording: Recording, user: int, source: DeviceView, signals: list[Signal]) -> Signal:
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
        fits = [signal for signal in signals if test(signal)]
        if len(fits) == 1:
            return fits[0]
    name = recording.locations.name[user]
    raise OptionError(f"no single load signal for {name!r}; narrow --load so that each user of a device has one")
