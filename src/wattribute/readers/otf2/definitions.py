"""The global definitions of an OTF2 archive (``traces.def``): names for the ids that events carry.

One pass over the records, each decoded by its layout; records and trailing fields of newer versions are ignored, those
older versions lack take defaults. A damaged file gives the definitions before the damage and a problem that names the
byte. Undefined references are −1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt

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
    PARAMETER = 23
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
    Kind.PARAMETER: "cc1",  # id, name, type
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
_BLOCK = 4096  # records that are tuples at a time
_PIECE = 1 << 20  # bytes that the core decodes at a time
_BYTE_TYPES = (1, 5)


class Records(Sequence[tuple[Any, ...]]):
    """Records of integers as an array that looks like a list of tuples: a million of them are made one by one."""

    def __init__(self, fields: npt.NDArray[np.int64 | np.int32]) -> None:
        self.fields = fields

    def __len__(self) -> int:
        return len(self.fields)

    @overload
    def __getitem__(self, at: int) -> tuple[Any, ...]: ...
    @overload
    def __getitem__(self, at: slice) -> Records: ...
    def __getitem__(self, at: int | slice) -> tuple[Any, ...] | Records:
        return Records(self.fields[at]) if isinstance(at, slice) else tuple(self.fields[at].tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for at in range(0, len(self.fields), _BLOCK):
            yield from map(tuple, self.fields[at : at + _BLOCK].tolist())


class Strings(Sequence[tuple[Any, ...]]):
    """Records of kind STRING as two columns that look like a list of tuples."""

    def __init__(self, ids: list[int], texts: list[str]) -> None:
        self.ids, self.texts = ids, texts

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, at: int) -> tuple[Any, ...]: ...
    @overload
    def __getitem__(self, at: slice) -> Strings: ...
    def __getitem__(self, at: int | slice) -> tuple[Any, ...] | Strings:
        return Strings(self.ids[at], self.texts[at]) if isinstance(at, slice) else (self.ids[at], self.texts[at])

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return zip(self.ids, self.texts, strict=True)


def columns(records: Sequence[tuple[Any, ...]], *places: int) -> list[npt.NDArray[Any]]:
    """Some fields of records that are integers, each as an array; those of odd records may be larger than 64 bits."""
    if isinstance(records, Records):
        return [records.fields[:, place] for place in places]
    return [np.array([record[place] for record in records], object) for place in places]


def items(column: npt.NDArray[Any]) -> Iterator[Any]:
    """The values of a column as Python has them, without a list of all of them."""
    for at in range(0, len(column), _BLOCK):
        yield from column[at : at + _BLOCK].tolist()


@dataclass
class Definitions:
    """Records by kind as tuples in the order of ``_LAYOUTS``, in the order of the file; names are still string ids."""

    strings: dict[int, str] = field(default_factory=dict)
    records: dict[int, Sequence[tuple[Any, ...]]] = field(default_factory=dict)
    count: int = 0
    problems: list[Problem] = field(default_factory=list)

    def of(self, kind: Kind) -> Sequence[tuple[Any, ...]]:
        return self.records.get(kind, [])

    def text(self, reference: int) -> str:
        """The string of this id; undefined ones are empty."""
        return self.strings.get(reference, "")

    @property
    def clock(self) -> tuple[int, int, int, int]:
        clocks = self.of(Kind.CLOCK)
        ticks, offset, length, realtime = clocks[-1] if clocks else (0, 0, 0, -1)
        return ticks, offset, length, realtime

    def properties(self, kind: Kind) -> dict[int, dict[str, str]]:
        """The properties of nodes, processes or locations, by their id."""
        properties: dict[int, dict[str, str]] = {}
        for owner, name, old, typed in self.of(kind):
            value = self.text(old) if typed is None or typed[0] == _STRING_TYPE else str(typed[1])
            properties.setdefault(owner, {})[self.text(name)] = value
        return properties


class _Damage(Exception):
    """A record that cannot be decoded; carries the byte."""


def read(path: Path, chunk: int, declared: int) -> Definitions:
    """Decode a definition file; ``declared`` is the number of definitions the anchor promises."""
    data = _load(path)
    definitions = Definitions(records={kind: [] for kind in _LAYOUTS})
    further: dict[int, list[tuple[Any, ...]]] = {}  # those that the core could not follow
    try:
        begin = _read_plain(data, chunk, definitions)
        for kind, at, end in _walk(data, chunk, begin):
            definitions.count += 1
            layout = _LAYOUTS.get(kind)
            if layout is not None:
                further.setdefault(kind, []).append(_fields(data, at, end, layout))
    except _Damage as damage:
        at, what = damage.args
        definitions.problems.append(
            Problem(
                "definitions", f"{path} at byte {at}: {what}; {definitions.count} of {declared} definitions were read"
            )
        )
    for kind, records in further.items():
        definitions.records[kind] = [*definitions.records[kind], *records]
    definitions.strings = dict(definitions.records.pop(Kind.STRING))
    for one in (Kind.NODE, Kind.PROCESS, Kind.LOCATION, Kind.REGION):
        _keep_last(definitions, one, path)
    if not definitions.of(Kind.LOCATION):
        why = f": {definitions.problems[0].message}" if definitions.problems else ""
        raise FormatError(path, f"no location is defined{why}")
    if not definitions.problems and declared and definitions.count != declared:
        definitions.problems.append(
            Problem("definitions", f"{path}: {definitions.count} definitions, the anchor declares {declared}")
        )
    return definitions


def _keep_last(definitions: Definitions, kind: Kind, path: Path) -> None:
    """Rows are named by id, so an id that is defined twice counts once, and a record without one not at all."""
    [ids] = columns(definitions.of(kind), 0)
    left_out = len(ids) - len(np.unique(ids[ids >= 0]))
    if left_out:
        unique = {record[0]: record for record in definitions.of(kind) if record[0] >= 0}
        text = f"{path}: {left_out} definitions of a {kind.name.lower()} without an id or with one that comes again"
        definitions.problems.append(Problem("definitions", text))
        definitions.records[kind] = list(unique.values())


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


def _read_plain(data: bytes, chunk: int, definitions: Definitions) -> int:
    """The records that the core can follow; returns the byte where the rest begins.

    Some chunks at a time: the rows of the core take ten times as much memory as the file.
    """
    pieces: dict[int, list[Sequence[tuple[Any, ...]]]] = {kind: [] for kind in _LAYOUTS}
    step = max(_PIECE // chunk, 1) * chunk if chunk > 0 else len(data)
    count = end = 0
    try:
        for begin in range(0, len(data), step):
            piece = data[begin : begin + step]
            rows, stop = core.definitions(piece, chunk, _LAYOUTS)
            count, end = count + len(rows), begin + stop
            for kind, records in _records(piece, rows):
                pieces[kind].append(records)
            if stop < len(piece):
                break
    except _Damage:  # one by one, what stands before it counts
        return 0
    definitions.records = {kind: _joined(pieces.pop(kind), len(layout)) for kind, layout in _LAYOUTS.items()}
    definitions.count = count
    return end


def _records(data: bytes, rows: npt.NDArray[np.int64]) -> Iterator[tuple[int, Sequence[tuple[Any, ...]]]]:
    """The records of each kind that occurs, from the rows of the core."""
    order = np.argsort(rows[:, 0], kind="stable")
    kinds = rows[order, 0]
    for kind, layout in _LAYOUTS.items():
        mine = order[np.searchsorted(kinds, kind) : np.searchsorted(kinds, kind, side="right")]
        if not len(mine):
            continue
        if rows[mine, 3].all():
            fields = rows[mine, 4 : 4 + len(layout)]
            is_small = fields.max() < 2**31  # −1 is the least
            yield kind, Records(fields.astype(np.int32) if is_small else fields)
        elif kind == Kind.STRING:
            yield kind, _strings(data, *rows[mine, 1:3].T)
        else:
            yield kind, [_fields(data, at, stop, layout) for at, stop in rows[mine, 1:3].tolist()]


def _joined(pieces: Sequence[Sequence[tuple[Any, ...]]], width: int) -> Sequence[tuple[Any, ...]]:
    """Records of one kind in the order of the file."""
    if len(pieces) == 1:
        return pieces[0]
    if all(isinstance(piece, Records) for piece in pieces):
        fields = [piece.fields for piece in pieces if isinstance(piece, Records)]
        return Records(np.concatenate([np.empty((0, width), np.int32), *fields]))
    texts = [piece for piece in pieces if isinstance(piece, Strings)]
    if len(texts) == len(pieces):
        return Strings([i for piece in texts for i in piece.ids], [text for piece in texts for text in piece.texts])
    return [record for piece in pieces for record in piece]


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


def _strings(data: bytes, begin: npt.NDArray[np.int64], end: npt.NDArray[np.int64]) -> Strings | list[tuple[Any, ...]]:
    """Records of kind STRING: an id and a text that ends with a zero."""
    size = np.frombuffer(data, np.uint8)[begin].astype(np.int64)
    text = begin + 1 + size
    if (size > 8).any() or (text >= end).any():  # to be looked at one by one
        return [_fields(data, at, stop, _LAYOUTS[Kind.STRING]) for at, stop in zip(begin, end, strict=True)]
    ids = np.zeros(len(begin), np.uint64)
    for byte in range(int(size.max(initial=0))):
        there = size > byte
        ids[there] |= np.frombuffer(data, np.uint8)[begin[there] + 1 + byte].astype(np.uint64) << np.uint64(8 * byte)
    texts = []
    for at, stop in zip(text.tolist(), end.tolist(), strict=True):
        zero = data.find(b"\0", at, stop)
        if zero < 0:
            raise _Damage(at, "a text without an end")
        texts.append(data[at:zero].decode("utf-8", "replace"))
    return Strings(ids.tolist(), texts)


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
