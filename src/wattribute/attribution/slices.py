"""Rows by time: spans cut at readings or at the edges of equal bins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._core import reference
from ..alignment.energy import Energy
from ..errors import OptionError
from ..model import Clock, Curve, Fold, Keys, Paths, Question
from ..model.spans import BOUNDS

Ints = npt.NDArray[np.int64]
COLUMNS = (  # of a fold, one value per row
    *("calls", "self_ticks", "total_ticks"),
    *("self_covered", "total_covered", "self_value", "total_value"),
)
_MAX_PIECES = 20_000_000  # pieces of a location, five numbers each and as much again while they are summed: a few GB


class Edges(NamedTuple):
    """Where slices begin: at given moments, or at multiples of a width in ticks."""

    times: Ints | None
    width: Fraction | None

    def number(self, at: Ints) -> Ints:
        """The slice a moment falls into; for readings −1 before the first and the last index after the last."""
        if self.times is not None:
            return np.searchsorted(self.times, at, side="right") - 1
        assert self.width is not None
        guess = np.floor(at / float(self.width)).astype(np.int64)
        guess = np.where(self.begin(guess) > at, guess - 1, guess)
        return np.where(self.begin(guess + 1) <= at, guess + 1, guess)

    def begin(self, number: Ints) -> Ints:
        if self.times is not None:
            low = np.concatenate([[np.iinfo(np.int64).min // 4], self.times, [np.iinfo(np.int64).max // 4]])
            start: Ints = low[number + 1]
            return start
        assert self.width is not None
        if self.width.denominator == 1:
            return np.asarray(number * self.width.numerator, np.int64)
        whole: Ints = np.ceil(number * float(self.width)).astype(np.int64)
        return whole


class TimeSlices(NamedTuple):
    """Per curve: which (slice, row of the keys) each row of the fold is."""

    number: list[Ints]
    row: list[Ints]
    begin: list[Ints]
    end: list[Ints]


def edges(question: Question, clock: Clock, energy: Energy) -> Edges:
    if question.bin_s is not None:
        return Edges(None, question.bin_s * clock.ticks_per_s)
    return Edges(energy.times, None)


def cut(spans: Any, curves: Sequence[Curve], edges: Sequence[Edges], keys: Keys) -> tuple[Fold, TimeSlices]:
    """A location folded per slice. Each curve has its own slices, so each fills its own stretch of the fold's rows."""
    row, paths = keys.row, None
    if keys.by_path:
        spans, row, paths = _with_paths(spans, keys)
    parts = reference.segments(spans, row)
    folds = [_cut_one(parts, curve, edge) for curve, edge in zip(curves, edges, strict=True)]
    sizes = [len(f["number"]) for f in folds]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    whole = int(offsets[-1])
    columns: dict[str, Any] = {name: np.zeros(whole, np.int64) for name in ("calls", "self_ticks", "total_ticks")}
    for name, dtype in (("covered", np.int64), ("value", np.float64)):
        for which in ("self", "total"):
            columns[f"{which}_{name}"] = np.zeros((len(curves), whole), dtype)
    for c, own_fold in enumerate(folds):
        here = slice(offsets[c], offsets[c + 1])
        for name in ("calls", "self_ticks", "total_ticks"):
            columns[name][here] = own_fold[name]
        for name in ("self_covered", "total_covered", "self_value", "total_value"):
            columns[name][c, here] = own_fold[name]
    columns |= dict.fromkeys(BOUNDS)
    fold = Fold(**columns, paths=paths)
    named = (
        list(column) for column in zip(*((f["number"], f["row"], f["begin"], f["end"]) for f in folds), strict=True)
    )
    return fold, TimeSlices(*named)


def pieces(spans: Any, keys: Keys) -> dict[str, tuple[Ints, Ints, Ints]]:
    """A location's pieces of time (start, end, row): ``self`` and ``total``, rows numbered as by a fold."""
    row = keys.row
    if keys.by_path:
        spans, row, _ = _with_paths(spans, keys)
    return reference.segments(spans, row)


def _with_paths(spans: Any, keys: Keys) -> tuple[Any, npt.NDArray[np.int32], Paths]:
    """Spans whose frames are call paths, so that paths can be cut like any other row."""
    row, paths = reference.rows(spans, keys)
    assert paths is not None
    count = len(paths[0])
    frame = np.where(row < 0, count, row).astype(np.int32)
    return replace(spans, frame=frame), np.append(np.arange(count), -1).astype(np.int32), Paths(*paths)


def _cut_one(pieces: dict[str, tuple[Ints, Ints, Ints]], curve: Curve, edge: Edges) -> dict[str, Any]:
    """One curve: pieces of time split at slice edges and summed per (slice, row)."""
    parts = {name: _split(*pieces[name], edge) for name in ("self", "total")}
    start, _, row = pieces["calls"]
    called = (edge.number(start), row)
    numbers = np.concatenate([parts["self"][2], parts["total"][2], called[0]])
    rows = np.concatenate([parts["self"][3], parts["total"][3], called[1]])
    width = int(rows.max()) + 1 if len(rows) else 1
    lowest = int(numbers.min()) if len(numbers) else 0
    codes, which = np.unique((numbers - lowest) * width + rows, return_inverse=True)
    number, row = codes // width + lowest, codes % width
    out: dict[str, Any] = {"number": number, "row": row, "begin": edge.begin(number), "end": edge.begin(number + 1)}
    at = 0
    for name, (start, end, _, _) in parts.items():
        mine = which[at : at + len(start)]
        at += len(start)
        value = reference.evaluate(curve, end) - reference.evaluate(curve, start)
        inside = reference.covered(curve.pieces, end) - reference.covered(curve.pieces, start)
        out[f"{name}_value"] = np.bincount(mine, weights=value, minlength=len(codes))
        for column, amount in (("ticks", end - start), ("covered", inside)):
            out[f"{name}_{column}"] = np.zeros(len(codes), np.int64)
            np.add.at(out[f"{name}_{column}"], mine, amount)
    out["calls"] = np.zeros(len(codes), np.int64)
    np.add.at(out["calls"], which[at:], 1)
    return out


def _split(start: Ints, end: Ints, row: Ints, edge: Edges) -> tuple[Ints, Ints, Ints, Ints]:
    """Pieces cut wherever a slice begins: (start, end, slice, row)."""
    there = end > start
    start, end, row = start[there], end[there], row[there]
    first, last = edge.number(start), edge.number(end - 1)
    many = last - first + 1
    if edge.times is None and int(many.sum()) > _MAX_PIECES:
        raise OptionError(f"bins this narrow cut the spans into {int(many.sum()):,} pieces; choose a wider bin=")
    of = np.repeat(np.arange(len(start)), many)
    number = np.arange(len(of)) - np.repeat(np.cumsum(many) - many, many) + first[of]
    begins = np.maximum(start[of], edge.begin(number))
    ends = np.minimum(end[of], edge.begin(number + 1))
    return begins, ends, number, row[of]
