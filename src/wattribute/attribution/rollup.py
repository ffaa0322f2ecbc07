"""Roll-up of parts into tables: sums are exact, so that neither the order nor the place of adding changes a bit.

``reduced`` adds up the lines of some groups (one per location, device and row that was ever entered) to one line per
row, wherever the groups were solved; ``tables`` merges what came back and makes the tables.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ..errors import NoDataError
from ..model import Paths, Problem, Recording, counts
from ..model.coverage import coverage, is_partial
from . import exact, key_columns, row_selection
from .frame_keys import FrameKeys
from .join import Book, GroupResult, Part, Plan
from .key_columns import grouped, numbered
from .ranges import ENDS, RANGES, STATICS
from .select import DeviceView

if TYPE_CHECKING:
    import polars as pl

T = TypeVar("T")
Ints = npt.NDArray[np.int64]
_INTEGER_COLUMNS = ("calls", "self_ticks", "total_ticks", "self_covered", "total_covered")
_SELF = (
    "self_ticks",
    "self_covered",
    "self",
    *(name for name in (*RANGES, *STATICS) if name.startswith("self")),
)  # each has its total
_STATISTICS_COLUMNS = ("whole", "least", "most", "readings")
_WORK_COLUMNS = ("self_count", "total_count")
_BLOCK_ROWS = 1 << 18
MAX_PATH_FRAMES = 1000  # a row holds all frames of its path: those of a deep stack grow with the square of its depth


_SLICE_COLUMNS = ("slice", "begin", "end")
_KEY_COLUMNS = ("source", "location", "row", *_SLICE_COLUMNS)
_VALUE_COLUMNS = ("self", "total", *RANGES, *STATICS)
_BALANCE_TOLERANCE = 1e-9  # relative: of attributed + idle − measured
_ROUNDING_TOLERANCE = 1e-11  # relative: idle energy below it is rounding


class Grouping(NamedTuple):
    """Which devices and which locations fall into the same rows: each one's first like it, by their rows."""

    source: Ints
    location: Ints
    shown: npt.NDArray[np.bool_]  # locations that the question asks for
    counted: npt.NDArray[np.bool_]  # sources that rows count

    def of(self, sources: Sequence[int]) -> Grouping:
        """That of some sources, which get new numbers; rows keep the numbers of the whole plan."""
        at = np.array(sources, np.int64)
        return self._replace(source=self.source[at], counted=self.counted[at])


@dataclass(frozen=True)
class RowSums:
    """Sums of some groups: one line per row, the devices' own sums, and their books.

    ``sums`` are exact (components, see ``exact``), ``counts`` are integers, ``extremes`` are least and most.
    """

    keys: Mapping[str, Ints]  # _KEY_COLUMNS
    counts: Mapping[str, Ints]
    sums: Mapping[str, exact.Components]
    extremes: Mapping[str, Any]
    paths: Paths | None
    devices: Mapping[int, DeviceSums]
    books: Sequence[Book]
    left_out: tuple[float, ...] = ()  # what the rows that were not asked for received, the components of its sum
    too_long: int = 0  # call paths of more than MAX_PATH_FRAMES

    def __len__(self) -> int:
        return len(self.keys["row"])


class DeviceSums(NamedTuple):
    """What all users of a device have together; ``attributed`` are the components of an exact sum."""

    attributed: tuple[float, ...]
    ticks: int
    covered: int


def grouping(recording: Recording, plan: Plan) -> Grouping:
    """The devices and locations of a plan that share rows, by the keys that were asked for."""

    def alike(name: str, count: int) -> Ints:
        long = {key: np.zeros(count, np.int64) for key in _KEY_COLUMNS} | {name: np.arange(count)}
        root = Paths(np.zeros(1, np.int64), np.full(1, -1)) if plan.keys.by_path and len(recording.frames) else None
        if not plan.sources or not len(recording.locations) or not len(recording.frames):
            return np.arange(count)
        first, group = grouped([key.code for key in key_columns.key_columns(recording, plan, long, root)], count)
        return first[group]

    return Grouping(
        alike("source", len(plan.sources)),
        alike("location", len(recording.locations)),
        row_selection.location_mask(recording, plan.question),
        key_columns.counted_sources(plan),
    )


def reduced(plan: Plan, how: Grouping, solved: Iterable[GroupResult], numbers: Sequence[int] | None = None) -> RowSums:
    """The sums of whole groups. ``numbers`` are those of the plan's sources in the whole plan.

    Parts that nobody else holds (see ``drained``) are freed while their lines are built.
    """
    return collapsed(how, per_device(plan, how, solved), numbers)


