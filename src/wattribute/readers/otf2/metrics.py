"""Metric definitions and metric events → signals.

A metric id names a class or an instance of one (a single id space); its members are the metrics proper. There is one
signal per (recording location, metric id, member). The scope of an instance says which host and, where it is smaller
than the host, which locations use what is metered; the name, through ``sensors``, says kind, unit and device.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._core.otf2 import Read
from ...model import Device, Link, Recording, Signal
from ...model.select import pattern
from ...sensors import Declaration, Override, Sensor, describe
from .definitions import Definitions, Kind
from .tables import DefinitionTables

_VALUES = {0: "accumulated", 1: "absolute", 2: "relative"}
_TIMINGS = {0: "start", 1: "point", 2: "last", 3: "next"}
_KINDS = {0: "counter", 1: "gauge", 2: "delta"}
_TYPES = dict(
    enumerate(["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float", "double"], 1)
)
_VIEWS = {kind: np.dtype(np.uint64 if kind <= 4 else np.int64) for kind in range(1, 9)} | {10: np.dtype(np.float64)}
_SCOPES = ("location", "location group", "system tree node", "group")
_LOCATION, _PROCESS, _NODE, _GROUP = range(4)
_GROUPS_OF_LOCATIONS = (1, 4)
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
class Otf2Metric:
    """A metric id: its members, and where it applies."""

    members: tuple[Member, ...]
    scope_type: int = -1  # −1: a class, it applies to the location that records it
    scope: int = -1
    recorder: int = -1  # the id of the location that records it
    group: tuple[int, ...] = ()  # ids of locations, where the scope is a group of them
    # of a class: ids of the locations that the file says record it, or one of the same names
    recorders: frozenset[int] = frozenset()


_UNDEFINED = Otf2Metric(())


@dataclass(frozen=True)
class Otf2Metrics:
    """All metric ids, which of them are wanted, and who may record them."""

    by_id: dict[int, Otf2Metric]
    wanted: npt.NDArray[np.uint8] | None  # by id; None: all
    recorders: frozenset[int] | None  # ids of locations; None: any location may record some
    members: tuple[Member, ...]
    by_recorder: dict[int, list[Otf2Metric]]


def resolve(definitions: Definitions, metric: str | None, metric_kinds: Sequence[str]) -> Otf2Metrics:
    """The metrics of a file, narrowed to those with a member whose name matches ``metric``."""
    overrides = [Override.parse(text) for text in metric_kinds]
    members = {record[0]: _member(definitions, record, overrides) for record in definitions.of(Kind.MEMBER)}
    classes = {i: tuple(members[m] for m in own if m in members) for i, own, _, _ in definitions.of(Kind.METRIC_CLASS)}
    recorders: dict[tuple[str, ...], set[int]] = {}  # by names: each rank may have a class of its own
    names = {i: tuple(member.name for member in own) for i, own in classes.items()}
    for i, recorder in definitions.of(Kind.RECORDER):
        recorders.setdefault(names.get(i, ()), set()).add(recorder)
    shared = {own: frozenset(ids) for own, ids in recorders.items()}
    by_id = {i: Otf2Metric(own, recorders=shared.get(names[i], frozenset())) for i, own in classes.items()}
    by_recorder: dict[int, list[Otf2Metric]] = {}
    groups = {one[0]: tuple(one[3]) for one in definitions.of(Kind.GROUP) if one[4] in _GROUPS_OF_LOCATIONS}
    for i, of, recorder, scope_type, scope in definitions.of(Kind.METRIC_INSTANCE):
        group = groups.get(scope, ()) if scope_type == _GROUP else ()
        by_id[i] = Otf2Metric(classes.get(of, ()), scope_type, scope, recorder, group)
        by_recorder.setdefault(recorder, []).append(by_id[i])
    wanted = None
    chosen = set(by_id)
    if metric is not None:
        regex = pattern(metric)
        chosen = {i for i, one in by_id.items() if any(regex.search(m.name) for m in one.members)}
        wanted = np.zeros(max((i for i in by_id if i < _LARGEST_ID), default=0) + 1, np.uint8)
        wanted[[i for i in chosen if 0 <= i < _LARGEST_ID]] = 1
    return Otf2Metrics(by_id, wanted, _recorders(definitions, chosen), tuple(members.values()), by_recorder)


def _member(definitions: Definitions, record: tuple[Any, ...], overrides: Sequence[Override]) -> Member:
    _, name_ref, description, _, mode, value_type, base, exponent, unit_ref = record
    name, unit = definitions.text(name_ref), definitions.text(unit_ref)
    declaration, plain = _declaration(mode, unit, base, exponent)
    scale = declaration.scale
    declared = {
        "mode": f"{_VALUES.get(mode & 15, '?')}_{_TIMINGS.get(mode >> 4, '?')}",
        "unit": unit,
        "type": _TYPES.get(value_type, str(value_type)),
        "scale": f"{scale.numerator}/{scale.denominator}",
        "description": definitions.text(description),
    }
    sensor = describe(name, declaration, overrides)
    silenced = any(override.pattern.search(name) for override in overrides)
    disputed = sensor.known and plain.unit == sensor.unit != "#" and plain.scale != sensor.scale and not silenced
    return Member(name, sensor, declared, disputed)


@cache
def _declaration(mode: int, unit: str, base: int, exponent: int) -> tuple[Declaration, Sensor]:
    """A declaration, and what it says by itself; there are far fewer of these than names."""
    if exponent >= 1 << 63:
        exponent -= 1 << 64
    scale = Fraction(10 if base == 1 else 2) ** exponent if abs(exponent) <= _LARGEST_EXPONENT else Fraction(1)
    declared = Declaration(_KINDS.get(mode & 15, "gauge"), unit, scale)
    return declared, describe("", declared)


def _recorders(definitions: Definitions, chosen: set[int]) -> frozenset[int] | None:
    """The locations that may hold these metrics; None when a class says nothing about who records it."""
    recorders = {recorder for i, _, recorder, _, _ in definitions.of(Kind.METRIC_INSTANCE) if i in chosen}
    with_recorder = {i for i, _ in definitions.of(Kind.RECORDER)}
    recorders |= {recorder for i, recorder in definitions.of(Kind.RECORDER) if i in chosen}
    through_instances = {of for _, of, _, _, _ in definitions.of(Kind.METRIC_INSTANCE)}
    for i, _, occurrence, _ in definitions.of(Kind.METRIC_CLASS):
        silent = i not in with_recorder and (i not in through_instances or occurrence in _SYNCHRONOUS)
        if i in chosen and silent:
            return None
    return frozenset(recorders)


def signals_of(
    metrics: Otf2Metrics, recording: Recording, model: DefinitionTables, rows: Sequence[int], read: Read
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
            scope = scope_of(metric, recording, model, row)
            yield [_signal(member, metric, scope, row, times[events:events_end], values)]
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
    metrics: Otf2Metrics, recording: Recording, model: DefinitionTables, location: int, columns: dict[str, Any]
) -> Iterator[Signal]:
    """Decode all signals of one location."""
    ids, counts = columns["metric_id"], columns["metric_n"].astype(np.int64)
    first = np.cumsum(counts) - counts  # of each event's members
    order = np.argsort(ids, kind="stable")  # the events of each metric, in the order of the file
    begins = np.flatnonzero(np.diff(ids[order].astype(np.int64), prepend=-1)).tolist()
    for begin, end in zip(begins, [*begins, len(order)][1:], strict=True):
        rows, i = order[begin:end], int(ids[order[begin]])
        metric = metrics.by_id.get(i, _UNDEFINED)
        scope = scope_of(metric, recording, model, location)
        for member in range(int(counts[rows].max(initial=0))):
            mine = rows[counts[rows] > member]
            at = first[mine] + member
            values = _values(columns["metric_type"][at], columns["metric_bits"][at])
            known = metric.members[member] if member < len(metric.members) else _unnamed(i, member)
            yield _signal(known, metric, scope, location, columns["metric_time"][mine], values)


def _unnamed(metric: int, member: int) -> Member:
    name = f"metric {metric} member {member} (undefined)"
    return Member(name, describe(name), {})


def _signal(member: Member, metric: Otf2Metric, scope: Scope, location: int, times: Any, values: Any) -> Signal:
    sensor = member.sensor
    kind = _SCOPES[metric.scope_type] if 0 <= metric.scope_type < len(_SCOPES) else "location"
    return Signal(
        name=member.name,
        kind=sensor.kind,
        unit=sensor.unit,
        times=times,
        values=values,
        scale=sensor.scale,
        host=scope.host,
        device=scope.device(member),
        location=location,
        latency_s=sensor.latency_s,
        wraps_at=sensor.wraps_at,
        stale=sensor.stale,
        gain_error=sensor.gain_error,
        declared={**member.declared, "scope": kind},
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


@dataclass(frozen=True)
class Scope:
    """Where a metric applies: a host or, where ``name`` is given, some of its locations only."""

    host: str
    name: str = ""  # of what it applies to, unique on its host: "cpu 5", "package 1", "MPI Rank 3/Master thread"
    number: str = ""  # what tells a package or core apart from the others of its host
    locations: tuple[int, ...] = ()
    own: bool = False  # it is the recording location, or the process of that

    def narrows(self, member: Member) -> bool:
        """Whether the scope says more than the name of a metric does.

        A scope that is the recording location itself or its process only says who read a sensor whose name tells the
        device: a rank that reads the counters of its node declares them so.
        """
        return bool(self.name) and not (self.own and member.sensor.device_kind not in ("", "other"))

    def device(self, member: Member) -> str:
        """The device of a member: its sensor's, with what tells several scopes apart."""
        device, known = member.sensor.device, member.sensor.known
        if not self.narrows(member) or (known and re.search(r"\d$", device)):  # the metric's name has a number
            return device
        if known and device and self.number:
            return f"{device} {self.number}"
        return f"{device or member.name} ({self.name})"


