"""Regions: pieces of code the user marks by hand. This is the half that lives in the measured program.

``with region("train"):`` or ``@region``; ``count("tokens", n)`` says how much work was done. Nothing records unless
``WATTRIBUTE_REGIONS`` names a folder (``wattribute run`` sets it for its child) or :func:`start` was called
(``record()`` does): then every process writes one file there, which :mod:`.region_files` turns into spans. The file is
mapped memory: beginning a region is one store, ending it another, and what was stored outlives a kill. The standard
library only: this module is imported by programs that must start quickly.
"""

from __future__ import annotations

import functools
import itertools
import json
import mmap
import os
import struct
import sys
import threading
from collections.abc import AsyncIterator, Callable, Generator
from time import monotonic_ns
from types import TracebackType
from typing import Any, Protocol, TypeVar, cast, overload

from ..errors import OptionError
from ..journal import launchers
from ..journal.layouts import (
    COUNT,
    COUNTERS,
    PERF_ADDRESS,
    READING,
    REGION,
    REGION_COUNT,
    REGION_READING,
    REGION_RESUMED,
)

FOLDER = "WATTRIBUTE_REGIONS"
_INFINITY = float("inf")
_SHIFT = 13
_PIECE = 1 << _SHIFT  # records mapped at a time; 24 × 8,192 bytes is a multiple of every page size up to 64 KiB
_MASK, _BYTES = _PIECE - 1, REGION.size
_END = struct.Struct("<q")
_CHEAP_NS = 5_000  # a counter that takes longer to read is left to the sampler
_PAUSE_NS = 500_000  # between readings at edges: the counters move once a millisecond
_SHARE = 100  # of the time is the most that such readings take: one part in so many
_STALE_NS = 100_000  # a reading that took longer was interrupted: when it was made is not known
_thread = threading.get_ident
_GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x200  # flags of a code object, as inspect names them

F = TypeVar("F", bound=Callable[..., Any])
Token = tuple["Sink", mmap.mmap, int, int]  # where to store the end of a region, and the key of its lane


class _OpenCounter(Protocol):
    """An open counter; it gives None where it can no longer be read."""

    file: int

    def read(self) -> int | None: ...
    def close(self) -> None: ...


class _CounterFile:
    """A file that holds a counter."""

    def __init__(self, path: str) -> None:
        self.file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def read(self) -> int | None:
        try:
            return int(os.pread(self.file, 64, 0))
        except (OSError, ValueError):
            return None

    def close(self) -> None:
        os.close(self.file)


def _open_counter(path: str) -> _OpenCounter:
    """Open a counter that the sampler offers; raises OSError."""
    if not path.startswith(PERF_ADDRESS):
        return _CounterFile(path)
    from ..meters import perf

    return perf.open_counter(path)


