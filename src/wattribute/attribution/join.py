"""Join of energy and spans: plan a question, then solve each group of locations independently.

A *group* holds the devices and locations that are joined by a shared device; it is the unit of work of every engine.
It is solved in steps: ``busy`` asks the span source for busy intervals where a device has several users, ``curves``
makes the curves, ``parts`` folds each location once against the curves of all its devices, ``books`` are the devices'
accounts. Sums are per location; ``rollup`` adds them up exactly, in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, groupby, pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ..alignment import gauges
from ..alignment.energy import Energy, energy
from ..alignment.gauges import Gauge, Windows
from ..alignment.occupancy import innermost
from ..alignment.overrides import TopologyOverride
from ..alignment.topology import Topology
from ..model import Clock, Curve, Fold, Intervals, Keys, Problem, Question, Recording, Signal
from ..model import counts as counting
from ..model.constants import OTHERS, STATIC
from ..model.spans import BOUNDS, Guesses, SpanColumns
from . import bill, gauge_solve, ranges, shares, slices, statistics, time_sources
from . import load as loads
from .floors import Floor, check_devices
from .frame_keys import FrameKeys, frame_keys
from .ledger import Sensed, device_energy
from .measured import rest_range
from .select import DeviceView, is_energy, keep, sources
from .solve import refined
from .spill import LIMIT_BYTES, Spill

T = TypeVar("T")
R = TypeVar("R")
Floats = npt.NDArray[np.float64]
_BATCH_EVENTS = 1 << 18  # some 4 ms of work of one of several threads
_SERIAL_BATCH_EVENTS = 1 << 22
Map = Callable[[Callable[[T], R], Iterable[T]], Iterable[R]]


@dataclass(frozen=True)
class Plan:
    """A question about a recording, ready to be worked on."""

    question: Question
    sources: tuple[DeviceView, ...]
    keys: FrameKeys
    begin: int | None = None
    end: int | None = None
    problems: tuple[Problem, ...] = ()
    has_floors: bool = False  # static energy is known of a device


class Part(NamedTuple):
    """Locations of one view that use the same devices: their fold, or folds side by side, against the curves of these.

    Several only of rows by frame, and where nothing but the fold is needed.
    """

    locations: tuple[int, ...]
    sources: tuple[int, ...]
    fold: Fold
    slices: slices.TimeSlices | None = None
    statistics: statistics.Statistics | None = None
    ranges: Mapping[str, npt.NDArray[np.float64]] | None = None  # columns of ``ranges.RANGES``, (device, row) each
    static: Mapping[str, npt.NDArray[np.float64]] | None = None  # columns of ``ranges.STATICS``, (device, row) each
    counts: tuple[Floats, Floats] | None = None  # of the unit asked for: self and total, (device, row) each


class Book(NamedTuple):
    """A device's accounts; ``idle`` None means measured minus attributed."""

    source: int
    measured: float
    idle: float | None
    unit: str
    ends: tuple[int, ...]  # the first and the last reading's time, in ticks
    bounded: bool
    problems: tuple[Problem, ...]
    windows: int  # in which the readings tell energies apart
    range: ranges.Range | None = None  # of ``measured``, one row
    static: tuple[float, float, float] | None = None  # likely (NaN: unknown), low and high
    gain_error: float = 0.0  # of what has no range: a model's error


class GroupResult(NamedTuple):
    parts: list[Part]
    books: list[Book]


def plan(
    recording: Recording,
    question: Question,
    overrides: Sequence[TopologyOverride] = (),
    begin: int | None = None,
    end: int | None = None,
) -> Plan:
    """Choose signals and users; raise an error that says why if there are none."""
    if question.per is not None:
        counting.signals(recording, question.per)  # raises where nothing of that name was counted
    views, problems = sources(recording, question, Topology(recording, overrides))
    keys = frame_keys(recording, question)
    question = question.but(topology=None, maps=())  # in the sources by now; a plan travels to other processes
    return Plan(question, tuple(views), keys, begin, end, tuple(problems))


