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

import json
import os
import struct
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from ..errors import FormatError
from ..plugins import Channel

NAME = "journal"
MAGIC = b"wattribute-journal 1\n"
ABOUT, READINGS, EVENT = 1, 2, 3
NO_READING = -(2**63)  # in the place of a time
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

    Without a path nothing is kept: somebody only watches.
    """

    def __init__(self, path: Path | None) -> None:
        self._file = -1 if path is None else os.open(path, _NEW_FILE, 0o644)
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
        told = [_NONE if reading[1] is None else reading for reading in readings]
        try:
            payload = self._formats[meter].pack(meter, *chain.from_iterable(told))
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


@dataclass
class Content:
    """What a journal holds."""

    about: dict[str, Any]
    readings: list[list[bytes]] = field(default_factory=list)  # per meter, the payloads without the number
    events: list[dict[str, Any]] = field(default_factory=list)
    cut: bool = False  # the file ends in the middle of a record


def parse(data: bytes, path: Path) -> Content:
    """The content of a journal; raises FormatError when not even its first record is whole."""
    if not data.startswith(MAGIC):
        raise FormatError(path, "is not a journal of wattribute")
    content: Content | None = None
    end = len(MAGIC)
    for kind, payload, after in records(data, end):
        end = after
        if kind == ABOUT and content is None:
            content = Content(json.loads(payload))
            content.readings = [[] for _ in content.about["meters"]]
        elif content is None:
            break
        elif kind == READINGS:
            content.readings[_NUMBER.unpack_from(payload)[0]].append(payload[_NUMBER.size :])
        elif kind == EVENT:
            content.events.append(json.loads(payload))
    if content is None:
        raise FormatError(path, "was cut before anything was recorded")
    content.cut = end < len(data)
    return content


def records(data: bytes, at: int) -> Iterator[tuple[int, bytes, int]]:
    """(kind, payload, where the next record begins) as long as records are whole."""
    while at + _HEAD.size <= len(data):
        length, check, kind = _HEAD.unpack_from(data, at)
        payload = data[at + _HEAD.size : at + _HEAD.size + length]
        if len(payload) < length or zlib.crc32(payload, kind) != check:
            return
        at += _HEAD.size + length
        yield kind, payload, at
