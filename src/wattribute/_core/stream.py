"""Spans that come in pieces: rolled up without holding a location, or given a row each. ``stream.c`` does it; where
nothing was compiled the twin below collects the pieces and asks ``reference.fold``.

Pieces are columns like ``model.Spans``; their spans are numbered on from ``first``, and ``parent`` uses these numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from . import reference
from .kernels import BOUNDS, PER_CURVE, fold_columns, fold_inputs
from .library import LIBRARY, Fold, Rows, address, array, contiguous

_COLUMNS = (("start", np.int64), ("end", np.int64), ("frame", np.int32), ("parent", np.int64), ("resumed", np.uint8))
_PER_SPAN = (("start", "<i8"), ("end", "<i8"), ("frame", "<i4"), ("depth", "<i4"), ("self_ticks", "<i8"))
ABSENT = -2  # a row in keys: the span does not even count in the depth of others


class EventStream:
    """``feed`` pieces, ``take`` the rows of spans that have ended (with ``each``), then ``end`` and ``close``."""

    def __init__(self, curves: Sequence[Any], keys: Any, each: bool = False) -> None:
        assert LIBRARY is not None
        self._curves, self._by_path, self._each = len(curves), bool(keys.by_path), each
        inputs, alive = fold_inputs(curves, keys)
        self._alive = inputs, alive  # what the stream points to until it is closed
        self.handle: Any = LIBRARY.wat_stream_open(*inputs, each)
        if not self.handle:
            raise MemoryError("not enough memory to roll spans up")

    def feed(self, spans: Any, first: int) -> None:
        assert LIBRARY is not None
        columns = [contiguous(getattr(spans, name), dtype) for name, dtype in _COLUMNS]
        if LIBRARY.wat_stream_feed(self.handle, first, *map(address, columns), len(columns[0])):
            raise MemoryError("not enough memory to roll spans up")

    def end(self) -> None:
        """End the input; open spans end at the end that they declared."""
        assert LIBRARY is not None
        LIBRARY.wat_stream_finish(self.handle)

    def take(self) -> dict[str, Any]:
        """The rows of spans that have ended and were not taken yet, in the order they began."""
        assert LIBRARY is not None
        out = Rows()
        if LIBRARY.wat_stream_take(self.handle, out):
            raise MemoryError("not enough memory for the rows of spans")
        columns = {name: array(getattr(out, name), dtype) for name, dtype in _PER_SPAN}
        shape = (self._curves, len(columns["start"]))
        columns |= {name: array(getattr(out, name), dtype).reshape(shape) for name, dtype in PER_CURVE}
        bounded = out.self_low.data is not None
        return columns | {name: array(getattr(out, name), "<f8").reshape(shape) if bounded else None for name in BOUNDS}

    def close(self) -> dict[str, Any]:
        """The roll-up, as ``fold`` gives it; nothing with ``each``."""
        assert LIBRARY is not None
        out, handle = Fold(), self.handle
        self.handle = None
        if LIBRARY.wat_stream_close(handle, out, 0):
            raise MemoryError("not enough memory to roll spans up")
        return {} if self._each else fold_columns(out, self._curves, self._by_path)

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self.close()


class Twin:
    """The same in NumPy, which has to see the whole location."""

    def __init__(self, curves: Sequence[Any], keys: Any, each: bool = False) -> None:
        self._curves, self._keys, self._each = curves, keys, each
        self._pieces: list[Any] = []
        self._ended = False

    def feed(self, spans: Any, first: int) -> None:
        self._pieces.append(spans)

    def end(self) -> None:
        self._ended = True

    def _whole(self) -> Any:
        names = [*(name for name, _ in _COLUMNS), "depth"]
        empty = [np.empty(0, np.int64)]
        pieces = self._pieces if self._ended else []
        columns = {n: np.concatenate([getattr(piece, n) for piece in pieces] or empty) for n in names}
        return SimpleNamespace(**columns)

    def take(self) -> dict[str, Any]:
        return each_span(self._whole(), self._curves, self._keys)

    def close(self) -> dict[str, Any]:
        return {} if self._each else reference.fold(self._whole(), self._curves, self._keys)


def each_span(spans: Any, curves: Sequence[Any], keys: Any) -> dict[str, Any]:
    """Every span of a location that has a row, in a row of its own: what :meth:`Stream.take` gives."""
    count = len(spans.frame)
    given = np.asarray(keys.row)[spans.frame] if count else np.empty(0, np.int32)
    kept = np.flatnonzero(given >= 0)
    own = np.full(count, -1, np.int32)
    own[kept] = np.arange(len(kept))
    # a frame of its own for each span makes a fold tell one span from another
    apart = SimpleNamespace(**(vars(spans) | {"frame": np.arange(count, dtype=np.int32)}))
    fold = reference.fold(apart, curves, SimpleNamespace(row=own, rows=len(kept), by_path=False))
    columns = {name: getattr(spans, name)[kept] for name in ("start", "end", "frame")}
    columns["depth"] = _depth(spans, given == ABSENT)[kept]
    names = ("self_ticks", *(name for name, _ in PER_CURVE), *BOUNDS)
    return columns | {name: fold[name] for name in names}


def _depth(spans: Any, absent: Any) -> Any:
    """How many spans that count are around each."""
    depth = np.asarray(spans.depth, np.int32)
    if not absent.any():
        return depth
    counted = np.zeros(len(depth), np.int32)
    for level in range(1, int(depth.max()) + 1):
        here = np.flatnonzero(depth == level)
        parent = spans.parent[here]
        counted[here] = counted[parent] + ~absent[parent]
    return counted


def stream(curves: Sequence[Any], keys: Any, each: bool = False) -> EventStream | Twin:
    """A stream of spans; ``each`` gives every span a row of its own."""
    return (Twin if LIBRARY is None else EventStream)(curves, keys, each)
