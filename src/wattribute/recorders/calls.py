"""Every call and return of a process, as the interpreter tells of them: the mode ``trace`` of :mod:`.stacks`.

From Python 3.12 on by ``sys.monitoring``, before by ``sys.setprofile`` in each thread. Events go to mapped memory, a
store each, so that what was stored outlives ``os._exit`` and a kill; quick energy counters are read along, as at the
edges of regions. :class:`CallStatistics` is the mode ``cprofile``.
"""

from __future__ import annotations

import _thread
import mmap
import os
import sys
from time import monotonic_ns

from ..journal.layouts import CALL, CALL_LEAVE, CALL_RESUMED, COUNTERS
from .stacks import SUSPENDS

TYPE_CHECKING = False  # as in stacks: a program waits for this
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType
    from typing import Any

    from .regions import Sink
    from .stacks import Names

_PIECE = 1 << 16  # bytes mapped at a time for one thread
_OURS = os.path.dirname(os.path.abspath(__file__))
_TOOLS = (4, 3, 5, 1)  # ids of sys.monitoring; 2 is left to a cProfile that the program may use itself


class Calls:
    """The file of events. Each thread fills a piece of its own, so that threads need no lock."""

    def __init__(self, stem: str, names: Names) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._file, self.names, self._pieces = os.open(stem + ".calls", flags, 0o644), names, 0
        self._lock = _thread.RLock()
        self.closed = False
        self._edges: Sink | None = None
        if os.path.exists(os.path.join(os.path.dirname(stem), COUNTERS)):
            from .regions import Sink

            self._edges = Sink(os.path.dirname(stem)).watch_edges()

    def piece(self) -> mmap.mmap:
        """The next part of the file; on a full disk, memory that is thrown away."""
        with self._lock:
            start = self._pieces * _PIECE
            try:
                if hasattr(os, "posix_fallocate"):  # storing into a hole on a full disk would be a SIGBUS
                    os.posix_fallocate(self._file, start, _PIECE)
                else:
                    os.ftruncate(self._file, start + _PIECE)
                mapped = mmap.mmap(self._file, _PIECE, offset=start)
            except OSError as error:
                self.names.say({"problem": f"calls were lost: {error.strerror}"})
                return mmap.mmap(-1, _PIECE)
            self._pieces += 1
            return mapped

    def writer(self, ident: int) -> Callable[[CodeType, int], None]:
        """A function (code, flags) that stores an event of one thread."""
        lane, memory, offset = self.names.lane(ident), self.piece(), 0
        number, pack_into = self.names.frame, CALL.pack_into
        known: dict[int, int] = {}
        kept: list[CodeType] = []  # so that no two have the same id
        edges = self._edges

        def write(code: CodeType, flags: int) -> None:
            nonlocal memory, offset
            frame = known.get(id(code))
            if frame is None:
                kept.append(code)
                frame = known[id(code)] = -1 if code.co_filename.startswith(_OURS) else number(code)
            if frame < 0:
                return
            now = monotonic_ns()
            if edges is not None and now >= edges.due_ns:
                edges.read_counters(now)
                now = monotonic_ns()
            pack_into(memory, offset, now, frame | flags, lane)
            offset += 16
            if offset == _PIECE:
                memory, offset = self.piece(), 0

        return write

    def enter(self, frame: FrameType | None, write: Callable[[CodeType, int], None]) -> None:
        """The calls that are under way already, outermost first."""
        frames = []
        while frame is not None:
            frames.append(frame.f_code)
            frame = frame.f_back
        for code in reversed(frames):
            write(code, CALL_RESUMED)

    def close(self) -> None:
        self.closed = True
        if self._edges is not None:
            self._edges.close()
        os.close(self._file)


