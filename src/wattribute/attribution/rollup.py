"""Parts → tables: locations' sums are added up in location order, whatever computed them, so the bits never change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import NoDataError
from ..model import Paths, Problem, Recording
from ..model.spans import BOUNDS
from . import labels
from .join import Book, Part, Plan, Solved

if TYPE_CHECKING:
    import polars as pl

Ints = npt.NDArray[np.int64]
_COUNTED = ("calls", "self_ticks", "total_ticks", "self_covered", "total_covered")


def tables(
    recording: Recording, plan: Plan, solved: Sequence[Solved]
) -> tuple[pl.DataFrame, pl.DataFrame, list[Problem]]:
    """(devices, rows, problems)."""
    parts = sorted((part for some in solved for part in some.parts), key=lambda part: (part.sources, part.location))
    parts.sort(key=lambda part: part.location)  # stable: by location, then by view
    books = sorted((book for some in solved for book in some.books), key=lambda book: book.source)
    long, paths = _long(plan, parts)
    devices, problems = _devices(recording, plan, books, long)
    return devices, _rows(recording, plan, books, long, paths), problems


def _long(plan: Plan, parts: Sequence[Part]) -> tuple[dict[str, Any], Paths | None]:
    """One line per (location, device, row) that was ever entered, in location order."""
    lines: dict[str, list[Any]] = {name: [] for name in ("source", "location", "row", "slice", "begin", "end")}
    values: dict[str, list[Any]] = {name: [] for name in (*_COUNTED, "self", "total", *BOUNDS)}
    extra: dict[str, list[Any]] = {name: [] for name in ("whole", "least", "most", "readings")}
    trie = _Trie(plan.keys.code) if plan.keys.by_path else None
    for part in parts:
        fold = part.fold
        renumber = trie.add(fold.paths) if trie is not None and fold.paths is not None else None
        for c, source in enumerate(part.sources):
            if part.slices is None:
                at = np.flatnonzero((fold.calls > 0) | (fold.total_ticks > 0))
                row, cut = at, (np.zeros(len(at), np.int64),) * 3
            else:
                before = sum(len(numbers) for numbers in part.slices.number[:c])
                at = before + np.arange(len(part.slices.number[c]))
                row = part.slices.row[c]
                cut = (part.slices.number[c], part.slices.begin[c], part.slices.end[c])
            lines["row"].append(row if renumber is None else renumber[row])
            for name, column in zip(("slice", "begin", "end"), cut, strict=True):
                lines[name].append(column)
            lines["source"].append(np.full(len(at), source, np.int64))
            lines["location"].append(np.full(len(at), part.location, np.int64))
            for name in _COUNTED:
                column = getattr(fold, name)
                values[name].append(column[at] if column.ndim == 1 else column[c, at])
            values["self"].append(fold.self_value[c, at])
            values["total"].append(fold.total_value[c, at])
            for name in BOUNDS:
                bound = getattr(fold, name)
                values[name].append(np.full(len(at), np.nan) if bound is None else bound[c, at])
            if part.statistics is not None:
                for name in extra:
                    extra[name].append(getattr(part.statistics, name)[c, at])
    columns = {name: np.concatenate(list_) if list_ else np.empty(0) for name, list_ in (lines | values).items()}
    columns |= {name: np.concatenate(list_) for name, list_ in extra.items() if list_}
    for name in ("source", "location", "row", "slice", "begin", "end", *_COUNTED):
        columns[name] = columns[name].astype(np.int64)
    return columns, None if trie is None else trie.paths()


class _Trie:
    """Call paths of all locations under one numbering; frames of one name are one step."""

    def __init__(self, code: npt.NDArray[np.int32]) -> None:
        self._code = code
        self._known: dict[tuple[int, int], int] = {}
        self._frame: list[int] = []
        self._last: tuple[Paths, Ints] | None = None

    def add(self, paths: Paths) -> Ints:
        """The numbers of a location's paths."""
        if self._last is not None:  # ranks of one program mostly meet the same paths in the same order
            before, numbers = self._last
            if np.array_equal(before.frame, paths.frame) and np.array_equal(before.parent, paths.parent):
                return numbers
        number = np.empty(len(paths), np.int64)
        for i, (frame, parent) in enumerate(zip(paths.frame.tolist(), paths.parent.tolist(), strict=True)):
            key = (int(number[parent]) if parent >= 0 else -1, int(self._code[frame]))
            if key not in self._known:
                self._known[key] = len(self._known)
                self._frame.append(frame)
            number[i] = self._known[key]
        self._last = paths, number
        return number

    def paths(self) -> Paths:
        parents = [parent for parent, _ in self._known]
        return Paths(np.array(self._frame, np.int64), np.array(parents, np.int64))


