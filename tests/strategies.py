"""Hypothesis strategies and small builders that several tests share: random nested spans, curves, recordings."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from wattribute.model import (
    Clock,
    Curve,
    Device,
    Frames,
    Intervals,
    Locations,
    Nodes,
    Processes,
    Recording,
    Signal,
    Spans,
    SpanTable,
)


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


@st.composite
def recordings(draw, counter=True):
    """A host with one to three processes, each with a few streams and threads, and one GPU with a counter.

    Ticks are seconds. The counter tells a true curve whose rise in every tick is known (``truth``), perhaps late.
    """
    users = draw(st.integers(1, 5))
    processes = draw(st.integers(1, 3))
    rows = [(i, f"rank {i}", "process", 0) for i in range(processes)]
    rows += [(10 + i, f"context {i}", "accelerator", 1, i) for i in range(processes)]
    locations = [(i, f"stream {i}", "gpu", processes + draw(st.integers(0, processes - 1))) for i in range(users)]
    columns = {i: draw(nested_spans()) for i in range(users)}
    truth = np.array(draw(st.lists(st.sampled_from([0, 0, 1, 3, 50]), min_size=70, max_size=70)), np.int64)
    latency = draw(st.sampled_from([0, 0, 0, 1, 4])) if counter else 0
    signal, told = draw(_signals(truth, latency))
    recording = Recording(
        clock=Clock(ticks_per_s=1, length_ticks=60),
        frames=Frames.of([(name, "hip", "kernel") for name in "abcd"]),
        nodes=Nodes.of([(0, "n01", "node"), (1, "0", "GPU", 0)]),
        processes=Processes.of(rows),
        locations=Locations.of(locations),
        spans=SpanTable(columns),
        signals=(signal,),
        devices=(Device("GPU 0", "gpu", "n01"),),
    )
    return recording, truth, told


START = -10  # the tick of truth[0]


@st.composite
def _signals(draw, truth, latency):
    """A counter that was read at some moments, and the moments up to which its values speak."""
    gaps = draw(st.lists(st.integers(1, 9), min_size=2, max_size=9))
    times = draw(st.integers(START + 5, 8)) + np.cumsum(gaps)
    times = times[times < START + len(truth)]
    if len(times) < 2:
        times = np.array([0, 30])
    late = np.array([draw(st.integers(0, latency)) for _ in times])
    told = np.maximum.accumulate(times - late)
    total = np.concatenate([[0], np.cumsum(truth)])
    values = total[told - START]
    width = draw(st.sampled_from([None, 1000, 2**16]))  # a tick uses 50 at most, so it cannot wrap twice
    if width is not None:
        values = (values + draw(st.integers(0, width - 1))) % width
    signal = Signal(
        "energy", "counter", "J", times.astype(np.int64), values, host="n01", device="GPU 0", wraps_at=width,
        latency_s=float(latency) or None,
    )  # fmt: skip
    return signal, told
