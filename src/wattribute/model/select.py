"""Keep a part of a recording: processes, frames, signals by regular expression (``re.search``, case-insensitive).

What is left out is as if it had not been recorded: the children of a frame that is left out move up to the nearest
frame that stays. Rows of the tables keep their numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..errors import OptionError
from .recording import Problem, Recording
from .spans import ABSENT, Curve, Fold, Intervals, Keys, SpanRows, Spans, SpanSource

Mask = npt.NDArray[np.bool_]


def pattern(text: str) -> re.Pattern[str]:
    """A user's regular expression, compiled; a wrong one is a clear error."""
    try:
        return re.compile(text, re.IGNORECASE)
    except re.error as error:
        raise OptionError(f"{text!r} is not a regular expression: {error}") from error


def frame_mask(names: Sequence[str], keep: str | None, exclude: str | None) -> Mask:
    """Which frames stay."""
    mask = np.ones(len(names), np.bool_)
    if keep is not None:
        mask &= [bool(pattern(keep).search(name)) for name in names]
    if exclude is not None:
        mask &= [not pattern(exclude).search(name) for name in names]
    return mask


def unmatched(what: str, names: Iterable[str], wanted: str | None) -> tuple[Problem, ...]:
    """What to say when a regular expression leaves nothing."""
    if wanted is None or any(map(pattern(wanted).search, names)):
        return ()
    return (Problem("selection", f"no {what} matches {wanted!r}; `wattribute info` shows what there is"),)


def select(
    recording: Recording,
    process: str | None = None,
    frame: str | None = None,
    exclude_frame: str | None = None,
    metric: str | None = None,
) -> Recording:
    """The recording with only these processes' spans, frames and signals (None: all)."""
    chosen = recording
    if metric is not None:
        wanted = pattern(metric)
        chosen = replace(chosen, signals=tuple(s for s in chosen.signals if wanted.search(s.name)))
    if process is None and frame is None and exclude_frame is None:
        return chosen
    locations = tuple(chosen.spans.locations())
    if process is not None:
        wanted, names = pattern(process), chosen.processes.name
        locations = tuple(at for at in locations if wanted.search(names[chosen.owner(at)]))
    keep = frame_mask(chosen.frames.name, frame, exclude_frame)
    return replace(
        chosen,
        spans=SelectedSpans(chosen.spans, locations, keep),
        noticed=(
            *chosen.noticed,
            *unmatched("process", chosen.processes.name, process),
            *unmatched("frame", chosen.frames.name, frame),
        ),
    )


@dataclass(frozen=True)
class SelectedSpans:
    """A source that passes on some locations and some frames of another."""

    source: SpanSource
    chosen: tuple[int, ...]
    kept: Mask

    def locations(self) -> Sequence[int]:
        return self.chosen

    def spans(self, location: int) -> Spans:
        return _without(self.source.spans(location), self.kept)

    def busy(self, location: int, keep: Mask | None = None) -> Intervals:
        return self.source.busy(location, self.kept if keep is None else self.kept & keep)

    def fold(self, location: int, curves: Sequence[Curve], keys: Keys) -> Fold:
        row = np.where(self.kept, keys.row, np.int32(-1)).astype(np.int32)
        return self.source.fold(location, curves, replace(keys, row=row))

    def rows(
        self, location: int, curves: Sequence[Curve], keys: Keys, most: int, take: Callable[[SpanRows], None]
    ) -> None:
        row = np.where(self.kept, keys.row, np.int32(ABSENT)).astype(np.int32)
        self.source.rows(location, curves, replace(keys, row=row), most, take)

    def problems(self) -> Sequence[Problem]:
        return self.source.problems()


def _without(spans: Spans, kept: Mask) -> Spans:
    """The spans of kept frames, their parents and depths counted anew."""
    stays = kept[spans.frame]
    if stays.all():
        return spans
    parent = spans.parent.copy()
    while True:
        gone = parent >= 0
        gone[gone] = ~stays[parent[gone]]
        if not gone.any():
            break
        parent[gone] = spans.parent[parent[gone]]
    depth = np.zeros(len(spans), np.int32)
    for level in range(1, int(spans.depth.max()) + 1):
        here = np.flatnonzero((spans.depth == level) & (parent >= 0))
        depth[here] = depth[parent[here]] + 1
    new_row = np.cumsum(stays) - 1
    parent = np.where(parent >= 0, new_row[parent], -1)
    return Spans(
        spans.start[stays], spans.end[stays], spans.frame[stays], parent[stays], depth[stays], spans.resumed[stays]
    )
