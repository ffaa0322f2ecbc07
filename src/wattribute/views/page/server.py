"""The page's server: this machine only, one random token in the address, nothing but the recording behind it.

A request must name our own host (no DNS rebinding), come from our own page (Origin, Sec-Fetch-Site) and carry the
token. Static files are a fixed list read from the package; the rest are the answers of a session: of the recording's
(:class:`~.session.Session`) or of what is metered now (:class:`~.live.LiveSession`).

At most ``MOST_CONNECTIONS`` are answered at a time; the others wait in the kernel's queue, and one that waited too long
is answered with 503 and a time to retry.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import ipaddress
import json
import re
import secrets
import socket
import sys
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

from ...errors import NotFoundError, OutputError, WattributeError

INDEX = "index.html"
MOST_CONNECTIONS = 256
PATIENCE_S = 20.0  # a connection waits so long for its turn
IDLE_S = 60.0  # a connection that asks nothing for so long is closed
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}


class Answers(Protocol):
    """The answers behind the page."""

    def answer(self, name: str, query: Mapping[str, str]) -> Any:
        """Plain values or bytes; raises KeyError for what is not there."""
        ...

    def close(self) -> None: ...


def static() -> dict[str, bytes]:
    """The page's files by name."""
    folder = files(__package__) / "static"
    return {item.name: item.read_bytes() for item in folder.iterdir() if item.name.endswith(tuple(TYPES))}


def policy(page: bytes) -> str:
    """A Content-Security-Policy that allows our files and the inline scripts of this page, nothing else."""
    inline = re.findall(rb"<script[^>]*>(.+?)</script>", page, re.S)
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}'" for text in inline)
    rules = [
        "default-src 'none'",
        f"script-src 'self' {hashes}",
        "style-src 'self'",
        "img-src data:",
        "connect-src 'self'",
    ]
    return "; ".join([*rules, "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"])


class ReplacedError(Exception):
    """A question about a recording that another one has replaced since."""


class PageServer(ThreadingHTTPServer):
    """HTTP server of one session, on a loopback address by default, until shut down."""

    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, session: Answers, host: str = "127.0.0.1", port: int = 0, index: str = INDEX) -> None:
        self.session = session
        self.closed = False
        self.token = secrets.token_urlsafe(16)
        self.files = static()
        self.page = self.files[index]
        self.policy = policy(self.page)
        self._turns = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._lock, self._open = threading.Lock(), 0
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), _Handler)
        except OSError as error:
            raise OutputError(f"cannot serve on {host} port {port}: {error.strerror}; try another port") from error
        self.names = {host, f"[{host}]", "127.0.0.1", "[::1]", "localhost"}
        self.outside = not is_loopback(host)
        if self.outside:
            self.names |= {socket.gethostname(), socket.getfqdn()}

    def server_close(self) -> None:
        self.closed = True  # connections that browsers keep open outlive the listening socket
        super().server_close()

    @property
    def crowded(self) -> bool:
        """Whether connections should end with their answer, so that others get their turn."""
        return self._open > MOST_CONNECTIONS // 2

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own, when it is this connection's turn."""
        if not self._turns.acquire(timeout=PATIENCE_S):
            with contextlib.suppress(OSError):
                request.sendall(
                    b"HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                )
            return self.shutdown_request(request)
        with self._lock:
            self._open += 1
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._leave()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._leave()

    def _leave(self) -> None:
        with self._lock:
            self._open -= 1
        self._turns.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore tabs that were closed while they were answered."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    def knows(self, host: str) -> bool:
        """Whether a Host header names us. The port may be any: the other end of an ssh tunnel has its own."""
        name = host.rsplit(":", 1)[0]
        # a bare IP address cannot be made to point elsewhere, as a name can
        return name in self.names or (self.outside and _address(name) is not None)

    @property
    def warning(self) -> str:
        """The warning for a page that other machines can reach, else the empty string."""
        if not self.outside:
            return ""
        return (
            f"{self.server_address[0]!s} can be reached from the network: whoever sees the address with its token "
            "can open the recording, and nothing is encrypted; ssh -L from your machine is safer"
        )

    @property
    def url(self) -> str:
        host, port = self.server_address[:2]
        name = socket.getfqdn() if host in ("0.0.0.0", "::") else str(host)
        return f"http://{f'[{name}]' if ':' in name else name}:{port}/{self.token}/"


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    protocol_version = "HTTP/1.1"
    server_version = "wattribute"
    sys_version = ""
    timeout = IDLE_S

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: the terminal belongs to the user."""

    def do_GET(self) -> None:
        if self.server.closed:
            self.close_connection = True
            return None
        refused = self._refused()
        if refused:
            return self._send(403, {"error": refused})
        parts = urlsplit(self.path)
        name = parts.path.split("/", 2)[2] if parts.path.count("/") >= 2 else ""
        if name in ("", INDEX):
            return self._bytes(200, self.server.page, TYPES[".html"])
        if name.startswith("static/") and name[7:] in self.server.files:
            kind = TYPES["." + name.rsplit(".", 1)[1]]
            return self._bytes(200, self.server.files[name[7:]], kind)
        if name.startswith("api/"):
            return self._answer(name[4:], {key: values[-1] for key, values in parse_qs(parts.query).items()})
        return self._send(404, {"error": "page not found"})

    def _refused(self) -> str:
        """Why this request gets nothing, or the empty string."""
        host = self.headers.get("Host", "")
        if not self.server.knows(host):
            return "wrong host"
        if self.headers.get("Origin", f"http://{host}") != f"http://{host}":
            return "wrong origin"
        if self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin") and not self._is_opened():
            return "another site asked"
        given = self.path.split("/")[1].split("?")[0].encode("latin-1", "replace")
        if not hmac.compare_digest(given, self.server.token.encode()):
            return "wrong or missing token: open the address that wattribute printed"
        return ""

    def _is_opened(self) -> bool:
        """Whether this request opens the page itself in a tab, as our redirect file or a link in a mail does."""
        headers = [self.headers.get(f"Sec-Fetch-{name}") for name in ("Mode", "Dest")]
        return headers == ["navigate", "document"] and urlsplit(self.path).path.count("/") == 2

    def _answer(self, name: str, query: Mapping[str, str]) -> None:
        try:
            answer = self.server.session.answer(name, query)
        except (KeyError, IndexError):
            return self._send(404, {"error": "not in this recording"})
        except ReplacedError as error:
            return self._send(409, {"error": str(error)})
        except NotFoundError as error:
            return self._send(410, {"error": str(error)})
        except (WattributeError, ValueError) as error:
            return self._send(400, {"error": str(error)})
        except OSError as error:
            return self._send(410, {"error": f"the recording or its tiles cannot be read any more: {error}"})
        if isinstance(answer, bytes):
            return self._bytes(200, answer, "application/octet-stream")
        return self._send(200, answer)

    def _send(self, status: int, answer: Any) -> None:
        self._bytes(status, json.dumps(answer, allow_nan=False).encode(), "application/json")

    def _bytes(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Content-Security-Policy", self.server.policy)
        if self.server.crowded:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
