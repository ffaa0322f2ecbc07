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
    ends = [(contiguous(one.start, np.int64), contiguous(one.end, np.int64)) for one in busy]
    start, end = (alive.pointer([address(pair[side]) for pair in ends], np.uint64) for side in (0, 1))
    counts = alive.pointer([len(one) for one, _ in ends], np.int64)
    on_disk = alive.pointer([is_on_disk(one) and is_on_disk(other) for one, other in ends], np.uint8)
    folder, out = tempfile.gettempdir(), SplitStruct()
    code = LIBRARY.wat_split(
        alive.curve(energy), first, last, start, end, counts, on_disk, len(ends), os.fsencode(folder), out
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
    return fold_many_columns(out, curves, by_path, [rows])[0]


def fold_many_columns(out: Any, curves: int, by_path: bool, ends: Sequence[int]) -> list[dict[str, Any]]:
    """What C folded of several locations, each as :func:`fold_columns` has it."""
    whole = {name: array(getattr(out, name), "<i8") for name in _PER_ROW}
    own = {name: array(getattr(out, name), dtype) for name, dtype in PER_CURVE}
    bounded = out.self_low.data is not None
    own |= {name: array(getattr(out, name), "<f8") for name in BOUNDS if bounded}
    paths = (array(out.path_frame, "<i8"), array(out.path_parent, "<i8")) if by_path else None
    row = array(out.row, "<i8") if out.row.data is not None else None
    folds, begin = [], 0
    for end in ends:
        fold: dict[str, Any] = {name: column[begin:end] for name, column in whole.items()}
        for name, column in own.items():
            fold[name] = column[curves * begin : curves * end].reshape(curves, end - begin)
        if not bounded:
            fold |= dict.fromkeys(BOUNDS)
        if row is not None:
            fold["row"] = row[begin:end]
        fold["paths"] = None if paths is None else (paths[0][begin:end], paths[1][begin:end])
        folds.append(fold)
        begin = end
    return folds


def _check(code: ctypes.c_int) -> None:
    if code:
        raise MemoryError("not enough memory to roll spans up")
