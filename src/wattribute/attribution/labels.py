"""The keys of rows: a code to group by and a value to show for each.

Codes follow ids, so that two processes of one name stay two; values are names, made longer only where they repeat.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..alignment.sanity import mirrored
from ..model import Paths, Recording
from ..sensors import outer
from .join import Book, Plan

Ints = npt.NDArray[np.int64]


class Key(NamedTuple):
    """A column of keys over the long table."""

    name: str
    code: Ints
    value: Callable[[int], Any]  # of a line of the long table; the same for the same code

    def values(self, lines: Ints) -> Any:
        import polars as pl

        _, first, which = np.unique(self.code[lines], return_index=True, return_inverse=True)
        values = [self.value(int(line)) for line in lines[first]]
        if self.name == "path":
            return _lists(values).gather(which)
        types: dict[str, Any] = dict.fromkeys(("line", "reading", "bin", "begin_ns", "end_ns"), pl.Int64)
        return pl.Series(values, dtype=types.get(self.name, pl.String)).gather(which)


def _lists(values: list[list[str]]) -> Any:
    """A column of lists, made from one flat column: Polars takes ten times as long from a list of lists."""
    import polars as pl
    import pyarrow as pa

    ends = np.cumsum([0, *map(len, values)])
    flat = pa.array([text for texts in values for text in texts], pa.large_string())
    lists = pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), flat)
    return pl.from_arrow(lists).cast(pl.List(pl.String))


def keys(recording: Recording, plan: Plan, long: dict[str, Any], paths: Paths | None) -> list[Key]:
    """The columns asked for. Rows always carry ``of``, and with a device its host."""
    makers = _Makers(recording, plan, long, paths)
    names = list(plan.options.by)
    if "device" in names and "host" not in names:
        names.insert(names.index("device"), "host")
    if "of" not in names:
        names.append("of")
    found = []
    for name in names:
        found.append(getattr(makers, name)())
        if name in ("reading", "bin"):
            found.extend(makers.moments())
    return found


class _Makers:
    """One method per key, named as the key."""

    def __init__(self, recording: Recording, plan: Plan, long: dict[str, Any], paths: Paths | None) -> None:
        self.recording, self.plan, self.long, self.paths = recording, plan, long, paths

    def _of_source(self, name: str, what: Callable[[Any], Any]) -> Key:
        values = [what(source) for source in self.plan.sources]
        first = {value: i for i, value in reversed(list(enumerate(values)))}
        code = np.array([first[value] for value in values], np.int64)
        source = self.long["source"]
        shown = [value[1] if name == "device" else value for value in values]
        return Key(name, code[source] if len(code) else source, lambda line: shown[source[line]])

    def device(self) -> Key:
        return self._of_source("device", lambda source: (source.device.host, source.device.name))

    def signal(self) -> Key:
        return self._of_source("signal", lambda source: source.signal.name)

    def of(self) -> Key:
        return self._of_source("of", lambda source: source.of)

    def host(self) -> Key:
        """The host of the location: that of the device, for a device nobody else's code runs on."""
        if "device" in self.plan.options.by:
            return self._of_source("host", lambda source: source.device.host)
        hosts = self.recording.hosts()
        number = {host: i for i, host in enumerate(hosts)}
        names = [self.recording.location_host(row) for row in range(len(self.recording.locations))]
        code = np.array([number.get(name, -1) for name in names], np.int64)
        location = self.long["location"]
        return Key("host", code[location] if len(code) else location, lambda line: names[location[line]])

    def process(self) -> Key:
        owner = np.array([self.recording.owner(row) for row in range(len(self.recording.locations))], np.int64)
        names = process_labels(self.recording)
        location = self.long["location"]
        code = owner[location] if len(owner) else location
        return Key("process", code, lambda line: names[code[line]] if code[line] >= 0 else "")

    def location(self) -> Key:
        names = location_labels(self.recording)
        location = self.long["location"]
        return Key("location", location, lambda line: names[location[line]])

    def _of_frame(self, name: str) -> Key:
        plan, row = self.plan, self.long["row"]
        at = plan.keys.names.index(name)
        labels = plan.keys.labels
        code = (
            row if self.paths is None else plan.keys.code[self.paths.frame].astype(np.int64)[row] if len(row) else row
        )
        values = [label[at] for label in labels]
        first = {value: i for i, value in reversed(list(enumerate(values)))}
        same = np.array([first[value] for value in values], np.int64)
        return Key(name, same[code] if len(same) else code, lambda line: values[code[line]])

    def frame(self) -> Key:
        return self._of_frame("frame")

    def paradigm(self) -> Key:
        return self._of_frame("paradigm")

    def role(self) -> Key:
        return self._of_frame("role")

    def file(self) -> Key:
        return self._of_frame("file")

    def line(self) -> Key:
        return self._of_frame("line")

    def path(self) -> Key:
        row, paths, names = self.long["row"], self.paths, self.recording.frames.name
        assert paths is not None
        return Key("path", row, lambda line: [names[frame] for frame in paths.chain(int(row[line]))])

    def run(self) -> Key:
        name = str(self.recording.metadata.get("name", ""))
        return Key("run", np.zeros(len(self.long["row"]), np.int64), lambda line: name)

    def reading(self) -> Key:
        number = self.long["slice"]
        return Key("reading", number, lambda line: int(number[line]))

    def bin(self) -> Key:
        number = self.long["slice"]
        return Key("bin", number, lambda line: int(number[line]))

    def moments(self) -> list[Key]:
        """When a slice begins and ends; open ended before the first and after the last reading."""
        return [self._moment(name) for name in ("begin", "end")]

    def _moment(self, name: str) -> Key:
        ticks, ns = self.long[name], self.recording.clock.ns
        none = np.abs(ticks) >= np.iinfo(np.int64).max // 4
        return Key(f"{name}_ns", ticks, lambda line: None if none[line] else ns(int(ticks[line])))


