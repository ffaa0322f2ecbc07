"""Signals whose readings stay where they are until they are used: those of a day of eight GPUs fill a gigabyte."""

from __future__ import annotations

import ctypes
import os
from dataclasses import fields
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from .recording import Recording, Signal

_READINGS = ("times", "values")
MANY_BYTES = 64 << 20  # of readings in one recording, 2 h of 8 GPUs: more than that stay in files


class Digest(NamedTuple):
    """What is known of a signal's readings without reading them."""

    length: int
    extent: tuple[int, int, float]
    moves: bool
    fault: str  # see attribution.ledger.fault_of


class ReadingColumns(Protocol):
    """Times and values of a signal, read from a file when they are asked for.

    It may have ``digest``, and ``travels``: whether it can read where the signal is sent, which then goes without them.
    """

    @property
    def dtype(self) -> np.dtype[Any]: ...
    def __len__(self) -> int: ...
    def times(self) -> npt.NDArray[np.int64]: ...
    def values(self) -> npt.NDArray[Any]: ...


class StoredSignal(Signal):
    """A signal that holds no readings: its ``columns`` read them at each access to ``times`` or ``values``."""

    columns: ReadingColumns | None  # None: made of another by ``replace``, with readings of its own

    @classmethod
    def of(cls, signal: Signal, columns: ReadingColumns) -> StoredSignal:
        """The signal with the readings of ``columns`` in place of its own."""
        return cls.made(without_readings(signal), columns)

    @classmethod
    def made(cls, values: dict[str, Any], columns: ReadingColumns) -> StoredSignal:
        """A signal of its fields, without the readings."""
        stored = cls.__new__(cls)
        stored.__dict__.update(values | {"columns": columns})
        return stored

    def __getattr__(self, name: str) -> Any:
        if name == "columns":
            return None
        if name not in _READINGS or self.columns is None:
            raise AttributeError(name)
        return self.columns.times() if name == "times" else self.columns.values()

    @property
    def digest(self) -> Digest | None:
        return getattr(self.columns, "digest", None)

    def __len__(self) -> int:
        return len(self.columns) if self.columns is not None else super().__len__()

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.columns.dtype if self.columns is not None else super().dtype

    @property
    def extent(self) -> tuple[int, int, float]:
        return self.digest.extent if self.digest is not None else super().extent

    @property
    def moves(self) -> bool:
        return self.digest.moves if self.digest is not None else super().moves

    def __reduce__(self) -> Any:
        """As a plain signal with its readings, unless its columns can read where it goes."""
        if getattr(self.columns, "travels", False):
            return self.reduced()
        return _plain, ({f.name: getattr(self, f.name) for f in fields(self)},)

    def reduced(self) -> Any:
        """For pickle: the columns in place of the readings."""
        return StoredSignal.made, (without_readings(self), self.columns)


def without_readings(signal: Signal) -> dict[str, Any]:
    """The fields of a signal but times and values."""
    return {f.name: getattr(signal, f.name) for f in fields(signal) if f.name not in _READINGS}


def give_back(recording: Recording) -> None:
    """Return freed memory to the system, where much was used: the allocator of glibc keeps it for later."""
    if not any(isinstance(signal, StoredSignal) for signal in recording.signals):
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)


def _plain(state: dict[str, Any]) -> Signal:
    return Signal(**state)
