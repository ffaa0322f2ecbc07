"""Clipping to a part of the time (``--from``, ``--until``): spans cut to [begin, end), those outside left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..model import Launches, Problem, Recording, Spans, SpanSource
from ..model.spans import SpanColumns, launches_of


@dataclass(frozen=True)
class SpanWindow(SpanColumns):
    """A span source seen through a window of time."""

    inner: SpanSource
    begin: int
    end: int

    def locations(self) -> Sequence[int]:
        return self.inner.locations()

    def spans(self, location: int) -> Spans:
        spans = self.inner.spans(location)
        # a parent reaches at least as far as its children, so no child is kept without it
        kept = (spans.start < self.end) & (spans.end > self.begin)
        kept |= (spans.start == spans.end) & (spans.start >= self.begin) & (spans.start < self.end)
        number = np.cumsum(kept) - 1
        parent = spans.parent[kept]
        return Spans(
            np.maximum(spans.start[kept], self.begin),
            np.minimum(spans.end[kept], self.end),
            spans.frame[kept],
            np.where(parent < 0, -1, number[parent]) if len(parent) else parent,
            spans.depth[kept],
            spans.resumed[kept],
        )

    def launches(self) -> Launches | None:
        return launches_of(self.inner)

    def problems(self) -> Sequence[Problem]:
        return self.inner.problems()


def clipped(recording: Recording, begin: int | None, end: int | None) -> Recording:
    """The recording between two moments; its signals are cut when they have become curves."""
    if begin is None and end is None:
        return recording
    lowest, highest = np.iinfo(np.int64).min // 4, np.iinfo(np.int64).max // 4
    source = SpanWindow(recording.spans, lowest if begin is None else begin, highest if end is None else end)
    return replace(recording, spans=source)
