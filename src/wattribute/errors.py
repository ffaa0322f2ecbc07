"""Every error wattribute raises; each is also the standard error a caller would catch, and says what to do.

::

    WattributeError
    ├── NotFoundError          (FileNotFoundError)    a path that is not there, or holds nothing we know
    ├── FormatError            (ValueError)           a file that is not what it claims: names file and position
    ├── UnsupportedError       (NotImplementedError)  a valid file of a kind we do not read
    ├── OptionError            (ValueError)           a wrong option or name; suggests close ones
    ├── NoDataError            (LookupError)          nothing to work on: no energy metric, no spans, no overlap
    ├── MeterError             (OSError)              a sensor that cannot be read; says the command that mends it
    ├── OutputError            (OSError)              a result that could not be written or sent
    ├── ClusterError           (ConnectionError)      a cluster or server that cannot be reached, or does not fit
    └── MissingExtraError      (ImportError)          an optional part is not installed; prints the command
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


class WattributeError(Exception):
    """The root of the tree; the command line prints it as one line and exits 1."""


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


class OptionError(WattributeError, ValueError):
    """A wrong value for an option; close names are suggested."""

    @classmethod
    def unknown(cls, what: str, given: str, known: Iterable[str]) -> OptionError:
        import difflib

        known = sorted(set(known))
        close = difflib.get_close_matches(given, known, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(repr(name) for name in close)}?" if close else f"known: {', '.join(known)}"
        return cls(f"unknown {what} {given!r}; {hint}")


class NoDataError(WattributeError, LookupError):
    """There is nothing to work on."""

    def __str__(self) -> str:  # LookupError would print the repr
        return " ".join(str(part) for part in self.args)


class MeterError(WattributeError, OSError):
    """A sensor cannot be read."""


class OutputError(WattributeError, OSError):
    """A result could not be written or sent."""


class ClusterError(WattributeError, ConnectionError):
    """A cluster or server cannot be reached, or cannot do the work."""


class MissingExtraError(WattributeError, ImportError):
    """An optional part of wattribute is not installed."""

    def __init__(self, extra: str, package: str) -> None:
        super().__init__(f"{package} is not installed; run: pip install 'wattribute[{extra}]'")
        self.extra = extra


def check_name(path: Path) -> None:
    """Refuse a folder of tables whose name is not UTF-8, before anything is made: neither Arrow nor Polars opens it."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        shown = str(path).encode("utf-8", "replace").decode()
        raise OutputError(f"{shown}: cannot be made: the name is not UTF-8; choose another") from None
