"""Recordings built by hand: a builder, spans in a compact notation, counters and gauges, and a text form to compare.

::

    RecordingBuilder().thread("main 0..10, solve 3..7").counter("package 0", [0, 100], every=10).recording()

is a thread in ``main`` from tick 0 to tick 10 and in ``solve`` inside it, and a counter that rose by 100 J.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..meters.replay import device_kind
from ..model import (
    Clock,
    Device,
    Frames,
    Link,
    Locations,
    Missing,
    Nodes,
    Problem,
    Processes,
    Recording,
    Signal,
    Spans,
    SpanTable,
)

HOST = "n01"  # of what no host is named for
Row: TypeAlias = Sequence[Any]  # start, end, frame (its name or row), then perhaps parent (a row or −1) and resumed
Notation: TypeAlias = str | Iterable[Row] | Spans

_TIME = r"-?\d[\d_]*(?:\.\d+)?(?:ns|us|ms|s)?"
_SPAN = re.compile(rf"\s*(.+?)\s+({_TIME})\.\.({_TIME})\s*(?:,|\n|$)", re.DOTALL)
_UNITS_S = {"ns": Fraction(1, 10**9), "us": Fraction(1, 10**6), "ms": Fraction(1, 1000), "s": Fraction(1)}


def spans(rows: Iterable[Row]) -> Spans:
    """Spans from (start, end, frame[, parent[, resumed]]) rows in the order they began.

    Without ``parent`` a span belongs to the innermost one before it that has not ended when it starts.
    """
    rows = list(rows)
    parents = [row[3] for row in rows] if rows and len(rows[0]) > 3 else list(_parents(rows))
    depth: list[int] = []
    for parent in parents:
        depth.append(0 if parent < 0 else depth[parent] + 1)
    return Spans(
        np.array([row[0] for row in rows], np.int64),
        np.array([row[1] for row in rows], np.int64),
        np.array([row[2] for row in rows], np.int32),
        np.array(parents, np.int64),
        np.array(depth, np.int32),
        np.array([len(row) > 4 and row[4] for row in rows], np.bool_),
    )


def _parents(rows: Sequence[Row]) -> Iterator[int]:
    stack: list[int] = []
    for at, (start, end, *_) in enumerate(rows):
        while stack and rows[stack[-1]][1] <= start:
            stack.pop()
        if stack and end > rows[stack[-1]][1]:
            raise ValueError(f"span {at} ({start}..{end}) ends after span {stack[-1]}, in which it began")
        yield stack[-1] if stack else -1
        stack.append(at)


def span_rows(text: str, ticks_per_s: int = 1) -> list[tuple[int, int, str]]:
    """(start, end, name) of ``"NAME START..END, NAME START..END"``; times are ticks, or end in ns, us, ms or s."""
    rows, at = [], 0
    while text[at:].strip():
        match = _SPAN.match(text, at)
        if match is None:
            raise ValueError(f"{text[at:]!r} is not of the form 'NAME START..END, NAME START..END'")
        rows.append((_ticks(match[2], ticks_per_s), _ticks(match[3], ticks_per_s), match[1]))
        at = match.end()
    return rows


def _ticks(text: str, ticks_per_s: int) -> int:
    number = text.rstrip("nums")
    ticks = Fraction(number) * (_UNITS_S[text[len(number) :]] * ticks_per_s if number != text else 1)
    if ticks.denominator != 1:
        raise ValueError(f"{text} is not a whole number of ticks at {ticks_per_s} per second")
    return int(ticks)


def counter(
    values: npt.ArrayLike, times: npt.ArrayLike | None = None, name: str = "energy", unit: str = "J", **more: Any
) -> Signal:
    """A counter; see :func:`signal`."""
    return signal("counter", values, times, name, unit, **more)


def gauge(
    values: npt.ArrayLike, times: npt.ArrayLike | None = None, name: str = "power", unit: str = "W", **more: Any
) -> Signal:
    """A gauge; see :func:`signal`."""
    return signal("gauge", values, times, name, unit, **more)


def signal(
    kind: str,
    values: npt.ArrayLike,
    times: npt.ArrayLike | None = None,
    name: str = "energy",
    unit: str = "J",
    *,
    every: int = 1,
    device: str = "GPU 0",
    host: str = HOST,
    **more: Any,
) -> Signal:
    """Readings at ``times`` (ticks), or ``every`` so many ticks from 0 on; ``more`` are other fields of a Signal."""
    values = np.asarray(values)
    at = np.arange(len(values), dtype=np.int64) * every if times is None else np.asarray(times, np.int64)
    return Signal(name, kind, unit, at, values, host=host, device=device, **more)


class RecordingBuilder:
    """Builds a Recording step by step; every step returns the builder.

    ``host`` and ``process`` choose where the steps after them add; without them there is one host and one process.
    Locations, processes, devices and frames are numbered in the order in which they are added. ``length_ticks``
    defaults to the end of the last span or the last reading.
    """

    def __init__(
        self,
        ticks_per_s: int = 1,
        *,
        length_ticks: int | None = None,
        offset_ticks: int = 0,
        epoch_ns: int | None = None,
        **metadata: Any,
    ) -> None:
        self._clock = Clock(ticks_per_s, offset_ticks, 0, epoch_ns)
        self._length_ticks = length_ticks
        self._metadata = metadata
        self._frames: dict[str, Row] = {}
        self._numbers: dict[str, int] = {}
        self._nodes: list[Row] = []
        self._processes: list[Row] = []
        self._locations: list[Row] = []
        self._spans: dict[int, Spans] = {}
        self._signals: list[Signal] = []
        self._devices: dict[tuple[str, str], Device] = {}
        self._links: list[Link] = []
        self._parent = self._host = self._process = -1

    # ------------------------------------------------------------------------------------------------ where and what

    def frames(self, *rows: str | Row) -> RecordingBuilder:
        """Declare frames, each a name or (name, paradigm, role, file, line): their order, and what they are."""
        for row in rows:
            row = (row,) if isinstance(row, str) else row
            self._frames[row[0]] = row
            self._numbers.setdefault(row[0], len(self._numbers))
        return self

    def node(self, name: str, kind: str = "machine", **properties: str) -> RecordingBuilder:
        """A node of the system tree above the hosts that follow: a machine, a cabinet."""
        self._parent = self._add_node(name, kind, self._parent, properties)
        return self

    def host(self, name: str = HOST, **properties: str) -> RecordingBuilder:
        """The host that the steps below add to; a new one if no host has this name."""
        at = self._find(self._nodes, name, "node")
        self._host = self._add_node(name, "node", self._parent, properties) if at < 0 else at
        self._process = -1
        return self

    def process(self, name: str = "process", id: int | None = None) -> RecordingBuilder:
        """The process that threads and streams are added to; a new one if this host has none of this name."""
        host = self._at_host()
        self._process = self._find(self._processes, name, "process", host)
        if self._process < 0:
            self._process = self._add_process(name, "process", host, -1, id)
        return self

    def _find(self, rows: Sequence[Row], name: str, kind: str, node: int | None = None) -> int:
        same = (i for i, row in enumerate(rows) if row[1:3] == (name, kind) and (node is None or row[3] == node))
        return next(same, -1)

    def _add_node(self, name: str, kind: str, parent: int, properties: dict[str, str]) -> int:
        self._nodes.append((len(self._nodes), name, kind, parent, properties))
        return len(self._nodes) - 1

    def _add_process(self, name: str, kind: str, node: int, creator: int, id: int | None) -> int:
        self._processes.append((len(self._processes) if id is None else id, name, kind, node, creator))
        return len(self._processes) - 1

    def _at_host(self) -> int:
        if self._host < 0:
            self.host()
        return self._host

    def _at_process(self) -> int:
        if self._process < 0:
            self.process()
        return self._process

    # ------------------------------------------------------------------------------------------------------ locations

    def thread(
        self, rows: Notation | None = None, name: str = "main thread", id: int | None = None
    ) -> RecordingBuilder:
        """A thread of the process with these spans; frames not declared before are functions."""
        return self.location("cpu", rows, name, self._at_process(), id)

    def stream(
        self,
        rows: Notation | None = None,
        name: str | None = None,
        id: int | None = None,
        *,
        gpu: str | None = None,
        context: str | None = None,
        **properties: str,
    ) -> RecordingBuilder:
        """A GPU stream of the process, in the context it has on the host or, if named, on the node of a GPU.

        Frames not declared before are kernels; ``properties`` are those of the GPU's node ("PCI Bus ID", "UUID").
        """
        at = self._context(gpu, context, properties)
        title = name or f"stream {sum(row[2] == 'gpu' for row in self._locations)}"
        return self.location("gpu", rows, title, at, id)

    def context(self, gpu: str | None = None, name: str | None = None, **properties: str) -> RecordingBuilder:
        """The context of the process on a GPU, where it needs no stream: the process owns a part of that GPU."""
        self._context(gpu, name, properties)
        return self

    def _context(self, gpu: str | None, name: str | None, properties: dict[str, str]) -> int:
        process, node = self._at_process(), self._at_host()
        if gpu is not None:
            below = [i for i, row in enumerate(self._nodes) if row[1:4] == (gpu, "GPU", node)]
            if properties:
                below = [i for i in below if self._nodes[i][4] == properties]
            node = below[0] if below else self._add_node(gpu, "GPU", node, properties)
        existing = [i for i, row in enumerate(self._processes) if row[2:] == ("accelerator", node, process)]
        title = name or f"context {sum(row[2] == 'accelerator' for row in self._processes)}"
        return existing[0] if existing else self._add_process(title, "accelerator", node, process, None)

    def location(
        self, kind: str, rows: Notation | None, name: str, process: int = -1, id: int | None = None
    ) -> RecordingBuilder:
        """A location of any kind ("metric") and process (a row); without ``rows`` it holds no spans."""
        at = len(self._locations)
        events = 0
        if rows is not None:
            self._spans[at] = self._columns(rows, ("hip", "kernel") if kind == "gpu" else ("user", "function"))
            events = 2 * len(self._spans[at])
        self._locations.append((at if id is None else id, name, kind, process, events))
        return self

    def _columns(self, rows: Notation, what: tuple[str, str]) -> Spans:
        if isinstance(rows, Spans):
            return rows
        listed: Iterable[Row] = span_rows(rows, self._clock.ticks_per_s) if isinstance(rows, str) else rows
        return spans((start, end, self._frame(frame, what), *more) for start, end, frame, *more in listed)

    def _frame(self, frame: str | int, what: tuple[str, str]) -> int:
        if not isinstance(frame, str):
            return int(frame)
        if frame not in self._frames:
            self.frames((frame, *what))
        return self._numbers[frame]

    # ------------------------------------------------------------------------------------------------- what is metered

    def device(self, name: str, kind: str = "", **properties: str) -> RecordingBuilder:
        """A device of the host; its kind follows from a usual name ("GPU 0", "package 0", "dram 0", "node")."""
        host = self._nodes[self._at_host()][1]
        self._devices[host, name] = Device(name, kind or device_kind(name), host, properties)
        return self

    def counter(self, device: str, values: npt.ArrayLike, times: Any = None, **more: Any) -> RecordingBuilder:
        """A counter of a device of this host, which is declared if it was not; see :func:`signal`."""
        return self._metered(counter, device, values, times, more)

    def gauge(self, device: str, values: npt.ArrayLike, times: Any = None, **more: Any) -> RecordingBuilder:
        """A gauge of a device of this host, which is declared if it was not; see :func:`signal`."""
        return self._metered(gauge, device, values, times, more)

    def _metered(self, kind: Any, device: str, values: Any, times: Any, more: dict[str, Any]) -> RecordingBuilder:
        host = self._nodes[self._at_host()][1]
        if device and (host, device) not in self._devices:
            self.device(device)
        return self.signals(kind(values, times, device=device, host=host, **more))

    def signals(self, *signals: Signal) -> RecordingBuilder:
        """Signals as they are; no device is declared for them."""
        self._signals += signals
        return self

    def link(self, device: str, *locations: int, reason: str = "given") -> RecordingBuilder:
        """These locations use this device of the host."""
        self._links.append(Link(self._nodes[self._at_host()][1], device, locations, reason))
        return self

    def recording(self, **fields: Any) -> Recording:
        """The Recording; ``fields`` take the place of its own ("noticed", "missing")."""
        parts: dict[str, Any] = {
            "frames": Frames.of(self._frames.values()),
            "nodes": Nodes.of(self._nodes),
            "processes": Processes.of(self._processes),
            "locations": Locations.of(self._locations),
            "spans": SpanTable(self._spans),
            "signals": tuple(self._signals),
            "devices": tuple(self._devices.values()),
            "topology": tuple(self._links),
            "metadata": self._metadata,
        }
        clock = self._clock
        length = self._last() if self._length_ticks is None else self._length_ticks
        parts["clock"] = Clock(clock.ticks_per_s, clock.offset_ticks, length, clock.epoch_ns)
        return Recording(**parts | fields)

    def _last(self) -> int:
        ends = [int(columns.end.max()) for columns in self._spans.values() if len(columns)]
        return max([0, *ends, *(int(one.times.max()) for one in self._signals if len(one))])


def small() -> Recording:
    """Two ranks on one host sharing a GPU with one stream each, a counter, a gauge, and something missing.

    Every table has a row and nearly every field a value of its own, so that a copy that loses one differs.
    """
    return Recording(
        clock=Clock(ticks_per_s=1_000, offset_ticks=5, length_ticks=100, epoch_ns=1_700_000_000_000_000_000),
        frames=Frames.of(
            [("main", "user", "function", "a.c", 3), ("MPI_Wait", "mpi", "wait"), ("kernel", "hip", "kernel")]
        ),
        nodes=Nodes.of([(0, "cluster", "machine"), (1, "n01", "node", 0, {"os": "Linux"})]),
        processes=Processes.of([(7, "MPI Rank 0", "process", 1), (9, "HIP Context 0", "accelerator", 1, 0)]),
        locations=Locations.of(
            [(70, "Master thread", "cpu", 0, 6), (90, "HIP[0:0]", "gpu", 1, 4), (91, "", "metric", 0, 5)]
        ),
        spans=SpanTable(
            {
                0: spans([(0, 100, 0, -1), (10, 30, 1, 0), (40, 60, 0, 0), (45, 50, 1, 2)]),
                1: spans([(12, 20, 2, -1), (20, 20, 2, -1), (20, 35, 2, -1)]),
            }
        ),
        signals=(
            counter(
                [2**53 + 1, 2**53 + 5, 2**53 + 9],
                every=50,
                scale=Fraction(1, 3),
                location=2,
                latency_s=0.1,
                wraps_at=2**63,
                stale=True,
                gain_error=0.05,
                declared={"mode": "ABSOLUTE"},
            ),
            gauge([1.5, float("nan")], every=50),
            Signal("huge", "counter", "#", np.array([3]), np.array([2**64 - 1], np.uint64)),
            Signal("nothing", "delta", "J", np.empty(0, np.int64), np.empty(0, np.float64)),
        ),
        devices=(Device("GPU 0", "gpu", "n01", {"uuid": "x"}),),
        topology=(Link("n01", "GPU 0", (1,), "said so"),),
        missing=(Missing(2, 5, "no file"),),
        noticed=(Problem("missing", "location 2", 2),),
        metadata={"name": "名前 <b>", "nested": {"a": [1, 2.5, None]}},
    )


def as_text(recording: Recording) -> str:
    """A recording as text, every span and reading a line or a word: what golden files hold."""
    lines = [f"epoch_ns {recording.clock.epoch_ns}  length_ns {recording.clock.length_ticks}"]
    for location in range(len(recording.locations)):
        at = recording.locations
        process = int(at.process[location])
        owner = recording.owner(location)
        names = [recording.processes.name[row] for row in dict.fromkeys((owner, process)) if row >= 0]
        lines.append(
            f"{at.kind[location]} {' / '.join(names)} / {at.name[location]} on {recording.location_host(location)!r}"
        )
        columns = recording.spans.spans(location)
        for row in range(len(columns)):
            frame = recording.frames.row(int(columns.frame[row]))
            where = f" ({frame['file']}:{frame['line']})" if frame["file"] else ""
            again = " resumed" if columns.resumed[row] else ""
            lines.append(
                f"  {'  ' * int(columns.depth[row])}{columns.start[row]}..{columns.end[row]} {frame['name']}{where}"
                f" [{frame['paradigm']} {frame['role']}]{again}"
            )
    for one in recording.signals:
        readings = " ".join(f"{t}:{v}" for t, v in zip(one.times.tolist(), one.values.tolist(), strict=True))
        device = f" of {one.device} on {one.host!r}" if one.device else ""
        lines.append(f"{one.kind} {one.name}{device}, {one.scale} {one.unit}: {readings}")
    lines += [f"device {d.name} ({d.kind}) {dict(d.properties)}" for d in recording.devices]
    lines += [f"{key} {recording.metadata[key]}" for key in ("timeline", "calls") if key in recording.metadata]
    lines += [f"! {p.kind}: {p.message.partition(': ')[2]}" for p in recording.problems]
    return "\n".join(lines) + "\n"
