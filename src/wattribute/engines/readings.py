"""Readings that stay in their files: workers survey them, signals load them when they are looked at.

The client of a cluster holds no readings. Workers ``look`` at them and say what a plan needs to know of each signal:
how many there are, the first and the last, whether they move, what looks wrong; ``gather`` makes signals of that, which
read their location's file on a worker, or where an output looks at them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from ..alignment import sanity
from ..attribution.ledger import fault_of
from ..model import Problem, Recording, Signal
from ..model.stored import Digest, StoredSignal, without_readings
from .tasks import batches


class Readings(Protocol):
    """What reads the signals of locations again, see ``readers.otf2``; it can be pickled."""

    recording: Recording
    source: Any

    def signals(self, locations: Sequence[int]) -> list[list[Signal]]: ...
    def fresh(self) -> Readings: ...


class LocationColumns:
    """Readings of one signal of a location, read on a worker, or where an output looks at them."""

    def __init__(self, token: str, location: int, at: int, digest: Digest) -> None:
        """``token`` of its Readings in this process; ``at``: which of the location's signals."""
        self.token, self.location, self.at, self.digest = token, location, at, digest
        self._signal: Signal | None = None

    def _read(self) -> Signal:
        if self._signal is None:
            self._signal = _of_location(self.token, self.location)[self.at]
        return self._signal

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._read().dtype

    def __len__(self) -> int:
        return self.digest.length

    def times(self) -> npt.NDArray[np.int64]:
        return self._read().times

    def values(self) -> npt.NDArray[Any]:
        return self._read().values

    @property
    def travels(self) -> bool:
        """From worker to worker."""
        return _at_home

    def __reduce__(self) -> Any:
        return LocationColumns, (self.token, self.location, self.at, self.digest)


def remote(signal: Signal) -> LocationColumns | None:
    """The columns of a signal that workers read."""
    columns = signal.columns if isinstance(signal, StoredSignal) else None
    return columns if isinstance(columns, LocationColumns) else None


def packed(value: Any) -> bytes:
    """Bytes for a worker; readings stay behind."""
    import cloudpickle  # type: ignore[import-untyped]

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        def reducer_override(self, value: Any) -> Any:
            stays = isinstance(value, StoredSignal) and remote(value) is not None
            return value.reduced() if stays else super().reducer_override(value)

    file = io.BytesIO()
    Pickler(file, protocol=5).dump(value)
    return file.getvalue()


# readings of recordings by token, and what was last read of them: a location may have many signals
_known: dict[str, Readings] = {}
_last: dict[str, tuple[int, list[Signal]]] = {}
_at_home = False  # on a worker, where tokens are known


def install(token: str, readings: Readings | None) -> None:
    """Make readings known on a worker."""
    global _at_home
    _at_home = True
    if readings is not None and token not in _known:
        while len(_known) >= 4:  # of earlier questions
            _known.pop(next(iter(_known)))
        _known[token] = readings


def of_signals(signals: Sequence[Signal]) -> tuple[str, Readings | None]:
    """The token and the readings of stored signals, if there are any."""
    token = next((columns.token for columns in map(remote, signals) if columns is not None), "")
    return token, _known.get(token)


def _of_location(token: str, location: int) -> list[Signal]:
    last = _last.get(token)
    if last is None or last[0] != location:
        [signals] = _known[token].signals([location])
        _last[token] = last = location, signals
    return last[1]


# ---------------------------------------------------------------------------------------------------------- survey


class SignalSurvey(NamedTuple):
    """What a worker says of the signals of some locations."""

    signals: list[tuple[int, list[tuple[dict[str, Any], Digest]]]]  # by location: fields, digest
    checks: list[sanity.Check]  # rows count these signals
    decoded: Any  # see readers.otf2.source.Source.decoded
    problems: Sequence[Problem]


def look(readings: Readings, locations: Sequence[int]) -> SignalSurvey:
    """Read the signals of locations, on a worker, and keep what a plan needs."""
    readings = readings.fresh()
    per_location = readings.signals(locations)
    signals = tuple(signal for some in per_location for signal in some)
    checks = sanity.survey(replace(readings.recording, signals=signals))
    clock = readings.recording.clock

    def digest(signal: Signal) -> Digest:
        extent = signal.extent if len(signal) else (0, 0, 0.0)
        return Digest(len(signal), extent, signal.moves, fault_of(signal, clock))

    surveyed = [
        (at, [(without_readings(s), digest(s)) for s in some]) for at, some in zip(locations, per_location, strict=True)
    ]
    return SignalSurvey(surveyed, checks, readings.source.decoded(), readings.source.problems())


def hosts(readings: Readings, locations: Sequence[int], most: int) -> list[list[int]]:
    """Locations in batches, those of a host together: its signals are compared with each other."""
    recording = readings.recording
    by_host: dict[str, list[int]] = {}
    for location in locations:
        by_host.setdefault(recording.location_host(location), []).append(location)
    return batches(recording, list(by_host.values()), most)


def gather(readings: Readings, answers: Sequence[SignalSurvey], absorb: Callable[[Any], None]) -> sanity.Signals:
    """Signals in the order of their locations, and all checks in their numbers."""
    token = uuid4().hex
    _known[token] = readings
    by_location: dict[int, list[Signal]] = {}
    for answer in answers:
        absorb(answer.decoded)
        for location, some in answer.signals:
            by_location[location] = [
                StoredSignal.made(fields, LocationColumns(token, location, at, digest))
                for at, (fields, digest) in enumerate(some)
            ]
    order = [(location, at) for location in sorted(by_location) for at in range(len(by_location[location]))]
    signals = [by_location[location][at] for location, at in order]
    places = {place: row for row, place in enumerate(order)}
    checks: list[sanity.Check] = []
    hosts_of: dict[str, set[int]] = {}
    for number, answer in enumerate(answers):
        rows = [places[location, at] for location, some in answer.signals for at in range(len(some))]
        checks += [sanity.renumbered(check, rows) for check in answer.checks]
        for row in rows:
            hosts_of.setdefault(signals[row].host, set()).add(number)
    if any(len(numbers) > 1 for numbers in hosts_of.values()):  # one host's signals came from several batches
        return sanity.Signals(signals)
    return sanity.Signals(signals, checks)