def billed(recording: Recording, plan: Plan) -> tuple[Recording, Plan]:
    """Add the floor and the usage of each device to the plan, and the rows that these need to the recording."""
    question = plan.question
    metadata_names = ("floors", "cores")
    looks = bill.scope_of(recording, question) == "process" or question.floor or question.static
    if not (
        looks
        or any(name in recording.metadata for name in metadata_names)
        or any(s.unit == "%" for s in recording.signals)
    ):
        return recording, plan
    check_devices(question.floor, [*recording.devices, *(source.device for source in plan.sources)])
    views: list[DeviceView] = []
    hosts: dict[str, set[str]] = {}
    problems = list(plan.problems)
    for source in plan.sources:
        if not source.users or not is_energy(source.signal) or source.device.kind == time_sources.KIND:
            views.append(source)
            continue
        whole = partial(_whole, source, recording.clock, question.integrate)
        how = bill.division_of(recording, source.device, question, whole)
        views.append(replace(source, division=how))
        is_own = bill.scope_of(recording, question) == "process"
        reason = bill.undivided_reason(source.device) if how.usage is None else how.static_reason(source.device)
        if is_own and reason is not None and Problem("share", reason) not in problems:
            problems.append(Problem("share", reason))
        needed = hosts.setdefault(source.device.host, set())
        needed |= {OTHERS} if how.usage is not None else set()
        apart = how.rule == "apart" and how.floor is not None and how.floor.likely_w is not None
        needed |= {STATIC} if apart else set()
    hosts = {host: needed for host, needed in hosts.items() if needed}
    has_floors = any(source.division.floor is not None for source in views)
    plan = replace(plan, sources=tuple(views), has_floors=has_floors, problems=tuple(problems))
    if not hosts:
        return recording, plan
    recording, rows = bill.with_rows(recording, hosts, plan.begin, plan.end)
    divided = (
        replace(source, division=replace(source.division, added=rows.get(source.device.host))) for source in views
    )
    return recording, replace(plan, sources=tuple(divided), keys=frame_keys(recording, question))


def _whole(source: DeviceView, clock: Clock, integrate: str) -> Energy:
    return metered(source, clock, integrate).energy


def groups(plan: Plan) -> list[tuple[int, ...]]:
    """Rows of ``plan.sources`` that have to be solved together because they share a location and a view."""
    joined = list(range(len(plan.sources)))  # each row → another one of its group, the first of a group → itself

    def first(row: int) -> int:
        while joined[row] != row:
            joined[row] = row = joined[joined[row]]
        return row

    home: dict[tuple[str, int], int] = {}
    for row, source in enumerate(plan.sources):
        for user in folded_users(source):
            one, other = first(row), first(home.setdefault((source.of, user), row))
            joined[max(one, other)] = min(one, other)
    members: dict[int, list[int]] = {}
    for row in range(len(plan.sources)):
        members.setdefault(first(row), []).append(row)
    return [tuple(rows) for _, rows in sorted(members.items())]


class DeviceCurves(NamedTuple):
    """A device's joules(t) and each of its users' S(t)."""

    source: DeviceView
    energy: Energy
    split: shares.Split
    around: tuple[shares.Split, ...] = ()  # low and high end: of method solve, or of a divided gauge or estimate
    minus: tuple[shares.Split, ...] = ()  # of the rest of a node: the node's, then its parts', for bounds
    seen: Windows | None = None  # of a gauge: what its updates saw
    clock: shares.Split | None = None  # of a gauge with several users: each one's share of the time
    ticks_per_s: int = 1_000_000_000
    range: ranges.Range | None = None  # of what was measured
    static: tuple[shares.Split, ...] = ()  # static energy in the split: as many as ``Floor.powers_w``

    def of_locations(self, count: int) -> DeviceCurves:
        """The same without the curves of locations that were added behind the first so many."""
        return self._replace(
            split=shares.Split({at: curve for at, curve in self.split.curves.items() if at < count}, self.split.idle)
        )

    @property
    def covered(self) -> tuple[int, int]:
        """The time from the first to the last moment that readings cover."""
        return int(self.energy.times[0]), int(self.energy.times[-1])

    def with_gain(self, low: Floats, high: Floats, value: Floats) -> ranges.Range:
        """Bounds of readings as a range; those of a rest have the gains of node and parts already.

        Of a gauge, whose readings have these bounds where others use the device too, as unsure as its whole energy.
        """
        if self.source.parts:
            return ranges.Range(low, high, low, high)
        if self.source.signal.kind == "gauge" and self.range is not None and self.energy.measured > 0:
            by = (float(end[0]) / self.energy.measured if np.isfinite(end[0]) else np.nan for end in self.range)
            return ranges.Range(*(bound * part for bound, part in zip((low, high, low, high), by, strict=True)))
        return ranges.of_counter(low, high, value, self.source.line, self.source.signal.gain_error)


def asked(plan: Plan, group: Sequence[int]) -> list[int]:
    """The locations whose busy intervals a group's curves need: the users of devices that have several."""
    crowded = [row for row in group if _needs_busy(plan, row) and len(plan.sources[row].signal) > 1]
    return sorted({user for row in crowded for user in plan.sources[row].users})


def users(plan: Plan, group: Sequence[int]) -> list[int]:
    """The locations of a group, in order."""
    return sorted({user for row in group for user in folded_users(plan.sources[row])})


