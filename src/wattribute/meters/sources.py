"""Sources: numbers that a meter asks for again and again, by Python here or by the compiled core (``_core.polling``).

A meter that offers ``sources`` is read by whichever is there, with the same rows: per slot (time, number), the time in
the middle between before and after asking, and nothing where a source's pause is not over or it did not answer. Where
slots are not channels the meter has a method ``readings``, which makes these of a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .files import WordSum
from .perf import PerfCounter

if TYPE_CHECKING:
    from ctypes import c_int

LONG_AGO_NS = -(2**62)
_NO_VALUE = 2**63  # and above: all ones is what drivers say when they have none
Row = Sequence[tuple[int, "int | float | None"]]


@dataclass
class Call:
    """``function(handle[, argument], answer)`` of a C library, which returns 0 or fails; objects of ctypes, made once.

    ``value`` lies in the answer, and so may ``refused``, a code that is 0 when there is a value. Without a function the
    answer is that of the call whose ``failed`` it shares.
    """

    function: Any
    handle: Any
    answer: Any
    value: Any
    failed: c_int
    refused: c_int | None = None
    argument: int | None = None

    def __post_init__(self) -> None:
        from ctypes import byref

        self._into = byref(self.answer)

    def read(self) -> int | None:
        if self.function is not None:
            more = () if self.argument is None else (self.argument,)
            self.failed.value = self.function(self.handle, *more, self._into)
        if self.failed.value or (self.refused is not None and self.refused.value):
            return None
        return int(self.value.value)

    def close(self) -> None:
        """The library is its meter's."""


@dataclass
class SourceTiming:
    """A source, where its number stands in a row, and how long it is left alone."""

    source: Call | WordSum | PerfCounter
    slot: int
    pause_ns: int
    asked_ns: int = LONG_AGO_NS


class Sources:
    """The sources of a meter, asked in the order in which they were added: let what changes quickly come first."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self.timed: list[SourceTiming] = []
        self._nothing: list[tuple[int, int | float | None]] = []  # no reading, per slot

    def __len__(self) -> int:
        return len(self.timed)

    def add(self, source: Call | WordSum | PerfCounter, slot: int | None = None, pause_ns: int = 0) -> None:
        """Without a slot it is the next one."""
        self.timed.append(SourceTiming(source, len(self.timed) if slot is None else slot, pause_ns))
        self._nothing = [(0, None)] * (1 + max(one.slot for one in self.timed))

    @property
    def slots(self) -> int:
        return len(self._nothing)

    def read(self) -> Row:
        clock, row = self._clock, self._nothing.copy()
        before = began = clock()
        for one in self.timed:
            if began - one.asked_ns < one.pause_ns:
                continue
            one.asked_ns = began
            value = one.source.read()
            after = clock()
            if value is not None and value < _NO_VALUE:
                row[one.slot] = (before + after) // 2, value
            before = after
        return row

    def close(self) -> None:
        for one in self.timed:
            one.source.close()
        self.timed, self._nothing = [], []
