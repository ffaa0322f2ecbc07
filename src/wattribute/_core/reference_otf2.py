"""The Python twin of the C decoder: what every byte of an OTF2 ``.evt`` and local ``.def`` file means.

``readers/otf2`` hands over plain values (:class:`LocationFiles`, :class:`LookUpTables`) and gets arrays, the same from
here and from ``otf2.py`` (C); nesting is ``reference_nesting.py``. A damaged file gives its correct prefix and a status
that names the first byte which could not be used.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from . import reference
from .records import (
    CONTEXT_MAP,
    FIRST_KIND,
    KINDS,
    METRIC_MAP,
    REGION_MAP,
    TYPE,
    Columns,
    LocationBatch,
    LocationFiles,
    LookUpTables,
    Read,
    status,
)
from .reference_bytes import Chunks, Damage, Local, Record, compressed, load, signed
from .reference_nesting import Nesting


class Events:
    """The events of one location; afterwards ``status`` says how the files were."""

    def __init__(self, files: LocationFiles) -> None:
        self.files = files
        self.counts = np.zeros(256, np.int64)
        self.local: Local
        self.data = b""

    def each(self, act: Callable[[Record, int], None]) -> None:
        """Hand over every event and its raw time, up to the first that is damaged (``act`` may find it so)."""
        self.status = status("", 0, 0, self.files.evt)
        try:
            self.local = Local(self.files.local, self.files.def_chunk)
        except Damage as damage:  # without its id maps a location's events would be charged to the wrong code
            self.status = status(damage.code, damage.byte, 0, self.files.local)
            return
        try:
            for record, raw in self._records():
                act(record, raw)
                self.counts[record.kind] += 1
        except Damage as damage:
            self.status = status(damage.code, damage.byte, 0, self.files.evt)
        self.status["events"] = int(self.counts.sum())

    def _records(self) -> Iterator[tuple[Record, int]]:
        data = self.data = load(self.files.evt)
        chunks = Chunks(data, self.files.evt_chunk)
        raw = 0
        for record in chunks:
            if record.kind == 5:
                (raw,) = struct.unpack_from("<Q", data, record.at)
            elif record.kind >= FIRST_KIND:
                yield record, raw
        if chunks.miscounted >= 0:
            raise Damage("count", chunks.miscounted)

    def fields(self, record: Record, count: int) -> list[int]:
        """The first compressed integers of a payload."""
        at, values = record.at, []
        for _ in range(count):
            try:
                value, at = compressed(self.data, at, record.end)
            except (IndexError, ValueError):
                raise Damage("corrupt", record.start) from None
            values.append(value)
        return values

    def fixed(self, record: Record, size: int) -> int:
        """The first integer of a payload, of fixed width."""
        if record.at + size > record.end:
            raise Damage("corrupt", record.start)
        return int.from_bytes(self.data[record.at : record.at + size], "little")

    def reference(self, record: Record, which: int) -> int:
        """The first integer of a payload as a global id."""
        return self.local.map(which, self.fields(record, 1)[0] & 0xFFFFFFFF)

    def task(self, record: Record) -> tuple[int, int, int]:
        team, creator, generation = (value & 0xFFFFFFFF for value in self.fields(record, 3))
        return team, creator, generation

    def atomic_matching(self, record: Record) -> int:
        """The matching id of an RmaAtomic, which has a plain byte (its kind) after two integers."""
        at, values = record.at, [0]
        try:
            for row in range(5):
                value, at = compressed(self.data, at, record.end)
                values.append(value)
                at += row == 1
        except (IndexError, ValueError):
            raise Damage("corrupt", record.start) from None
        return values[-1]

    def metric(self, record: Record) -> tuple[bytes, list[int]]:
        """The types and bit patterns of a metric event's members."""
        data, end = self.data, record.end
        try:
            _, at = compressed(data, record.at, end)
            if at >= end:
                raise IndexError
            types, bits = bytearray(), []
            members, at = data[at], at + 1
            for _ in range(members):
                if at >= end:
                    raise IndexError
                types.append(data[at])
                value, at = compressed(data, at + 1, end)
                bits.append(value)
        except (IndexError, ValueError):
            raise Damage("corrupt", record.start) from None
        return bytes(types), bits


