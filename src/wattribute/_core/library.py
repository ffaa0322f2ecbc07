"""The compiled core as ctypes sees it: the structures of ``wattribute.h``, and its columns as arrays without a copy."""

from __future__ import annotations

import ctypes
import logging
import os
from ctypes import POINTER, c_char_p, c_double, c_int, c_int32, c_int64, c_uint64, c_void_p
from typing import Any

import numpy as np
import numpy.typing as npt

from .shared import FIX, opened


class Location(ctypes.Structure):
    _fields_ = (
        *((name, c_char_p) for name in ("evt", "local")),
        *((name, c_uint64) for name in ("evt_chunk", "def_chunk", "offset_ticks", "declared")),
        ("region", c_void_p),
        ("regions", c_int64),
        ("context_frame", c_void_p),
        ("context_parent", c_void_p),
        ("contexts", c_int64),
        ("keep", c_void_p),
        ("frames", c_int64),
        ("metric", c_void_p),
        ("metrics", c_int64),
        *((name, c_int32) for name in ("put", "get", "atomic", "flush", "off")),
    )


class ManyStruct(ctypes.Structure):
    _fields_ = (
        ("like", POINTER(Location)),
        ("folder", c_char_p),
        ("id", c_void_p),
        ("declared", c_void_p),
        ("count", c_int64),
    )


class Report(ctypes.Structure):
    _fields_ = (
        ("code", c_int32),
        ("in_local", c_int32),
        ("byte", c_uint64),
        ("counts", c_int64 * 256),
        ("program", c_int64 * 2),
        *(
            (name, c_int64)
            for name in ("orphans", "repaired", "unclosed", "undefined", "backward", "renamed", "events", "unknown")
        ),
    )


class Column(ctypes.Structure):
    _fields_ = (("data", c_void_p), ("length", c_int64), ("bytes", c_int64))


def _columns(name: str, members: str) -> type[ctypes.Structure]:
    return type(name, (ctypes.Structure,), {"_fields_": [(member, Column) for member in members.split()]})


Spans = _columns("Spans", "start end frame parent depth resumed")
Metrics = _columns("Metrics", "time id n type bits")
Events = _columns("Events", "time kind ref")
Fold = _columns(
    "Fold",
    "calls self_ticks total_ticks self_covered total_covered self_value total_value "
    "self_low self_high total_low total_high path_frame path_parent row",
)

Rows = _columns(
    "Rows",
    "start end frame depth self_ticks self_covered total_covered self_value total_value "
    "self_low self_high total_low total_high",
)
Full = ctypes.CFUNCTYPE(c_int)


class CurveStruct(ctypes.Structure):
    _fields_ = (
        ("times", c_void_p),
        ("values", c_void_p),
        ("knots", c_int64),
        ("piece_start", c_void_p),
        ("piece_end", c_void_p),
        ("pieces", c_int64),
        ("edges", c_void_p),
        ("low", c_void_p),
        ("high", c_void_p),
        ("windows", c_int64),
        ("latency", c_int64),
        ("on_disk", c_int32),
    )


class SplitStruct(ctypes.Structure):
    _fields_ = (
        *((name, Column) for name in ("times", "values", "least", "greatest")),
        ("idle", c_double),
        ("on_disk", c_int32),
    )


class KeysStruct(ctypes.Structure):
    _fields_ = (("row", c_void_p), ("frames", c_int64), ("rows", c_int64), ("by_path", c_int32))


