"""Lanes as power over time: pieces whose area is their energy, what was idle, and the band of the bound.

The height of a piece is its energy over its length, so the areas of a lane add up to what it received, and those of a
device's lanes and of its idle time to what was measured, at every zoom. Bins (``lanes``) have the same property; here
are the exact pieces of a lane that is drawn span by span, and what bins do not hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._core.reference_tiles import cut, segments
from ...model import Curve, Spans

STEP = np.dtype([("start", "<f8"), ("end", "<f8"), ("energy", "<f8")])
PIECE = np.dtype([*STEP.descr, ("row", "<f8"), ("frame", "<i4"), ("unused", "<i4")])
BAND = np.dtype([("start", "<f8"), ("end", "<f8"), ("low", "<f8"), ("high", "<f8")])
OVER = np.dtype([("idle", "<f4"), ("low", "<f4"), ("high", "<f4")])
Edges = npt.NDArray[np.int64]
Gains = tuple[float, float]  # factors of the low and the high end of a range


@dataclass(frozen=True)
class Limited:
    """A lane's use of a device with its limits: running sums of the least and the most, and the sensor's gains."""

    edges: Edges
    running: tuple[Any, Any]
    gains: Gains

    @classmethod
    def of(cls, edges: Edges, pairs: Any, gains: Gains) -> Limited:
        sums = [np.concatenate([[0.0], np.cumsum(column, dtype=np.float64)]) for column in pairs.reshape(-1, 2).T]
        return cls(edges, (sums[0], sums[1]), gains)


@dataclass(frozen=True)
class _Rows:
    """Spans whose frame is their own row, so that pieces say which span they are of."""

    start: Any
    end: Any
    parent: Any
    frame: Any


def edges(knots: Any, a: int, b: int, most: int) -> Edges:
    """Where pieces of [a, b) are cut: where the power changes, or at ``most`` even steps when it changes more often."""
    inside = knots[np.searchsorted(knots, a, "right") : np.searchsorted(knots, b, "left")]
    if len(inside) > most:
        inside = np.linspace(a, b, most + 1)[1:-1].round()
    return _distinct(np.asarray(inside, np.int64))


def _distinct(ascending: Edges) -> Edges:
    """Ascending values, each once: np.unique does not know that they ascend, and takes a millisecond for 10⁴."""
    return ascending[np.append(True, ascending[1:] > ascending[:-1])] if len(ascending) else ascending


def pieces(spans: Spans, rows: Any, keep: Any, energies: tuple[Any, Any], a: int, b: int, most: int) -> Any:
    """The innermost spans of a lane from a to b, cut where its power changes, each with its own energy."""
    times, values = energies
    order = np.arange(len(rows))
    kept = np.asarray(keep, bool)[spans.frame] if len(rows) else np.zeros(0, bool)
    begin, end, _, row = segments(_Rows(spans.start, spans.end, spans.parent, order), kept, a, b)
    begin, end, origin = cut(begin, end, edges(times, a, b, most))
    row = row[origin]
    shown = row >= 0  # code that does not count has no height
    out = np.zeros(int(shown.sum()), PIECE)
    out["start"], out["end"], row = begin[shown], end[shown], row[shown]
    out["energy"] = np.interp(out["end"], times, values) - np.interp(out["start"], times, values)
    out["row"], out["frame"] = np.asarray(rows)[row], spans.frame[row]
    return out


def between(drawn: Any, energies: tuple[Any, Any], a: int, b: int, most: int) -> Any:
    """What the only user of its devices left idle: the time from a to b between its pieces."""
    times, values = energies
    ends = np.array([max(a, int(times[0])), min(b, int(times[-1]))] if len(times) else [a, a])
    begin = np.append(ends[0], np.clip(drawn["end"], *ends))
    end = np.append(np.clip(drawn["start"], *ends), max(ends))
    begin = np.maximum.accumulate(begin)
    gap = end > begin
    begin, end, _ = cut(begin[gap].astype(np.int64), end[gap].astype(np.int64), edges(times, a, b, most))
    return _steps(begin, end, np.interp(end, times, values) - np.interp(begin, times, values))


def over_bins(
    at: int, width: int, bins: Any, energies: tuple[Any, Any], alone: bool, limited: Sequence[Limited], gains: Gains
) -> Any:
    """What belongs to each bin besides its energy: what its lane left idle, and the least and the most it can be."""
    borders = at + width * np.arange(len(bins) + 1)
    out = np.zeros(len(bins), OVER)
    if alone:
        out["idle"] = np.maximum(0.0, np.diff(np.interp(borders, *energies)) - bins["energy"])
    if limited:
        out["low"], out["high"] = _within(limited, borders)
    else:
        out["low"], out["high"] = gains[0] * bins["energy"], gains[1] * bins["energy"]
    return out


def model_band(drawn: Any, gains: Gains) -> Any:
    """The error of a model around the pieces of a lane that is estimated."""
    out = np.zeros(len(drawn) if gains[1] > gains[0] else 0, BAND)
    if len(out):
        out["start"], out["end"] = drawn["start"], drawn["end"]
        out["low"], out["high"] = gains[0] * drawn["energy"], gains[1] * drawn["energy"]
    return out


def steps(curve: Curve, a: int, b: int, most: int) -> Any:
    """The rises of a curve from a to b, cut where its slope changes or evenly."""
    if len(curve.times) < 2:
        return np.zeros(0, STEP)
    a, b = max(a, int(curve.times[0])), min(b, int(curve.times[-1]))
    if b <= a:
        return np.zeros(0, STEP)
    borders = np.concatenate([[a], edges(curve.times, a, b, most), [b]])
    return _steps(borders[:-1], borders[1:], np.diff(np.interp(borders, curve.times, curve.values)))


def _steps(start: Any, end: Any, energy: Any) -> Any:
    out = np.zeros(len(start), STEP)
    out["start"], out["end"], out["energy"] = start, end, np.maximum(0.0, energy)
    return out[out["energy"] > 0]


def busy_times(spans: Spans, keep: Any) -> tuple[Any, Any]:
    """When a lane was in code that counts: starts and ends of stretches without a gap."""
    kept = np.asarray(keep, bool)[spans.frame] if len(spans) else np.zeros(0, bool)
    return merged(spans.start[kept], spans.end[kept])


def merged(start: Any, end: Any) -> tuple[Any, Any]:
    """Intervals, sorted by their start, as stretches without a gap."""
    if not len(start):
        return start, end
    end = np.maximum.accumulate(end)
    first = np.concatenate([[True], start[1:] > end[:-1]])
    return start[first], end[np.append(np.flatnonzero(first)[1:] - 1, len(end) - 1)]


def limits(spans: Spans, keep: Any, curve: Curve) -> npt.NDArray[np.float32]:
    """Per interval of the readings the least and the most a lane can have used in it: an array of pairs.

    The most where it was busy for a moment, the least where it was busy throughout; the readings do not say when in
    an interval its energy was used.
    """
    assert curve.edges is not None
    assert curve.low is not None
    assert curve.high is not None
    start, end = busy_times(spans, keep)
    before = np.concatenate([[0], np.cumsum(end - start)])

    def busy(t: Any) -> Any:
        at = np.searchsorted(start, t, "right")
        open_ = np.where(at > 0, np.minimum(t, np.append(end, 0)[at - 1]) - np.append(start, 0)[at - 1], 0)
        return np.where(at > 0, before[at - 1] + open_, 0)

    begin, until = curve.edges[:-1] - curve.latency_ticks, curve.edges[1:]
    used = busy(until) - busy(begin)
    low = np.where(used >= until - begin, curve.low, 0.0)
    return np.column_stack([low, np.where(used > 0, curve.high, 0.0)]).astype(np.float32)


def band(limited: Sequence[Limited], a: int, b: int, most: int) -> Any:
    """The least and the most energy of a lane from a to b, where the two differ."""
    together = np.concatenate([each.edges for each in limited])
    knots = _distinct(np.sort(together, kind="stable"))  # which merges parts that are sorted
    a, b = max(a, int(knots[0])), min(b, int(knots[-1]))
    if b <= a:
        return np.zeros(0, BAND)
    borders = np.concatenate([[a], edges(knots, a, b, most), [b]])
    out = np.zeros(len(borders) - 1, BAND)
    out["start"], out["end"] = borders[:-1], borders[1:]
    out["low"], out["high"] = _within(limited, borders)
    return out[out["high"] > 1.001 * out["low"]]


def _within(limited: Sequence[Limited], borders: Any) -> tuple[Any, Any]:
    """The least and the most energy between borders, summed over a lane's devices."""
    sums = []
    for column in (0, 1):
        parts = [each.gains[column] * np.diff(np.interp(borders, each.edges, each.running[column])) for each in limited]
        sums.append(np.sum(parts, axis=0))
    return sums[0], sums[1]
