"""Energy on OpenTelemetry's spans as they are exported: ``EnergySpanExporter`` wraps the exporter that is there.

::

    exporter = EnergySpanExporter(OTLPSpanExporter())
    provider.add_span_processor(exporter.watcher())            # so that open spans share the devices, too
    provider.add_span_processor(BatchSpanProcessor(exporter))

In the program's threads a span costs a few stores. A thread of the exporter's own reads the meters, holds spans until
every sensor has said what was used in their time, adds ``energy.j``, ``energy.low_j``, ``energy.high_j``,
``energy.self_j`` (and ``co2e.g``) and passes them on. What cannot be given energy is passed on as it is; at shut-down
everything is.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import MissingExtraError
from ..meters import choose
from ..plugins import Channel, Meter
from ..recorders import clocks

try:
    from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, Context, attach, detach, set_value
    from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
except ImportError as error:
    raise MissingExtraError("opentelemetry", "opentelemetry-sdk") from error

_log = logging.getLogger(__name__)
MOST_SPANS, MOST_READINGS = 100_000, 100_000  # remembered; a span that is longer ago has a coverage below 1
LAST_S = 2.0  # how long shut-down waits for sensors that do not move any more


@dataclass
class _Channel:
    """Readings of one channel: (wall clock in ns, raw value), and when the value last changed."""

    meter: str
    about: Channel
    readings: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=MOST_READINGS))
    changed_ns: int = 0

    def add(self, at_ns: int, value: float) -> None:
        if not self.readings or self.readings[-1][1] != value:
            self.changed_ns = at_ns
        self.readings.append((at_ns, value))


class _Watcher(SpanProcessor):
    """Span processor that reports starting spans to the exporter."""

    def __init__(self, exporter: EnergySpanExporter) -> None:
        self._exporter = exporter

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        self._exporter._seen[id(span)] = span  # the span that is exported later is another object of the same ids


class EnergySpanExporter(SpanExporter):
    """Exporter that holds spans until sensors have covered them, adds their energy, and hands them to another exporter.

    ``meters`` are names as for ``run`` (default: all that work here) or Meters; ``interval_s`` is the time between
    readings, ``flush_s`` that between hand-overs, ``hold_s`` the longest that a span waits for a sensor. ``share`` and
    ``load`` are those of :func:`wattribute.attribute`; ``zone`` or ``intensity`` add grams.
    """

    def __init__(
        self,
        exporter: SpanExporter,
        *,
        meters: Sequence[str | Meter] = (),
        interval_s: float = 0.1,
        flush_s: float = 5.0,
        hold_s: float = 30.0,
        share: str = "even",
        load: str | None = None,
        zone: str | None = None,
        intensity: float | str | None = None,
    ) -> None:
        names = [one for one in meters if isinstance(one, str)]
        ready = [one for one in meters if not isinstance(one, str)]
        self._meters = [*ready, *(choose(names)[0] if names or not ready else [])]
        self._exporter, self._interval_s, self._flush_s, self._hold_s = exporter, interval_s, flush_s, hold_s
        self._asked: dict[str, Any] = {"share": share} | ({} if load is None else {"load": load})
        self._place = {"zone": zone, "intensity": intensity}
        self._channels: list[list[_Channel]] = []
        self._reset()
        again = weakref.WeakMethod(self._reset)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=lambda: (reset := again()) and reset())

    def _reset(self) -> None:
        """The state of this process: a child of a fork starts with its own."""
        self._held: deque[ReadableSpan] = deque()
        self._seen: dict[int, ReadableSpan] = {}
        self._wake, self._passed, self._taking = threading.Event(), threading.Condition(), threading.Lock()
        self._warned = ""
        self._closing = self._closed = False
        self._flushes = self._wanted = 0
        self._channels = [[_Channel(m.name, c) for c in m.channels()] for m in self._meters]
        self._read()
        self._thread = threading.Thread(target=self._work, name="wattribute-energy", daemon=True)
        self._thread.start()

    def watcher(self) -> SpanProcessor:
        """A span processor to add to the provider, so that spans which are still open have their share."""
        return _Watcher(self)

    # ---- in the program's threads

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Take spans over; they are handed on once sensors have covered them."""
        with self._taking:  # so that none comes after the last hand-over
            if self._closed:
                return SpanExportResult.FAILURE
            self._held.extend(spans)
        return SpanExportResult.SUCCESS

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Wait until what was taken over so far is handed on, as far as sensors have covered it."""
        if self._closed:
            return True
        with self._passed:
            self._wanted = wanted = self._flushes + 2  # one may be under way that has not seen the last span
            self._wake.set()
            done = self._passed.wait_for(lambda: self._flushes >= wanted or self._closed, timeout_millis / 1000)
        return done and bool(self._exporter.force_flush(timeout_millis))

    def shutdown(self) -> None:
        """Hand everything on, with the energy that is known, and shut the other exporter down."""
        with self._taking:
            if self._closing:
                return
            self._closing = True
        self._wake.set()
        self._thread.join()
        self._flush(None)
        with self._taking:
            self._closed = True
        self._flush(None)  # what came meanwhile
        self._exporter.shutdown()
        for meter in self._meters:
            meter.close()

    # ---- in the thread of the exporter

    def _work(self) -> None:
        last = time.monotonic()
        while not self._closing:
            self._wake.wait(self._interval_s)
            self._wake.clear()
            self._read()
            if time.monotonic() - last >= self._flush_s or self._wanted > self._flushes:
                self._flush(self._covered_ns())
                last = time.monotonic()
        end_ns, limit = time.time_ns(), time.monotonic() + min(LAST_S, self._hold_s)
        while self._held and self._covered_ns() < end_ns and time.monotonic() < limit:
            time.sleep(min(self._interval_s, 0.05))
            self._read()

    def _read(self) -> None:
        for meter, channels in zip(self._meters, self._channels, strict=True):
            try:
                row = meter.read()
                _, monotonic_ns, epoch_ns = clocks.both()
                for channel, (at_ns, value) in zip(channels, row, strict=True):
                    if value is not None:
                        channel.add(at_ns + epoch_ns - monotonic_ns, value)
            except Exception as error:  # a sensor that fails once may come back
                self._warn(f"meter {meter.name} cannot be read: {error}")

    def _warn(self, text: str) -> None:
        """Log a warning, unless it is the last one again: a service runs for months."""
        if text != self._warned:
            _log.warning(text)
            self._warned = text

    def _covered_ns(self) -> int:
        """Time that every energy sensor has covered, less its latency; none is waited for longer than ``hold_s``."""
        energy = [c for row in self._channels for c in row if c.about.unit in ("J", "W") and c.readings]
        patience_ns = time.time_ns() - int(self._hold_s * 1e9)
        reported = [
            (c.readings[-1][0] if c.about.kind == "gauge" else c.changed_ns) - int((c.about.latency_s or 0.0) * 1e9)
            for c in energy
        ]
        return min((max(at_ns, patience_ns) for at_ns in reported), default=time.time_ns())

    def _flush(self, covered_ns: int | None) -> None:
        """Hand on the spans that ended before sensors' last word; all of them where None is given."""
        held = [self._held.popleft() for _ in range(len(self._held))]
        ready = [span for span in held if covered_ns is None or (span.end_time or 0) <= covered_ns]
        later = [span for span in held if covered_ns is not None and (span.end_time or 0) > covered_ns]
        self._held.extendleft(reversed(later))
        if ready:
            quiet = attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))  # an exporter's own requests are no spans
            try:
                self._hand_on(ready, later)
            finally:
                detach(quiet)
        self._forget(time.time_ns())
        with self._passed:
            self._flushes += 1
            self._passed.notify_all()

    def _hand_on(self, ready: Sequence[ReadableSpan], later: Sequence[ReadableSpan]) -> None:
        try:
            numbers = self._energies(ready, [*ready, *later])
        except Exception as error:  # energy may be missing; a span may not
            self._warn(f"spans are passed on without energy: {error}")
            numbers = {}
        try:
            self._exporter.export([_with(span, numbers.get(_key(span), {})) for span in ready])
        except Exception:
            _log.exception("the exporter failed; %d spans are lost there", len(ready))

    def _energies(self, ready: Sequence[ReadableSpan], held: Sequence[ReadableSpan]) -> dict[str, dict[str, float]]:
        """Span → its attributes; shared with every span that was seen in their time."""
        from .. import attribute
        from ..outputs.otlp_spans import grams_per_joule, span_energies
        from ..plugins import Selection
        from ..readers import otlp
        from ..readers.building import Builder

        now_ns = time.time_ns()
        known = {_key(span): span for span in self._seen.copy().values()} | {_key(span): span for span in held}
        begin = min((span.start_time for span in ready if span.start_time is not None), default=now_ns)
        spans = [_as_read(span, now_ns) for span in known.values() if span.start_time is not None]
        lanes = otlp.packed(otlp.lanes([span for span in spans if span.end >= begin]))
        recording = otlp.recording(lanes, Builder(Path("spans"), Selection(), "otlp"))
        attribution = attribute(recording, signals=self._log(recording.hosts()[0]), offset=0.0, **self._asked)
        grams = grams_per_joule(attribution, **self._place)
        asked = {_key(span) for span in ready}
        numbers: dict[str, dict[str, float]] = {}
        for location, energy in span_energies(attribution).items():
            columns = attribution.recording.spans.spans(location)
            factors = grams(attribution.recording, columns.start, columns.end)
            for row, span in enumerate(lanes[location].spans):
                if span.id in asked:
                    numbers[span.id] = energy.attributes(row, float(factors[row]))
        return numbers

    def _forget(self, now_ns: int) -> None:
        """Drop spans and readings that share no time with a span that is still to come."""
        open_ = [s.start_time or now_ns for s in self._seen.copy().values() if s.end_time is None]
        first = min([*open_, *(s.start_time or now_ns for s in list(self._held))], default=now_ns)
        first = min(first, now_ns - int(2 * max(self._flush_s, self._hold_s) * 1e9))  # a batch may be under way
        for key, span in self._seen.copy().items():
            if (span.end_time is not None and span.end_time < first) or len(self._seen) > MOST_SPANS:
                self._seen.pop(key, None)
        for readings in (channel.readings for row in self._channels for channel in row):
            while len(readings) > 2 and readings[1][0] < first:
                readings.popleft()

    def _log(self, host: str) -> Any:
        """The readings as a recording of this host."""
        import numpy as np

        from ..model import Clock, Device, Recording, Signal
        from ..model.ledger import needless_estimates

        channels = [c for row in self._channels for c in row if len(c.readings) > 1]
        measured = needless_estimates(
            c.about.device.kind for c in channels if c.about.unit in ("J", "W") and not c.about.estimated
        )
        channels = [c for c in channels if not (c.about.estimated and c.about.device.kind in measured)]
        first = min((c.readings[0][0] for c in channels), default=time.time_ns())
        signals, devices = [], {}
        for c in channels:
            rows = list(c.readings)
            times = np.array([at for at, _ in rows], np.int64) - first
            values = np.array([value for _, value in rows], np.int64 if c.about.whole else np.float64)
            about = c.about
            devices[about.device.name] = Device(about.device.name, about.device.kind, host, about.device.properties)
            signals.append(
                Signal(
                    *(f"{c.meter} {about.name}", about.kind, about.unit, times, values, _fraction(about.scale)),
                    host=host,
                    device=about.device.name,
                    latency_s=about.latency_s,
                    wraps_at=about.wraps_at,
                    estimated=about.estimated,
                    gain_error=about.gain_error,
                    declared=about.declared,
                )
            )
        length = max((int(signal.times[-1]) for signal in signals), default=0)
        return Recording(clock=Clock(10**9, 0, length, first), signals=tuple(signals), devices=tuple(devices.values()))


