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
from ..model import Fold, Intervals, Problem, Recording
from ..model.spans import BOUNDS
from . import load as loads
from . import shares, slices, statistics
from .keys import FrameKeys, frame_keys
from .options import Options
from .select import Source, keep, sources

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
    times: npt.NDArray[np.int64]
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


def asked(plan: Plan, group: Sequence[int]) -> list[int]:
    """The locations whose busy intervals a group's curves need: the users of devices that have several."""
    crowded = [row for row in group if _needs_busy(plan, row) and len(plan.sources[row].signal) > 1]
    return users(plan, crowded)


def users(plan: Plan, group: Sequence[int]) -> list[int]:
    """The locations of a group, in order."""
    return sorted({user for row in group for user in plan.sources[row].users})


def busy(
    recording: Recording, plan: Plan, group: Sequence[int], locations: Sequence[int], each: Map[Any, Any] = map
) -> dict[int, Intervals]:
    """When each of these locations was inside a span that counts for the group."""
    mask = masks(recording, plan.sources[group[0]].of)
    found = each(lambda location: recording.spans.busy(location, mask(location)), locations)
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
    energies = {row: _curve(recording, plan, row) for row in group}
    return {
        row: DeviceCurves(plan.sources[row], energies[row], _split(recording, plan, row, energies[row], when))
        for row in group
    }


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


def _curve(recording: Recording, plan: Plan, row: int) -> Energy:
    whole = energy(plan.sources[row].signal, recording.clock, plan.options.integrate)
    return whole.between(plan.begin, plan.end)


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
    if plan.options.sliced:
        edges = [slices.edges(plan.options, recording.clock, energy) for energy in energies]
        return Part(location, mine, *slices.cut(recording.spans.spans(location), against, edges, keys))
    if not plan.options.statistics:
        return Part(location, mine, recording.spans.fold(location, against, keys))
    whole = [shares.alone(energy, [location], False).curves[location] for energy in energies]
    fold = recording.spans.fold(location, [*against, *whole], keys)
    about = statistics.of_rows(recording.spans.spans(location), energies, keys, fold)
    return Part(location, mine, _first(fold, len(mine)), statistics=about)


def _first(fold: Fold, curves: int) -> Fold:
    """A fold without the curves behind the first few."""
    names = ("self_covered", "total_covered", "self_value", "total_value")
    cut = {name: getattr(fold, name)[:curves] for name in (*names, *BOUNDS) if getattr(fold, name) is not None}
    return replace(fold, **cut)


def _book(row: int, found: DeviceCurves) -> Book:
    energy = found.energy
    windows = len(energy.windows[0]) - 1 if energy.bounded else 0
    books = (
        row,
        energy.measured,
        found.split.idle,
        energy.unit,
        energy.times,
        energy.bounded,
        energy.problems,
        windows,
    )
    return Book(*books)