def scope_of(metric: Otf2Metric, recording: Recording, model: DefinitionTables, location: int) -> Scope:
    """Where a metric applies; one that does not say, or says it wrongly, applies where it was recorded."""
    i, locations = metric.scope, recording.locations
    if metric.scope_type == _LOCATION and i in model.location_row:
        row = model.location_row[i]
        host, own = recording.location_host(row), row == location
        if locations.kind[row] == "metric" or (own and not any(member.sensor.device for member in metric.members)):
            return Scope(host)  # the recorder, or counts of the location's own
        return Scope(host, recording.location_labels[row], "", (row,), own)
    if metric.scope_type == _PROCESS and i in model.process_row:
        process = model.process_row[i]
        own, rows = process == int(locations.process[location]), recording.locations_of({process})
        return Scope(recording.host(process), recording.process_labels[process], "", rows, own)
    if metric.scope_type == _NODE and i in model.node_row:
        return _node_scope(recording, model.node_row[i])
    rows = tuple(sorted(model.location_row[one] for one in metric.group if one in model.location_row))
    if rows:
        return Scope(recording.location_host(rows[0]), f"group {metric.scope}", "", rows)
    host = recording.location_host(location)
    if metric.members and metric.scope_type < 0 and locations.kind[location] != "metric":  # of a class
        is_only = recorders_on(host, metric, recording, model) == 1
        if not is_only and any(member.sensor.device for member in metric.members):
            return Scope(host, recording.location_labels[location], "", (location,), True)
    return Scope(host)


