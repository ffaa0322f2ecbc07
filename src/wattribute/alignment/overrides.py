"""User overrides of which locations use which device: a TOML file, ``--map`` texts, or a function.

::

    [[device]]
    signal = "energy_count:device=2$"       # re.search, case-insensitive; or device = "GPU 2"
    host = "frontier09408"                  # optional; * matches anything
    locations = ["HIP Context 1", "HIP[2:*]"]  # names of locations, contexts or processes
"""

from __future__ import annotations

import operator
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import FormatError, NotFoundError, OptionError
from ..model import Device, Problem, Recording, Signal


class Place(str):
    """A location as a topology function sees it: as a text the name of its process (the rank), with attributes."""

    row: int
    name: str
    kind: str
    process: str
    owner: str  # the process that created a stream's context
    host: str

    def __new__(cls, row: int, name: str, kind: str, process: str, owner: str, host: str) -> Place:
        new = super().__new__(cls, owner or process or name)
        new.row, new.name, new.kind, new.process, new.owner, new.host = row, name, kind, process, owner, host
        return new

    @property
    def names(self) -> list[str]:
        """The names that select this location."""
        return [text for text in (self.name, self.process, self.owner) if text]


class SignalName(str):
    """A signal as a topology function sees it: its name, with ``kind``, ``unit``, ``host`` and ``device`` beside it."""

    signal: Signal

    @classmethod
    def of(cls, signal: Signal) -> SignalName:
        signal_name = cls(signal.name)
        signal_name.signal = signal
        return signal_name

    @property
    def name(self) -> str:
        return str(self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.signal, name)


Resolver = Callable[[Any, Sequence[Any]], Iterable[Any] | None]
_WRONG_ANSWER = "a topology function returns None or a list of locations (those it was given, their rows, or names)"


def _rows(item: Any, every: Sequence[Place], signal: Signal) -> list[int]:
    """The rows that an item of a function's answer means; a name those of the signal's host, if there are any."""
    if isinstance(item, Place):
        return [item.row]
    if isinstance(item, str):
        pattern = _glob(item)
        named = [
            place
            for place in every
            if any(pattern.fullmatch(text) for text in (place.name, place.process, place.owner) if text)
        ]
        here = [place.row for place in named if not signal.host or place.host == signal.host]
        if not named:
            known = [text for place in every for text in (place.name, place.process, place.owner) if text]
            raise OptionError.unknown(
                f"location or process that the topology function gave for {signal.name}", item, known
            )
        return here
    if isinstance(item, int) and not isinstance(item, bool):
        return [item]
    try:
        return [operator.index(item)]  # NumPy's integers
    except TypeError:
        raise OptionError(f"{_WRONG_ANSWER}, not of {type(item).__name__} (for {signal.name!r})") from None


@dataclass(frozen=True)
class TopologyOverride:
    """For devices or signals of this name these locations; or those that a function returns."""

    reason: str
    names: tuple[str, ...] = ()
    signal: str = ""
    device: str = ""
    host: str = ""
    resolver: Resolver | None = None

    def locations(self, recording: Recording, device: Device, signal: Signal | None) -> list[int] | None:
        """The rows of the locations, or None when this override does not speak of the device."""
        if self.resolver is not None:
            return None if signal is None else self._resolved(recording, signal)
        if self.host and not _glob(self.host).fullmatch(device.host):
            return None
        if self.device and not _glob(self.device).fullmatch(device.name):
            return None
        if self.signal:
            names = [s.name for s in recording.signals_of(device)]
            names = [signal.name] if signal is not None else names
            if not any(re.search(self.signal, name, re.IGNORECASE) for name in names):
                return None
        return self._named(recording, device)

    def _named(self, recording: Recording, device: Device) -> list[int]:
        here = [place for place in places(recording) if not device.host or place.host == device.host]
        rows: set[int] = set()
        for name in self.names:
            pattern = _glob(name)
            matches = {p.row for p in here if any(map(pattern.fullmatch, p.names))}
            rows |= matches  # a name may stand on other hosts only; names on no host are reported by ``not_found``
        return sorted(rows)

    def _resolved(self, recording: Recording, signal: Signal) -> list[int] | None:
        assert self.resolver is not None
        every = places(recording)
        answer = self.resolver(SignalName.of(signal), every)
        if answer is None:
            return None
        if isinstance(answer, str) or not isinstance(answer, Iterable):
            raise OptionError(f"{_WRONG_ANSWER}, not {answer!r} (for {signal.name!r})")
        rows = [row for item in answer for row in _rows(item, every, signal)]
        wrong = [row for row in rows if not 0 <= row < len(recording.locations)]
        if wrong:
            raise OptionError(
                f"the topology function gave location {wrong[0]} for {signal.name!r}; there is no such location"
            )
        return rows