def per_device(plan: Plan, how: Grouping, solved: Iterable[GroupResult]) -> RowSums:
    """The sums of some locations by device and row; those of a group's other locations can be merged with them."""
    parts, books = deque[Part](), list[Book]()
    for group_parts, group_books in solved:
        parts.extend(group_parts)
        books.extend(group_books)
        del group_parts
    used = sorted({source for part in parts for source in part.sources})
    is_alone = all(len(part.sources) <= 1 for part in parts)  # no location uses two devices
    long, paths, too_long = _long(plan, parts)
    count = len(plan.sources)
    ticks, covered = np.zeros(count, np.int64), np.zeros(count, np.int64)
    np.add.at(ticks, long["source"], long["self_ticks"])
    np.add.at(covered, long["source"], long["self_covered"])
    attributed = exact.sums([long["self"]], long["source"], count)
    own = {
        row: DeviceSums(tuple(float(part[row]) for part in attributed), int(ticks[row]), int(covered[row]))
        for row in used
    }
    shown = row_selection.chosen_lines(how.shown, plan.question, plan.keys, long, paths)
    counted = how.counted[long["source"]]
    left_out = _total(long["self"][counted & ~shown])
    if not (counted & shown).all():
        long = {name: column[counted & shown] for name, column in long.items()}
    place = how.location[long["location"]]
    keys = {name: long[name] for name in _KEY_COLUMNS} | {"location": place}
    # calls and times count once per location, however many devices of a row it uses: those of the first device,
    # all its lines, for equally named paths are several lines of one row
    once = np.broadcast_to(np.True_, len(place))
    if not is_alone:
        alike = [how.source[long["source"]], *(keys[name] for name in _KEY_COLUMNS[1:]), long["location"]]
        first, group = grouped(alike, len(place))
        once = long["source"] == long["source"][first][group]
    counts = {name: long[name] if once.all() else np.where(once, long[name], 0) for name in _INTEGER_COLUMNS}
    counts["every_covered"] = long["total_covered"]
    values = {name: [long[name]] for name in (*_VALUE_COLUMNS, "whole") if name in long}
    values |= {name: [np.where(once, long[name], 0.0)] for name in _WORK_COLUMNS if name in long}
    extremes: dict[str, Any] = {name: long[name] for name in ("least", "most") if name in long}
    if "readings" in long:
        counts["readings"] = long["readings"].astype(np.int64)
    return _summed(RowSums(keys, counts, values, extremes, paths, own, books, left_out, too_long))


def collapsed(how: Grouping, one: RowSums, numbers: Sequence[int] | None = None) -> RowSums:
    """The sums of whole groups by row, with what the devices of each row measured; in the whole plan's numbers."""
    most = {"most_used": np.zeros(len(how.source)), "hard_most_used": np.zeros(len(how.source))}
    for book in one.books:
        ends = (book.measured * (1 + book.gain_error),) * 2
        if book.range is not None:
            ends = book.range.high[0], book.range.hard_high[0]
        for column, end in zip(most.values(), ends, strict=True):
            column[book.source] = end if np.isfinite(end) else np.nan
    source = one.keys["source"]
    number = range(len(how.source)) if numbers is None else numbers
    whole = RowSums(
        {**one.keys, "source": _taken(how.source, source)},
        one.counts,
        {**one.sums, **{name: [_taken(column, source)] for name, column in most.items()}},
        one.extremes,
        one.paths,
        {number[row]: sums for row, sums in one.devices.items()},
        [book._replace(source=number[book.source]) for book in one.books],
        one.left_out,
        one.too_long,
    )
    return _summed(whole)


def _taken(values: npt.NDArray[Any], which: Ints) -> npt.NDArray[Any]:
    """Values by their places; without memory of their own where all are one."""
    one = values[which[:1]]
    return np.broadcast_to(one, len(which)) if len(which) and (which == which[0]).all() else values[which]


