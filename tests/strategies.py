"""Hypothesis strategies and small builders that several tests share: random nested spans, curves, recordings."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from wattribute.model import Curve, Intervals, Spans


def spans_of(rows):
    """Spans from (start, end, frame, parent) rows in the order they began; the depth follows from the parents."""
    depth: list[int] = []
    for _, _, _, parent, *_ in rows:
        depth.append(0 if parent < 0 else depth[parent] + 1)
    column = lambda i, dtype, default=0: np.array([row[i] if i < len(row) else default for row in rows], dtype)  # noqa: E731
    return Spans(
        column(0, np.int64),
        column(1, np.int64),
        column(2, np.int32),
        column(3, np.int64),
        np.array(depth, np.int32),
        column(4, np.bool_, False),
    )


@st.composite
def nested_spans(draw, frames=4, most=12, until=40):
    """One location: enters and leaves on a coarse clock, so that ties, zero lengths, gaps and recursion are common."""
    rows: list[list[int]] = []
    stack: list[int] = []
    now = draw(st.integers(-5, 5))
    for _ in range(draw(st.integers(0, 2 * most))):
        now += draw(st.sampled_from([0, 0, 0, 1, 1, 2, 3, 7]))
        if now > until:
            break
        if stack and (len(rows) >= most or draw(st.booleans())):
            rows[stack.pop()][1] = now
        elif len(rows) < most:
            rows.append(
                [now, now, draw(st.integers(0, frames - 1)), stack[-1] if stack else -1, draw(st.integers(0, 9)) == 0]
            )
            stack.append(len(rows) - 1)
    while stack:
        now += draw(st.sampled_from([0, 1, 2]))
        rows[stack.pop()][1] = now
    return spans_of(rows)


@st.composite
def curves(draw, bounds=None):
    """A rising piecewise linear curve with one or two covered pieces, with or without bounds and latency."""
    n = draw(st.integers(0, 8))
    times = np.cumsum(np.array([draw(st.integers(-8, 8)), *(draw(st.integers(1, 9)) for _ in range(n))], np.int64))
    steps = [draw(st.sampled_from([0.0, 0.1, 1.0, 3.3, 1e6 / 7])) for _ in range(n)]
    values = np.cumsum([draw(st.sampled_from([0.0, 0.7])), *steps])
    pieces = Intervals(times[:1], times[-1:]) if n else Intervals(times[:0], times[:0])
    if n > 3 and draw(st.booleans()):
        pieces = Intervals(times[[0, 2]], times[[1, -1]])
    if bounds is None:
        bounds = draw(st.booleans())
    if not bounds or n == 0:
        return Curve(times, values, pieces)
    high = np.diff(values)
    return Curve(
        times, values, pieces, times, high / draw(st.integers(1, 3)), high, draw(st.sampled_from([0, 1, 5, 30]))
    )
