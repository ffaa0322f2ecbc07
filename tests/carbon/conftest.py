"""A local server that speaks the protocols of the live sources, and misbehaves on request."""

import json
import threading
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse

import pytest

from wattribute.carbon import World
from wattribute.carbon.cache import Cache
from wattribute.carbon.web import Web

HALF_HOUR = timedelta(minutes=30)


class Grid(ThreadingHTTPServer):
    """``figures`` maps a half hour's start ("2024-09-04T14:00Z") to g/kWh; ``mode`` says how to answer."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.mode, self.figures, self.asked, self.failures = "good", {}, [], 0
        self.base = f"http://127.0.0.1:{self.server_port}"
        self.stopping = threading.Event()

    def handle_error(self, request, client_address):
        """A client that gave up is what some tests want."""


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_GET(self):
        self.server.asked.append((self.path, dict(self.headers)))
        mode = self.server.mode
        if self.server.failures:
            self.server.failures -= 1
            mode = "500"
        if mode == "silent":
            self.server.stopping.wait(30)
        elif mode == "slow":
            self.send_response(200)
            self.end_headers()
            for _ in range(600):  # one byte now and then: no single read ever times out
                if self.server.stopping.wait(0.05):
                    return
                self.wfile.write(b" ")
        elif mode.isdigit():
            self.answer(int(mode), b"broken")
        elif mode == "redirect":
            self.send_response(302)
            self.send_header("Location", f"{self.server.base}/elsewhere")
            self.end_headers()
        elif mode == "garbage":
            self.answer(200, b"<html>maintenance \xff</html>")
        elif mode == "nonsense":
            self.answer(200, b'{"data": [{"data": [{"from": 7, "intensity": "high"}]}]}')
        elif mode == "huge":
            self.answer(200, json.dumps({"data": [{"data": [gb_slot(datetime(2024, 9, 4, 14), 1e30)]}]}).encode())
        else:
            self.good()

    def good(self):
        url = urlparse(self.path)
        if url.path.startswith("/regional/intensity/"):
            _, _, _, low, high, _, region = url.path.split("/")
            at, slots = datetime.strptime(low, "%Y-%m-%dT%H:%MZ"), []
            while at < datetime.strptime(high, "%Y-%m-%dT%H:%MZ"):
                figure = self.server.figures.get(f"{at:%Y-%m-%dT%H:%MZ}")
                if figure is not None:
                    slots.append(gb_slot(at, figure))
                at += HALF_HOUR
            body = {"data": {"regionid": int(region), "shortname": "somewhere", "data": slots}}
        elif url.path.endswith("/past-range") and "past" not in self.headers.get("auth-token", ""):
            return self.answer(403, b'{"error": "not your plan"}')
        else:
            points = [
                {"zone": parse_qs(url.query)["zone"][0], "carbonIntensity": figure, "datetime": start}
                for start, figure in self.server.figures.items()
            ]
            body = {"data" if "past-range" in url.path else "history": points}
        return self.answer(200, json.dumps(body).encode())

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def gb_slot(at, figure):
    return {
        "from": f"{at:%Y-%m-%dT%H:%MZ}",
        "to": f"{at + HALF_HOUR:%Y-%m-%dT%H:%MZ}",
        "intensity": {"forecast": figure, "index": "low"},
        "generationmix": [{"fuel": "wind", "perc": 100}],
    }


@pytest.fixture
def grid(monkeypatch):
    server = Grid()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("WATTRIBUTE_GB_URL", server.base)
    monkeypatch.setenv("WATTRIBUTE_ELECTRICITYMAPS_URL", server.base)
    yield server
    server.stopping.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def outside(tmp_path):
    """The network with short patience, an empty cache, no default zone."""
    return World(Web(deadline_s=0.8), Cache(tmp_path / "cache"), offline=False, zone=None)


def ns(text):
    """Nanoseconds since the epoch of a UTC time."""
    return int(datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp()) * 10**9