def folded_users(source: DeviceView, curves: DeviceCurves | None = None) -> tuple[int, ...]:
    """The users of a device, and the locations added for what is not theirs (where they have a curve)."""
    added = [row for row in source.division.added or () if row >= 0]
    return (*source.users, *(row for row in added if curves is None or row in curves.split.curves))


def busy(
    recording: Recording,
    plan: Plan,
    group: Sequence[int],
    locations: Sequence[int],
    each: Map[Any, Any] = map,
    limit_bytes: int = LIMIT_BYTES,
) -> dict[int, Intervals]:
    """When each of these locations was inside a span that counts for the group; on disk above a limit."""
    mask, spill = masks(recording, plan.sources[group[0]].of), Spill(limit_bytes)
    intervals = each(lambda location: spill.keep(recording.spans.busy(location, mask(location))), locations)
    return dict(zip(locations, intervals, strict=True))


def curves(
    recording: Recording,
    plan: Plan,
    group: Sequence[int],
    each: Map[Any, Any] = map,
    known: Mapping[int, Intervals] | None = None,
) -> dict[int, DeviceCurves]:
    """Row of ``plan.sources`` → its curves; busy intervals that are not known are asked for where they are needed."""
    when = busy(recording, plan, group, asked(plan, group), each) if known is None else known
    by_row = {}
    for row in group:
        energies, seen = _curves(recording, plan, row)
        how = plan.sources[row].division
        portions = [bill.divide(curve, how, recording.clock.ticks_per_s) for curve in energies]
        first, *around = (_divided(recording, plan, row, one.own, one.rest, when) for one in portions)
        static = tuple(
            _divided(recording, plan, row, own, {at: rest[i] for at, rest in portions[0].rest_static.items()}, when)
            for i, own in enumerate(portions[0].own_static)
        )
        if portions[0].limits and plan.question.bounds and plan.question.method != "solve":
            around = [
                _divided(recording, plan, row, own, {at: ends[i] for at, ends in portions[0].rest_limits.items()}, when)
                for i, own in enumerate(portions[0].limits)
            ]
        is_whole = how.usage is None and not portions[0].rest  # else the bounds of its curve are those of rows
        minus = (
            ()
            if not is_whole
            else tuple(_split(recording, plan, row, curve, when) for curve in _minus(recording, plan, row))
        )
        clock = None
        if seen is not None and _needs_busy(plan, row) and len(energies[0].times):
            clock = _split(recording, plan, row, _ticking(energies[0]), when)
        rate = recording.clock.ticks_per_s
        curves = DeviceCurves(plan.sources[row], energies[0], first, tuple(around), minus, seen, clock, rate)
        curves = curves._replace(range=_measured_range(curves, recording.clock), static=static)
        by_row[row] = curves if is_whole else curves._replace(seen=None, clock=None)
    return by_row


def masks(recording: Recording, of: str) -> Callable[[int], npt.NDArray[np.bool_]]:
    """Location → which frames count there."""
    known = {kind: keep(recording, of, kind) for kind in ("gpu", "cpu", bill.KIND)}
    kinds = recording.locations.kind
    return lambda location: known[kinds[location] if kinds[location] in known else "cpu"]


def batches(
    recording: Recording, locations: Sequence[int], each: Map[Any, Any], alike: Callable[[int], Any] = lambda _: None
) -> Iterator[list[int]]:
    """Neighbouring locations of one kind that are alike, so few that the threads of ``each`` end together."""
    kind, most = recording.locations.kind, _SERIAL_BATCH_EVENTS if each is map else _BATCH_EVENTS
    batch: list[int] = []
    size, last = 0, None
    for location, events in zip(locations, recording.locations.events[list(locations)].tolist(), strict=True):
        like = (kind[location] == "gpu", alike(location))
        if batch and (like != last or size >= most):
            yield batch
            batch, size = [], 0
        batch.append(location)
        size, last = size + events, like
    if batch:
        yield batch


def used(by_row: Mapping[int, DeviceCurves]) -> dict[int, tuple[int, ...]]:
    """Location → the rows of the devices it uses."""
    rows: dict[int, list[int]] = {}
    for row, device in by_row.items():
        for location in device.split.curves:
            rows.setdefault(location, []).append(row)
    return {location: tuple(mine) for location, mine in rows.items()}


def parts(
    recording: Recording,
    plan: Plan,
    by_row: Mapping[int, DeviceCurves],
    locations: Sequence[int],
    each: Map[Any, Any] = map,
) -> list[Part]:
    """Some locations of a group, each folded against the curves of the devices it uses."""
    if plan.question.one_fold and isinstance(recording.spans, Guesses):
        return folded(recording, plan, by_row, locations, each)
    mask, rows = masks(recording, plan.sources[next(iter(by_row))].of), used(by_row)
    counted = None if plan.question.per is None else counting.by_location(recording, plan.question.per)

    def one(location: int) -> Part:
        part = _energy_part(recording, plan, location, rows.get(location, ()), by_row, mask(location))
        if counted is None:
            return part
        own = counted.get(location, [])
        return part._replace(counts=_counts(recording, plan, part, by_row, mask(location), own))

    return list(each(one, locations))


