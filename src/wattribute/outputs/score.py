"""A benchmark's own score, taken from a file that it wrote: ``--score FILE:KEY``.

JSON and YAML: KEY is a path with dots (``results.0.time``); CSV: a column, of which the last row counts.
"""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import FormatError, MissingExtraError, NoDataError, NotFoundError, OptionError

ENDINGS = (".json", ".yml", ".yaml", ".csv")
LARGEST = 64 << 20  # bytes; a file of results is small


@dataclass(frozen=True)
class Sought:
    """Where a score stands."""

    path: Path
    key: str
    before_ns: int | None = None  # when a file of this machine was last written before the run

    @classmethod
    def of(cls, text: str) -> Sought:
        """FILE:KEY, split at the last colon."""
        name, _, key = text.rpartition(":")
        if not name or not key:
            raise OptionError(f"--score {text}: write FILE:KEY, as metrics.yml:time")
        path = Path(name)
        if path.suffix.lower() not in ENDINGS:
            raise OptionError.unknown("kind of score file", path.suffix or name, ENDINGS)
        return cls(path, key, path.stat().st_mtime_ns if path.is_file() else None)

    def read(self, path: Path) -> float | str:
        """The score in a file; raises when it is not there."""
        try:
            about = path.stat()
            if path == self.path and about.st_mtime_ns == self.before_ns:
                raise NoDataError(f"no score: {path} is older than the run, which did not write it")
            if about.st_size > LARGEST:
                raise FormatError(path, "too large for a file of scores")
            text = path.read_text(encoding="utf-8-sig")
        except OSError as error:
            raise NotFoundError(f"no score: {path}: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise FormatError(path, "is not UTF-8 text", error.start) from None
        found = _column(text, path) if path.suffix.lower() == ".csv" else _content(text, path)
        for name in [self.key] if path.suffix.lower() == ".csv" else self.key.split("."):
            found = _within(found, name, path)
        if isinstance(found, bool) or not isinstance(found, (int, float, str)):
            raise NoDataError(f"no score: {self.key} in {path} is no number or word")
        if not isinstance(found, str) and not abs(found) <= sys.float_info.max:  # no JSON has a word for it
            raise NoDataError(f"no score: {self.key} in {path} is not finite")
        return found if isinstance(found, str) else float(found)


def _within(found: Any, name: str, path: Path) -> Any:
    if isinstance(found, list) and name.lstrip("-").isdigit() and -len(found) <= int(name) < len(found):
        return found[int(name)]
    if isinstance(found, dict) and name in found:
        return found[name]
    known = ", ".join(map(str, list(found)[:10])) if isinstance(found, dict) else f"{type(found).__name__}"
    raise NoDataError(f"no score: {path} has no {name!r} (there: {known})")


def _content(text: str, path: Path) -> Any:
    if path.suffix.lower() == ".json":
        try:
            return json.loads(text)
        except ValueError as error:
            raise FormatError(path, f"is not JSON: {error}") from None
    try:
        import yaml
    except ImportError:
        raise MissingExtraError("docker", "PyYAML") from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise FormatError(path, f"is not YAML: {' '.join(str(error).split())}") from None


def _column(text: str, path: Path) -> dict[str, Any]:
    rows = list(csv.DictReader(text.splitlines()))
    if not rows:
        raise NoDataError(f"no score: {path} has no rows")
    last: dict[str, Any] = {}
    for name, value in rows[-1].items():
        try:
            last[name] = float(value)
        except (TypeError, ValueError):
            last[name] = value
    return last
