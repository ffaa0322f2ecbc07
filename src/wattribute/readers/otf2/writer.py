"""A small OTF2 writer, for fixtures, the demo and benchmarks; the official tools read what it writes.

::

    with Writer(folder) as trace:
        rank = trace.process("MPI Rank 0", trace.node("host0"))
        thread, main = trace.location("Master thread", rank), trace.region("main")
        thread.enter(10, main)
        thread.leave(90, main)

Times are raw ticks; references are the numbers that the methods return. Columns go in by ``calls`` and ``readings``.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..._core.otf2 import FIRST_KIND, KINDS
from .anchor import LITTLE
from .definitions import Kind
from .encoding import (
    EventFile,
    compressed,
    compressed_columns,
    constant,
    join_columns,
    record,
    signed,
    write_definitions,
)
from .tables import DOMAINS, PARADIGMS, ROLES

_LOCATION_KINDS = {"cpu": 1, "gpu": 2, "metric": 3}
_SCOPES = {"location": 0, "process": 1, "node": 2, "group": 3}
_VALUES = {"accumulated": 0, "absolute": 1, "relative": 2}
_TIMINGS = {"start": 0, "point": 1, "last": 2, "next": 3}
_OCCURRENCES = {"strict": 0, "synchronous": 1, "asynchronous": 2}
_TYPES = {"uint64": 4, "int64": 8, "double": 10}
_MAPS = {"location": 2, "region": 3, "metric": 5, "context": 10}
_ENTER, _LEAVE, _METRIC = 12, 13, 31
_COLUMN_BLOCK = 1 << 20
_SINGLETONS = (12, 13, 16, 17, 20, 21, 24, 28, 29, 30)  # written without a length


class LocationWriter:
    """One location's events and local definitions."""

    def __init__(self, trace: Writer, number: int, path: Path, chunk: int) -> None:
        self.number = number
        self._trace = trace
        self._events = EventFile(path / f"{number}.evt", chunk)
        self._local: list[bytes] = []

    @property
    def count(self) -> int:
        return self._events.count

    @property
    def last_time(self) -> int:
        return self._events.last_time

    def enter(self, time: int, region: int) -> None:
        self._events.add(time, bytes([_ENTER]) + compressed(region))

    def leave(self, time: int, region: int) -> None:
        self._events.add(time, bytes([_LEAVE]) + compressed(region))

    def metric(self, time: int, metric: int, *values: float) -> None:
        """A reading of each member of a metric class or instance (a local id if metrics are mapped)."""
        types = self._trace.value_types(metric, len(values))
        members = [bytes([kind]) + _bits(kind, value) for kind, value in zip(types, values, strict=True)]
        self._events.add(time, record(_METRIC, compressed(metric), bytes([len(values)]), *members))

    def event(self, time: int, name: str, *fields: int | bytes) -> None:
        """Any other kind of event; integers are compressed, bytes go in as they are."""
        kind = FIRST_KIND + KINDS.index(name)
        payload = [compressed(field) if isinstance(field, int) else field for field in fields]
        self._events.add(time, bytes([kind]) + payload[0] if kind in _SINGLETONS else record(kind, *payload))

    def calls(self, times: Any, entering: Any, regions: Any) -> None:
        """Many enters (where ``entering``) and leaves, as columns."""
        times, entering, regions = np.asarray(times), np.asarray(entering, np.bool_), np.asarray(regions, np.uint64)
        for at in range(0, len(times), _COLUMN_BLOCK):
            part = slice(at, at + _COLUMN_BLOCK)
            kinds = np.where(entering[part], _ENTER, _LEAVE).astype(np.uint8)[:, None]
            fields = [(kinds, np.ones(len(kinds), np.int64)), compressed_columns(regions[part])]
            self._events.add_columns(times[part], *join_columns(fields))

    def readings(self, times: Any, metric: int, values: Any) -> None:
        """Many readings of a metric with one member, as columns."""
        times = np.asarray(times)
        [kind] = self._trace.value_types(metric, 1)
        values = np.asarray(values, np.float64 if kind == _TYPES["double"] else np.int64 if kind == 8 else np.uint64)
        name = compressed(metric)
        for at in range(0, len(times), _COLUMN_BLOCK):
            bits, sizes = compressed_columns(np.ascontiguousarray(values[at : at + _COLUMN_BLOCK]).view(np.uint64))
            n = len(bits)
            length = (len(name) + 2 + sizes).astype(np.uint8)[:, None]
            fields = [constant(_METRIC, n), (length, np.ones(n, np.int64))]
            fields += [constant(byte, n) for byte in (*name, 1, kind)]
            self._events.add_columns(times[at : at + _COLUMN_BLOCK], *join_columns([*fields, (bits, sizes)]))

    def map_ids(self, what: str, ids: Mapping[int, int]) -> None:
        """Local ids → global ones, for what follows in the file; dense when they are 0 … n−1."""
        dense = list(ids) == list(range(len(ids)))
        pairs = [compressed(new) if dense else compressed(old) + compressed(new) for old, new in ids.items()]
        mode = b"\0" if dense else b"\1"
        self._local.append(record(5, bytes([_MAPS[what]]), compressed(len(ids)), mode, *pairs))

    def clock_offset(self, time: int, offset: int) -> None:
        """At this raw time the global clock showed ``time + offset``; it takes two for a correction."""
        self._local.append(record(6, struct.pack("<Q", time), signed(offset), struct.pack("<d", 0.0)))

    def close(self, path: Path, chunk: int) -> None:
        self._events.close()
        write_definitions(path / f"{self.number}.def", self._local, chunk)


