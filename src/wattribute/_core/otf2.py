"""OTF2 event files → columns: the C decoder when it was compiled, else its Python twin.

One call reads one location's files, or those of many small ones; it holds no lock and no Python object while it works,
so threads run side by side.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from . import library, reference_otf2
from .kernels import fold_columns, fold_inputs, fold_many_columns
from .library import LIBRARY, Column, Events, Fold, Full, Location, Metrics, Report, Spans, address, array, contiguous
from .records import (
    CODES,
    FIRST_KIND,
    KINDS,
    OTHERWISE,
    SPACE,
    Columns,
    LocationBatch,
    LocationFiles,
    LookUpTables,
    Read,
    status,
)
from .stream import EventStream, each_span

__all__ = [
    "FIRST_KIND",
    "KINDS",
    "LocationBatch",
    "LocationFiles",
    "LookUpTables",
    "Read",
    "busy",
    "decode",
    "decode_many",
    "definitions",
    "events",
    "find_many",
    "fold",
    "fold_many",
    "guess_busy",
    "parameters",
    "rows",
]

FIELDS, SLACK = 12, 32  # WAT_FIELDS; bytes behind its input that the core may look at
_METRICS = (("time", "<i8"), ("id", "<u4"), ("n", "|u1"), ("type", "|u1"), ("bits", "<u8"))
_SPANS = (("start", "<i8"), ("end", "<i8"), ("frame", "<i4"), ("parent", "<i8"), ("depth", "<i4"), ("resumed", "|b1"))
_EVENTS = (("time", "<u8"), ("kind", "|u1"), ("ref", "<u8"))
_REPORT = np.dtype(Report)
_NESTING = ("orphans", "repaired", "unclosed", "unknown", "renamed")
_ODD = (*_NESTING, "undefined", "backward")  # of a report: 0 as a rule
_TEMPLATES: dict[int, tuple[LookUpTables, Location, Any]] = {}
_MOST_TEMPLATES = 8
_NO_TABLES = LookUpTables(*(np.empty(0, np.int32),) * 3, np.empty(0, np.uint8))


def definitions(data: bytes, chunk: int, layouts: Mapping[int, str]) -> tuple[npt.NDArray[np.int64], int]:
    """The records of a definition file up to the byte where there is one that needs a closer look, and that byte.

    Rows are kind, begin and end of the payload, whether the fields that follow are decoded, and fields as their kind's
    layout says (c compressed integer, 1 byte; −1 where undefined). Without the core there are none.
    """
    if LIBRARY is None:
        return np.empty((0, 4 + FIELDS), np.int64), 0
    texts = (ctypes.c_char_p * 256)(*(layouts.get(kind, "").encode() for kind in range(256)))
    out = Column()
    end = LIBRARY.wat_read_definitions(data + bytes(SLACK), len(data), chunk, texts, out)
    out.length *= 4 + FIELDS
    return array(out, "<i8").reshape(-1, 4 + FIELDS), int(end)


def events(files: LocationFiles) -> Columns:
    """Every event record: corrected absolute time, kind, and what it refers to (region, metric or context, global)."""
    if LIBRARY is None:
        return reference_otf2.events(files)
    out, metrics, report = Events(), Metrics(), Report()
    location, _alive = _location(files, _NO_TABLES)
    LIBRARY.wat_read_events(location, out, metrics, report)
    columns = _take(out, _EVENTS) | _take(metrics, _METRICS, "metric_")
    columns["metric_time"] = columns["metric_time"].view(np.uint64)
    state = _details(files, report)
    return columns | {"counts": state["counts"], "status": state["status"]}


def decode(files: LocationFiles, tables: LookUpTables, spans: bool = True, metrics: bool = True) -> Columns:
    """Spans in the order they were entered, metric events as they come, and all that was odd."""
    if LIBRARY is None:
        return reference_otf2.decode(files, tables, spans, metrics)
    out, readings, report = Spans(), Metrics(), Report()
    location, _alive = _location(files, tables)
    if spans:
        LIBRARY.wat_read_spans(location, metrics, out, readings, report)
    else:
        LIBRARY.wat_read_metrics(location, metrics, readings, report)
    return _take(out, _SPANS) | _take(readings, _METRICS, "metric_") | _details(files, report)


def decode_many(many: LocationBatch, tables: LookUpTables, spans: bool) -> Read:
    """What :func:`decode` says of several locations that have the same tables: their spans, or their metric events."""
    if LIBRARY is None:
        return reference_otf2.decode_many(many, tables, spans)
    count = len(many.ids)
    ends, reports = np.zeros((count, 1 if spans else 2), np.int64), np.zeros(count, _REPORT)
    shared, _alive = _many(many, tables)
    out = Spans() if spans else Metrics()
    read = LIBRARY.wat_read_many_spans if spans else LIBRARY.wat_read_many_metrics
    code = read(shared, out, address(ends), address(reports))
    columns = _take(out, _SPANS) if spans else _take(out, _METRICS, "metric_")
    if code:  # in the first that says so, or before all
        at = int((reports["code"] == code).argmax())
        raise MemoryError(status(CODES[code], 0, 0, many.files(at).evt)["message"])
    return _read(columns, ends, many, reports)


def _read(columns: Columns, ends: npt.NDArray[np.int64], many: LocationBatch, reports: npt.NDArray[Any]) -> Read:
    plain = (reports["code"] == 0) & (reports["events"].view(np.uint64) == many.declared[: len(reports)])
    for name in _ODD:
        plain &= reports[name] == 0
    return Read(columns, ends, reports["counts"], plain, lambda i: _details(many.files(i), _report(reports, i)))


def find_many(many: LocationBatch) -> npt.NDArray[np.bool_]:
    """Whether a location's event file is there to be read and not empty; where it says no a closer look is needed."""
    present = np.zeros(len(many.ids), np.bool_)
    if LIBRARY is not None:
        shared, _alive = _many(many, _NO_TABLES)
        LIBRARY.wat_find_many(shared, address(present))
    return present