class EdgeCounters:
    """Quick energy counters, read where a region begins or ends: the sampler's readings are 20 ms apart."""

    def __init__(self, folder: str, clock: Callable[[], int]) -> None:
        self.paths: list[str] = []
        self._open: list[_OpenCounter] = []
        self._clock, self.due_ns, self.pause_ns = clock, 0, _PAUSE_NS
        try:
            with open(os.path.join(folder, COUNTERS), encoding="utf-8") as file:
                offered = file.read().splitlines()
        except OSError:
            return
        cost_ns = 0
        for path in offered:
            try:
                counter = _open_counter(path)
            except (OSError, ValueError):  # in a container, or another user's
                continue
            one_ns = min(self._cost_ns(counter) for _ in range(5))
            if one_ns > _CHEAP_NS:
                counter.close()
                continue
            self.paths.append(path)
            self._open.append(counter)
            cost_ns += one_ns
        self.pause_ns = max(_PAUSE_NS, _SHARE * cost_ns)

    def __bool__(self) -> bool:
        return bool(self._open)

    def hand_over(self, most: int) -> dict[str, int]:
        """Give the first open files to another reader, by their paths; close all else."""
        given = {path: counter.file for path, counter in zip(self.paths[:most], self._open[:most], strict=True)}
        self._open = self._open[most:]
        self.close()
        return given

    def _cost_ns(self, counter: _OpenCounter) -> int:
        began = self._clock()
        return sys.maxsize if counter.read() is None else self._clock() - began

    def read(self, now_ns: int) -> list[tuple[int, int, int]]:
        """(when, value, number) of each counter; the next reading is due after a pause."""
        self.due_ns = now_ns + self.pause_ns
        rows, before = [], now_ns
        for number, counter in enumerate(self._open):
            value = counter.read()
            if value is None:  # the program closed it
                self._open = []
                self.due_ns = sys.maxsize
                break
            after = self._clock()
            if after - before < _STALE_NS:
                rows.append(((before + after) // 2, value, number))
            before = after
        return rows

    def close(self) -> None:
        counters, self._open = self._open, []
        self.due_ns = sys.maxsize
        for counter in counters:
            counter.close()


class Sink:
    """One process's file of regions. Slots are handed out by a counter, so that threads need no lock."""

    def __init__(self, folder: str) -> None:
        self.folder, self.closed = folder, False
        self._slots, self._lane_numbers = itertools.count(), itertools.count()
        self._pieces: list[mmap.mmap] = []
        self._frames: dict[str, int] = {}
        self._units: dict[str, int] = {}
        self._lanes: dict[int, int] = {}  # thread → lane for good, −id of a task → lane until it is done
        self._free: list[int] = []  # lanes that tasks left
        self._lock = threading.RLock()  # a signal handler may mark a region too
        self._file = self._names = -1
        self._counters: EdgeCounters | None = None
        self.due_ns = sys.maxsize  # from when on an edge reads the counters

    def begin(self, name: str, code: Any, resumed: bool) -> Token | None:
        """Open a region on the lane of this thread or task; None when it cannot be recorded."""
        if self.closed:
            return None
        key = _key()
        slot = next(self._slots)
        piece = slot >> _SHIFT
        try:
            try:
                frame, lane, memory = self._frames[name], self._lanes[key], self._pieces[piece]
            except LookupError:
                frame, lane, memory = self._frame(name, code), self._lane(key), self._piece(piece)
        except OSError:  # a full disk must not stop the program
            self._give_up()
            return None
        if resumed:
            frame |= REGION_RESUMED
        offset = (slot & _MASK) * _BYTES
        now = monotonic_ns()
        if now >= self.due_ns:
            self.read_counters(now)
            now = monotonic_ns()
        REGION.pack_into(memory, offset, now, 0, frame, lane)
        return self, memory, offset + 8, key

    def watch_edges(self) -> Sink:
        """Read the quick counters at edges that are not those of regions: see ``due_ns`` and ``read_counters``."""
        try:
            with self._lock:
                self._start()
        except OSError:  # a full disk: the edges go without
            self.closed = True
        return self

    def read_counters(self, now_ns: int) -> None:
        """Write what the quick counters say at an edge; a thread that comes meanwhile does not read them, too."""
        self.due_ns = sys.maxsize
        counters = self._counters
        if counters is None:
            return
        try:
            for at, value, number in counters.read(now_ns):
                slot = next(self._slots)
                memory = self._piece(slot >> _SHIFT)
                READING.pack_into(memory, (slot & _MASK) * _BYTES, at, value, number | REGION_READING, 0)
        except OSError:  # a full disk must not stop the program
            self._give_up()
        finally:
            self.due_ns = counters.due_ns

    def count(self, unit: str, amount: float) -> None:
        """Write that this thread or task did so much."""
        if self.closed:
            return
        key, slot = _key(), next(self._slots)
        piece = slot >> _SHIFT
        try:
            try:
                number, lane, memory = self._units[unit], self._lanes[key], self._pieces[piece]
            except LookupError:
                number, lane, memory = self._unit(unit), self._lane(key), self._piece(piece)
        except OSError:  # a full disk must not stop the program
            self._give_up()
            return
        COUNT.pack_into(memory, (slot & _MASK) * _BYTES, monotonic_ns(), amount, number, lane)

    def _piece(self, piece: int) -> mmap.mmap:
        with self._lock:
            while len(self._pieces) <= piece:
                length = _PIECE * _BYTES
                start = len(self._pieces) * length
                if hasattr(os, "posix_fallocate"):  # storing into a hole on a full disk would be a SIGBUS
                    os.posix_fallocate(self._file, start, length)
                else:
                    os.ftruncate(self._file, start + length)
                self._pieces.append(mmap.mmap(self._file, length, offset=start))
            return self._pieces[piece]

    def _start(self) -> None:
        stem = os.path.join(self.folder, f"{os.getpid()}-{monotonic_ns()}")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._names = os.open(stem + ".names", flags | os.O_APPEND, 0o644)
        self._file = os.open(stem + ".regions", flags, 0o644)
        environment = {name: os.environ[name] for name in launchers.NAMES if name in os.environ}
        program = sys.argv[0] if sys.argv else ""
        self._say({"pid": os.getpid(), "host": os.uname().nodename, "program": program, "environment": environment})
        self._counters = EdgeCounters(self.folder, monotonic_ns)
        for number, path in enumerate(self._counters.paths):
            self._say({"counter": number, "path": path})
        self.due_ns = 0 if self._counters else sys.maxsize

    def _frame(self, name: str, code: Any) -> int:
        with self._lock:
            if name not in self._frames:
                if self._names < 0 and not self.closed:
                    self._start()
                file, line = _where(code)
                self._say({"frame": len(self._frames), "name": name, "file": file, "line": line})
                self._frames[name] = len(self._frames)
            return self._frames[name]

    def _unit(self, unit: str) -> int:
        with self._lock:
            if unit not in self._units:
                if self._names < 0 and not self.closed:
                    self._start()
                self._say({"unit": len(self._units), "name": unit})
                self._units[unit] = len(self._units) | REGION_COUNT
            return self._units[unit]

    def _lane(self, key: int) -> int:
        with self._lock:
            if key not in self._lanes:
                self._lanes[key] = self._free.pop() if key < 0 and self._free else self._new_lane(key)
                if key < 0:
                    sys.modules["asyncio"].current_task().add_done_callback(functools.partial(self._leave, key))
            return self._lanes[key]

    def _new_lane(self, key: int) -> int:
        lane = next(self._lane_numbers)
        name = "task" if key < 0 else threading.current_thread().name
        self._say({"lane": lane, "name": name, "thread": max(key, 0)})
        return lane

    def _leave(self, key: int, _: Any) -> None:
        """A task is done: another may have its lane."""
        with self._lock:
            self._free.append(self._lanes.pop(key))

    def _say(self, line: dict[str, Any]) -> None:
        """Add a line to the names; the lock is held."""
        os.write(self._names, json.dumps(line).encode() + b"\n")

    def _give_up(self) -> None:
        if self.closed:
            return
        self.closed = True
        try:
            os.close(os.open(os.path.join(self.folder, f"{os.getpid()}.lost"), os.O_CREAT | os.O_WRONLY, 0o644))
        except OSError:
            return

    def close(self) -> None:
        """Stop recording; regions still open stay open in the file."""
        with self._lock:
            self.closed = True
            for descriptor in (self._file, self._names):
                if descriptor >= 0:
                    os.close(descriptor)
            if self._counters is not None:
                self._counters.close()
            self._file = (
                self._names
            ) = -1  # a thread that is late must not write to the file that gets these numbers next


_sink: Sink | None = None
_before: list[tuple[Sink | None, str | None]] = []  # recordings around the present one


def _key() -> int:
    """Return the thread's id, or −id of the running asyncio task."""
    if "asyncio" in sys.modules:
        asyncio = sys.modules["asyncio"]
        try:
            loop = asyncio._get_running_loop()
            task = loop and asyncio.current_task(loop)
        except AttributeError:  # asyncio is being imported just now
            task = None
        if task is not None:
            return -id(task)
    return _thread()


def _where(code: Any) -> tuple[str, int]:
    """The file and line of a decorated function, or of the ``with`` that named a region first."""
    if code is not None:
        return code.co_filename, code.co_firstlineno
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


class Region:
    """A marked piece of code: a context manager and a decorator, usable again and by several threads at once."""

    __slots__ = ("_begun", "_code", "_resumed", "name")

    def __init__(self, name: str, code: Any = None, resumed: bool = False) -> None:
        self.name, self._code, self._resumed = name, code, resumed
        self._begun: dict[int, list[Token]] = {}  # by thread or task: those who share a region do not meet

    def __enter__(self) -> Region:
        if _sink is not None:
            token = _sink.begin(self.name, self._code, self._resumed)
            if token is not None:
                key = token[3]
                if key in self._begun:
                    self._begun[key].append(token)
                else:
                    self._begun[key] = [token]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._begun:
            key = _key()
            if key not in self._begun:  # a generator that moved between threads
                key = next(iter(self._begun))
            tokens = self._begun[key]
            sink, memory, offset, _ = tokens.pop()
            if not tokens:
                del self._begun[key]
            if not sink.closed:
                now = monotonic_ns()
                _END.pack_into(memory, offset, now)
                if now >= sink.due_ns:
                    sink.read_counters(now)

    def __call__(self, function: F) -> F:
        return cast(F, _wrapped(function, self.name))


def _wrapped(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    if isinstance(function, type):
        raise OptionError(f"region marks functions, not classes: put it on the methods of {function.__name__}")
    code = getattr(function, "__code__", None)
    flags = code.co_flags if code else 0

    async def awaits(*args: Any, **kwargs: Any) -> Any:
        with Region(name, code):
            return await function(*args, **kwargs)

    async def yields_and_awaits(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        with Region(name, code):
            async for value in function(*args, **kwargs):
                yield value

    def yields(*args: Any, **kwargs: Any) -> Any:
        return _driven(function(*args, **kwargs), name, code)

    def returns(*args: Any, **kwargs: Any) -> Any:
        with Region(name, code):
            return function(*args, **kwargs)

    for flag, wrapper in ((_COROUTINE, awaits), (_ASYNC_GENERATOR, yields_and_awaits), (_GENERATOR, yields)):
        if flags & flag:
            return functools.wraps(function)(wrapper)
    return functools.wraps(function)(returns)


def _driven(generator: Generator[Any, Any, Any], name: str, code: Any) -> Generator[Any, Any, Any]:
    """A generator whose region lasts while it runs, not while its consumer does; one call however often it yields."""
    step: Callable[[Any], Any] = generator.send
    argument, resumed = None, False
    while True:
        try:
            with Region(name, code, resumed):
                value = step(argument)
        except StopIteration as stop:
            return stop.value
        resumed = True
        try:
            argument, step = (yield value), generator.send
        except GeneratorExit:
            with Region(name, code, resumed):
                generator.close()
            raise
        except BaseException as error:
            argument, step = error, generator.throw


@overload
def region(name: str) -> Region: ...
@overload
def region(name: F) -> F: ...
def region(name: Any) -> Any:
    """Mark a piece of code: ``with region("train"):``, ``@region`` or ``@region("train")``. Costs ~nothing unless
    something records. ``name`` is the name of the frame; a decorated function has its own."""
    if isinstance(name, str):
        return Region(name)
    if not callable(name):
        raise OptionError(f"a region needs a name, not {name!r}")
    return _wrapped(name, getattr(name, "__qualname__", repr(name)))


def count(unit: str, amount: float = 1) -> None:
    """Say that so much was done here: ``count("tokens", n)``; the joules of ``--per tokens`` are divided by it.

    ``amount`` of the ``unit`` belongs to the regions of its thread or task that are open, or to the run alone. Costs
    ~nothing unless something records.
    """
    if not 0 <= amount < _INFINITY:  # also without a recording: measuring changes nothing; NaN is not, either
        raise OptionError(f"{amount} {unit} cannot be counted: give a number that is not negative")
    if _sink is not None:
        _sink.count(unit, amount)


def start(folder: str) -> None:
    """Record the regions of this process, and of those it starts, into a folder, until ``stop``."""
    global _sink
    _before.append((_sink, os.environ.get(FOLDER)))
    _sink = Sink(folder)
    os.environ[FOLDER] = folder


def stop() -> str | None:
    """End what ``start`` began; the folder of whoever recorded before goes on, and is returned."""
    global _sink
    if _sink is not None:
        _sink.close()
    _sink, folder = _before.pop()
    if folder is None:
        os.environ.pop(FOLDER, None)
    else:
        os.environ[FOLDER] = folder
    return folder


def _after_fork() -> None:
    """A child writes its own file; ends of regions its parent began are its parent's to write."""
    global _sink
    if _sink is not None:
        _sink.closed = True
        _sink = Sink(_sink.folder)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
if os.environ.get(FOLDER):
    _sink = Sink(os.environ[FOLDER])
