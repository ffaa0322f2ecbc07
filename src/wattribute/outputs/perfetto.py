"""A Perfetto trace: spans as slices with their joules as arguments, energy and power as counter tracks.

The messages are those of Perfetto's ``trace_packet.proto`` (field numbers below), made by :mod:`.protobuf`. Processes
and locations become Perfetto's processes and threads under made-up pids and tids, since names and real ids need not be
unique across hosts. A query finds the joules as ``extract_arg(arg_set_id, 'debug.self_j')``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..files import replacing
from ..model import Attribution, Recording, Spans
from . import protobuf as pb
from .timeline import CounterTrack, Timeline

SUFFIXES = (".perfetto-trace", ".pftrace")


# fields of Trace and TracePacket
_PACKET, _TIMESTAMP, _SEQUENCE, _EVENT, _INTERNED, _FLAGS, _TRACK = 1, 8, 10, 11, 12, 13, 60
# fields of TrackDescriptor, ProcessDescriptor, ThreadDescriptor, CounterDescriptor
_UUID, _NAME, _PROCESS, _THREAD, _COUNTER = 1, 2, 3, 4, 8
_PID, _PROCESS_NAME, _TID, _THREAD_NAME, _UNIT_NAME = 1, 6, 2, 5, 6
# fields of TrackEvent, DebugAnnotation and InternedData
_ANNOTATION, _TYPE, _NAME_IID, _TRACK_UUID, _DOUBLE_COUNTER = 4, 9, 10, 11, 44
_ANNOTATION_NAME_IID, _ANNOTATION_DOUBLE = 1, 5
_EVENT_NAMES, _ANNOTATION_NAMES = 2, 3
_BEGIN, _END, _COUNT = 1, 2, 4  # TrackEvent.Type
_CLEARED, _NEEDS = 1, 2  # TracePacket.SequenceFlags
_FIRST_COUNTER = 1 << 32  # uuids of counter tracks, far from those of processes and threads
_ROWS = 200_000  # spans encoded at a time: bounds the memory


def write(attribution: Attribution, target: str, **options: Any) -> None:
    """Write the recording's spans and the attribution's joules as a ``.perfetto-trace`` file."""
    with replacing(target) as file:
        for part in encode(attribution):
            file.write(part)


def encode(attribution: Attribution) -> Iterator[bytes]:
    """The trace, piece by piece."""
    recording = attribution.recording
    yield from _tracks(recording)
    timeline = Timeline(attribution)
    origin = _origin(recording)
    for location in recording.spans.locations():
        spans = recording.spans.spans(location)
        if len(spans):
            yield from _slices(recording, location, spans, timeline.joules(location, spans), origin)
    for at, counter in enumerate(timeline.counters()):
        yield from _counter(at, counter, recording, origin)


def nesting(spans: Spans) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Where each span's begin and end stand among all begins and ends, counted from 0.

    Before span i begin i others; of those all but its ancestors have ended. Ends come after the whole subtree.
    """
    rows = np.arange(len(spans), dtype=np.int64)
    depth, size = np.zeros(len(spans), np.int64), np.ones(len(spans), np.int64)
    levels = [np.flatnonzero(spans.parent < 0)]
    while len(levels[-1]):
        depth[levels[-1]] = len(levels) - 1
        inside = np.zeros(len(spans) + 1, np.bool_)  # one more, so that parent −1 falls beside
        inside[levels[-1]] = True
        levels.append(np.flatnonzero(inside[spans.parent]))
    for level in reversed(levels[1:]):
        np.add.at(size, spans.parent[level], size[level])
    begin = 2 * rows - depth
    return begin, begin + 2 * size - 1


def _origin(recording: Recording) -> int:
    """Ticks of the earliest time there is: Perfetto's clock has no negative times."""
    times = [int(s.times.min()) for s in recording.signals if len(s)]
    for location in recording.spans.locations():
        spans = recording.spans.spans(location)
        times.extend(spans.start[:1].tolist())
    return min([0, *times])


def _packet(body: bytes) -> bytes:
    return pb.message(_PACKET, body)


def _tracks(recording: Recording) -> Iterator[bytes]:
    """Descriptors of the processes and of the locations that may hold spans."""
    hosts = recording.hosts()
    for row, name in enumerate(recording.processes.name):
        label = f"{name} on {recording.host(row)}" if len(hosts) > 1 else name
        process = pb.integer(_PID, row + 1) + pb.text(_PROCESS_NAME, label)
        yield _packet(pb.message(_TRACK, pb.integer(_UUID, row + 1) + pb.message(_PROCESS, process)))
    for location in recording.spans.locations():
        tid = _tid(recording, location)
        pid = int(recording.locations.process[location]) + 1
        thread = pb.integer(_TID, tid) + pb.text(_THREAD_NAME, recording.locations.name[location])
        thread = pb.integer(_PID, pid if pid > 0 else tid) + thread
        yield _packet(pb.message(_TRACK, pb.integer(_UUID, tid) + pb.message(_THREAD, thread)))


