"""Files → Recording. ``read`` finds the reader that knows a path; each reader is a module named as its plug-in."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..errors import NotFoundError, WattributeError
from ..model import Recording
from ..plugins import Selection, readers


def read(path: str | os.PathLike[str], format: str | None = None, **selection: Any) -> Recording:
    """Read a trace, archive or profile; ``format`` names a reader, otherwise the content decides.

    Keyword arguments are those of :class:`wattribute.plugins.Selection`.
    """
    path = Path(path)
    if not path.exists():
        raise NotFoundError(f"{path}: no such file or folder")
    if format is not None:
        return readers.get(format).read(path, Selection(**selection))
    for name in readers.names():
        try:
            reader = readers.get(name)
        except WattributeError:
            continue
        if reader.detects(path):
            return reader.read(path, Selection(**selection))
    raise NotFoundError(f"{path}: no reader knows this; known formats: {', '.join(readers.names())}")
