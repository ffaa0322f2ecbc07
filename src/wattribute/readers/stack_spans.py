"""Sampled stacks and recorded calls of one thread → its spans. Used by :mod:`.stack_files`."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..journal.layouts import CALL_LEAVE, CALL_RESUMED, NO_STACK
from ..model import Spans
from ..model.nesting import Open

Ints = npt.NDArray[np.int64]


def sampled(
    samples: Any, stacks: Mapping[int, tuple[int, int]], code: Mapping[int, Any], frames: Any, offset: int, end: int
) -> Spans:
    """Each stack holds until the next sample; what two stacks in a row have in common goes on.

    ``stacks`` are (caller's stack, frame), ``code`` tells which frames are lines of one function, ``frames`` the row of
    a frame in the recording, −1 for one that is not shown.
    """
    chains: dict[int, list[int]] = {NO_STACK: []}

    def chain(stack: int) -> list[int]:
        unknown = []
        while stack not in chains:
            unknown.append(stack)
            stack = stacks[stack][0]
        whole = chains[stack]
        for stack in reversed(unknown):
            frame = stacks[stack][1]
            whole = chains[stack] = [*whole, frame] if frames[frame] >= 0 else whole
        return whole

    open_ = Open()
    before: list[int] = []
    for at, stack in zip((samples["time"] - offset).tolist(), samples["stack"].tolist(), strict=True):
        now = chain(stack) if stack in stacks else []
        same = next((i for i, pair in enumerate(zip(before, now, strict=False)) if pair[0] != pair[1]), None)
        same = min(len(before), len(now)) if same is None else same
        open_.pop(at, same)
        # another line of the same function is not another call
        goes_on = same < min(len(before), len(now)) and code.get(before[same]) == code.get(now[same])
        for i, frame in enumerate(now[same:]):
            open_.push(at, int(frames[frame]), i == 0 and goes_on)
        before = now
    return open_.spans(end)


def called(times: Ints, events: Any, frames: Any, end: int) -> Spans:
    """Calls and returns of one thread → spans; a return whose call was not seen counts for nothing."""
    kept = frames[events & np.uint32(CALL_RESUMED - 1)] >= 0
    times, events = times[kept], events[kept]
    spans = _paired(times, events, frames, end)
    return _walked(times, events, frames, end) if spans is None else spans


def _paired(times: Ints, events: Any, frames: Any, end: int) -> Spans | None:
    """All at once: at each depth calls and returns alternate. None where one is missing in the middle."""
    calls = (events & np.uint32(CALL_LEAVE)) == 0
    height = np.cumsum(np.where(calls, 1, -1))
    lowest = np.minimum.accumulate(np.minimum(height, 0))
    known = height >= np.append(0, lowest[:-1])  # else it is the end of what began before the trace
    times, events, calls, depth = times[known], events[known], calls[known], (height - lowest - calls)[known]
    order = np.argsort(depth, kind="stable")
    begins = np.flatnonzero(calls[order])  # each is followed by its end, unless it is still open
    after = np.minimum(begins + 1, len(order) - 1)
    closed = ~calls[order[after]] & (depth[order[after]] == depth[order[begins]])
    code = (events & np.uint32(CALL_RESUMED - 1)).astype(np.int64)
    if (code[order[after]] != code[order[begins]])[closed].any():
        return None
    stops = np.full(len(times), end, np.int64)
    stops[order[begins[closed]]] = times[order[after[closed]]]
    at = np.flatnonzero(calls)
    resumed = (events[at] & np.uint32(CALL_RESUMED)) != 0
    return Spans(
        times[at],
        stops[at],
        frames[code[at]].astype(np.int32),
        _parents(depth[at]),
        depth[at].astype(np.int32),
        resumed,
    )


def _parents(depth: Ints) -> Ints:
    """Of spans in the order they began: the last one before that lies one level higher."""
    parents = np.full(len(depth), -1, np.int64)
    order = np.argsort(depth, kind="stable")
    edges = np.searchsorted(depth[order], np.arange(depth.max(initial=-1) + 2))
    levels = [order[begin:stop] for begin, stop in itertools.pairwise(edges)]
    for above, level in itertools.pairwise(levels):
        parents[level] = above[np.searchsorted(above, level) - 1]
    return parents


def _walked(times: Ints, events: Any, frames: Any, end: int) -> Spans:
    """One by one, past what is missing."""
    open_, number = Open(), CALL_RESUMED - 1
    under_way: list[int] = []
    for at, event in zip(times.tolist(), events.tolist(), strict=True):
        frame = event & number
        if not event & CALL_LEAVE:
            open_.push(at, int(frames[frame]), bool(event & CALL_RESUMED))
            under_way.append(frame)
        elif frame in under_way:
            depth = len(under_way) - 1 - under_way[::-1].index(frame)
            open_.pop(at, depth)
            del under_way[depth:]
    return open_.spans(end)
