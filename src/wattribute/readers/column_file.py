"""Columns of readings in an unnamed file, once they are too many for memory.

``ReadingStore`` takes readings piece by piece; what it holds beyond a limit goes into one file without a name, which
ends with the last signal over it. Where no file can be written, memory has to do.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from weakref import finalize

import numpy as np
import numpy.typing as npt

HELD_BYTES = 8 << 20  # of readings in memory: the end of a run looks at each once or twice, and that is cheap


class _Extent(NamedTuple):
    """Where a piece of a column lies in the file."""

    begin: int
    length: int  # numbers of 8 bytes


class _Piece(NamedTuple):
    """Readings that were stored together: each column in memory or in the file."""

    times: npt.NDArray[Any] | _Extent
    values: npt.NDArray[Any] | _Extent
    length: int


@dataclass
class ReadingStore:
    """Holds readings, in memory up to a limit; ``folder`` is where the file is made, if that can be written."""

    folder: Path | None = None
    limit_bytes: int = HELD_BYTES
    _held_bytes: int = 0
    _end: int = 0
    _file: int = -1

    @property
    def is_full(self) -> bool:
        """Whether readings go into the file by now."""
        return self._held_bytes > self.limit_bytes

    def add(self, times: npt.NDArray[Any], values: npt.NDArray[Any]) -> _Piece:
        """Store readings that follow each other."""
        self._held_bytes += times.nbytes + values.nbytes
        if not self.is_full:
            return _Piece(times, values, len(times))
        return _Piece(self._put(times), self._put(values), len(times))

    def _put(self, column: npt.NDArray[Any]) -> npt.NDArray[Any] | _Extent:
        left, at = np.ascontiguousarray(column).data.cast("B"), self._end
        try:
            if self._file < 0:
                self._file = _unnamed(self.folder)
                finalize(self, os.close, self._file)
            while left:
                written = os.pwrite(self._file, left, at)
                left, at = left[written:], at + written
        except OSError:
            return column
        extent = _Extent(self._end, len(column))
        self._end = at
        return extent

    def column(self, pieces: Sequence[npt.NDArray[Any] | _Extent], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """A whole column of its pieces."""
        lengths = [piece.length if isinstance(piece, _Extent) else len(piece) for piece in pieces]
        column, at = np.empty(sum(lengths), dtype), 0
        for piece, length in zip(pieces, lengths, strict=True):
            part = column[at : at + length]
            if isinstance(piece, _Extent):
                self._read(piece, part)
            else:
                part[:] = piece
            at += length
        return column

    def _read(self, piece: _Extent, part: npt.NDArray[Any]) -> None:
        buffer, done = part.data.cast("B"), 0
        while done < len(buffer):
            count = _read_into(self._file, buffer[done:], piece.begin + done)
            if not count:
                raise OSError("readings in an unnamed file were cut")
            done += count


def _read_into(file: int, buffer: memoryview, at: int) -> int:
    if hasattr(os, "preadv"):
        return os.preadv(file, [buffer], at)
    read = os.pread(file, min(len(buffer), HELD_BYTES), at)  # macOS before 11
    buffer[: len(read)] = read
    return len(read)


@dataclass(frozen=True)
class StoredColumns:
    """Times and values of a signal in a store; ``origin`` is taken from the times."""

    store: ReadingStore
    pieces: tuple[_Piece, ...]
    dtype: np.dtype[Any]
    origin: int = 0

    def __len__(self) -> int:
        return sum(piece.length for piece in self.pieces)

    def times(self) -> npt.NDArray[np.int64]:
        times = self.store.column([piece.times for piece in self.pieces], np.int64)
        if self.origin:
            times -= self.origin
        return times

    def values(self) -> npt.NDArray[Any]:
        return self.store.column([piece.values for piece in self.pieces], self.dtype)


def _unnamed(folder: Path | None) -> int:
    """A file without a name, beside the journal: a folder of temporary files may be in memory."""
    if folder is not None:
        with suppress(OSError), tempfile.TemporaryFile(dir=folder) as file:
            return os.dup(file.fileno())
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
