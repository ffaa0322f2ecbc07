"""What a user asks: ``ReadOptions`` (which file, which power logs) and ``Question`` (what to attribute).

Both are frozen, checked when made, and the only list of their options: the flags of the command line, the keyword
arguments of ``read`` and ``attribute`` and the documentation come from the fields below. A field's metadata say how the
command line shows it (see :func:`option`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import OptionError
from ..units import TIMES_S, parse_time

if TYPE_CHECKING:
    from .recording import Recording

KEYS = (
    *("device", "signal", "of", "host", "process", "location", "frame", "path", "paradigm", "role", "run"),
    *("file", "line", "reading", "bin"),
)
METHODS = ("linear", "window", "solve")
SHARES = ("even", "process", "load", "full")
SCOPES = ("machine", "process")
STATIC_RULES = ("even", "reserved", "mine", "apart")
QUANTITIES = ("energy", "time")
OF = ("kernels", "copies", "host")
INTEGRATIONS = ("trapezoid", "step")

T = TypeVar("T", bound="Question | ReadOptions")


def option(
    default: Any,
    help: str,
    *,
    flag: str = "",
    metavar: str = "",
    choices: Sequence[str] = (),
    group: str = "Which part",
    repeatable: bool = False,
    kind: Callable[[str], Any] | None = str,
) -> Any:
    """A field that is also a flag: its help, its spelling (default: the field's name), the group it is listed under.

    ``kind`` converts the text of the command line; None marks a field that no flag sets. A boolean default makes a
    switch (``--bounds/--no-bounds``).
    """
    about = {"help": help, "flag": flag, "metavar": metavar, "choices": tuple(choices)}
    return field(default=default, metadata=about | {"group": group, "repeatable": repeatable, "kind": kind})


def make(options: type[T], given: Mapping[str, Any]) -> T:
    """Options from keyword arguments; an unknown name is an error that suggests the right one."""
    known = [one.name for one in fields(options)]
    for name in given:
        if name not in known:
            raise OptionError.unknown("option", name, known)
    return options(**given)


def split(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Keyword arguments parted into those of ``ReadOptions`` and the rest; None values are dropped."""
    names = {one.name for one in fields(ReadOptions)}
    present = {name: value for name, value in given.items() if value is not None}
    return {k: v for k, v in present.items() if k in names}, {k: v for k, v in present.items() if k not in names}


@dataclass(frozen=True)
class ReadOptions:
    """How a path becomes a Recording."""

    format: str | None = option(None, "Reader to use; by default the content decides.", flag="--reader", metavar="NAME")
    signals: str | os.PathLike[str] | Recording | Sequence[str | os.PathLike[str] | Recording] = option(
        (), "Power log of another tool, joined by wall clock or marks.", metavar="FILE", repeatable=True
    )
    offset: float | None = option(None, "Seconds to add to the times of --signals.", metavar="S", kind=float)
    metric_kinds: Sequence[str] = option(
        (),
        "What matching metrics are, for example energy=counter:uJ.",
        flag="--metric-kind",
        metavar="RE=KIND:UNIT",
        group="Advanced",
        repeatable=True,
    )
    threads: int | None = option(None, "Threads to use; all cores by default.", group="Advanced", metavar="N", kind=int)
    progress: Callable[[int, int], None] | None = option(None, "Called with (done, whole) while reading.", kind=None)
    survey: Callable[..., Any] | None = option(None, "Reads readings elsewhere; see engines.readings.", kind=None)

    def __post_init__(self) -> None:
        if isinstance(self.metric_kinds, str):
            object.__setattr__(self, "metric_kinds", (self.metric_kinds,))
        if self.threads is not None and self.threads < 1:
            raise OptionError(f"threads must be at least 1, not {self.threads}")
        if self.offset is not None and not abs(self.offset) < 1e9:
            raise OptionError(f"offset {self.offset} is not a time; give seconds, such as 0.25 or -3600")

    @property
    def logs(self) -> list[Any]:
        """The power logs, as a list."""
        from .recording import Recording

        single = isinstance(self.signals, str | os.PathLike | Recording)
        return [self.signals] if single else list(self.signals)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Question:
    """What to attribute, to whom, and how; every field has a default.

    ``process``, ``host``, ``location``, ``frame`` and ``exclude_frame`` choose rows of the answer: they never change
    what a row gets. ``topology`` is a TOML file or a function ``(signal, locations) -> locations``; ``maps`` are texts
    ``"[HOST/]SIGNAL_RE -> NAME, NAME"``. ``begin`` and ``end`` are seconds since the recording's start, or ISO 8601.
    Regular expressions are ``re.search``, case-insensitive.
    """

    by: str | Sequence[str] = option(
        ("device", "frame"),
        f"Rows: any of {', '.join(KEYS[:-1])}, bin=100ms, joined by commas.",
        metavar="KEYS",
        group="What",
    )
    metric: str | None = option(
        None, "Metrics whose name matches; by default one energy source per device.", metavar="RE", group="What"
    )
    quantity: str | None = option(
        None,
        "What is attributed: energy, or time (every thread's own seconds); default: energy where it was metered.",
        choices=QUANTITIES,
        group="What",
    )
    of: str | Sequence[str] | None = option(
        None,
        "Who counts: kernels, copies, host; a comma joins, repeating the flag gives views side by side.",
        metavar="WHO",
        group="What",
        repeatable=True,
    )
    per: str | None = option(
        None, "Divide by what was counted: joules and seconds per token, request, step …", metavar="UNIT", group="What"
    )
    process: str | None = option(None, "Rows of processes whose name matches.", metavar="RE")
    host: str | None = option(None, "Rows of hosts whose name matches.", metavar="RE")
    location: str | None = option(None, "Rows of locations (threads, streams) whose name matches.", metavar="RE")
    frame: str | None = option(None, "Rows of frames whose name matches.", metavar="RE")
    exclude_frame: str | None = option(None, "Leave out rows of frames whose name matches.", metavar="RE")
    begin: float | str | None = option(
        None, "Start of the time to look at: seconds since the start, or ISO 8601.", flag="--from", metavar="T"
    )
    end: float | str | None = option(None, "End of the time to look at.", flag="--until", metavar="T")
    method: str = option(
        "linear",
        "linear (default); window: all energy between two readings to what ran there (biased); solve (experimental): "
        "spans shorter than the sensor's period, by regression, or a refusal that says why.",
        choices=METHODS,
        group="Advanced",
    )
    share: str | None = option(
        None,
        "How simultaneous users split a device: even, process, load or full (counts double); default: by CPU load "
        "where every thread recorded its own (profiles), else even.",
        choices=SHARES,
        group="Advanced",
    )
    load: str | None = option(None, "Load signals of --share load.", metavar="RE", group="Advanced")
    scope: str | None = option(
        None,
        "Whose energy rows get: machine, or process: the command's part, the rest in the row `other processes`; "
        "default: as the recording was made.",
        choices=SCOPES,
        group="What",
    )
    floor: str | Sequence[str] = option(
        (),
        "Power of a device at rest, for example 'GPU 0=60W', 'cpu=20W±1W' or none; default: the baseline that the "
        "recording carries, else its quietest stretch.",
        metavar="DEVICE=W",
        group="Advanced",
        repeatable=True,
    )
    static: str | None = option(
        None,
        "Who gets static energy (floor x time): even (default), other processes get half of it while they work; "
        "reserved, by the CPUs that the command may use; mine, all of it; apart, a row of its own.",
        choices=STATIC_RULES,
        group="Advanced",
    )
    integrate: str = option(
        "trapezoid", "How power becomes energy: trapezoid (default) or step.", choices=INTEGRATIONS, group="Advanced"
    )
    bounds: bool = option(True, "Compute rigorous bounds (default).", group="Advanced", kind=None)
    statistics: bool = option(
        False,
        "Add mean, min and max of the rate while rows ran: watts of energy, a gauge's own unit.",
        group="What",
        kind=None,
    )
    sensors: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = option(
        (),
        "TOML file of sensor lines that come before the table's, as `wattribute calibrate` writes it.",
        metavar="FILE",
        group="Advanced",
        repeatable=True,
    )
    topology: Any = option(
        None, "TOML file that says which locations use which device.", metavar="FILE", group="Advanced"
    )
    maps: str | Sequence[str] = option(
        (),
        "Who uses a device: '[HOST/]SIGNAL_RE -> NAME, NAME'.",
        flag="--map",
        metavar="MAP",
        group="Advanced",
        repeatable=True,
    )

    def __post_init__(self) -> None:
        set_ = object.__setattr__  # values are brought into one form; the object is frozen for everyone else
        set_(self, "by", _split_keys(self.by))
        set_(self, "of", _split_views(self.of))
        files = [self.sensors] if isinstance(self.sensors, str | os.PathLike) else self.sensors
        set_(self, "sensors", tuple(os.path.abspath(file) for file in files))  # workers stand in other folders
        set_(self, "floor", (self.floor,) if isinstance(self.floor, str) else tuple(self.floor))
        set_(self, "maps", (self.maps,) if isinstance(self.maps, str) else tuple(self.maps))
        known: dict[str, tuple[str | None, ...]] = {"method": METHODS, "integrate": INTEGRATIONS}
        known |= {"share": (None, *SHARES), "scope": (None, *SCOPES), "static": (None, *STATIC_RULES)}
        for name, choices in known.items():
            if getattr(self, name) not in choices:
                raise OptionError.unknown(name, getattr(self, name), [choice for choice in choices if choice])
        for name in ("metric", "load", "process", "host", "location", "frame", "exclude_frame"):
            check_regex(getattr(self, name))
        self._check_combinations()

    def _check_combinations(self) -> None:
        if self.quantity not in (None, *QUANTITIES):
            raise OptionError.unknown("quantity", self.quantity, QUANTITIES)
        if self.quantity == "time" and self.metric is not None:
            raise OptionError("quantity 'time' has no metric; give one of the two")
        if (self.load is not None) != (self.share == "load"):
            raise OptionError("share 'load' needs load=RE (--load RE), the signals with each user's load, and only it")
        if self.method == "window" and self.share == "load":
            raise OptionError("method 'window' splits by busy time, not by load; use share 'even', 'process' or 'full'")
        if self.statistics and self.sliced:
            raise OptionError("statistics are per span; they cannot be asked for by reading or by bin")
        if self.method == "solve" and (self.sliced or self.statistics):
            raise OptionError(
                "method 'solve' gives means over all calls; it cannot be asked by reading, bin or statistics"
            )
        if self.method == "solve" and self.share == "full":
            raise OptionError("method 'solve' conserves energy; share 'full' does not: use 'even', 'process' or 'load'")

    @property
    def keys(self) -> tuple[str, ...]:
        """The words of ``by``, a bin without its width."""
        return tuple(text.partition("=")[0] for text in self.by)

    @property
    def metering(self) -> Question:
        """A question of the fields alone that say how readings become joules."""
        return Question(sensors=self.sensors, integrate=self.integrate)

    @property
    def bin_s(self) -> Fraction | None:
        """The width of a bin, if rows are by bin."""
        return next((_width(text.partition("=")[2]) for text in self.by if text.startswith("bin")), None)

    @property
    def views(self) -> tuple[tuple[str, ...], ...]:
        """Who counts: a tuple of views, each a tuple of words; empty for the default of each device."""
        return tuple(tuple(text.split(",")) for text in self.of or ())

    @property
    def sliced(self) -> bool:
        """Whether rows are pieces of time, so that spans have to be cut."""
        return "reading" in self.keys or "bin" in self.keys

    @property
    def one_fold(self) -> bool:
        """Whether a location is folded once, against the curves of its devices and nothing else."""
        return not (self.sliced or self.statistics or self.method == "solve" or self.per is not None)

    @property
    def selects_rows(self) -> bool:
        """Whether rows of the answer are left out."""
        return any((self.process, self.host, self.location, self.frame, self.exclude_frame))

    def window(self, recording: Recording) -> tuple[int | None, int | None]:
        """The time that was asked for, in ticks; of a run what lies in the life of its command."""
        begin, end = recording.clock.moment(self.begin), recording.clock.moment(self.end)
        start, stop = recording.life
        first = begin if start is None else start if begin is None else max(begin, start)
        last = end if stop is None else stop if end is None else min(end, stop)
        return first, last

    def but(self, **changed: Any) -> Question:
        """The same question with some fields changed."""
        return replace(self, **changed)


def check_regex(text: str | None) -> None:
    """Raise OptionError for a text that is not a regular expression."""
    try:
        re.compile(text or "")
    except re.error as error:
        raise OptionError(f"{text!r} is not a regular expression: {error}") from error


def _split_keys(by: str | Sequence[str]) -> tuple[str, ...]:
    parts = [part.strip() for text in ([by] if isinstance(by, str) else by) for part in text.split(",")]
    keys: list[str] = []
    for part in filter(None, parts):
        word, equals, width = part.partition("=")
        if word not in KEYS or (equals and word != "bin"):
            raise OptionError.unknown("key to group by", part, ["bin=100ms" if key == "bin" else key for key in KEYS])
        if word == "bin":
            _width(width)
        if word in (key.partition("=")[0] for key in keys):
            raise OptionError(f"key {word!r} is given twice")
        keys.append(part)
    if "reading" in keys and any(key.startswith("bin") for key in keys):
        raise OptionError("rows can be by reading or by bin, not both")
    if not keys:
        raise OptionError.unknown("key to group by", "", KEYS)
    return tuple(keys)


def _width(text: str) -> Fraction:
    width_s = parse_time(text)
    if not width_s:
        raise OptionError(f"bin width {text!r} is not a positive time such as bin=100ms ({', '.join(TIMES_S)})")
    return width_s


def _split_views(of: str | Sequence[str] | None) -> tuple[str, ...]:
    views = []
    for text in [of] if isinstance(of, str) else (of or ()):
        words = tuple(dict.fromkeys(word.strip() for word in text.split(",")))
        for word in words:
            if word not in OF:
                raise OptionError.unknown("word for who counts (of)", word, OF)
        views.append(",".join(words))
    return tuple(dict.fromkeys(views))
