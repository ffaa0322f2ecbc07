"""``busy`` and ``fold`` over span columns in C, of which ``reference.py`` is the twin; and ``split`` of a curve."""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .library import LIBRARY, Column, CurveStruct, Fold, KeysStruct, SplitStruct, address, array, contiguous, is_on_disk
from .records import SPACE

_PER_ROW = ("calls", "self_ticks", "total_ticks")
PER_CURVE = (("self_covered", "<i8"), ("total_covered", "<i8"), ("self_value", "<f8"), ("total_value", "<f8"))
BOUNDS = ("self_low", "self_high", "total_low", "total_high")
_FEW_INTERVALS = 1 << 12


def busy(spans: Any, keep: Any = None) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """When the location was inside a kept span of positive length: starts and ends, touching intervals merged."""
    assert LIBRARY is not None
    start, end = contiguous(spans.start, np.int64), contiguous(spans.end, np.int64)
    frame = contiguous(spans.frame, np.int32)
    kept = None if keep is None else contiguous(keep, np.uint8)
    out_start, out_end = Column(), Column()
    code = LIBRARY.wat_busy(
        address(start),
        address(end),
        address(frame),
        len(start),
        None if kept is None else address(kept),
        0 if kept is None else len(kept),
        out_start,
        out_end,
    )
    intervals = array(out_start, "<i8"), array(out_end, "<i8")
    _check(code)
    return intervals


def fold(spans: Any, curves: Sequence[Any], keys: Any) -> dict[str, Any]:
    """Roll one location up: the columns of ``model.Fold``, those per curve as arrays (curve, row)."""
    assert LIBRARY is not None
    columns = [contiguous(getattr(spans, name), np.int64) for name in ("start", "end", "parent")]
    frame, resumed = contiguous(spans.frame, np.int32), contiguous(spans.resumed, np.uint8)
    start, end, parent = map(address, columns)
    out = Fold()
    inputs, _alive = fold_inputs(curves, keys)
    code = LIBRARY.wat_fold(start, end, address(frame), parent, address(resumed), len(frame), *inputs, out)
    folded = fold_columns(out, len(curves), bool(keys.by_path))
    _check(code)
    return folded


def split(energy: Any, first: int, last: int, busy: Sequence[Any]) -> tuple[Any, ...] | None:
    """A device's curve split evenly between users by their busy intervals, with the share's limits in each window:
    (times, values, least, greatest, idle). None without the core: ``attribution.shares`` says the same in NumPy."""
    if LIBRARY is None:
        return None
    alive = _Alive()
    counts = np.array([len(one.start) for one in busy], np.int64)
    if int(counts.sum()) <= _FEW_INTERVALS:  # the address of each array would cost more
        places = 8 * (np.cumsum(counts) - counts)
        start, end = (
            alive.pointer(alive.pointer(np.concatenate(columns or [[]]), np.int64) + places, np.uint64)
            for columns in ([one.start for one in busy], [one.end for one in busy])
        )
        on_disk = alive.pointer(np.zeros(len(counts)), np.uint8)
    else:
        ends = [(contiguous(one.start, np.int64), contiguous(one.end, np.int64)) for one in busy]
        start, end = (alive.pointer([address(pair[side]) for pair in ends], np.uint64) for side in (0, 1))
        on_disk = alive.pointer([is_on_disk(one) and is_on_disk(other) for one, other in ends], np.uint8)
    folder, out = tempfile.gettempdir(), SplitStruct()
    code = LIBRARY.wat_split(
        alive.curve(energy),
        first,
        last,
        start,
        end,
        alive.pointer(counts, np.int64),
        on_disk,
        len(counts),
        os.fsencode(folder),
        out,
    )
    columns = (
        array(out.times, "<i8", bool(out.on_disk)),
        array(out.values, "<f8", bool(out.on_disk)),
        array(out.least, "<f8"),
        array(out.greatest, "<f8"),
    )
    if code == SPACE:
        raise OSError(f"a shared device's curve does not fit into {folder}; set TMPDIR")
    _check(code)
    return *columns, out.idle


class _Alive:
    """Arrays as C takes them; they live as long as this does."""

    def __init__(self) -> None:
        self._arrays: list[Any] = []

    def pointer(self, values: Any, dtype: Any) -> int:
        self._arrays.append(contiguous(values, dtype))
        return address(self._arrays[-1])

    def curve(self, curve: Any) -> CurveStruct:
        bounds: tuple[Any, ...] = (None, None, None, 0, 0)
        if curve.edges is not None:
            windows = max(len(curve.edges) - 1, 0)
            low, high = self.pointer(curve.low, np.float64), self.pointer(curve.high, np.float64)
            bounds = (self.pointer(curve.edges, np.int64), low, high, windows, curve.latency_ticks)
        return CurveStruct(
            self.pointer(curve.times, np.int64),
            self.pointer(curve.values, np.float64),
            len(curve.times),
            self.pointer(curve.pieces.start, np.int64),
            self.pointer(curve.pieces.end, np.int64),
            len(curve.pieces.start),
            *bounds,
            is_on_disk(curve.times) and is_on_disk(curve.values),
        )


def fold_inputs(curves: Sequence[Any], keys: Any) -> tuple[tuple[Any, int, KeysStruct], Any]:
    """Curves, their number and keys as C takes them, and what must live as long as they are used."""
    alive = _Alive()
    several = (CurveStruct * max(len(curves), 1))(*map(alive.curve, curves))
    row = alive.pointer(keys.row, np.int32)
    return (several, len(curves), KeysStruct(row, len(keys.row), keys.rows, keys.by_path)), alive


def fold_columns(out: Any, curves: int, by_path: bool) -> dict[str, Any]:
    """What C folded, named and shaped as the twin has it."""
    rows = out.path_frame.length if by_path else out.calls.length
    return fold_many_columns(out, curves, by_path, np.array([rows]))


def fold_many_columns(out: Any, curves: int, by_path: bool, ends: npt.NDArray[np.int64]) -> dict[str, Any]:
    """What C folded of the locations whose rows end there, as :func:`fold_columns` has it, side by side."""
    rows = int(ends[-1]) if len(ends) else 0
    fold: dict[str, Any] = {name: array(getattr(out, name), "<i8")[:rows] for name in _PER_ROW}
    own = {name: array(getattr(out, name), dtype) for name, dtype in PER_CURVE}
    bounded = out.self_low.data is not None
    own |= {name: array(getattr(out, name), "<f8") for name in BOUNDS if bounded}
    if curves > 1 and len(ends) > 1:  # C has the rows of a curve behind those of another, location by location
        counts = np.diff(ends, prepend=0)
        first = np.repeat((curves - 1) * (ends - counts), counts) + np.arange(rows)
        at = first + np.arange(curves)[:, np.newaxis] * np.repeat(counts, counts)
        fold |= {name: column[at] for name, column in own.items()}
    else:
        fold |= {name: column[: curves * rows].reshape(curves, rows) for name, column in own.items()}
    if not bounded:
        fold |= dict.fromkeys(BOUNDS)
    if out.row.data is not None:
        fold["row"] = array(out.row, "<i8")[:rows]
    fold["paths"] = (array(out.path_frame, "<i8")[:rows], array(out.path_parent, "<i8")[:rows]) if by_path else None
    return fold


def _check(code: ctypes.c_int) -> None:
    if code:
        raise MemoryError("not enough memory to roll spans up")
