"""Meters read by the compiled core (poll.c), many times per call; used by ``recorders.sampler`` where it can be.

Knows meters as lists of sources, by the names of their attributes (see ``meters.sources``, the twin); no NumPy here.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator, Sequence
from ctypes import POINTER, c_int, c_int32, c_int64, c_uint32, c_void_p
from typing import Any

from .shared import opened

CALL, CALL_WITH, SAME, WORDS, EVENT = range(5)  # as enum wat_kind
NO_READING = -(2**63)
ROUNDS = 100  # that are held for Python: two seconds at 50 Hz


class Row(Sequence[tuple[int, Any]]):
    """(time, number) per slot, (0, None) where there is no reading; ``raw`` as C wrote it: a journal needs no more.

    Most of it is never looked at: a list of pairs would cost more than the readings did.
    """

    __slots__ = ("_numbers", "raw")

    def __init__(self, raw: bytes) -> None:
        self.raw, self._numbers = raw, memoryview(raw).cast("q")

    def __len__(self) -> int:
        return len(self._numbers) // 2

    def __getitem__(self, slot: Any) -> Any:
        at = self._numbers[2 * slot]
        return (0, None) if at == NO_READING else (at, self._numbers[2 * slot + 1])


class SourceStruct(ctypes.Structure):
    _fields_ = (
        ("kind", c_int32),
        ("slot", c_int32),
        *((name, c_void_p) for name in ("call", "handle", "answer", "value", "refused", "failed")),
        ("bytes", c_int32),
        ("argument", c_int32),
        ("words", c_uint32),
        ("pause_ns", c_int64),
        ("asked_ns", c_int64),
    )


class MeterStruct(ctypes.Structure):
    _fields_ = (
        ("sources", POINTER(SourceStruct)),
        *((name, c_int64) for name in ("count", "slots", "due_ns", "interval_ns")),
    )


def _source(timed: Any) -> SourceStruct:
    """What C needs to know of a source; the objects that it points to are kept alive by the source itself."""
    asked, struct = timed.source, SourceStruct(slot=timed.slot, pause_ns=timed.pause_ns, asked_ns=timed.asked_ns)
    if hasattr(asked, "numbers"):
        struct.kind, struct.argument, struct.words = (
            WORDS,
            asked.file.file,
            sum(1 << number for number in asked.numbers),
        )
    elif hasattr(asked, "failed"):
        struct.kind = SAME if asked.function is None else CALL if asked.argument is None else CALL_WITH
        struct.call, struct.handle = (ctypes.cast(it, c_void_p) for it in (asked.function, asked.handle))
        struct.argument, struct.bytes = asked.argument or 0, ctypes.sizeof(asked.value)
        struct.answer, struct.value, struct.failed = map(ctypes.addressof, (asked.answer, asked.value, asked.failed))
        struct.refused = None if asked.refused is None else ctypes.addressof(asked.refused)
    else:
        struct.kind, struct.argument = EVENT, asked.file
    return struct


class Polling:
    """Meters, each given as its sources, read at their times."""

    def __init__(self, library: ctypes.CDLL, meters: Sequence[Any]) -> None:
        self._read, self._poll = library.wat_read_sources, library.wat_poll
        self._read.argtypes, self._read.restype = (POINTER(MeterStruct), POINTER(c_int64)), c_int64
        self._poll.argtypes = (POINTER(MeterStruct), c_int64, c_int, c_int64, c_int64, POINTER(c_int64), c_int64)
        self._poll.restype = c_int64
        self.meters = (MeterStruct * len(meters))()  # ``due_ns`` and ``interval_ns`` are the caller's to set
        self._given = [list(sources.timed) for sources in meters]  # C points into these
        self._kept = [(SourceStruct * len(sources))(*map(_source, sources.timed)) for sources in meters]
        for meter, structs, sources in zip(self.meters, self._kept, meters, strict=True):
            meter.sources, meter.count, meter.slots = structs, len(structs), sources.slots
        self._room = ROUNDS * sum(2 + 2 * meter.slots for meter in self.meters)
        self._rows = (c_int64 * self._room)()
        self._numbers = memoryview(self._rows).cast("B").cast("q")

    def read(self, number: int) -> Row:
        """Read one meter now."""
        self._read(self.meters[number], self._rows)
        return self._row(0, self.meters[number].slots)

    def poll(self, file: int, enough_ns: int, latest_ns: int) -> Iterator[tuple[int, Row, int]]:
        """Read meters when they are due, until a reading at or after ``enough_ns``, until ``latest_ns``, or until
        something comes in ``file``: (number of the meter, what was read, when)."""
        ctypes.memset(self._rows, 0, ctypes.sizeof(self._rows))  # see ``unfinished``
        filled = self._poll(self.meters, len(self.meters), file, enough_ns, latest_ns, self._rows, self._room)
        return self._split(filled)

    def unfinished(self) -> Iterator[tuple[int, Row, int]]:
        """The rows of a ``poll`` that does not return, for another thread: the time of the last is 0."""
        at = 0
        while at < self._room and self._numbers[at + 1]:
            at += 2 + 2 * self.meters[self._numbers[at]].slots
        is_begun = at < self._room and self._numbers[at + 2]
        return self._split(at + 1 if is_begun else at)

    def _split(self, filled: int) -> Iterator[tuple[int, Row, int]]:
        at = 0
        while at < filled:
            number, when = self._numbers[at], self._numbers[at + 1]
            slots = self.meters[number].slots
            yield number, self._row(at + 2, slots), when
            at += 2 + 2 * slots

    def _row(self, at: int, slots: int) -> Row:
        return Row(self._numbers[at : at + 2 * slots].tobytes())


def polling(meters: Sequence[Any]) -> Polling | None:
    """The Polling of these meters, or None where there is no library that can read them."""
    library = opened() if sys.platform == "linux" and meters else None
    if library is None or not hasattr(library, "wat_poll"):  # none, or one of another version
        return None
    return Polling(library, meters)
