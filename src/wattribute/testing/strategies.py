"""Hypothesis strategies: random nested spans, curves and recordings with a known truth."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from ..model import Curve, Intervals, Recording, Signal, Spans
from .recordings import RecordingBuilder, counter, spans

Int64s = npt.NDArray[np.int64]
START = -10  # the tick of ``DrawnRecording.truth[0]``


class DrawnRecording(NamedTuple):
    """A recording with one counter, the joules of every tick, and up to which tick each reading speaks."""

    recording: Recording
    truth: Int64s
    seen: Int64s


@st.composite
def nested_spans(draw: DrawFn, frames: int = 4, most: int = 12, until: int = 40) -> Spans:
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
    return spans(rows)


@st.composite
def curves(draw: DrawFn, bounds: bool | None = None) -> Curve:
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
def recordings(draw: DrawFn, late: bool = True) -> DrawnRecording:
    """A host with one to three processes, each with a few streams, and one GPU with a counter.

    Ticks are seconds. The counter follows a true curve whose rise in every tick is known, perhaps late.
    """
    users, processes = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    builder = RecordingBuilder(length_ticks=60).frames(*((name, "hip", "kernel") for name in "abcd"))
    for number in range(processes):
        builder.process(f"rank {number}").context("0")
    for _ in range(users):
        builder.process(f"rank {draw(st.integers(0, processes - 1))}").stream(draw(nested_spans()), gpu="0")
    truth = np.array(draw(st.lists(st.sampled_from([0, 0, 1, 3, 50]), min_size=70, max_size=70)), np.int64)
    signal, seen = draw(_counters(truth, draw(st.sampled_from([0, 0, 0, 1, 4])) if late else 0))
    return DrawnRecording(builder.device("GPU 0").signals(signal).recording(), truth, seen)


@st.composite
def _counters(draw: DrawFn, truth: Int64s, latency: int) -> tuple[Signal, Int64s]:
    """A counter that was read at some moments, and the moments up to which its values speak."""
    gaps = draw(st.lists(st.integers(1, 9), min_size=2, max_size=9))
    times = draw(st.integers(START + 5, 8)) + np.cumsum(gaps)
    times = times[times < START + len(truth)]
    if len(times) < 2:
        times = np.array([0, 30])
    delays = np.array([draw(st.integers(0, latency)) for _ in times])
    seen = np.maximum.accumulate(times - delays)
    values = np.concatenate([[0], np.cumsum(truth)])[seen - START]
    width = draw(st.sampled_from([None, 1000, 2**16]))  # a tick uses 50 at most, so it cannot wrap twice
    if width is not None:
        values = (values + draw(st.integers(0, width - 1))) % width
    return counter(values, times, wraps_at=width, latency_s=float(latency) or None), seen
