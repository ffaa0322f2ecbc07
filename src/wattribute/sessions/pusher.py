"""The pushing process: follows a run's journal and sends its points to one server, even one that fails at times.

Started by ``following``; sampling knows nothing of it. Requests that fail go to the spool and, with longer and longer
pauses, from there to the server, in their order. A server that broke off may have lost what it confirmed just before:
the last half minute is then sent once more, as the same points. At the end it tries for a few seconds and leaves the
rest to the next run. Its order, secrets included, comes through standard input; its report leaves by standard output.
"""

from __future__ import annotations

import json
import os
import select
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..backoff import Backoff
from ..outputs.timeseries.client import Client, RefusedError, SendError
from ..outputs.timeseries.protocols import requests
from ..outputs.timeseries.target import Request, Target
from .journal_series import JournalReader
from .power_split import PowerSplit
from .spool import Spool

POLL_S = 0.5
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
RECENT_S, RECENT_BYTES = 30.0, 16 << 20
END_S = 3.0  # of trying after the run's end …
DRAIN_S = 10.0  # … and of sending, when it works


class Pusher:
    """One journal, one server."""

    def __init__(
        self,
        follower: JournalReader,
        client: Client,
        spool: Spool,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._follower, self._client, self._spool = follower, client, spool
        self._clock, self._sleep = clock, sleep
        self._split = PowerSplit()
        self._recent: deque[tuple[float, Request]] = deque()
        self._next_s, self._limit_s = 0.0, float("inf")
        self._backoff = Backoff(FIRST_PAUSE_S, LONGEST_PAUSE_S)
        self._hopeless = False  # the same will fail again until something is fixed
        self.sent = self.refused = self.lost = 0  # points
        self.why = ""

    def round(self, last: bool = False) -> None:
        """Take what is new and send what can be sent."""
        while True:
            series = self._follower.poll(last)
            series += self._split.series(series, self._follower.devices())
            for request in requests(series, self._client.target):
                self._take(request)
            self._deliver()
            if not self._follower.behind:
                return

    def finish(self) -> dict[str, Any]:
        """The last round, some patience, and the report."""
        self._client.timeout_s = min(self._client.timeout_s, END_S - 1)
        self._limit_s = self._clock() + DRAIN_S
        self.round(last=True)
        end_s = self._clock() + END_S
        self._next_s = 0.0
        self._backoff.reset()
        self._deliver()
        while len(self._spool) and not self._hopeless:
            wait_s = max(FIRST_PAUSE_S, self._next_s - self._clock())
            if self._clock() + wait_s >= end_s:
                break
            self._sleep(wait_s)
            self._deliver()
        kept = self._spool.points()
        self._client.close()
        self._spool.close()
        counts = {"sent": self.sent, "kept": kept, "refused": self.refused, "lost": self.lost, "why": self.why}
        return {**counts, "spool": str(self._spool.folder), "failure": self._spool.failure}

    def _take(self, request: Request) -> None:
        if not len(self._spool):
            try:
                self._post(request)
                return
            except SendError as error:
                if not self._failed(error, request):
                    return
        self._keep(request)

    def _deliver(self) -> None:
        """Send what waits, if it is time to."""
        if not len(self._spool) or self._clock() < self._next_s:
            return
        for path, request in self._spool.requests():
            if self._clock() > self._limit_s:
                self.why = self.why or "there was no time to send all"
                return
            try:
                self._post(request)
            except SendError as error:
                if self._failed(error, request):
                    return
            self._spool.remove(path)

    def _post(self, request: Request) -> None:
        self._client.post(request)
        now = self._clock()
        self.sent += request.points
        self._backoff.reset()
        self._hopeless = False
        self._recent.append((now, request))
        size = sum(len(each.body) for _, each in self._recent)
        while self._recent and (self._recent[0][0] < now - RECENT_S or size > RECENT_BYTES):
            size -= len(self._recent.popleft()[1].body)

    def _failed(self, error: SendError, request: Request) -> bool:
        """Note a failure; False when the request is not worth keeping."""
        self.why = str(error)
        if isinstance(error, RefusedError):
            self.refused += request.points
            return False
        self._hopeless = not error.again
        pause_s = self._backoff.pause_s(error.wait_s)
        self._next_s = self._clock() + (LONGEST_PAUSE_S if self._hopeless else pause_s)
        if error.lost:
            again, self._recent = list(self._recent), deque()
            for _, each in again:
                self._keep(each)
                self.sent -= each.points
        return True

    def _keep(self, request: Request) -> None:
        if not self._spool.put(request):
            self.lost += request.points


def main(order: dict[str, Any]) -> None:
    """Entry point of the process: push until its master says "end", or is gone."""
    follower = JournalReader(Path(order["journal"]), order["forget"])
    client = Client(Target(**order["target"]), order["headers"], timeout_s=5.0)
    pusher = Pusher(follower, client, Spool(Path(order["spool"])))
    while not _is_over(POLL_S):
        pusher.round()
    report = pusher.finish() | {"cpu_s": time.process_time()}
    os.write(1, json.dumps(report).encode())


def _is_over(wait_s: float) -> bool:
    """Whether the run is over: the master says so, or is gone and the sampler about to follow it."""
    if not select.select([0], [], [], wait_s)[0]:
        return False
    if not os.read(0, 16):
        time.sleep(2 * POLL_S)
    return True