def _devices(
    recording: Recording, plan: Plan, books: Sequence[Book], long: dict[str, Any]
) -> tuple[pl.DataFrame, list[Problem]]:
    import polars as pl

    count = len(plan.sources)
    attributed = np.bincount(long["source"], weights=long["self"], minlength=count)
    ticks, covered = np.zeros(count, np.int64), np.zeros(count, np.int64)
    np.add.at(ticks, long["source"], long["self_ticks"])
    np.add.at(covered, long["source"], long["self_covered"])
    if ticks.any() and not covered.any() and plan.begin is None and plan.end is None:
        raise NoDataError(_no_overlap(recording, books))
    mirrors = labels.mirrors(recording, plan)
    rows = []
    for book in books:
        source = plan.sources[book.source]
        used = float(attributed[book.source])
        rows.append(
            {
                "device": source.device.name,
                "signal": source.signal.name,
                "host": source.device.host,
                "of": source.of,
                "measured": book.measured,
                "attributed": used,
                "idle": book.measured - used if book.idle is None else book.idle,
                "coverage": float(covered[book.source] / ticks[book.source]) if ticks[book.source] else None,
                "unit": book.unit,
                "kind": source.device.kind,
                "users": len(source.users),
                "reason": source.reason,
                "bounded": book.bounded and plan.options.bounds,
                "estimated": source.signal.estimated,
                "mirrors": mirrors.get(book.source, ""),
                "gain_error": source.signal.gain_error,
                "resolution": _resolution(book),
            }
        )
    schema = {"coverage": pl.Float64, "gain_error": pl.Float64, "resolution": pl.Float64}
    table = pl.DataFrame(rows, schema_overrides=schema)
    problems = list(dict.fromkeys(problem for book in books for problem in book.problems))
    if (plan.begin is not None or plan.end is not None) and not any(book.ends for book in books):
        problems.append(Problem("outside", "no reading lies in the part of the time that was asked for"))
    return table.rename({name: f"{name}_{suffix(books)}" for name in ("measured", "attributed", "idle")}), problems


def _resolution(book: Book) -> float | None:
    """The energy of a mean reading interval: what the readings can tell apart."""
    return book.measured / book.windows if book.windows > 0 else None


def suffix(books: Sequence[Book]) -> str:
    return "j" if all(book.unit == "J" for book in books) else "value"


def _no_overlap(recording: Recording, books: Sequence[Book]) -> str:
    ends = [recording.clock.seconds(end) for book in books for end in book.ends]
    if not ends:
        return "no signal has more than one reading; energy is told by at least two"
    read = f"{min(ends):.6g} … {max(ends):.6g} s"
    return f"readings ({read}) and spans share no time; nothing can be attributed (is a clock offset missing?)"