def recorders_on(host: str, metric: Otf2Metric, recording: Recording, model: DefinitionTables) -> int:
    """How many locations of a host record a class; all hosts are counted once, since every rank asks."""
    hosts = model.recorder_hosts.get(metric.recorders)
    if hosts is None:
        rows = {model.location_row[one] for one in metric.recorders if one in model.location_row}
        hosts = model.recorder_hosts[metric.recorders] = Counter(map(recording.location_host, rows))
    return hosts[host]


def _node_scope(recording: Recording, node: int) -> Scope:
    """A node of the system tree: a host as a whole, or the locations below a smaller or a larger node."""
    host, name, kind = recording.node_host(node), recording.nodes.name[node], recording.nodes.kind[node]
    if recording.is_host(node) or recording.hosts() == [name]:
        return Scope(host)
    rows = recording.locations_of(recording.processes_below(node))
    label = recording.node_labels[node]
    number = label.removeprefix(kind).strip() if host != name and "/" not in label else ""
    return Scope(host, label, number, rows)


def links(signals: Sequence[Signal], metrics: Otf2Metrics, recording: Recording, model: DefinitionTables) -> list[Link]:
    """Who uses the devices of metrics whose scope is smaller than a host."""
    devices = {(signal.host, signal.device) for signal in signals}
    links: dict[tuple[str, str], Link] = {}
    recorded: dict[str, set[int]] = {}
    for signal in signals:
        if signal.device:
            recorded.setdefault(signal.name, set()).add(signal.location)
    classes: set[tuple[tuple[str, Sensor], ...]] = set()  # each rank may have its own, equal to the others
    for metric in metrics.by_id.values():
        rows = {model.location_row[metric.recorder]} if metric.recorder in model.location_row else set()
        if metric.scope_type < 0:
            members = tuple((member.name, member.sensor) for member in metric.members)
            if members in classes:
                continue
            classes.add(members)
            rows = {row for member in metric.members for row in recorded.get(member.name, ())}
        for scope in (scope_of(metric, recording, model, row) for row in sorted(rows)):
            narrow = [member for member in metric.members if scope.narrows(member) and scope.locations]
            for device in {scope.device(member) for member in narrow}:
                if (scope.host, device) in devices:
                    reason = f"declared for {scope.name}"
                    links.setdefault((scope.host, device), Link(scope.host, device, scope.locations, reason))
    return list(links.values())


def devices(signals: Sequence[Signal], metrics: Otf2Metrics) -> tuple[Device, ...]:
    """The devices that signals name, each once per host."""
    kinds = {member.sensor.device: member.sensor.device_kind for member in metrics.members}
    named = {member.name for member in metrics.members if member.sensor.device}
    where = {(signal.host, signal.device): signal.name for signal in signals if signal.device and signal.name in named}
    of = {member.name: member.sensor.device for member in metrics.members}
    key = {text: _natural(text) for text in {text for pair in where for text in pair}}
    ordered = sorted(where, key=lambda pair: key[pair[0]] + key[pair[1]])
    return tuple(Device(name, kinds.get(of[where[host, name]], "other"), host) for host, name in ordered)


def _natural(text: str) -> list[tuple[str, int]]:
    """A key by which "GPU 2" comes before "GPU 10"."""
    return [(word, int(number or 0)) for word, number in re.findall(r"(\D*)(\d*)", text)]
