"""The Python twin of ``nesting.h``: events that enter, leave, sample or switch become spans.

``reference_otf2.py`` says which events there are; here is what they do to a location's stack. Times only go forward: an
event that claims to be earlier than the one before it is moved to that one's time and counted.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

Task = tuple[int, int, int]

# keys of stack entries: a frame row, or a number no frame row can be
_UNDEFINED_REGION = -1
_UNDEFINED_CONTEXT = -1 - (1 << 32)
_COPY = 1 << 62


class OpenSpan(NamedTuple):
    key: int
    frame: int  # −1: undefined
    row: int  # of the span; −1: the frame is left out
    parent: int  # row of the innermost span that is open here
    depth: int  # number of spans open below
    context: int  # −1: not from a calling context


class Nesting:
    """One location's stack of open frames and the spans it has made, in the order they were opened."""

    def __init__(self, tables: Any) -> None:
        self.tables = tables
        self.start: list[int] = []
        self.end: list[int] = []
        self.frame: list[int] = []
        self.parent: list[int] = []
        self.depth: list[int] = []
        self.resumed: list[bool] = []
        self.orphans = self.repaired = self.renamed = self.unclosed = self.undefined = self.backward = 0
        self.last = -(1 << 63)
        self._stack: list[OpenSpan] = []
        self._base = 0  # where the running task's part of the stack begins
        self._task: Task | None = None  # None: the location's own
        self._suspended: dict[Task, list[OpenSpan]] = {}
        self._owed: Counter[int] = Counter()  # keys of what was closed by the leave of something below it

    def advance(self, time: int) -> int:
        """The time at which an event takes effect."""
        if time < self.last:
            self.backward += 1
            return self.last
        self.last = time
        return time

    def columns(self) -> dict[str, Any]:
        return {
            "start": np.array(self.start, np.int64),
            "end": np.array(self.end, np.int64),
            "frame": np.array(self.frame, np.int32),
            "parent": np.array(self.parent, np.int64),
            "depth": np.array(self.depth, np.int32),
            "resumed": np.array(self.resumed, np.bool_),
        }

    # --- one function per kind of event

    def enter(self, time: int, region: int) -> None:
        time = self.advance(time)
        frame = self._frame_of(region)
        self.undefined += frame < 0
        self._open(time, self._region_key(region, frame), frame)

    def leave(self, time: int, region: int) -> None:
        """Close the innermost open span of the region, else, as a runtime may rename a task that runs, the innermost
        of all. A leave that comes after its span was closed together with one below closes nothing."""
        time = self.advance(time)
        key = self._region_key(region, self._frame_of(region))
        if self._close_to(time, key):
            return
        if self._owed[key] or not self._entered_on_top():
            self._owed[key] -= self._owed[key] > 0
            self.orphans += 1
            return
        self.renamed += 1
        self._close(time)

    def flush(self, time: int, stop: int) -> None:
        time = self.advance(time)
        if self.tables.flush >= 0:
            self._open(time, self.tables.flush, self.tables.flush)
            self.last = max(self.last, stop)
            self._close(self.last)

    def measurement(self, time: int, on: bool) -> None:
        time = self.advance(time)
        off = self.tables.off
        if off < 0:
            return
        if on:
            self._close_to(time, off)
        elif all(entry.key != off for entry in self._stack[self._base :]):
            self._open(time, off, off)

    def copy_begins(self, time: int, frame: int, matching: int) -> None:
        time = self.advance(time)
        if frame >= 0:
            self._open(time, _COPY | matching & (_COPY - 1), frame)

    def copy_ends(self, time: int, matching: int) -> None:
        time = self.advance(time)
        self._close_to(time, _COPY | matching & (_COPY - 1))

    def switch(self, time: int, task: Task) -> None:
        """Generation 0 is the location's own stack; an explicit task's stands on top of it while the task runs."""
        time = self.advance(time)
        new = task if task[2] else None
        if new == self._task:
            return
        if self._task is not None:
            cut = self._stack[self._base :]
            if cut:
                self._suspended[self._task] = cut
            self._close_down_to(time, self._base)
        self._task, self._base = new, len(self._stack) if new else 0
        for entry in self._suspended.pop(task, []) if new else []:
            self._open(time, entry.key, entry.frame, entry.context, resumed=True)

    def complete(self, time: int, task: Task) -> None:
        time = self.advance(time)
        if task[2] and task == self._task:
            self.unclosed += len(self._stack) - self._base
            self._close_down_to(time, self._base)
            self._task, self._base = None, 0
        else:
            self.unclosed += len(self._suspended.pop(task, []))

    def context(self, time: int, context: int) -> None:
        """Make the stack the chain of calls that ends in this context."""
        time = self.advance(time)
        if not self._chain(context):
            self.undefined += 1
            return
        self._become(time, context)

    def context_left(self, time: int, context: int) -> None:
        """Make the stack the chain of calls that ends in this context's caller."""
        time = self.advance(time)
        if not self._chain(context):
            self.undefined += 1
            return
        self._become(time, int(self.tables.context_parent[context]))

    def finish(self) -> None:
        """Close every open span at the last event."""
        self.unclosed += len(self._stack) + sum(map(len, self._suspended.values()))
        self._close_down_to(self.last, 0)

    # --- the stack

    def _frame_of(self, region: int) -> int:
        return int(self.tables.region[region]) if region < len(self.tables.region) else -1

    def _region_key(self, region: int, frame: int) -> int:
        return frame if frame >= 0 else _UNDEFINED_REGION - region

    def _open(self, time: int, key: int, frame: int, context: int = -1, resumed: bool = False) -> None:
        parent, depth = -1, 0
        if self._stack:
            below = self._stack[-1]
            parent, depth = (below.row, below.depth + 1) if below.row >= 0 else (below.parent, below.depth)
        row = -1
        if 0 <= frame < len(self.tables.keep) and self.tables.keep[frame]:
            row = len(self.start)
            self.start.append(time)
            self.end.append(time)
            self.frame.append(frame)
            self.parent.append(parent)
            self.depth.append(depth)
            self.resumed.append(resumed)
        self._stack.append(OpenSpan(key, frame, row, parent, depth, context))

    def _close(self, time: int) -> None:
        row = self._stack.pop().row
        if row >= 0:
            self.end[row] = time

    def _close_down_to(self, time: int, height: int) -> None:
        while len(self._stack) > height:
            self._close(time)

    def _close_to(self, time: int, key: int) -> bool:
        """Close the innermost entry with that key and all above it; False if there is none."""
        for at in range(len(self._stack) - 1, self._base - 1, -1):
            if self._stack[at].key == key:
                self.repaired += at < len(self._stack) - 1
                self._owed.update(entry.key for entry in self._stack[at + 1 :] if self._is_entered(entry))
                self._close_down_to(time, at)
                return True
        return False

    def _entered_on_top(self) -> bool:
        return len(self._stack) > self._base and self._is_entered(self._stack[-1])

    def _is_entered(self, entry: OpenSpan) -> bool:
        """Whether an Enter opened it: no calling context, copy or pause."""
        return entry.context < 0 and entry.key < _COPY and entry.key != self.tables.off

    def _chain(self, context: int) -> list[int]:
        """From the context outwards; empty if it, or a caller of it, is undefined or calls itself."""
        parents = self.tables.context_parent
        chain: list[int] = []
        while context >= 0:
            if context >= len(parents) or len(chain) > len(parents):
                return []
            chain.append(context)
            context = int(parents[context])
        return chain

    def _become(self, time: int, context: int) -> None:
        chain = self._chain(context)
        height, known = self._base, 0  # keep the stack up to its last context that the chain has too
        for at in range(self._base, len(self._stack)):
            entry = self._stack[at]
            if entry.context >= 0:
                if known == len(chain) or chain[-1 - known] != entry.context:
                    break
                known, height = known + 1, at + 1
            elif not known:
                height = at + 1  # entered by hand below the first context
        self._close_down_to(time, height)
        for new in reversed(chain[: len(chain) - known]):
            frame = int(self.tables.context_frame[new])
            self.undefined += frame < 0
            self._open(time, frame if frame >= 0 else _UNDEFINED_CONTEXT - new, frame, new)