def _tid(recording: Recording, location: int) -> int:
    """Made-up ids of threads follow those of processes, so that none is both."""
    return len(recording.processes) + 1 + location


def _slices(
    recording: Recording, location: int, spans: Spans, values: Mapping[str, npt.NDArray[np.float64]], origin: int
) -> Iterator[bytes]:
    """Begin and end events of one location, in the order in which they happened, some at a time."""
    track = _tid(recording, location)
    yield _names(recording, track, list(values))
    begin_at, end_at = nesting(spans)
    row, ends = np.empty(2 * len(spans), np.int64), np.zeros(2 * len(spans), np.bool_)
    row[begin_at] = row[end_at] = np.arange(len(spans))
    ends[end_at] = True
    for first in range(0, len(row), _ROWS):
        ending = ends[first : first + _ROWS]
        begun, ended = row[first : first + _ROWS][~ending], row[first : first + _ROWS][ending]
        event = _event(track, _BEGIN, len(begun))
        event = event.integers(_NAME_IID, spans.frame[begun].astype(np.int64) + 1, pb.WIDTH_28)
        for at, column in enumerate(values.values()):
            annotation = pb.Columns(len(begun)).constant(pb.integer(_ANNOTATION_NAME_IID, at + 1))
            event = event.nested(_ANNOTATION, annotation.doubles(_ANNOTATION_DOUBLE, column[begun]))
        yield _woven(
            _packets(track, recording.clock.ns(spans.start[begun] - origin), event),
            _packets(track, recording.clock.ns(spans.end[ended] - origin), _event(track, _END, len(ended))),
            ending,
        )


def _names(recording: Recording, track: int, arguments: list[str]) -> bytes:
    """The first packet of a sequence: what its numbers mean."""
    frames = b"".join(
        pb.message(_EVENT_NAMES, pb.integer(1, at) + pb.text(2, name))
        for at, name in enumerate(recording.frames.name, start=1)
    )
    names = b"".join(
        pb.message(_ANNOTATION_NAMES, pb.integer(1, at) + pb.text(2, name))
        for at, name in enumerate(arguments, start=1)
    )
    start = pb.integer(_SEQUENCE, track) + pb.integer(_FLAGS, _CLEARED)
    return _packet(start + pb.message(_INTERNED, frames + names))


def _event(track: int, kind: int, rows: int) -> pb.Columns:
    return pb.Columns(rows).constant(pb.integer(_TYPE, kind) + pb.integer(_TRACK_UUID, track))


def _packets(sequence: int, times_ns: npt.NDArray[np.int64], event: pb.Columns) -> pb.Bytes:
    packet = pb.Columns(event.rows).integers(_TIMESTAMP, times_ns)
    packet = packet.constant(pb.integer(_SEQUENCE, sequence) + pb.integer(_FLAGS, _NEEDS))
    return pb.Columns(event.rows).nested(_PACKET, packet.nested(_EVENT, event)).matrix()


def _woven(begins: pb.Bytes, ends: pb.Bytes, ending: npt.NDArray[np.bool_]) -> bytes:
    """Two kinds of packets in one stream: at each place the next of the kind that ``ending`` says."""
    length = np.full(len(ending), begins.shape[1])
    length[ending] = ends.shape[1]
    place = np.cumsum(length) - length
    stream = np.empty(int(length.sum()), np.uint8)
    for packets, places in ((begins, place[~ending]), (ends, place[ending])):
        stream[places[:, None] + np.arange(packets.shape[1])] = packets
    return stream.tobytes()


def _counter(at: int, counter: CounterTrack, recording: Recording, origin: int) -> Iterator[bytes]:
    """One counter track: its descriptor and its values."""
    track = _FIRST_COUNTER + at
    unit = pb.message(_COUNTER, pb.text(_UNIT_NAME, counter.unit))
    yield _packet(pb.message(_TRACK, pb.integer(_UUID, track) + pb.text(_NAME, counter.name) + unit))
    sequence = len(recording.processes) + len(recording.locations) + 1 + at
    yield _packet(pb.integer(_SEQUENCE, sequence) + pb.integer(_FLAGS, _CLEARED))
    for first in range(0, len(counter.times), _ROWS):
        part = slice(first, first + _ROWS)
        event = _event(track, _COUNT, len(counter.times[part]))
        event = event.doubles(_DOUBLE_COUNTER, counter.values[part])
        yield _packets(sequence, recording.clock.ns(counter.times[part] - origin), event).tobytes()