def folded(
    recording: Recording,
    plan: Plan,
    by_row: Mapping[int, DeviceCurves],
    locations: Sequence[int],
    each: Map[Any, Any] = map,
    expected: Mapping[int, tuple[int, int]] | None = None,
) -> list[Part]:
    """Like ``parts``, for a source that folds several locations in one call.

    The first location that is not busy as ``expected`` and those after it are left out.
    """
    source, wrong = recording.spans, list[int]()
    assert isinstance(source, Guesses)
    rows, when = used(by_row), expected or {}
    keys = {
        kind: plan.keys.masked(keep(recording, plan.sources[next(iter(by_row))].of, kind)) for kind in ("gpu", "cpu")
    }

    against: dict[tuple[int, ...], list[Curve]] = {}  # locations that have the same curves have the same list

    def curves_of(location: int) -> list[Curve]:
        mine = rows.get(location, ())
        own = tuple(id(by_row[row].split.curves[location]) for row in mine)
        if own not in against:
            against[own] = _against(by_row, mine, location)
        return against[own]

    def some(batch: Sequence[int]) -> list[Part]:
        if wrong:  # all of them have to be done again
            return []
        ends = [when[location] for location in batch] if batch[0] in when else None
        kind = "gpu" if recording.locations.kind[batch[0]] == "gpu" else "cpu"
        fold = source.fold_many(batch, list(map(curves_of, batch)), keys[kind], ends, entered_only=True)
        assert fold.ends is not None
        done = batch[: len(fold.ends)]
        wrong.extend(batch[len(done) :])
        if not done:
            return []
        devices = [rows.get(location, ()) for location in done]
        part = _part_of(tuple(done), devices[0], fold, by_row)
        if plan.keys.by_path or any(by_row[row].seen is not None for row in part.sources):
            return with_ranges(recording, plan, _apart(part, [(mine, 1) for mine in devices]), by_row)
        [part] = with_ranges(recording, plan, [part], by_row)
        return _apart(part, [(mine, len(list(some))) for mine, some in groupby(devices)])

    rules = {row: _rule(device) for row, device in by_row.items()}

    def alike(location: int) -> tuple[Any, ...]:
        mine = rows.get(location, ())
        bounded = (by_row[row].split.curves[location].edges is not None for row in mine)
        return location in when, *bounded, *(rules[row] for row in mine)

    return [part for parts in each(some, list(batches(recording, locations, each, alike))) for part in parts]


def _rule(device: DeviceCurves) -> tuple[Any, ...]:
    """How ranges follow from a fold; devices of the same rule can be folded together."""
    source = device.source
    if device.seen is not None or source.parts or source.signal.kind == "gauge":
        return (id(device),)
    return source.line, source.signal.gain_error, len(device.static)


def books(by_row: Mapping[int, DeviceCurves]) -> list[Book]:
    """The accounts of a group's devices."""
    return [_book(row, by_row[row]) for row in by_row]


def _curves(recording: Recording, plan: Plan, row: int) -> tuple[tuple[Energy, ...], Windows | None]:
    """The device's joules(t), with method solve also its low and high; of a gauge what its updates saw."""
    source = plan.sources[row]
    whole, seen = metered(source, recording.clock, plan.question.integrate)
    whole = whole.between(plan.begin, plan.end)
    if plan.question.method != "solve" or not source.users or not len(whole.times):
        return (whole,), seen if plan.question.bounds and len(whole.times) else None
    keys, mask = frame_keys(recording, Question(by="frame")), masks(recording, source.of)
    pieces = [innermost(recording.spans.spans(user), np.where(mask(user), keys.code, -1)) for user in source.users]
    if seen is not None:
        frames = [str(name) for name in keys.labels[0]]
        rate = recording.clock.ticks_per_s
        return tuple(gauge_solve.refined(whole, seen, pieces, source.device.name, frames, rate)), None
    return tuple(refined(whole, pieces, source.device.name)), None


def metered(source: DeviceView, clock: Clock, integrate: str = "trapezoid") -> Gauge:
    """A source's joules(t), as its line of the sensor table (or the user's) says; a rest has no windows."""
    if source.device.kind == time_sources.KIND:
        return Gauge(replace(energy(source.signal, clock), bounded=False), None)
    if not source.parts:
        return gauges.metered(source.signal, clock, source.line, integrate)
    return Gauge(device_energy(sensed(source), source.parts_metered, clock, integrate), None)


