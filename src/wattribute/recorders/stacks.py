"""Stacks: what Python functions run, seen from inside. This is the half that lives in the measured program.

``environment(plan, folder)`` makes every Python that a command starts join: PYTHONPATH names the folder ``hook`` whose
``sitecustomize`` calls :func:`join`, so the interpreter itself runs the script, as it would bare. Each process writes
its own files, which :mod:`.stack_files` turns into spans. Modes:

- ``sample``: a thread of our own notes the stack of every thread each ``interval_s``; a stack holds until the next.
- ``trace``: every call and return (:mod:`.calls`).
- ``cprofile``: ``sample``, and cProfile beside it, whose statistics are kept.

In all of them the thread notes the threads' CPU clocks, and memory where asked. What was written outlives a kill. The
standard library only: this module is imported by programs that must start quickly.
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import functools
import json
import os
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from types import CodeType, FrameType
from typing import Any

from ..errors import OptionError

VARIABLE = "WATTRIBUTE_STACKS"
HOOK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hook")
MODES = ("sample", "trace", "cprofile")
INTERVAL_S = 0.005  # Python hands the GIL over every 5 ms: asking more often gives little more
HELD_NS = 50_000_000  # ten times as long as Python lets a thread keep the GIL
SAMPLE = struct.Struct("<qqII")  # since when (monotonic ns), CPU time of the thread (ns, −1: unknown), lane, stack
NO_STACK = 0  # the thread is gone, or the mode has no stacks
SUSPENDS = 0x20 | 0x80 | 0x200  # flags of a code object: generator, coroutine, asynchronous generator
MEMORY = 0xFFFFFFFF  # in the place of a lane: the row holds resident bytes instead of CPU time


@dataclass(frozen=True)
class Profiling:
    """How a program is profiled."""

    mode: str = "sample"
    interval_s: float = INTERVAL_S
    memory: bool = False  # resident memory, and memray's file where it is installed
    lines: bool = False  # frames are lines, not functions

    def checked(self) -> Profiling:
        """Itself, or an error that says what would do."""
        if self.mode not in MODES:
            raise OptionError.unknown("mode", self.mode, MODES)
        if not 0.0005 <= self.interval_s <= 10:
            raise OptionError(f"a stack every {self.interval_s:g} s; choose from 0.0005 to 10 s")
        if self.lines and self.mode == "trace":
            raise OptionError("a trace has calls, not lines; use --mode sample for lines and memory per line")
        return self


def environment(how: Profiling, folder: str, base: Mapping[str, str]) -> dict[str, str]:
    """The environment in which Python programs record their stacks into a folder."""
    order = json.dumps({**asdict(how), "folder": folder})
    path = os.pathsep.join(entry for entry in (HOOK, base.get("PYTHONPATH", "")) if entry)
    return {**base, VARIABLE: order, "PYTHONPATH": path}


class Names:
    """One process's file of names: JSON lines that say what the numbers in its other files mean."""

    def __init__(self, stem: str, how: Profiling) -> None:
        self.how = how
        self._file = os.open(
            stem + ".stacknames", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644
        )
        self._frames: dict[tuple[int, int], int] = {}
        self._stacks: dict[tuple[int, int, int], int] = {}
        self._codes: list[CodeType] = []  # kept, so that no two have the same id
        self._lanes = 0
        self.hidden: set[int] = set()  # threads of our own
        self._lock = _thread.RLock()
        from . import ranks

        self.say(
            {
                "pid": os.getpid(),
                "host": os.uname().nodename,
                "program": sys.argv[0] if getattr(sys, "argv", None) else "",
                "environment": {name: os.environ[name] for name in ranks.NAMES if name in os.environ},
                **asdict(how),
            }
        )

    def say(self, line: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # a full disk must not stop the program
            os.write(self._file, json.dumps(line).encode() + b"\n")

    def frame(self, code: CodeType, line: int = 0) -> int:
        """The number of a function, or of a line in it."""
        key = id(code), line
        number = self._frames.get(key)
        if number is None:
            with self._lock:
                number = self._frames.setdefault(key, len(self._frames))
                self._codes.append(code)
                name = getattr(code, "co_qualname", code.co_name)
                entry = {"frame": number, "name": name, "file": code.co_filename, "line": line or code.co_firstlineno}
                suspends = {"suspends": True} if code.co_flags & SUSPENDS else {}
                self.say({**entry, "code": id(code), **suspends})
        return number

    def stack(self, frame: FrameType | None) -> int:
        """The number of a whole stack: a tree, in which each frame hangs on its caller."""
        frames = []
        while frame is not None:
            frames.append(frame)
            frame = frame.f_back
        at, lines = NO_STACK, self.how.lines
        for one in reversed(frames):
            code = one.f_code
            line = (one.f_lineno or 0) if lines else 0
            key = at, id(code), line
            below = self._stacks.get(key)
            if below is None:
                below = self._stacks[key] = len(self._stacks) + 1
                self.say({"stack": below, "parent": at, "frame": self.frame(code, line)})
            at = below
        return at

    def lane(self, ident: int) -> int:
        """A number for a thread."""
        with self._lock:
            self._lanes += 1
            self.say({"lane": self._lanes, "name": _thread_name(ident), "thread": ident})
            return self._lanes

    def close(self) -> None:
        os.close(self._file)


def _thread_name(ident: int) -> str:
    thread = _known_threads().get(ident)
    if thread is not None:
        return str(thread.name)
    is_main = ident == _thread.get_ident() and _thread.get_native_id() == os.getpid()
    return "MainThread" if is_main else "thread"


def _known_threads() -> dict[int, Any]:
    """ident → Thread, without importing threading for a program that does not."""
    found: dict[int, Any] = getattr(sys.modules.get("threading"), "_active", {})
    return found


class Lane:
    """One thread: its number, its CPU clock, and what was last written of it."""

    __slots__ = ("clock", "cpu", "number", "skipped", "stack", "task")

    def __init__(self, number: int, clock: int | None, task: int) -> None:
        self.number, self.clock, self.task = number, clock, task
        self.cpu, self.stack, self.skipped = -2, -1, False


def _task(ident: int) -> int:
    """The kernel's number of a thread, 0 when unknown; pthreads' own are used again soon after a thread's end."""
    thread = _known_threads().get(ident)
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
        self._names, self._how = names, names.how
        self._stacks = names.how.mode != "trace"
        self.lanes: dict[int, Lane] = {}
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
            interval_ns = int(self._how.interval_s * 1e9)
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
            rows += SAMPLE.pack(at, max(lane.cpu, -1), lane.number, NO_STACK)
        self._weigh(read_at, rows)
        self._before = read_at
        if rows:
            os.write(self._file, rows)

    def _weigh(self, at: int, rows: bytearray) -> None:
        if self._statm < 0:
            return
        resident = int(os.pread(self._statm, 128, 0).split()[1]) * self._page
        if resident != self._resident:
            self._resident = resident
            rows += SAMPLE.pack(at, resident, MEMORY, 0)

    def _look(self, ident: int, frame: FrameType | None, at: int, read_at: int, rows: bytearray) -> None:
        task = os.getpid() if ident == self._main else _task(ident)
        lane = self.lanes.get(ident)
        if lane is not None and not lane.task:
            lane.task = task  # not known when we saw it first
        if lane is None or lane.task != task:
            if lane is not None:
                rows += SAMPLE.pack(at, max(lane.cpu, -1), lane.number, NO_STACK)
            lane = self.lanes[ident] = Lane(self._names.lane(ident), _cpu_clock(task, ident), task)
        stack = self._names.stack(frame) if self._stacks else NO_STACK
        try:
            cpu = time.clock_gettime_ns(lane.clock) if lane.clock is not None else -1
        except OSError:  # it ended just now
            cpu = lane.cpu
        if cpu == lane.cpu and stack == lane.stack:
            lane.skipped = True  # it waits: nothing to write until that changes
            return
        if lane.skipped:
            rows += SAMPLE.pack(self._before, max(lane.cpu, -1), lane.number, max(lane.stack, 0))
        if read_at > at:
            rows += SAMPLE.pack(at, max(lane.cpu, -1), lane.number, stack)
        lane.cpu, lane.stack, lane.skipped = cpu, stack, False
        rows += SAMPLE.pack(read_at, cpu, lane.number, stack)

    def close(self) -> None:
        self.pause()
        with contextlib.suppress(OSError):
            self.tick(time.monotonic_ns(), last=True)
        os.close(self._file)
        if self._statm >= 0:
            os.close(self._statm)


def _elsewhere(do: Callable[[], object]) -> bool:
    """Do it in a thread of its own; whether that went well."""
    done = _thread.allocate_lock()
    done.acquire()
    went_well = []

    def run() -> None:
        try:
            do()
            went_well.append(True)
        finally:
            done.release()

    _thread.start_new_thread(run, ())
    done.acquire()
    return bool(went_well)


class Recorder:
    """All that records in one process, from ``start`` to ``stop``."""

    def __init__(self, how: Profiling, folder: str, outer: FrameType | None = None) -> None:
        self.how, self.folder = how, folder
        stem = os.path.join(folder, f"{os.getpid()}-{time.monotonic_ns()}")
        self.names = Names(stem, how)
        self._ends: list[Callable[[], object]] = [self.names.close]
        if how.memory and how.mode == "sample":  # memray and a tracer need the same place in the interpreter
            self._memray(stem)
        if how.mode == "cprofile":
            from .calls import Statistics

            self._ends.append(Statistics(stem + ".prof").close)
        self.ticker = Ticker(stem, self.names, outer)
        self._ends.append(self.ticker.close)
        if how.mode == "trace":  # begins last and ends first, to see as little of us as can be
            from .calls import trace

            self._ends.append(trace(stem, self.names, outer))

    def _memray(self, stem: str) -> None:
        with contextlib.suppress(Exception):  # not installed, or not for this Python
            import memray

            tracker = memray.Tracker(stem + ".memray")
            # by another thread: memray miscounts the frames that were open when it began and then return, as ours do
            if _elsewhere(tracker.__enter__):
                self._ends.append(functools.partial(tracker.__exit__, None, None, None))

    def stop(self) -> None:
        while self._ends:
            with contextlib.suppress(OSError):
                self._ends.pop()()


_recorders: list[Recorder] = []  # of this process, innermost last


def start(how: Profiling, folder: str, outer: FrameType | None = None) -> Recorder:
    """Record this process, and by the environment the Python programs it starts, until ``stop``."""
    recorder = Recorder(how, folder, outer)
    _recorders.append(recorder)
    return recorder


def stop(recorder: Recorder) -> None:
    if recorder in _recorders:
        _recorders.remove(recorder)
    recorder.stop()


@contextlib.contextmanager
def recorded(how: Profiling | None, folder: str) -> Iterator[None]:
    """Record this process, and the Python programs it starts, for the time of a block (None: do nothing)."""
    if how is None:
        yield
        return
    before = {name: os.environ.get(name) for name in (VARIABLE, "PYTHONPATH")}
    os.environ.update(environment(how, folder, os.environ))
    recorder = start(how, folder, _outside(sys._getframe()))
    try:
        yield
    finally:
        stop(recorder)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _outside(frame: FrameType | None) -> FrameType | None:
    """The frame that called us, past what makes a generator a context manager."""
    ours = os.path.dirname(os.path.abspath(__file__)), contextlib.__file__
    while frame is not None and frame.f_code.co_filename.startswith(ours):
        frame = frame.f_back
    return frame


def join() -> None:
    """Record as the environment orders: called while Python starts."""
    order = json.loads(os.environ[VARIABLE])
    folder = order.pop("folder")
    if os.path.isdir(folder):  # the recording has ended otherwise
        start(Profiling(**order), folder)


def _stop_all() -> None:
    while _recorders:
        stop(_recorders[-1])


def _before_fork() -> None:
    for recorder in _recorders:
        recorder.ticker.pause()


def _after_fork_in_parent() -> None:
    for recorder in _recorders:
        with contextlib.suppress(RuntimeError):  # the interpreter is ending
            recorder.ticker.start()


def _after_fork_in_child() -> None:
    """The child writes files of its own; what its parent's mean is its parent's to say."""
    again = [(recorder.how, recorder.folder) for recorder in _recorders]
    _recorders.clear()
    for how, folder in again:
        if os.path.isdir(folder):
            with contextlib.suppress(OSError, RuntimeError):
                start(how, folder, sys._getframe(1))
    if again and "multiprocessing.util" in sys.modules:  # workers end by os._exit, without atexit
        util = sys.modules["multiprocessing.util"]
        util.register_after_fork(_stop_all, lambda _: util.Finalize(None, _stop_all, exitpriority=-1000))


atexit.register(_stop_all)
os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