class MetricEvents:
    """Metric events as columns."""

    def __init__(self) -> None:
        self.time: list[int] = []
        self.id: list[int] = []
        self.n: list[int] = []
        self.type = bytearray()
        self.bits: list[int] = []

    def add(self, time: int, metric: int, types: bytes, bits: Sequence[int]) -> None:
        self.time.append(time)
        self.id.append(metric)
        self.n.append(len(bits))
        self.type += types
        self.bits += bits

    def columns(self, time_type: type = np.int64) -> Columns:
        return {
            "metric_time": np.array(self.time, time_type),
            "metric_id": np.array(self.id, np.uint32),
            "metric_n": np.array(self.n, np.uint8),
            "metric_type": np.frombuffer(bytes(self.type), np.uint8),
            "metric_bits": np.array(self.bits, np.uint64),
        }


_REFERS = {12: REGION_MAP, 13: REGION_MAP, 31: METRIC_MAP, 66: CONTEXT_MAP, 67: CONTEXT_MAP, 68: CONTEXT_MAP}


def events(files: LocationFiles) -> Columns:
    """Every event record: corrected absolute time, kind, and what it refers to (region, metric or context, global)."""
    source, metrics = Events(files), MetricEvents()
    rows: list[tuple[int, int, int]] = []

    def act(record: Record, raw: int) -> None:
        time, ref = source.local.time(raw), 0
        if record.kind in _REFERS:
            ref = source.reference(record, _REFERS[record.kind])
        if record.kind == TYPE["Metric"]:
            metrics.add(time, ref, *source.metric(record))
        rows.append((time, record.kind, ref))

    source.each(act)
    return {
        "time": np.array([row[0] for row in rows], np.uint64),
        "kind": np.array([row[1] for row in rows], np.uint8),
        "ref": np.array([row[2] for row in rows], np.uint64),
        **metrics.columns(np.uint64),
        "counts": source.counts,
        "status": source.status,
    }


def parameters(files: LocationFiles) -> Columns:
    """The unsigned parameters of a location: when each was recorded, and its value."""
    source = Events(files)
    rows: list[tuple[int, int]] = []

    def act(record: Record, raw: int) -> None:
        if record.kind == TYPE["ParameterUnsignedInt"]:
            rows.append((source.local.time(raw), source.fields(record, 2)[1]))

    source.each(act)
    times = (np.array([time for time, _ in rows], np.uint64) - np.uint64(files.offset_ticks)).view(np.int64)
    return {"time": times, "value": np.array([value for _, value in rows], np.uint64)}


def decode(files: LocationFiles, tables: LookUpTables, spans: bool = True, metrics: bool = True) -> Columns:
    """Spans in the order they were entered, metric events as they come, and all that was odd."""
    source, nesting, readings = Events(files), Nesting(tables), MetricEvents()
    program = {"ProgramBegin": -1, "ProgramEnd": -1}

    def act(record: Record, raw: int) -> None:
        time = signed(source.local.time(raw) - files.offset_ticks)
        name = KINDS[record.kind - FIRST_KIND] if record.kind < FIRST_KIND + len(KINDS) else ""
        if spans:
            nest(source, nesting, record, name, time)
        if name == "Metric" and metrics:
            metric = source.reference(record, METRIC_MAP)
            if tables.metric is None or (metric < len(tables.metric) and tables.metric[metric]):
                readings.add(time, metric, *source.metric(record))
        elif name == "ProgramEnd" or (name == "ProgramBegin" and program[name] == -1):
            program[name] = time

    source.each(act)
    nesting.finish()
    unknown = source.counts[FIRST_KIND + len(KINDS) :].sum()
    return {
        **nesting.columns(),
        **readings.columns(),
        "counts": source.counts,
        "program": (program["ProgramBegin"], program["ProgramEnd"]),
        "nesting": np.array([nesting.orphans, nesting.repaired, nesting.unclosed, unknown, nesting.renamed], np.int64),
        "undefined": nesting.undefined,
        "backward": nesting.backward,
        "status": source.status,
    }


