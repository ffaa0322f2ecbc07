"""The user's word on which locations use which device: a TOML file, ``--map`` texts, or a function.

::

    [[device]]
    signal = "energy_count:device=2$"       # re.search, case-insensitive; or device = "GPU 2"
    host = "frontier09408"                  # optional; * matches anything
    locations = ["HIP Context 1", "HIP[2:*]"]  # names of locations, contexts or processes
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import FormatError, NotFoundError, OptionError
from ..model import Device, Recording, Signal


class Place(NamedTuple):
    """A location as a topology function sees it."""

    row: int
    name: str
    kind: str
    process: str
    owner: str  # the process that created a stream's context
    host: str


Resolver = Callable[[Signal, Sequence[Place]], Iterable[Any]]


@dataclass(frozen=True)
class Override:
    """For devices or signals of this name these locations; or whatever a function says."""

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
            names = [s.name for s in recording.signals if s.host == device.host and s.device == device.name]
            names = [signal.name] if signal is not None else names
            if not any(re.search(self.signal, name, re.IGNORECASE) for name in names):
                return None
        return self._named(recording, device)

    def _named(self, recording: Recording, device: Device) -> list[int]:
        here = [place for place in places(recording) if not device.host or place.host == device.host]
        rows: set[int] = set()
        for name in self.names:
            pattern = _glob(name)
            found = {p.row for p in here if any(pattern.fullmatch(text) for text in (p.name, p.process, p.owner))}
            if not found:
                known = [text for p in here for text in (p.name, p.process, p.owner) if text]
                raise OptionError.unknown(f"location or process on {device.host or 'any host'}", name, known)
            rows |= found
        return sorted(rows)

    def _resolved(self, recording: Recording, signal: Signal) -> list[int] | None:
        assert self.resolver is not None
        found = self.resolver(signal, places(recording))
        if found is None:
            return None
        rows = [item.row if isinstance(item, Place) else int(item) for item in found]
        wrong = [row for row in rows if not 0 <= row < len(recording.locations)]
        if wrong:
            raise OptionError(f"the topology function gave location {wrong[0]} for {signal.name!r}; there is none such")
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
    """Only ``*`` is special: brackets are part of stream names."""
    return re.compile(".*".join(re.escape(part) for part in text.split("*")), re.IGNORECASE)


def parse_map(text: str, hosts: Sequence[str]) -> Override:
    """``[HOST/]SIGNAL_RE -> NAME, NAME``."""
    left, arrow, right = text.partition("->")
    names = tuple(name.strip() for name in right.split(",") if name.strip())
    left = left.strip()
    if not arrow or not left or not names:
        raise OptionError(f"map {text!r} is not of the form '[HOST/]SIGNAL_RE -> NAME, NAME'")
    host, slash, rest = left.partition("/")
    if slash and any(_glob(host).fullmatch(known) for known in hosts):
        return Override(f"--map {text}", names, _regex(rest, text), host=host)
    return Override(f"--map {text}", names, _regex(left, text))


def _regex(pattern: str, where: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise OptionError(f"{where!r}: not a regular expression: {error}") from error
    return pattern


def from_toml(path: str | os.PathLike[str]) -> list[Override]:
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


def _entry(entry: Mapping[str, Any], path: Path) -> Override:
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
    return Override(str(path), tuple(names), signal, str(entry.get("device", "")), str(entry.get("host", "")))


def overrides(
    recording: Recording, topology: str | os.PathLike[str] | Resolver | None = None, maps: Sequence[str] = ()
) -> tuple[Override, ...]:
    """All of a user's overrides; ``--map`` goes before the file."""
    found = [parse_map(text, recording.hosts()) for text in maps]
    for override in found:
        if not any(re.search(override.signal, signal.name, re.IGNORECASE) for signal in recording.signals):
            raise OptionError.unknown("signal in the map", override.signal, (s.name for s in recording.signals))
    if callable(topology):
        name = getattr(topology, "__name__", "a function")
        found.append(Override(f"the function {name} says so", resolver=topology))
    elif topology is not None:
        found.extend(from_toml(topology))
    return tuple(found)
