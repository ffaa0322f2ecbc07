"""Identity of code and files: what a worker must have in common with its client before their sums are added up."""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ..archive import ArchivedSpans
from ..errors import NoDataError

_CODE_SUFFIXES = (".py", ".toml")  # code, and the table of sensors
_BLOCK_BYTES = 1 << 20
_THREADS = 8  # files are looked at side by side: on a shared file system each look waits for a server
_DIGEST_BYTES = 16
_STATUS = struct.Struct("<QQqq")  # size, inode, times of change: the same on all nodes of a shared file system
_SIZE = slice(8)  # of a status


class CopyError(NoDataError):
    """A file of the same size as the client's that may be a copy of it: only all of its bytes can tell."""


class FileIdentity(NamedTuple):
    """What tells a file from another one under the same path."""

    status: bytes = b""  # see ``_STATUS``; empty if there is no file
    content: bytes = b""  # a hash of all bytes; empty if it was not asked for


Files = Mapping[int, tuple[FileIdentity, ...]]  # by location, in the order of ``files``


@cache
def code() -> str:
    """A hash of the package and of its core library, as they were when this process first asked."""
    from .._core.library import LIBRARY

    package = Path(__file__).parents[1]
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for file in sorted(package.rglob("*")):
        if file.suffix in _CODE_SUFFIXES and file.is_file():
            digest.update(f"{file.relative_to(package)}\0".encode() + file.read_bytes())
    digest.update(b"without a core" if LIBRARY is None else Path(LIBRARY._name).read_bytes())
    return digest.hexdigest()


def files(source: Any, location: int) -> tuple[str, ...]:
    """The files that a span source reads of a location; none for one that is in memory."""
    if location in getattr(source, "added", ()):  # see attribution.bill
        return ()
    if isinstance(source, ArchivedSpans):
        return (str(source.folder / f"{location}.parquet"),) if location in source.there else ()
    for name in ("inner", "source"):  # a source seen through a window of time, or of frames
        if hasattr(source, name):
            return files(getattr(source, name), location)
    if hasattr(source, "parts"):
        part = source.parts[location]
        return files(part.source, part.location)
    if hasattr(source, "files"):
        own = source.files(location)
        return own.evt, own.local
    return ()


def of_file(path: str, content: bool = False) -> FileIdentity:
    """Size, inode and times of a file, and a hash of its bytes if ``content`` asks for it."""
    try:
        about = os.stat(path)
        status = _STATUS.pack(about.st_size, about.st_ino, about.st_mtime_ns, about.st_ctime_ns)
        return FileIdentity(status, _content(path, status) if content else b"")
    except OSError:
        return FileIdentity()


@lru_cache(1 << 16)
def _content(path: str, _: bytes) -> bytes:
    """A hash of all bytes of a file, once for each of its states."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    with open(path, "rb", buffering=0) as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.digest()


def of_locations(source: Any, locations: Iterable[int], content: bool = False) -> Files:
    """The identities of the files of locations."""

    def one(location: int) -> tuple[int, tuple[FileIdentity, ...]]:
        return location, tuple(of_file(path, content) for path in files(source, location))

    with ThreadPoolExecutor(_THREADS) as pool:
        return {location: own for location, own in pool.map(one, locations) if own}


def with_content(source: Any, known: Files) -> Files:
    """The same identities with hashes of all bytes; an error if a file has changed since."""
    whole = of_locations(source, known, content=True)
    for location, now in whole.items():
        for path, one, other in zip(files(source, location), known[location], now, strict=True):
            if one.status != other.status:
                raise NoDataError(f"{path} was changed while it was read; try again when nothing writes to it")
    return whole


def different(source: Any, known: Files, locations: Iterable[int]) -> str:
    """The first file that exists here and is not the known one, or that is known to be missing, or "".

    Raises CopyError where only a hash of the known file's bytes, which is not there, could tell.
    """
    for location in locations:
        for path, own in zip(files(source, location), known.get(location, ()), strict=False):
            here = of_file(path)
            if not here.status or here.status == own.status:  # a missing file is reported by its reader
                continue
            if here.status[_SIZE] != own.status[_SIZE]:
                return path
            if not own.content:
                raise CopyError(path)
            if of_file(path, content=True).content != own.content:
                return path
    return ""
