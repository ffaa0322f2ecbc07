"""The page of ``monitor``: live charts of every device, by the same server and under the same rules as ``view``.

A session takes statuses (``model.status``) as an observer and answers ``readings?after=N``: what the page has not seen
yet. It remembers the last two hours of a status a second; the page asks about as often as statuses come.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

from ...model.status import Status
from . import Page

KEPT = 7200  # statuses
_GAUGES = ("utilisation_percent", "temperature_c", "memory_bytes")  # None where a device does not say them


class LiveSession:
    """Statuses in, answers out; both ends in threads of their own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: Status | None = None
        self._kept: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self._count = 0

    def __call__(self, status: Status) -> None:
        row: dict[str, Any] = {"epoch_ms": status.epoch_ns / 1e6, "power_w": status.power_w}
        row["devices"] = {each.device: each.power_w for each in status.devices}
        with self._lock:
            self._last = status
            self._kept.append(row)
            self._count += 1

    def answer(self, name: str, query: Mapping[str, str]) -> dict[str, Any]:
        """What came after the status of this number; raises KeyError for anything else, ValueError for no number."""
        if name != "readings":
            raise KeyError(name)
        after = int(query.get("after", "0"))
        with self._lock:
            last, count = self._last, self._count
            fresh = list(self._kept)[-(count - after) :] if 0 <= after < count else []
        if last is None:
            return {"count": 0, "now": None, "devices": [], "fresh": []}
        now = last.as_dict()
        devices = [dict.fromkeys(_GAUGES) | device for device in now.pop("live")]
        return {"count": count, "now": now, "devices": devices, "fresh": fresh}

    def close(self) -> None: ...


class LivePage(Page):
    """A live page being served; its ``session`` is the observer to feed."""

    session: LiveSession


def serve(host: str = "127.0.0.1", port: int = 0) -> LivePage:
    """Serve a page that shows what its ``session`` is called with."""
    from .server import PageServer

    page = LivePage(PageServer(session := LiveSession(), host, port, index="live.html"))
    page.session = session
    return page
