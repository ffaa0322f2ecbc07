"""A simulated inference server under the real OpenTelemetry SDK, and a fake GPU of which every joule is known.

Requests overlap: each is a trace with a span ``request``, inside it a span per step it takes part in (``prefill`` or
``decode``) that says how many tokens the step did for it. Steps last whole multiples of 5 ms; the GPU draws 60 W while
nothing runs and, in a step, what its prefill and decode tokens cost. ``mixed`` lets a step prefill one request while it
decodes others (continuous batching with chunked prefill), otherwise steps are of one kind.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from wattribute.testing.recordings import RecordingBuilder

TOKENS = "gen_ai.tokens"
BEGIN_NS = 1_790_000_000_000_000_000
STEP_NS = 5_000_000
IDLE_W, PREFILL_J, DECODE_J = 60.0, 0.02, 0.35
HOST = "gpu-node"


@dataclass
class Step:
    start: int
    end: int
    prefill: dict[int, int] = field(default_factory=dict)  # request → tokens
    decode: dict[int, int] = field(default_factory=dict)

    @property
    def energy_j(self):
        dynamic = PREFILL_J * sum(self.prefill.values()) + DECODE_J * sum(self.decode.values())
        return IDLE_W * (self.end - self.start) / 1e9 + dynamic


@dataclass
class Request:
    number: int
    arrives: int
    prompt: int
    answer: int
    done: int = 0


class Server:
    """``steps`` are what the engine did, ``requests`` when each arrived and what it wanted."""

    def __init__(self, mixed=False, requests=64, seed=1):
        chosen = random.Random(seed)
        self.requests = [
            Request(n, BEGIN_NS + chosen.randrange(200) * STEP_NS, chosen.randrange(20, 400), chosen.randrange(3, 25))
            for n in range(requests)
        ]
        self.steps = []
        waiting, running = sorted(self.requests, key=lambda r: r.arrives), []
        now = BEGIN_NS
        while waiting or running:
            ready = [r for r in waiting if r.arrives <= now]
            if not ready and not running:
                now = waiting[0].arrives
                continue
            step = Step(now, now + STEP_NS * (2 if ready else 1))
            if ready:
                waiting.remove(ready[0])
                step.prefill[ready[0].number] = ready[0].prompt
            if not ready or mixed:
                for request in running:
                    step.decode[request.number] = 1
                    request.done += 1
            running = [r for r in (*running, *ready[:1]) if r.done < r.answer]
            self.steps.append(step)
            now = step.end
        self.end = now + 40 * STEP_NS

    def record(self, exporter_of, processor_of=None):
        """Run the server's spans through the SDK: ``exporter_of`` gives the exporter."""
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.trace import set_span_in_context

        about = Resource.create({"service.name": "inference", "host.name": HOST, "process.pid": 7})
        provider = TracerProvider(resource=about, shutdown_on_exit=False)
        provider.add_span_processor((processor_of or SimpleSpanProcessor)(exporter_of))
        tracer = provider.get_tracer("server")
        mine = {r.number: [s for s in self.steps if r.number in (*s.prefill, *s.decode)] for r in self.requests}
        for request in self.requests:
            with_request = {"gen_ai.request.model": "fake", "server.port": 8000}
            root = tracer.start_span("request", start_time=request.arrives, attributes=with_request)
            inside = set_span_in_context(root)
            for step in mine[request.number]:
                for kind in ("prefill", "decode"):
                    tokens = getattr(step, kind).get(request.number)
                    if tokens is not None:
                        span = tracer.start_span(kind, inside, start_time=step.start, attributes={TOKENS: tokens})
                        span.end(step.end)
            root.end(mine[request.number][-1].end)
        provider.shutdown()

    # ---- the GPU

    def energy_at(self, at):
        """Joules that the GPU has used up to some moments."""
        edges, joules = [BEGIN_NS], [0.0]
        for step in self.steps:
            joules.append(joules[-1] + IDLE_W * (step.start - edges[-1]) / 1e9)
            joules.append(joules[-1] + step.energy_j)
            edges += [step.start, step.end]
        joules.append(joules[-1] + IDLE_W * (self.end - edges[-1]) / 1e9)
        return np.interp(np.asarray(at) - BEGIN_NS, np.array([*edges, self.end]) - BEGIN_NS, joules)

    def power_log(self, period_ns=STEP_NS):
        """A recording of the GPU's counter, made on the same host."""
        times = np.arange(0, self.end - BEGIN_NS + 1, period_ns)
        made = RecordingBuilder(10**9, epoch_ns=BEGIN_NS).host(HOST)
        return made.counter("GPU 0", self.energy_at(times + BEGIN_NS), times).recording()

    def request_j(self, number):
        """What one request used, if steps are shared by tokens, and waiting shares what others leave, evenly."""
        return self.by_request()[number]

    def by_request(self):
        used = dict.fromkeys(range(len(self.requests)), 0.0)
        for step in self.steps:
            tokens = {**step.prefill, **step.decode}
            for number, n in tokens.items():
                used[number] += step.energy_j * n / sum(tokens.values())
        return used

    def idle_j(self):
        """What the GPU used while no request was in the server."""
        spent = sum(step.energy_j for step in self.steps)
        return float(self.energy_at([self.end])[0]) - spent


class FileExporter:
    """Writes spans as a collector's file exporter does: OTLP's JSON lines, or protobuf behind its length."""

    def __new__(cls, path: Path):
        from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
        from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

        class Exporter(SpanExporter):
            def __init__(self):
                self.batch = []

            def export(self, spans):
                self.batch += spans
                return SpanExportResult.SUCCESS

            def shutdown(self):
                with open(path, "wb") as file:
                    for at in range(0, len(self.batch), 500):
                        request = encode_spans(self.batch[at : at + 500])
                        body = request.SerializeToString()
                        if path.suffix == ".pb":
                            file.write(len(body).to_bytes(4, "big") + body)
                        else:
                            file.write(json.dumps(otlp_json(request)).encode() + b"\n")

        return Exporter()


def otlp_json(request):
    """Google's JSON of a request with ids as OTLP wants them, in hexadecimal digits."""
    import base64

    from google.protobuf.json_format import MessageToDict

    made = MessageToDict(request)
    for resource in made["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for name in ("traceId", "spanId", "parentSpanId"):
                    if name in span:
                        span[name] = base64.b64decode(span[name]).hex()
    return made