def sensed(source: DeviceView) -> list[Sensed]:
    """The signal of a device and those of its parts, each with how its sensor measures."""
    return [(source.signal, source.line), *zip(source.parts, source.part_lines, strict=True)]


def _ticking(curve: Energy) -> Energy:
    """The curve of a device that draws 1 all the time: its users' parts of it are their parts of the time."""
    ticks = (curve.times - curve.times[0]).astype(np.float64)
    return replace(curve, values=ticks, least=np.diff(ticks), most=np.diff(ticks), bounded=False)


def _minus(recording: Recording, plan: Plan, row: int) -> list[Energy]:
    """Of the rest of a node: the curves of the node and of its parts, whose bounds make those of the rest."""
    source = plan.sources[row]
    if not source.parts or not plan.question.bounds:
        return []
    clock, integrate = recording.clock, plan.question.integrate
    curves = (gauges.metered(signal, clock, line, integrate).energy for signal, line in sensed(source))
    return [curve.between(plan.begin, plan.end) for curve in curves]


def _needs_busy(plan: Plan, row: int) -> bool:
    if plan.sources[row].device.kind == time_sources.KIND:  # time is not shared
        return False
    return len(plan.sources[row].users) > 1 or (plan.question.method == "window" and bool(plan.sources[row].users))


def _split(recording: Recording, plan: Plan, row: int, curve: Energy, when: Mapping[int, Intervals]) -> shares.Split:
    source, question = plan.sources[row], plan.question
    if not _needs_busy(plan, row) or not len(curve.times):
        return shares.alone(curve, source.users, question.bounds)
    load, times = loads.of_users(recording, source, question.load) if question.share == "load" else (None, ())
    mine = {user: when[user] for user in source.users}
    return shares.split(
        curve, mine, question.share or "even", question.method, recording.owner, load, question.bounds, tuple(times)
    )


def _divided(
    recording: Recording,
    plan: Plan,
    row: int,
    own: Energy,
    rest: Mapping[int, Energy],
    when: Mapping[int, Intervals],
) -> shares.Split:
    """The users' curves of what is the command's, and those of the added locations."""
    split = _split(recording, plan, row, own, when)
    if not rest:
        return split
    added = {at: shares.alone(curve, [at], plan.question.bounds).curves[at] for at, curve in rest.items()}
    return shares.Split({**split.curves, **added}, split.idle)


def _against(by_row: Mapping[int, DeviceCurves], mine: Sequence[int], location: int) -> list[Curve]:
    """The curves that a location is folded against: one per device, then those of the static energy in them."""
    devices = [by_row[row] for row in mine]
    static = [one.curves[location] for device in devices for one in device.static]
    return [*(device.split.curves[location] for device in devices), *static]


def _apart(part: Part, runs: Sequence[tuple[tuple[int, ...], int]]) -> list[Part]:
    """A fold of several devices as parts: each has the devices and the number of locations that ``runs`` say."""
    sizes = [count for _, count in runs]
    folds = part.fold.apart(sizes)

    def slices_of(counts: Iterable[int]) -> list[slice]:
        return [slice(*ends) for ends in pairwise(accumulate(counts, initial=0))]

    def columns(named: Mapping[str, Floats] | None, some: slice) -> Mapping[str, Floats] | None:
        return None if named is None else {name: column[:, some] for name, column in named.items()}

    return [
        Part(part.locations[at], mine, fold, None, None, columns(part.ranges, row), columns(part.static, row))
        for (mine, _), at, fold, row in zip(
            runs, slices_of(sizes), folds, slices_of(len(fold.calls) for fold in folds), strict=True
        )
    ]


def _part_of(locations: tuple[int, ...], mine: tuple[int, ...], fold: Fold, by_row: Mapping[int, DeviceCurves]) -> Part:
    """A part from a fold against ``_against``."""
    if not any(by_row[row].static for row in mine):
        return Part(locations, mine, fold)
    columns = {name: np.full((len(mine), fold.self_value.shape[1]), np.nan) for name in ranges.STATICS}
    at = len(mine)
    for c, row in enumerate(mine):
        count = len(by_row[row].static)
        for which, values in (("self", fold.self_value), ("total", fold.total_value)):
            ends = ranges.static_ends(values[at : at + count])
            for name, column in zip(ranges.STATICS[:3], ends, strict=True):
                columns[name.replace("self", which)][c] = column
        at += count
    return Part(locations, mine, _first(fold, len(mine)), static=columns)