def _fraction(scale: Any) -> Any:
    from fractions import Fraction

    return Fraction(scale)


def _key(span: ReadableSpan) -> str:
    context = span.context
    return "" if context is None else f"{context.span_id:016x}"


def _as_read(span: ReadableSpan, now_ns: int) -> Any:
    """A span as the reader has it; an open one lasts until now."""
    from ..readers import otlp

    about = span.resource.attributes
    host = str(about.get("host.name") or os.uname().nodename)
    process = (host, str(about.get("service.name", "service")), str(os.getpid()))
    context = span.context
    trace = "" if context is None else f"{context.trace_id:032x}"
    parent = "" if span.parent is None else f"{span.parent.span_id:016x}"
    numbers = {
        key: float(value)
        for key, value in (span.attributes or {}).items()
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    }
    start = span.start_time or now_ns
    end = max(start, now_ns if span.end_time is None else span.end_time)
    return otlp.Span(process, trace, _key(span), parent, span.name, start, end, numbers, [], {})


def _with(span: ReadableSpan, numbers: Mapping[str, float]) -> ReadableSpan:
    """A copy of a span with more attributes."""
    if not numbers:
        return span
    return ReadableSpan(
        name=span.name,
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes={**(span.attributes or {}), **numbers},
        events=span.events,
        links=span.links,
        kind=span.kind,
        status=span.status,
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )
