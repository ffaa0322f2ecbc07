"""Metric definitions and metric events → signals.

A metric id names a class or an instance of one (a single id space); its members are the metrics proper. There is one
signal per (recording location, metric id, member). The scope of an instance tells the host; the name, through
``sensors``, kind, unit and device.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._core.otf2 import Read
from ...model import Device, Recording, Signal
from ...model.select import pattern
from ...sensors import Declared, Override, Sensor, describe
from .definitions import Definitions, Kind
from .tables import Model

_VALUES = {0: "accumulated", 1: "absolute", 2: "relative"}
_TIMINGS = {0: "start", 1: "point", 2: "last", 3: "next"}
_KINDS = {0: "counter", 1: "gauge", 2: "delta"}
_TYPES = dict(
    enumerate(["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float", "double"], 1)
)
_VIEWS = {kind: np.dtype(np.uint64 if kind <= 4 else np.int64) for kind in range(1, 9)} | {10: np.dtype(np.float64)}
_SCOPES = ("location", "location group", "system tree node", "group")
_LOCATION, _GROUP, _NODE = 0, 1, 2
_SYNCHRONOUS = (0, 1)
_LARGEST_ID = 1 << 24
_LARGEST_EXPONENT = 64


@dataclass(frozen=True)
class Member:
    """One metric as its file declares it, and as we understand it."""

    name: str
    sensor: Sensor
    declared: dict[str, Any]
    disputed: bool = False  # the file declares another scale of the same unit than the name stands for


@dataclass(frozen=True)
class Metric:
    """A metric id: its members, and where it applies."""

    members: tuple[Member, ...]
    scope_type: int = -1  # −1: a class, it applies to the location that records it
    scope: int = -1


_UNDEFINED = Metric(())


@dataclass(frozen=True)
class Metrics:
    """All metric ids, which of them are wanted, and who may record them."""

    by_id: dict[int, Metric]
    wanted: npt.NDArray[np.uint8] | None  # by id; None: all
    recorders: frozenset[int] | None  # ids of locations; None: any location may record some
    members: tuple[Member, ...]
    by_recorder: dict[int, list[Metric]]


def resolve(definitions: Definitions, metric: str | None, metric_kinds: Sequence[str]) -> Metrics:
    """The metrics of a file, narrowed to those with a member whose name matches ``metric``."""
    overrides = [Override.parse(text) for text in metric_kinds]
    members = {record[0]: _member(definitions, record, overrides) for record in definitions.of(Kind.MEMBER)}
    classes = {i: tuple(members[m] for m in own if m in members) for i, own, _, _ in definitions.of(Kind.METRIC_CLASS)}
    by_id = {i: Metric(own) for i, own in classes.items()}
    by_recorder: dict[int, list[Metric]] = {}
    for i, of, recorder, scope_type, scope in definitions.of(Kind.METRIC_INSTANCE):
        by_id[i] = Metric(classes.get(of, ()), scope_type, scope)
        by_recorder.setdefault(recorder, []).append(by_id[i])
    wanted = None
    chosen = set(by_id)
    if metric is not None:
        regex = pattern(metric)
        chosen = {i for i, one in by_id.items() if any(regex.search(m.name) for m in one.members)}
        wanted = np.zeros(max((i for i in by_id if i < _LARGEST_ID), default=0) + 1, np.uint8)
        wanted[[i for i in chosen if 0 <= i < _LARGEST_ID]] = 1
    return Metrics(by_id, wanted, _recorders(definitions, chosen), tuple(members.values()), by_recorder)


def _member(definitions: Definitions, record: tuple[Any, ...], overrides: Sequence[Override]) -> Member:
    _, name_ref, description, _, mode, value_type, base, exponent, unit_ref = record
    name, unit = definitions.text(name_ref), definitions.text(unit_ref)
    if exponent >= 1 << 63:
        exponent -= 1 << 64
    scale = Fraction(10 if base == 1 else 2) ** exponent if abs(exponent) <= _LARGEST_EXPONENT else Fraction(1)
    kind = _KINDS.get(mode & 15, "gauge")
    declared = {
        "mode": f"{_VALUES.get(mode & 15, '?')}_{_TIMINGS.get(mode >> 4, '?')}",
        "unit": unit,
        "type": _TYPES.get(value_type, str(value_type)),
        "scale": f"{scale.numerator}/{scale.denominator}",
        "description": definitions.text(description),
    }
    told = Declared(kind, unit, scale)
    sensor, plain = describe(name, told, overrides), describe("", told)
    silenced = any(override.pattern.search(name) for override in overrides)
    disputed = sensor.known and plain.unit == sensor.unit != "#" and plain.scale != sensor.scale and not silenced
    return Member(name, sensor, declared, disputed)


def _recorders(definitions: Definitions, chosen: set[int]) -> frozenset[int] | None:
    """The locations that may hold these metrics; None when a class says nothing about who records it."""
    recorders = {recorder for i, _, recorder, _, _ in definitions.of(Kind.METRIC_INSTANCE) if i in chosen}
    told = {i for i, _ in definitions.of(Kind.RECORDER)}
    recorders |= {recorder for i, recorder in definitions.of(Kind.RECORDER) if i in chosen}
    through_instances = {of for _, of, _, _, _ in definitions.of(Kind.METRIC_INSTANCE)}
    for i, _, occurrence, _ in definitions.of(Kind.METRIC_CLASS):
        silent = i not in told and (i not in through_instances or occurrence in _SYNCHRONOUS)
        if i in chosen and silent:
            return None
    return frozenset(recorders)


def concerns(metrics: Metrics, model: Model, recorder: int, processes: set[int], nodes: set[int]) -> bool:
    """Whether what a METRIC location records applies to one of these processes, or to one of these nodes (rows)."""
    process = model.locations.process
    if int(process[recorder]) in processes:
        return True
    for one in metrics.by_recorder.get(int(model.locations.id[recorder]), ()):
        if one.scope_type == _GROUP and model.process_row.get(one.scope) in processes:
            return True
        if one.scope_type == _NODE and model.node_row.get(one.scope) in nodes:
            return True
        at = model.location_row.get(one.scope, -1) if one.scope_type == _LOCATION else -1
        if at >= 0 and int(process[at]) in processes:
            return True
    return False


def signals_of(
    metrics: Metrics, recording: Recording, model: Model, rows: Sequence[int], read: Read
) -> Iterator[list[Signal]]:
    """The signals that each of these locations recorded, in the order of their metric ids and members."""
    columns, ends = read.columns, read.ends
    begins = np.zeros_like(ends)
    begins[1:] = ends[:-1]
    times, bits = columns["metric_time"], columns["metric_bits"]
    for row, begin, end, (single, i, kind) in zip(
        rows, begins.tolist(), ends.tolist(), _single(columns, begins, ends), strict=True
    ):
        (events, members), (events_end, members_end) = begin, end
        if single and kind in _VIEWS:  # as a rule, and without a copy
            metric = metrics.by_id.get(i, _UNDEFINED)
            member = metric.members[0] if metric.members else _unnamed(i, 0)
            values = bits[members:members_end].view(_VIEWS[kind])
            host = _host(metric, recording, model, row)
            yield [_signal(member, metric, host, row, times[events:events_end], values)]
        else:
            own = {name: columns[name][events:events_end] for name in ("metric_id", "metric_n", "metric_time")}
            own |= {name: columns[name][members:members_end] for name in ("metric_type", "metric_bits")}
            yield list(_signals(metrics, recording, model, row, own))


def _single(
    columns: dict[str, Any], begins: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
) -> Iterator[tuple[bool, int, int]]:
    """Whether a location recorded one metric of one member whose values are of one type; that metric and that type."""
    least_id, greatest_id = _extremes(columns["metric_id"], begins[:, 0], ends[:, 0])
    least_n, greatest_n = _extremes(columns["metric_n"], begins[:, 0], ends[:, 0])
    least_type, greatest_type = _extremes(columns["metric_type"], begins[:, 1], ends[:, 1])
    single = (least_id == greatest_id) & (least_n == 1) & (greatest_n == 1) & (least_type == greatest_type)
    return zip(single.tolist(), least_id.tolist(), least_type.tolist(), strict=True)


def _extremes(values: npt.NDArray[Any], begins: Any, ends: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The least and the greatest value of each of the pieces that values fall into; zeros where one is empty."""
    filled = ends > begins
    least, greatest = np.zeros((2, len(begins)), values.dtype)
    if filled.any():
        least[filled] = np.minimum.reduceat(values, begins[filled])
        greatest[filled] = np.maximum.reduceat(values, begins[filled])
    return least, greatest


