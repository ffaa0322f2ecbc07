"""Labels from frame names: demangled, template arguments collapsed, shortened in the middle, never two alike.

``labels(names, width)`` is what charts and tables ask for; ``full(name)`` is the whole readable name for hovering.
Names are users' text: control characters and broken UTF-8 are replaced here, as neither SVG nor JSON may hold them.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import zip_longest

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]")
ELLIPSIS = "…"


def clean(name: str) -> str:
    """The name without what no file format may hold; line breaks become spaces, nothing becomes "(no name)"."""
    if not (name.isascii() and name.isprintable() and "  " not in name):  # few of 10⁶ names
        name = _CONTROL.sub("\ufffd", re.sub(r"\s+", " ", name))
    return name.strip() or "(no name)"


@lru_cache(maxsize=65536)
def full(name: str) -> str:
    """The whole name, demangled when it was mangled."""
    name = clean(name)
    if name.startswith(("_Z", "__Z")):
        return _demangle(name.removesuffix(".kd")) or name  # AMD's kernel descriptors end in .kd
    return name


@lru_cache(maxsize=1)
def _runtime() -> ctypes.CDLL | None:
    """The C++ runtime, whose ``__cxa_demangle`` is the definition of demangling; None where there is none."""
    for library in ("libstdc++.so.6", "libc++abi.dylib", ctypes.util.find_library("stdc++")):
        try:
            loaded = ctypes.CDLL(library) if library else None
        except OSError:
            continue
        if loaded is not None and hasattr(loaded, "__cxa_demangle"):
            loaded.__cxa_demangle.restype = ctypes.c_void_p
            loaded.__cxa_demangle.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
            return loaded
    return None


def _demangle(name: str) -> str | None:
    runtime = _runtime()
    if runtime is None:
        return _identifiers(name)
    status = ctypes.c_int(-1)
    # more than a few thousand characters are not a name, and the demangler's output can grow exponentially
    if len(name) > 8192:
        return None
    pointer = runtime.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    if not pointer:
        return _identifiers(name)
    try:
        return ctypes.string_at(pointer).decode("utf-8", "replace")
    finally:
        ctypes.CDLL(None).free(ctypes.c_void_p(pointer))


def _identifiers(name: str) -> str | None:
    """``ns::f`` from ``_ZN2ns1fE…`` without a runtime: the length-prefixed identifiers up to the end of the name."""
    at = 3 if name.startswith("_ZN") else 2
    parts: list[str] = []
    while (match := re.compile(r"[KVr]*(\d+)").match(name, at)) and len(parts) < 32:
        at = match.end() + int(match[1])
        parts.append(name[match.end() : at])
        if not name.startswith("_ZN"):
            break
    return "::".join(parts) or None


def plain(name: str) -> str:
    """The readable name without template arguments (``<…>``), parameters and return type."""
    return _without_parameters(_collapse_templates(full(name)))


_TAIL = re.compile(r"\)(?: (?:const|volatile|noexcept)| ?&{1,2}| ?\[[^\]]*\])*$")


def _without_parameters(name: str) -> str:
    """``f`` from ``void f(int, g*) const``; a name that does not end like a C++ function ("other (3 frames)") stays."""
    tail = _TAIL.search(name)
    if tail is None:
        return name.removeprefix("void ")  # of tools that leave out parameters, but not the return type
    depth, at = 0, tail.start()
    while at >= 0:  # back to the bracket that opens the parameter list
        depth += (name[at] == ")") - (name[at] == "(")
        if depth == 0:
            break
        at -= 1
    head = name[: max(at, 0)].replace("(anonymous namespace)", "{anonymous}")
    if not re.search(r"[\w>)}]$" if "operator" not in head else r"\S$", head):
        return name
    return head if "operator" in head else _without_return_type(head)


def _without_return_type(head: str) -> str:
    """``ns::f<A, B>`` from ``void ns::f<A, B>``: what follows the last space outside of template arguments."""
    depth = brackets = 0
    for at in range(len(head) - 1, -1, -1) if " " in head else ():
        brackets += (head[at] == ")") - (head[at] == "(")
        if brackets <= 0:
            depth += (head[at] == ">" and head[at - 1 : at] != "-") - (head[at] == "<")
        if head[at] == " " and depth <= 0 and brackets <= 0:
            return head[at + 1 :]
    return head


def _collapse_templates(name: str) -> str:
    """``f<…>`` from ``f<int, g<2>>``. Only brackets that follow an identifier: ``<module>`` and ``a < b`` stay.

    A ``>`` in parentheses compares: ``f<(4 > 3), 64>`` is ``f<…>``.
    """
    out, depth, inside = "", 0, 0
    if "<" not in name:
        return name
    for i, char in enumerate(name):
        inside += ((char == "(") - (char == ")")) if depth else 0
        if inside > 0:
            continue
        if char == "<" and (depth or (re.search(r"\w$", out) and not re.search(r"\boperator$", out))):
            depth += 1
            out += f"<{ELLIPSIS}>" if depth == 1 else ""
        elif char == ">" and depth and name[i - 1] != "-":
            depth -= 1
        elif not depth:
            out += char
    return name if depth else out


def columns(text: str) -> int:
    """How wide a text is in columns of a fixed font; Chinese, Japanese and Korean characters take two."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 0 if unicodedata.combining(c) else 1 for c in text)


