"""JSON documents that are read whole, and looked into without trusting that things are what they should be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..errors import FormatError
from .building import Builder
from .files import Text


def load(path: Path, out: Builder) -> dict[str, Any]:
    """The object in a file; one that is cut or nested too deeply is an error, since nothing of it can be used."""
    text = Text(path)
    whole = text.whole()
    try:
        found = json.loads(whole)
    except json.JSONDecodeError as error:
        cut = next((problem.message for problem in text.problems if problem.kind == "truncated"), "")
        raise FormatError(path, f"is cut or no valid JSON ({cut or error})", error.pos) from error
    except (ValueError, RecursionError) as error:
        raise FormatError(path, f"is no valid JSON ({str(error)[:80]})") from error
    out.problems += text.problems
    if not isinstance(found, dict):
        raise FormatError(path, "is no JSON object")
    return found


def listed(of: Any, key: str) -> list[Any]:
    """The list under a key, or an empty one."""
    found = of.get(key) if isinstance(of, dict) else None
    return found if isinstance(found, list) else []


def number(value: Any) -> float | None:
    """A finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e300 else None


def nanoseconds(seconds: Any) -> int | None:
    """Seconds as whole ns if they are a time at all."""
    found = number(seconds)
    if found is None or abs(found) >= 4e9:
        return None
    whole = int(found)  # apart from the fraction: a float of 10^18 ns would lose the last hundred
    return whole * 10**9 + round((found - whole) * 1e9)
