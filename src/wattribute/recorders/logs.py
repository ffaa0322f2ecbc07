"""Live output of a container: copied to our own streams and into a file, in a thread of its own.

On a terminal bytes pass as they come, so that progress bars move. Elsewhere, and in the file, a line that was redrawn
with carriage returns is reduced to its last state.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

LONGEST = 1 << 16  # bytes of a line without an end that are kept waiting for it

Pieces = Iterable["tuple[bytes | None, bytes | None]"]  # (of standard output, of standard error)


class LogLines:
    """Pieces of a stream → whole lines, each in its last state."""

    def __init__(self) -> None:
        self._rest = b""

    def take(self, piece: bytes) -> bytes:
        """The lines that this piece completes."""
        *whole, self._rest = (self._rest + piece).split(b"\n")
        done = b"".join(_last_state(line) + b"\n" for line in whole)
        if len(self._rest) > LONGEST:
            done, self._rest = done + _last_state(self._rest), b""
        return done

    def end(self) -> bytes:
        rest, self._rest = _last_state(self._rest), b""
        return rest


def _last_state(line: bytes) -> bytes:
    return line.rstrip(b"\r").rpartition(b"\r")[2]


class _Target:
    """One of our streams; one without a reader is left alone."""

    def __init__(self, stream: BinaryIO | None, raw: bool) -> None:
        self._stream, self._raw, self._lines = stream, raw, LogLines()

    def take(self, piece: bytes, ends: bool = False) -> None:
        text = piece if self._raw else self._lines.take(piece) + (self._lines.end() if ends else b"")
        if self._stream is None or not text:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # closed, or its reader is gone
            self._stream = None


class Logs(threading.Thread):
    """Copies pieces to standard output, standard error and a file until they end."""

    def __init__(self, pieces: Pieces, path: Path, out: BinaryIO | None = None, err: BinaryIO | None = None) -> None:
        super().__init__(daemon=True, name="logs")
        self._pieces, self._path = pieces, path
        self._shown = [_Target(stream, stream is not None and stream.isatty()) for stream in (out, err)]
        self.failure = ""

    def run(self) -> None:
        with contextlib.ExitStack() as stack:
            try:
                file: BinaryIO | None = stack.enter_context(self._path.open("wb"))
            except OSError as error:
                file, self.failure = None, f"{self._path}: {error.strerror}"
            kept = [_Target(file, False), _Target(file, False)]
            try:
                for pair in self._pieces:
                    for piece, shown, noted in zip(pair, self._shown, kept, strict=True):
                        if piece:
                            shown.take(piece)
                            noted.take(piece)
            except Exception as error:  # the daemon went away; the container's end will tell
                self.failure = self.failure or f"the container's output ended early: {error}"
            for target in (*self._shown, *kept):
                target.take(b"", ends=True)
