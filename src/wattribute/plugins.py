"""All a plug-in author reads: the Reader, Meter and Output protocols and the registry that finds them.

A plug-in is an entry point in the group ``wattribute.readers``, ``wattribute.meters`` or ``wattribute.outputs``; its
name is the name users type, its object is a module or class with the functions below. Ours are declared like anyone's.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from .entry_points import EntryPoint, entry_points
from .errors import MissingExtraError, OptionError
from .model import Device

if TYPE_CHECKING:  # NumPy stays out of the process that reads meters
    from .model import Attribution, Recording


@dataclass(frozen=True)
class Selection:
    """What to read; regular expressions are ``re.search``, case-insensitive. What is not selected costs no work."""

    process: str | None = None
    frame: str | None = None
    exclude_frame: str | None = None
    metric: str | None = None
    metric_kinds: Sequence[str] = ()  # "RE=counter:uJ", split at the last "="
    threads: int | None = None
    progress: Any = None  # called as progress(done, whole) now and then, or None


class Reader(Protocol):
    """Files → Recording. A module with these two functions."""

    def detects(self, path: Path) -> bool:
        """Whether this file or folder, judged by its content, is ours. Cheap; never raises for a readable path."""
        ...

    def read(self, path: Path, selection: Selection) -> Recording:
        """The recording; raises FormatError/UnsupportedError, or keeps what is readable and notes the problems."""
        ...


@dataclass(frozen=True)
class Availability:
    """Whether a meter can be used here; if not, why, and the one command that would mend it."""

    ok: bool
    reason: str = ""
    fix: str = ""


@dataclass(frozen=True)
class Channel:
    """One signal a meter offers: the fields of a Signal that are known before the first reading."""

    name: str
    kind: str
    unit: str
    device: Device
    scale: Any = 1  # Fraction or int: raw × scale = unit
    wraps_at: int | None = None
    latency_s: float | None = None
    period_s: float | None = None  # how often the sensor updates, when known
    estimated: bool = False
    gain_error: float | None = None
    declared: dict[str, Any] = field(default_factory=dict)
    whole: bool = True  # raw values are integers; False: doubles


class Meter(Protocol):
    """Hardware → readings. A class made as ``Meter(root, clock)``: a root folder, library or file (None: the machine's
    own) and the monotonic clock in ns. Users name one as ``name`` or ``name:root``.

    It runs in a process of its own that has not imported NumPy: keep imports few, and those of libraries inside
    ``available``, which is called first and leaves the meter ready to read.

    Device properties that the sum of a run obeys: ``apart`` says why this device's energy is shown but never added
    (psys sees the packages too), ``scope`` what the sensor sees if that is not the device alone ("module", "package").

    It may offer ``sources`` (see ``meters.sources``): then the compiled core reads it, at a fraction of the cost.
    """

    name: str

    def available(self) -> Availability: ...

    def channels(self) -> Sequence[Channel]:
        """What can be read, always in the same order; called after ``available`` said yes."""
        ...

    def read(self) -> Sequence[tuple[int, int | float | None]]:
        """(monotonic ns, raw value) per channel; None where there is no new reading this time."""
        ...

    def close(self) -> None: ...


class Output(Protocol):
    """Attribution → file or server. A module with this function."""

    def write(self, attribution: Attribution, target: str, **options: Any) -> None:
        """Write atomically to a path (or send to a URL); raises OutputError."""
        ...


P = TypeVar("P")


@cache
def _declared(group: str, path: tuple[str, ...]) -> dict[str, EntryPoint]:
    """Looked up once per search path."""
    return entry_points(group, path)


class Registry(Generic[P]):
    """The plug-ins of one group, loaded when asked for by name."""

    def __init__(self, group: str) -> None:
        self.group = f"wattribute.{group}"
        self._what = group.rstrip("s")

    def _points(self) -> dict[str, EntryPoint]:
        return _declared(self.group, tuple(sys.path))

    def names(self) -> list[str]:
        return sorted(self._points())

    def get(self, name: str) -> P:
        points = self._points()
        if name not in points:
            raise OptionError.unknown(self._what, name, points)
        try:
            loaded: P = points[name].load()
        except MissingExtraError:
            raise
        except ImportError as error:
            raise OptionError(f"{self._what} {name!r} cannot be loaded: {error}") from error
        return loaded


readers: Registry[Reader] = Registry("readers")
meters: Registry[type[Meter]] = Registry("meters")
outputs: Registry[Output] = Registry("outputs")
