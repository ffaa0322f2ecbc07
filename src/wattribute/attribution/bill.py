"""Division of a device's energy: the command's part, other processes' part, static energy.

Between two readings a device used ΔE. static = min(floor × Δt, ΔE), dynamic = ΔE − static. Of the dynamic part the
command gets C/(C + O), where C and O are the CPU seconds (of a GPU: the busy time) that the command and other processes
used in between; inside the interval it falls where the command's CPU time falls, so that a sleeping function gets
none. Static energy follows ``Question.static``. ``divide`` does this to a curve; what is the command's is then shared
between its threads and streams as always, and the rest belongs to separate rows: ``with_rows`` gives the recording
a location for *other processes* and one for *static*, so that every grouping, output and engine treats them as any row.

The range allows programs to differ by MAX_EFFICIENCY_RATIO in joules per CPU second, and by more where the load changes
between two looks at the clocks: power is concave over load, and which joules were used at which load is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..alignment.energy import Energy
from ..model import (
    Curve,
    Device,
    Fold,
    Frames,
    Intervals,
    Keys,
    Launches,
    Locations,
    Problem,
    Processes,
    Question,
    Recording,
    Signal,
    SpanRows,
    Spans,
    SpanSource,
    SpanTable,
)
from ..model.constants import COMMAND_CPU_TIME, COMMAND_SHARE, COMMAND_SLICES, CPU_TIME, OTHERS, OTHERS_CPU_TIME, STATIC
from ..model.spans import launches_of
from .floors import REST, Floor, floor_of, utilisation_of

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# programs differ by up to this factor in joules per CPU second (vector code against waiting for memory)
MAX_EFFICIENCY_RATIO = 2.0
# of CPU time between two looks: the kernel counts in ticks, and looks are a quarter second apart
CLOCK_ERROR_RATIO = 1.05
TICK_S = 0.01  # in which the kernel counts: so much of others' may stand in the look before or after
MAX_LOAD_RATIO = 4.0  # between neighbouring looks; joules per CPU second change with the root of it
KIND = "others"  # of the locations that are added
COMMAND = "command"


@dataclass(frozen=True)
class CommandUsage:
    """What the command and other processes used of a device: CPU seconds, or busy seconds of a GPU, up to each time."""

    times: Ints
    own: Floats
    others: Floats
    reserved: float = 1.0  # part of the machine that is reserved for the command
    cores: float = 0.0  # that can be busy at once; 0: not known
    is_card: bool = False  # a GPU, of which the command has a part whoever works …
    card_parts: tuple[Ints, Floats] | None = None  # … up to each time, where the driver tells it
    looks: Ints | None = None  # times at which the clocks were read; None: all of ``times``

    @property
    def is_part_known(self) -> bool:
        """Whether the command's part of what it shares with others is known: of a card, or by the rule of CPUs."""
        return not self.is_card or self.card_parts is not None or not self.others[-1]

    def between(self, times: Ints) -> tuple[Floats, Floats]:
        """What each used from each of these times to the next."""
        return tuple(np.diff(np.interp(times, self.times, column)) for column in (self.own, self.others))  # type: ignore[return-value]

    @cached_property
    def misplaced(self) -> Floats:
        """Seconds of others that may be counted in another look, up to each time; no more than looks around counted."""
        if self.looks is None or len(self.looks) < 3:
            return np.zeros(len(self.times))
        spent = np.maximum(self.between(self.looks)[1], 0.0)
        around = np.maximum(spent, np.maximum(np.append(0.0, spent[:-1]), np.append(spent[1:], 0.0)))
        ticks: Floats = np.interp(self.times, self.looks, _running(np.minimum(around, TICK_S)))
        return ticks

    def efficiency_ratio(self, times: Ints) -> Floats:
        """By how much joules per CPU second may differ from each of these times to the next."""
        looks = self.times if self.looks is None else self.looks
        if len(looks) < 3:
            return np.full(len(times) - 1, MAX_EFFICIENCY_RATIO)
        load = np.sum(self.between(looks), axis=0) / np.maximum(np.diff(looks), 1)
        around = np.stack([np.append(load[:1], load[:-1]), load, np.append(load[1:], load[-1:])])
        highest, lowest = around.max(axis=0), around.min(axis=0)
        change = np.divide(highest, lowest, out=np.full(len(load), MAX_LOAD_RATIO), where=lowest > 0)
        change = np.where(highest > 0, np.minimum(change, MAX_LOAD_RATIO), 1.0)
        ratio = MAX_EFFICIENCY_RATIO * CLOCK_ERROR_RATIO * np.sqrt(change)
        first = np.clip(np.searchsorted(looks, times[:-1], side="right") - 1, 0, len(load) - 1)
        last = np.clip(np.searchsorted(looks, times[1:], side="left"), first + 1, len(load))
        greatest: Floats = np.maximum.reduceat(np.append(ratio, 0.0), np.stack([first, last], axis=1).ravel())[::2]
        return greatest


