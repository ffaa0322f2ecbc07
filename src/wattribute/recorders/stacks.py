"""Stacks: what Python functions run, seen from inside. This is the half that lives in the measured program.

``environment(plan, folder)`` makes every Python that a command starts join: PYTHONPATH names the folder ``hook`` whose
``sitecustomize`` calls :func:`join`, so the interpreter itself runs the script, as it would bare. Each process writes
its own files, which :mod:`.stack_files` turns into spans. Modes:

- ``sample``: :mod:`.watch` notes the stack of every thread each ``interval_s``, without the GIL; :mod:`.ticker` does
  where that cannot be.
- ``trace``: every call and return (:mod:`.calls`).
- ``cprofile``: ``sample``, and cProfile beside it, whose statistics are kept.

In all of them it notes the threads' CPU clocks, and memory where asked. What was written outlives a kill. This
module is imported by programs that must start quickly, so it imports next to nothing: not even json or dataclasses.
"""

# ruff: noqa: SIM105  (contextlib.suppress would be another import)
from __future__ import annotations

import _thread
import atexit
import os
import sys
import time

from ..journal.layouts import NO_STACK
from .ticker import Ticker, known_threads, still_ours

TYPE_CHECKING = False  # typing itself takes as long to import as all of this
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import CodeType, FrameType
    from typing import Any

    from .watch import Watch

VARIABLE = "WATTRIBUTE_STACKS"
HOOK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hook")
MODES = ("sample", "trace", "cprofile")
INTERVAL_S = 0.001  # of a watch; it looks less often where that would cost more than 2 % of a core
SUSPENDS = 0x20 | 0x80 | 0x200  # flags of a code object: generator, coroutine, asynchronous generator


class Profiling:
    """How a program is profiled: ``mode``, seconds between two stacks, ``memory`` (resident, and memray's file where it
    is installed), ``lines`` (frames are lines, not functions).
    """

    def __init__(
        self, mode: str = "sample", interval_s: float = INTERVAL_S, memory: bool = False, lines: bool = False
    ) -> None:
        self.mode, self.interval_s, self.memory, self.lines = mode, interval_s, memory, lines

    def as_dict(self) -> dict[str, Any]:
        return dict(self.__dict__)

    def checked(self) -> Profiling:
        """Return itself, or raise an error that says what is accepted."""
        from ..errors import OptionError

        if self.mode not in MODES:
            raise OptionError.unknown("mode", self.mode, MODES)
        if not 0.0005 <= self.interval_s <= 10:
            raise OptionError(f"a stack every {self.interval_s:g} s; choose from 0.0005 to 10 s")
        if self.lines and self.mode == "trace":
            raise OptionError("a trace has calls, not lines; use --mode sample for lines and memory per line")
        return self


def environment(how: Profiling, folder: str, base: Mapping[str, str]) -> dict[str, str]:
    """The environment in which Python programs record their stacks into a folder."""
    order = f"{how.mode} {how.interval_s!r} {how.memory:d} {how.lines:d} {folder}"
    path = os.pathsep.join(entry for entry in (HOOK, base.get("PYTHONPATH", "")) if entry)
    return {**base, VARIABLE: order, "PYTHONPATH": path}


class Names:
    """One process's file of names: JSON lines that say what the numbers in its other files mean."""

    def __init__(self, stem: str, how: Profiling) -> None:
        self.how = how
        self.file = os.open(
            stem + ".stacknames", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644
        )
        self._is_ours = still_ours(self.file)
        self._frames: dict[tuple[int, int], int] = {}
        self._stacks: dict[tuple[int, int, int], int] = {}
        self._codes: list[CodeType] = []  # kept, so that no two have the same id
        self._lanes = 0
        self.hidden: set[int] = set()  # threads of our own
        self._lock = _thread.RLock()
        from ..journal import launchers

        self.say(
            {
                "pid": os.getpid(),
                "host": os.uname().nodename,
                "program": sys.argv[0] if getattr(sys, "argv", None) else "",
                "environment": {name: os.environ[name] for name in launchers.NAMES if name in os.environ},
                **how.as_dict(),
            }
        )

    def say(self, line: dict[str, Any]) -> None:
        try:
            if self._is_ours():
                os.write(self.file, _json(line).encode() + b"\n")
        except OSError:
            pass  # a full disk must not stop the program

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
        if self._is_ours():
            os.close(self.file)


def _json(value: Any) -> str:
    """Encode as json.dumps does, for the few types used here, without importing json."""
    from _json import encode_basestring_ascii as quoted

    if isinstance(value, dict):
        return "{" + ", ".join([f"{quoted(key)}: {_json(entry)}" for key, entry in value.items()]) + "}"
    if isinstance(value, bool):
        return "true" if value else "false"
    text: str = quoted(value) if isinstance(value, str) else repr(value)
    return text


