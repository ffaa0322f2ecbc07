"""Interfaces for plug-in authors: what a Reader, Meter, Output, Engine and Chart are, and the registry that finds them.

A plug-in is an entry point in the group ``wattribute.readers``, ``wattribute.meters``, ``wattribute.outputs``,
``wattribute.engines`` or ``wattribute.charts``; its name is the name users type, its object is a module, class or
function as described below. Ours are declared like anyone's, but for charts: those are the files of ``views/charts``.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeVar

from .entry_points import EntryPoint, entry_points
from .errors import MissingExtraError, OptionError
from .model import Device

if TYPE_CHECKING:  # NumPy stays out of the process that reads meters
    from .model import Recording


@dataclass(frozen=True)
class Selection:
    """What to read; ``metric`` is ``re.search``, case-insensitive. What is not selected costs no work."""

    metric: str | None = None
    metric_kinds: Sequence[str] = ()  # "RE=counter:uJ", split at the last "="
    threads: int | None = None
    progress: Any = None  # called as progress(done, whole) now and then, or None
    survey: Any = None  # who reads readings elsewhere (see engines.readings), or None: they are read here


class Reader(Protocol):
    """Files → Recording. A module with these two functions."""

    def detects(self, path: Path) -> bool:
        """Whether this file or folder, judged by its content, is ours. Cheap; never raises for a readable path."""
        ...

    def read(self, path: Path, selection: Selection) -> Recording:
        """What ``selection`` asks for of ``path``.

        Raises FormatError or UnsupportedError, or keeps what is readable and notes the problems.
        """
        ...


@dataclass(frozen=True)
class Availability:
    """Whether a meter can be used here; if not, why, and the one command that would fix it."""

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

    It may offer ``sources`` (see ``meters.sources``): then the compiled core reads it, at a fraction of the cost. Its
    ``problems``, if it has them once it is available, are sentences about devices that it should see and does not.
    """

    name: str

    def available(self) -> Availability:
        """Whether it can be read here; opens what it needs."""
        ...

    def channels(self) -> Sequence[Channel]:
        """The channels that can be read, always in the same order; called if the meter is available."""
        ...

    def read(self) -> Sequence[tuple[int, int | float | None]]:
        """(monotonic ns, raw value) per channel; None where there is no new reading this time."""
        ...

    def close(self) -> None:
        """Release what ``available`` opened; may be called twice."""
        ...


class Output(Protocol):
    """Attribution → file or server. A module with these.

    It may also say ``SEVERAL_RUNS = True`` (it takes an ensemble) and have ``write_folder(attribution, target)`` (what
    ``export`` calls instead of ``write``).
    """

    SUFFIXES: tuple[str, ...]  # how its files end; empty for servers

    def write(self, attribution: Any, target: str, **options: Any) -> None:
        """Write ``attribution`` atomically to the path ``target`` (or send it to a URL); raises OutputError."""
        ...


class Engine(Protocol):
    """Where attribution is computed. A module with this function; ``engines.work`` says what it is given."""

    def run(self, work: Any) -> Any:
        """Solve ``work.groups``; returns an ``EngineResult``."""
        ...


NEEDS = {  # what a chart is drawn from
    "attribution": "the Attribution of one run by the keys of the chart",
    "stacks": "the same, of host threads when these have spans and the user did not say otherwise",
    "signals": "one Recording",
    "runs": "the Attributions of several runs",
    "experiment": "an Experiment",
}
Looks = ParamSpec("Looks")


@dataclass(frozen=True)
class Chart(Generic[Looks]):
    """Attribution → Altair chart: what :func:`chart` makes of a function. Call it as the function."""

    name: str
    about: str  # one line, for lists
    draw: Callable[Looks, Any]
    needs: str = "attribution"  # a key of NEEDS
    by: tuple[str, ...] = ("device", "frame")  # the keys of the Attribution it is given by ``plot``
    fallback: Callable[..., Any] | None = None  # draws (recording, metric, because) where nothing is attributed
    files: Mapping[str, Callable[..., str]] = field(default_factory=dict)  # other endings → the text of such a file

    def __call__(self, *source: Looks.args, **looks: Looks.kwargs) -> Any:
        self.check(*source)
        return self.draw(*source, **looks)

    @property
    def looks(self) -> list[str]:
        """The chart's own options."""
        kinds = inspect.signature(self.draw).parameters.items()
        return [name for name, one in kinds if one.kind is inspect.Parameter.KEYWORD_ONLY]

    def check(self, source: Any, *_: Any) -> None:
        """Raise OptionError if a chart of one run is given several, or what is no Attribution."""
        from .model import Answer, Attribution, Recording

        if self.needs not in ("attribution", "stacks", "signals"):
            return
        if isinstance(source, Answer) and not isinstance(source, Attribution):
            many = len(source.recordings)
            raise OptionError(f"a chart of {self.name} shows one run, not {many}; many runs belong to a chart of runs")
        if not isinstance(source, Attribution | Recording if self.needs == "signals" else Attribution):
            what = "a Recording" if self.needs == "signals" else "an Attribution (see wattribute.attribute)"
            raise OptionError(f"a chart of {self.name} is drawn from {what}, not from {type(source).__name__}")


def chart(
    name: str,
    *,
    about: str,
    needs: str = "attribution",
    by: tuple[str, ...] = ("device", "frame"),
    fallback: Callable[..., Any] | None = None,
    files: Mapping[str, Callable[..., str]] | None = None,
) -> Callable[[Callable[Looks, Any]], Chart[Looks]]:
    """Make a chart of a function ``(source, *, theme="light", …) -> altair.Chart``.

    ``name`` is what users type, ``about`` a line for lists, ``needs`` a key of ``NEEDS``, ``by`` the keys of the
    Attribution. ``fallback(recording, metric, because)`` draws where nothing is attributed; ``files`` are functions for
    other endings. Keyword-only parameters are its options; the command line can set ``theme``, ``top``, ``value``,
    ``colour``, ``axes``, ``zone``, ``root`` and ``by``. Point an entry point of the group ``wattribute.charts`` at the
    result.
    """
    if needs not in NEEDS:
        raise OptionError.unknown("need of a chart", needs, NEEDS)
    return lambda draw: Chart(name, about, draw, needs, by, fallback, files or {})


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
        """The names of all plug-ins of the group, sorted."""
        return sorted(self._points())

    def get(self, name: str) -> P:
        """Load the plug-in called ``name``; raises OptionError if there is none."""
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


def suffixes() -> dict[str, frozenset[str]]:
    """Reader → the suffixes it declares, from entry points ``READER.SUFFIX`` that load the reader."""
    declared: dict[str, set[str]] = {}
    for name in Registry[Reader]("suffixes").names():
        reader, _, suffix = name.partition(".")
        declared.setdefault(reader, set()).add(f".{suffix.lower()}")
    return {reader: frozenset(names) for reader, names in declared.items()}


readers: Registry[Reader] = Registry("readers")
meters: Registry[type[Meter]] = Registry("meters")
outputs: Registry[Output] = Registry("outputs")
engines: Registry[Engine] = Registry("engines")
charts: Registry[Chart[Any]] = Registry("charts")
