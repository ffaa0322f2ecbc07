"""Signals whose readings stay in a file until they are used: those of a day of eight GPUs fill a gigabyte."""

from __future__ import annotations

import ctypes
import os
from dataclasses import fields
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .recording import Recording, Signal

_READINGS = ("times", "values")
MANY_BYTES = 64 << 20  # of readings in one recording, 2 h of 8 GPUs: more than that stay in files


class ReadingColumns(Protocol):
    """Times and values of a signal, read from a file each time they are asked for."""

    @property
    def dtype(self) -> np.dtype[Any]: ...
    def __len__(self) -> int: ...
    def times(self) -> npt.NDArray[np.int64]: ...
    def values(self) -> npt.NDArray[Any]: ...


class FileSignal(Signal):
    """A signal that holds no readings: each access to ``times`` or ``values`` reads them from the file."""

    columns: ReadingColumns

    @classmethod
    def of(cls, signal: Signal, columns: ReadingColumns) -> FileSignal:
        """The signal with the readings of ``columns`` in place of its own."""
        stored = cls.__new__(cls)
        stored.__dict__.update({f.name: getattr(signal, f.name) for f in fields(signal) if f.name not in _READINGS})
        stored.__dict__["columns"] = columns
        return stored

    def __getattr__(self, name: str) -> Any:
        if name not in _READINGS or "columns" not in self.__dict__:
            raise AttributeError(name)
        return self.columns.times() if name == "times" else self.columns.values()

    def __len__(self) -> int:
        return len(self.columns) if "columns" in self.__dict__ else super().__len__()

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.columns.dtype if "columns" in self.__dict__ else super().dtype

    def __reduce__(self) -> Any:
        return _plain, ({f.name: getattr(self, f.name) for f in fields(self)},)


def give_back(recording: Recording) -> None:
    """Return freed memory to the system, where much was used: the allocator of glibc keeps it for later."""
    if not any(isinstance(signal, FileSignal) for signal in recording.signals):
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)


def _plain(state: dict[str, Any]) -> Signal:
    return Signal(**state)