def _signals(
    metrics: Metrics, recording: Recording, model: Model, location: int, columns: dict[str, Any]
) -> Iterator[Signal]:
    """The signals of one location, whatever it recorded."""
    ids, counts = columns["metric_id"], columns["metric_n"].astype(np.int64)
    first = np.cumsum(counts) - counts  # of each event's members
    only_one = len(ids) > 0 and bool((ids == ids[0]).all())  # often; np.unique costs more than all the rest
    for i in ids[:1] if only_one else np.unique(ids):
        rows = np.flatnonzero(ids == i)
        metric = metrics.by_id.get(int(i), _UNDEFINED)
        host = _host(metric, recording, model, location)
        for member in range(int(counts[rows].max(initial=0))):
            mine = rows[counts[rows] > member]
            at = first[mine] + member
            values = _values(columns["metric_type"][at], columns["metric_bits"][at])
            known = metric.members[member] if member < len(metric.members) else _unnamed(int(i), member)
            yield _signal(known, metric, host, location, columns["metric_time"][mine], values)


def _unnamed(metric: int, member: int) -> Member:
    name = f"metric {metric} member {member} (undefined)"
    return Member(name, describe(name), {})


def _signal(member: Member, metric: Metric, host: str, location: int, times: Any, values: Any) -> Signal:
    sensor = member.sensor
    scope = _SCOPES[metric.scope_type] if 0 <= metric.scope_type < len(_SCOPES) else "location"
    return Signal(
        name=member.name,
        kind=sensor.kind,
        unit=sensor.unit,
        times=times,
        values=values,
        scale=sensor.scale,
        host=host,
        device=sensor.device,
        location=location,
        latency_s=sensor.latency_s,
        wraps_at=sensor.wraps_at,
        stale=sensor.stale,
        gain_error=sensor.gain_error,
        declared={**member.declared, "scope": scope},
    )


