"""The global definitions of an OTF2 archive (``traces.def``): names for the ids that events carry.

One pass over the records, each decoded by its layout; records and trailing fields of newer versions are ignored, those
older versions lack take defaults. A damaged file gives the definitions before the damage and a problem that names the
byte. Undefined references are −1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import FormatError, NotFoundError
from ...model import Problem
from .anchor import BIG, LITTLE

HEADER = 18  # bytes at the start of each chunk: 0x03, byte order, first and last record number
_CLOCK = 5
_STRING, _NODE, _GROUP, _LOCATION, _REGION = 10, 12, 13, 14, 15
_MEMBER, _CLASS, _INSTANCE, _RECORDER = 19, 20, 21, 25
_NODE_PROPERTY, _DOMAIN, _GROUP_PROPERTY, _LOCATION_PROPERTY = 26, 27, 28, 29

# c compressed integer (−1: undefined), 1 byte, s text, L list (compressed count), M list (count in a byte),
# v a typed value
_LAYOUTS = {
    _CLOCK: "cccc",  # ticks per second, offset, length, realtime of the offset in ns
    6: "1c1",  # paradigm: number, name, class
    _STRING: "cs",
    11: "cc1c",  # attribute: id, name, type, description
    _NODE: "cccc",  # id, name, class, parent
    _GROUP: "cc1cc",  # id, name, type, node, creating group
    _LOCATION: "cc1cc",  # id, name, type, events, group
    _REGION: "ccc1cccc11c",  # id, name, description, (old type), file, begin, end, canonical, role, paradigm, flags
    18: "cc1L11c",  # group: id, name, (old type), members, type, paradigm, flags
    _MEMBER: "ccc1111cc",  # id, name, description, type, mode, value type, base, exponent, unit
    _CLASS: "cM11",  # id, members, occurrence, kind of recorder
    _INSTANCE: "ccc1c",  # id, class, recorder, type of scope, scope
    22: "ccccc",  # communicator: id, name, group, parent, flags
    24: "cccc",  # RMA window: id, name, communicator, flags
    _RECORDER: "cc",  # metric class, location
    _NODE_PROPERTY: "cccv",  # node, name, (old value), value
    _DOMAIN: "c1",
    _GROUP_PROPERTY: "cccv",
    _LOCATION_PROPERTY: "cccv",
    34: "cccc",  # calling context: id, region, source code location, parent
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

    def of(self, kind: int) -> list[tuple[Any, ...]]:
        return self.records.get(kind, [])

    def text(self, reference: int) -> str:
        """The string of this id; undefined ones are empty."""
        return self.strings.get(reference, "")

    @property
    def clock(self) -> tuple[int, int, int, int]:
        clocks = self.of(_CLOCK)
        return clocks[-1] if clocks else (0, 0, 0, -1)

    nodes = property(lambda self: self.of(_NODE))
    groups = property(lambda self: self.of(_GROUP))
    locations = property(lambda self: self.of(_LOCATION))
    regions = property(lambda self: self.of(_REGION))
    members = property(lambda self: self.of(_MEMBER))
    classes = property(lambda self: self.of(_CLASS))
    instances = property(lambda self: self.of(_INSTANCE))
    recorders = property(lambda self: self.of(_RECORDER))
    paradigms = property(lambda self: self.of(6))
    member_groups = property(lambda self: self.of(18))
    communicators = property(lambda self: self.of(22))
    windows = property(lambda self: self.of(24))
    contexts = property(lambda self: self.of(34))
    attributes = property(lambda self: self.of(11))
    domains = property(lambda self: self.of(_DOMAIN))

    def properties(self, kind: str) -> dict[int, dict[str, str]]:
        """The properties of the nodes, groups or locations, by their id."""
        number = {"node": _NODE_PROPERTY, "group": _GROUP_PROPERTY, "location": _LOCATION_PROPERTY}[kind]
        found: dict[int, dict[str, str]] = {}
        for owner, name, old, typed in self.of(number):
            value = self.text(old) if typed is None or typed[0] == _STRING_TYPE else str(typed[1])
            found.setdefault(owner, {})[self.text(name)] = value
        return found


class _Damage(Exception):
    """A record that cannot be decoded; carries the byte."""


def read(path: Path, chunk: int, declared: int) -> Definitions:
    """Decode a definition file; ``declared`` is the number of definitions the anchor promises."""
    data = _load(path)
    found = Definitions()
    try:
        for kind, at, end in _walk(data, chunk):
            found.count += 1
            layout = _LAYOUTS.get(kind)
            if layout is None:
                continue
            values = _fields(data, at, end, layout)
            if kind == _STRING:
                found.strings[values[0]] = values[1]
            else:
                found.records.setdefault(kind, []).append(values)
    except _Damage as damage:
        at, what = damage.args
        found.problems.append(
            Problem("definitions", f"{path} at byte {at}: {what}; {found.count} of {declared} definitions were read")
        )
    for kind in (_NODE, _GROUP, _LOCATION, _REGION):
        _keep_last(found, kind, path)
    if not found.locations:
        why = f": {found.problems[0].message}" if found.problems else ""
        raise FormatError(path, f"no location is defined{why}")
    if not found.problems and declared and found.count != declared:
        found.problems.append(
            Problem("definitions", f"{path}: {found.count} definitions, the anchor declares {declared}")
        )
    return found


def _keep_last(found: Definitions, kind: int, path: Path) -> None:
    """Rows are named by id, so an id that is defined twice counts once, and a record without one not at all."""
    unique = {record[0]: record for record in found.of(kind) if record[0] >= 0}
    left_out = len(found.of(kind)) - len(unique)
    if left_out:
        text = f"{path}: {left_out} records of type {kind} have no id or one that comes again; the last one counts"
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


def _walk(data: bytes, chunk: int) -> Iterator[tuple[int, int, int]]:
    """(kind, begin, end of the payload) of every record; raises _Damage where the file cannot be followed."""
    size, at = len(data), 0
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
            break
        if kind == "c":
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
    values.extend(_DEFAULTS[kind] for kind in layout[len(values) :])
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
