"""The columns of keys in a table of rows: for each key a code to group by and a value to show.

Codes follow ids, so that two processes of one name stay two; values are names, made longer only where they repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..model import Paths, Recording
from .join import Book, Plan

if TYPE_CHECKING:
    import polars as pl

Ints = npt.NDArray[np.int64]
_MAX_DENSE_RATIO = 4  # numbers per line up to which a table of all numbers is cheaper than sorting the lines


def grouped(columns: Sequence[Ints], lines: int) -> tuple[Ints, Ints]:
    """Lines that are equal in all columns: the first of each group, groups in ascending order, and each line's group.

    As np.unique over rows says it, which compares them byte by byte: here a row becomes one number.
    """
    number, groups = numbered(columns, lines)
    if groups == 1 and lines:
        return np.zeros(1, np.int64), np.broadcast_to(np.int64(0), lines)
    if groups > _MAX_DENSE_RATIO * lines:
        _, first, group = np.unique(number, return_index=True, return_inverse=True)
        return first, group
    at = np.full(groups, -1)
    at[number[::-1]] = np.arange(lines - 1, -1, -1)  # of several lines the last assignment stays, the first line
    used = at >= 0
    return at[used], (np.cumsum(used) - 1)[number]


def numbered(columns: Iterable[npt.NDArray[Any]], lines: int) -> tuple[Ints, int]:
    """A number per line, below the second value, by which lines compare as by their columns; NaN comes last."""
    number, groups = np.zeros(lines, np.int64), 1
    for column in columns:
        least, most = (column.min(), column.max()) if lines else (0, 0)
        if least == most:
            continue
        if column.dtype.kind == "i" and int(most) - int(least) < _MAX_DENSE_RATIO * lines:
            which, count = column - least, int(most) - int(least) + 1  # as a rule, and then nothing has to be sorted
        else:
            values, which = np.unique(column, return_inverse=True)
            count = len(values)
        if groups * count >= 2**62:
            number = np.unique(number, return_inverse=True)[1]
            groups = lines
        number, groups = number * count + which, groups * count
    return number, groups


class KeyValues(NamedTuple):
    """The keys of some lines, each once."""

    values: pl.Series
    which: Ints  # of each line the place of its key

    def rank(self, lines: Ints | slice = slice(None)) -> Ints:
        """Numbers that sort lines as their keys do (None last); call paths as they are numbered."""
        import polars as pl

        which = self.which[lines]
        if isinstance(self.values.dtype, pl.List):
            return which
        values, place = self.values, which
        if len(which) < len(values):
            first, place = grouped([which], len(which))
            values = values.gather(which[first])
        rank: Ints = values.rank("dense").fill_null(len(values) + 1).cast(pl.Int64).to_numpy()
        return rank[place]


class KeyColumn(NamedTuple):
    """A column of keys over the long table."""

    name: str
    code: Ints
    value: Callable[[int], Any]  # of a line of the long table; the same for the same code
    values_of: Callable[[Ints], list[Any]] | None = None  # the same for many lines

    def values(self) -> KeyValues:
        """The keys of all lines."""
        import polars as pl

        first, which = grouped([self.code], len(self.code))
        each = self.values_of or (lambda lines: list(map(self.value, lines.tolist())))
        values = each(first)
        if self.name == "path":
            return KeyValues(_lists(values), which)
        types: dict[str, Any] = dict.fromkeys(("line", "reading", "bin", "begin_ns", "end_ns"), pl.Int64)
        return KeyValues(pl.Series(values, dtype=types.get(self.name, pl.String)), which)


def _lists(values: list[list[str]]) -> Any:
    """A column of lists, made from one flat column: Polars takes ten times as long from a list of lists."""
    import polars as pl
    import pyarrow as pa

    ends = np.cumsum([0, *map(len, values)])
    flat = pa.array([text for texts in values for text in texts], pa.large_string())
    lists = pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), flat)
    table: Any = pl.from_arrow(pa.table({"x": lists}))  # of an array alone, older Polars crash
    return table["x"].cast(pl.List(pl.String))


def key_columns(recording: Recording, plan: Plan, long: dict[str, Any], paths: Paths | None) -> list[KeyColumn]:
    """The columns asked for. Rows always carry ``of``, and with a device its host."""
    makers = _Makers(recording, plan, long, paths)
    names = list(plan.question.keys)
    if "device" in names and "host" not in names:
        names.insert(names.index("device"), "host")
    if "of" not in names:
        names.append("of")
    columns = []
    for name in names:
        columns.append(getattr(makers, name)())
        if name in ("reading", "bin"):
            columns.extend(makers.moments())
    return columns


class _Makers:
    """One method per key, named as the key."""

    def __init__(self, recording: Recording, plan: Plan, long: dict[str, Any], paths: Paths | None) -> None:
        self.recording, self.plan, self.long, self.paths = recording, plan, long, paths

    def _of_source(self, name: str, what: Callable[[Any], Any]) -> KeyColumn:
        values = [what(source) for source in self.plan.sources]
        first = {value: i for i, value in reversed(list(enumerate(values)))}
        code = np.array([first[value] for value in values], np.int64)
        source = self.long["source"]
        shown = [value[1] if name == "device" else value for value in values]
        is_one = len(code) > 0 and bool((code == code[0]).all())
        own = np.broadcast_to(code[0], len(source)) if is_one else code[source] if len(code) else source
        return KeyColumn(name, own, lambda line: shown[source[line]])

    def device(self) -> KeyColumn:
        return self._of_source("device", lambda source: (source.device.host, source.device.name))

    def signal(self) -> KeyColumn:
        return self._of_source("signal", lambda source: source.signal.name)

    def of(self) -> KeyColumn:
        return self._of_source("of", lambda source: source.of)

    def host(self) -> KeyColumn:
        """The host of the location: that of the device, where no other host's code runs on it."""
        if "device" in self.plan.question.keys:
            return self._of_source("host", lambda source: source.device.host)
        hosts = self.recording.hosts()
        number = {host: i for i, host in enumerate(hosts)}
        names = self.recording.location_hosts
        code = np.array([number.get(name, -1) for name in names], np.int64)
        location = self.long["location"]
        return KeyColumn("host", code[location] if len(code) else location, lambda line: names[location[line]])

    def process(self) -> KeyColumn:
        owner = np.array(self.recording.owners, np.int64)
        names = self.recording.process_labels
        location = self.long["location"]
        code = owner[location] if len(owner) else location
        return KeyColumn("process", code, lambda line: names[code[line]] if code[line] >= 0 else "")

    def location(self) -> KeyColumn:
        names = self.recording.location_labels
        location = self.long["location"]
        return KeyColumn("location", location, lambda line: names[location[line]])

    def _of_frame(self, name: str) -> KeyColumn:
        plan, row = self.plan, self.long["row"]
        at = plan.keys.names.index(name)
        labels = plan.keys.labels[at]
        code = (
            row if self.paths is None else plan.keys.code[self.paths.frame].astype(np.int64)[row] if len(row) else row
        )
        alike = code
        if len(plan.keys.names) > 1 or not plan.keys.chosen.all():  # else every label has one code
            met, which = np.unique(code, return_inverse=True)
            first: dict[str | int, int] = {}
            alike = np.array([first.setdefault(labels[i], i) for i in met.tolist()], np.int64)[which]
        return KeyColumn(
            name,
            alike,
            lambda line: labels[code[line]],
            lambda lines: [labels[i] for i in code[lines]],
        )

    def frame(self) -> KeyColumn:
        return self._of_frame("frame")

    def paradigm(self) -> KeyColumn:
        return self._of_frame("paradigm")

    def role(self) -> KeyColumn:
        return self._of_frame("role")

    def file(self) -> KeyColumn:
        return self._of_frame("file")

    def line(self) -> KeyColumn:
        return self._of_frame("line")

    def path(self) -> KeyColumn:
        row, paths, names = self.long["row"], self.paths, self.recording.frames.name
        assert paths is not None
        return KeyColumn("path", row, lambda line: [names[frame] for frame in paths.chain(int(row[line]))])

    def run(self) -> KeyColumn:
        name = str(self.recording.metadata.get("name", ""))
        return KeyColumn("run", np.zeros(len(self.long["row"]), np.int64), lambda line: name)

    def reading(self) -> KeyColumn:
        number = self.long["slice"]
        return KeyColumn("reading", number, lambda line: int(number[line]))

    def bin(self) -> KeyColumn:
        number = self.long["slice"]
        return KeyColumn("bin", number, lambda line: int(number[line]))

    def moments(self) -> list[KeyColumn]:
        """When a slice begins and ends; open ended before the first and after the last reading."""
        return [self._moment(name) for name in ("begin", "end")]

    def _moment(self, name: str) -> KeyColumn:
        ticks, ns = self.long[name], self.recording.clock.ns
        none = np.abs(ticks) >= np.iinfo(np.int64).max // 4
        return KeyColumn(f"{name}_ns", ticks, lambda line: None if none[line] else ns(int(ticks[line])))


def units(books: Sequence[Book], long: dict[str, Any]) -> list[str]:
    unit = {book.source: book.unit for book in books}
    return [unit[source] for source in long["source"].tolist()]


def counted_sources(plan: Plan) -> npt.NDArray[np.bool_]:
    """Which devices rows count; rows by signal, and those of counters that did not move, count all."""
    counted = np.array([source.entry.counted for source in plan.sources], bool)
    return counted if counted.any() and "signal" not in plan.question.keys else np.ones(len(counted), bool)