def shorten(text: str, width: int) -> str:
    """The text cut in the middle to at most ``width`` columns: the ends of names say most."""
    if columns(text) <= width:
        return text
    if width <= 1:
        return ELLIPSIS[:width]
    tail = _take(text[::-1], (width - 1) // 2)[::-1]
    return _take(text, width - 1 - columns(tail)) + ELLIPSIS + tail


def _take(text: str, width: int) -> str:
    used = 0
    for i, char in enumerate(text):
        used += columns(char)
        if used > width:
            return text[:i]
    return text


def labels(names: Iterable[str], width: int = 40) -> dict[str, str]:
    """A label of at most ``width`` columns for each distinct name; different names get different labels.

    Template arguments and parameters appear only where names would look alike without them; if they still do after
    shortening, the label shows the part in which they differ, and as a last resort a number.
    """
    distinct = list(dict.fromkeys(names))
    forms = (plain, lambda name: _without_parameters(full(name)), lambda name: _collapse_templates(full(name)), full)
    long: dict[str, str] = {}
    for name in distinct:
        long[name] = plain(name)
    for form in forms[1:]:
        for group in _alike(long):
            for name in group:
                long[name] = form(name)
    short = {name: shorten(text, width) for name, text in long.items()}
    for group in _alike(short):
        if len({long[name] for name in group}) > 1:  # those that do not differ get numbers
            for name, text in zip(group, _differing([long[name] for name in group], width), strict=True):
                short[name] = text
    taken: dict[str, int] = {}
    for name in distinct:
        text = short[name]
        taken[text] = taken.get(text, 0) + 1
        if taken[text] > 1:
            suffix = f" ·{taken[text]}"
            short[name] = shorten(text, max(1, width - len(suffix))) + suffix
    return short


def _alike(labels: dict[str, str]) -> list[list[str]]:
    first: dict[str, str] = {}
    groups: dict[str, list[str]] = {}  # of more than one: few, also of many names
    for name, label in labels.items():
        if first.setdefault(label, name) is not name:
            groups.setdefault(label, [first[label]]).append(name)
    return list(groups.values())


def _differing(texts: Sequence[str], width: int) -> list[str]:
    """Short forms that start as the texts do, as far as there is room, and go on with the words that part them."""
    first = next((i for i, chars in enumerate(zip(*texts, strict=False)) if len(set(chars)) > 1), min(map(len, texts)))
    head = _take(texts[0], min(width // 3, first))
    room = width - columns(head) - 1
    words = [[text[: len(head)], *re.findall(r"[^\W_]+|[\W_]+", text[len(head) :])] for text in texts]
    apart = [""] * len(texts)
    for column in zip_longest(*words, fillvalue=""):
        with_it = [f"{text} {word}" for text, word in zip(apart, column, strict=True)]
        if len(set(with_it)) > len(set(apart)):  # this word parts texts that looked alike so far
            apart = with_it
    apart = [shorten(text.strip(), room) for text in apart]
    whole_words = len(re.sub(r"[^\W_]+$", "", texts[0][:first]))  # the word that differs is shown once
    head = _take(texts[0], max(len(head), min(width - 1 - max(map(columns, apart)), whole_words)))
    return [head + ELLIPSIS + text for text in apart]
