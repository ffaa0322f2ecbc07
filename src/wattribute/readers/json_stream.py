"""A JSON file larger than memory, one element at a time: ``elements`` walks an array at the top or under one key.

Python's own decoder works on pieces of the file: it needs no other package and is half as fast again as ijson, which
builds values from a parser's events (``benchmarks/chrome.py``). Decimal fractions come as text, so that nanoseconds
survive in a time of 10^15 microseconds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from ..errors import FormatError
from .files import Text

_LARGEST = 1 << 28  # of one element, in characters
_SPACE = re.compile(r"[ \t\n\r]*")
_BETWEEN = re.compile(r"[ \t\n\r,]*")
_DECODER = json.JSONDecoder(parse_float=str)


class JsonDamage(Exception):
    """The text ends or stops being JSON here."""


class JsonStream:
    """The elements of one array in a JSON text; other values at the top land in ``others``.

    After the walk ``damage`` says what is wrong with the text, if anything.
    """

    def __init__(self, text: Text, key: str) -> None:
        self.text, self.key = text, key
        self.others: dict[str, Any] = {}
        self.damage = ""
        self._pieces = iter(text)
        self._buffer, self._at = "", 0
        self._scan: Callable[[str, int], tuple[Any, int]] = _DECODER.scan_once  # type: ignore[attr-defined]

    def elements(self) -> Iterator[Any]:
        try:
            first = self._next(_SPACE)
            if first == "[":
                self._at += 1
                yield from self._array(may_end=True)
            elif first == "{":
                self._at += 1
                yield from self._object()
            else:
                raise JsonDamage("is neither a JSON object nor an array")
        except JsonDamage as error:
            self.damage = str(error)
        except RecursionError:
            raise FormatError(self.text.path, "is nested too deeply") from None

    def _object(self) -> Iterator[Any]:
        while (mark := self._next(_BETWEEN)) != "}":
            name = self._value() if mark == '"' else None
            if not isinstance(name, str) or self._next(_SPACE) != ":":
                raise JsonDamage("is not valid JSON")
            self._at += 1
            if self._next(_SPACE) == "[" and name == self.key:
                self._at += 1
                yield from self._array()
            else:
                self.others[name] = self._value()

    def _array(self, may_end: bool = False) -> Iterator[Any]:
        """Elements up to the closing bracket; ``may_end``: Chrome lets it be missing."""
        scan, between = self._scan, _BETWEEN.match
        while True:
            at = between(self._buffer, self._at).end()  # type: ignore[union-attr]
            if at < len(self._buffer) and self._buffer[at] == "]":
                self._at = at + 1
                return
            try:
                element, self._at = scan(self._buffer, at)
            except (StopIteration, ValueError):
                self._at = at
                if not self._more():
                    if may_end and at >= len(self._buffer):
                        return
                    raise JsonDamage("ends or is damaged in the middle; what stands before that was read") from None
                continue
            if self._at == len(self._buffer) and self._more_of(element, at):
                continue
            yield element

    def _more_of(self, element: Any, at: int) -> bool:
        """A number at the end of the buffer may go on in the next piece."""
        if isinstance(element, dict | list):
            return False
        end, self._at = self._at, at
        if self._more():
            return True
        self._at = end
        return False

    def _value(self) -> Any:
        while True:
            at = _SPACE.match(self._buffer, self._at).end()  # type: ignore[union-attr]
            try:
                value, end = self._scan(self._buffer, at)
                if end < len(self._buffer) or not self._more():
                    self._at = end
                    return value
            except (StopIteration, ValueError):
                if not self._more():
                    raise JsonDamage("ends or is damaged in the middle; what stands before that was read") from None

    def _next(self, skipped: re.Pattern[str]) -> str:
        """The next character that is not skipped; it is not taken."""
        while True:
            self._at = skipped.match(self._buffer, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if not self._more():
                raise JsonDamage("ends in the middle")

    def _more(self) -> bool:
        """Append as much text as is waiting already, so that a long value is scanned a few times only."""
        waiting = len(self._buffer) - self._at
        if waiting > _LARGEST:
            raise FormatError(self.text.path, f"one value has more than {_LARGEST >> 20} MB; it is damaged there")
        pieces = [self._buffer[self._at :]]
        gained = 0
        for piece in self._pieces:
            pieces.append(piece)
            gained += len(piece)
            if gained and gained >= waiting:
                break
        self._buffer, self._at = "".join(pieces), 0
        return gained > 0
