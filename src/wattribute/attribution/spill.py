"""Busy intervals on disk: what a group's locations have together beyond a limit does not stay in memory.

``join.busy`` passes intervals through; those that come after the limit are in unlinked temporary files (``TMPDIR`` says
where) that end with the last array over them.
"""

from __future__ import annotations

import tempfile
from threading import Lock
from typing import BinaryIO, cast

import numpy as np
import numpy.typing as npt

from .._core.library import is_on_disk
from ..errors import OutputError
from ..model import Intervals

LIMIT_BYTES = 64 << 20


class Spill:
    """Keeps intervals in memory up to a limit, and the rest in files; thread-safe."""

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self._room = limit_bytes
        self._lock = Lock()

    def keep(self, intervals: Intervals) -> Intervals:
        if is_on_disk(intervals.start):  # those of a large location never were in memory
            return intervals
        with self._lock:
            self._room -= intervals.start.nbytes + intervals.end.nbytes
            fits = self._room >= 0
        if fits or not len(intervals):
            return intervals
        try:
            with cast(BinaryIO, tempfile.TemporaryFile(prefix="wattribute-busy-")) as file:
                return Intervals(_on_disk(file, intervals.start), _on_disk(file, intervals.end))
        except OSError as error:
            raise OutputError(
                f"busy intervals do not fit into {tempfile.gettempdir()} ({error.strerror}); set TMPDIR"
            ) from error


def _on_disk(file: BinaryIO, column: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The column appended to the file, as an array that reads it from there."""
    begin = file.tell()
    file.write(np.ascontiguousarray(column).data)
    file.flush()
    return np.memmap(file, column.dtype, "r", begin, column.shape)
