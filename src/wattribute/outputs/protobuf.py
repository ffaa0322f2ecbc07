"""As much of the protobuf wire format as a trace needs: single fields, and whole columns of equal messages at once.

Messages of one shape are made as one byte matrix: variable-length integers are padded to a fixed width (the format
allows leading zeros), so every message has the same length and columns are filled by NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..varint import varint

Bytes = npt.NDArray[np.uint8]
WIDTH_63 = 9  # bytes of a padded integer below 2**63
WIDTH_28 = 4  # … below 2**28
_DOUBLE_BYTES = 8


def integer(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def message(field: int, body: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(body)) + body


def text(field: int, value: str) -> bytes:
    """A string; what is not valid Unicode (a lone surrogate of a broken file name) becomes "?"."""
    return message(field, value.encode("utf-8", errors="replace"))


class Columns:
    """Many messages of one shape: parts are added from left to right, nested ones wrapped when complete."""

    def __init__(self, rows: int, parts: Sequence[Bytes] = ()) -> None:
        self.rows = rows
        self.parts = list(parts)

    def constant(self, encoded: bytes) -> Columns:
        """The same bytes in each message."""
        return self._and(np.broadcast_to(np.frombuffer(encoded, np.uint8), (self.rows, len(encoded))))

    def integers(self, field: int, values: npt.NDArray[np.int64], width: int = WIDTH_63) -> Columns:
        shifts = np.arange(width, dtype=np.int64) * 7
        septets = (values.astype(np.int64)[:, None] >> shifts & 0x7F).astype(np.uint8)
        septets[:, :-1] |= 0x80
        return self.constant(varint(field << 3))._and(septets)

    def doubles(self, field: int, values: npt.NDArray[np.float64]) -> Columns:
        raw = np.ascontiguousarray(values, "<f8").view(np.uint8).reshape(-1, _DOUBLE_BYTES)
        return self.constant(varint(field << 3 | 1))._and(raw)

    def nested(self, field: int, inner: Columns) -> Columns:
        head = varint(field << 3 | 2) + varint(sum(part.shape[1] for part in inner.parts))
        return Columns(self.rows, self.constant(head).parts + inner.parts)

    def matrix(self) -> Bytes:
        return np.concatenate(self.parts, axis=1) if self.parts else np.empty((self.rows, 0), np.uint8)

    def _and(self, part: Bytes) -> Columns:
        return Columns(self.rows, [*self.parts, part])
