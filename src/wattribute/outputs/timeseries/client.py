"""HTTP client of one server: keeps its connection open and classifies failures.

That a connection is kept is more than thrift: when a server is killed and started again between two requests, the
broken connection is the only sign of it.
"""

from __future__ import annotations

import gzip
import http.client
import json
import re
import ssl
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

from ...backoff import TEMPORARY_STATUSES
from .target import Request, Target

_MOST_BYTES = 1 << 16
_SHOWN = 160
_INTEGER = re.compile(r'on measurement \\?"(.+?)\\?" is type float, already exists as type integer')
_VALUE = re.compile(r"=([^=\s]+) (?=-?\d+$)", re.MULTILINE)  # of a line: the value before its time


class SendError(Exception):
    """A request that did not arrive.

    ``again``: the same may work later. ``lost``: the server broke off, and may have forgotten what it confirmed
    before.
    """

    def __init__(self, message: str, again: bool = False, lost: bool = False, wait_s: float = 0.0) -> None:
        super().__init__(message)
        self.again, self.lost, self.wait_s = again, lost, wait_s


class RefusedError(SendError):
    """A request that was understood and turned down for good; others may pass."""


class Client:
    """A connection to one server."""

    def __init__(self, target: Target, headers: Mapping[str, str], timeout_s: float = 10.0) -> None:
        self.target, self.timeout_s = target, timeout_s
        self._headers = {"User-Agent": "wattribute", **headers}
        self._connection: http.client.HTTPConnection | None = None
        self._prefix = ""  # in front of paths when a proxy is asked
        self._made = False  # whether we tried to create the database
        self._whole: set[str] = set()  # measurements whose milliwatts the database keeps as integers

    def post(self, request: Request) -> None:
        """Send one request; raises SendError."""
        sent = {"Content-Type": request.type, "Content-Encoding": "gzip"}
        content = self._fitted(request.body)
        status, body, wait_s = self._ask(request.path, content, sent)
        if status == 404 and self.target.protocol == "influx" and not self._made:
            self._made = True
            if self._create():
                status, body, wait_s = self._ask(request.path, content, sent)
        while status == 400 and self._learnt(body):  # points that were stored are stored once
            content = self._fitted(request.body)
            status, body, wait_s = self._ask(request.path, content, sent)
        if status // 100 != 2:
            raise self._failure(status, body, wait_s)
        if self.target.protocol == "otlp":
            _check_partial(body)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _learnt(self, body: bytes) -> bool:
        """Whether the server says that a measurement has its milliwatts as integers, and we did not know it."""
        conflict = _INTEGER.search(body.decode("utf-8", "replace"))
        if conflict is None or self.target.options.get("schema") != "milliwatts" or conflict[1] in self._whole:
            return False
        self._whole.add(conflict[1])
        return True

    def _fitted(self, body: bytes) -> bytes:
        """The content of a request, with whole milliwatts for those measurements that want them."""
        if not self._whole:
            return body
        lines = gzip.decompress(body).decode().splitlines(keepends=True)
        return gzip.compress("".join(map(self._rounded, lines)).encode(), 1, mtime=0)

    def _rounded(self, line: str) -> str:
        """A line of the protocol with its value as an integer, ``power=251300i``, if its measurement is one of them."""
        if line.split(",", 1)[0].replace("\\", "") not in self._whole:
            return line
        return _VALUE.sub(lambda value: f"={round(float(value[1]))}i ", line)

    def _create(self) -> bool:
        """Create the database of InfluxDB 1.x; harmless if it exists."""
        name = self.target.path.replace("\\", "\\\\").replace('"', '\\"')
        body = urlencode({"q": f'CREATE DATABASE "{name}"'}).encode()
        status, _, _ = self._ask("/query", body, {"Content-Type": "application/x-www-form-urlencoded"})
        return status == 200

    def _ask(self, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes, float]:
        try:
            if self._connection is None:
                self._connection = self._connect()
            self._connection.timeout = self.timeout_s
            if self._connection.sock is not None:
                self._connection.sock.settimeout(self.timeout_s)
            self._connection.request("POST", self._prefix + path, body, {**self._headers, **headers})
            answer = self._connection.getresponse()
            content = answer.read(_MOST_BYTES)
        except ssl.SSLCertVerificationError as error:
            self.close()
            raise SendError(f"its certificate is not trusted ({error.verify_message})") from error
        except (OSError, http.client.HTTPException) as error:
            self.close()
            reason = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
            raise SendError(_plain(reason), again=True, lost=True) from error
        if answer.will_close or not answer.isclosed():
            self.close()
        wait = answer.headers.get("Retry-After", "")
        return answer.status, content, float(wait) if wait.isdigit() else 0.0

    def _connect(self) -> http.client.HTTPConnection:
        target, kind = self.target, "https" if self.target.tls else "http"
        proxy = "" if proxy_bypass(target.host) else getproxies().get(kind, "")
        parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        host, port = (parts.hostname, parts.port or 80) if proxy and parts.hostname else (target.host, target.port)
        if not target.tls:
            bracketed = f"[{target.host}]" if ":" in target.host else quote(target.host)
            self._prefix = f"http://{bracketed}:{target.port}" if proxy else ""
            return http.client.HTTPConnection(host, port, timeout=self.timeout_s)
        secure = http.client.HTTPSConnection(host, port, timeout=self.timeout_s, context=ssl.create_default_context())
        if proxy:
            secure.set_tunnel(target.host, target.port)
        return secure

    def _failure(self, status: int, body: bytes, wait_s: float) -> SendError:
        answer = _plain(body.decode("utf-8", "replace"))
        message = f"HTTP {status}" + (f": {answer}" if answer else "")
        if status in (401, 403):
            return SendError(f"HTTP {status}, the server does not accept our user, password or token")
        if status in (404, 405, 407) or status // 100 == 3:  # a wrong address, which the user may correct
            return SendError(message)
        if status in TEMPORARY_STATUSES or status >= 500:
            return SendError(message, again=True, lost=status in (502, 503, 504), wait_s=wait_s)
        return RefusedError(message)


def _check_partial(body: bytes) -> None:
    with suppress(ValueError, AttributeError, TypeError):
        partial = json.loads(body or b"{}").get("partialSuccess") or {}
        if int(partial.get("rejectedDataPoints") or 0):
            raise RefusedError(_plain(str(partial.get("errorMessage", ""))) or "points were rejected")


def _plain(text: str) -> str:
    """One short line of what a server said, without anything that could steer a terminal."""
    text = " ".join(re.sub(r"[^\x20-\x7e\u00a1-\uffff]", " ", text).split())
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
