"""Start planning: the window of a forecast in which a run of known length emits least.

The mean intensity over a window, for a run of steady power, is ∫ g_per_kwh dt / duration. Between two edges of steps it
changes linearly with the start, so the best start lies where the window begins or ends on an edge: those are tried.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Any

from ..errors import NoDataError, OptionError
from ..units import J_PER_KWH
from .intensity import World, resolve
from .intensity_curve import Profile

_S = 10**9


@dataclass(frozen=True)
class StartPlan:
    """The best start, what it promises, and what starting at once would."""

    start_ns: int
    g_per_kwh: float
    now_g_per_kwh: float

    @property
    def saved(self) -> float:
        """The part of the emissions that waiting saves."""
        return 1 - self.g_per_kwh / self.now_g_per_kwh if self.now_g_per_kwh else 0.0

    def grams(self, energy_j: float) -> float:
        """Return the grams that this much energy emits at the best start."""
        return energy_j / J_PER_KWH * self.g_per_kwh

    def as_dict(self) -> dict[str, Any]:
        start = datetime.fromtimestamp(self.start_ns / _S, timezone.utc).isoformat()
        return {"start": start, **asdict(self), "saved": self.saved}


def plan(
    duration_s: float,
    zone: str | None = None,
    intensity: str | None = None,
    within_s: float = 48 * 3600,
    now_ns: int | None = None,
    outside: World | None = None,
) -> StartPlan:
    """Find the start within the next ``within_s`` seconds that emits least; needs a source that knows the hours."""
    if duration_s <= 0 or within_s < duration_s:
        raise OptionError(f"a run of {duration_s:g} s does not fit into {within_s:g} s")
    now = time.time_ns() if now_ns is None else now_ns
    length, end = round(duration_s * _S), now + round(within_s * _S)
    resolved = resolve(zone, intensity, now, end, outside)
    known = Profile(tuple(step for step in resolved.profile.steps if not step.fallback))
    edges = {
        edge
        for step in known.steps
        for edge in (step.start_ns, step.end_ns, step.start_ns - length, step.end_ns - length)
    }
    starts = sorted(
        at
        for at in {now, *edges, *(edge - length for edge in edges)}
        if now <= at <= end - length and known.covers(at, at + length)
    )
    if not starts or len(known.steps) < 2:
        raise NoDataError(
            f"no forecast by the hour for {resolved.name}; " + "; ".join(resolved.problems or ("try GB-13",))
        )
    means = {at: _mean(known, at, at + length) for at in starts}
    best = min(starts, key=lambda at: (means[at], at))
    return StartPlan(best, means[best], means.get(now, means[starts[0]]))


def _mean(profile: Profile, start_ns: int, end_ns: int) -> float:
    parts = ((min(s.end_ns, end_ns) - max(s.start_ns, start_ns), s.g_per_kwh) for s in profile.steps)
    return sum(width * figure for width, figure in parts if width > 0) / (end_ns - start_ns)