class AddedRows(NamedTuple):
    """The locations that are added for a host, −1 where one is not needed."""

    others: int
    static: int


@dataclass(frozen=True)
class Division:
    """How a device is divided: the floor, the usage, the rule of static energy, and the rows for what is not own."""

    floor: Floor | None = None
    usage: CommandUsage | None = None
    rule: str = "mine"
    added: AddedRows | None = None
    is_part_known: bool = True  # else static energy, apart, may be anyone's: ranges have it

    def static_reason(self, device: Device) -> str | None:
        """Why static energy is in no program's sum, if the driver does not tell whose it is."""
        if self.is_part_known or self.floor is None or not self.floor.high_w:
            return None
        return f"{device.name}: the driver does not tell who is on the card, so its static energy is a row of its own"


class Portions(NamedTuple):
    """A device's curve in parts; each has the static energy in it as (likely, low, high), see ``Floor.powers_w``."""

    own: Energy
    rest: Mapping[int, Energy]  # added location → what is its
    own_static: tuple[Energy, ...] = ()
    rest_static: Mapping[int, tuple[Energy, ...]] = {}
    limits: tuple[Energy, ...] = ()  # of a gauge or an estimate: the least and the most of what its readings say
    rest_limits: Mapping[int, tuple[Energy, ...]] = {}


def divide(curve: Energy, how: Division, ticks_per_s: int) -> Portions:
    """Divide a curve into parts whose sum is the curve."""
    if (how.floor is None and how.usage is None) or len(curve.times) < 2:
        return Portions(curve, {})
    rises = np.diff(curve.values)
    known = how.floor is not None and how.floor.likely_w is not None
    each = [] if how.floor is None else [np.diff(one.values) for one in statics(curve, how.floor, ticks_per_s)]
    static = each[0] if known else np.zeros(len(rises))
    if how.usage is None:
        part = low = high = np.ones(len(rises))
        times, inside = curve.times, np.ones(len(rises))
        owner = np.arange(len(rises))
        mine = np.full(len(rises), 1.0 if how.rule != "apart" else 0.0)
    else:
        part, low, high = _parts(how.usage, curve)
        times, inside, owner = _placed(how.usage, curve)
        mine = _static_part(how, curve, ticks_per_s)
    lasting = np.diff(times) / np.maximum(np.diff(curve.times), 1)[owner]  # of each reading interval, in time
    own_static, own_dynamic = static * mine, (rises - static) * part
    own_rises = own_dynamic[owner] * inside + own_static[owner] * lasting
    own = replace(curve, times=times, values=_running(own_rises))
    least, most = _extremes(curve, how, each, known, mine, low, high)
    is_divided = how.usage is not None or (known and how.rule == "apart")
    limits: tuple[Energy, ...] = ()
    if is_divided and curve.bounded:
        own = replace(own, least=least, most=most, window_edges=curve.windows[0])
        if len(curve.windows[0]) != len(curve.times):  # fine windows of a gauge's clock
            own = replace(own, bounded=False)
    elif is_divided:
        mean = np.bincount(owner, own_rises, len(rises)).astype(np.float64)
        limits = tuple(_scaled(own, own_rises, end, mean, owner, lasting) for end in (least, most))
    rest: dict[int, Energy] = {}
    rest_static: dict[int, tuple[Energy, ...]] = {}
    rest_limits: dict[int, tuple[Energy, ...]] = {}
    none = np.zeros(len(rises))
    apart = [one if how.rule == "apart" and known else none for one in each or [none]]  # likely, low, high
    is_no_ones = how.rule == "apart" and each and how.is_part_known  # whether a row shows it or not
    unsure = each if is_no_ones else [none]
    if how.added is not None and how.usage is not None:
        others = rises - own_dynamic - own_static - apart[0]
        ends = curve.least - most - np.max(unsure, axis=0), curve.most - least - np.min(unsure, axis=0)
        rest[how.added.others] = _part_of(curve, others, *ends)
        rest_limits[how.added.others] = tuple(_part_of(curve, np.maximum(end, 0.0)) for end in ends)
        rest_static[how.added.others] = tuple(
            _part_of(curve, one - one * mine - a) for one, a in zip(each, apart, strict=bool(each))
        )
    if how.added is not None and how.rule == "apart" and known:
        ends = np.min(apart, axis=0), np.max(apart, axis=0)
        rest[how.added.static] = _part_of(curve, apart[0], *ends)
        rest_limits[how.added.static] = tuple(_part_of(curve, end) for end in ends)
        rest_static[how.added.static] = tuple(_part_of(curve, one) for one in apart)
    spread = (replace(own, values=_running((one * mine)[owner] * lasting), bounded=False) for one in each)
    return Portions(own, rest, tuple(spread), rest_static, limits, rest_limits if limits else {})


