"""The watch: a thread of C's own that looks at a profiled program without the GIL. Part of :mod:`.stacks`.

A thread that needs the GIL to look gets it where the program gives it up, at calls that block, and so never sees what
computes. This one (``_core/watch.c``) reads the interpreter's frames as they lie in memory, at moments that do not
depend on what the program does. Layouts of CPython 3.10 to 3.14 are known; the first walk is compared with what the
interpreter itself says of its stack, and :func:`watch` gives None where they differ, where the core was not compiled,
or where the system is another: then :class:`.ticker.Ticker` looks.

Rows (``journal.layouts.STACK_SAMPLE``) hold what was seen at a moment, for each thread that has run since the last:

- its CPU time, its stack, and whether it was running (``STACK_RUNS``) rather than blocked;
- how long it has waited for a CPU (lane ``| DELAY_LANE``), where that has changed;
- ``COUNTER_LANE``: what a quick energy counter said (see ``regions.EdgeCounters``), and its number;
- ``NATIVE_LANE``: CPU time of all threads without a Python stack (BLAS, OpenMP), and the lane of the thread that was
  inside the native call then, 0 if that is not known.
"""

from __future__ import annotations

import _thread
import ctypes
import os
import select
import sys
import time
from ctypes import POINTER, c_char, c_char_p, c_int, c_int32, c_int64, c_uint32, c_uint64, c_void_p

from ..journal.layouts import COUNTERS, FIRST_LANE
from .stacks import _json, _thread_name
from .ticker import known_threads, still_ours

TYPE_CHECKING = False  # as in stacks
if TYPE_CHECKING:
    from types import FrameType

    from .stacks import Names

_REQUEST = 16  # bytes: a lane's number and its thread
_DEEPEST = 512  # frames that are compared
MOST_COUNTERS = 16
_REGISTERING_MS, _LOOKS = 5, 200  # a new thread is not known to threading yet: pause, and how often to look again


_FIELDS = """
    state_next state_ident state_frame state_size has_cframe cframe_frame
    frame_code frame_previous frame_instruction frame_owner frame_size object_type
    code_file code_name code_first code_flags code_lines code_bytes code_size
    string_length string_state string_kind string_ascii string_compact bytes_length bytes_data is_pep626
"""


class InterpreterLayout(ctypes.Structure):
    """Offsets of CPython's structures in bytes (``struct wat_layout``)."""

    _fields_ = tuple((name, c_int64) for name in _FIELDS.split())


_COMMON = {
    "state_next": 8, "object_type": 8, "frame_size": 80, "code_flags": 48, "code_lines": 136, "code_size": 144,
    "code_file": 112, "code_name": 128, "code_first": 68, "string_length": 16, "string_state": 32, "string_kind": 2,
    "string_ascii": 40, "string_compact": 56, "bytes_length": 16, "bytes_data": 32, "frame_previous": 8,
    "frame_instruction": 56, "frame_owner": 70,
}  # fmt: skip
_LATE = {"state_ident": 152, "state_frame": 72, "state_size": 160}
LAYOUTS = {
    (3, 10): _COMMON | {
        "state_ident": 176, "state_frame": 24, "state_size": 184, "frame_code": 32, "frame_previous": 24,
        "frame_instruction": 96, "frame_owner": 0, "frame_size": 104, "code_file": 104, "code_name": 112,
        "code_first": 40, "code_flags": 36, "code_lines": 120, "string_ascii": 48, "string_compact": 72, "is_pep626": 1,
    },
    (3, 11): _COMMON | {
        "state_ident": 152, "state_frame": 56, "state_size": 160, "has_cframe": 1, "cframe_frame": 8, "frame_code": 32,
        "frame_previous": 48, "frame_owner": 69, "code_first": 72, "code_bytes": 184, "string_ascii": 48,
        "string_compact": 72,
    },
    (3, 12): _COMMON | {
        "state_ident": 136, "state_frame": 56, "state_size": 144, "has_cframe": 1, "code_bytes": 192,
    },
    (3, 13): _COMMON | _LATE | {"code_bytes": 200},
    (3, 14): _COMMON | _LATE | {"code_bytes": 208, "frame_owner": 74},
}  # fmt: skip


