"""The global definitions of an OTF2 archive (``traces.def``): names for the ids that events carry.

One pass over the records, each decoded by its layout; records and trailing fields of newer versions are ignored, those
older versions lack take defaults. A damaged file gives the definitions before the damage and a problem that names the
byte. Undefined references are −1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any

from ..._core import otf2 as core
from ...errors import FormatError, NotFoundError
from ...model import Problem
from .anchor import BIG, LITTLE

HEADER = 18  # bytes at the start of each chunk: 0x03, byte order, first and last record number


class Kind(IntEnum):
    """The records of global definitions that we use; the comments in ``_LAYOUTS`` name their fields."""

    CLOCK = 5
    PARADIGM = 6
    STRING = 10
    ATTRIBUTE = 11
    NODE = 12
    PROCESS = 13  # "location group" in OTF2
    LOCATION = 14
    REGION = 15
    GROUP = 18  # of locations, regions, ranks …
    MEMBER = 19
    METRIC_CLASS = 20
    METRIC_INSTANCE = 21
    COMMUNICATOR = 22
    WINDOW = 24
    RECORDER = 25
    NODE_PROPERTY = 26
    DOMAIN = 27
    PROCESS_PROPERTY = 28
    LOCATION_PROPERTY = 29
    CONTEXT = 34


# c compressed integer (−1: undefined), 1 byte, s text, L list (compressed count), M list (count in a byte),
# v a typed value
_LAYOUTS: dict[int, str] = {
    Kind.CLOCK: "cccc",  # ticks per second, offset, length, realtime of the offset in ns
    Kind.PARADIGM: "1c1",  # number, name, class
    Kind.STRING: "cs",
    Kind.ATTRIBUTE: "cc1c",  # id, name, type, description
    Kind.NODE: "cccc",  # id, name, class, parent
    Kind.PROCESS: "cc1cc",  # id, name, type, node, creating process
    Kind.LOCATION: "cc1cc",  # id, name, type, events, process
    Kind.REGION: "ccc1cccc11c",  # id, name, description, (old), file, begin, end, canonical, role, paradigm, flags
    Kind.GROUP: "cc1L11c",  # id, name, (old type), members, type, paradigm, flags
    Kind.MEMBER: "ccc1111cc",  # id, name, description, type, mode, value type, base, exponent, unit
    Kind.METRIC_CLASS: "cM11",  # id, members, occurrence, kind of recorder
    Kind.METRIC_INSTANCE: "ccc1c",  # id, class, recorder, type of scope, scope
    Kind.COMMUNICATOR: "ccccc",  # id, name, group, parent, flags
    Kind.WINDOW: "cccc",  # id, name, communicator, flags
    Kind.RECORDER: "cc",  # metric class, location
    Kind.NODE_PROPERTY: "cccv",  # node, name, (old value), value
    Kind.DOMAIN: "c1",  # node, domain
    Kind.PROCESS_PROPERTY: "cccv",
    Kind.LOCATION_PROPERTY: "cccv",
    Kind.CONTEXT: "cccc",  # id, region, source code location, parent
}
_DEFAULTS = {"c": -1, "1": 0, "s": "", "L": (), "M": (), "v": None}
_STRING_TYPE = 11
_BYTE_TYPES = (1, 5)


@dataclass
class Definitions:
    """Records by kind as tuples in the order of ``_LAYOUTS``, in the order of the file; names are still string ids."""

    strings: dict[int, str] = field(default_factory=dict)
    records: dict[int, list[tuple[Any, ...]]] = field(default_factory=dict)
    count: int = 0
    problems: list[Problem] = field(default_factory=list)

    def of(self, kind: Kind) -> list[tuple[Any, ...]]:
        return self.records.get(kind, [])

    def text(self, reference: int) -> str:
        """The string of this id; undefined ones are empty."""
        return self.strings.get(reference, "")

    @property
    def clock(self) -> tuple[int, int, int, int]:
        clocks = self.of(Kind.CLOCK)
        return clocks[-1] if clocks else (0, 0, 0, -1)

    def properties(self, kind: Kind) -> dict[int, dict[str, str]]:
        """The properties of nodes, processes or locations, by their id."""
        found: dict[int, dict[str, str]] = {}
        for owner, name, old, typed in self.of(kind):
            value = self.text(old) if typed is None or typed[0] == _STRING_TYPE else str(typed[1])
            found.setdefault(owner, {})[self.text(name)] = value
        return found


class _Damage(Exception):
    """A record that cannot be decoded; carries the byte."""


def read(path: Path, chunk: int, declared: int) -> Definitions:
    """Decode a definition file; ``declared`` is the number of definitions the anchor promises."""
    data = _load(path)
    found = Definitions(records={kind: [] for kind in _LAYOUTS})
    try:
        begin = _read_plain(data, chunk, found)
        for kind, at, end in _walk(data, chunk, begin):
            found.count += 1
            layout = _LAYOUTS.get(kind)
            if layout is not None:
                found.records[kind].append(_fields(data, at, end, layout))
    except _Damage as damage:
        at, what = damage.args
        found.problems.append(
            Problem("definitions", f"{path} at byte {at}: {what}; {found.count} of {declared} definitions were read")
        )
    found.strings = dict(found.of(Kind.STRING))
    for one in (Kind.NODE, Kind.PROCESS, Kind.LOCATION, Kind.REGION):
        _keep_last(found, one, path)
    if not found.of(Kind.LOCATION):
        why = f": {found.problems[0].message}" if found.problems else ""
        raise FormatError(path, f"no location is defined{why}")
    if not found.problems and declared and found.count != declared:
        found.problems.append(
            Problem("definitions", f"{path}: {found.count} definitions, the anchor declares {declared}")
        )
    return found


def _keep_last(found: Definitions, kind: Kind, path: Path) -> None:
    """Rows are named by id, so an id that is defined twice counts once, and a record without one not at all."""
    unique = {record[0]: record for record in found.of(kind) if record[0] >= 0}
    left_out = len(found.of(kind)) - len(unique)
    if left_out:
        text = f"{path}: {left_out} definitions of a {kind.name.lower()} without an id or with one that comes again"
        found.problems.append(Problem("definitions", text))
        found.records[kind] = list(unique.values())


def _load(path: Path) -> bytes:
    if path.exists() and not path.is_file():
        raise FormatError(path, "not a regular file")
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise NotFoundError(
            f"{path}: the global definitions are missing; without them a trace cannot be read"
        ) from None
    except OSError as error:
        raise NotFoundError(f"{path}: cannot be read: {error.strerror}") from error
    if not data:
        raise FormatError(path, "the global definitions are empty", 0)
    if len(data) < HEADER or data[0] != 3 or data[1] not in (LITTLE, BIG):
        raise FormatError(path, "not an OTF2 definition file", 0)
    if data[1] == BIG:
        raise FormatError(path, "written in the other byte order than the anchor says", 1)
    return data


def _read_plain(data: bytes, chunk: int, found: Definitions) -> int:
    """The records that the core can follow; returns the byte where the rest begins."""
    rows, end = core.definitions(data, chunk, _LAYOUTS)
    records: dict[int, list[tuple[Any, ...]]] = {}
    try:
        for kind, layout in _LAYOUTS.items():
            mine = rows[rows[:, 0] == kind]
            if mine[:, 3].all():
                records[kind] = [tuple(row) for row in mine[:, 4 : 4 + len(layout)].tolist()]
            else:
                records[kind] = [_fields(data, at, stop, layout) for at, stop in mine[:, 1:3].tolist()]
    except _Damage:  # one by one, what stands before it counts
        return 0
    found.records, found.count = records, len(rows)
    return end


def _walk(data: bytes, chunk: int, at: int = 0) -> Iterator[tuple[int, int, int]]:
    """(kind, begin, end of the payload) of every record; raises _Damage where the file cannot be followed."""
    size = len(data)
    while at < size:
        kind = data[at]
        if kind == 3 and at % chunk == 0:
            if at + HEADER > size or data[at + 1] != LITTLE:
                raise _Damage(at, "a chunk begins wrongly")
            at += HEADER
        elif kind == 0:
            at = (at // chunk + 1) * chunk
        elif kind == 2:
            return
        elif kind < 5:
            raise _Damage(at, f"record of type {kind} has no place here")
        else:
            begin, length = at + 2, data[at + 1] if at + 1 < size else 0
            if length == 255:
                begin, length = at + 10, int.from_bytes(data[at + 2 : at + 10], "little")
            if begin + length > size:
                raise _Damage(at, "the file ends early")
            if begin + length > (at // chunk + 1) * chunk:
                raise _Damage(at, f"a record of {length} bytes reaches past its chunk")
            yield kind, begin, begin + length
            at = begin + length
    raise _Damage(size, "the file ends early")


def _fields(data: bytes, at: int, end: int, layout: str) -> tuple[Any, ...]:
    """The values of one record; fields that are not there take their defaults, bytes beyond the layout are ignored."""
    values: list[Any] = []
    value: Any
    for kind in layout:
        if at >= end:
            values.extend(_DEFAULTS[kind] for kind in layout[len(values) :])
            break
        if kind == "c":
            size = data[at]
            if size <= 8 and at + size < end:  # as in _integer, which would cost a call per field
                value, at = int.from_bytes(data[at + 1 : at + 1 + size], "little"), at + 1 + size
            else:
                value, at = _integer(data, at, end)
        elif kind == "1":
            value, at = data[at], at + 1
        elif kind == "s":
            stop = data.find(b"\0", at, end)
            if stop < 0:
                raise _Damage(at, "a text without an end")
            value, at = data[at:stop].decode("utf-8", "replace"), stop + 1
        elif kind == "v":
            value, at = _typed(data, at, end)
        else:
            value, at = _list(data, at, end, kind)
        values.append(value)
    return tuple(values)


def _integer(data: bytes, at: int, end: int) -> tuple[int, int]:
    size = data[at]
    stop = at + 1 + size
    if size == 255:
        return -1, at + 1
    if size > 8 or stop > end:
        raise _Damage(at, f"an integer of {size} bytes is impossible here")
    return int.from_bytes(data[at + 1 : stop], "little"), stop


def _list(data: bytes, at: int, end: int, kind: str) -> tuple[tuple[int, ...], int]:
    count, at = (data[at], at + 1) if kind == "M" else _integer(data, at, end)
    items: list[int] = []
    for _ in range(count):
        if at >= end:
            raise _Damage(at, f"a list of {count} ends after {len(items)}")
        item, at = _integer(data, at, end)
        items.append(item)
    return tuple(items), at


def _typed(data: bytes, at: int, end: int) -> tuple[tuple[int, int], int]:
    """(type, value) of a property; only strings and integers occur."""
    kind = data[at]
    if at + 1 >= end:
        return (kind, 0), end
    if kind in _BYTE_TYPES:
        return (kind, data[at + 1]), at + 2
    value, at = _integer(data, at + 1, end)
    return (kind, value), at
