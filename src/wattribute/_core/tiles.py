"""Level-of-detail bins of a lane: tiles.c by ctypes, or its NumPy twin when nothing was compiled.

A lane is an object with the columns of model.Spans; a curve is a pair (times, values), empty when nothing was metered.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from . import reference_tiles
from .library import LIBRARY
from .reference_tiles import BIN

__all__ = ["BIN", "add_blocks", "bins", "sums"]

_NO_CURVE = (np.empty(0, np.int64), np.empty(0))


class _Lane(ctypes.Structure):
    _fields_ = (
        ("rows", ctypes.c_int64),
        ("start", ctypes.c_void_p),
        ("end", ctypes.c_void_p),
        ("frame", ctypes.c_void_p),
        ("parent", ctypes.c_void_p),
        ("resumed", ctypes.c_void_p),
        ("frames", ctypes.c_int64),
        ("keep", ctypes.c_void_p),
        ("knots", ctypes.c_int64),
        ("time", ctypes.c_void_p),
        ("value", ctypes.c_void_p),
    )


def _lane(lane: Any, frames: int, keep: Any, curve: Any) -> tuple[_Lane, list[Any]]:
    """The C view of a lane, and the arrays that must outlive it."""
    kinds = (np.int64, np.int64, np.int32, np.int64, np.uint8)
    names = ("start", "end", "frame", "parent", "resumed")
    columns = [np.ascontiguousarray(getattr(lane, name), dtype=kind) for name, kind in zip(names, kinds, strict=True)]
    keep = np.asarray(keep)  # a view of booleans: 10⁶ of them would be copied for each of 20,000 lanes
    columns.append(np.ascontiguousarray(keep.view(np.uint8) if keep.dtype == np.bool_ else keep, np.uint8))
    columns.append(np.ascontiguousarray(curve[0], np.int64))
    columns.append(np.ascontiguousarray(curve[1], np.float64))
    if len(columns[2]) and (int(columns[2].min()) < 0 or int(columns[2].max()) >= frames):
        raise ValueError("a span names a frame that does not exist")
    at = [column.ctypes.data for column in columns]
    return _Lane(len(columns[0]), *at[:5], frames, at[5], len(columns[6]), at[6], at[7]), columns


def bins(lane: Any, frames: int, keep: Any, curve: Any, t0: int, width: int, depth: int, levels: int) -> Any:
    """The bins of the ``levels`` finest levels, coarsest first; the finest has 2**depth bins of ``width`` ticks."""
    curve = _NO_CURVE if curve is None else curve
    if LIBRARY is None:
        return reference_tiles.bins(lane, frames, keep, curve, t0, width, depth, levels)
    out = np.empty((2 << depth) - (1 << (depth - levels + 1)), BIN)
    view, alive = _lane(lane, frames, keep, curve)
    status = LIBRARY.wattribute_bins(
        ctypes.byref(view), ctypes.c_int64(t0), ctypes.c_int64(width), depth, levels, ctypes.c_void_p(out.ctypes.data)
    )
    del alive
    if status:
        raise MemoryError("not enough memory to build the tiles of a lane")
    return out


def sums(lane: Any, frames: int, keep: Any, curve: Any, t0: int, t1: int) -> tuple[Any, Any, Any]:
    """Innermost ticks, calls and energy per frame inside [t0, t1)."""
    curve = _NO_CURVE if curve is None else curve
    if LIBRARY is None:
        return reference_tiles.sums(lane, frames, keep, curve, t0, t1)
    ticks, calls, energy = np.zeros(frames, np.int64), np.zeros(frames, np.int64), np.zeros(frames)
    view, alive = _lane(lane, frames, keep, curve)
    status = LIBRARY.wattribute_sums(
        ctypes.byref(view),
        ctypes.c_int64(t0),
        ctypes.c_int64(t1),
        *(ctypes.c_void_p(column.ctypes.data) for column in (ticks, calls, energy)),
    )
    del alive
    if status:
        raise MemoryError("not enough memory to add up a lane")
    return ticks, calls, energy


def add_blocks(lane: Any, keep: Any, curve: Any, t0: int, width: int, covered: Any, energy: Any) -> None:
    """Add a lane's innermost energy, and its time that the curve covers, to arrays of a row per block of time.

    A row has a value per frame; the first block begins at ``t0``. Where a frame is not kept, its innermost kept caller
    receives both.
    """
    curve = _NO_CURVE if curve is None else curve
    blocks, frames = energy.shape
    if LIBRARY is None:
        reference_tiles.add_blocks(lane, keep, curve, t0, width, covered, energy)
        return
    view, alive = _lane(lane, frames, keep, curve)
    status = LIBRARY.wattribute_blocks(
        ctypes.byref(view),
        *(ctypes.c_int64(number) for number in (t0, width, blocks)),
        *(ctypes.c_void_p(column.ctypes.data) for column in (covered, energy)),
    )
    del alive
    if status:
        raise MemoryError("not enough memory to add up a lane")