class _Columns(Mapping[str, T]):
    """Columns that are joined when they are asked for, so that only one of them is there twice."""

    def __init__(self, names: Iterable[str], make: Callable[[str], T]) -> None:
        self._names, self._make = list(names), make

    def __getitem__(self, name: str) -> T:
        return self._make(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def merged(frames: FrameKeys, some: Sequence[RowSums]) -> RowSums:
    """Sums of several kinds of groups, or of several parts of the same ones, as one."""
    if len(some) == 1:
        return some[0]
    trie = _Trie(frames) if any(one.paths is not None for one in some) else None
    keys: dict[str, list[Any]] = {name: [one.keys[name] for one in some] for name in _KEY_COLUMNS}
    if trie is not None:
        keys["row"] = [trie.add(one.paths)[0][one.keys["row"]] for one in some if one.paths is not None]
    devices: dict[int, DeviceSums] = {}
    for one in some:
        for row, sums in one.devices.items():
            devices[row] = _added(devices[row], sums) if row in devices else sums
    full = [one for one in some if len(one)] or some[:1]  # an empty one may lack columns

    def joined(columns: Iterable[Any]) -> Any:
        return np.concatenate(list(columns))

    def components(name: str) -> exact.Components:
        width = max(len(one.sums[name]) for one in full)
        none = [np.zeros(len(one)) for one in full]
        return [
            joined(one.sums[name][i] if i < len(one.sums[name]) else zero for one, zero in zip(full, none, strict=True))
            for i in range(width)
        ]

    return _summed(
        RowSums(
            {name: joined(columns).astype(np.int64) for name, columns in keys.items()},
            _Columns(full[0].counts, lambda name: joined(one.counts[name] for one in full)),
            _Columns(full[0].sums, components),
            _Columns(full[0].extremes, lambda name: joined(one.extremes[name] for one in full)),
            None if trie is None else trie.paths(),
            devices,
            [book for one in some for book in one.books],
            _total([part for one in some for part in one.left_out]),
            sum(one.too_long for one in some),
        )
    )


def unbalanced(plan: Plan, one: RowSums) -> str:
    """The first device whose attributed and idle energy are not what was measured, or nothing."""
    for book in one.books:
        own = one.devices.get(book.source, DeviceSums((0.0,), 0, 0)).attributed[0]
        if book.idle is None or plan.question.share == "full":
            continue  # idle is what is left, or users count double
        if not abs(own + book.idle - book.measured) <= _BALANCE_TOLERANCE * max(
            abs(book.measured), abs(own), abs(book.idle)
        ):
            device = plan.sources[book.source].device.name
            return f"{device}: {own!r} attributed and {book.idle!r} idle are not {book.measured!r} measured"
    return ""


def _added(one: DeviceSums, other: DeviceSums) -> DeviceSums:
    attributed = _total([*one.attributed, *other.attributed])
    return DeviceSums(attributed, one.ticks + other.ticks, one.covered + other.covered)


def _total(addends: Any) -> tuple[float, ...]:
    """The components of the sum of some numbers."""
    column = np.asarray(addends, np.float64)
    return tuple(float(part[0]) for part in exact.sums([column], np.zeros(len(column), np.int64), 1))


def _summed(one: RowSums) -> RowSums:
    """Lines with the same keys added up; in no order where all of them differ."""
    first, group = grouped([one.keys[name] for name in _KEY_COLUMNS], len(one))
    size = len(first)
    if not one.extremes and size == len(one):  # nothing is copied
        return replace(one, counts=dict(one.counts), sums=dict(one.sums), extremes={})

    def counted(column: Ints) -> Ints:
        sums = np.zeros(size, np.int64)
        np.add.at(sums, group, column)
        return sums

    extremes = {}
    for name, column in one.extremes.items():
        extremes[name] = np.full(size, np.inf if name == "least" else -np.inf)
        (np.fmin if name == "least" else np.fmax).at(extremes[name], group, column)
    return RowSums(
        {name: column[first] for name, column in one.keys.items()},
        {name: counted(column) for name, column in one.counts.items()},
        {name: exact.sums(components, group, size) for name, components in one.sums.items()},
        extremes,
        one.paths,
        one.devices,
        one.books,
        one.left_out,
        one.too_long,
    )


class AnswerTables(NamedTuple):
    """The tables and figures of an Attribution."""

    devices: pl.DataFrame
    rows: pl.DataFrame
    problems: list[Problem]
    left_out: float  # what the rows that were not asked for received
    unit: str


def tables(recording: Recording, plan: Plan, solved: Iterable[GroupResult | RowSums]) -> AnswerTables:
    """Add up all parts into the tables of an answer. Sums that nobody else holds are freed on the way."""
    plain, some = deque[GroupResult](), list[RowSums]()
    for one in solved:
        if isinstance(one, GroupResult):
            plain.append(one)
        else:
            some.append(one)
        del one
    if plain or not some:
        some.append(reduced(plan, grouping(recording, plan), drained(plain)))
    whole = merged(plan.keys, some)
    del some
    books = sorted(whole.books, key=lambda book: book.source)
    devices, problems = _devices(recording, plan, books, whole.devices)
    problems += row_selection.unmatched_words(recording, plan.question)
    if whole.too_long:
        text = f"{whole.too_long:,} call paths have more than {MAX_PATH_FRAMES:,} frames"
        problems.append(Problem("deep", f"{text}; they count in the path of the first {MAX_PATH_FRAMES:,}"))
    left_out = (*whole.left_out, 0.0)[0]
    sums: dict[str, Any] = {name: exact.rounded(columns) for name, columns in whole.sums.items()}
    sums |= {**whole.counts, **whole.extremes}
    whole = replace(whole, counts={}, sums={}, extremes={})
    return AnswerTables(devices, _rows(recording, plan, books, whole, sums), problems, left_out, unit_of(books))


def drained(queue: deque[T]) -> Iterator[T]:
    """The items of a queue, which holds them no more."""
    while queue:
        yield queue.popleft()


def _long(plan: Plan, parts: deque[Part]) -> tuple[dict[str, Any], Paths | None, int]:
    """One line per (location, device, row) that was ever entered, in location order; how many paths are too long.

    ``parts`` is empty afterwards.

    A path of MAX_PATH_FRAMES has no lines below it: what was used there is its own.
    """
    trie = _Trie(plan.keys) if plan.keys.by_path else None
    is_sliced = any(part.slices is not None for part in parts)
    blocks = [_block(block, trie, plan.has_floors, is_sliced) for block in _blocks(parts)]
    there = {name for block in blocks for name in block}
    static = STATICS if plan.has_floors else ()
    names = (*_KEY_COLUMNS, *_INTEGER_COLUMNS, "self", "total", *RANGES, *static, *_STATISTICS_COLUMNS, *_WORK_COLUMNS)
    long = {name: _joined([block.pop(name) for block in blocks if name in block]) for name in names}
    for name in (*_KEY_COLUMNS, *_INTEGER_COLUMNS):
        long[name] = long[name].astype(np.int64, copy=False)
    for which in ("self", "total"):  # as a rule readings cover all: then one column does for both
        if np.array_equal(long[f"{which}_covered"], long[f"{which}_ticks"]):
            long[f"{which}_covered"] = long[f"{which}_ticks"]
    if not is_sliced:
        long |= dict.fromkeys(_SLICE_COLUMNS, np.broadcast_to(np.int64(0), len(long["row"])))
    for optional in (_STATISTICS_COLUMNS, _WORK_COLUMNS):
        if optional[0] not in there:
            long = {name: column for name, column in long.items() if name not in optional}
    return long, *((None, 0) if trie is None else (trie.paths(), trie.too_long))


def _blocks(parts: deque[Part]) -> Iterator[list[Part]]:
    """Group parts whose lines are built together: many small ones, or one that is large or cut into slices of time."""
    block: list[Part] = []
    size = 0
    for part in drained(parts):
        if block and (size >= _BLOCK_ROWS or block[0].slices is not None or part.slices is not None):
            yield block
            block, size = [], 0
        block.append(part)
        size += len(part.fold.calls) * len(part.sources)
    if block:
        yield block


def _range(part: Part, c: int, at: slice, name: str) -> npt.NDArray[np.float64]:
    """One end of the ranges of a part's lines, or their static energy; NaN where there is none."""
    columns = part.static if name in STATICS else part.ranges
    return np.full(at.stop - at.start, np.nan) if columns is None else columns[name][c, at]


def _block(parts: Sequence[Part], trie: _Trie | None, has_floors: bool, is_sliced: bool) -> dict[str, Any]:
    """The lines of some parts."""
    pairs = [(part, c) for part in parts for c in range(len(part.sources))]
    within = [_lines_of(part, c) for part, c in pairs]  # which columns of a fold are those of this curve
    lengths = [at.stop - at.start for at in within]

    def joined(name: str) -> npt.NDArray[Any]:
        columns = [getattr(part.fold, name) for part, _ in pairs]
        return _joined(
            [
                np.full(at.stop - at.start, np.nan)
                if column is None
                else column[at]
                if column.ndim == 1
                else column[c, at]
                for column, (_, c), at in zip(columns, pairs, within, strict=True)
            ]
        )

    lines: dict[str, Any] = {
        "source": np.repeat(np.array([part.sources[c] for part, c in pairs], np.int64), lengths),
        "location": _joined([_locations_of(part, at) for (part, _), at in zip(pairs, within, strict=True)]),
        **{name: joined(name) for name in _INTEGER_COLUMNS},
        **{
            name: _joined([_range(part, c, at, name) for (part, c), at in zip(pairs, within, strict=True)])
            for name in (*RANGES, *(STATICS if has_floors else ()))
        },
        "self": joined("self_value"),
        "total": joined("total_value"),
    }
    rows = [_row_numbers(part, c, at) for (part, c), at in zip(pairs, within, strict=True)]
    if trie is None:
        lines["row"] = _joined(rows)
    else:
        known = [trie.add(part.fold.paths) for part, _ in pairs if part.fold.paths is not None]
        lines["row"] = _joined([number[row] for (number, _), row in zip(known, rows, strict=True)])
        lines["frames"] = _joined([frames[row] for (_, frames), row in zip(known, rows, strict=True)])
    if parts[0].statistics is not None:
        for name in _STATISTICS_COLUMNS:
            lines[name] = _joined([getattr(part.statistics, name)[c] for part, c in pairs])
    if parts[0].counts is not None:
        for which, name in enumerate(_WORK_COLUMNS):
            columns = [(part.counts or ())[which][c, at] for (part, c), at in zip(pairs, within, strict=True)]
            lines[name] = _joined(columns)
    sliced = parts[0].slices
    for name, field in zip(_SLICE_COLUMNS, ("number", "begin", "end"), strict=True):
        if is_sliced:
            lines[name] = np.zeros(sum(lengths), np.int64) if sliced is None else _joined(getattr(sliced, field))
    entered = (lines["calls"] > 0) | (lines["total_ticks"] > 0)
    if sliced is None and not entered.all():
        lines = {name: column[entered] for name, column in lines.items()}
    return lines if trie is None else _shortened(lines)


def _joined(columns: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    return columns[0] if len(columns) == 1 else np.concatenate(columns) if columns else np.empty(0)


def _lines_of(part: Part, c: int) -> slice:
    """Where the lines of a curve are in a part's columns: all of them, unless time is cut into slices."""
    if part.slices is None:
        return slice(0, len(part.fold.calls))
    before = sum(len(numbers) for numbers in part.slices.number[:c])
    return slice(before, before + len(part.slices.number[c]))


def _locations_of(part: Part, at: slice) -> Ints:
    locations = np.array(part.locations, np.int64)
    ends = part.fold.ends
    return np.repeat(locations, at.stop - at.start if ends is None else np.diff(ends, prepend=0))


def _row_numbers(part: Part, c: int, at: slice) -> Ints:
    if part.slices is not None:
        return part.slices.row[c]
    return np.arange(at.stop) if part.fold.row is None else part.fold.row


def _shortened(lines: dict[str, Any]) -> dict[str, Any]:
    """Lines of call paths without those that are too long, which count in the ones they continue."""
    frames = lines.pop("frames")
    if not (frames > MAX_PATH_FRAMES).any():
        return lines
    kept = {name: column[frames <= MAX_PATH_FRAMES] for name, column in lines.items()}
    longest = frames[frames <= MAX_PATH_FRAMES] == MAX_PATH_FRAMES
    own = [name for name in (*_SELF, "self_count") if name in kept]
    whole = {name: kept[name.replace("self", "total")] for name in own}
    return kept | {name: np.where(longest, whole[name], kept[name]) for name in own}


class _Trie:
    """Call paths of all locations under one numbering.

    Paths are one if the names on the way and the keys of the last frame are equal. Those that differ in the keys of
    their last frame only are continued as one: their callees have the first one as parent.
    """

    def __init__(self, keys: FrameKeys) -> None:
        self._keys = keys
        self._known: dict[tuple[int, int], int] = {}
        self._parents: dict[tuple[int, int], int] = {}
        self._frame: list[int] = []
        self._last: tuple[Paths, Ints, Ints] | None = None
        self.too_long = 0

    def add(self, paths: Paths) -> tuple[Ints, Ints]:
        """The numbers of a location's paths (−1: too long), and how many frames they have."""
        if self._last is not None:  # ranks of one program mostly meet the same paths in the same order
            before, number, depth = self._last
            if np.array_equal(before.frame, paths.frame) and np.array_equal(before.parent, paths.parent):
                return number, depth
        numbers: list[int] = []
        parents: list[int] = []  # of the callees of each path
        depths: list[int] = []
        columns = (self._keys.code[paths.frame], self._keys.step[paths.frame], paths.frame, paths.parent)
        for code, step, frame, parent in zip(*(column.tolist() for column in columns), strict=True):
            depths.append(depths[parent] + 1 if parent >= 0 else 1)
            if depths[-1] > MAX_PATH_FRAMES:
                self.too_long += 1
                numbers.append(-1)
                parents.append(-1)
                continue
            above = parents[parent] if parent >= 0 else -1
            if (above, code) not in self._known:
                self._known[above, code] = len(self._known)
                self._frame.append(frame)
            numbers.append(self._known[above, code])
            parents.append(self._parents.setdefault((above, step), numbers[-1]))
        self._last = paths, np.array(numbers, np.int64), np.array(depths, np.int64)
        return self._last[1:]

    def paths(self) -> Paths:
        parents = [parent for parent, _ in self._known]
        return Paths(np.array(self._frame, np.int64), np.array(parents, np.int64))


def _devices(
    recording: Recording, plan: Plan, books: Sequence[Book], sums: Mapping[int, DeviceSums]
) -> tuple[pl.DataFrame, list[Problem]]:
    import polars as pl

    read = sum(own.covered for own in sums.values())
    if sum(own.ticks for own in sums.values()) and not read and plan.begin is None and plan.end is None:
        raise NoDataError(_no_overlap(recording, books))
    rows = []
    for book in books:
        source = plan.sources[book.source]
        own = sums.get(book.source, DeviceSums((0.0,), 0, 0))
        used = own.attributed[0]
        metered = None if None in recording.life else coverage(book.ends, plan.begin, plan.end)
        rows.append(
            {
                "device": source.device.name,
                "signal": source.signal.name,
                "host": source.device.host,
                "of": source.of,
                "measured": book.measured,
                "attributed": used,
                "idle": _idle(book, used),
                "coverage": own.covered / own.ticks if own.ticks else None,
                "metered": metered,
                "unit": book.unit,
                "kind": source.device.kind,
                "users": len(source.users),
                "reason": source.reason,
                "bounded": book.bounded and plan.question.bounds,
                "estimated": source.signal.estimated,
                "counted": source.entry.counted,
                "why": source.entry.why,
                "gain_error": source.signal.gain_error,
                "sensor": "" if source.line is None else source.line.label,
                **_measured_range(book, metered),
                "resolution": _resolution(book),
                **(_static_of(source, book) if plan.has_floors else {}),
            }
        )
    schema = dict.fromkeys(("coverage", "metered", "gain_error", "resolution"), pl.Float64)
    schema |= {f"measured_{end}": pl.Float64 for end in ENDS}
    if plan.has_floors:
        schema |= dict.fromkeys(("floor_w", "static", "static_low", "static_high"), pl.Float64)
    table = pl.DataFrame(rows, schema_overrides=schema)
    problems = list(dict.fromkeys(problem for book in books for problem in book.problems))
    if (plan.begin is not None or plan.end is not None) and not any(book.ends for book in books):
        problems.append(Problem("outside", "no reading lies in the part of the time that was asked for"))
    named = ("measured", "attributed", "idle", *(f"measured_{end}" for end in ENDS))
    named += ("static", "static_low", "static_high") if plan.has_floors else ()
    return table.rename({name: f"{name}_{suffix(books)}" for name in named}), problems


def _measured_range(book: Book, metered: float | None) -> dict[str, float | None]:
    """The range of what was measured; nothing limits what a run used while it was not metered."""
    known = [end for end in ENDS if book.range is not None and not (is_partial(metered) and "high" in end)]
    return {f"measured_{end}": _number(getattr(book.range, end)[0]) if end in known else None for end in ENDS}


def _idle(book: Book, used: float) -> float:
    """Energy that no user had; the rounding of a divided device does not count as such."""
    left = book.measured - used if book.idle is None else book.idle
    return 0.0 if abs(left) < _ROUNDING_TOLERANCE * abs(book.measured) else left


def _static_of(source: DeviceView, book: Book) -> dict[str, Any]:
    """The floor of a device, where it comes from, and its static energy."""
    floor, static = source.division.floor, book.static or (np.nan,) * 3
    named = dict(zip(("static", "static_low", "static_high"), map(_number, static), strict=True))
    return {"floor_w": floor and floor.likely_w, "floor": "" if floor is None else floor.source, **named}


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _resolution(book: Book) -> float | None:
    """The energy of a mean reading interval: the resolution of the readings."""
    return book.measured / book.windows if book.windows > 0 else None


def unit_of(books: Sequence[Book]) -> str:
    """The unit of all devices; "" where they differ."""
    units = {book.unit for book in books}
    return units.pop() if len(units) == 1 else ""


def suffix(books: Sequence[Book]) -> str:
    return "j" if unit_of(books) == "J" else "value"


def _no_overlap(recording: Recording, books: Sequence[Book]) -> str:
    ends = [recording.clock.seconds(end) for book in books for end in book.ends]
    if not ends:
        return "no signal has more than one reading; energy needs at least two"
    read = f"{min(ends):.6g} … {max(ends):.6g} s"
    return f"readings ({read}) and spans share no time; nothing can be attributed (is a clock offset missing?)"


def _rows(
    recording: Recording, plan: Plan, books: Sequence[Book], whole: RowSums, sums: dict[str, Any]
) -> pl.DataFrame:
    """The table of rows: the keys of ``whole`` and its ``sums``, which are taken out where they are used last."""
    import polars as pl

    paths, long = _in_order(plan, whole)
    keys = key_columns.key_columns(recording, plan, long, paths)
    unit, size = suffix(books), len(whole)
    columns: dict[str, Any] = {column.name: column.values() for column in keys}
    ranks = [columns[name].rank for name in sorted(columns, key="path".__eq__) if len(columns[name].values) > 1]
    further = [lambda lines: -sums["total"][lines], *ranks]
    if plan.question.sliced:
        slices = columns[next(name for name in ("reading", "bin") if name in columns)]
        sorted_ = _sorted(slices.rank(), [lambda lines: -sums["self"][lines], *further])
    else:
        sorted_ = _sorted(-sums["self"], further)
    del keys, ranks, further
    for name in ("self", "total"):
        columns[f"{name}_{unit}"] = sums[name]
    for name in RANGES:  # no range goes beyond what the devices may have used together
        most, range_ = sums["hard_most_used" if "hard" in name else "most_used"], sums.pop(name)
        capped = np.fmin(range_, most) + 0 * range_ if plan.question.share != "full" else range_
        columns[f"{name}_{unit}"] = capped
    if plan.has_floors:
        columns |= _static_columns(sums, columns, unit)
    ns = recording.clock.ns
    columns |= {f"{name}_ns": ns(sums.pop(f"{name}_ticks")) for name in ("self", "total")}
    columns |= {"covered_ns": ns(sums["total_covered"])}
    seconds = sums["self_covered"] / recording.clock.ticks_per_s
    rate = "power_w" if unit == "j" else "self_rate"
    columns[rate] = np.divide(sums["self"], seconds, out=np.full(size, np.nan), where=seconds > 0)
    columns["calls"] = sums["calls"]
    if "whole" in sums:
        columns |= _statistics(recording, sums, size)
    if plan.question.per is not None:
        columns |= _per_unit(columns, sums, counts.total(recording, plan.question.per, plan.begin, plan.end), unit)
    if unit != "j":
        columns["unit"] = (
            [books[0].unit] * size if "signal" not in plan.question.keys else key_columns.units(books, long)
        )
    sums.clear()
    del seconds, most, range_, capped, long
    nullable = {rate, *(f"{name}_{unit}" for name in RANGES)}
    # a column after the other, so that only one of them is there twice
    return pl.DataFrame([_in_rows(name, columns.pop(name), sorted_, name in nullable) for name in list(columns)])


def _in_rows(name: str, column: Any, order: Ints, is_nullable: bool) -> pl.Series:
    """A column of the table in the order of its rows; NaN is null where it may be."""
    import polars as pl

    if isinstance(column, key_columns.KeyValues):
        return column.values.gather(column.which[order]).alias(name)
    if isinstance(column, np.ndarray):  # NumPy's memory is used again, unlike that of Polars
        return pl.Series(name, column[order], nan_to_null=is_nullable)
    return pl.Series(name, column).gather(order)


def _static_columns(sums: Mapping[str, Any], columns: Mapping[str, Any], unit: str) -> dict[str, Any]:
    """Static and dynamic energy of rows with their ranges; null where the floor of one of their devices is unknown."""
    import polars as pl

    own = sums["self"]
    static, low, high = (np.clip(sums[name], 0.0, np.maximum(own, 0.0)) for name in STATICS[:3])
    least, most = (columns[f"self_{end}_{unit}"] for end in ("low", "high"))
    least, most = np.where(np.isnan(least), own, least), np.where(np.isnan(most), own, most)
    by_name = {
        "static": static,
        "static_low": low,
        "static_high": high,
        "dynamic": own - static,
        "dynamic_low": np.maximum(least - high, 0.0),
        "dynamic_high": np.maximum(most - low, 0.0),
    }
    return {f"{name}_{unit}": pl.Series(column, dtype=pl.Float64, nan_to_null=True) for name, column in by_name.items()}


def _per_unit(columns: Mapping[str, Any], sums: Mapping[str, Any], whole: float, unit: str) -> dict[str, Any]:
    """What was counted in each row, and its totals per unit; the last column divides self by all that was counted,
    so that its sum and idle per unit are what was measured per unit."""
    import polars as pl

    own, all_counts = (sums.get(name, np.zeros(len(sums["self"]))) for name in _WORK_COLUMNS)

    def over(amount: Any, count: Any) -> pl.Series:
        value = np.asarray(pl.Series(amount, dtype=pl.Float64).fill_null(np.nan).to_numpy(), np.float64)
        ratio = np.divide(value, count, out=np.full(len(value), np.nan), where=np.asarray(count) > 0)
        return pl.Series(ratio, dtype=pl.Float64, nan_to_null=True)

    ends = {f"{unit}_per_unit_{end}": columns[f"total_{end}_{unit}"] for end in ENDS}
    amounts = {f"{unit}_per_unit": columns[f"total_{unit}"], **ends, "s_per_unit": columns["total_ns"] / 1e9}
    divided = {name: over(amount, all_counts) for name, amount in amounts.items()}
    alone = over(columns[f"self_{unit}"], np.full(len(own), whole))
    return {"self_count": own, "count": all_counts, **divided, f"run_{unit}_per_unit": alone}


def _sorted(lead: npt.NDArray[Any], further: Sequence[Callable[[Ints], npt.NDArray[Any]]]) -> Ints:
    """The order of lines by a column, and by further ones, which are made of the lines that it leaves tied."""
    order: Ints = np.argsort(lead)
    before, after = lead[order[:-1]], lead[order[1:]]
    tied = (before == after) | (np.isnan(before) & np.isnan(after))
    if tied.any():
        del before, after  # of a million rows each column counts
        some = np.append(tied, False) | np.append(False, tied)
        lines, place = order[some], np.cumsum(~np.append(False, tied))[some]
        number, _ = numbered(chain([place], (column(lines) for column in further), [lines]), len(lines))
        order[some] = lines[np.argsort(number)]
    return order


def _in_order(plan: Plan, whole: RowSums) -> tuple[Paths | None, dict[str, Any]]:
    """Lines with call paths numbered by their frames, a generation after the other: not by who met them first."""
    if whole.paths is None:
        return None, dict(whole.keys)
    frame, parent = (np.asarray(column, np.int64) for column in (whole.paths.frame, whole.paths.parent))
    code, step = (column[frame].astype(np.int64) for column in (plan.keys.code, plan.keys.step))
    depth = np.zeros(len(frame), np.int64)
    for i, above in enumerate(parent.tolist()):
        depth[i] = depth[above] + 1 if above >= 0 else 0
    number = np.full(len(frame), -1)
    as_parent = np.full(len(frame) + 1, -1)  # the first number of the same names; and one for the parent of roots
    by_depth = np.argsort(depth, kind="stable")
    edges = np.searchsorted(depth[by_depth], np.arange(int(depth.max(initial=-1)) + 2))
    order = []
    for begin, end in pairwise(edges.tolist()):
        some = by_depth[begin:end]
        some = some[np.lexsort((code[some], step[some], as_parent[parent[some]]))]
        number[some] = np.arange(begin, end)
        first, group = grouped([as_parent[parent[some]], step[some]], len(some))
        as_parent[some] = begin + first[group]
        order.append(some)
    at = np.concatenate([*order, np.empty(0, np.int64)]).astype(np.int64)
    return Paths(frame[at], as_parent[parent[at]]), {**whole.keys, "row": number[whole.keys["row"]]}


def _statistics(recording: Recording, sums: dict[str, Any], size: int) -> dict[str, Any]:
    import polars as pl

    seconds = sums["every_covered"] / recording.clock.ticks_per_s
    low, high = sums["least"], sums["most"]
    covered = sums["total_covered"] / recording.clock.ticks_per_s
    out = {
        "mean": np.divide(sums["whole"], seconds, out=np.full(size, np.nan), where=seconds > 0),
        "min": np.where(np.isfinite(low), low, np.nan),
        "max": np.where(np.isfinite(high), high, np.nan),
        "total_rate": np.divide(sums["total"], covered, out=np.full(size, np.nan), where=covered > 0),
    }
    columns = {name: pl.Series(column, nan_to_null=True) for name, column in out.items()}
    return columns | {"readings": sums["readings"]}