def _counts(
    recording: Recording,
    plan: Plan,
    part: Part,
    by_row: Mapping[int, DeviceCurves],
    kept: npt.NDArray[np.bool_],
    own: Sequence[Signal],
) -> tuple[Floats, Floats]:
    """What the location counted in each row of its part, by its ``own`` signals."""
    curve, keys, size = counting.steps(own), plan.keys.masked(kept), len(part.sources)
    if part.slices is not None:
        edges = [slices.edges(plan.question, recording.clock, by_row[row].energy) for row in part.sources]
        fold, _ = slices.cut(recording.spans.spans(part.locations[0]), [curve] * size, edges, keys)
        return fold.self_value, fold.total_value
    fold_of = recording.spans.fold if part.fold.row is None else partial(_entered, recording)
    fold = fold_of(part.locations[0], [curve], keys)
    return np.repeat(fold.self_value, size, axis=0), np.repeat(fold.total_value, size, axis=0)


def _entered(recording: Recording, location: int, curves: Sequence[Curve], keys: Keys) -> Fold:
    """A location rolled up; without the rows that were never entered, where its source can leave them out."""
    source = recording.spans
    return (source.fold_entered if isinstance(source, SpanColumns) else source.fold)(location, curves, keys)


def _energy_part(
    recording: Recording,
    plan: Plan,
    location: int,
    mine: tuple[int, ...],
    by_row: Mapping[int, DeviceCurves],
    kept: npt.NDArray[np.bool_],
) -> Part:
    against = _against(by_row, mine, location)
    energies = [by_row[row].energy for row in mine]
    keys = plan.keys.masked(kept)
    if plan.question.method == "solve":
        fold = _with_intervals(recording, location, [by_row[row] for row in mine], keys)
        return Part((location,), mine, fold, ranges=_solved_ranges(fold))
    if plan.question.sliced:
        edges = [slices.edges(plan.question, recording.clock, energy) for energy in energies]
        edges += [edge for edge, row in zip(edges, mine, strict=True) for _ in by_row[row].static]
        fold, cut = slices.cut(recording.spans.spans(location), against, edges, keys)
        return _sliced_part(location, mine, fold, cut, by_row)
    if not plan.question.statistics:
        fold = _entered(recording, location, against, keys)
        part = _part_of((location,), mine, fold, by_row)
        fold = _with_rests(recording, location, [by_row[row] for row in mine], keys, part.fold)
        fold = _with_limits(recording, location, [by_row[row] for row in mine], keys, fold)
        return with_ranges(recording, plan, [part._replace(fold=fold)], by_row)[0]
    whole = [shares.alone(energy, [location], False).curves[location] for energy in energies]
    count = len(mine)  # the statistics stand behind the devices, static energy behind them
    fold = recording.spans.fold(location, [*against[:count], *whole, *against[count:]], keys)
    about = statistics.of_rows(
        recording.spans.spans(location), energies, keys, fold, recording.clock.ticks_per_s, plan.question.integrate
    )
    part = _part_of((location,), mine, _without(fold, count, count), by_row)
    return with_ranges(recording, plan, [part._replace(statistics=about)], by_row)[0]


def _sliced_part(
    location: int, mine: tuple[int, ...], fold: Fold, cut: slices.TimeSlices, by_row: Mapping[int, DeviceCurves]
) -> Part:
    """A part cut into slices of time; the curves of static energy have the slices of their devices, behind them."""
    ends = np.cumsum([0, *(len(numbers) for numbers in cut.number)]).tolist()
    count, size = len(mine), ends[len(mine)]
    if len(cut.number) == count:
        return Part((location,), mine, fold, cut)
    columns = {name: np.full((count, size), np.nan) for name in ranges.STATICS}
    at = count
    for c, row in enumerate(mine):
        many = len(by_row[row].static)
        for which, values in (("self", fold.self_value), ("total", fold.total_value)):
            some = [values[i, ends[i] : ends[i + 1]] for i in range(at, at + many)]
            for name, column in zip(ranges.STATICS[:3], ranges.static_ends(some), strict=True):
                columns[name.replace("self", which)][c, ends[c] : ends[c + 1]] = column
        at += many
    kept = _first(fold, count)
    per_row = {name: getattr(kept, name)[..., :size] for name in slices.COLUMNS}
    return Part(
        (location,), mine, replace(kept, **per_row), slices.TimeSlices(*(list(c[:count]) for c in cut)), static=columns
    )


