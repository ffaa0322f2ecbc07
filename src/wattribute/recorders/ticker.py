"""The ticker: a Python thread that looks at a profiled program where :mod:`.watch` cannot; part of :mod:`.stacks`.

It needs the GIL, which a program gives up where it blocks: functions that compute for less than 5 ms at a time are
seen too rarely, and those that wait too often. Like :mod:`.stacks` it has next to no imports.
"""

# ruff: noqa: SIM105  (contextlib.suppress would be another import)
from __future__ import annotations

import _thread
import os
import stat
import sys
import time

from ..journal.layouts import MEMORY_LANE, NO_STACK, STACK_SAMPLE

TYPE_CHECKING = False  # as in stacks
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from .stacks import Names

SHORTEST_S = 0.005  # Python hands the GIL over every 5 ms: asking more often gives little more
HELD_NS = 50_000_000  # ten times as long as Python lets a thread keep the GIL


def known_threads() -> dict[int, Any]:
    """ident → Thread, without importing threading for a program that does not."""
    threads: dict[int, Any] = getattr(sys.modules.get("threading"), "_active", {})
    return threads


def still_ours(file: int) -> Callable[[], bool]:
    """Says whether a file is still the one it is now: a program that closes all may get another of its number."""

    def key() -> tuple[int, int, str]:
        status = os.fstat(file)
        # events of the kernel and the like have one inode, but names
        name = "" if stat.S_IFMT(status.st_mode) else os.readlink(f"/proc/self/fd/{file}")
        return status.st_dev, status.st_ino, name

    ours = key()

    def is_ours() -> bool:
        try:
            return key() == ours
        except OSError:
            return False

    return is_ours


class ThreadLane:
    """One thread: its number, its CPU clock, and what was last written of it."""

    __slots__ = ("clock", "cpu", "number", "skipped", "stack", "task")

    def __init__(self, number: int, clock: int | None, task: int) -> None:
        self.number, self.clock, self.task = number, clock, task
        self.cpu, self.stack, self.skipped = -2, -1, False


def _task(ident: int) -> int:
    """The kernel's number of a thread, 0 when unknown; pthreads' own are used again soon after a thread's end."""
    thread = known_threads().get(ident)
    return thread.native_id or 0 if thread is not None else 0


def _cpu_clock(task: int, ident: int) -> int | None:
    if sys.platform != "linux":
        return None
    if task:
        return ~task << 3 | 6  # CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED of a task, as the kernel's ABI has it
    return time.pthread_getcpuclockid(ident)


