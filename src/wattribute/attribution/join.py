"""Joules meet spans: a plan says who is asked what, a group of locations is solved on its own.

A *group* holds the devices and locations that are joined by a shared device; it is the unit of work of every engine.
It is solved in steps: ``busy`` asks the span source for busy intervals where a device has several users, ``curves``
makes the curves, ``parts`` folds each location once against the curves of all its devices, ``books`` are the devices'
accounts. Sums are per location; ``rollup`` reduces them in location order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ..alignment.energy import Energy, energy
from ..alignment.overrides import Override
from ..alignment.topology import Topology
from ..model import Fold, Intervals, Keys, Problem, Recording
from ..model.spans import BOUNDS
from . import load as loads
from . import shares, slices, statistics
from .keys import FrameKeys, frame_keys
from .options import Options
from .select import Source, keep, sources
from .solve import innermost, refined
from .spill import LIMIT_BYTES, Spill

T = TypeVar("T")
R = TypeVar("R")
Map = Callable[[Callable[[T], R], Iterable[T]], Iterable[R]]


@dataclass(frozen=True)
class Plan:
    """A question about a recording, ready to be worked on."""

    options: Options
    sources: tuple[Source, ...]
    keys: FrameKeys
    begin: int | None = None
    end: int | None = None
    problems: tuple[Problem, ...] = ()


class Part(NamedTuple):
    """One location of one view: its fold against the curves of the devices it uses."""

    location: int
    sources: tuple[int, ...]
    fold: Fold
    slices: slices.Sliced | None = None
    statistics: statistics.Statistics | None = None


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


class Solved(NamedTuple):
    parts: list[Part]
    books: list[Book]


def plan(
    recording: Recording,
    options: Options,
    overrides: Sequence[Override] = (),
    begin: int | None = None,
    end: int | None = None,
) -> Plan:
    """Choose signals and users, or say why that cannot be."""
    found, told = sources(recording, options, Topology(recording, overrides))
    return Plan(options, tuple(found), frame_keys(recording, options.by), begin, end, tuple(told))


def groups(plan: Plan) -> list[tuple[int, ...]]:
    """Rows of ``plan.sources`` that have to be solved together because they share a location and a view."""
    home: dict[tuple[str, int], int] = {}
    members: dict[int, list[int]] = {}
    for row, source in enumerate(plan.sources):
        met = sorted({home[source.of, user] for user in source.users if (source.of, user) in home})
        joined = sorted([row, *(old for group in met for old in members.pop(group))])
        members[joined[0]] = joined
        for old in joined:
            home |= {(source.of, user): joined[0] for user in plan.sources[old].users}
    return [tuple(rows) for _, rows in sorted(members.items())]


class DeviceCurves(NamedTuple):
    """A device's joules(t) and each of its users' S(t)."""

    source: Source
    energy: Energy
    split: shares.Split
    around: tuple[shares.Split, ...] = ()  # of method solve: the low and the high end of the 95 % intervals


def asked(plan: Plan, group: Sequence[int]) -> list[int]:
    """The locations whose busy intervals a group's curves need: the users of devices that have several."""
    crowded = [row for row in group if _needs_busy(plan, row) and len(plan.sources[row].signal) > 1]
    return users(plan, crowded)


def users(plan: Plan, group: Sequence[int]) -> list[int]:
    """The locations of a group, in order."""
    return sorted({user for row in group for user in plan.sources[row].users})


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
    found = each(lambda location: spill.keep(recording.spans.busy(location, mask(location))), locations)
    return dict(zip(locations, found, strict=True))


def curves(
    recording: Recording,
    plan: Plan,
    group: Sequence[int],
    each: Map[Any, Any] = map,
    known: Mapping[int, Intervals] | None = None,
) -> dict[int, DeviceCurves]:
    """Row of ``plan.sources`` → its curves; busy intervals that are not known are asked for where they are needed."""
    when = busy(recording, plan, group, asked(plan, group), each) if known is None else known
    found = {}
    for row in group:
        energies = _curves(recording, plan, row)
        first, *around = (_split(recording, plan, row, curve, when) for curve in energies)
        found[row] = DeviceCurves(plan.sources[row], energies[0], first, tuple(around))
    return found