def with_ranges(
    recording: Recording, plan: Plan, some: Sequence[Part], by_row: Mapping[int, DeviceCurves]
) -> list[Part]:
    """Parts of the same devices, or of devices of one rule, with the ranges of their rows: of gauges from where rows
    ran, of counters from bounds.

    All are computed together: a call for each of many small parts costs more than the work.
    """
    if not some or not some[0].sources or not plan.question.bounds:
        return list(some)
    devices = [by_row[row] for row in some[0].sources]
    pieces: list[dict[str, ranges.Pieces]] = []
    if any(device.seen is not None for device in devices):
        mask = masks(recording, plan.sources[some[0].sources[0]].of)
        pieces = [
            slices.pieces(recording.spans.spans(part.locations[0]), plan.keys.masked(mask(part.locations[0])))
            for part in some
        ]
    columns: dict[str, list[ranges.Range]] = {"self": [], "total": []}
    for which, each in columns.items():
        value = _beside(some, f"{which}_value")
        low, high = (
            None if getattr(some[0].fold, f"{which}_{end}") is None else _beside(some, f"{which}_{end}")
            for end in ("low", "high")
        )
        for c, device in enumerate(devices):
            if device.seen is not None:
                own = [
                    _gauge_range(
                        device, part.locations[0], at[which], getattr(part.fold, f"{which}_value")[c], part.fold.row
                    )
                    for part, at in zip(some, pieces, strict=True)
                ]
                each.append(ranges.Range(*map(np.concatenate, zip(*own, strict=True))))
            elif low is not None and high is not None:
                each.append(device.with_gain(low[c], high[c], value[c]))
            else:
                each.append(ranges.Range(*np.full((4, value.shape[1]), np.nan)))
    whole = ranges.columns(columns)
    ends = np.cumsum([part.fold.self_value.shape[1] for part in some]).tolist()
    unbounded: dict[str, Any] = dict.fromkeys(BOUNDS)  # they are in the ranges
    return [
        part._replace(
            fold=replace(part.fold, **unbounded),
            ranges={name: column[:, begin:end] for name, column in whole.items()},
        )
        for part, begin, end in zip(some, [0, *ends], ends, strict=False)
    ]


def _beside(some: Sequence[Part], name: str) -> Floats:
    """A column of folds, the rows of all of them side by side."""
    return np.concatenate([getattr(part.fold, name) for part in some], axis=1)


def _with_intervals(recording: Recording, location: int, devices: Sequence[DeviceCurves], keys: Keys) -> Fold:
    """A fold whose bounds are what it finds along the low and the high curves."""
    splits = [(device.split, *(device.around or (device.split,) * 2)) for device in devices]
    fold = recording.spans.fold(location, [split[i].curves[location] for i in range(3) for split in splits], keys)
    size = len(devices)
    ends = {"low": slice(size, 2 * size), "high": slice(2 * size, 3 * size)}
    values = {"self": fold.self_value, "total": fold.total_value}
    bounds: dict[str, Any] = {
        f"{name}_{end}": value[which] for name, value in values.items() for end, which in ends.items()
    }
    return replace(_first(fold, size), **bounds)


def _gauge_range(
    device: DeviceCurves, location: int, pieces: ranges.Pieces, value: Floats, numbers: npt.NDArray[np.int64] | None
) -> ranges.Range:
    """The ranges of a location's rows, never beyond what the device may have used; ``numbers`` are the rows'."""
    assert device.seen is not None
    share = ranges.share_of(None if device.clock is None else device.clock.curves[location], device.seen)
    at = np.arange(len(value)) if numbers is None else numbers
    size = 1 + max(int(at.max(initial=-1)), int(pieces[2].max(initial=-1)))
    values = np.zeros(size)
    values[at] = value
    range_ = ranges.of_pieces(pieces, size, device.seen, share, values, device.covered, device.ticks_per_s)
    most = device.range
    if most is not None:  # a device of which no cap is known
        range_ = range_._replace(
            high=np.minimum(range_.high, most.high), hard_high=np.minimum(range_.hard_high, most.hard_high)
        )
    return ranges.Range(*(np.where(np.isfinite(end[at]), end[at], np.nan) for end in range_))


def _solved_ranges(fold: Fold) -> dict[str, npt.NDArray[np.float64]]:
    """The intervals of method solve; hard ranges come from method linear only."""
    unknown = np.full_like(fold.self_value, np.nan)
    known = {name: getattr(fold, name) for name in BOUNDS}
    return {name: known.get(name, unknown) for name in ranges.RANGES}


def _with_rests(recording: Recording, location: int, devices: Sequence[DeviceCurves], keys: Keys, fold: Fold) -> Fold:
    """The bounds of a rest are the node's minus its parts', and never below 0."""
    rests = [at for at, device in enumerate(devices) if device.minus]
    if not rests or fold.self_low is None:
        return fold
    bounds: dict[str, Any] = {name: np.array(getattr(fold, name)) for name in BOUNDS}
    for at in rests:
        node, *parts = _bounds(recording, location, devices[at], keys)
        for which in ("self", "total"):
            low, high = f"{which}_low", f"{which}_high"
            bounds[low][at] = np.maximum(node[low] - sum(part[high] for part in parts), 0.0)
            bounds[high][at] = np.maximum(node[high] - sum(part[low] for part in parts), 0.0)
    return replace(fold, **bounds)