def _load() -> ctypes.CDLL | None:
    library = opened()
    if library is None:
        from . import announces

        if announces and os.environ.get("WATTRIBUTE_CORE") != "reference":
            logging.getLogger("wattribute").warning("wattribute: no C core, so NumPy does its work, slower; %s", FIX)
        return None
    location, report = POINTER(Location), POINTER(Report)
    library.wat_read_events.argtypes = (location, POINTER(Events), POINTER(Metrics), report)
    library.wat_read_spans.argtypes = (location, c_int, POINTER(Spans), POINTER(Metrics), report)
    library.wat_read_metrics.argtypes = (location, c_int, POINTER(Metrics), report)
    many = POINTER(ManyStruct)
    library.wat_read_many_spans.argtypes = (many, POINTER(Spans), c_void_p, c_void_p)
    library.wat_read_many_metrics.argtypes = (many, POINTER(Metrics), c_void_p, c_void_p)
    library.wat_find_many.argtypes = (many, c_void_p)
    fold = (POINTER(CurveStruct), c_int64, POINTER(KeysStruct), POINTER(Fold))
    column = POINTER(Column)
    library.wat_read_parameters.argtypes = (location, column, column, report)
    library.wat_read_busy.argtypes = (location, c_char_p, column, column, POINTER(c_int32), report)
    library.wat_read_fold.argtypes = (location, *fold[:3], POINTER(c_int64), fold[3], report)
    library.wat_read_many_folds.argtypes = (many, *fold[:3], c_void_p, c_void_p, c_int, fold[3], c_void_p, c_void_p)
    library.wat_read_many_folds.restype = c_int64
    library.wat_guess_many_busy.argtypes = (many, c_void_p, c_void_p)
    library.wat_split.argtypes = (
        *(POINTER(CurveStruct), c_int64, c_int64),
        *(c_void_p,) * 4,
        *(c_int64, c_char_p, POINTER(SplitStruct)),
    )
    library.wat_busy.argtypes = (c_void_p, c_void_p, c_void_p, c_int64, c_void_p, c_int64, column, column)
    library.wat_fold.argtypes = (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_int64, *fold)
    library.wat_read_definitions.argtypes = (c_char_p, c_int64, c_int64, POINTER(c_char_p), column)
    library.wat_read_definitions.restype = c_int64
    library.wat_stream_open.argtypes = (*fold[:3], c_int)
    library.wat_stream_open.restype = c_void_p
    library.wat_stream_feed.argtypes = (c_void_p, c_int64, *(c_void_p,) * 5, c_int64)
    library.wat_stream_finish.argtypes = (c_void_p,)
    library.wat_stream_finish.restype = None
    library.wat_stream_take.argtypes = (c_void_p, POINTER(Rows))
    library.wat_stream_close.argtypes = (c_void_p, POINTER(Fold), c_int)
    library.wat_read_rows.argtypes = (location, c_void_p, c_int64, Full, report)
    library.wat_free.argtypes = (c_void_p, c_int64)
    library.wat_free.restype = None
    return library


LIBRARY = _load()
_EMPTY = {dtype: np.empty(0, dtype) for dtype in ("<i8", "<u8", "<f8", "<i4", "<u4", "|u1", "|b1")}


class Owner:
    """Memory of the core under a NumPy array: given back when the last view of it is gone."""

    __slots__ = ("__array_interface__", "_bytes", "_data", "_free", "on_disk")

    def __init__(self, column: Any, dtype: str, on_disk: bool) -> None:
        assert LIBRARY is not None
        self.on_disk = on_disk
        self._data, self._bytes, self._free = column.data, column.bytes, LIBRARY.wat_free
        shape = (column.length,)
        self.__array_interface__ = {"shape": shape, "typestr": dtype, "data": (self._data, False), "version": 3}

    def __del__(self) -> None:
        self._free(self._data, self._bytes)


def array(column: Any, dtype: str, on_disk: bool = False) -> npt.NDArray[Any]:
    """A column the core has allocated, as an array (``dtype`` as in ``"<i8"``)."""
    if column.data is None:
        return _EMPTY[dtype]
    return np.asarray(Owner(column, dtype, on_disk))


def is_on_disk(values: Any) -> bool:
    """Whether an array is pages of a file that nothing is written to."""
    while isinstance(values, np.ndarray):
        if isinstance(values, np.memmap):
            return values.mode == "r"
        values = values.base
    return isinstance(values, Owner) and values.on_disk


def address(values: npt.NDArray[Any]) -> int:
    """Return the address of an array's first element; the caller keeps the array alive."""
    return int(values.__array_interface__["data"][0])


def contiguous(values: Any, dtype: Any) -> npt.NDArray[Any]:
    """Return a contiguous array of this type; no copy if it is one already."""
    return np.ascontiguousarray(values, dtype)
