"""The Python twin of ``input.c`` and ``local.c``: chunks, records and local definitions of OTF2 files.

``reference_otf2.py`` makes events and columns of them. Whatever cannot be read raises :class:`Damage`.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterator
from typing import NamedTuple

from .records import FIRST_KIND, HEADER_BYTES, SINGLETONS, SMALLEST_CHUNK, UNDEFINED


class Damage(Exception):
    """Where and why a file stops making sense."""

    def __init__(self, code: str, byte: int) -> None:
        super().__init__(code)
        self.code, self.byte = code, byte


def load(path: str) -> bytes:
    """A whole file, or Damage."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would wait for a writer
            raise Damage("io", 0)
        with open(path, "rb") as file:
            content = file.read()
    except (FileNotFoundError, NotADirectoryError):
        raise Damage("missing", 0) from None
    except PermissionError:
        raise Damage("permission", 0) from None
    except OSError:
        raise Damage("io", 0) from None
    if not content:
        raise Damage("empty", 0)
    return content


def compressed(data: bytes, at: int, end: int) -> tuple[int, int]:
    """A compressed integer and the position after it; IndexError when it passes ``end``, ValueError when it is none."""
    if at >= end:
        raise IndexError
    size = data[at]
    if size == 0xFF:
        return UNDEFINED, at + 1
    if size > 8:
        raise ValueError
    if at + 1 + size > end:
        raise IndexError
    return int.from_bytes(data[at + 1 : at + 1 + size], "little"), at + 1 + size


def signed(value: int) -> int:
    """64 bits as two's complement."""
    value &= UNDEFINED
    return value - (1 << 64) if value >> 63 else value


class Record(NamedTuple):
    kind: int
    start: int  # of the record
    at: int  # of its payload
    end: int


class Chunks:
    """The records of a chunked file, one after the other; ``finish`` says how it ended."""

    def __init__(self, data: bytes, size: int) -> None:
        if size < SMALLEST_CHUNK:
            raise Damage("corrupt", 0)
        self.data, self.size = data, size
        self.miscounted = -1  # the chunk whose header disagrees with what is in it

    def __iter__(self) -> Iterator[Record]:
        data, seen, finished, start = self.data, 0, False, 0
        while not finished:
            end = min(start + self.size, len(data))
            first, last = self._header(start, end)
            if first != seen + 1 and self.miscounted < 0:
                self.miscounted = start
            at = start + HEADER_BYTES
            while True:
                if at >= end:
                    raise self._past_end(at, end, start)
                kind = data[at]
                if kind < 3:
                    finished = kind == 2
                    break
                record = self._record(kind, at, end, start)
                yield record
                seen += kind >= FIRST_KIND
                at = record.end
            if last and last != seen and self.miscounted < 0:
                self.miscounted = start
            start += self.size

    def _header(self, start: int, end: int) -> tuple[int, int]:
        if end - start < HEADER_BYTES:
            raise Damage("truncated", min(start, len(self.data)))
        if self.data[start] != 3 or self.data[start + 1] not in (0x42, 0x23):
            raise Damage("corrupt", start)
        if self.data[start + 1] == 0x23:
            raise Damage("endian", start)
        first, last = struct.unpack_from("<QQ", self.data, start + 2)
        return first, last

    def _past_end(self, at: int, end: int, start: int) -> Damage:
        """A record may not leave its chunk; in a chunk that is short itself the file was cut."""
        return Damage("corrupt" if end - start == self.size else "truncated", at)

    def _record(self, kind: int, start: int, end: int, chunk: int) -> Record:
        data = self.data
        if kind in (3, 4, 7, 8, 9):
            raise Damage("corrupt", start)
        try:
            if kind == 5:
                at, stop = start + 1, start + 9
            elif kind in SINGLETONS:
                at = start + 1
                _, stop = compressed(data, at, end)
            else:
                at, length = start + 2, data[start + 1]
                if length == 0xFF:
                    if start + 10 > end:
                        raise IndexError
                    at, length = start + 10, struct.unpack_from("<Q", data, start + 2)[0]
                stop = at + length
            if stop > end:
                raise IndexError
        except IndexError:
            raise self._past_end(start, end, chunk) from None
        except ValueError:
            raise Damage("corrupt", start) from None
        return Record(kind, start, at, stop)


class Local:
    """A local ``.def`` file: id maps and the clock."""

    def __init__(self, path: str, chunk: int) -> None:
        self.maps: dict[int, dict[int, int]] = {}
        self._offsets: list[tuple[int, int]] = []
        if path and os.path.exists(path):
            self._read(load(path), chunk)
        pairs = zip(self._offsets, self._offsets[1:], strict=False)
        self._pieces = [
            (t0, t1, o0, signed(o1 - o0) / float(t1 - t0) if t1 > t0 else 0.0) for (t0, o0), (t1, o1) in pairs
        ]

    def _read(self, data: bytes, chunk: int) -> None:
        for kind, start, at, end in DefChunks(data, chunk):
            try:
                if kind == 5:
                    self._map(data, at, end)
                elif kind == 6:
                    (time,) = struct.unpack_from("<Q", data[at:end])
                    offset, _ = compressed(data, at + 8, end)
                    self._offsets.append((time, signed(offset)))
            except (IndexError, ValueError, struct.error):
                raise Damage("corrupt", start) from None

    def _map(self, data: bytes, at: int, end: int) -> None:
        which = data[at]
        count, at = compressed(data, at + 1, end)
        if at >= end:
            raise IndexError
        mode = data[at]
        at += 1
        ids = {}
        for row in range(count):
            key = row
            if mode:
                key, at = compressed(data, at, end)
            ids[key], at = compressed(data, at, end)
        self.maps[which] = ids

    def map(self, which: int, value: int) -> int:
        """The global id of a local 32-bit id; ids without an entry are global already."""
        return self.maps.get(which, {}).get(value, value) & 0xFFFFFFFF

    def time(self, raw: int) -> int:
        """Corrected time (64 bits): linear between the two clock offsets around it, if there are two."""
        if not self._pieces:
            return raw
        begin, _, offset, slope = next((piece for piece in self._pieces if raw <= piece[1]), self._pieces[-1])
        drift = slope * float(signed(raw - begin))
        drift_ticks = round(drift) if abs(drift) < 2**63 else -(2**63)
        return (raw + offset + drift_ticks) & UNDEFINED


class DefChunks(Chunks):
    """Chunks of definitions: every record has a length, and headers count nothing."""

    def _record(self, kind: int, start: int, end: int, chunk: int) -> Record:
        # 9 is never a singleton; the length is read the same way for every kind of definition
        record = super()._record(FIRST_KIND, start, end, chunk)
        return record._replace(kind=kind)