class WatchOrder(ctypes.Structure):
    """Order for the watching thread (``struct wat_watch_order``)."""

    _fields_ = (
        ("layout", InterpreterLayout),
        ("code_type", c_uint64),
        ("hidden", c_uint64),
        ("interpreter", c_void_p),
        ("thread_head", c_void_p),
        *((name, c_int64) for name in ("interval_ns", "task_offset", "page_bytes", "counter_pause_ns")),
        *((name, c_int32) for name in ("names_file", "samples_file", "memory_file", "request_file")),
        *((name, c_int32) for name in ("stacks", "lines")),
        ("first_lane", c_uint32),
        ("counters", c_int32),
        ("counter_files", c_int32 * MOST_COUNTERS),
    )


def _library() -> ctypes.CDLL | None:
    from .._core.shared import opened

    library = opened()
    if library is None or not hasattr(library, "wat_watch_open"):
        return None
    library.wat_watch_task_offset.restype = c_int64
    library.wat_watch_open.argtypes, library.wat_watch_open.restype = (POINTER(WatchOrder),), c_void_p
    library.wat_watch_check.argtypes = (c_void_p, c_void_p, POINTER(c_uint64), c_int64, c_char_p, c_int64)
    library.wat_watch_check.restype = c_int64
    library.wat_watch_begin.argtypes, library.wat_watch_begin.restype = (c_void_p, c_uint64, c_int), c_uint32
    library.wat_watch_start.argtypes = (c_void_p,)
    library.wat_watch_pause.argtypes, library.wat_watch_pause.restype = (c_void_p,), None
    library.wat_watch_close.argtypes, library.wat_watch_close.restype = (c_void_p, c_int), None
    return library