def _rows(
    recording: Recording, plan: Plan, books: Sequence[Book], long: dict[str, Any], paths: Paths | None
) -> pl.DataFrame:
    import polars as pl

    long = labels.without_double_counting(recording, plan, long)
    keys = labels.keys(recording, plan, long, paths)
    first, group = _groups([column.code for column in keys], len(long["row"]))
    size = len(first)
    sums = _sums(long, group, size)
    measured = _measured(books, long, group, size)
    unit = suffix(books)
    columns: dict[str, Any] = {column.name: column.values(first) for column in keys}
    for name in ("self", "total"):
        columns[f"{name}_{unit}"] = sums[name]
    for name in BOUNDS:
        capped = np.minimum(sums[name], measured) if plan.options.share != "full" else sums[name]
        columns[f"{name}_{unit}"] = pl.Series(capped, nan_to_null=True)
    ns = recording.clock.ns
    columns |= {"self_ns": ns(sums["self_ticks"]), "total_ns": ns(sums["total_ticks"])}
    columns |= {"covered_ns": ns(sums["total_covered"])}
    seconds = sums["self_covered"] / recording.clock.ticks_per_s
    power = np.divide(sums["self"], seconds, out=np.full(size, np.nan), where=seconds > 0)
    columns["power_w" if unit == "j" else "self_rate"] = pl.Series(power, nan_to_null=True)
    columns["calls"] = sums["calls"]
    if "whole" in long:
        columns |= _statistics(recording, long, sums, group, size)
    if unit != "j":
        columns["unit"] = (
            [books[0].unit] * size if "signal" not in plan.options.by else labels.units(books, long, first)
        )
    table = pl.DataFrame(columns)
    others = [name for name in table.columns if name in {column.name for column in keys} and name != "path"]
    order = [f"self_{unit}", f"total_{unit}", *others]
    if not plan.options.sliced:
        return table.sort(order, descending=[True, True, *[False] * len(others)], nulls_last=True, maintain_order=True)
    time = next(name for name in ("reading", "bin") if name in table.columns)
    order = [time, *order]
    return table.sort(order, descending=[False, True, True, *[False] * len(others)], maintain_order=True)


def _groups(columns: Sequence[Ints], lines: int) -> tuple[Ints, Ints]:
    """Lines that are equal in all columns: the first of each group, groups in ascending order, and each line's group.

    As np.unique over rows says it, which compares them byte by byte: here a row becomes one number.
    """
    number, groups = np.zeros(lines, np.int64), 1
    for column in columns:
        values, which = np.unique(column, return_inverse=True)
        if groups * len(values) >= 2**62:
            number = np.unique(number, return_inverse=True)[1]
            groups = lines
        number, groups = number * len(values) + which, groups * len(values)
    _, first, group = np.unique(number, return_index=True, return_inverse=True)
    return first, group


def _sums(long: dict[str, Any], group: Ints, size: int) -> dict[str, Any]:
    """Per group: energies over everything, calls and times once per location however many devices it uses."""
    once = _once(long, group)
    out: dict[str, Any] = {}
    for name in _COUNTED:
        out[name] = np.zeros(size, np.int64)
        np.add.at(out[name], group[once], long[name][once])
    for name in ("self", "total", *BOUNDS):
        out[name] = np.bincount(group, weights=long[name], minlength=size)
    return out


def _once(long: dict[str, Any], group: Ints) -> Ints:
    return np.sort(_groups([group, long["location"], long["row"], long["slice"]], len(group))[0])


def _measured(books: Sequence[Book], long: dict[str, Any], group: Ints, size: int) -> npt.NDArray[np.float64]:
    """What the devices of each group measured together: no bound is higher."""
    measured = np.zeros(max((book.source for book in books), default=-1) + 1)
    for book in books:
        measured[book.source] = book.measured
    each, _ = _groups([group, long["source"]], len(group))
    sums: npt.NDArray[np.float64] = np.bincount(group[each], measured[long["source"][each]], size).astype(float)
    return sums


def _statistics(
    recording: Recording, long: dict[str, Any], sums: dict[str, Any], group: Ints, size: int
) -> dict[str, Any]:
    import polars as pl

    seconds = np.bincount(group, weights=long["total_covered"], minlength=size) / recording.clock.ticks_per_s
    whole = np.bincount(group, weights=long["whole"], minlength=size)
    low, high = np.full(size, np.inf), np.full(size, -np.inf)
    np.fmin.at(low, group, long["least"])
    np.fmax.at(high, group, long["most"])
    readings = np.zeros(size, np.int64)
    np.add.at(readings, group, long["readings"].astype(np.int64))
    covered = sums["total_covered"] / recording.clock.ticks_per_s
    out = {
        "mean": np.divide(whole, seconds, out=np.full(size, np.nan), where=seconds > 0),
        "min": np.where(np.isfinite(low), low, np.nan),
        "max": np.where(np.isfinite(high), high, np.nan),
        "total_rate": np.divide(sums["total"], covered, out=np.full(size, np.nan), where=covered > 0),
    }
    return {name: pl.Series(column, nan_to_null=True) for name, column in out.items()} | {"readings": readings}