def trace(stem: str, names: Names, outer: FrameType | None) -> Callable[[], None]:
    """Begin to trace; gives the function that ends it. ``outer`` is the innermost frame under way in this thread."""
    calls = Calls(stem, names)
    end = _by_monitoring(calls, outer) if sys.version_info >= (3, 12) else _by_profile_function(calls, outer)

    def close() -> None:
        end()
        calls.close()

    return close


def _by_profile_function(calls: Calls, outer: FrameType | None) -> Callable[[], None]:
    import threading

    def hook() -> Callable[[FrameType, str, Any], None]:
        write = calls.writer(_thread.get_ident())
        fresh: dict[int, int] = {}  # where a generator stands when it begins

        def record_call(frame: FrameType, event: str, _: Any) -> None:
            if event == "call":
                code = frame.f_code
                if code.co_flags & SUSPENDS and frame.f_lasti != fresh.setdefault(id(code), frame.f_lasti):
                    write(code, CALL_RESUMED)
                else:
                    write(code, 0)
            elif event == "return":
                write(frame.f_code, CALL_LEAVE)

        if outer is not None and not begun:
            calls.enter(outer, write)
        begun.append(True)
        return record_call

    begun: list[bool] = []

    def first(frame: FrameType, event: str, argument: Any) -> None:
        """What a new thread calls first: it gets a hook of its own."""
        if calls.closed:
            sys.setprofile(None)
            return
        mine = hook()
        sys.setprofile(mine)
        mine(frame, event, argument)

    before = sys.getprofile(), threading.getprofile()
    threading.setprofile(first)
    sys.setprofile(hook())

    def end() -> None:
        sys.setprofile(before[0])
        threading.setprofile(before[1])

    return end


def _by_monitoring(calls: Calls, outer: FrameType | None) -> Callable[[], None]:
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    tool = next(number for number in _TOOLS if monitoring.get_tool(number) is None)
    writers: dict[int, Callable[[CodeType, int], None]] = {}
    thread, hidden = _thread.get_ident, calls.names.hidden

    def callback(flags: int) -> Callable[..., None]:
        def event(code: CodeType, *_: Any) -> None:
            ident = thread()
            if ident in hidden:
                return
            if ident not in writers:
                writers[ident] = calls.writer(ident)
            writers[ident](code, flags)

        return event

    kinds = monitoring.events
    flags = {
        kinds.PY_START: 0, kinds.PY_RESUME: CALL_RESUMED, kinds.PY_THROW: CALL_RESUMED,
        kinds.PY_RETURN: CALL_LEAVE, kinds.PY_YIELD: CALL_LEAVE, kinds.PY_UNWIND: CALL_LEAVE,
    }  # fmt: skip
    if outer is not None:
        writers[thread()] = calls.writer(thread())
        calls.enter(outer, writers[thread()])
    monitoring.use_tool_id(tool, "wattribute")
    for kind, flag in flags.items():
        monitoring.register_callback(tool, kind, callback(flag))
    monitoring.set_events(tool, sum(flags))

    def end() -> None:
        monitoring.set_events(tool, 0)
        monitoring.free_tool_id(tool)

    return end


class CallStatistics:
    """cProfile in every thread, into a standard ``.prof``."""

    def __init__(self, path: str) -> None:
        import cProfile
        import threading

        self._path, self._make = path, cProfile.Profile
        self._profiles = [cProfile.Profile()]
        self._open = True
        if sys.version_info < (3, 12):  # from then on one profiler sees all threads
            threading.setprofile(self._in_thread)
        self._profiles[0].enable()

    def _in_thread(self, *_: Any) -> None:
        sys.setprofile(None)
        if self._open:
            self._profiles.append(self._make())
            self._profiles[-1].enable()

    def close(self) -> None:
        import pstats
        import threading

        self._open = False
        if sys.version_info < (3, 12):
            threading.setprofile(None)
        whole = pstats.Stats()
        for profile in self._profiles:
            profile.create_stats()
            if profile.stats:
                whole.add(profile)
        whole.dump_stats(self._path)
