"""A journal that is being written → the series that its recording will have, batch by batch.

Nothing is asked of the sampler: its journal is read as it grows. The first second or so is kept back until it is known
which counters live and which sensor speaks for which device; from then on every batch of readings becomes points at
once. Points are those of ``series`` for the finished recording: the same times, the same values. Only the energy of a
gauge is its plain integral: what its sensor smears or delays can be undone when all readings are there. The bill of
a run comes along as far as it is certain, and the rest of it at the end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..journal import file as journal
from ..model import Device, Signal
from ..outputs.timeseries.series import ENERGY, Ints, Series, SeriesRule, tracks
from ..readers import journal as build
from .running_bill import RunningBill
from .running_series import Integral, Points, Rule, Slope, Total, Value

CHUNK_BYTES = 8 << 20
FORGET_BYTES = 4 << 20  # at a time
SETTLED_S = 1.0  # readings before it is decided which series are sent …
LONGEST_S = 5.0  # … or three periods of the slowest sensor, but no longer than this
LONGEST_BYTES = 64 << 20  # of a journal that is read once more at the end, for what was not certain before


@dataclass
class _Live:
    """A track of a running recording: where its readings stand, and what has been made of them so far."""

    meter: int
    channel: int
    track: SeriesRule
    rule: Rule


class JournalReader:
    """Follows one journal from its beginning. ``poll`` gives what is new; ``behind`` says that there is more.

    With ``forget`` the disk's room for what was read is given back: a monitor may run for weeks.
    """

    def __init__(self, path: Path, forget: bool = False) -> None:
        self._path, self._forget, self._forgotten = path, forget, 0
        self._file: BinaryIO | None = None
        self._rest = b""
        self._early = bytearray()  # all that was read before it is decided which series are sent
        self._about: dict[str, Any] | None = None
        self._lives: list[_Live] | None = None
        self._bill: RunningBill | None = None
        self._types: list[np.dtype[Any]] = []
        self.behind = False

    def poll(self, last: bool = False) -> list[Series]:
        """Points of what was written since the last time; with ``last`` also what was kept back."""
        data = self._read()
        if self._lives is None:
            self._early += data
            if not self._settles(last and not self.behind):
                return []
            data, self._early = bytes(self._early[len(journal.MAGIC) :]), bytearray()
        data = self._rest + data
        payloads: list[list[bytes]] = [[] for _ in self._types]
        events: list[dict[str, Any]] = []
        end = 0
        for kind, payload, end in journal.records(data, 0):  # noqa: B007
            if kind == journal.READINGS:
                payloads[int.from_bytes(payload[:2], "little")].append(payload[2:])
            elif kind == journal.EVENT:
                events.append(json.loads(payload))
        self._rest = data[end:]
        tables = [np.frombuffer(b"".join(p), kind) for p, kind in zip(payloads, self._types, strict=True)]
        is_last = last and not self.behind
        series, energy = self._points(tables, is_last)
        return [*series, *self._billed(energy, events, is_last)]

    def devices(self) -> dict[str, Device]:
        """The devices of the run by name, once its journal has begun."""
        meters = () if self._about is None else self._about["meters"]
        about = (channel["device"] for meter in meters for channel in meter["channels"])
        return {one["name"]: Device(one["name"], one["kind"], properties=one["properties"]) for one in about}

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _read(self) -> bytes:
        if self._file is None:
            try:
                self._file = self._path.open("r+b" if self._forget else "rb", buffering=0)
            except FileNotFoundError:
                return b""
        data = self._file.read(CHUNK_BYTES)
        self.behind = len(data) == CHUNK_BYTES
        done = self._file.tell()
        if self._forget and done - self._forgotten >= FORGET_BYTES:
            _give_back(self._file, done)
            self._forgotten = done
        return data

    # ------------------------------------------------------------------------------------------ choice of series

    def _settles(self, last: bool) -> bool:
        """Decide which series are sent, once enough was read."""
        if self._about is None:
            data = bytes(self._early)
            first = next(journal.records(data, len(journal.MAGIC)), None) if data else None
            if first is None:
                return False
            self._about = json.loads(first[1])
        channels = [channel for meter in self._about["meters"] for channel in meter["channels"]]
        periods = [channel["period_s"] or 0.0 for channel in channels]
        wanted_s = max(SETTLED_S, min(LONGEST_S, 3 * max(periods, default=0.0)))
        if not last and self._covered_s() < wanted_s:
            return False
        recording = build.build(bytes(self._early), self._path)
        epoch_ns = recording.clock.epoch_ns or 0
        self._types = [np.dtype(build.fields(meter["channels"])) for meter in self._about["meters"]]
        self._lives, self._bill = [], RunningBill(recording)
        for track in tracks(recording, epoch_ns):
            signal = recording.signals[track.row]
            place = self._place(signal)
            if place is not None:
                self._lives.append(_Live(*place, track, _rule(signal, track)))
        return True

    def _covered_s(self) -> float:
        """How long the readings go by now."""
        assert self._about is not None
        last = self._about["monotonic_ns"]
        for kind, payload, _ in journal.records(bytes(self._early), len(journal.MAGIC)):
            if kind == journal.READINGS:
                last = max(last, int.from_bytes(payload[2:10], "little", signed=True))
        return float(last - self._about["monotonic_ns"]) / 1e9

    def _place(self, signal: Signal) -> tuple[int, int] | None:
        assert self._about is not None
        for number, meter in enumerate(self._about["meters"]):
            for index, channel in enumerate(meter["channels"]):
                named = f"{meter['name']} {channel['name']}", channel["device"]["name"]
                if named == (signal.name, signal.device):
                    return number, index
        return None

    # ------------------------------------------------------------------------------------------------- points

    def _points(self, tables: list[Any], last: bool) -> tuple[list[Series], dict[int, Points]]:
        """The series of new readings, and the energy in them by the row of its signal."""
        assert self._lives is not None
        assert self._about is not None
        shift_ns = self._about["epoch_ns"] - self._about["monotonic_ns"]
        series, energy = [], {}
        for live in self._lives:
            table = tables[live.meter]
            times: Ints = table[f"t{live.channel}"]
            there = times != journal.NO_READING
            points = live.rule.feed(times[there] + shift_ns, table[f"v{live.channel}"][there], last)
            if len(points[0]):
                track = live.track
                series.append(Series(track.metric, track.labels, *points, self._about["epoch_ns"], track.inside))
                if track.metric is ENERGY:
                    energy[track.row] = points
        return series, energy

    def _billed(self, energy: dict[int, Points], events: list[dict[str, Any]], last: bool) -> Iterator[Series]:
        assert self._bill is not None
        yield from self._bill.feed(energy, events, last)
        if last and not self._forget and self._path.stat().st_size <= LONGEST_BYTES:
            yield from self._bill.finish(build.build(journal.mapped(self._path), self._path))


def _give_back(file: BinaryIO, size: int) -> None:
    """Make the first bytes of a file a hole; where the system cannot, they stay."""
    import ctypes

    keep_size, punch_hole = 1, 2
    with suppress(AttributeError, OSError):
        libc = ctypes.CDLL(None)
        libc.fallocate(file.fileno(), keep_size | punch_hole, ctypes.c_int64(0), ctypes.c_int64(size))


def _rule(signal: Signal, track: SeriesRule) -> Rule:
    """What makes points of a signal's readings, in the clock of the epoch."""
    signal = replace(signal, times=np.empty(0, np.int64), values=signal.values[:0])
    if track.rule == "value":
        return Value(signal, track.factor)
    total = Integral(signal) if signal.kind == "gauge" else Total(signal)
    return Slope(total) if track.rule == "slope" else total
