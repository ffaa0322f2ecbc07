"""Files out of a container: the tar stream that a daemon sends, unpacked without trusting it.

Only plain files and folders are taken; links, devices and names that lead out of the target are left out and reported.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from shutil import copyfileobj

from ..errors import OutputError


class _Stream:
    """An iterator of bytes as the file that ``tarfile`` reads."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces: Iterator[bytes] = iter(pieces)
        self._rest = b""

    def read(self, size: int) -> bytes:
        while len(self._rest) < size:
            piece = next(self._pieces, None)
            if piece is None:
                break
            self._rest += piece
        given, self._rest = self._rest[:size], self._rest[size:]
        return given


def unpack(pieces: Iterable[bytes], target: Path, trouble: list[str]) -> list[Path]:
    """Write the files of a tar stream below ``target``, without the folder that holds them all."""
    written, left_out = [], 0
    try:
        with tarfile.open(fileobj=_Stream(pieces), mode="r|") as tar:  # type: ignore[call-overload]
            for member in tar:
                parts = PurePosixPath(member.name).parts
                parts = parts[1:] if member.isdir() or len(parts) > 1 else parts
                if member.isdir() or not member.isfile() or ".." in parts or parts[:1] == ("/",) or not parts:
                    left_out += not member.isdir()
                    continue
                path = target.joinpath(*parts)
                path.parent.mkdir(parents=True, exist_ok=True)
                content = tar.extractfile(member)
                assert content is not None
                with path.open("wb") as file:
                    copyfileobj(content, file)
                written.append(path)
    except tarfile.TarError as error:
        trouble.append(f"{target}: the daemon sent a broken archive ({error}); what came before it is kept")
    except OSError as error:
        raise OutputError(f"{target}: results could not be written: {error.strerror or error}") from error
    if left_out:
        trouble.append(f"{target}: {left_out} links or special files of the container were left out")
    return written
