"""Faults tried on real runs, and what each lost: kill -9 of each process, a full disk, a server that is away.

Run it with ``python benchmarks/faults.py [--count 10]``; prints a Markdown table for docs/faults.md. The meter is a
replayed counter of 300 W, so that the truth is known. Root is needed for the full disk (a small tmpfs).
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import wattribute

WATTS, LIFE_S = 300.0, 3.0
RUN = [sys.executable, "-m", "wattribute", "run", "-q", "--interval", "0.02"]


def meter(folder: Path) -> str:
    path = folder / "meter.csv"
    rows = "\n".join(f"{ms / 1000},{WATTS * ms / 1000}" for ms in range(0, 120_000, 10))
    path.write_text(f"time_s,GPU 0:energy_j\n{rows}\n")
    return f"replay:{path}"


def children(pid: int) -> dict[str, int]:
    """The processes that a run has started: "command" and "sampler"."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        for name in (task / "children").read_text().split():
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{name}/cmdline").read_bytes()
                if b"recorders.sampler" in words or words.startswith(b"sleep\0"):
                    found["sampler" if b"recorders.sampler" in words else "command"] = int(name)
    return found


def started(folder: Path, *more: str, environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
    """A run of LIFE_S whose command has begun."""
    command = [*RUN, "--meters", meter(folder), "-o", str(folder / "x.watt"), *more, "--", "sleep", str(LIFE_S)]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=os.environ | (environment or {})
    )
    while process.poll() is None and len(children(process.pid)) < 2:
        time.sleep(0.01)
    return process


def seen_s(folder: Path, begin_ns: int) -> float:
    """Until how long after the start readings are in the recording."""
    recording = wattribute.read(folder / "x.watt")
    if not recording.signals or not len(recording.signals[0]):
        return 0.0
    last_ns = int(recording.signals[0].times[-1]) + recording.clock.offset_ticks
    return (last_ns - begin_ns) / 1e9


# ------------------------------------------------------------------------------------------------------------- kill -9


def killed(victim: str, count: int) -> tuple[str, str, str]:
    """Runs of which one process is killed at a random time."""
    draw, kept, lost, codes = random.Random(victim), 0, [], set()
    for _ in range(count):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            process, begin_ns = started(folder), time.monotonic_ns()
            family = children(process.pid)
            at_s = draw.uniform(0.05, LIFE_S - 0.5)
            time.sleep(at_s)
            target = process.pid if victim == "wattribute run" else family[victim]
            os.kill(target, signal.SIGKILL)
            ended_s = (time.monotonic_ns() - begin_ns) / 1e9
            process.communicate()
            codes.add(process.returncode)
            if victim == "wattribute run":
                with contextlib.suppress(ProcessLookupError):
                    os.kill(family["command"], signal.SIGKILL)
                while Path(f"/proc/{family['sampler']}").exists():  # it ends when its master is gone
                    time.sleep(0.01)
            with contextlib.suppress(wattribute.WattributeError):
                lost.append(max(0.0, ended_s - seen_s(folder, begin_ns)))
                kept += 1
    worst = f"at most {max(lost):.2f} s of readings before the kill" if lost else "–"
    return f"kill -9 of {victim}", f"{kept} of {count} recordings read", f"{worst}; exit codes {sorted(codes)}"


# ----------------------------------------------------------------------------------------------------------- full disk


def full_disk(count: int) -> tuple[str, str, str]:
    """Runs into a disk that is full, or nearly."""
    draw, codes, said, read = random.Random("disk"), set(), 0, 0
    for _ in range(count):
        with tempfile.TemporaryDirectory() as place:
            disk = Path(place, "disk")
            disk.mkdir()
            size = draw.choice([16, 32, 64, 128])
            mount = ["mount", "-t", "tmpfs", "-o", f"size={size}k", "none", str(disk)]
            if subprocess.run(mount, capture_output=True).returncode:
                return "full disk", "not tried: no right to mount", ""
            try:
                command = [*RUN, "--meters", meter(Path(place)), "-o", str(disk / "x.watt"), "--", "sh", "-c"]
                done = subprocess.run([*command, "sleep 1; exit 7"], capture_output=True, text=True)
                codes.add(done.returncode)
                said += "No space left" in done.stderr or "not saved" in done.stderr or "writing stopped" in done.stderr
                with contextlib.suppress(wattribute.WattributeError):
                    read += bool(wattribute.read(disk / "x.watt"))
            finally:
                subprocess.run(["umount", str(disk)], check=True)
    return "full disk (16 … 128 kB)", f"{said} of {count} said so, {read} readable", f"exit codes {sorted(codes)} (7)"


