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

from ..alignment import sanity
from ..attribution.ledger import fault_of
from ..model import Problem, Recording, Signal

_STORED_COLUMNS = ("times", "values")


class Readings(Protocol):
    """What reads the signals of locations again, see ``readers.otf2``; it can be pickled."""

    recording: Recording
    source: Any

    def signals(self, locations: Sequence[int]) -> list[list[Signal]]: ...
    def fresh(self) -> Readings: ...


class Digest(NamedTuple):
    """What a plan needs to know of a signal's readings."""

    length: int
    extent: tuple[int, int, float]
    moves: bool
    fault: str  # see attribution.ledger.fault_of


class StoredSignal(Signal):
    """A signal whose readings are read when they are looked at."""

    token: str  # of its Readings in this process
    place: tuple[int, int]  # location, and which of its signals
    digest: Digest

    def __getattr__(self, name: str) -> Any:
        if name not in _STORED_COLUMNS:
            raise AttributeError(name)
        location, at = self.place
        signal = _of_location(self.token, location)[at]
        self.__dict__.update({column: getattr(signal, column) for column in _STORED_COLUMNS})
        return self.__dict__[name]

    def __len__(self) -> int:
        return len(self.times) if "times" in self.__dict__ else self.digest.length

    @property
    def extent(self) -> tuple[int, int, float]:
        return self.digest.extent if "digest" in self.__dict__ else super().extent

    @property
    def moves(self) -> bool:
        return self.digest.moves if "digest" in self.__dict__ else super().moves

    def __reduce__(self) -> Any:
        """As a plain signal, unless it goes from worker to worker."""
        if _at_home:
            return _stored, (_without_columns(self),)
        return _plain, ({name: getattr(self, name) for name in Signal.__dataclass_fields__},)


def _plain(state: dict[str, Any]) -> Signal:
    return Signal(**state)


def _stored(state: dict[str, Any]) -> StoredSignal:
    signal = StoredSignal.__new__(StoredSignal)
    signal.__dict__.update(state)
    return signal


def _without_columns(signal: Signal) -> dict[str, Any]:
    return {name: value for name, value in signal.__dict__.items() if name not in _STORED_COLUMNS}


def packed(value: Any) -> bytes:
    """Bytes for a worker; readings stay behind."""
    import cloudpickle  # type: ignore[import-untyped]

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        def reducer_override(self, value: Any) -> Any:
            stored = isinstance(value, StoredSignal)
            return (_stored, (_without_columns(value),)) if stored else super().reducer_override(value)

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
    token = next((signal.token for signal in signals if isinstance(signal, StoredSignal)), "")
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
        (at, [(_without_columns(s), digest(s)) for s in some]) for at, some in zip(locations, per_location, strict=True)
    ]
    return SignalSurvey(surveyed, checks, readings.source.decoded(), readings.source.problems())


def hosts(readings: Readings, locations: Sequence[int], most: int) -> list[list[int]]:
    """Locations in batches, those of a host together: its signals are compared with each other."""
    recording = readings.recording
    by_host: dict[str, list[int]] = {}
    for location in locations:
        by_host.setdefault(recording.location_host(location), []).append(location)
    weights = {host: int(recording.locations.events[np.array(rows)].sum()) for host, rows in by_host.items()}
    room = max(1, sum(weights.values()) // max(1, most))
    batches: list[list[int]] = []
    left = 0
    for host, rows in by_host.items():
        if not batches or left <= 0:
            batches.append([])
            left = room
        batches[-1] += rows
        left -= weights[host]
    return batches


def gather(readings: Readings, answers: Sequence[SignalSurvey], absorb: Callable[[Any], None]) -> sanity.Signals:
    """Signals in the order of their locations, and all checks in their numbers."""
    token = uuid4().hex
    _known[token] = readings
    places: dict[tuple[int, int], int] = {}
    by_location: dict[int, list[Signal]] = {}
    for answer in answers:
        absorb(answer.decoded)
        for location, some in answer.signals:
            by_location[location] = [
                _stored(fields | {"token": token, "place": (location, at), "digest": digest})
                for at, (fields, digest) in enumerate(some)
            ]
    signals = [signal for location in sorted(by_location) for signal in by_location[location]]
    for row, signal in enumerate(signals):
        assert isinstance(signal, StoredSignal)
        places[signal.place] = row
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
