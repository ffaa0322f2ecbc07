"""Chrome's trace JSON → Recording: PyTorch's profiler (CPU operators, CUDA kernels, streams), Perfetto, VizTracer, …

``X``, ``B`` and ``E`` events are spans of the thread (pid, tid); ``M`` events name processes and threads; ``C`` events
are readings. Events of the categories of GPU work belong to the stream (device, stream) of a GPU instead, below a
device node of its number, so that a power log's "GPU 0" meets them. The file is streamed (:mod:`.json_stream`).
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FormatError
from ..model import Recording
from ..plugins import Selection
from . import naming
from .building import FARTHEST, Builder
from .files import Text, start
from .json_stream import JsonStream

_OBJECT = re.compile(r'"traceEvents"\s*:\s*\[')
_ARRAY = re.compile(r'\[\s*\{[^{}]*"ph"\s*:\s*"[A-Za-z]"')
_GPU = {"kernel": "kernel", "gpu_memcpy": "copy", "gpu_memset": "copy", "memcpy": "copy", "memset": "copy"}
_SHADOWS = frozenset({"gpu_user_annotation", "Trace"})  # repeat what the spans below or beside them say
_PARADIGMS = {
    "fee": ("python", "function"),
    "python_function": ("python", "function"),
    "cpu_op": ("pytorch", "function"),
    "user_annotation": ("user", "region"),
    "cuda_runtime": ("cuda", "function"),
    "cuda_driver": ("cuda", "function"),
    "hip_runtime": ("hip", "function"),
}
_LAUNCHING = ("cuda_runtime", "cuda_driver", "hip_runtime")
_VIZTRACER = re.compile(r"^(.+) \((.+):(\d+)\)$", re.DOTALL)
_PYTORCH = re.compile(r"^(.+)\((\d+)\): (.+)$", re.DOTALL)
_AMD = re.compile(r"AMD|Instinct|Radeon|gfx", re.IGNORECASE)
_EPOCH_US = (10**15, 5 * 10**15)  # 2001 … 2128: times in this range are wall-clock times
_IGNORED = frozenset("siftPRNDOcv")  # arrows, instants, samples, objects, marks: none of them is time spent
_ASYNC = frozenset("bneSTpF")


def detects(path: Path) -> bool:
    """An object with ``traceEvents``, or an array of events."""
    text = start(path, 1 << 20)
    return bool(text[:1] == "{" and _OBJECT.search(text)) or bool(_ARRAY.match(text))


def read(path: Path, selection: Selection) -> Recording:
    """Stream the events into columns."""
    text = Text(path)
    stream = JsonStream(text, "traceEvents")
    trace = _Trace(Builder(path, selection, "chrome"), stream.others)
    whole = path.stat().st_size
    for count, event in enumerate(stream.elements()):
        trace.add(event)
        if selection.progress is not None and count % 100_000 == 0:
            selection.progress(min(text.done, whole), whole)
    trace.out.problems += text.problems
    if stream.damage:
        trace.out.problem("truncated", stream.damage)
    return trace.recording()


def ns(microseconds: Any) -> int:
    """Nanoseconds of a time in µs: an integer, or decimal digits as they stand in the file."""
    if type(microseconds) is int:
        time = microseconds * 1000
    else:
        if type(microseconds) is not str:
            raise ValueError
        try:
            time = int(microseconds[:-4] + microseconds[-3:]) if microseconds[-4] == "." else _exact_ns(microseconds)
        except (ValueError, IndexError):  # "1.5e3", "0.5"
            time = _exact_ns(microseconds)
    if not -FARTHEST < time < FARTHEST:
        raise ValueError
    return time


def _exact_ns(microseconds: str) -> int:
    exact = Decimal(microseconds)
    if not abs(exact) < FARTHEST:  # before it becomes an integer of a billion digits
        raise ValueError
    return round(exact * 1000)


class _Trace:
    """State gathered from the events read so far."""

    def __init__(self, out: Builder, others: dict[str, Any]) -> None:
        self.out, self.others = out, others
        self.counts: Counter[str] = out.counts
        self.threads: dict[Any, int] = {}
        self.frames: dict[Any, int] = {}
        self.open: dict[int, list[int]] = {}
        self.pids: dict[int, str] = {}  # of rows of processes
        self.tids: dict[int, tuple[str, str]] = {}  # (pid, tid) of rows of locations
        self.names: dict[tuple[str, str | None], str] = {}
        self.counters: dict[tuple[Any, str], tuple[array[int], array[float]]] = {}

    def add(self, event: Any) -> None:
        try:
            phase = event["ph"]
            if phase == "X":
                begins = ns(event["ts"])
                lasts = ns(event.get("dur", 0))
                if lasts < 0:
                    self.counts["spans of negative duration"] += 1
                elif (at := self._location(event)) >= 0:
                    self.out.span(at, begins, begins + lasts, self._frame(event))
                    self._correlate(event, at, begins)
            elif phase == "B":
                at = self._location(event)
                self.open.setdefault(at, []).append(self.out.begin(at, ns(event["ts"]), self._frame(event)))
            elif phase == "E":
                if spans := self.open.get(self._location(event)):
                    self.out.finish(spans.pop(), ns(event["ts"]))
                else:
                    self.counts["ends of spans that never began"] += 1
            elif phase == "M":
                self._name(event)
            elif phase == "C":
                self._count(event)
            elif phase in _ASYNC:
                self.counts["asynchronous events, which belong to no thread"] += 1
            elif phase not in _IGNORED:
                self.counts[f"events of the unknown kind {str(phase)[:20]!r}"] += 1
        except FormatError:
            raise
        except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError):
            if event != {}:
                self.counts["events without a valid time, kind or name"] += 1

    def _correlate(self, event: dict[str, Any], location: int, begins: int) -> None:
        """Note which call launched which work, as PyTorch's profiler numbers them."""
        category = event.get("cat")
        if category in _GPU:
            self.out.launched((event.get("args") or {}).get("correlation"), location, begins)
        elif category in _LAUNCHING:
            self.out.launch((event.get("args") or {}).get("correlation"), location, begins)

    def _location(self, event: dict[str, Any]) -> int:
        """The row of the event's thread or stream; −1 for what only repeats other events."""
        category = event.get("cat")
        key = (event.get("pid", 0), event.get("tid", 0), category if category in _GPU or category in _SHADOWS else "")
        location = self.threads.get(key)
        if location is None:
            location = self.threads[key] = self._new_location(event, *key)
        if location < 0 and category != "Trace":  # which is the profiler's own window
            self.counts[f"{category} events, which repeat the kernels below them"] += 1
        return location

    def _new_location(self, event: dict[str, Any], pid: Any, tid: Any, category: str) -> int:
        if category in _SHADOWS:
            return -1
        if category in _GPU:
            about = event.get("args") or {}
            number, stream = about.get("device", pid), about.get("stream", tid)
            number = number if isinstance(number, int) and not isinstance(number, bool) else _number(str(number))
            gpu = self.out.gpu(number, -1, *self._device(number))
            return self.out.thread(str(stream), gpu, f"stream {stream}", stream, "gpu")
        process = self.out.process(str(pid), str(pid), pid)
        thread = self.out.thread(str(tid), process, str(tid), tid)
        self.pids[process], self.tids[thread] = str(pid), (str(pid), str(tid))
        return thread

    def _device(self, number: int) -> tuple[str, dict[str, str]]:
        """The kind of a GPU and what the trace says of it."""
        listed = self.others.get("deviceProperties")
        for one in listed if isinstance(listed, list) else ():
            if isinstance(one, dict) and one.get("id") == number:
                name = str(one.get("name", ""))
                return ("HIP device" if _AMD.search(name) else "CUDA device"), {"Device name": name}
        return "CUDA device", {}

    def _frame(self, event: dict[str, Any]) -> int:
        name, category = event["name"], event.get("cat", "")
        frame = self.frames.get((name, category))
        if frame is None:
            frame = self.frames[name, category] = self._new_frame(str(name), str(category))
        return frame

    def _new_frame(self, name: str, category: str) -> int:
        if category in _GPU:
            return self.out.frame(name, "cuda", _GPU[category])
        paradigm, role = _PARADIGMS.get(category, ("unknown", "function"))
        if category == "fee" and (match := _VIZTRACER.match(name)):
            return self.out.frame(match[1], paradigm, role, match[2], int(match[3][:9]))
        if category == "python_function" and (match := _PYTORCH.match(name)):
            return self.out.frame(match[3], paradigm, role, match[1], int(match[2][:9]))
        return self.out.frame(name, paradigm, role)

    def _name(self, event: dict[str, Any]) -> None:
        what, about = event["name"], event.get("args") or {}
        if what in ("process_name", "thread_name") and isinstance(about["name"], str):
            tid = str(event.get("tid", 0)) if what == "thread_name" else None
            self.names[str(event.get("pid", 0)), tid] = about["name"]

    def _count(self, event: dict[str, Any]) -> None:
        time = ns(event["ts"])
        for series, value in event["args"].items():
            if isinstance(value, int | str) and not isinstance(value, bool):
                times, values = self.counters.setdefault(
                    (event.get("pid", 0), f"{event['name']} {series}".strip()), (array("q"), array("d"))
                )
                values.append(float(value))
                times.append(time)

    def recording(self) -> Recording:
        out, others = self.out, self.others
        host = others.get("host_name") or others.get("hostname") or ""
        out.host = host if isinstance(host, str) else ""
        self._named()
        for (_, name), (times, values) in self.counters.items():
            text, unit = naming.unit_of(name)
            device = naming.device_of(name, out.host) if unit else None
            out.signal(text, np.frombuffer(times, np.int64), np.array(values), naming.declared(unit), device)
        out.metadata |= {key: others[key] for key in ("distributedInfo", "schemaVersion", "trace_id") if key in others}
        if isinstance(others.get("baseTimeNanoseconds"), int):
            return out.recording(others["baseTimeNanoseconds"], {"uncertainty_ns": 1_000_000})
        if "viztracer_metadata" in others:
            return out.recording(None, {"monotonic": True})
        wall = _EPOCH_US[0] <= out.first_ns() // 1000 < _EPOCH_US[1]
        return out.recording(0 if wall else None, {"uncertainty_ns": 1_000_000} if wall else {})

    def _named(self) -> None:
        """Names of processes and threads, which may stand anywhere in the file; and who owns the GPUs."""
        out, about = self.out, self.others.get("distributedInfo")
        for row, pid in self.pids.items():
            name = self.names.get((pid, None))
            out.processes[row][1] = f"{name} [{pid}]" if name else pid
        for row, (pid, tid) in self.tids.items():
            out.locations[row][1] = self.names.get((pid, tid)) or tid
        if len(self.pids) != 1:
            return
        (owner,) = self.pids
        if isinstance(about, dict) and isinstance(about.get("rank"), int):
            out.processes[owner][1] = f"rank {about['rank']}"
        for process in out.processes:
            if process[2] == "accelerator":
                process[4] = owner


def _number(text: str) -> int:
    """The number of a device in a text such as "GPU 1"; 0 if it has none."""
    numbers = re.findall(r"\d{1,6}", text)
    return int(numbers[-1]) if numbers else 0
