"""Files → Recording. ``read`` finds the reader that knows a path; each reader is a module named as its plug-in."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..errors import NotFoundError, WattributeError
from ..model import Recording
from ..plugins import Reader, Selection, readers


def read(path: str | os.PathLike[str], format: str | None = None, **selection: Any) -> Recording:
    """Read a trace, archive or profile; ``format`` names a reader, otherwise the content decides.

    Keyword arguments are those of :class:`wattribute.plugins.Selection`.
    """
    path = Path(path)
    try:
        if not path.exists():
            raise NotFoundError(f"{path}: no such file or folder")
        return _reader(path, format).read(path, Selection(**selection))
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
    raise NotFoundError(f"{path}: no reader knows this; known formats: {', '.join(readers.names())}")
