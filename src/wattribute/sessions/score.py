"""A benchmark's own figures, taken from files that it wrote: ``--score FILE:KEY`` and ``--count UNIT=FILE:KEY``.

JSON and YAML: KEY is a path with dots (``results.0.time``); CSV: a column, of which the last row counts.
"""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import FormatError, MissingExtraError, NoDataError, NotFoundError, OptionError

ENDINGS = (".json", ".yml", ".yaml", ".csv")
LARGEST = 64 << 20  # bytes; a file of results is small


@dataclass(frozen=True)
class ScoreFile:
    """Location of a score, or of a number of units of work."""

    path: Path
    key: str
    before_ns: int | None = None  # when a file of this machine was last written before the run
    unit: str = ""  # of a count

    @classmethod
    def of(cls, text: str) -> ScoreFile:
        """FILE:KEY, split at the last colon."""
        name, _, key = text.rpartition(":")
        if not name or not key:
            raise OptionError(f"--score {text}: write FILE:KEY, as metrics.yml:time")
        path = Path(name)
        if path.suffix.lower() not in ENDINGS:
            raise OptionError.unknown("kind of score file", path.suffix or name, ENDINGS)
        return cls(path, key, path.stat().st_mtime_ns if path.is_file() else None)

    @classmethod
    def of_count(cls, text: str) -> ScoreFile:
        """UNIT=FILE:KEY, split at the first equals sign."""
        unit, equals, where = text.partition("=")
        if not equals or not unit or not where.rpartition(":")[0]:
            raise OptionError(f"--count {text}: write UNIT=FILE:KEY, as tokens=results.json:tokens")
        return replace(cls.of(where), unit=unit)

    @property
    def missing(self) -> str:
        """Beginning of the errors that say why there is no count or score."""
        return f"no count of {self.unit}" if self.unit else "no score"

    def read_count(self, path: Path) -> float:
        """How many; raises when that is not there, or is no number of things."""
        value = self.read(path)
        if isinstance(value, str) or value < 0:
            raise NoDataError(f"{self.missing}: {self.key} in {path} is {value!r}, not a number of them")
        return value

    def read(self, path: Path) -> float | str:
        """The score in a file; raises when it is not there."""
        try:
            about = path.stat()
            if path == self.path and about.st_mtime_ns == self.before_ns:
                raise NoDataError(f"{self.missing}: {path} is older than the run, which did not write it")
            if about.st_size > LARGEST:
                raise FormatError(path, "too large for a file of scores")
            text = path.read_text(encoding="utf-8-sig")
        except OSError as error:
            raise NotFoundError(f"{self.missing}: {path}: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise FormatError(path, "is not UTF-8 text", error.start) from None
        value = self._column(text, path) if path.suffix.lower() == ".csv" else _content(text, path)
        for name in [self.key] if path.suffix.lower() == ".csv" else self.key.split("."):
            value = self._within(value, name, path)
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise NoDataError(f"{self.missing}: {self.key} in {path} is neither a number nor a word")
        if not isinstance(value, str) and not abs(value) <= sys.float_info.max:  # no JSON has a word for it
            raise NoDataError(f"{self.missing}: {self.key} in {path} is not finite")
        return value if isinstance(value, str) else float(value)

    def _within(self, content: Any, name: str, path: Path) -> Any:
        if isinstance(content, list) and name.lstrip("-").isdigit() and -len(content) <= int(name) < len(content):
            return content[int(name)]
        if isinstance(content, dict) and name in content:
            return content[name]
        known = ", ".join(map(str, list(content)[:10])) if isinstance(content, dict) else f"{type(content).__name__}"
        raise NoDataError(f"{self.missing}: {path} has no {name!r} (there: {known})")

    def _column(self, text: str, path: Path) -> dict[str, Any]:
        rows = list(csv.DictReader(text.splitlines()))
        if not rows:
            raise NoDataError(f"{self.missing}: {path} has no rows")
        last: dict[str, Any] = {}
        for name, value in rows[-1].items():
            try:
                last[name] = float(value)
            except (TypeError, ValueError):
                last[name] = value
        return last


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
