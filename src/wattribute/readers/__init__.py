"""Files → Recording: one module per format, named as its plug-in; ``find_reader`` finds the one for a path.

Readers are asked in this order: those that declare the path's suffix, those that declare the suffix of a file in the
folder, then all others by name. A declaration is an entry point ``READER.SUFFIX`` in the group
``wattribute.suffixes``, so that only readers which may know a file are imported. The content decides, never the suffix
alone.

A reader of files that hold many runs has a third function, ``runs(path, selection)``: the recordings, and what was left
out.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

from ..errors import NotFoundError, WattributeError
from ..plugins import Reader, readers, suffixes

_LOOKED_AT = 200  # files of a folder whose suffixes are looked at


def find_reader(path: Path, format: str | None = None) -> Reader:
    """The reader of this name, or the first that knows the content."""
    if format is not None:
        return readers.get(format)
    for name in _candidates(path):
        try:
            reader = readers.get(name)
        except WattributeError:  # a plug-in that cannot be loaded here
            continue
        if reader.detects(path):
            return reader
    if path.is_dir() and not os.access(path, os.R_OK | os.X_OK):
        raise NotFoundError(f"{path}: cannot be read: no permission to look inside")
    if path.is_file() and not path.stat().st_size:
        raise NotFoundError(f"{path}: the file is empty")
    raise NotFoundError(f"{path}: unrecognised format; readers tried: {', '.join(readers.names())}")


def is_known(path: Path, runs: bool = False) -> bool:
    """Whether a reader knows this file or folder (``runs``: as a table of runs)."""
    try:
        reader = find_reader(path)
    except NotFoundError:
        return False
    return not runs or hasattr(reader, "runs")


def _candidates(path: Path) -> Iterator[str]:
    """Names of readers in the order in which they are asked."""
    declared, asked = suffixes(), set()
    for endings in (_own_endings, _inner_endings):
        wanted = endings(path)
        some = [name for name in readers.names() if name not in asked and declared.get(name, frozenset()) & wanted]
        asked |= set(some)
        yield from some
    yield from (name for name in readers.names() if name not in asked)


def _own_endings(path: Path) -> set[str]:
    return {suffix.lower() for suffix in path.suffixes}


def _inner_endings(path: Path) -> set[str]:
    """The suffixes of the files in a folder."""
    try:
        with os.scandir(path) as entries:
            return {Path(entry.name).suffix.lower() for entry in itertools.islice(entries, _LOOKED_AT)}
    except OSError:  # a file; or a folder closed to us, which is reported once no reader could look inside
        return set()