# -------------------------------------------------------------------------------------------------------------- server


class Server:
    """An InfluxDB in so far as it takes lines; ``delay_s`` makes it slow."""

    def __init__(self, port: int = 0, delay_s: float = 0.0) -> None:
        lines = self.lines = set[str]()

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                time.sleep(delay_s)
                if "write" in self.path:
                    lines.update(body.decode().splitlines())
                self.send_response(204 if "write" in self.path else 200)
                self.end_headers()

            do_GET = do_POST = _answer  # noqa: N815 (names of http.server)

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def wanted(folder: Path, name: str = "x.watt") -> int:
    """How many readings of the counter are to be sent, of a recording."""
    from wattribute.outputs.timeseries.series import series

    recording = wattribute.read(folder / name)
    return sum(len(one) for one in series(recording, recording.clock.epoch_ns) if one.metric.kind == "counter")


def received(lines: set[str]) -> int:
    """How many moments of the counter arrived."""
    return len({line.rsplit(" ", 1)[1] for line in lines if re.search(r"energy_joules_total=", line)})


@contextlib.contextmanager
def away(fault: str) -> Iterator[tuple[str, list[Server]]]:
    """A server with a fault, and those whose lines count."""
    server = Server(delay_s=0.5 if fault == "slow" else 0.0)
    servers = [server]
    url = f"influx+http://127.0.0.1:{server.port}/wattribute"
    if fault != "slow":
        server.stop()
    if fault == "restarted":
        servers.append(Server(server.port))
        timer = threading.Timer(0.8, lambda: (servers[1].stop(), time.sleep(1.0), servers.append(Server(server.port))))
        timer.start()
        yield url, servers
        timer.join()
    else:
        yield url, servers


def server_fault(fault: str, count: int) -> tuple[str, str, str]:
    codes, whole, lost = set(), 0, 0
    for _ in range(count):
        with tempfile.TemporaryDirectory() as place, away(fault) as (url, servers):
            folder, state = Path(place), {"XDG_STATE_HOME": f"{place}/state"}
            process = started(folder, "--push", url, environment=state)
            process.communicate()
            codes.add(process.returncode)
            if fault == "down":  # it comes back; the next run sends what is left
                servers.append(Server(int(url.split(":")[2].split("/")[0])))
            again = [*RUN, "--meters", meter(folder), "-o", str(folder / "y.watt"), "--push", url, "--", "sleep", "0.1"]
            subprocess.run(again, env=os.environ | state, capture_output=True)
            lines = set[str]().union(*(server.lines for server in servers))
            missing = wanted(folder) + wanted(folder, "y.watt") - received(lines)
            whole, lost = whole + (missing == 0), lost + max(0, missing)
            servers[-1].stop()
    return (
        f"server {fault}",
        f"{whole} of {count} runs whole on the server",
        f"{lost} readings; exit codes {sorted(codes)}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    print("| fault | what was kept | what was lost |\n|---|---|---|")
    rows = [(f"kill {victim}", killed, victim) for victim in ("wattribute run", "sampler", "command")]
    rows += [(f"server {fault}", server_fault, fault) for fault in ("down", "slow", "restarted")]
    for name, attempt, argument in rows:
        if options.only in name:
            print("| " + " | ".join(attempt(argument, options.count)) + " |", flush=True)
    if options.only in "full disk":
        print("| " + " | ".join(full_disk(options.count)) + " |", flush=True)


if __name__ == "__main__":
    main()