def statics(curve: Energy, floor: Floor, ticks_per_s: int) -> list[Energy]:
    """∫ min(floor, P) dt of a curve, for each of the floor's powers."""
    rises, seconds = np.diff(curve.values), np.diff(curve.times) / ticks_per_s
    each = (np.clip(np.minimum(power * seconds, rises), 0.0, None) for power in floor.powers_w)
    return [replace(curve, values=_running(one), bounded=False) for one in each]


def _scaled(own: Energy, rises: Floats, end: Floats, mean: Floats, owner: Ints, lasting: Floats) -> Energy:
    """The command's curve with ``end`` as its part of each reading interval, used at the same moments inside it."""
    by = np.divide(end, mean, out=np.zeros(len(end)), where=mean > 0)[owner]
    return replace(own, values=_running(np.where(mean[owner] > 0, rises * by, end[owner] * lasting)))


def _part_of(curve: Energy, rises: Floats, least: Floats | None = None, most: Floats | None = None) -> Energy:
    """A part of a curve with the same knots; bounded where the curve is and limits are given."""
    if least is None or most is None:
        return replace(curve, values=_running(rises), bounded=False)
    return replace(curve, values=_running(rises), least=np.maximum(least, 0.0), most=np.maximum(most, 0.0))


def _running(rises: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(rises)])


def _ratio(own: Floats, others: Floats) -> Floats:
    """own / (own + others); 0 where neither used any: what was burned then was not for the command."""
    whole = own + others
    return np.divide(own, whole, out=np.zeros(len(own)), where=whole > 0)


def _parts(usage: CommandUsage, curve: Energy) -> tuple[Floats, Floats, Floats]:
    """The command's part of each reading interval, and the least and the most it can be.

    With a latency a reading also tells of the time before its interval: both are looked at for the limits, and where
    next to nothing ran in the interval itself, what was used was used before it.
    """
    own, others = usage.between(curve.times)
    part, ratio = _ratio(own, others), usage.efficiency_ratio(curve.times)
    misplaced = np.diff(np.interp(curve.times, usage.times, usage.misplaced))
    low, high = _ratio(own, ratio * (others + misplaced)), _ratio(ratio * own, np.maximum(others - misplaced, 0.0))
    if reach := max(curve.reach_ticks, curve.latency_ticks):
        early = np.stack([curve.times[:-1] - reach, curve.times[1:]])
        own_early, others_early = (
            np.interp(early[1], usage.times, column) - np.interp(early[0], usage.times, column)
            for column in (usage.own, usage.others)
        )
        lengths = np.diff(curve.times), np.diff(early, axis=0)[0]
        is_late = (own + others) * lengths[1] < REST * (own_early + others_early) * lengths[0]
        part = np.where(is_late, _ratio(own_early, others_early), part)
        low = np.minimum(low, _ratio(own_early, ratio * others_early))
        high = np.maximum(high, _ratio(ratio * own_early, others_early))
    return part, low, high


def _placed(usage: CommandUsage, curve: Energy) -> tuple[Ints, Floats, Ints]:
    """Times at which the command's CPU time changes pace, what part of its reading interval each interval has of that
    CPU time, and which reading interval that is."""
    first, last = int(curve.times[0]), int(curve.times[-1])
    inner = usage.times[(usage.times > first) & (usage.times < last)]
    times = np.union1d(curve.times, inner)
    owner = np.searchsorted(curve.times, times[:-1], side="right") - 1
    spent, _ = usage.between(times)
    spent = np.maximum(spent, 0.0)
    whole = np.bincount(owner, spent, len(curve.times) - 1)[owner]
    lasting = np.diff(times) / np.diff(curve.times)[owner]
    return times, np.divide(spent, whole, out=lasting, where=whole > 0), owner


