"""The serving process: follows a run's journal and answers scrapers with what the meters say now (OpenMetrics).

Started by ``following`` with a socket that listens already. There is one series per device and metric of this machine,
at most ``MOST_SERIES``, so that a server that scrapes many runs is not flooded.
"""

from __future__ import annotations

import select
import socket
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from ..outputs.timeseries.openmetrics import TYPES, exposition
from ..outputs.timeseries.series import Labels, Series
from .journal_series import JournalReader
from .power_split import PowerSplit

MOST_SERIES = 1000
MOST_AT_ONCE = 16
POLL_S = 0.5
_HERE = {"127.0.0.1", "localhost", "::1"}


class Endpoint(ThreadingHTTPServer):
    """Serves ``/metrics`` of one journal on a socket that listens."""

    daemon_threads = True

    def __init__(self, listening: socket.socket, follower: JournalReader) -> None:
        super().__init__(listening.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.only_here = str(self.server_address[0]) in _HERE
        self._follower, self._lock = follower, threading.Lock()
        self._latest: dict[tuple[str, Labels], Series] = {}
        self._room = threading.Semaphore(MOST_AT_ONCE)
        self._power_split = PowerSplit()
        self._split: list[Series] = []

    def follow(self) -> None:
        """Take what is new."""
        with self._lock:
            while True:
                for each in self._follower.poll():
                    key = each.metric.name, each.labels
                    if key in self._latest or len(self._latest) < MOST_SERIES:
                        self._latest[key] = replace(each, times_ns=each.times_ns[-1:], values=each.values[-1:])
                if not self._follower.behind:
                    break
            split = self._power_split.series(self._latest.values(), self._follower.devices())
            self._split = split or self._split

    def text(self, openmetrics: bool) -> str:
        with self._lock:
            latest = [*self._latest.values(), *self._split]
        return exposition(latest, openmetrics, times=False)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._room.acquire(blocking=False):  # so many at once are no scrapers
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A scraper that hangs up is no news."""


class _Handler(BaseHTTPRequestHandler):
    server: Endpoint
    timeout = 5
    server_version, sys_version = "wattribute", ""

    def log_message(self, format: str, *args: Any) -> None: ...

    def do_GET(self) -> None:
        host = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
        if self.server.only_here and host.strip("[]") not in _HERE:  # a page elsewhere that points its name at us
            self._answer(403, "text/plain", "ask for localhost\n")
        elif self.path.partition("?")[0] != "/metrics":
            self._answer(404, "text/plain", "metrics are at /metrics\n")
        else:
            openmetrics = "application/openmetrics-text" in self.headers.get("Accept", "")
            self._answer(200, TYPES[openmetrics], self.server.text(openmetrics))

    do_HEAD = do_GET  # noqa: N815 - the name of http.server

    def _answer(self, status: int, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def main(order: dict[str, Any]) -> None:
    """Entry point of the process: serve until its master closes our standard input."""
    follower = JournalReader(Path(order["journal"]), order["forget"])
    endpoint = Endpoint(socket.socket(fileno=order["socket"]), follower)
    threading.Thread(target=endpoint.serve_forever, daemon=True).start()
    while not select.select([0], [], [], POLL_S)[0]:
        endpoint.follow()