def _thread_name(ident: int) -> str:
    thread = known_threads().get(ident)
    if thread is not None:
        return str(thread.name)
    is_main = ident == _thread.get_ident() and _thread.get_native_id() == os.getpid()
    return "MainThread" if is_main else "thread"


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


class StackRecorder:
    """All that records in one process, from ``start`` to ``stop``."""

    def __init__(self, how: Profiling, folder: str, outer: FrameType | None = None) -> None:
        self.how, self.folder = how, folder
        stem = os.path.join(folder, f"{os.getpid()}-{time.monotonic_ns()}")
        self.names = Names(stem, how)
        self._ends: list[Callable[[], object]] = [self.names.close]
        if how.memory and how.mode == "sample":  # memray and a tracer need the same place in the interpreter
            self._memray(stem)
        if how.mode == "cprofile":
            from .calls import CallStatistics

            self._ends.append(CallStatistics(stem + ".prof").close)
        self.ticker: Watch | Ticker = _looking(stem, self.names, outer)
        self._ends.append(self.ticker.close)
        if how.mode == "trace":  # begins last and ends first, to see as little of us as can be
            from .calls import trace

            self._ends.append(trace(stem, self.names, outer))

    def _memray(self, stem: str) -> None:
        try:
            import memray

            tracker = memray.Tracker(stem + ".memray")
            # by another thread: memray miscounts the frames that were open when it began and then return, as ours do
            if _elsewhere(tracker.__enter__):
                self._ends.append(lambda: tracker.__exit__(None, None, None))
        except Exception:
            pass  # not installed, or not for this Python

    def stop(self) -> None:
        while self._ends:
            try:
                self._ends.pop()()
            except OSError:
                pass


def _looking(stem: str, names: Names, outer: FrameType | None) -> Watch | Ticker:
    try:
        from .watch import watch

        seeing = watch(stem, names, outer)
    except (ImportError, OSError):  # a Python without ctypes, or without the core that it must have
        seeing = None
    return seeing or Ticker(stem, names, outer)


_recorders: list[StackRecorder] = []  # of this process, innermost last


def start(how: Profiling, folder: str, outer: FrameType | None = None) -> StackRecorder:
    """Record this process, and by the environment the Python programs it starts, until ``stop``."""
    recorder = StackRecorder(how, folder, outer)
    _recorders.append(recorder)
    return recorder


def stop(recorder: StackRecorder) -> None:
    if recorder in _recorders:
        _recorders.remove(recorder)
    recorder.stop()


class recorded:  # noqa: N801 - used as a function: with recorded(...)
    """Record this process, and the Python programs it starts, for the time of a block (None: do nothing)."""

    def __init__(self, how: Profiling | None, folder: str) -> None:
        self._how, self._folder = how, folder

    def __enter__(self) -> None:
        if self._how is None:
            return
        self._before = {name: os.environ.get(name) for name in (VARIABLE, "PYTHONPATH")}
        os.environ.update(environment(self._how, self._folder, os.environ))
        self._recorder = start(self._how, self._folder, _outside(sys._getframe()))

    def __exit__(self, *_: object) -> None:
        if self._how is None:
            return
        stop(self._recorder)
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _outside(frame: FrameType | None) -> FrameType | None:
    """The frame that called us, past what makes a generator a context manager."""
    import contextlib

    ours = os.path.dirname(os.path.abspath(__file__)), contextlib.__file__
    while frame is not None and frame.f_code.co_filename.startswith(ours):
        frame = frame.f_back
    return frame


def join() -> None:
    """Record as the environment orders: called while Python starts."""
    mode, interval_s, memory, lines, folder = os.environ[VARIABLE].split(" ", 4)
    if os.path.isdir(folder):  # the recording has ended otherwise
        start(Profiling(mode, float(interval_s), memory == "1", lines == "1"), folder)


def _stop_all() -> None:
    while _recorders:
        stop(_recorders[-1])


def _before_fork() -> None:
    for recorder in _recorders:
        recorder.ticker.pause()


def _after_fork_in_parent() -> None:
    for recorder in _recorders:
        try:
            recorder.ticker.start()
        except RuntimeError:
            pass  # the interpreter is ending


def _after_fork_in_child() -> None:
    """The child writes files of its own; what its parent's mean is its parent's to say."""
    again = [(recorder.how, recorder.folder) for recorder in _recorders]
    _recorders.clear()
    for how, folder in again:
        if os.path.isdir(folder):
            try:
                start(how, folder, sys._getframe(1))
            except (OSError, RuntimeError):
                pass
    if again and "multiprocessing.util" in sys.modules:  # workers end by os._exit, without atexit
        util = sys.modules["multiprocessing.util"]
        util.register_after_fork(_stop_all, lambda _: util.Finalize(None, _stop_all, exitpriority=-1000))


atexit.register(_stop_all)
os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
