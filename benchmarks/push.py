"""What pushing costs: 10,000 readings a second for a minute, through the journal, to a server.

    python benchmarks/push.py [--seconds 60] [--channels 20] [--rate 500] [--to victoria|influx|otlp]

A writer appends to a journal as the sampler does and flushes it once a second; the pushing process follows it. Told are
the CPU time of that process in % of one core (start-up included), how long after the last reading everything had
arrived, and whether all of it had. The server is VictoriaMetrics where it is installed (Debian: victoria-metrics), or
one that only counts what it gets.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import sys
import tempfile
import threading
import time
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.outputs.timeseries.servers import Victoria
from wattribute.journal.file import NAME, Journal
from wattribute.model import Device
from wattribute.outputs.timeseries.target import parse
from wattribute.plugins import Channel
from wattribute.recorders.sampler import plain
from wattribute.sessions.follower_processes import Push

LIMIT_PERCENT = 15.0


class Sink(ThreadingHTTPServer):
    """Takes everything and counts its lines."""

    lines = 0


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = gzip.decompress(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.lines += body.count(b"\n") or body.count(b"asDouble")  # type: ignore[attr-defined]
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: Any) -> None: ...


def write(folder: Path, channels: int, rate: int, seconds: float) -> int:
    """A journal in real time: half of the channels are counters, half gauges; gives the number of readings."""
    offered = [
        Channel("energy", "counter", "J", Device(f"GPU {i}", "gpu"), Fraction(1, 1000), period_s=0.001)
        if i % 2 == 0
        else Channel("power", "gauge", "W", Device(f"GPU {i - 1}", "gpu"), Fraction(1, 1000))
        for i in range(channels)
    ]
    journal = Journal(folder / NAME)
    begin = time.monotonic_ns()
    meters = [{"name": "nvml", "channels": [plain(channel) for channel in offered]}]
    about = {"host": "here", "command": ["bench"], "monotonic_ns": begin, "epoch_ns": time.time_ns(), "meters": meters}
    journal.about(about, [offered])
    journal.event({"start": begin, "pid": 1})
    written = 0
    for second in range(int(seconds)):
        for i in range(rate):
            at = begin + second * 10**9 + i * 10**9 // rate
            tick = second * rate + i
            journal.readings(0, [(at, tick * (7 + n) if n % 2 == 0 else 250_000 + tick % 977) for n in range(channels)])
        written += rate * channels
        journal.flush()
        time.sleep(max(0.0, begin / 1e9 + second + 1 - time.monotonic()))
    journal.event({"end": time.monotonic_ns()})
    journal.flush()
    journal.close()
    return written


def measure(kind: str, channels: int, rate: int, seconds: float, folder: Path) -> bool:
    """Print one line; whether the limit was kept and everything arrived."""
    real = kind == "victoria" and shutil.which("victoria-metrics") is not None
    server: Any = Victoria(folder / "server").start() if real else Sink(("127.0.0.1", 0), _Handler)
    if not real:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    address = server.push() if real else f"{kind}+http://127.0.0.1:{server.server_port}"
    try:
        push = Push(parse(address), {}, folder / "spool")
        push.begin(folder)
        written = write(folder, channels, rate, seconds)
        end = time.monotonic()
        push.end()
        words = push.finish()
        late_s = time.monotonic() - end
        stored = sum(len(rows) for _, rows in server.rows()) if real else server.lines
    finally:
        server.stop() if real else server.shutdown()
    percent = 100 * push.report["cpu_s"] / seconds
    complete = not words and stored >= written
    arrived = "all arrived" if complete else f"{stored:,} of {written:,}"
    print(
        f"{kind:<10}{written / seconds:>10,.0f} readings/s{percent:>8.1f} % of a core{late_s:>8.2f} s late   "
        f"{arrived} ({'real server' if real else 'a counting one'})"
    )
    return complete and percent <= LIMIT_PERCENT


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--channels", type=int, default=20)
    parser.add_argument("--rate", type=int, default=500, help="readings a second of each channel")
    parser.add_argument("--to", choices=["victoria", "influx", "otlp"], default="victoria")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        kept = measure(asked.to, asked.channels, asked.rate, asked.seconds, Path(place))
    sys.exit(0 if kept else f"more than {LIMIT_PERCENT:g} % of a core, or readings are missing")


if __name__ == "__main__":
    main()