class Watch:
    """The watch over this process; raises OSError where it cannot see what the interpreter says is there."""

    def __init__(self, library: ctypes.CDLL, stem: str, names: Names, outer: FrameType | None) -> None:
        self._library, self._names = library, names
        interface = ctypes.pythonapi
        interface.PyInterpreterState_Main.restype = interface.PyThreadState_Get.restype = c_void_p
        layout = LAYOUTS[sys.version_info[:2]]
        order = WatchOrder(
            layout=InterpreterLayout(**layout),
            code_type=id(type(sys._getframe().f_code)),
            interpreter=interface.PyInterpreterState_Main(),
            thread_head=ctypes.cast(interface.PyInterpreterState_ThreadHead, c_void_p).value,
            interval_ns=int(names.how.interval_s * 1e9),
            task_offset=library.wat_watch_task_offset(),
            page_bytes=os.sysconf("SC_PAGE_SIZE"),
            names_file=names.file,
            memory_file=-1,
            stacks=names.how.mode != "trace",
            lines=names.how.lines,
            first_lane=FIRST_LANE,
            samples_file=-1,
            request_file=-1,
        )
        self._check(order, interface.PyThreadState_Get())
        self._files = [
            os.open(stem + ".samples", os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644),
            *os.pipe(),
        ]
        order.samples_file, self._requests, order.request_file = self._files
        os.set_blocking(order.request_file, False)
        if names.how.memory:
            order.memory_file = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
            self._files.append(order.memory_file)
        if order.stacks:  # calls that are traced read them at their own edges
            self._offer_counters(order, os.path.dirname(stem))
        self._wake, self._are_ours = order.request_file, [(file, still_ours(file)) for file in self._files]
        self._begin_helper()
        order.hidden = self._helper
        self._handle = library.wat_watch_open(order)
        names.say({"sampler": "watch"})
        ident = _thread.get_ident()
        lane = library.wat_watch_begin(self._handle, ident, _depth_below(outer))
        names.say({"lane": lane, "name": _thread_name(ident), "thread": ident})
        library.wat_watch_start(self._handle)

    def _offer_counters(self, order: WatchOrder, folder: str) -> None:
        """Have the quick energy counters read at looks, those that the program can read."""
        if not os.path.exists(os.path.join(folder, COUNTERS)):
            return
        from .regions import EdgeCounters

        counters = EdgeCounters(folder, time.monotonic_ns)
        files = list(counters.hand_over(MOST_COUNTERS).items())
        self._files += [file for _, file in files]
        for number, (path, file) in enumerate(files):
            self._names.say({"counter": number, "path": path})
            order.counter_files[number] = file
        order.counters, order.counter_pause_ns = len(files), counters.pause_ns

    def _check(self, order: WatchOrder, state: int) -> None:
        """Compare a walk of C's with the interpreter's own."""
        handle = self._library.wat_watch_open(order)
        if order.task_offset < 0 or not handle:
            raise OSError("the process cannot read its own memory")
        codes, text = (c_uint64 * _DEEPEST)(), (c_char * 8192)()
        try:
            check = self._library.wat_watch_check
            depth, line = check(handle, state, codes, _DEEPEST, text, 8192), sys._getframe().f_lineno
        finally:
            self._library.wat_watch_close(handle, 0)
        frame: FrameType | None = sys._getframe()
        code = sys._getframe().f_code
        entry = {"name": getattr(code, "co_qualname", code.co_name), "file": code.co_filename, "line": line}
        at = 0
        while frame is not None and at < min(depth, _DEEPEST) and codes[at] == id(frame.f_code):
            frame, at = frame.f_back, at + 1
        if (frame is not None and at < _DEEPEST) or depth != at or text.value.decode() != _json(entry)[1:-1]:
            raise OSError("this Python keeps its frames otherwise")

    def _begin_helper(self) -> None:
        self._ready, self._done = _thread.allocate_lock(), _thread.allocate_lock()
        self._ready.acquire()
        self._done.acquire()
        # not threading.Thread: the program would see it in threading.enumerate()
        _thread.start_new_thread(self._name_threads, ())
        self._ready.acquire()

    def _name_threads(self) -> None:
        """Say what new threads are called, which only Python knows; until an empty request comes."""
        self._helper = _thread.get_ident()
        self._names.hidden.add(self._helper)
        self._ready.release()
        requests = select.poll()
        requests.register(self._requests, select.POLLIN)
        unnamed: dict[int, tuple[int, int]] = {}  # lane → its thread, and how often it may still be looked for
        try:
            while True:
                if requests.poll(_REGISTERING_MS if unnamed else None):
                    request = os.read(self._requests, _REQUEST)
                    lane, ident = (int.from_bytes(request[at : at + 8], sys.byteorder) for at in (0, 8))
                    if not lane:
                        break
                    unnamed[lane] = ident, _LOOKS
                for lane, (ident, looks) in list(unnamed.items()):
                    unnamed[lane] = ident, looks - 1
                    is_known = ident in known_threads()
                    if is_known:
                        self._names.say({"lane": lane, "name": _thread_name(ident), "thread": ident})
                    if is_known or not looks:
                        del unnamed[lane]
        except OSError:
            pass  # the program has closed all files
        finally:
            self._names.hidden.discard(self._helper)
            self._done.release()

    def start(self) -> None:
        """Go on, from what was last seen."""
        self._library.wat_watch_start(self._handle)

    def pause(self) -> None:
        """End the thread, and wait until it has ended."""
        self._library.wat_watch_pause(self._handle)

    def close(self) -> None:
        self.pause()
        self._library.wat_watch_close(self._handle, 1)
        ours = [file for file, is_ours in self._are_ours if is_ours()]
        if self._wake in ours:
            os.set_blocking(self._wake, True)
            os.write(self._wake, bytes(_REQUEST))
            self._done.acquire()
        for file in ours:
            os.close(file)


def _depth_below(outer: FrameType | None) -> int:
    """How many frames of this thread lie further in than ``outer``, from our caller on; −1 without it."""
    if outer is None:
        return -1
    depth, frame = 0, sys._getframe(1)
    while frame is not None and frame is not outer:
        depth, frame = depth + 1, frame.f_back  # type: ignore[assignment]
    return depth


def watch(stem: str, names: Names, outer: FrameType | None) -> Watch | None:
    """A watch over this process, None where there can be none."""
    is_known = sys.version_info[:2] in LAYOUTS and sys.implementation.name == "cpython" and sys.maxsize > 1 << 32
    if sys.platform != "linux" or not is_known or sys.abiflags:
        return None
    library = _library()
    if library is None:
        return None
    try:
        return Watch(library, stem, names, outer)
    except OSError:
        return None
