"""Spans get their joules while they are exported: none is lost, books balance, errors cost energy and never spans."""

import subprocess
import sys
import threading
import time

import pytest

pytest.importorskip("opentelemetry.sdk", reason="the OpenTelemetry SDK is not installed")

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from wattribute.integrations.opentelemetry import EnergySpanExporter
from wattribute.model import Device
from wattribute.plugins import Availability, Channel

WATTS = 100


class ConstantMeter:
    """A package that draws 100 W: its counter is the clock."""

    name = "constant"

    def __init__(self, fails=False):
        self.fails, self.closed = fails, False

    def available(self):
        return Availability(True)

    def channels(self):
        from fractions import Fraction

        return [Channel("energy", "counter", "J", Device("package 0", "cpu"), Fraction(WATTS, 10**9))]

    def read(self):
        if self.fails:
            raise OSError("no sensor")
        now = time.monotonic_ns()
        return [(now, now)]

    def close(self):
        self.closed = True


def provider_of(exporter, batch=False):
    provider = TracerProvider(resource=Resource.create({"service.name": "app"}), shutdown_on_exit=False)
    provider.add_span_processor(exporter.watcher())
    provider.add_span_processor((BatchSpanProcessor if batch else SimpleSpanProcessor)(exporter))
    return provider


def exporter_of(**how):
    given = {"meters": [ConstantMeter()], "interval_s": 0.02, "flush_s": 0.1, "hold_s": 5.0}
    return EnergySpanExporter(kept := InMemorySpanExporter(), **given | how), kept


@pytest.mark.parametrize("batch", [False, True])
def test_nothing_is_lost_and_the_books_balance(batch):
    exporter, kept = exporter_of(intensity=360.0, flush_s=60)  # at once, at the end: no share is decided too early
    provider = provider_of(exporter, batch)
    tracer = provider.get_tracer("test")

    def work(number):
        with tracer.start_as_current_span(f"request {number}", attributes={"tokens": number}):
            for _ in range(10):
                with tracer.start_as_current_span("step"):
                    time.sleep(0.01)

    threads = [threading.Thread(target=work, args=[n]) for n in range(4)]
    for thread in threads:
        thread.start()
        time.sleep(0.03)
    for thread in threads:
        thread.join()
    provider.shutdown()
    spans = kept.get_finished_spans()
    assert len(spans) == 44
    assert len({span.context.span_id for span in spans}) == 44
    begin, end = min(span.start_time for span in spans), max(span.end_time for span in spans)
    used = sum(span.attributes["energy.self_j"] for span in spans)
    assert used == pytest.approx(WATTS * (end - begin) / 1e9, rel=0.02)  # the requests overlap without a gap
    roots = [span for span in spans if span.parent is None]
    assert sum(span.attributes["energy.j"] for span in roots) == pytest.approx(used, rel=1e-6)
    for span in spans:
        assert span.attributes["energy.low_j"] <= span.attributes["energy.j"] <= span.attributes["energy.high_j"]
        assert span.attributes["co2e.g"] == pytest.approx(span.attributes["energy.j"] * 360 / 3.6e6, rel=1e-6)
    assert {span.attributes["tokens"] for span in roots} == {0, 1, 2, 3}
    assert exporter.export(spans).name == "FAILURE"  # after shut-down, as the specification wants


def test_an_open_span_has_its_share_already():
    exporter, kept = exporter_of()
    provider = provider_of(exporter)
    tracer = provider.get_tracer("test")
    long = tracer.start_span("long")
    short = tracer.start_span("short")
    time.sleep(0.1)
    short.end()
    while not kept.get_finished_spans():
        provider.force_flush()
    (span,) = kept.get_finished_spans()
    half = WATTS * (span.end_time - span.start_time) / 1e9 / 2
    assert span.attributes["energy.j"] == pytest.approx(half, rel=0.05)
    long.end()
    provider.shutdown()
    assert {span.name for span in kept.get_finished_spans()} == {"long", "short"}


@pytest.mark.parametrize("meters", [[ConstantMeter(fails=True)], []])
def test_without_energy_spans_are_passed_on_as_they_are(meters, monkeypatch, caplog):
    monkeypatch.setattr("wattribute.integrations.opentelemetry.choose", lambda names: ([], []))
    exporter, kept = exporter_of(meters=meters, hold_s=0.2)
    provider = provider_of(exporter)
    with provider.get_tracer("test").start_as_current_span("a", attributes={"x": 1}):
        pass
    provider.shutdown()
    (span,) = kept.get_finished_spans()
    assert dict(span.attributes) == {"x": 1}
    assert "without energy" in caplog.text


def test_spans_that_end_while_it_shuts_down_are_handed_on_or_refused():
    exporter, kept = exporter_of(flush_s=0.001, interval_s=0.001)
    provider = provider_of(exporter)
    tracer, accepted, began = provider.get_tracer("test"), [], threading.Event()

    def work():
        while True:
            span = tracer.start_span("late")
            span._end_time = time.time_ns()
            if exporter.export([span]).name == "FAILURE":
                return
            accepted.append(span.context.span_id)
            if len(accepted) > 100:
                began.set()
            time.sleep(0.0005)  # else a slow machine hands on hundreds of thousands of spans

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    began.wait()
    provider.shutdown()
    for thread in threads:
        thread.join()
    assert sorted(span.context.span_id for span in kept.get_finished_spans()) == sorted(accepted)


def test_requests_of_the_wrapped_exporter_are_no_spans():
    from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, get_value

    exporter, kept = exporter_of(flush_s=0.001)
    provider = provider_of(exporter)

    class Requesting:  # as one whose HTTP library is instrumented
        def export(self, spans):
            if not get_value(_SUPPRESS_INSTRUMENTATION_KEY):
                provider.get_tracer("requests").start_span("POST").end()
            return kept.export(spans)

        force_flush, shutdown = kept.force_flush, kept.shutdown

    exporter._exporter = Requesting()
    with provider.get_tracer("test").start_as_current_span("a"):
        pass
    exporter.force_flush()
    provider.shutdown()
    assert [span.name for span in kept.get_finished_spans()] == ["a"]


def test_a_service_without_meters_keeps_no_spans(monkeypatch, caplog):
    monkeypatch.setattr("wattribute.integrations.opentelemetry.choose", lambda names: ([], []))
    exporter, kept = exporter_of(meters=[], hold_s=0.0, flush_s=0.0)
    provider = provider_of(exporter)
    tracer = provider.get_tracer("test")
    for _ in range(3):
        tracer.start_span("a").end()
        exporter.force_flush()
    assert len(kept.get_finished_spans()) == 3
    assert not exporter._seen
    assert caplog.text.count("without energy") == 1
    provider.shutdown()


FORKING = """
import os, sys, time
from tests.integrations.test_opentelemetry import exporter_of, provider_of

exporter, kept = exporter_of()
provider = provider_of(exporter)
tracer = provider.get_tracer("test")
pid = os.fork()
if pid == 0:
    with tracer.start_as_current_span("child"):
        time.sleep(0.1)
    provider.shutdown()
    os._exit(0 if "energy.j" in kept.get_finished_spans()[0].attributes else 2)
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
provider.shutdown()
sys.exit(code or len(kept.get_finished_spans()))
"""


def test_a_forked_child_exports_its_own_spans():
    done = subprocess.run([sys.executable, "-c", FORKING], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
