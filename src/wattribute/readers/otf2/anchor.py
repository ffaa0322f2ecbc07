"""The anchor file of an OTF2 archive: versions, chunk sizes, how the other files are stored.

``find`` turns what a user typed (a folder, the anchor under any name) into an anchor's path, ``read`` decodes it and
refuses the kinds of archives we do not read before anything else is opened.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ...errors import FormatError, NotFoundError, UnsupportedError

LITTLE, BIG = 0x42, 0x23
_START = 3  # the byte every file of an archive begins with
_PARTS = ("", ".otf2", ".def", ".marker", ".thumb")  # suffixes of what lies beside the folder of an archive
_MAGIC = b"OTF2\0"
_SUBSTRATES = {1: "POSIX", 2: "SION", 3: "none"}
_LARGEST = 1 << 24  # bytes: an anchor is some hundred bytes long
_CHUNKS = (32, 1 << 30)


@dataclass(frozen=True)
class Anchor:
    """What the anchor says, and where the archive lies."""

    path: Path
    version: tuple[int, int, int]
    event_chunk: int
    definition_chunk: int
    locations: int
    definitions: int
    machine: str = ""
    creator: str = ""
    description: str = ""
    properties: dict[str, str] = field(default_factory=dict)
    trace_id: int = 0

    @property
    def definitions_path(self) -> Path:
        return self.path.with_suffix(".def")

    @cached_property
    def folder(self) -> str:
        """Where the locations' files are, named by ids: ``7.evt``, ``7.def``."""
        return os.path.splitext(self.path)[0]


def is_anchor(path: Path) -> bool:
    """Whether a file begins as an anchor of either byte order does."""
    try:
        with path.open("rb") as file:
            start = file.read(2 + len(_MAGIC))
    except OSError:
        return False
    return start[:1] == bytes([_START]) and start[1:2] in b"B#" and start[2:] == _MAGIC


def beside(path: Path) -> Path | None:
    """The anchor of the archive that this path is a part of; None if it is not a part of one."""
    anchor = path.parent / f"{path.stem}.otf2"
    return anchor if (path.suffix in _PARTS or path.is_dir()) and anchor.is_file() else None


def find(path: Path) -> Path | None:
    """The anchor meant by a path: itself, or the one in this folder (``traces.otf2`` if there are several).

    A part of an archive (``traces.def``, the folder ``traces``) means the anchor of the same name beside it.
    """
    if (anchor := beside(path)) is not None:
        return anchor
    if not path.is_dir():
        return path if path.is_file() and (path.suffix == ".otf2" or is_anchor(path)) else None
    if (path / "traces.otf2").is_file():
        return path / "traces.otf2"
    try:
        anchors = sorted(path.glob("*.otf2"))
    except OSError:
        return None
    if len(anchors) > 1:
        names = ", ".join(one.name for one in anchors[:5])
        raise NotFoundError(f"{path}: holds {len(anchors)} traces ({names}); name one of them")
    return anchors[0] if anchors else None


class _Bytes:
    """A cursor over the anchor's bytes; reading past the end names the position."""

    def __init__(self, path: Path, data: bytes) -> None:
        self.path, self.data, self.at = path, data, 0

    def number(self, size: int) -> int:
        if self.at + size > len(self.data):
            raise FormatError(self.path, "the anchor ends early", len(self.data))
        value = int.from_bytes(self.data[self.at : self.at + size], "little")
        self.at += size
        return value

    def text(self) -> str:
        end = self.data.find(b"\0", self.at)
        if end < 0:
            raise FormatError(self.path, "the anchor ends early, inside a text", len(self.data))
        value = self.data[self.at : end].decode("utf-8", "replace")
        self.at = end + 1
        return value


def read(path: Path) -> Anchor:
    """Decode an anchor; raises FormatError or UnsupportedError with the offending byte."""
    if path.exists() and not path.is_file():  # a pipe would wait for a writer
        raise NotFoundError(f"{path}: not a regular file")
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST)
    except OSError as error:
        raise NotFoundError(f"{path}: cannot be read: {error.strerror}") from error
    if not data:
        raise FormatError(path, "the anchor is empty", 0)
    cursor = _Bytes(path, data)
    if cursor.number(1) != _START:
        raise FormatError(path, "not an OTF2 anchor", 0)
    _check_order(path, cursor.number(1))
    if cursor.data[2:7] != _MAGIC:
        raise FormatError(path, "not an OTF2 anchor (the word OTF2 is not there)", 2)
    cursor.at = 9  # magic, and two versions of the format itself
    version = (cursor.number(1), cursor.number(1), cursor.number(1))
    event_chunk, definition_chunk = cursor.number(8), cursor.number(8)
    for what, size, at in (("event", event_chunk, 12), ("definition", definition_chunk, 20)):
        if not _CHUNKS[0] <= size <= _CHUNKS[1]:
            raise FormatError(path, f"{what} chunk size {size} is impossible", at)
    _check_storage(path, cursor.number(1), cursor.number(1))
    locations, definitions = cursor.number(8), cursor.number(8)
    machine, creator, description = cursor.text(), cursor.text(), cursor.text()
    count = cursor.number(4)
    properties: dict[str, str] = {}
    for _ in range(count):  # the cursor ends a hostile count at the end of the file
        name = cursor.text()
        properties[name] = cursor.text()
    trace_id = cursor.number(8)
    return Anchor(
        path,
        version,
        event_chunk,
        definition_chunk,
        locations,
        definitions,
        machine,
        creator,
        description,
        properties,
        trace_id,
    )


def _check_order(path: Path, order: int) -> None:
    if order == BIG:
        raise UnsupportedError(f"{path} at byte 1: a big-endian archive is not supported")
    if order != LITTLE:
        raise FormatError(path, f"unknown byte order {order:#04x}", 1)


def _check_storage(path: Path, substrate: int, compression: int) -> None:
    if substrate != 1:
        name = _SUBSTRATES.get(substrate, f"number {substrate}")
        raise UnsupportedError(
            f"{path} at byte 28: file substrate {name} is not supported; record with SCOREP_TRACING_USE_SION=false"
        )
    if compression not in (0, 1):
        name = "zlib" if compression == 2 else f"number {compression}"
        raise UnsupportedError(
            f"{path} at byte 29: compression {name} is not supported; record without SCOREP_TRACING_COMPRESS"
        )