def _static_part(how: Division, curve: Energy, ticks_per_s: int) -> Floats:
    """The command's part of static energy in each reading interval."""
    usage, count = how.usage, len(curve.times) - 1
    assert usage is not None
    middle = (curve.times[1:] + curve.times[:-1]) / 2
    if how.rule in ("even", "reserved") and usage.card_parts is not None:
        times, parts = usage.card_parts
        return parts[np.minimum(np.searchsorted(times, middle), len(parts) - 1)]
    fixed = {"apart": 0.0, "mine": 1.0, "reserved": usage.reserved}
    if how.rule in fixed:
        return np.full(count, fixed[how.rule])
    # even: two parties, while the other one does more than what a machine at rest does
    reach = np.maximum(np.diff(curve.times), ticks_per_s)  # the kernel counts in ticks: look at a second at least
    ends = (np.interp(middle + sign * reach / 2, usage.times, usage.others) for sign in (-1, 1))
    before, after = ends
    works = after - before > REST * usage.cores * reach / ticks_per_s
    return np.where(works, 0.5, 1.0)


def _extremes(
    curve: Energy,
    how: Division,
    statics: Sequence[Floats],
    known: bool,
    mine: Floats,
    low: Floats,
    high: Floats,
) -> tuple[Floats, Floats]:
    """The least and the most of each window of the curve that can be the command's."""
    if how.usage is None and (not known or how.rule != "apart"):
        return curve.least, curve.most
    floors = statics if known else [np.zeros(len(low)), *statics]
    at_most = mine if how.is_part_known else np.ones(len(mine))
    least = np.min([static * mine + np.maximum(curve.least - static, 0.0) * low for static in floors], axis=0)
    most = np.max([static * at_most + np.maximum(curve.most - static, 0.0) * high for static in floors], axis=0)
    return least, most


# --------------------------------------------------------------------------------------------------- usage of devices


def division_of(recording: Recording, device: Device, question: Question, whole: Callable[[], Energy]) -> Division:
    """Decide how a device is divided, from question and recording; ``whole`` gives its curve where it is needed."""
    use = utilisation_of(recording, device)
    floor = floor_of(recording, device, question.floor, whole() if use is not None else None, use)
    usage = usage_of(recording, device) if scope_of(recording, question) == "process" else None
    rule = question.static or ("mine" if usage is None else "even")
    if usage is not None and not usage.is_part_known and rule in ("even", "reserved"):
        return Division(floor, usage, "apart", is_part_known=False)
    return Division(floor, usage, rule)


def scope_of(recording: Recording, question: Question) -> str:
    """The scope of rows: the question's, else the recording's."""
    return question.scope or str(recording.metadata.get("scope") or "machine")


class Bill(NamedTuple):
    """Joules of a device, or of all of them: the command's, other processes', static; NaN where one is not known.

    ``own_j`` is the command's with its part of static energy, by the rule that was asked for.
    """

    command_j: float
    others_j: float
    static_j: float
    own_j: float
    own_low_j: float = np.nan
    own_high_j: float = np.nan

    def shares(self, measured_j: float) -> tuple[float, float, float]:
        """The command's part of what was measured: likely, at least, at most."""
        likely, low, high = (joules / measured_j for joules in (self.own_j, self.own_low_j, self.own_high_j))
        return likely, min(low, likely), min(max(high, likely), 1.0)


def bill_of(curve: Energy, how: Division, ticks_per_s: int) -> Bill:
    """The bill of a device over all of a curve: static apart, and what is the command's by its own rule."""
    parts = bill_curves(curve, how, ticks_per_s)
    command, others, static = (parts[name].measured if name in parts else np.nan for name in (COMMAND, OTHERS, STATIC))
    del parts  # before the next ones: the curves of a day are large
    own, _, _, _, ends, _ = divide(curve, replace(how, added=AddedRows(0, 1)), ticks_per_s)
    limits = (np.nan, np.nan)
    if how.usage is not None and ends:  # of a gauge or an estimate
        limits = ends[0].measured, ends[1].measured
    elif how.usage is not None and len(own.least):
        limits = float(own.least.sum()), float(own.most.sum())
    return Bill(command, others, static, own.measured, *limits)


