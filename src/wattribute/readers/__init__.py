"""Files → Recording. ``read`` finds the reader that knows a path; each reader is a module named as its plug-in.

A file may hold many runs, one per row (codecarbon): ``read`` gives them on one timeline, ``read_runs`` one by one. A
reader of such files has a third function, ``runs(path, selection)``: the recordings, and what was left out.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import NotFoundError, WattributeError
from ..model import Recording
from ..plugins import Reader, Selection, readers


def read(path: str | os.PathLike[str], format: str | None = None, **selection: Any) -> Recording:
    """Read a trace, archive or profile; ``format`` names a reader, otherwise the content decides.

    Keyword arguments are those of :class:`wattribute.plugins.Selection`.
    """
    with _told(path):
        return _reader(Path(path), format).read(Path(path), Selection(**selection))


def read_runs(
    path: str | os.PathLike[str], format: str | None = None, **selection: Any
) -> tuple[list[Recording], list[str]]:
    """Every run in a file or folder as a recording of its own, and what had to be left out, a line each."""
    with _told(path):
        reader = _reader(Path(path), format)
        runs = getattr(reader, "runs", None)
        if runs is None:
            return [reader.read(Path(path), Selection(**selection))], []
        found: tuple[list[Recording], list[str]] = runs(Path(path), Selection(**selection))
        return found


def known(path: Path, runs: bool = False) -> bool:
    """Whether a reader knows this file or folder (``runs``: as a table of runs)."""
    try:
        reader = _reader(path, None)
    except NotFoundError:
        return False
    return not runs or hasattr(reader, "runs")


@contextlib.contextmanager
def _told(path: str | os.PathLike[str]) -> Iterator[None]:
    """What the system refuses is an error of ours."""
    try:
        if not Path(path).exists():
            raise NotFoundError(f"{path}: no such file or folder")
        if not Path(path).is_file() and not Path(path).is_dir():  # a pipe can be looked at once only
            raise NotFoundError(f"{path}: not a regular file; write what comes out of it to one first")
        yield
    except PermissionError as error:
        if isinstance(error, WattributeError):
            raise
        raise NotFoundError(f"{error.filename or path}: cannot be read: {error.strerror}") from error


def _reader(path: Path, format: str | None) -> Reader:
    """The reader of this name, or the first that knows the content."""
    if format is not None:
        return readers.get(format)
    for name in readers.names():
        try:
            reader = readers.get(name)
        except WattributeError:  # a plug-in that cannot be loaded here
            continue
        if reader.detects(path):
            return reader
    if path.is_dir() and not os.access(path, os.R_OK | os.X_OK):
        raise NotFoundError(f"{path}: cannot be read: no permission to look inside")
    if path.is_file() and not path.stat().st_size:
        raise NotFoundError(f"{path}: is empty, so no reader knows this")
    raise NotFoundError(f"{path}: no reader knows this; known formats: {', '.join(readers.names())}")