def _bits(kind: int, value: float) -> bytes:
    if kind == _TYPES["double"]:
        return compressed(int.from_bytes(struct.pack("<d", value), "little"))
    return signed(int(value))


class Writer:
    """An archive in the making; leaving the ``with`` block writes the definitions and the anchor."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        name: str = "traces",
        ticks_per_s: int = 1_000_000_000,
        offset_ticks: int = 0,
        length_ticks: int | None = None,
        event_chunk: int = 1 << 20,
        definition_chunk: int = 1 << 18,
        creator: str = "wattribute",
    ) -> None:
        self.folder, self.name, self.creator = Path(folder), name, creator
        self._clock = (ticks_per_s, offset_ticks, length_ticks)
        self._chunks = (event_chunk, definition_chunk)
        self._strings: dict[str, int] = {}
        self._records: list[bytes] = []
        self._counts: dict[str, int] = {}
        self._locations: list[tuple[LocationWriter, int, int, int]] = []
        self._member_types: list[int] = []
        self._metric_types: dict[int, list[int]] = {}
        (self.folder / name).mkdir(parents=True)
        self.string("")

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def node(
        self,
        name: str,
        kind: str = "node",
        parent: int = -1,
        domain: str = "",
        properties: Mapping[str, str] | None = None,
    ) -> int:
        """A node of the system tree; ``domain`` is for example "shared_memory" or "accelerator_device"."""
        number = self._next("node")
        self._define(Kind.NODE, number, self.string(name), self.string(kind), parent)
        if domain:
            self._define(Kind.DOMAIN, number, bytes([DOMAINS.index(domain)]))
        for key, value in (properties or {}).items():
            text = compressed(self.string(value))
            self._define(Kind.NODE_PROPERTY, number, self.string(key), text, bytes([11]), text)
        return number

    def process(self, name: str, node: int, kind: str = "process", creator: int = -1) -> int:
        """A process, or an accelerator's context that the process ``creator`` made."""
        number = self._next("process")
        self._define(Kind.PROCESS, number, self.string(name), bytes([2 if kind == "accelerator" else 1]), node, creator)
        return number

    def location(self, name: str, process: int, kind: str = "cpu", number: int | None = None) -> LocationWriter:
        number = self._next("location") if number is None else number
        location = LocationWriter(self, number, self.folder / self.name, self._chunks[0])
        self._locations.append((location, self.string(name), _LOCATION_KINDS[kind], process))
        return location

    def region(
        self, name: str, paradigm: str = "user", role: str = "function", file: str = "", line: int = 0, number: int = -1
    ) -> int:
        number = self._next("region") if number < 0 else number
        text, where = self.string(name), self.string(file) if file else -1
        kind = bytes([ROLES.index(role), PARADIGMS.index(paradigm)])
        self._define(Kind.REGION, number, text, self.string(""), b"\0", where, line, line, text, kind, 0)
        return number

    def context(self, region: int, parent: int = -1) -> int:
        number = self._next("context")
        self._define(Kind.CONTEXT, number, region, -1, parent)
        return number

    def member(
        self, name: str, unit: str = "#", mode: str = "accumulated_start", type: str = "uint64", exponent: int = 0
    ) -> int:
        """A metric proper; ``mode`` is for example "accumulated_start" or "absolute_point"."""
        number = self._next("member")
        value, timing = mode.split("_")
        flags = bytes([0, _VALUES[value] | _TIMINGS[timing] << 4, _TYPES[type], 1])
        self._define(
            Kind.MEMBER, number, self.string(name), self.string(""), flags, signed(exponent), self.string(unit)
        )
        self._member_types.append(_TYPES[type])
        return number

    def metric_class(self, members: Sequence[int], occurrence: str = "asynchronous", recorder: int = -1) -> int:
        """Metrics read together; ``recorder`` is the number of the location that records them, when there is one."""
        number = self._next("metric")
        flags = bytes([_OCCURRENCES[occurrence], 1])
        self._define(Kind.METRIC_CLASS, number, bytes([len(members)]), *members, flags)
        self._metric_types[number] = [self._member_types[member] for member in members]
        if recorder >= 0:
            self._define(Kind.RECORDER, number, recorder)
        return number

    def metric_instance(self, of: int, recorder: int, scope: str, scope_number: int) -> int:
        """A metric class at one place: a "location", "process", "node" or "group" (of locations) of that number."""
        number = self._next("metric")
        self._define(Kind.METRIC_INSTANCE, number, of, recorder, bytes([_SCOPES[scope]]), scope_number)
        self._metric_types[number] = self._metric_types[of]
        return number

    def window(self, name: str, locations: Sequence[int], paradigm: str = "hip") -> int:
        """An RMA window over locations, with the groups and the communicator it needs."""
        which = bytes([PARADIGMS.index(paradigm)])
        places, ranks = self._next("group"), self._next("group")
        members = [compressed(len(locations)), *map(compressed, locations)]
        self._define(Kind.GROUP, places, self.string(name), b"\0", *members, b"\4" + which, 0)
        members = [compressed(len(locations)), *map(compressed, range(len(locations)))]
        self._define(Kind.GROUP, ranks, self.string(name), b"\0", *members, b"\5" + which, 0)
        communicator, number = self._next("communicator"), self._next("window")
        self._define(Kind.COMMUNICATOR, communicator, self.string(name), ranks, -1, 0)
        self._define(Kind.WINDOW, number, self.string(name), communicator, 0)
        return number

    def value_types(self, metric: int, count: int) -> list[int]:
        """The types of a metric's members; of a local id, which is mapped later, unsigned integers."""
        types = self._metric_types.get(metric, [])
        return types if len(types) == count else [_TYPES["uint64"]] * count

    def close(self) -> None:
        """Finish the files of all locations, then write the definitions and the anchor."""
        for location, _, _, _ in self._locations:
            location.close(self.folder / self.name, self._chunks[1])
        ticks_per_s, offset, length = self._clock
        if length is None:
            length = max((location.last_time for location, _, _, _ in self._locations), default=0) - offset
        clock = record(
            Kind.CLOCK, compressed(ticks_per_s), compressed(offset), compressed(max(length, 0)), compressed(-1)
        )
        strings = [record(Kind.STRING, compressed(i), text.encode() + b"\0") for text, i in self._strings.items()]
        locations = [
            record(
                Kind.LOCATION,
                compressed(w.number),
                compressed(name),
                bytes([kind]),
                compressed(w.count),
                compressed(process),
            )
            for w, name, kind, process in self._locations
        ]
        groups = [one for one in self._records if one[0] in (Kind.NODE, Kind.PROCESS)]
        others = [one for one in self._records if one[0] not in (Kind.NODE, Kind.PROCESS)]
        records = [clock, *strings, *groups, *locations, *others]
        write_definitions(self.folder / f"{self.name}.def", records, self._chunks[1])
        self._write_anchor(len(records))

    def _write_anchor(self, definitions: int) -> None:
        content = bytes([3, LITTLE]) + b"OTF2\0" + bytes([3, 2, 3, 0, 0])
        content += struct.pack("<QQBBQQ", *self._chunks, 1, 1, len(self._locations), definitions)
        content += b"\0" + self.creator.encode() + b"\0\0"  # machine, creator, description
        content += struct.pack("<IQII", 0, 0, 0, 0) + b"\x02\x01\x00"  # properties, trace id, snapshots, thumbnails
        (self.folder / f"{self.name}.otf2").write_bytes(content)

    def _next(self, what: str) -> int:
        self._counts[what] = self._counts.get(what, -1) + 1
        return self._counts[what]

    def _define(self, kind: Kind, *fields: int | bytes) -> None:
        self._records.append(
            record(kind, *(compressed(field) if isinstance(field, int) else field for field in fields))
        )
