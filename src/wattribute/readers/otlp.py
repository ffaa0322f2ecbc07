"""OTLP spans (a collector's file exporter, or requests in protobuf) → Recording: services are processes.

Requests of a server overlap and do not nest in threads, so each trace is a location of its own, and a span that
overlaps a sibling, or outlives its parent, gets another. Numbers among the attributes of spans and of their events are
counts (``--per gen_ai.usage.output_tokens``): of a span they were done in its time, of an event since the one before
it. A number that is stated by a span and by spans or events inside it counts once, innermost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FormatError
from ..model import Recording, counts
from ..plugins import Selection
from ..sensors import Declaration
from . import otlp_format as form
from .building import FARTHEST, MOST_LOCATIONS, Builder

CLOCK_ERROR_NS = 1_000_000
_NO_COUNT = re.compile(
    r"^(energy|co2e)\.|(^|[._])(port|id|pid|tid|status_code|lineno|line|column|code|seed|temperature|top_[kp])$"
)


@dataclass
class Span:
    """One span: who ran it, when, what it counted. ``content`` is its JSON form, for those who write it again."""

    process: tuple[str, str, str]  # host, service, instance
    trace: str
    id: str
    parent: str
    name: str
    start: int
    end: int
    counts: dict[str, float]
    events: list[tuple[int, str, float]]  # when, unit, how many
    content: dict[str, Any] = field(repr=False)


@dataclass
class TraceLane:
    """A location: spans of one trace that nest, in the order they began."""

    process: tuple[str, str, str]
    name: str
    spans: list[Span] = field(default_factory=list)


def detects(path: Path) -> bool:
    return form.is_json(path) or form.is_protobuf(path)


def read(path: Path, selection: Selection) -> Recording:
    out = Builder(path, selection, "otlp")
    requests = list(form.requests(path, out.problems))
    trace_lanes = lanes(spans(requests, out.counts))
    if not trace_lanes:
        raise FormatError(path, "holds no spans that can be used")
    if len(trace_lanes) > MOST_LOCATIONS:
        raise FormatError(
            path, f"holds {len(trace_lanes):,} traces, of which {MOST_LOCATIONS:,} can be read; split the file"
        )
    return recording(trace_lanes, out)


def recording(trace_lanes: Sequence[TraceLane], out: Builder) -> Recording:
    """The recording of some lanes."""
    out.host = trace_lanes[0].process[0]
    for lane in trace_lanes:
        host, service, instance = lane.process
        process = out.process(lane.process, f"{service} [{instance[:8]}]" if instance else service, node=out.node(host))
        location = out.thread((lane.name, len(out.locations)), process, lane.name)
        for span in lane.spans:
            out.span(location, span.start, span.end, out.frame(span.name, "opentelemetry"))
        for unit, readings in _readings(lane).items():
            times, values = zip(*sorted(readings), strict=True)
            declared = Declaration("delta", counts.UNIT)
            out.signal(unit, times, np.array(values), declared, sure=True, host=host, location=location)
    return out.recording(0, {"uncertainty_ns": CLOCK_ERROR_NS})


def spans(requests: Sequence[form.Request], left_out: Any = None) -> list[Span]:
    """The spans of some requests; what cannot be used is counted in ``left_out``."""
    usable = []
    for request in requests:
        for resource in _dicts(request, "resourceSpans"):
            about = form.attributes(resource.get("resource"))
            process = _process(about)
            for scope in _dicts(resource, "scopeSpans", "instrumentationLibrarySpans"):
                for content in _dicts(scope, "spans"):
                    span = _span(content, process)
                    if span is not None:
                        usable.append(span)
                    elif left_out is not None:
                        left_out["span without ids or times"] += 1
    return usable


def _dicts(of: Any, *names: str) -> Iterator[dict[str, Any]]:
    for name in names:
        listed = of.get(name) if isinstance(of, dict) else None
        yield from (one for one in listed if isinstance(one, dict)) if isinstance(listed, list) else ()


def _process(about: dict[str, Any]) -> tuple[str, str, str]:
    host = _text(about.get("host.name"))
    service = _text(about.get("service.name")) or _text(about.get("process.executable.name")) or "service"
    return host, service, _text(about.get("process.pid")) or _text(about.get("service.instance.id"))


def _text(value: Any) -> str:
    if not isinstance(value, dict):
        return ""
    return str(value.get("stringValue", value.get("intValue", "")))


def _span(content: dict[str, Any], process: tuple[str, str, str]) -> Span | None:
    start, end = _time(content.get("startTimeUnixNano")), _time(content.get("endTimeUnixNano"))
    trace, own, parent = (_id(content.get(name)) for name in ("traceId", "spanId", "parentSpanId"))
    if start is None or end is None or end < start or not trace or not own:
        return None
    numbers = {key: form.number(value) for key, value in form.attributes(content).items() if not _NO_COUNT.search(key)}
    events = []
    for event in _dicts(content, "events"):
        at = _time(event.get("timeUnixNano"))
        for key, value in form.attributes(event).items():
            amount = form.number(value)
            if (
                at is not None
                and amount is not None
                and amount >= 0
                and start <= at <= end
                and not _NO_COUNT.search(key)
            ):
                events.append((min(at, max(start, end - 1)), key, amount))
    counted = {key: amount for key, amount in numbers.items() if amount is not None and amount >= 0}
    name = content.get("name")
    return Span(process, trace, own, parent, str(name or "span"), start, end, counted, events, content)


def _time(value: Any) -> int | None:
    try:
        at = int(value)
    except (TypeError, ValueError):
        return None
    return at if 0 < at < FARTHEST else None


def _id(value: Any) -> str:
    if not isinstance(value, str):
        return ""
    try:
        raw = form.id_bytes(value)
    except ValueError:
        return ""
    return raw.hex() if any(raw) else ""


# --------------------------------------------------------------------------------------------------------- locations


def lanes(usable: Sequence[Span]) -> list[TraceLane]:
    """The spans by location: traces in the order they begin, in each the lanes that its overlapping spans need."""
    traces: dict[tuple[tuple[str, str, str], str], list[Span]] = {}
    for span in sorted(usable, key=lambda span: (span.start, -span.end)):
        traces.setdefault((span.process, span.trace), []).append(span)
    trace_lanes: list[TraceLane] = []
    for (process, trace), members in traces.items():
        _counted_once(members)
        mine = _nested(members)
        for number, some in enumerate(mine, 1):
            name = f"trace {trace[-16:]}" + (f" #{number}" if number > 1 else "")
            trace_lanes.append(TraceLane(process, name, some))
    return trace_lanes


def packed(trace_lanes: Sequence[TraceLane]) -> list[TraceLane]:
    """The same spans on fewer locations, one trace after another; who shares a device with whom stays the same."""
    lanes: list[TraceLane] = []
    ends: list[tuple[int, int]] = []  # when a lane is free, and its number; a heap
    for lane in sorted(trace_lanes, key=lambda lane: lane.spans[0].start):
        end = max(span.end for span in lane.spans)
        if ends and ends[0][0] < lane.spans[0].start and lanes[ends[0][1]].process == lane.process:
            at = heappop(ends)[1]
            lanes[at].spans.extend(lane.spans)
        else:
            at = len(lanes)
            lanes.append(TraceLane(lane.process, f"lane {at}", list(lane.spans)))
        heappush(ends, (end, at))
    return lanes


def _nested(members: Sequence[Span]) -> list[list[Span]]:
    """Lanes on which spans nest: a child on its parent's lane unless a sibling is open there or it ends later."""
    lanes: list[list[Span]] = []
    stacks: list[list[Span]] = []  # what is open on each lane
    lane_of: dict[str, int] = {}
    ends: list[tuple[int, int]] = []  # of spans that are open, with their lanes; a heap
    free: list[int] = []  # lanes on which nothing is open; a heap
    for span in members:
        while ends and ends[0][0] <= span.start:
            lane = heappop(ends)[1]
            stacks[lane].pop()
            if not stacks[lane]:
                heappush(free, lane)
        at = lane_of.get(span.parent, -1) if span.parent else -1
        if at < 0 or not stacks[at] or stacks[at][-1].id != span.parent or span.end > stacks[at][-1].end:
            at = heappop(free) if free else len(stacks)
        if at == len(stacks):
            stacks.append([])
            lanes.append([])
        lane_of[span.id] = at
        stacks[at].append(span)
        lanes[at].append(span)
        heappush(ends, (span.end, at))
    return lanes


def _counted_once(members: Sequence[Span]) -> None:
    """Take from a span the counts that its own events, or spans inside it, say as well."""
    by_id = {span.id: span for span in members}
    for span in members:
        for _, unit, _ in span.events:
            span.counts.pop(unit, None)
    for span in members:
        units = {*span.counts, *(unit for _, unit, _ in span.events)}
        above, seen = by_id.get(span.parent), {span.id}
        while units and above is not None and above.id not in seen:
            for unit in units:
                above.counts.pop(unit, None)
            seen.add(above.id)
            above = by_id.get(above.parent)


def _readings(lane: TraceLane) -> dict[str, list[tuple[int, float]]]:
    """Unit → (when, how many since the reading before); a span's count begins with 0 where it starts."""
    by_unit: dict[str, list[tuple[int, float]]] = {}
    for span in lane.spans:
        for unit, amount in span.counts.items():
            by_unit.setdefault(unit, []).extend([(span.start, 0.0), (max(span.start, span.end - 1), amount)])
        for unit in dict.fromkeys(unit for _, unit, _ in span.events):
            by_unit.setdefault(unit, []).append((span.start, 0.0))
        for at, unit, amount in span.events:
            by_unit[unit].append((at, amount))
    return by_unit
