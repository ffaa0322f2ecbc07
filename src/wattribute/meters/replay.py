"""Readings from a file, played against the clock: for rehearsals, demonstrations and tests of what stands above.

``root`` is a CSV with a header: ``time_s`` and one column per device, named ``<device>:energy_j`` (a counter) or
``<device>:power_w`` (a gauge). Playing begins when the meter is made; a row is the reading from its time on. The kind
of device is guessed from its name ("GPU 0" → gpu, "package 0" → cpu, "dram 0" → dram, "node" → node).
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from ..errors import FormatError, MeterError
from ..model import Device
from ..plugins import Availability, Channel

_KINDS = {
    "gpu": "gpu",
    "package": "cpu",
    "cpu": "cpu",
    "dram": "dram",
    "memory": "dram",
    "node": "node",
    "psys": "psys",
}
_QUANTITIES = {"energy_j": ("energy", "counter", "J"), "power_w": ("power", "gauge", "W")}


class Replay:
    """The meter ``replay``."""

    name = "replay"

    def __init__(self, root: str | None = None, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._clock, self._start_ns = clock, clock()
        self._channels: list[Channel] = []
        self._times: list[float] = []
        self._rows: list[list[float]] = []
        if root is not None:
            self._load(Path(root))

    def _load(self, path: Path) -> None:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise MeterError(f"{path}: {error.strerror}") from error
        header = [word.strip() for word in (lines[0] if lines else "").split(",")]
        if header[0] != "time_s" or len(header) < 2:
            raise FormatError(path, "the first line must be: time_s,<device>:energy_j,… (or :power_w)")
        self._channels = [_channel(path, column) for column in header[1:]]
        for number, line in enumerate(lines[1:], 2):
            try:
                at, *values = (float(word) for word in line.split(","))
            except ValueError:
                raise FormatError(path, f"line {number} is not numbers: {line[:60]!r}") from None
            if len(values) != len(self._channels) or (self._times and at < self._times[-1]):
                raise FormatError(path, f"line {number}: {len(header)} columns and rising times are needed")
            self._times.append(at)
            self._rows.append(values)
        for column, channel in enumerate(self._channels):
            if channel.kind == "counter":
                self._channels[column] = replace(channel, latency_s=self._latency_s(column))

    def _latency_s(self, column: int) -> float | None:
        """The longest that a counter stands still: what it shows may be that old."""
        rows = range(1, len(self._rows))
        moves = [self._times[row] for row in rows if self._rows[row][column] != self._rows[row - 1][column]]
        return max((after - before for before, after in pairwise(self._times[:1] + moves)), default=None)

    def available(self) -> Availability:
        if self._rows:
            return Availability(True)
        return Availability(False, "no file of readings was named (--meters replay:FILE.csv)")

    def channels(self) -> Sequence[Channel]:
        return self._channels

    def read(self) -> Sequence[tuple[int, int | float | None]]:
        now = self._clock()
        row = bisect_right(self._times, (now - self._start_ns) / 1e9) - 1
        if row < 0:
            return [(now, None)] * len(self._channels)
        return [(now, value) for value in self._rows[row]]

    def close(self) -> None: ...


def _channel(path: Path, column: str) -> Channel:
    name, _, quantity = column.rpartition(":")
    if not name or quantity not in _QUANTITIES:
        raise FormatError(path, f"column {column!r} must end in :energy_j or :power_w")
    device = Device(name, device_kind(name), properties={"source": f"replay {path.name}"})
    signal, kind_of_signal, unit = _QUANTITIES[quantity]
    return Channel(signal, kind_of_signal, unit, device, whole=False)


def device_kind(name: str) -> str:
    """The kind of device that a usual name means: "GPU 0" is a "gpu", "package 1" a "cpu"."""
    word = name.lower().split()[0].rstrip("0123456789")
    return _KINDS.get(word, word)
