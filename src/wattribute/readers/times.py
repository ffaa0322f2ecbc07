"""Times as tools write them → nanoseconds, and what is known about the clock they were read from.

Numbers are seconds unless the column's name says otherwise, or they are too large for seconds since 1970. Text is ISO
8601 or what nvidia-smi writes (``2024/09/04 14:27:25.123``); without a zone it is this machine's local time, which is
noted, since a log may have been written elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
_NS_PER = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "sec": 1_000_000_000}
_NAMED = re.compile(r"(?:^|[\s_.\[(])(ns|us|µs|ms|s|sec|seconds|nanoseconds|microseconds|milliseconds)[\])]?$", re.I)
_WORDS = {"seconds": "s", "nanoseconds": "ns", "microseconds": "us", "milliseconds": "ms"}
_EPOCH_S = (10**9, 5 * 10**9)  # 2001 … 2128: numbers in this range are seconds since 1970
_FRACTION = re.compile(r"([:\d])[.,](\d+)")


@dataclass(frozen=True)
class Times:
    """Times in ns; since 1970 if ``wall``. ``clock`` goes into a recording's metadata."""

    ns: Ints
    bad: npt.NDArray[np.bool_]  # rows without a valid time
    wall: bool
    clock: dict[str, Any] = field(default_factory=dict)


def unit_in(name: str) -> str:
    """The unit of time that the name of a column ends in, or ""."""
    match = _NAMED.search(name.strip())
    word = match[1].lower() if match else ""
    return _WORDS.get(word, word)


def numbers(values: npt.NDArray[Any], unit: str = "") -> Times:
    """Times that are numbers; without a unit, seconds, or the unit that puts them in our century."""
    whole = values.dtype.kind in "iu"
    bad = np.zeros(len(values), np.bool_) if whole else ~np.isfinite(values)
    usual = float(np.median(values[~bad])) if (~bad).any() else 0.0
    if not unit:
        scales = (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9))
        unit = next((name for name, per_s in scales if _EPOCH_S[0] <= usual / per_s < _EPOCH_S[1]), "s")
    factor = _NS_PER[unit]
    far = np.abs(np.where(bad, 0, values).astype(np.float64)) * factor >= 2.0**62
    bad = bad | far
    kept = np.where(bad, 0, values)
    ns = kept.astype(np.int64) * factor if whole else _exactly(kept, factor)
    wall = _EPOCH_S[0] <= usual * factor / 1e9 < _EPOCH_S[1]
    return Times(ns, bad, wall, {"uncertainty_ns": 1_000_000} if wall else {})


def _exactly(values: npt.NDArray[np.float64], factor: int) -> Ints:
    """Whole part and fraction apart: a float of 10^18 ns would lose the last hundred."""
    whole = np.floor(values)
    fraction = np.rint((values - whole) * factor).astype(np.int64)
    return whole.astype(np.int64) * factor + fraction


def texts(values: Sequence[str], unit: str = "") -> Times:
    """Times that are text: numbers, or dates."""
    try:
        return numbers(np.array([float(v) for v in values], np.float64), unit)
    except ValueError:
        pass
    parsed = [one if one is None or abs(one[0]) < 2**62 else None for one in map(parse, values)]
    bad = np.array([one is None for one in parsed], np.bool_)
    ns = np.array([0 if one is None else one[0] for one in parsed], np.int64)
    naive = any(one is not None and one[1] for one in parsed)
    digits = max((one[2] for one in parsed if one is not None), default=0)
    resolution = 10 ** (9 - min(digits, 9))
    clock: dict[str, Any] = {"uncertainty_ns": max(resolution, 1_000_000)}
    return Times(ns, bad, True, clock | ({"zone": "assumed"} if naive else {}))


def parse(text: str) -> tuple[int, bool, int] | None:
    """(ns since 1970, whether it names no zone, digits of its fraction), or None if it is no date."""
    text = text.strip().strip('"')
    fraction = _FRACTION.search(text)
    digits = fraction[2] if fraction else ""
    plain = text if fraction is None else text[: fraction.start() + 1] + text[fraction.end() :]
    plain = re.sub(r"\s*(?:Z|UTC)$", "+00:00", plain).replace("/", "-")
    plain = re.sub(r"\s+([+-]\d\d):?(\d\d)$", r"\1:\2", plain)
    try:
        at = datetime.fromisoformat(plain)
        naive = at.tzinfo is None
        at = at.astimezone(timezone.utc)
    except (ValueError, OverflowError, OSError):
        return None
    since = at - datetime(1970, 1, 1, tzinfo=timezone.utc)
    seconds = since.days * 86_400 + since.seconds
    return seconds * 10**9 + int(digits[:9].ljust(9, "0")), naive, len(digits)