def _with_limits(recording: Recording, location: int, devices: Sequence[DeviceCurves], keys: Keys, fold: Fold) -> Fold:
    """The bounds of a gauge or an estimate that is divided: what its rows get along its low and its high curve."""
    limited = [at for at, device in enumerate(devices) if device.around]
    if not limited:
        return fold
    bounds: dict[str, Any] = {}
    for name in BOUNDS:
        known = getattr(fold, name)
        bounds[name] = np.full_like(fold.self_value, np.nan) if known is None else np.array(known)
    for at in limited:
        for end, split in zip(("low", "high"), devices[at].around, strict=True):
            along = _entered(recording, location, [split.curves[location]], keys)
            bounds[f"self_{end}"][at], bounds[f"total_{end}"][at] = along.self_value[0], along.total_value[0]
    return replace(fold, **bounds)


def _bounds(recording: Recording, location: int, device: DeviceCurves, keys: Keys) -> list[dict[str, Any]]:
    """The bounds of a node and of each of its parts, as if the location used them, with their gains."""
    bounds = []
    for (signal, line), split in zip(sensed(device.source), device.minus, strict=True):
        fold = _entered(recording, location, [split.curves[location]], keys)
        each: dict[str, Any] = {}
        for which in ("self", "total"):
            value = getattr(fold, f"{which}_value")[0]
            ends = (getattr(fold, f"{which}_{end}") for end in ("low", "high"))
            low, high = (np.full(len(value), np.nan) if end is None else end[0] for end in ends)
            gained = ranges.of_counter(low, high, value, line, signal.gain_error)
            each |= {f"{which}_low": gained.hard_low, f"{which}_high": gained.hard_high}
        bounds.append(each)
    return bounds


def _first(fold: Fold, curves: int) -> Fold:
    """A fold without the curves behind the first few."""
    names = ("self_covered", "total_covered", "self_value", "total_value")
    cut = {name: getattr(fold, name)[:curves] for name in (*names, *BOUNDS) if getattr(fold, name) is not None}
    return replace(fold, **cut)


def _without(fold: Fold, begin: int, count: int) -> Fold:
    """A fold without some of its curves."""
    names = ("self_covered", "total_covered", "self_value", "total_value")
    there = [name for name in (*names, *BOUNDS) if getattr(fold, name) is not None]
    return replace(fold, **{name: np.delete(getattr(fold, name), np.s_[begin : begin + count], 0) for name in there})


def _book(row: int, device: DeviceCurves) -> Book:
    energy = device.energy
    times, idle = energy.times, device.split.idle
    ends = (int(times[0]), int(times[-1])) if len(times) else ()
    windows = len(energy.windows[0]) - 1 if energy.bounded else 0
    each = len(device.source.users) if device.source.device.kind == time_sources.KIND else 1
    book = Book(row, each * energy.measured, idle, energy.unit, ends, energy.bounded, energy.problems, windows)
    static = static_sum(energy, device.source.division.floor, device.ticks_per_s)
    bounded, gain_error = energy.bounded or device.seen is not None, energy.signal.gain_error or 0.0
    return book._replace(range=device.range, bounded=bounded, static=static, gain_error=gain_error)


def static_sum(energy: Energy, floor: Floor | None, ticks_per_s: int) -> tuple[float, float, float] | None:
    """The static energy of a curve: likely (NaN where only its range is known), low and high."""
    if floor is None or not len(energy.times):
        return None
    likely, low, high = ranges.static_ends([one.measured for one in bill.statics(energy, floor, ticks_per_s)])
    return float(likely), float(low), float(high)


def _measured_range(device: DeviceCurves, clock: Clock) -> ranges.Range | None:
    """What the device truly used while it was measured."""
    energy = device.energy
    measured = np.array([energy.measured])
    if device.seen is not None and len(energy.times):
        piece = (energy.times[:1], energy.times[-1:], np.zeros(1, np.int64))
        share = ranges.share_of(None, device.seen)
        return ranges.of_pieces(piece, 1, device.seen, share, measured, device.covered, device.ticks_per_s)
    if not energy.bounded:
        return None
    if device.source.parts:
        return rest_range(sensed(device.source), energy, clock)
    if not energy.is_counted:
        return device.with_gain(measured, measured, measured)
    low, high = (np.array([end.sum()]) for end in (energy.least, energy.most))
    return device.with_gain(np.minimum(low, measured), np.maximum(high, measured), measured)
