"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ..errors import OutputError


@contextmanager
def replacing(target: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file to write to; it takes the name ``target`` when all went well, and leaves nothing when not.

    A target that exists and is no regular file (a pipe) is written to directly, and so is all below ``/dev``: a shell
    may have made ``/dev/stdout`` a regular file, whose name is not ours to replace. A link stays one.
    """
    path = Path(target)
    try:
        direct = path.absolute().parts[1:2] in (("dev",), ("proc",))
        path = path if direct else path.resolve()
        if direct or (path.exists() and not path.is_file()):
            with path.open("wb") as special:
                yield special
            return
        handle, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
            os.chmod(name, 0o666 & ~_umask())  # a temporary file is private; what it becomes is an ordinary one
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