def _values(types: npt.NDArray[np.uint8], bits: npt.NDArray[np.uint64]) -> npt.NDArray[Any]:
    """Bit patterns as the numbers they are; a signal that mixes types becomes doubles."""
    if (types == 10).all():
        return bits.view(np.float64)
    if (types == 9).all():
        return bits.astype(np.uint32).view(np.float32).astype(np.float64)
    if (types <= 4).all():
        return bits
    if ((types >= 5) & (types <= 8)).all():
        return bits.view(np.int64)
    values = bits.astype(np.float64)
    for kind, view in ((types == 10, np.float64), ((types >= 5) & (types <= 8), np.int64)):
        values[kind] = bits[kind].view(view)
    values[types == 9] = bits[types == 9].astype(np.uint32).view(np.float32)
    return values


def _host(metric: Metric, recording: Recording, model: Model, location: int) -> str:
    """Where the metric applies; one that does not say, or says it wrongly, applies where it was recorded."""
    if metric.scope_type == _LOCATION and metric.scope in model.location_row:
        return recording.location_host(model.location_row[metric.scope])
    if metric.scope_type == _GROUP and metric.scope in model.process_row:
        return recording.host(model.process_row[metric.scope])
    if metric.scope_type == _NODE and metric.scope in model.node_row:
        return recording.node_host(model.node_row[metric.scope])
    return recording.location_host(location)


def devices(found: Sequence[Signal], metrics: Metrics) -> tuple[Device, ...]:
    """The devices that signals name, each once per host."""
    kinds = {member.sensor.device: member.sensor.device_kind for member in metrics.members}
    where = {(signal.host, signal.device) for signal in found if signal.device}
    key = {text: _natural(text) for text in {text for pair in where for text in pair}}
    ordered = sorted(where, key=lambda pair: key[pair[0]] + key[pair[1]])
    return tuple(Device(name, kinds.get(name, "other"), host) for host, name in ordered)


def _natural(text: str) -> list[tuple[str, int]]:
    """A key by which "GPU 2" comes before "GPU 10"."""
    return [(word, int(number or 0)) for word, number in re.findall(r"(\D*)(\d*)", text)]
