"""Statistics of cProfile (``python -m cProfile -o X.prof``) → Recording.

cProfile keeps sums and who called whom, no timeline: call paths are those that ``call_statistics`` makes of them, laid
end to end. With a power log a function gets self time × mean power, marked as an estimate. The file is ``marshal``'s,
which Python itself must not load from strangers: the few types that statistics consist of are read here.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from ..errors import FormatError
from ..model import Recording
from ..plugins import Selection
from .building import Builder
from .call_statistics import BUILT_IN, CallerStatistics, FunctionStatistics, path_times, spans, with_distinct_names
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
    functions, callers = _statistics(stats, out)
    frames = [out.frame(one.name, "python", "function", one.file, one.line) for one in functions]
    paths = path_times(functions, callers)
    for start, end, function in spans(paths):
        out.span(location, start, end, frames[function])
    out.timeless("times")
    out.metadata |= {
        "calls": [["~" if one.file == BUILT_IN else one.file, one.line, one.name, one.calls] for one in functions],
        "functions": [list(one) for one in functions],
        "callers": [list(one) for one in callers],
        "call_paths": [[list(one.path), one.calls] for one in paths],
    }
    return out.recording()


def _statistics(stats: dict[Any, Any], out: Builder) -> tuple[list[FunctionStatistics], list[CallerStatistics]]:
    """Functions with valid numbers, and who called them."""
    functions: list[FunctionStatistics] = []
    number: dict[Any, int] = {}
    for function, about in stats.items():
        known = _numbers(about[:4]) if isinstance(about, tuple) and len(about) == 5 else None
        if not _is_function(function) or known is None:
            out.counts["functions without valid statistics"] += 1
            continue
        where, line, name = function
        number[function] = len(functions)
        functions.append(FunctionStatistics(BUILT_IN if where == "~" else where, line, name, *known))
    callers = []
    for function, callee in number.items():
        mine = stats[function][4]
        for caller, about in mine.items() if isinstance(mine, dict) else ():
            known = _numbers((about[1], about[0], *about[2:])) if isinstance(about, tuple) and len(about) == 4 else None
            if caller in number and known is not None:
                callers.append(CallerStatistics(number[caller], callee, *known))
    return with_distinct_names(functions), callers


def _numbers(about: tuple[Any, ...]) -> tuple[int, int, int, int] | None:
    """Primitive and all calls, own and cumulative time in ns; None unless all are numbers that can be."""
    own, total = nanoseconds(about[2]), nanoseconds(about[3])
    if not all(isinstance(count, int) for count in about[:2]) or own is None or total is None:
        return None
    return (about[0], about[1], own, max(own, total)) if own >= 0 else None


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
        value = self._scalar(kind)
        if keep:
            self.refs.append(value)
        return value

    def _container(self, kind: str, keep: bool) -> Any:
        """A dict or tuple takes its number among the referred ones before what is in it."""
        place = len(self.refs)
        if keep:
            self.refs.append(None)
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self._wrong("is nested too deeply for statistics of cProfile")
        container: Any
        if kind == "{":
            container = {}
            while (key := self.value()) is not _NULL:
                try:
                    container[key] = self.value()
                except TypeError:
                    raise self._wrong("has a key that cannot be one") from None
        else:
            count = self._take(1)[0] if kind == ")" else self._int()
            if count > len(self.data) - self.at:
                raise self._wrong("is cut")
            container = tuple(self.value() for _ in range(count))
        self.depth -= 1
        if keep:
            self.refs[place] = container
        return container

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
        part = self.data[self.at : self.at + count]
        if count < 0 or len(part) < count:
            raise self._wrong("is cut")
        self.at += count
        return part

    def _wrong(self, what: str) -> FormatError:
        return FormatError(self.path, what, self.at)
