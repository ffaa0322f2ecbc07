"""Identity of code and files: what a worker must have in common with its client before their sums are added up."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from ..archive import ArchivedSpans

# what turns files into sums; each a folder or a module of the package
_HASHED_CODE = ("_core", "alignment", "archive", "attribution", "engines", "model", "readers", "sensors", "units")
_HASHED_SUFFIXES = (".py", ".toml")  # code, and the table of sensors
_BLOCK_BYTES = 4096
_THREADS = 8  # files are looked at side by side: on a shared file system each look waits for a server
_DIGEST_BYTES = 16


@cache
def code() -> str:
    """A hash of the code that computes, and of the core library, as they were when this process first asked."""
    from .._core.library import LIBRARY

    package = Path(__file__).parents[1]
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for name in _HASHED_CODE:
        for file in sorted([package / f"{name}.py", *(package / name).rglob("*")]):
            if file.suffix in _HASHED_SUFFIXES and file.is_file():
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


def of_file(path: str) -> bytes:
    """Size, time of the last change, and the first and last block of a file; nothing of one that cannot be read."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    try:
        with open(path, "rb", buffering=0) as file:
            about = os.fstat(file.fileno())
            digest.update(f"{about.st_size} {about.st_mtime_ns} ".encode())
            digest.update(file.read(_BLOCK_BYTES))
            if about.st_size > _BLOCK_BYTES:
                file.seek(max(_BLOCK_BYTES, about.st_size - _BLOCK_BYTES))
                digest.update(file.read(_BLOCK_BYTES))
    except OSError:
        return b""
    return digest.digest()


def of_locations(source: Any, locations: Iterable[int]) -> dict[int, tuple[bytes, ...]]:
    """The identities of the files of locations, in the order of ``files``."""

    def one(location: int) -> tuple[int, tuple[bytes, ...]]:
        return location, tuple(of_file(path) for path in files(source, location))

    with ThreadPoolExecutor(_THREADS) as pool:
        return {location: own for location, own in pool.map(one, locations) if own}


def different(source: Any, known: Mapping[int, tuple[bytes, ...]], locations: Iterable[int]) -> str:
    """The first file that exists here and differs from the known one, or that is known to be missing, or ""."""
    for location in locations:
        for path, own in zip(files(source, location), known.get(location, ()), strict=False):
            here = of_file(path)
            if here and here != own:  # a missing file is reported by its reader
                return path
    return ""