def busy(files: LocationFiles, tables: LookUpTables) -> Columns:
    """When the location was inside a kept span, and what :func:`decode` says besides spans."""
    if LIBRARY is None:
        return reference_otf2.busy(files, tables)
    start, end, on_disk, report = Column(), Column(), ctypes.c_int32(), Report()
    location, _alive = _location(files, tables)
    folder = tempfile.gettempdir()
    code = LIBRARY.wat_read_busy(location, os.fsencode(folder), start, end, on_disk, report)
    columns = {name: array(one, "<i8", bool(on_disk.value)) for name, one in (("start", start), ("end", end))}
    if code == SPACE:
        raise OSError(f"busy intervals do not fit into {folder}; set TMPDIR")
    return columns | _details(files, report)


def parameters(files: LocationFiles) -> Columns:
    """The unsigned parameters of a location: when each was recorded, and its value."""
    if LIBRARY is None:
        return reference_otf2.parameters(files)
    time, value, report = Column(), Column(), Report()
    location, _alive = _location(files, _NO_TABLES)
    LIBRARY.wat_read_parameters(location, time, value, report)
    return {"time": array(time, "<i8"), "value": array(value, "<u8")}


def guess_busy(many: LocationBatch, tables: LookUpTables) -> list[tuple[int, int] | None]:
    """The one interval that :func:`busy` will find if a location's first span ends with its last; cheap."""
    count = len(many.ids)
    if LIBRARY is None:
        return [None] * count
    moments, guessed = np.zeros((count, 2), np.int64), np.zeros(count, np.bool_)
    shared, _alive = _many(many, tables)
    if LIBRARY.wat_guess_many_busy(shared, address(moments), address(guessed)):
        raise MemoryError("not enough memory to estimate when locations are busy")
    return [(start, end) if ok else None for (start, end), ok in zip(moments.tolist(), guessed.tolist(), strict=True)]


def fold(files: LocationFiles, tables: LookUpTables, curves: Sequence[Any], keys: Any) -> Columns:
    """The location rolled up against curves, and what :func:`decode` says besides spans."""
    if LIBRARY is None:
        return reference_otf2.fold(files, tables, curves, keys)
    out, report = Fold(), Report()
    location, _alive = _location(files, tables)
    inputs, _alive_too = fold_inputs(curves, keys)
    LIBRARY.wat_read_fold(location, *inputs, None, out, report)
    return fold_columns(out, len(curves), bool(keys.by_path)) | _details(files, report)


def fold_many(
    many: LocationBatch,
    tables: LookUpTables,
    curves: Sequence[Sequence[Any]],
    keys: Any,
    expected: Sequence[tuple[int, int]] | None = None,
    entered_only: bool = False,
) -> tuple[Read, Columns]:
    """What :func:`fold` says of several locations that have the same tables, side by side, up to the first that was
    not busy as ``expected``; ``entered_only``: of the rows that were ever entered, whose numbers are ``row``.

    ``curves[i]`` are those of location i: as many, and with bounds or without, as of the others.
    """
    if LIBRARY is None:
        return reference_otf2.fold_many(many, tables, curves, keys, entered_only)
    count = len(many.ids)
    ends, reports, out = np.zeros(count, np.int64), np.zeros(count, _REPORT), Fold()
    shared, _alive = _many(many, tables)
    sets = {id(own): own for own in curves}  # most locations have the same
    size, first = len(curves[0]), dict(zip(sets, itertools.count(0, len(curves[0])), strict=False))
    (several, _, rows), _alive_too = fold_inputs([curve for own in sets.values() for curve in own], keys)
    begins = np.array([first[id(own)] for own in curves], np.int64)
    moments = None if expected is None else np.array(expected, np.int64).reshape(-1, 2)
    done = LIBRARY.wat_read_many_folds(
        shared,
        several,
        size,
        rows,
        address(begins),
        None if moments is None else address(moments),
        entered_only,
        out,
        address(ends),
        address(reports),
    )
    codes = reports["code"]
    if done and codes[done - 1] == OTHERWISE:
        done -= 1
    columns = fold_many_columns(out, size, bool(keys.by_path), ends[:done])  # first, since they free the memory
    failed = np.flatnonzero(codes == CODES.index("memory")).tolist()
    if failed:
        raise MemoryError(status("memory", 0, 0, many.files(failed[0]).evt)["message"])
    return _read({}, ends[:done, np.newaxis], many, reports[:done]), columns


