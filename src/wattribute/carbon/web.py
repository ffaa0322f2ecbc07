"""Minimal HTTP GET: a hard deadline, retries with back-off, one exception type.

Sources of live intensities ask through this. Nothing in here may hold a run up: name look-up, connecting, headers and
body together get ``deadline_s``; every failure is a :class:`WebError`, and the caller falls back.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..backoff import TEMPORARY_STATUSES, Backoff

_MOST_BYTES = 16 * 2**20


class WebError(Exception):
    """No usable answer from a server; ``status`` is 0 if there was none at all."""

    def __init__(self, message: str, status: int = 0, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.status, self.wait_s = status, wait_s


def get(url: str, headers: Mapping[str, str], timeout_s: float) -> bytes:
    """Fetch the body of a URL within ``timeout_s``, also from a server that sends byte by byte."""
    answer: list[bytes] = []
    failure: list[WebError] = []

    def ask() -> None:
        try:
            answer.append(_get(url, headers, timeout_s))
        except WebError as error:
            failure.append(error)
        except Exception as error:  # http.client raises many kinds on a broken answer
            failure.append(WebError(f"{type(error).__name__}: {error}"))

    # a socket's timeout restarts with every byte, and name look-up has none; a thread can be left behind
    asker = threading.Thread(target=ask, daemon=True)
    asker.start()
    asker.join(timeout_s)
    if answer:
        return answer[0]
    raise failure[0] if failure else WebError(f"no answer within {timeout_s:g} s")


def _get(url: str, headers: Mapping[str, str], timeout_s: float) -> bytes:
    from urllib.error import HTTPError, URLError
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class Stay(HTTPRedirectHandler):
        """Redirect handler that follows none: urllib would send the token to the new address."""

        def redirect_request(self, *_: Any) -> None:
            return None

    if not url.startswith(("http://", "https://")):
        raise WebError(f"{url!r} is not a web address")
    try:
        with build_opener(Stay).open(Request(url, headers=dict(headers)), timeout=timeout_s) as response:
            body: bytes = response.read(_MOST_BYTES + 1)
    except HTTPError as error:
        with error:
            wait = error.headers.get("Retry-After", "")
        raise WebError(f"HTTP {error.code}", error.code, float(wait) if wait.isdigit() else None) from error
    except URLError as error:
        raise WebError(str(error.reason)) from error
    if len(body) > _MOST_BYTES:
        raise WebError("the answer is too long")
    return body


@dataclass
class Web:
    """HTTP client with retries; after a failure it leaves that host alone for ``rest_s``."""

    get: Callable[[str, Mapping[str, str], float], bytes] = get
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    deadline_s: float = 5.0
    tries: int = 3
    rest_s: float = 60.0
    _resting: dict[str, tuple[float, WebError]] = field(default_factory=dict)

    def json(self, url: str, headers: Mapping[str, str] | None = None) -> Any:
        """Fetch a URL and parse its JSON; raises WebError."""
        host = "/".join(url.split("/", 3)[:3])
        until, last = self._resting.get(host, (0.0, None))
        if last is not None and self.clock() < until:
            raise last
        try:
            return self._json(url, {"Accept": "application/json", "User-Agent": "wattribute", **(headers or {})})
        except WebError as error:
            if error.status in TEMPORARY_STATUSES or error.status == 0:
                self._resting[host] = (self.clock() + self.rest_s, error)
            raise

    def _json(self, url: str, headers: Mapping[str, str]) -> Any:
        start, backoff = self.clock(), Backoff(0.25)
        for attempt in range(1, self.tries + 1):
            left = self.deadline_s - (self.clock() - start)
            try:
                return json.loads(self.get(url, headers, max(0.05, left)))
            except ValueError as error:  # includes text that is not UTF-8
                raise WebError("the answer is not JSON") from error
            except WebError as error:
                pause = backoff.pause_s(error.wait_s or 0.0)
                left = self.deadline_s - (self.clock() - start)
                if attempt == self.tries or error.status not in TEMPORARY_STATUSES | {0} or pause >= left:
                    raise
            self.sleep(pause)
        raise AssertionError("unreachable")  # pragma: no cover
