"""The Python twin of the C decoder: what every byte of an OTF2 ``.evt`` and local ``.def`` file means.

``readers/otf2`` hands over plain values (:class:`Files`, :class:`Tables`) and gets dicts of arrays back, the same from
here and from ``otf2.py`` (C); nesting is ``reference_nesting.py``. A damaged file gives its correct prefix and a status
that names the first byte which could not be used.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from . import reference
from .records import (
    CONTEXT_MAP,
    FIRST_KIND,
    HEADER_BYTES,
    KINDS,
    METRIC_MAP,
    REGION_MAP,
    SINGLETONS,
    SMALLEST_CHUNK,
    TYPE,
    UNDEFINED,
    Columns,
    Files,
    Tables,
    status,
)
from .reference_nesting import Nesting


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


class Events:
    """The events of one location; afterwards ``status`` says how the files were."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self.counts = np.zeros(256, np.int64)
        self.local: Local
        self.data = b""

    def each(self, act: Callable[[Record, int], None]) -> None:
        """Hand over every event and its raw time, up to the first that is damaged (``act`` may find it so)."""
        self.status = status("", 0, 0, self.files.evt)
        try:
            self.local = Local(self.files.local, self.files.def_chunk)
        except Damage as damage:  # without its id maps a location's events would be charged to the wrong code
            self.status = status(damage.code, damage.byte, 0, self.files.local)
            return
        try:
            for record, raw in self._records():
                act(record, raw)
                self.counts[record.kind] += 1
        except Damage as damage:
            self.status = status(damage.code, damage.byte, 0, self.files.evt)
        self.status["events"] = int(self.counts.sum())

    def _records(self) -> Iterator[tuple[Record, int]]:
        data = self.data = load(self.files.evt)
        chunks = Chunks(data, self.files.evt_chunk)
        raw = 0
        for record in chunks:
            if record.kind == 5:
                (raw,) = struct.unpack_from("<Q", data, record.at)
            elif record.kind >= FIRST_KIND:
                yield record, raw
        if chunks.miscounted >= 0:
            raise Damage("count", chunks.miscounted)

    def fields(self, record: Record, count: int) -> list[int]:
        """The first compressed integers of a payload."""
        at, values = record.at, []
        for _ in range(count):
            try:
                value, at = compressed(self.data, at, record.end)
            except (IndexError, ValueError):
                raise Damage("corrupt", record.start) from None
            values.append(value)
        return values

    def fixed(self, record: Record, size: int) -> int:
        """The first integer of a payload, of fixed width."""
        if record.at + size > record.end:
            raise Damage("corrupt", record.start)
        return int.from_bytes(self.data[record.at : record.at + size], "little")

    def reference(self, record: Record, which: int) -> int:
        """The first integer of a payload as a global id."""
        return self.local.map(which, self.fields(record, 1)[0] & 0xFFFFFFFF)

    def task(self, record: Record) -> tuple[int, int, int]:
        team, creator, generation = (value & 0xFFFFFFFF for value in self.fields(record, 3))
        return team, creator, generation

    def atomic_matching(self, record: Record) -> int:
        """The matching id of an RmaAtomic, which has a plain byte (its kind) after two integers."""
        at, values = record.at, [0]
        try:
            for row in range(5):
                value, at = compressed(self.data, at, record.end)
                values.append(value)
                at += row == 1
        except (IndexError, ValueError):
            raise Damage("corrupt", record.start) from None
        return values[-1]

    def metric(self, record: Record) -> tuple[bytes, list[int]]:
        """The types and bit patterns of a metric event's members."""
        data, end = self.data, record.end
        try:
            _, at = compressed(data, record.at, end)
            if at >= end:
                raise IndexError
            types, bits = bytearray(), []
            members, at = data[at], at + 1
            for _ in range(members):
                if at >= end:
                    raise IndexError
                types.append(data[at])
                value, at = compressed(data, at + 1, end)
                bits.append(value)
        except (IndexError, ValueError):
            raise Damage("corrupt", record.start) from None
        return bytes(types), bits


class Metrics:
    """Metric events as columns."""

    def __init__(self) -> None:
        self.time: list[int] = []
        self.id: list[int] = []
        self.n: list[int] = []
        self.type = bytearray()
        self.bits: list[int] = []

    def add(self, time: int, metric: int, types: bytes, bits: Sequence[int]) -> None:
        self.time.append(time)
        self.id.append(metric)
        self.n.append(len(bits))
        self.type += types
        self.bits += bits

    def columns(self, time_type: type = np.int64) -> Columns:
        return {
            "metric_time": np.array(self.time, time_type),
            "metric_id": np.array(self.id, np.uint32),
            "metric_n": np.array(self.n, np.uint8),
            "metric_type": np.frombuffer(bytes(self.type), np.uint8),
            "metric_bits": np.array(self.bits, np.uint64),
        }


