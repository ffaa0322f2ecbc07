"""Files as readers want them: decompressed, decoded, in pieces, with a bound on the memory they take.

A file may be gzip (as its first bytes show, not its name), and text may be UTF-8 or UTF-16 (PowerShell's ``>`` writes
that). What cannot be decoded is replaced and counted; what was cut off is noted; a reader turns both into problems.
"""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ..errors import FormatError
from ..model import Problem

PIECE = 1 << 20
MOST = 1 << 29  # decompressed bytes of a file that is read whole
_LONGEST = 1 << 24  # line, in characters
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile)


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """A file to be read as bytes, decompressed if it is gzip."""
    with open(path, "rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        yield gzip.GzipFile(fileobj=file) if zipped else file  # type: ignore[misc]


def head(path: Path, size: int = 1 << 16) -> bytes:
    """The first bytes of a file, for ``detects``; nothing if it is no readable file."""
    if not path.is_file():
        return b""
    try:
        with opened(path) as file:
            return _filled(file, size)[0]
    except OSError:
        return b""


def _filled(file: IO[bytes], size: int) -> tuple[bytes, Exception | None]:
    """Read so many bytes, fewer at the end or before damage, which is noted; ``read`` would lose what precedes it."""
    data = bytearray()
    try:
        while len(data) < size and (piece := file.read1(size - len(data))):  # type: ignore[attr-defined]
            data += piece
    except _DAMAGE as error:
        return bytes(data), error
    return bytes(data), None


def start(path: Path, size: int = 1 << 16) -> str:
    """The beginning of a text, for ``detects``."""
    data = head(path, size)
    encoding, length = _encoding(data)
    return data[length:].decode(encoding, errors="replace").lstrip()


def _encoding(data: bytes) -> tuple[str, int]:
    """How bytes that stand at the beginning of a file are encoded, and how long their mark is."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return encoding, len(mark)
    return "utf-8", 0


class Text:
    """A text file in pieces; when it ends, ``problems`` says what was wrong with it."""

    def __init__(self, path: Path) -> None:
        self.path, self.problems = path, list[Problem]()
        self.done = 0  # bytes read so far, decompressed

    def __iter__(self) -> Iterator[str]:
        decoder, replaced = None, 0
        for piece in self._bytes():
            if decoder is None:
                encoding, length = _encoding(piece)
                decoder, piece = codecs.getincrementaldecoder(encoding)(errors="replace"), piece[length:]
            text = decoder.decode(piece)
            replaced += text.count("�")
            yield text
        if decoder is not None:
            text = decoder.decode(b"", final=True)
            replaced += text.count("�")
            if text:
                yield text
        if replaced:
            self.problems.append(Problem("encoding", f"{self.path}: {replaced} characters are not UTF-8"))

    def _bytes(self) -> Iterator[bytes]:
        with opened(self.path) as file:
            piece, error = _filled(file, PIECE)
            while piece:
                self.done += len(piece)
                yield piece
                piece, error = (b"", error) if error else _filled(file, PIECE)
        if error:
            self.problems.append(Problem("truncated", f"{self.path}: the gzip data is cut or damaged ({error})"))

    def lines(self) -> Iterator[str]:
        """Line by line, without their ends; a line as long as a file is an error, not all our memory."""
        rest = ""
        for text in self:
            *whole, rest = (rest + text).split("\n")
            for line in whole:
                yield line.rstrip("\r")
            if len(rest) > _LONGEST:
                raise FormatError(
                    self.path, f"a line of more than {_LONGEST >> 20} MB: it is not the text it claims to be"
                )
        if rest:
            yield rest.rstrip("\r")

    def whole(self) -> str:
        """Everything, if it is not too much."""
        pieces = []
        for text in self:
            pieces.append(text)
            if self.done > MOST:
                raise FormatError(self.path, f"holds more than {MOST >> 20} MB, which is too much for this format")
        return "".join(pieces)
