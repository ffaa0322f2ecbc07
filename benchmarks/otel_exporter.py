"""What energy on spans costs a program's own thread: a span of the SDK itself, and what our exporter adds to it.

Run it with ``python benchmarks/otel_exporter.py [--count 20000]``; prints µs per span, the best of twenty rounds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from wattribute.integrations.opentelemetry import EnergySpanExporter


def best_us(work: Callable[[Any], Any], spans: list[Any]) -> float:
    means = []
    size = len(spans) // 20
    for at in range(0, len(spans), size):
        some = spans[at : at + size]
        begin = time.perf_counter_ns()
        for span in some:
            work(span)
        means.append((time.perf_counter_ns() - begin) / len(some) / 1e3)
    return min(means)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    count = parser.parse_args().count
    tracer = TracerProvider().get_tracer("bench")
    spans: list[Any] = [tracer.start_span("x") for _ in range(count)]
    exporter = EnergySpanExporter(InMemorySpanExporter(), meters=["model"], flush_s=3600)
    watcher = exporter.watcher()

    def ours(span: Any) -> None:
        watcher.on_start(span)
        assert exporter.export((span,)) is SpanExportResult.SUCCESS

    print(f"a span of the SDK       {best_us(lambda _: tracer.start_span('x').end(), spans):6.2f} µs")
    print(f"what our exporter adds  {best_us(ours, spans):6.2f} µs")


if __name__ == "__main__":
    main()