def rows(
    files: LocationFiles,
    tables: LookUpTables,
    curves: Sequence[Any],
    keys: Any,
    most: int,
    take: Callable[[Columns], None],
) -> Columns:
    """A row per span against curves, given to ``take`` whenever there are ``most`` of them (those still open are not
    among them), and at the end; what :func:`decode` says besides spans."""
    if LIBRARY is None:
        decoded = reference_otf2.decode(files, tables, True, False)
        take(each_span(SimpleNamespace(**{name: decoded[name] for name, _ in _SPANS}), curves, keys))
        return {name: value for name, value in decoded.items() if not name.startswith("metric_")}
    stream, report = EventStream(curves, keys, each=True), Report()
    raised: list[BaseException] = []

    def full() -> int:
        try:
            take(stream.take())
        except BaseException as error:  # C must not be left by an exception
            raised.append(error)
        return len(raised)

    location, _alive = _location(files, tables)
    LIBRARY.wat_read_rows(location, stream.handle, most, Full(full), report)
    if raised:
        raise raised[0]
    state = _details(files, report)  # first: without memory there is nothing to take
    take(stream.take())
    stream.close()
    return state


def _location(files: LocationFiles, tables: LookUpTables) -> tuple[Location, Any]:
    """The C structure, and what must live as long as it is used."""
    known = _TEMPLATES.get(id(tables))
    if known is None or known[0] is not tables:  # many locations have the same tables
        while len(_TEMPLATES) >= _MOST_TEMPLATES:
            _TEMPLATES.pop(next(iter(_TEMPLATES), 0), None)
        known = _TEMPLATES[id(tables)] = (tables, *_template(tables))
    location = Location.from_buffer_copy(known[1])
    location.evt, location.local = os.fsencode(files.evt), os.fsencode(files.local)
    location.evt_chunk, location.def_chunk = files.evt_chunk, files.def_chunk
    location.offset_ticks, location.declared = files.offset_ticks, files.declared
    return location, known[2]


def _many(many: LocationBatch, tables: LookUpTables) -> tuple[library.ManyStruct, Any]:
    """The same for several locations."""
    like, alive = _location(LocationFiles("", "", many.evt_chunk, many.def_chunk, many.offset_ticks, 0), tables)
    ids, declared = contiguous(many.ids, np.uint64), contiguous(many.declared, np.uint64)
    shared = library.ManyStruct(
        ctypes.pointer(like), os.fsencode(many.folder), address(ids), address(declared), len(ids)
    )
    return shared, (alive, ids, declared)


def _report(reports: npt.NDArray[Any], row: int) -> Report:
    return Report.from_buffer_copy(reports[row].tobytes())


def _template(tables: LookUpTables) -> tuple[Location, Any]:
    """The tables' part of the structure, and the arrays it points to."""
    region = contiguous(tables.region, np.int32)
    context_frame = contiguous(tables.context_frame, np.int32)
    context_parent = contiguous(tables.context_parent, np.int32)
    keep = contiguous(tables.keep, np.uint8)
    metric = None if tables.metric is None else contiguous(tables.metric, np.uint8)
    location = Location(
        *(None, None, 0, 0, 0, 0),
        address(region),
        len(region),
        address(context_frame),
        address(context_parent),
        min(len(context_frame), len(context_parent)),
        address(keep),
        len(keep),
        None if metric is None else address(metric),
        0 if metric is None else len(metric),
        tables.put,
        tables.get,
        tables.atomic,
        tables.flush,
        tables.off,
    )
    return location, (region, context_frame, context_parent, keep, metric)


def _take(columns: ctypes.Structure, members: Sequence[tuple[str, str]], prefix: str = "") -> Columns:
    return {prefix + name: array(getattr(columns, name), dtype) for name, dtype in members}


def _details(files: LocationFiles, report: Report) -> Columns:
    """What the report says, as the twin says it."""
    code = CODES[report.code]
    if code == "memory":
        raise MemoryError(status(code, report.byte, 0, files.evt)["message"])
    counts = np.frombuffer(report.counts, np.int64)
    return {
        "counts": counts,
        "program": tuple(report.program),
        "nesting": np.array([getattr(report, name) for name in _NESTING], np.int64),
        "undefined": report.undefined,
        "backward": report.backward,
        "status": status(code, report.byte, report.events, files.local if report.in_local else files.evt),
    }