def bill_curves(curve: Energy, how: Division, ticks_per_s: int) -> dict[str, Energy]:
    """The parts of a curve, static apart: COMMAND, and OTHERS and STATIC where they are known."""
    parts = divide(curve, replace(how, rule="apart", added=AddedRows(0, 1)), ticks_per_s)
    rest = {name: parts.rest[at] for at, name in enumerate((OTHERS, STATIC)) if at in parts.rest}
    return {COMMAND: parts.own, **rest}


def can_split(recording: Recording) -> bool:
    """Whether a recording says what other processes used."""
    return any(signal.name in (OTHERS_CPU_TIME, COMMAND_SHARE) for signal in recording.signals)


def usage_of(recording: Recording, device: Device) -> CommandUsage | None:
    """Usage of a device by the command and by others; None where the recording does not have it."""
    mine = [signal for signal in recording.signals_on(device.host) if len(signal)]
    if device.kind == "gpu":
        shares = [signal for signal in mine if signal.name == COMMAND_SHARE and signal.device == device.name]
        if not shares:
            return None
        usage = _of_share(shares[0], recording)
        slices = [signal for signal in mine if signal.name == COMMAND_SLICES and signal.device == device.name]
        if not slices:
            return usage
        parts = np.clip(slices[0].values / 100, 0.0, 1.0)
        if device.properties.get("mig"):  # instances stay the command's, whoever is on them
            parts = np.full(len(parts), parts.max())
        return replace(usage, card_parts=(slices[0].times, parts))
    others = _clocks(mine, OTHERS_CPU_TIME, device)
    if not others:
        return None
    threads = [signal for signal in mine if signal.name == CPU_TIME and signal.location >= 0 and len(signal) > 1]
    users = {at for link in recording.links_of(device) for at in link.locations}
    threads = [signal for signal in threads if signal.location in users] or threads
    command = _clocks(mine, COMMAND_CPU_TIME, device)
    own = _sum(command or threads)
    if command and threads:
        own = _refined(own, _sum(threads))
    spent = _sum(others)
    times = np.union1d(own[0], spent[0])
    reserved = recording.metadata.get("reserved")
    part = float(reserved) if isinstance(reserved, int | float) else 1.0
    cores = recording.metadata.get("cores")
    count = float(cores) if isinstance(cores, int | float) else 0.0
    own_s, others_s = np.interp(times, *own), np.interp(times, *spent)
    return CommandUsage(times, own_s, others_s, min(max(part, 0.0), 1.0), count, looks=spent[0])


def undivided_reason(device: Device) -> str:
    """Why all of a device is counted in the scope of a process."""
    if device.properties.get("mig"):
        reason = "its counter is that of all its MIG instances, and the driver does not tell how busy each of them is"
    else:
        reason = "who used it is not known"
    return f"{device.name}: {reason}, so all of it is counted"


def _clocks(signals: Sequence[Signal], name: str, device: Device) -> list[Signal]:
    """The clocks of this name: those of the device's own package where there are some, else the whole machine's."""
    named = [signal for signal in signals if signal.name == name]
    package = [signal for signal in named if signal.device and signal.device == package_of(device)]
    return package or named


def package_of(device: Device) -> str:
    """The package that a device is or belongs to, as clocks of packages are named."""
    word = device.properties.get("package", "")
    if word:
        return f"package {word}"
    digits = device.name.rpartition(" ")[2] if device.kind in ("cpu", "dram") else ""
    return f"package {digits}" if digits.isdigit() else ""


def _of_share(signal: Signal, recording: Recording) -> CommandUsage:
    """A GPU's busy time from the command's part of it, each reading telling of the time before it."""
    shares = np.clip(np.asarray(signal.values, np.float64) * float(signal.scale) / 100, 0.0, 1.0)
    before = min(0, int(signal.times[0]) - 1)
    times = np.concatenate([[before], signal.times, [max(recording.clock.length_ticks, int(signal.times[-1]) + 1)]])
    held = np.append(shares, shares[-1])
    lasted = np.diff(times) / recording.clock.ticks_per_s
    own, others = (_running(part * lasted) for part in (held, 1 - held))
    return CommandUsage(times.astype(np.int64), own, others, cores=1.0, is_card=True)


def _sum(signals: Sequence[Signal]) -> tuple[Ints, Floats]:
    """Seconds of several clocks together, from 0."""
    if not signals:
        return np.zeros(1, np.int64), np.zeros(1)
    times = np.unique(np.concatenate([signal.times for signal in signals]))
    whole = np.zeros(len(times))
    for signal in signals:
        values = np.asarray(signal.values, np.float64) * float(signal.scale)
        whole += np.interp(times, signal.times, np.maximum.accumulate(values)) - values[0]
    return times, whole


