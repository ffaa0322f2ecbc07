"""JSON documents that are read whole, and looked into without trusting that things are what they should be."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from ..errors import FormatError
from .building import Builder
from .files import Text

_BETWEEN = re.compile(r"[\s,\[\]]*")  # what may stand around and between the objects of a log


def load(path: Path, out: Builder) -> dict[str, Any]:
    """The object in a file; one that is cut or nested too deeply is an error, since nothing of it can be used."""
    text = Text(path)
    whole = text.whole()
    try:
        document = json.loads(whole)
    except json.JSONDecodeError as error:
        cut = next((problem.message for problem in text.problems if problem.kind == "truncated"), "")
        raise FormatError(path, f"is cut or not valid JSON ({cut or error})", error.pos) from error
    except (ValueError, RecursionError) as error:
        raise FormatError(path, f"is not valid JSON ({str(error)[:80]})") from error
    out.problems += text.problems
    if not isinstance(document, dict):
        raise FormatError(path, "is not a JSON object")
    return document


def objects(path: Path, out: Builder) -> list[dict[str, Any]]:
    """The objects of a log in JSON: an array, a line each, or one after the other.

    A log that was cut keeps the objects before the cut, and the cut becomes a problem.
    """
    text = Text(path)
    whole = text.whole()
    out.problems += text.problems
    decoder, at, rows = json.JSONDecoder(), 0, list[dict[str, Any]]()
    while (at := _BETWEEN.match(whole, at).end()) < len(whole):  # type: ignore[union-attr]
        try:
            value, at = decoder.raw_decode(whole, at)
        except (ValueError, RecursionError) as error:
            why = error.msg if isinstance(error, json.JSONDecodeError) else str(error)[:80]
            out.problem("truncated", f"is cut or not JSON from character {at:,} on ({why})")
            break
        if isinstance(value, dict):
            rows.append(value)
        else:
            out.counts["values that are no JSON objects"] += 1
    return rows


def listed(of: Any, key: str) -> list[Any]:
    """The list under a key, or an empty one."""
    value = of.get(key) if isinstance(of, dict) else None
    return value if isinstance(value, list) else []


def number(value: Any) -> float | None:
    """A finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e300 else None


def nanoseconds(seconds: Any) -> int | None:
    """Seconds as whole ns if they are a time at all."""
    parsed = number(seconds)
    if parsed is None or abs(parsed) >= 4e9:
        return None
    whole = int(parsed)  # apart from the fraction: a float of 10^18 ns would lose the last hundred
    return whole * 10**9 + round((parsed - whole) * 1e9)
