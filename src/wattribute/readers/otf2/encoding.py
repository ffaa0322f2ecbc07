"""Records and chunks as bytes: the writing half of the format that ``definitions`` and the core read.

Events go into chunks vectorised, so that a benchmark's 16 million of them are written in seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .anchor import LITTLE
from .definitions import HEADER

Bytes = npt.NDArray[np.uint8]
_RESERVE = 16  # a chunk ends with at least one zero byte; the last one with two bytes that end the file
_END = b"\x02\x01"
_STAMP = 9  # bytes of a timestamp record
_BLOCK = 1 << 16


def compressed(value: int) -> bytes:
    """An integer without its leading zero bytes, and their number before it; −1 is undefined."""
    if value == -1:
        return b"\xff"
    size = (value.bit_length() + 7) // 8
    return bytes([size]) + value.to_bytes(size, "little")


def signed(value: int) -> bytes:
    return compressed(value) if value >= 0 else b"\x08" + value.to_bytes(8, "little", signed=True)


def record(kind: int, *fields: bytes) -> bytes:
    """A record with its length."""
    payload = b"".join(fields)
    length = bytes([len(payload)]) if len(payload) < 255 else b"\xff" + len(payload).to_bytes(8, "little")
    return bytes([kind]) + length + payload


def compressed_columns(values: npt.NDArray[np.uint64]) -> tuple[Bytes, npt.NDArray[np.int64]]:
    """Many compressed integers: rows of nine bytes, and how many of each row count."""
    rows = np.empty((len(values), 9), np.uint8)
    rows[:, 1:] = np.ascontiguousarray(values, "<u8").view(np.uint8).reshape(-1, 8)
    used = rows[:, 1:] != 0
    size = np.where(used.any(axis=1), 8 - np.argmax(used[:, ::-1], axis=1), 0)
    rows[:, 0] = size
    return rows, size + 1


def join_columns(parts: Iterable[tuple[Bytes, npt.NDArray[np.int64]]]) -> tuple[Bytes, npt.NDArray[np.int64]]:
    """Put fields of several columns side by side: (all bytes, length of each record)."""
    parts = list(parts)
    kept = [np.arange(rows.shape[1]) < lengths[:, None] for rows, lengths in parts]
    whole = np.concatenate([rows for rows, _ in parts], axis=1)
    mask = np.concatenate(kept, axis=1)
    return whole[mask], mask.sum(axis=1)


def constant(value: int, count: int) -> tuple[Bytes, npt.NDArray[np.int64]]:
    """A column of one byte that is the same in every record."""
    return np.full((count, 1), value, np.uint8), np.ones(count, np.int64)


def header(first: int, last: int) -> bytes:
    return bytes([3, LITTLE]) + first.to_bytes(8, "little") + last.to_bytes(8, "little")


def write_definitions(path: Path, records: Iterable[bytes], chunk: int) -> int:
    """Write a definition file; returns the number of records. No record spans two chunks."""
    count, size = 0, HEADER
    with path.open("wb") as file:
        file.write(header(1, 0))
        for one in records:
            if size + len(one) > chunk - _RESERVE:
                if HEADER + len(one) > chunk - _RESERVE:
                    raise ValueError(f"a definition of {len(one)} bytes does not fit into a chunk of {chunk}")
                file.write(bytes(chunk - size) + header(1, 0))
                size = HEADER
            file.write(one)
            size += len(one)
            count += 1
        file.write(_END)
    return count


class EventFile:
    """One location's events, in the order given; a timestamp is written where the time changes and in each chunk."""

    def __init__(self, path: Path, chunk: int) -> None:
        self.count = 0
        self.last_time = 0
        self._path = path
        self._times: list[int] = []
        self._bodies: list[bytes] = []
        self._start_chunk(chunk)

    def add(self, time: int, body: bytes) -> None:
        self._times.append(time)
        self._bodies.append(body)
        if len(self._times) >= _BLOCK:
            self._flush()

    def add_columns(self, times: Any, blob: Bytes, lengths: npt.NDArray[np.int64]) -> None:
        """Many records at once: their bytes one after the other, and the length of each."""
        self._flush()
        self._pack(np.ascontiguousarray(times, np.uint64), blob, lengths)

    def close(self) -> None:
        self._flush()
        self._end_chunk(len(_END))

    def _flush(self) -> None:
        if self._times:
            lengths = np.fromiter(map(len, self._bodies), np.int64, len(self._bodies))
            blob = np.frombuffer(b"".join(self._bodies), np.uint8)
            times, self._times, self._bodies = np.array(self._times, np.uint64), [], []
            self._pack(times, blob, lengths)

    def _start_chunk(self, size: int) -> None:
        self._chunk = np.zeros(size, np.uint8)  # a new one: untouched zeros cost no memory, and locations may be many
        self._at, self._first, self._stamped = HEADER, self.count + 1, False

    def _end_chunk(self, ending: int = 0) -> None:
        """Write the chunk; ``ending`` bytes of the end-of-file mark make it the last, which is written short."""
        self._chunk[:HEADER] = np.frombuffer(header(self._first, self.count), np.uint8)
        self._chunk[self._at : self._at + ending] = np.frombuffer(_END[:ending], np.uint8)
        with self._path.open("ab") as file:  # not held open: there may be thousands of locations
            file.write((self._chunk[: self._at + ending] if ending else self._chunk).tobytes())
        self._start_chunk(len(self._chunk))

    def _pack(self, times: npt.NDArray[np.uint64], blob: Bytes, lengths: npt.NDArray[np.int64]) -> None:
        begins = np.cumsum(lengths) - lengths
        at = 0
        while at < len(times):
            room = len(self._chunk) - _RESERVE - self._at
            window = slice(at, at + max(room // 2, 1))
            stamp = self._stamps(times[window])
            sizes = lengths[window] + _STAMP * stamp
            ends = np.cumsum(sizes)
            fits = int(np.searchsorted(ends, room, side="right"))
            if fits:
                part = slice(at, at + fits)
                self._place(times[part], stamp[:fits], ends[:fits] - sizes[:fits], blob, begins[part], lengths[part])
                self._at += int(ends[fits - 1])
                at += fits
            elif self._at > HEADER:
                self._end_chunk()
            else:
                raise ValueError(f"an event of {lengths[at]} bytes does not fit into a chunk of {len(self._chunk)}")

    def _stamps(self, times: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        stamp = np.empty(len(times), np.bool_)
        stamp[0] = not self._stamped or int(times[0]) != self.last_time
        stamp[1:] = times[1:] != times[:-1]
        return stamp

    def _place(
        self,
        times: npt.NDArray[np.uint64],
        stamp: npt.NDArray[np.bool_],
        offsets: npt.NDArray[np.int64],
        blob: Bytes,
        begins: npt.NDArray[np.int64],
        lengths: npt.NDArray[np.int64],
    ) -> None:
        """Scatter timestamps and bodies into the chunk."""
        at = self._at + offsets
        self._chunk[at[stamp]] = 5
        stamps = np.ascontiguousarray(times[stamp], "<u8").view(np.uint8).reshape(-1, 8)
        self._chunk[at[stamp][:, None] + np.arange(1, _STAMP)] = stamps
        first, whole = int(begins[0]), int(lengths.sum())
        shift = np.repeat(at + _STAMP * stamp - (begins - first), lengths)
        self._chunk[shift + np.arange(whole)] = blob[first : first + whole]
        self.count += len(times)
        self.last_time, self._stamped = int(times[-1]), True