def process_labels(recording: Recording) -> list[str]:
    """Names of processes, with the host or the id where a name repeats."""
    names = recording.processes.name
    hosts = [recording.host(row) for row in range(len(names))]
    return _distinct(names, hosts, recording.processes.id.tolist())


def location_labels(recording: Recording) -> list[str]:
    """Names of locations, with the process or the id where a name repeats."""
    owners = process_labels(recording)
    rows = range(len(recording.locations))
    above = [owners[recording.owner(row)] if recording.owner(row) >= 0 else "" for row in rows]
    return _distinct(recording.locations.name, above, recording.locations.id.tolist())


def _distinct(names: Sequence[str], above: Sequence[str], ids: Sequence[int]) -> list[str]:
    repeats = Counter(names)
    longer = [
        f"{owner}/{name}" if repeats[name] > 1 and owner else name for name, owner in zip(names, above, strict=True)
    ]
    still = Counter(longer)
    return [f"{name} #{id_}" if still[name] > 1 else name for name, id_ in zip(longer, ids, strict=True)]


def units(books: Sequence[Book], long: dict[str, Any], first: Ints) -> list[str]:
    unit = {book.source: book.unit for book in books}
    return [unit[int(long["source"][line])] for line in first]


def without_double_counting(recording: Recording, plan: Plan, long: dict[str, Any]) -> dict[str, Any]:
    """Rows that add up several devices leave out those that contain or repeat another one of the same host."""
    if "device" in plan.options.by or "signal" in plan.options.by:
        return long
    again = _containing(plan) | set(mirrors(recording, plan))
    kept = ~np.isin(long["source"], sorted(again))
    return {name: column[kept] for name, column in long.items()}


def _containing(plan: Plan) -> set[int]:
    devices = [source.device for source in plan.sources]
    return set(np.flatnonzero(outer([(device.host, device.name, device.kind) for device in devices])).tolist())


def mirrors(recording: Recording, plan: Plan) -> dict[int, str]:
    """Sources that repeat another one's counter, and whose.

    Two cards may well draw the same; only what the same users are charged twice for is one thing metered twice.
    """
    containing = _containing(plan)
    counted = {source.row: source for row, source in enumerate(plan.sources) if row not in containing}
    first = {check.signals[1]: check.signals[0] for check in mirrored(recording)}
    found = {}
    for row, source in enumerate(plan.sources):
        original = counted.get(first.get(source.row, -1))
        if original is not None and source.device.kind != "gpu" and original.users == source.users:
            found[row] = original.device.name
    return found
