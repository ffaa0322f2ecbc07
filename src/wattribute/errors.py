"""Every error wattribute raises; each is also the standard error a caller would catch, and says what to do.

::

    WattributeError
    ├── NotFoundError          (FileNotFoundError)    a path that is not there, or holds nothing we know
    ├── FormatError            (ValueError)           a file that is not what it claims: names file and position
    ├── UnsupportedError       (NotImplementedError)  a valid file of a kind we do not read
    ├── OptionError            (ValueError)           a wrong option or name; suggests close ones
    ├── NoDataError            (LookupError)          nothing to work on: no energy metric, no spans, no overlap
    ├── MeterError             (OSError)              a sensor that cannot be read; says the command that fixes it
    ├── OutputError            (OSError)              a result that could not be written or sent
    ├── ClusterError           (ConnectionError)      a cluster or server that cannot be reached, or does not fit
    └── MissingExtraError      (ImportError)          an optional part is not installed; prints the command

    PartialResultWarning       (RuntimeWarning)       a result of which a part is missing; the command line exits 4
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

TYPE_CHECKING = False  # not typing's: programs under a profile import this while they start
if TYPE_CHECKING:
    from typing import Any, ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Remove terminal control characters from a text: names in messages come from files of others."""
    return _CONTROL.sub("\ufffd", text)


class WattributeError(Exception):
    """The root of the tree; the command line prints it as one line and exits 1."""

    def __str__(self) -> str:
        return printable(super().__str__())


class NotFoundError(WattributeError, FileNotFoundError):
    """A path that does not exist or holds nothing we know."""


class FormatError(WattributeError, ValueError):
    """A file that is not what it claims to be."""

    def __init__(self, path: Path | str, what: str, position: int | None = None) -> None:
        where = f"{path}" if position is None else f"{path} at byte {position}"
        super().__init__(f"{where}: {what}")
        self.path, self.position = Path(path), position


class UnsupportedError(WattributeError, NotImplementedError):
    """A valid input of a kind that is not supported."""


_OTHER_WORDS = {
    **dict.fromkeys(("function", "functions", "kernel", "kernels", "region", "symbol", "name"), "frame"),
    **dict.fromkeys(("thread", "stream", "worker", "tid"), "location"),
    **dict.fromkeys(("rank", "pid"), "process"),
    **dict.fromkeys(("gpu", "cpu", "card", "package"), "device"),
    **dict.fromkeys(("node", "hostname", "machine"), "host"),
    **dict.fromkeys(("stack", "callpath", "call_path", "callstack", "tree"), "path"),
    **dict.fromkeys(("module", "filename", "library", "source"), "file"),
    **dict.fromkeys(("metric", "sensor"), "signal"),
    **dict.fromkeys(("time", "interval"), "bin=100ms"),
    **{"shared": "even", "independent": "full"},
    **{"left": "step", "previous": "step", "linear": "trapezoid", "trapz": "trapezoid"},
}  # other tools' words for ours


class OptionError(WattributeError, ValueError):
    """A wrong value for an option; close names are suggested."""

    @classmethod
    def unknown(cls, what: str, given: str, known: Iterable[str]) -> OptionError:
        import difflib

        known = sorted(set(known))
        words = {word: ours for word, ours in _OTHER_WORDS.items() if ours in known} | {name: name for name in known}
        near = [given.lower()] if given.lower() in words else difflib.get_close_matches(given, words, n=3, cutoff=0.5)
        close = dict.fromkeys(words[word] for word in near)
        hint = f"did you mean {' or '.join(repr(name) for name in close)}?" if close else f"known: {', '.join(known)}"
        return cls(f"unknown {what} {given!r}; {hint}")


def names_keywords(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a public function: an unknown keyword is an OptionError that names the known ones."""

    @functools.wraps(function)
    def call(*args: P.args, **keywords: P.kwargs) -> R:
        try:
            return function(*args, **keywords)
        except TypeError as error:
            inner: Any = function
            while hasattr(inner, "__wrapped__"):
                inner = inner.__wrapped__
            complaint = f"{inner.__qualname__}() got an unexpected keyword argument "
            if not str(error).startswith(complaint):
                raise
            unknown = next((name for name in keywords if f"{complaint}{name!r}" in str(error)), "")
            code = inner.__code__
            known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        raise OptionError.unknown(f"keyword of {inner.__name__}()", unknown, known)

    return call


class NoDataError(WattributeError, LookupError):
    """No data to work on."""

    def __str__(self) -> str:  # LookupError would print the repr
        return printable(" ".join(str(part) for part in self.args))


class MeterError(WattributeError, OSError):
    """A sensor cannot be read."""


class OutputError(WattributeError, OSError):
    """A result could not be written or sent."""


class ClusterError(WattributeError, ConnectionError):
    """A cluster or server cannot be reached, or cannot do the work."""


class PartialResultWarning(RuntimeWarning):
    """A part of a result is missing; the same sentence is among its problems."""


class MissingExtraError(WattributeError, ImportError):
    """An optional part of wattribute is not installed."""

    def __init__(self, extra: str, package: str) -> None:
        super().__init__(f"{package} is not installed; run: pip install 'wattribute[{extra}]'")
        self.extra = extra


@contextmanager
def damage_as_format_error(path: Path) -> Iterator[None]:
    """Turn what damaged content makes of a loader (a missing key, a wrong type, a number too large) into a FormatError.

    For loaders of formats of our own, which no other program writes: that the content does not fit is all there is to
    say, and where.
    """
    from struct import error as StructError

    try:
        yield
    except WattributeError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, StructError, TypeError, ValueError) as error:
        what = " ".join(str(error).split())[:200]
        raise FormatError(path, f"is damaged ({type(error).__name__}: {what})") from error


def check_name(path: Path) -> None:
    """Refuse a folder of tables whose name is not UTF-8, before anything is made: neither Arrow nor Polars opens it."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        shown = str(path).encode("utf-8", "replace").decode()
        raise OutputError(f"{shown}: cannot be made: the name is not UTF-8; choose another") from None