class Ticker:
    """The thread that looks: at stacks (unless calls are traced), CPU clocks, memory."""

    def __init__(self, stem: str, names: Names, outer: FrameType | None = None) -> None:
        self._file = os.open(
            stem + ".samples", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644
        )
        self._is_ours = still_ours(self._file)
        self._names, self._how = names, names.how
        self._stacks = names.how.mode != "trace"
        self.lanes: dict[int, ThreadLane] = {}
        self._statm = -1
        if names.how.memory and os.path.exists("/proc/self/statm"):
            self._statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        self._page = os.sysconf("SC_PAGE_SIZE")
        self._resident = 0
        self._main = _thread.get_ident() if _thread.get_native_id() == os.getpid() else 0
        self._begin(outer)
        self.start()

    def _begin(self, outer: FrameType | None) -> None:
        """Where this thread's clock and memory stand before the program does anything."""
        rows, at = bytearray(), time.monotonic_ns()
        self._before, self._is_first = at, outer is None
        self._look(_thread.get_ident(), outer, at, at, rows)
        self._weigh(at, rows)
        os.write(self._file, rows)

    def start(self) -> None:
        """Go on, from what was last seen."""
        self._stop, self._done = _thread.allocate_lock(), _thread.allocate_lock()
        self._stop.acquire()
        self._done.acquire()
        # not threading.Thread: the program would see it in threading.enumerate()
        _thread.start_new_thread(self._run, ())

    def pause(self) -> None:
        """End the thread, and wait until it has ended."""
        self._stop.release()
        self._done.acquire()

    def _run(self) -> None:
        self._names.hidden.add(_thread.get_ident())
        try:
            interval_ns = int(max(self._how.interval_s, SHORTEST_S) * 1e9)
            looked = self._before  # not now: a native call may have kept us from starting
            while not self._stop.acquire(timeout=max(0, looked + interval_ns - time.monotonic_ns()) / 1e9):
                due, now = looked + interval_ns, time.monotonic_ns()
                # What is new began on average half-way since the last look. But if we had to wait long, a native call
                # kept the GIL, and it ran in the stack that we see only now: that counts from when we asked, and what
                # it used until now is its own. The first stack is there from the beginning.
                held = now - due > HELD_NS
                began = looked if self._is_first else due if held else (looked + now) // 2
                self.tick(began, read_at=now if held else 0)
                looked, self._is_first = now, False
        except Exception as error:  # our bug must not become the program's
            self._names.say({"problem": repr(error)})
        finally:
            self._names.hidden.discard(_thread.get_ident())
            self._done.release()

    def tick(self, at: int, last: bool = False, read_at: int = 0) -> None:
        """Note every thread; with ``last`` all of them as gone. Stacks began at ``at``, clocks show ``read_at``."""
        rows, read_at = bytearray(), read_at or at
        seen = {} if last else sys._current_frames()
        for ident, frame in seen.items():
            if ident not in self._names.hidden:
                self._look(ident, frame, at, read_at, rows)
        gone = [ident for ident in self.lanes if ident not in seen]
        for ident in gone:
            lane = self.lanes.pop(ident)
            rows += STACK_SAMPLE.pack(at, max(lane.cpu, -1), lane.number, NO_STACK)
        self._weigh(read_at, rows)
        self._before = read_at
        if rows and self._is_ours():
            os.write(self._file, rows)

    def _weigh(self, at: int, rows: bytearray) -> None:
        if self._statm < 0:
            return
        resident = int(os.pread(self._statm, 128, 0).split()[1]) * self._page
        if resident != self._resident:
            self._resident = resident
            rows += STACK_SAMPLE.pack(at, resident, MEMORY_LANE, 0)

    def _look(self, ident: int, frame: FrameType | None, at: int, read_at: int, rows: bytearray) -> None:
        task = os.getpid() if ident == self._main else _task(ident)
        lane = self.lanes.get(ident)
        if lane is not None and not lane.task:
            lane.task = task  # not known when we saw it first
        if lane is None or lane.task != task:
            if lane is not None:
                rows += STACK_SAMPLE.pack(at, max(lane.cpu, -1), lane.number, NO_STACK)
            lane = self.lanes[ident] = ThreadLane(self._names.lane(ident), _cpu_clock(task, ident), task)
        stack = self._names.stack(frame) if self._stacks else NO_STACK
        try:
            cpu = time.clock_gettime_ns(lane.clock) if lane.clock is not None else -1
        except OSError:  # it ended just now
            cpu = lane.cpu
        if cpu == lane.cpu and stack == lane.stack:
            lane.skipped = True  # it waits: nothing to write until that changes
            return
        if lane.skipped:
            rows += STACK_SAMPLE.pack(self._before, max(lane.cpu, -1), lane.number, max(lane.stack, 0))
        if read_at > at:
            rows += STACK_SAMPLE.pack(at, max(lane.cpu, -1), lane.number, stack)
        lane.cpu, lane.stack, lane.skipped = cpu, stack, False
        rows += STACK_SAMPLE.pack(read_at, cpu, lane.number, stack)

    def close(self) -> None:
        self.pause()
        try:
            self.tick(time.monotonic_ns(), last=True)
        except OSError:
            pass
        if self._is_ours():
            os.close(self._file)
        if self._statm >= 0:
            os.close(self._statm)
