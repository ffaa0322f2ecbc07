"""The journal: an append-only file that a recorder writes while a program runs, and that survives a kill.

::

    "wattribute-journal 1\\n", then records: length of the payload (u32), CRC-32 (u32), kind (u8), payload
    kind 1  JSON: what is recorded (host, clock, meters with their channels)
    kind 2  one reading of one meter: its number (u16), then per channel (time i64, value i64 or f64)
    kind 3  JSON: an event (the child's start and end, a problem, shares of processes)

A record is whole or does not count, so a cut file gives everything up to the cut. Written by ``sampler`` (this module
imports nothing heavy), read by ``build``, which is also the reader plug-in for a folder whose writer was killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import FormatError, damage_as_format_error
from ..plugins import Channel

if TYPE_CHECKING:
    from mmap import mmap

NAME = "journal"
MAGIC = b"wattribute-journal 1\n"
ABOUT, READINGS, EVENT = 1, 2, 3
NO_READING = -(2**63)  # in the place of a time
BLOCK_BYTES = 8 << 20  # of readings that are parsed together
KEPT_BYTES = 64 << 20  # what is held in memory while a disk is full

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
_NONE = NO_READING, 0
_HEAD = struct.Struct("<IIB")
_NUMBER = struct.Struct("<H")


def record(kind: int, payload: bytes) -> bytes:
    """One record as it stands in the file."""
    return _HEAD.pack(len(payload), zlib.crc32(payload, kind), kind) + payload


class Journal:
    """The writing end. Records gather in memory and reach the file with ``flush``; a full disk keeps them there.

    Without a path nothing is kept: the run is only watched.
    """

    def __init__(self, path: Path | None) -> None:
        self._file = -1 if path is None else os.open(path, _NEW_FILE, 0o644)
        if self._file >= 0:
            with contextlib.suppress(ImportError, OSError):  # Windows, or a file system without locks
                import fcntl

                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # ends with the process: see is_being_written
        self._pending = bytearray() if path is None else bytearray(MAGIC)
        self._formats: list[struct.Struct] = []
        self._whole: list[bool] = []  # per meter: all its numbers are
        self.failure = ""  # why the last flush did not write everything

    def about(self, content: dict[str, Any], channels: Sequence[Sequence[Channel]]) -> None:
        """The first record; ``channels`` of every meter in the order of their numbers."""
        self._formats = [
            struct.Struct("<H" + "".join("qq" if c.whole else "qd" for c in offered)) for offered in channels
        ]
        self._whole = [sys.byteorder == "little" and all(c.whole for c in offered) for offered in channels]
        self._append(ABOUT, json.dumps(content).encode())

    def readings(self, meter: int, readings: Sequence[tuple[int, int | float | None]]) -> None:
        raw: bytes | None = getattr(readings, "raw", None)  # of ``_core.polling``: the very bytes
        if raw is not None and self._whole[meter]:
            return self._append(READINGS, _NUMBER.pack(meter) + raw)
        filled = [_NONE if reading[1] is None else reading for reading in readings]
        try:
            payload = self._formats[meter].pack(meter, *chain.from_iterable(filled))
        except (struct.error, OverflowError):  # a sensor's "no value" pattern that does not fit: drop those
            fits = [(at, None if value is not None and abs(value) >= 2**63 else value) for at, value in readings]
            if fits == list(readings):
                raise
            return self.readings(meter, fits)
        self._append(READINGS, payload)
        return None

    def event(self, content: dict[str, Any]) -> None:
        self._append(EVENT, json.dumps(content).encode())

    def _append(self, kind: int, payload: bytes) -> None:
        if self._file >= 0 and len(self._pending) < KEPT_BYTES:
            self._pending += record(kind, payload)

    def flush(self) -> None:
        """Hand everything to the kernel; what does not go stays for the next time."""
        try:
            while self._pending:
                written = os.write(self._file, self._pending)
                del self._pending[:written]
            self.failure = ""
        except OSError as error:
            self.failure = error.strerror or str(error)

    def unwritten(self) -> bytes:
        return bytes(self._pending)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)


def is_being_written(folder: Path) -> bool:
    """Whether a recorder that is alive holds the journal in this folder."""
    try:
        import fcntl

        with open(folder / NAME, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (ImportError, OSError):
        return False
    return False


@dataclass
class Content:
    """Content of a journal."""

    about: dict[str, Any]
    readings: list[list[bytes]] = field(default_factory=list)  # per meter, the payloads without the number
    events: list[dict[str, Any]] = field(default_factory=list)
    cut: bool = False  # the file ends in the middle of a record


def mapped(path: Path) -> bytes | mmap:
    """The bytes of a journal as they lie in the file, which take no memory."""
    from mmap import ACCESS_READ, mmap

    with open(path, "rb") as file:
        return mmap(file.fileno(), 0, access=ACCESS_READ) if os.fstat(file.fileno()).st_size else b""


class JournalSink(Protocol):
    """Takes what a journal has most of as it is read, so that ``parse`` does not keep it."""

    def readings(self, meter: dict[str, Any], number: int, block: bytes) -> None:
        """Readings of many rounds of a meter: its description and its number."""

    def takes(self, event: dict[str, Any]) -> bool:
        """Whether this event is one of many and was noted."""


def parse(data: bytes | mmap, path: Path, sink: JournalSink | None = None) -> Content:
    """The content of a journal; raises FormatError when not even its first record is whole.

    With a ``sink`` readings are handed on in blocks as they come, and not kept: a day of eight GPUs is gigabytes.
    """
    from mmap import MADV_DONTNEED, PAGESIZE

    if data[: len(MAGIC)] != MAGIC:
        raise FormatError(path, "is not a journal of wattribute")
    content: Content | None = None
    end, sizes = len(MAGIC), list[int]()
    for kind, payload, after in records(data, end):
        end = after
        with damage_as_format_error(path):
            if kind == ABOUT and content is None:
                content = Content(json.loads(payload))
                content.readings = [[] for _ in content.about["meters"]]
                sizes = [0] * len(content.readings)
            elif content is None:
                break
            elif kind == READINGS:
                number = _NUMBER.unpack_from(payload)[0]
                content.readings[number].append(payload[_NUMBER.size :])
                sizes[number] += len(payload)
                if sink is not None and sizes[number] >= BLOCK_BYTES:
                    sizes[number] = _hand_on(content, number, sink)
                    if hasattr(data, "madvise"):  # what is parsed need not stay in memory
                        data.madvise(MADV_DONTNEED, 0, end // PAGESIZE * PAGESIZE)
            elif kind == EVENT:
                event = json.loads(payload)
                if sink is None or not sink.takes(event):
                    content.events.append(event)
    if content is None:
        raise FormatError(path, "was cut before anything was recorded")
    with damage_as_format_error(path):
        for number in range(len(content.readings)) if sink is not None else ():
            _hand_on(content, number, sink)
    content.cut = end < len(data)
    return content


def _hand_on(content: Content, number: int, sink: JournalSink | None) -> int:
    if sink is not None:
        sink.readings(content.about["meters"][number], number, b"".join(content.readings[number]))
        content.readings[number].clear()
    return 0


def records(data: bytes | mmap, at: int) -> Iterator[tuple[int, bytes, int]]:
    """(kind, payload, where the next record begins) as long as records are whole."""
    while at + _HEAD.size <= len(data):
        length, check, kind = _HEAD.unpack_from(data, at)
        payload = data[at + _HEAD.size : at + _HEAD.size + length]
        if len(payload) < length or zlib.crc32(payload, kind) != check or kind not in (ABOUT, READINGS, EVENT):
            return
        at += _HEAD.size + length
        yield kind, payload, at