def decode_many(many: LocationBatch, tables: LookUpTables, spans: bool) -> Read:
    """Several locations one behind the other: their spans, or their metric events; none is so plain as not to look."""
    names = (
        ("start", "end", "frame", "parent", "depth", "resumed")
        if spans
        else ("metric_time", "metric_id", "metric_n", "metric_type", "metric_bits")
    )
    decoded = [decode(many.files(i), tables, spans, not spans) for i in range(len(many.ids))]
    ends = [[len(one[name]) for one in decoded] for name in ([names[0]] if spans else ["metric_time", "metric_type"])]
    return Read(
        {name: np.concatenate([one[name] for one in decoded]) for name in names},
        np.cumsum(ends, axis=1).T,
        np.array([one["counts"] for one in decoded]),
        np.zeros(len(decoded), np.bool_),
        [_rest(one) for one in decoded].__getitem__,
    )


def nest(source: Events, nesting: Nesting, record: Record, name: str, time: int) -> None:
    """Let one event act on the stack."""
    match name:
        case "Enter":
            nesting.enter(time, source.reference(record, REGION_MAP))
        case "Leave":
            nesting.leave(time, source.reference(record, REGION_MAP))
        case "BufferFlush":
            stop = source.local.time(source.fixed(record, 8))
            nesting.flush(time, signed(stop - source.files.offset_ticks))
        case "MeasurementOnOff":
            nesting.measurement(time, on=source.fixed(record, 1) == 1)
        case "RmaPut":
            nesting.copy_begins(time, nesting.tables.put, source.fields(record, 4)[3])
        case "RmaGet":
            nesting.copy_begins(time, nesting.tables.get, source.fields(record, 4)[3])
        case "RmaAtomic":
            nesting.copy_begins(time, nesting.tables.atomic, source.atomic_matching(record))
        case "RmaOpCompleteBlocking" | "RmaOpCompleteNonBlocking" | "RmaOpCompleteRemote":
            nesting.copy_ends(time, source.fields(record, 2)[1])
        case "ThreadTaskSwitch":
            nesting.switch(time, source.task(record))
        case "ThreadTaskComplete":
            nesting.complete(time, source.task(record))
        case "CallingContextEnter" | "CallingContextSample":
            nesting.context(time, source.reference(record, CONTEXT_MAP))
        case "CallingContextLeave":
            nesting.context_left(time, source.reference(record, CONTEXT_MAP))
        case _:
            nesting.advance(time)


def busy(files: LocationFiles, tables: LookUpTables) -> Columns:
    """When the location was inside a kept span, and what :func:`decode` says besides spans."""
    spans = decode(files, tables, metrics=False)
    start, end = reference.busy(SimpleNamespace(**spans))
    return {"start": start, "end": end, **_rest(spans)}


def fold(files: LocationFiles, tables: LookUpTables, curves: Sequence[Any], keys: Any) -> Columns:
    """The location rolled up against curves, and what :func:`decode` says besides spans."""
    spans = decode(files, tables, metrics=False)
    return {**reference.fold(SimpleNamespace(**spans), curves, keys), **_rest(spans)}


def fold_many(
    many: LocationBatch, tables: LookUpTables, curves: Sequence[Sequence[Any]], keys: Any, entered_only: bool
) -> tuple[Read, Columns]:
    """Several locations side by side, as :func:`fold` has each; or only the rows that were ever entered."""
    folded = [fold(many.files(i), tables, own, keys) for i, own in enumerate(curves)]
    rest = [_rest(one) for one in folded]
    folds = [{name: one[name] for name in one if name not in rest[0]} for one in folded]
    if entered_only and not keys.by_path:
        folds = [_entered(one) for one in folds]
    ends = np.cumsum([len(one["calls"]) for one in folds])[:, np.newaxis]
    counts = np.array([one["counts"] for one in folded])
    whole: Columns = {
        name: None if column is None else np.concatenate([one[name] for one in folds], axis=-1)
        for name, column in folds[0].items()
        if name != "paths"
    }
    paths = [one["paths"] for one in folds]
    whole["paths"] = None if paths[0] is None else tuple(map(np.concatenate, zip(*paths, strict=True)))
    return Read({}, ends, counts, np.zeros(len(folded), np.bool_), rest.__getitem__), whole


def _entered(fold: Columns) -> Columns:
    row = np.flatnonzero((fold["calls"] > 0) | (fold["total_ticks"] > 0))
    kept = {name: column[..., row] for name, column in fold.items() if column is not None}
    return dict.fromkeys(fold) | kept | {"row": row}


def _rest(columns: Columns) -> Columns:
    return {name: columns[name] for name in ("counts", "program", "nesting", "undefined", "backward", "status")}