def places(recording: Recording) -> list[Place]:
    """All locations that run spans."""
    names = ("", *recording.processes.name)  # row −1 has no name
    return [
        Place(
            row,
            recording.locations.name[row],
            kind,
            names[int(recording.locations.process[row]) + 1],
            names[recording.owner(row) + 1],
            recording.location_host(row),
        )
        for row, kind in enumerate(recording.locations.kind)
        if kind != "metric"
    ]


def _glob(text: str) -> re.Pattern[str]:
    """Compile a pattern in which only ``*`` is special: brackets are part of stream names."""
    return re.compile(".*".join(re.escape(part) for part in text.split("*")), re.IGNORECASE)


def parse_map(text: str, hosts: Sequence[str]) -> TopologyOverride:
    """``[HOST/]SIGNAL_RE -> NAME, NAME``."""
    left, arrow, right = text.partition("->")
    names = tuple(name.strip() for name in right.split(",") if name.strip())
    left = left.strip()
    if not arrow or not left or not names:
        raise OptionError(f"map {text!r} is not of the form '[HOST/]SIGNAL_RE -> NAME, NAME'")
    host, slash, rest = left.partition("/")
    if slash and any(_glob(host).fullmatch(known) for known in hosts):
        return TopologyOverride(f"--map {text}", names, _regex(rest, text), host=host)
    return TopologyOverride(f"--map {text}", names, _regex(left, text))


def _regex(pattern: str, where: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise OptionError(f"{where!r}: not a regular expression: {error}") from error
    return pattern


def from_toml(path: str | os.PathLike[str]) -> list[TopologyOverride]:
    """The overrides of a topology file."""
    tomllib: Any = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    path = Path(path)
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise NotFoundError(f"{path}: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FormatError(path, f"not TOML: {error}") from error
    entries = content.get("device")
    if not isinstance(entries, list) or not entries:
        what = "no [[device]] entry, such as three lines: [[device]] | signal = 'device=0' | locations = ['MPI Rank 0']"
        raise FormatError(path, what)
    return [_entry(entry, path) for entry in entries]


def _entry(entry: Mapping[str, Any], path: Path) -> TopologyOverride:
    known = ("signal", "device", "host", "locations")
    for key in entry:
        if key not in known:
            raise OptionError.unknown(f"key in {path}", key, known)
    names = entry.get("locations")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise FormatError(path, "locations has to be a list of names")
    if not entry.get("signal") and not entry.get("device"):
        raise FormatError(path, "a [[device]] entry needs signal = RE or device = NAME")
    signal = _regex(str(entry.get("signal", "")), str(path))
    return TopologyOverride(str(path), tuple(names), signal, str(entry.get("device", "")), str(entry.get("host", "")))


def overrides(
    recording: Recording, topology: str | os.PathLike[str] | Resolver | None = None, maps: Sequence[str] = ()
) -> tuple[TopologyOverride, ...]:
    """Collect all of a user's overrides; ``--map`` goes before the file."""
    entries = [parse_map(text, recording.hosts()) for text in maps]
    for override in entries:
        if not any(re.search(override.signal, signal.name, re.IGNORECASE) for signal in recording.signals):
            raise OptionError.unknown("signal in the map", override.signal, (s.name for s in recording.signals))
    if callable(topology):
        name = getattr(topology, "__name__", "a function")
        entries.append(TopologyOverride(f"the function {name} says so", resolver=topology))
    elif topology is not None:
        entries.extend(from_toml(topology))
    return tuple(entries)


def not_found(recording: Recording, given: Sequence[TopologyOverride]) -> list[Problem]:
    """Names that no location, context or process of any host has; an error where an override has no other names."""
    if not given:
        return []
    every = places(recording)
    known = list(dict.fromkeys(text for place in every for text in place.names))
    problems = []
    for override in given:
        missing = [name for name in override.names if not any(_glob(name).fullmatch(text) for text in known)]
        if missing and len(missing) == len(override.names):
            raise OptionError.unknown("location or process on any host", missing[0], known)
        if missing:
            problems.append(Problem("topology", f"{override.reason}: not in this recording: {', '.join(missing)}"))
    return problems