def _refined(command: tuple[Ints, Floats], threads: tuple[Ints, Floats]) -> tuple[Ints, Floats]:
    """The command's seconds, placed inside each of their intervals where its threads spent theirs.

    Threads that are not seen (of native libraries, of children) are taken to work when the others do; where those do
    not work at all, all the time.
    """
    times = np.union1d(command[0], threads[0])
    owner = np.clip(np.searchsorted(command[0], times[:-1], side="right") - 1, 0, max(len(command[0]) - 2, 0))
    spent = np.maximum(np.diff(np.interp(times, *threads)), 0.0)
    lasted = np.diff(times).astype(np.float64)
    count = max(len(command[0]) - 1, 1)
    whole, length = (np.bincount(owner, column, count)[owner] for column in (spent, lasted))
    even = np.divide(lasted, length, out=np.zeros(len(lasted)), where=length > 0)
    part = np.divide(spent, whole, out=even, where=whole > 0)
    rises = np.diff(command[1]) if len(command[1]) > 1 else np.zeros(1)
    outside = (times[:-1] < command[0][0]) | (times[:-1] >= command[0][-1])
    return times, _running(np.where(outside, 0.0, rises[owner] * part))


# ----------------------------------------------------------------------------------------------------------- added rows


@dataclass(frozen=True)
class AddedSpans:
    """A span source with one long span each for locations that are added to it."""

    inner: SpanSource
    added: Mapping[int, Spans]

    def _of(self, location: int) -> SpanSource:
        return SpanTable(self.added) if location in self.added else self.inner

    def locations(self) -> Sequence[int]:
        return [*self.inner.locations(), *self.added]

    def spans(self, location: int) -> Spans:
        return self._of(location).spans(location)

    def busy(self, location: int, keep: npt.NDArray[np.bool_] | None = None) -> Intervals:
        return self._of(location).busy(location, keep)

    def fold(self, location: int, curves: Sequence[Curve], keys: Keys) -> Fold:
        return self._of(location).fold(location, curves, keys)

    def rows(
        self, location: int, curves: Sequence[Curve], keys: Keys, most: int, take: Callable[[SpanRows], None]
    ) -> None:
        self._of(location).rows(location, curves, keys, most, take)

    def launches(self) -> Launches | None:
        return launches_of(self.inner)

    def problems(self) -> Sequence[Problem]:
        return self.inner.problems()


def with_rows(
    recording: Recording, hosts: Mapping[str, Collection[str]], begin: int | None, end: int | None
) -> tuple[Recording, dict[str, AddedRows]]:
    """The recording with locations OTHERS and STATIC, those that each host needs."""
    frames, processes, locations = recording.frames.rows(), recording.processes.rows(), recording.locations.rows()
    extents = [signal.extent for signal in recording.signals if len(signal)]
    is_gauged = any(signal.kind == "gauge" and signal.unit == "W" for signal in recording.signals)
    margin = recording.clock.ticks_per_s if is_gauged else 0  # a gauge's first reading speaks of the time before it
    first = min([0, *(one[0] for one in extents)]) - margin if begin is None else begin
    last = max([recording.clock.length_ticks, *(one[1] for one in extents)]) + margin if end is None else end
    zero = np.zeros(1, np.int64)
    added: dict[int, Spans] = {}
    rows: dict[str, AddedRows] = {}
    nodes = {recording.node_host(at): at for at in reversed(range(len(recording.nodes)))}
    for host, needed in hosts.items():
        node = nodes.get(host, -1)
        numbers = {OTHERS: -1, STATIC: -1}
        for name in (name for name in numbers if name in needed):
            frame, location = np.full(1, len(frames), np.int32), len(locations)
            frames.append((name, "system", name, "", 0))
            processes.append((2**63 + len(processes), name, "process", node, -1))
            locations.append((2**63 + location, name, KIND, len(processes) - 1, 2))
            added[location] = Spans(
                zero + first, zero + last, frame, zero - 1, zero.astype(np.int32), zero.astype(bool)
            )
            numbers[name] = location
        rows[host] = AddedRows(*numbers.values())
    grown = replace(
        recording,
        frames=Frames.of(frames),
        processes=Processes.of(processes),
        locations=Locations.of(locations),
        spans=AddedSpans(recording.spans, added),
    )
    return grown, rows
