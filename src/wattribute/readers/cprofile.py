"""Statistics of cProfile (``python -m cProfile -o X.prof``) → Recording.

cProfile keeps sums, no timeline and no call paths: every function is one span as long as its self time, one after the
other. With a power log a function gets self time × mean power, marked as an estimate. The file is ``marshal``'s, which
Python itself must not load from strangers: the few types that statistics consist of are read here.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from ..errors import FormatError
from ..model import Recording
from ..plugins import Selection
from .building import Builder
from .documents import nanoseconds
from .files import head, opened

_MOST = 1 << 28
_DEEPEST = 8
_REF = 0x80
_NULL = object()  # ends a dict


def detects(path: Path) -> bool:
    """A marshalled dict whose first key is (file, line, function)."""
    data = head(path, 1 << 16)
    if data[:1] not in (b"{", b"\xfb") or data[1:2] not in (b")", b"\xa9"):
        return False
    reader = _Marshal(path, data)
    reader.at = 1
    try:
        return _is_function(reader.value())
    except FormatError:
        return False


def read(path: Path, selection: Selection) -> Recording:
    out = Builder(path, selection, "cprofile")
    with opened(path) as file:
        data = file.read(_MOST + 1)
    if len(data) > _MOST:
        raise FormatError(path, f"holds more than {_MOST >> 20} MB, which is too much for statistics of cProfile")
    stats = _Marshal(path, data).value()
    if not isinstance(stats, dict) or not stats:
        raise FormatError(path, "holds no statistics of cProfile")
    location = out.thread(0, out.process(0, "program"), "profile")
    functions, calls = [], []
    for function, about in stats.items():
        lasts = nanoseconds(about[2]) if isinstance(about, tuple) and len(about) == 5 else None
        if not _is_function(function) or lasts is None or lasts < 0:
            out.counts["functions without valid statistics"] += 1
            continue
        where, line, name = function
        functions.append((lasts, name, "" if where == "~" else where, line))
        calls.append([where, line, name, about[1]])
    at = 0
    for lasts, name, where, line in sorted(functions, key=lambda one: -one[0]):
        out.span(location, at, at + lasts, out.frame(name, "python", "function", where, line))
        at += lasts
    out.timeless("times")
    out.metadata["calls"] = calls
    return out.recording()


def _is_function(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 3 and tuple(map(type, value)) == (str, int, str)


class _Marshal:
    """Dicts, tuples, texts and numbers of ``marshal``; anything else is no statistics."""

    def __init__(self, path: Path, data: bytes) -> None:
        self.path, self.data, self.at, self.depth = path, data, 0, 0
        self.refs: list[Any] = []

    def value(self) -> Any:
        code = self._take(1)[0]
        kind, keep = chr(code & ~_REF), bool(code & _REF)
        if kind in "{()":
            return self._container(kind, keep)
        found = self._scalar(kind)
        if keep:
            self.refs.append(found)
        return found

    def _container(self, kind: str, keep: bool) -> Any:
        """A dict or tuple takes its number among the referred ones before what is in it."""
        place = len(self.refs)
        if keep:
            self.refs.append(None)
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self._wrong("is nested too deeply for statistics of cProfile")
        found: Any
        if kind == "{":
            found = {}
            while (key := self.value()) is not _NULL:
                try:
                    found[key] = self.value()
                except TypeError:
                    raise self._wrong("has a key that cannot be one") from None
        else:
            count = self._take(1)[0] if kind == ")" else self._int()
            if count > len(self.data) - self.at:
                raise self._wrong("is cut")
            found = tuple(self.value() for _ in range(count))
        self.depth -= 1
        if keep:
            self.refs[place] = found
        return found

    def _scalar(self, kind: str) -> Any:
        if kind == "i":
            return self._int()
        if kind == "g":
            return struct.unpack("<d", self._take(8))[0]
        if kind in "zZ":
            return self._take(self._take(1)[0]).decode("latin-1")
        if kind in "aAuts":
            return self._take(self._int()).decode("utf-8", "replace")
        if kind == "l":
            count = self._int()
            digits = struct.unpack(f"<{abs(count)}H", self._take(2 * abs(count)))
            whole = sum(digit << (15 * place) for place, digit in enumerate(digits[:40]))
            return -whole if count < 0 else whole
        if kind == "r":
            number = self._int()
            if not 0 <= number < len(self.refs):
                raise self._wrong("refers to what is not there")
            return self.refs[number]
        if kind in "NTF0":
            return {"N": None, "T": True, "F": False, "0": _NULL}[kind]
        raise self._wrong(f"has something of the kind {kind!r} in it, which statistics of cProfile have not")

    def _int(self) -> int:
        return int(struct.unpack("<i", self._take(4))[0])

    def _take(self, count: int) -> bytes:
        found = self.data[self.at : self.at + count]
        if count < 0 or len(found) < count:
            raise self._wrong("is cut")
        self.at += count
        return found

    def _wrong(self, what: str) -> FormatError:
        return FormatError(self.path, what, self.at)