def masks(recording: Recording, of: str) -> Callable[[int], npt.NDArray[np.bool_]]:
    """Location → which frames count there."""
    known = {kind: keep(recording, of, kind) for kind in ("gpu", "cpu")}
    return lambda location: known["gpu" if recording.locations.kind[location] == "gpu" else "cpu"]


def parts(
    recording: Recording,
    plan: Plan,
    found: Mapping[int, DeviceCurves],
    locations: Sequence[int],
    each: Map[Any, Any] = map,
) -> list[Part]:
    """Some locations of a group, each folded against the curves of the devices it uses."""
    mask = masks(recording, plan.sources[next(iter(found))].of)
    return list(each(lambda location: _part(recording, plan, location, found, mask(location)), locations))


def books(found: Mapping[int, DeviceCurves]) -> list[Book]:
    """The accounts of a group's devices."""
    return [_book(row, found[row]) for row in found]


def _curves(recording: Recording, plan: Plan, row: int) -> tuple[Energy, ...]:
    """The device's joules(t); with method solve also its low and high."""
    source = plan.sources[row]
    whole = energy(source.signal, recording.clock, plan.options.integrate).between(plan.begin, plan.end)
    if plan.options.method != "solve" or not source.users or not len(whole.times):
        return (whole,)
    code, mask = frame_keys(recording, ("frame",)).code, masks(recording, source.of)
    pieces = [innermost(recording.spans.spans(user), np.where(mask(user), code, -1)) for user in source.users]
    return tuple(refined(whole, pieces, source.device.name))


def _needs_busy(plan: Plan, row: int) -> bool:
    return len(plan.sources[row].users) > 1 or (plan.options.method == "window" and bool(plan.sources[row].users))


def _split(recording: Recording, plan: Plan, row: int, curve: Energy, when: Mapping[int, Intervals]) -> shares.Split:
    source, options = plan.sources[row], plan.options
    if not _needs_busy(plan, row) or not len(curve.times):
        return shares.alone(curve, source.users, options.bounds)
    load, times = loads.of_users(recording, source, options.load) if options.share == "load" else (None, ())
    mine = {user: when[user] for user in source.users}
    return shares.split(curve, mine, options.share, options.method, recording.owner, load, options.bounds, tuple(times))


def _part(
    recording: Recording, plan: Plan, location: int, found: Mapping[int, DeviceCurves], kept: npt.NDArray[np.bool_]
) -> Part:
    mine = tuple(row for row in found if location in found[row].split.curves)
    against = [found[row].split.curves[location] for row in mine]
    energies = [found[row].energy for row in mine]
    keys = plan.keys.masked(kept)
    if plan.options.method == "solve":
        return Part(location, mine, _with_intervals(recording, location, [found[row] for row in mine], keys))
    if plan.options.sliced:
        edges = [slices.edges(plan.options, recording.clock, energy) for energy in energies]
        return Part(location, mine, *slices.cut(recording.spans.spans(location), against, edges, keys))
    if not plan.options.statistics:
        return Part(location, mine, recording.spans.fold(location, against, keys))
    whole = [shares.alone(energy, [location], False).curves[location] for energy in energies]
    fold = recording.spans.fold(location, [*against, *whole], keys)
    about = statistics.of_rows(recording.spans.spans(location), energies, keys, fold)
    return Part(location, mine, _first(fold, len(mine)), statistics=about)


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


def _first(fold: Fold, curves: int) -> Fold:
    """A fold without the curves behind the first few."""
    names = ("self_covered", "total_covered", "self_value", "total_value")
    cut = {name: getattr(fold, name)[:curves] for name in (*names, *BOUNDS) if getattr(fold, name) is not None}
    return replace(fold, **cut)


def _book(row: int, found: DeviceCurves) -> Book:
    energy = found.energy
    times, idle = energy.times, found.split.idle
    ends = (int(times[0]), int(times[-1])) if len(times) else ()
    windows = len(energy.windows[0]) - 1 if energy.bounded else 0
    return Book(row, energy.measured, idle, energy.unit, ends, energy.bounded, energy.problems, windows)
