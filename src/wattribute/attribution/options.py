"""What a user may ask of attribution, checked: every typo is an error that suggests the right word."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from fractions import Fraction

from ..alignment.energy import INTEGRATIONS
from ..errors import OptionError
from ..model import Clock

KEYS = (
    *("device", "signal", "of", "host", "process", "location", "frame", "path", "paradigm", "role", "run"),
    *("file", "line", "reading", "bin"),
)
METHODS = ("linear", "window", "solve")
SHARES = ("even", "process", "load", "full")
OF = ("kernels", "copies", "host")
_WIDTHS_S = {"ns": Fraction(1, 10**9), "us": Fraction(1, 10**6), "µs": Fraction(1, 10**6), "ms": Fraction(1, 1000)}
_WIDTHS_S |= {"s": Fraction(1), "min": Fraction(60), "h": Fraction(3600)}


@dataclass(frozen=True)
class Options:
    """A checked question. ``of`` is a tuple of views, each a tuple of words; empty for the default of each device."""

    metric: str | None = None
    of: tuple[tuple[str, ...], ...] = ()
    by: tuple[str, ...] = ("device", "frame")
    method: str = "linear"
    share: str = "even"
    load: str | None = None
    integrate: str = "trapezoid"
    bounds: bool = True
    statistics: bool = False
    bin_s: Fraction | None = None

    @property
    def sliced(self) -> bool:
        """Whether rows are pieces of time, so that spans have to be cut."""
        return "reading" in self.by or "bin" in self.by


def checked(
    metric: str | None = None,
    of: str | Sequence[str] | None = None,
    by: str | Sequence[str] = ("device", "frame"),
    method: str = "linear",
    share: str = "even",
    load: str | None = None,
    integrate: str = "trapezoid",
    bounds: bool = True,
    statistics: bool = False,
) -> Options:
    """Options from what a user typed."""
    keys, bin_s = _keys(by)
    for what, given, known in (("method", method, METHODS), ("share", share, SHARES)):
        if given not in known:
            raise OptionError.unknown(what, given, known)
    if integrate not in INTEGRATIONS:
        raise OptionError.unknown("integration", integrate, INTEGRATIONS)
    if (load is not None) != (share == "load"):
        raise OptionError("share 'load' needs load=RE (--load RE), the signals that tell each user's load, and only it")
    if method == "window" and share == "load":
        raise OptionError("method 'window' splits by busy time, not by load; use share 'even', 'process' or 'full'")
    if method == "solve":
        _check_solve(keys, share, statistics)
    for pattern in (metric, load):
        check_regex(pattern)
    if statistics and ("reading" in keys or "bin" in keys):
        raise OptionError("statistics are per span; they cannot be asked for by reading or by bin")
    return Options(metric, _views(of), keys, method, share, load, integrate, bounds, statistics, bin_s)


def _check_solve(keys: Sequence[str], share: str, statistics: bool) -> None:
    """It tells a frame's mean power over all of its calls: nothing about one moment."""
    if "reading" in keys or "bin" in keys or statistics:
        raise OptionError("method 'solve' tells means over all calls; it cannot be asked by reading, bin or statistics")
    if share == "full":
        raise OptionError("method 'solve' conserves energy; share 'full' does not: use 'even', 'process' or 'load'")


def check_regex(pattern: str | None) -> None:
    try:
        re.compile(pattern or "")
    except re.error as error:
        raise OptionError(f"{pattern!r} is not a regular expression: {error}") from error


def _keys(by: str | Sequence[str]) -> tuple[tuple[str, ...], Fraction | None]:
    given = [part.strip() for text in ([by] if isinstance(by, str) else by) for part in text.split(",")]
    given = [part for part in given if part]
    bin_s = None
    keys = []
    for part in given:
        word, equals, width = part.partition("=")
        if word not in KEYS or (equals and word != "bin"):
            raise OptionError.unknown("key to group by", part, KEYS)
        if word == "bin":
            bin_s = _width(width)
        if word in keys:
            raise OptionError(f"key {word!r} is given twice")
        keys.append(word)
    if {"reading", "bin"} <= set(keys):
        raise OptionError("rows can be by reading or by bin, not both")
    if not keys:
        raise OptionError.unknown("key to group by", "", KEYS)
    return tuple(keys), bin_s


def _width(text: str) -> Fraction:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-zµ]+)", text)
    if not found or found[2] not in _WIDTHS_S or Fraction(found[1]) <= 0:
        raise OptionError(f"bin width {text!r} is not a positive time such as bin=100ms ({', '.join(_WIDTHS_S)})")
    return Fraction(found[1]) * _WIDTHS_S[found[2]]


def _views(of: str | Sequence[str] | None) -> tuple[tuple[str, ...], ...]:
    views = []
    for text in [of] if isinstance(of, str) else (of or ()):
        words = tuple(dict.fromkeys(word.strip() for word in text.split(",")))
        for word in words:
            if word not in OF:
                raise OptionError.unknown("word for who counts (of)", word, OF)
        views.append(words)
    return tuple(dict.fromkeys(views))


def moment(text: str | float | None, clock: Clock) -> int | None:
    """Ticks of a moment: seconds since the global offset, or ISO 8601 when the recording knows its wall clock."""
    if text is None:
        return None
    try:
        return clock.ticks(float(text))
    except (ValueError, OverflowError):
        pass
    try:
        at = datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    except ValueError as error:
        raise OptionError(f"time {text!r} is neither seconds nor ISO 8601 (2026-01-31T12:00:00+00:00)") from error
    if clock.epoch_ns is None:
        raise OptionError(f"time {text!r}: this recording knows no wall clock; give seconds since its start")
    if at.tzinfo is None:
        at = at.replace(tzinfo=timezone.utc)
    since = at - datetime(1970, 1, 1, tzinfo=timezone.utc)
    ns = (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000 - clock.epoch_ns
    return round(Fraction(ns * clock.ticks_per_s, 10**9))
