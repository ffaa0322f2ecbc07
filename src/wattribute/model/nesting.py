"""Nesting of a location's observations into spans: stacks that open and close, intervals that may overlap.

Recorders and readers of files use these; a location's spans always nest, and no time counts twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from .spans import Spans


class Open:
    """Spans of one location under construction."""

    def __init__(self) -> None:
        self.rows: list[list[Any]] = []  # start, end, frame, parent, depth, resumed
        self.stack: list[int] = []

    def push(self, at: int, frame: int, resumed: bool) -> None:
        parent = self.stack[-1] if self.stack else -1
        self.stack.append(len(self.rows))
        self.rows.append([at, at, frame, parent, len(self.stack) - 1, resumed])

    def pop(self, at: int, depth: int = 0) -> None:
        """Close what lies deeper."""
        while len(self.stack) > depth:
            self.rows[self.stack.pop()][1] = at

    def spans(self, end: int) -> Spans:
        self.pop(end)
        return _spans(self.rows)


def _spans(rows: list[list[Any]]) -> Spans:
    columns = list(zip(*rows, strict=True)) if rows else [()] * 6
    kinds = (np.int64, np.int64, np.int32, np.int64, np.int32, np.bool_)
    return Spans(*(np.array(column, kind) for column, kind in zip(columns, kinds, strict=True)))


def nest(
    start: npt.NDArray[np.int64],
    end: npt.NDArray[np.int64],
    frame: npt.NDArray[np.int32],
    resumed: npt.NDArray[np.bool_],
) -> Spans:
    """Intervals of one location, in the order they began → spans that nest; what overlaps is cut and resumed."""
    rows: list[list[Any]] = []  # start, end, frame, parent, depth, resumed
    stack: list[tuple[int, int]] = []  # interval, its row

    def push(interval: int, at: int, again: bool) -> None:
        stack.append((interval, len(rows)))
        parent = stack[-2][1] if len(stack) > 1 else -1
        rows.append([at, at, frame[interval], parent, len(stack) - 1, again])

    for at, _, _, interval in _events(start.tolist(), end.tolist()):
        if interval >= 0:
            push(interval, at, bool(resumed[interval]))
            continue
        above = []
        while stack:
            inner, row = stack.pop()
            rows[row][1] = at
            if inner == ~interval:
                break
            above.append(inner)
        for inner in reversed(above):
            push(inner, at, True)
    return _spans(rows)


def _events(start: list[int], end: list[int]) -> Iterable[tuple[int, int, int, int]]:
    """(time, order, order, interval, or ~interval where it ends) in the order of time.

    At one moment: ends come before beginnings, the innermost first; an interval of no length ends where it begins.
    """
    begins = [(at, 1, 2 * i, i) for i, at in enumerate(start)]
    ends = [(at, 1, 2 * i + 1, ~i) if at == start[i] else (at, 0, -i, ~i) for i, at in enumerate(end)]
    return sorted(begins + ends)