_REFERS = {12: REGION_MAP, 13: REGION_MAP, 31: METRIC_MAP, 66: CONTEXT_MAP, 67: CONTEXT_MAP, 68: CONTEXT_MAP}


def events(files: Files) -> Columns:
    """Every event record: corrected absolute time, kind, and what it refers to (region, metric or context, global)."""
    source, metrics = Events(files), Metrics()
    rows: list[tuple[int, int, int]] = []

    def act(record: Record, raw: int) -> None:
        time, ref = source.local.time(raw), 0
        if record.kind in _REFERS:
            ref = source.reference(record, _REFERS[record.kind])
        if record.kind == TYPE["Metric"]:
            metrics.add(time, ref, *source.metric(record))
        rows.append((time, record.kind, ref))

    source.each(act)
    return {
        "time": np.array([row[0] for row in rows], np.uint64),
        "kind": np.array([row[1] for row in rows], np.uint8),
        "ref": np.array([row[2] for row in rows], np.uint64),
        **metrics.columns(np.uint64),
        "counts": source.counts,
        "status": source.status,
    }


def decode(files: Files, tables: Tables, spans: bool = True, metrics: bool = True) -> Columns:
    """Spans in the order they were entered, metric events as they come, and all that was odd."""
    source, nesting, readings = Events(files), Nesting(tables), Metrics()
    program = {"ProgramBegin": -1, "ProgramEnd": -1}

    def act(record: Record, raw: int) -> None:
        time = signed(source.local.time(raw) - files.offset_ticks)
        name = KINDS[record.kind - FIRST_KIND] if record.kind < FIRST_KIND + len(KINDS) else ""
        if spans:
            nest(source, nesting, record, name, time)
        if name == "Metric" and metrics:
            metric = source.reference(record, METRIC_MAP)
            if tables.metric is None or (metric < len(tables.metric) and tables.metric[metric]):
                readings.add(time, metric, *source.metric(record))
        elif name == "ProgramEnd" or (name == "ProgramBegin" and program[name] == -1):
            program[name] = time

    source.each(act)
    nesting.finish()
    unknown = source.counts[FIRST_KIND + len(KINDS) :].sum()
    return {
        **nesting.columns(),
        **readings.columns(),
        "counts": source.counts,
        "program": (program["ProgramBegin"], program["ProgramEnd"]),
        "nesting": np.array([nesting.orphans, nesting.repaired, nesting.unclosed, unknown], np.int64),
        "undefined": nesting.undefined,
        "backward": nesting.backward,
        "status": source.status,
    }


def nest(source: Events, nesting: Nesting, record: Record, name: str, time: int) -> None:
    """Let one event act on the stack."""
    match name:
        case "Enter":
            nesting.enter(time, source.reference(record, REGION_MAP))
        case "Leave":
            nesting.leave(time, source.reference(record, REGION_MAP))
        case "BufferFlush":
            stop = source.local.time(source.fixed(record, 8))
            nesting.flush(time, signed(stop - source.files.offset_ticks))
        case "MeasurementOnOff":
            nesting.measurement(time, on=source.fixed(record, 1) == 1)
        case "RmaPut":
            nesting.copy_begins(time, nesting.tables.put, source.fields(record, 4)[3])
        case "RmaGet":
            nesting.copy_begins(time, nesting.tables.get, source.fields(record, 4)[3])
        case "RmaAtomic":
            nesting.copy_begins(time, nesting.tables.atomic, source.atomic_matching(record))
        case "RmaOpCompleteBlocking" | "RmaOpCompleteNonBlocking" | "RmaOpCompleteRemote":
            nesting.copy_ends(time, source.fields(record, 2)[1])
        case "ThreadTaskSwitch":
            nesting.switch(time, source.task(record))
        case "ThreadTaskComplete":
            nesting.complete(time, source.task(record))
        case "CallingContextEnter" | "CallingContextSample":
            nesting.context(time, source.reference(record, CONTEXT_MAP))
        case "CallingContextLeave":
            nesting.context_left(time, source.reference(record, CONTEXT_MAP))
        case _:
            nesting.advance(time)


def busy(files: Files, tables: Tables) -> Columns:
    """When the location was inside a kept span, and what :func:`decode` says besides spans."""
    spans = decode(files, tables, metrics=False)
    start, end = reference.busy(SimpleNamespace(**spans))
    return {"start": start, "end": end, **_rest(spans)}


def fold(files: Files, tables: Tables, curves: Sequence[Any], keys: Any) -> Columns:
    """The location rolled up against curves, and what :func:`decode` says besides spans."""
    spans = decode(files, tables, metrics=False)
    return {**reference.fold(SimpleNamespace(**spans), curves, keys), **_rest(spans)}


def _rest(columns: Columns) -> Columns:
    return {name: columns[name] for name in ("counts", "program", "nesting", "undefined", "backward", "status")}
