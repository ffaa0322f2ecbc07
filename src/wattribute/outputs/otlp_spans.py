"""OTLP traces whose spans carry their joules: ``energy.j`` and its range, ``energy.self_j``, ``co2e.g``.

A recording that was read from OTLP is written as it was, with these attributes added to its spans; any other gets ids
of its own, a trace per location. The target's ending says the form: ``.otlp.jsonl`` (a line per request, as a
collector's file exporter writes it) or ``.otlp.pb`` (protobuf, behind its length).
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..carbon import emissions
from ..engines import attribute
from ..engines.middle import location_masks
from ..errors import OptionError
from ..files import replacing
from ..model import Attribution, Recording
from ..readers import otlp, otlp_format
from ..units import J_PER_KWH
from .tables import emit

SUFFIXES = (".otlp.jsonl", ".otlp.pb")
ATTRIBUTES = ("energy.j", "energy.low_j", "energy.high_j", "energy.self_j", "co2e.g")
Floats = npt.NDArray[np.float64]
_COLUMNS = ("self_j", "total_j", "total_low_j", "total_high_j")
_MOST_SPANS = 10_000  # in one request
_WITHOUT_CLOCK_NS = 1_000_000_000  # where a recording begins that has no wall clock: OTLP has no time 0


class SpanEnergy(NamedTuple):
    """Joules of the spans of one location, over the devices that count; NaN where there are none."""

    self_j: Floats
    total_j: Floats
    low_j: Floats
    high_j: Floats

    def attributes(self, row: int, grams_per_j: float) -> dict[str, float]:
        """The attributes of one span; what is not known is left out."""
        values = {
            "energy.j": self.total_j[row],
            "energy.low_j": self.low_j[row],
            "energy.high_j": self.high_j[row],
            "energy.self_j": self.self_j[row],
            "co2e.g": self.total_j[row] * grams_per_j,
        }
        return {name: float(value) for name, value in values.items() if np.isfinite(value)}


def write(attribution: Attribution, target: str, **options: Any) -> None:
    """Write the spans; ``zone`` or ``intensity`` add grams."""
    requests = _requests(attribution, **{k: v for k, v in options.items() if k in ("zone", "intensity")})
    if target.endswith(".pb"):
        with replacing(target) as file:
            for request in requests:
                body = otlp_format.encode(request)
                file.write(struct.pack(">I", len(body)) + body)
        return
    emit("".join(json.dumps(request, separators=(",", ":")) + "\n" for request in requests), target)


def _requests(attribution: Attribution, **place: Any) -> list[otlp_format.Request]:
    if attribution.unit != "J":
        raise OptionError("spans carry joules: attribute an energy metric, not another one")
    recording = attribution.recording
    energies = span_energies(attribution)
    grams = grams_per_joule(attribution, **place)
    read_again = _as_read(recording)
    requests, members = _made(recording) if read_again is None else read_again
    for location, contents in members.items():
        energy = energies.get(location)
        if energy is None:
            continue
        starts = recording.spans.spans(location)
        factor = grams(recording, starts.start, starts.end)
        for row, content in enumerate(contents):
            _add_attributes(content, energy.attributes(row, float(factor[row])))
    return requests


def _add_attributes(content: dict[str, Any], values: Mapping[str, float]) -> None:
    """Add numbers to a span in its JSON form, in the place of older ones."""
    old = content.get("attributes")
    kept = [one for one in old if not (isinstance(one, dict) and one.get("key") in ATTRIBUTES)] if old else []
    content["attributes"] = [*kept, *({"key": key, "value": {"doubleValue": v}} for key, v in values.items())]


def span_energies(attribution: Attribution) -> dict[int, SpanEnergy]:
    """Location → the joules of its spans, in their order."""
    recording, question = attribution.recording, attribution.question
    question = question.but(by=("device", "frame"), per=None, statistics=False)
    per_span = attribute(recording, question, spans=True, engine="local")
    counted = {row[:4] for row in per_span.devices.select("device", "signal", "host", "of", "counted").rows() if row[4]}
    numbers = {name: at for at, name in enumerate(recording.location_labels)}
    energies: dict[int, SpanEnergy] = {}
    rows = per_span.rows.sort("start_ns", "end_ns", "depth", descending=[False, True, False], maintain_order=True)
    for key, some in rows.group_by("device", "signal", "host", "of", "location", maintain_order=True):
        if key[:4] not in counted or key[4] not in numbers:
            continue
        location = numbers[str(key[4])]
        spans = recording.spans.spans(location)
        kept = np.flatnonzero(location_masks(recording, str(key[3]))(location)[spans.frame])
        if location not in energies:
            energies[location] = SpanEnergy(*np.full((4, len(spans)), np.nan))
        first = np.isnan(energies[location].self_j[kept])
        for name, column in zip(_COLUMNS[::-1], energies[location][::-1], strict=True):  # self, which says first, last
            column[kept] = some[name].fill_null(np.nan).to_numpy() + np.where(first, 0.0, column[kept])
    return energies


def grams_per_joule(attribution: Attribution, **place: Any) -> Any:
    """(recording, starts, ends) → grams per joule of each span, by the intensity of its time; NaN without a place."""
    known = any(attribution.recording.metadata.get(name) for name in ("zone", "intensity"))
    if not known and not any(value is not None for value in place.values()):
        return lambda recording, start, end: np.full(len(start), np.nan)
    whole = emissions(attribution, **place)
    slices = whole.slices
    edges = np.array([slices[0].start_ns, *(part.end_ns for part in slices)], np.float64)
    grams = np.array([part.g_per_kwh for part in slices]) * whole.pue / J_PER_KWH
    running = np.concatenate([[0.0], np.cumsum(grams * np.diff(edges))])

    def per_joule(recording: Recording, start: Any, end: Any) -> Floats:
        origin = float(recording.clock.epoch_ns or 0)
        begins, ends = (np.clip(origin + recording.clock.ns(at), edges[0], edges[-1]) for at in (start, end))
        lasted = ends - begins
        at = np.clip(np.searchsorted(edges, begins, side="right") - 1, 0, len(grams) - 1)
        mean = np.interp(ends, edges, running) - np.interp(begins, edges, running)
        span_g_per_j: Floats = np.divide(mean, lasted, out=grams[at].copy(), where=lasted > 0)
        return span_g_per_j

    return per_joule


Members = dict[int, list[dict[str, Any]]]  # location → its spans in their JSON form


def _as_read(recording: Recording) -> tuple[list[otlp_format.Request], Members] | None:
    """The requests that the recording was read from, if they are still there and have the same spans."""
    source = Path(str(recording.metadata.get("source", "")))
    if recording.metadata.get("format") != "otlp" or not source.is_file():
        return None
    requests = list(otlp_format.requests(source, []))
    lanes = otlp.lanes(otlp.spans(requests))
    if len(lanes) != len(recording.locations):
        return None
    names = recording.frames.name
    members: Members = {}
    for location, lane in enumerate(lanes):
        spans = recording.spans.spans(location)
        if [names[frame] for frame in spans.frame] != [span.name for span in lane.spans]:
            return None
        lengths = recording.clock.ns(spans.end - spans.start).tolist()
        if lengths != [span.end - span.start for span in lane.spans]:
            return None
        members[location] = [span.content for span in lane.spans]
    return requests, members


def _made(recording: Recording) -> tuple[list[otlp_format.Request], Members]:
    """Requests with spans under ids of their own: the same recording has the same ids again."""
    members = {location: list(_spans(recording, location)) for location in recording.spans.locations()}
    requests = []
    for location, spans in members.items():
        process = recording.owner(location)
        about = {"service.name": recording.processes.name[process] if process >= 0 else "wattribute"}
        about |= {"host.name": recording.location_host(location), "thread.name": recording.locations.name[location]}
        resource = {"attributes": [{"key": k, "value": {"stringValue": v}} for k, v in about.items() if v]}
        for first in range(0, len(spans), _MOST_SPANS):
            scope = {"scope": {"name": "wattribute"}, "spans": spans[first : first + _MOST_SPANS]}
            requests.append({"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]})
    return requests, members


def _spans(recording: Recording, location: int) -> Iterator[dict[str, Any]]:
    spans, clock = recording.spans.spans(location), recording.clock
    origin = _WITHOUT_CLOCK_NS if clock.epoch_ns is None else clock.epoch_ns
    name = f"{recording.metadata.get('name', '')}\0{clock.epoch_ns}\0{recording.locations.id[location]}\0{location}"
    trace = hashlib.sha256(name.encode("utf-8", "replace")).digest()
    first = int.from_bytes(trace[16:24], "big")

    def span_id(row: int) -> str:
        return f"{(first + row) % ((1 << 64) - 1) + 1:016x}"

    starts, ends = (origin + clock.ns(column) for column in (spans.start, spans.end))
    for row, (start, end, frame, parent) in enumerate(
        zip(starts.tolist(), ends.tolist(), spans.frame.tolist(), spans.parent.tolist(), strict=True)
    ):
        yield {
            "traceId": trace[:16].hex(),
            "spanId": span_id(row),
            **({"parentSpanId": span_id(parent)} if parent >= 0 else {}),
            "name": recording.frames.name[frame],
            "kind": 1,
            "startTimeUnixNano": str(start),
            "endTimeUnixNano": str(end),
        }
