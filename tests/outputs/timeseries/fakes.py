"""InfluxDB 2.x and an OTLP collector as local servers that take nothing but what their protocols allow."""

import gzip
import json
import re
import ssl
import threading
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

# the grammar of https://docs.influxdata.com/influxdb/v2/reference/syntax/line-protocol/, one float field, sorted tags
_NAME = r"(?:\\[,= ]|[^,= \\\n])+"
_LINE = re.compile(rf"({_NAME})((?:,{_NAME}={_NAME})*) ({_NAME})=(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?) (\d{{19}})\n")


class Fault(Exception):
    """What a request did wrong; the server answers 400 with it."""


class Fake(ThreadingHTTPServer):
    """``points`` are {(name, labels, ns): value}; ``faults`` what was turned down; ``mode`` how to answer otherwise."""

    daemon_threads = True

    def __init__(self, take, authorization, certificate=None):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.take, self.authorization = take, authorization
        self.points, self.faults, self.received, self.mode, self.retry_after = {}, [], 0, "", ""
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.place = f"127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def handle_error(self, request, client_address):
        """A client that does not trust us hangs up."""

    def close(self):
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_POST(self):
        server, body = self.server, self.rfile.read(int(self.headers["Content-Length"]))
        if server.mode:
            return self.answer(int(server.mode), b'{"message": "busy \x1b[31m"}')
        if self.headers.get("Authorization") != server.authorization:
            return self.answer(401, b'{"code": "unauthorized"}')
        try:
            if self.headers["Content-Encoding"] != "gzip":
                raise Fault("not compressed")
            status, said = server.take(server, self, gzip.decompress(body).decode())
            server.received += 1
        except (Fault, KeyError, TypeError, ValueError) as fault:
            server.faults.append(repr(fault))
            status, said = 400, json.dumps({"message": repr(fault)}).encode()
        return self.answer(status, said)

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if self.server.retry_after and status != 200:
            self.send_header("Retry-After", self.server.retry_after)
        self.end_headers()
        self.wfile.write(body)


def _check(right, what):
    if not right:
        raise Fault(what)


def influx2(server, handler, text):
    """POST /api/v2/write?org=&bucket=&precision=ns with line protocol; 204 and no body."""
    url = urlsplit(handler.path)
    _check(url.path == "/api/v2/write", url.path)
    _check(parse_qs(url.query, strict_parsing=True) == {"org": ["my org"], "bucket": ["b"], "precision": ["ns"]}, url)
    _check(handler.headers["Content-Type"] == "text/plain; charset=utf-8", "content type")
    at = 0
    while at < len(text):
        match = _LINE.match(text, at)
        _check(match, f"not a line: {text[at : at + 80]!r}")
        measurement, tags, field, value, time_ns = match.groups()
        server.points[f"{_bare(measurement)}_{field}", _pairs(tags), int(time_ns)] = float(value)
        at = match.end()
    return 204, b""


@cache
def _pairs(tags):
    pairs = [tuple(map(_bare, re.split(r"(?<!\\)=", tag))) for tag in re.split(r"(?<!\\),", tags)[1:]]
    _check(pairs == sorted(pairs), "tags are not sorted")
    return tuple(pairs)


def _bare(text):
    return re.sub(r"\\([,= ])", r"\1", text)


def otlp(server, handler, text):
    """POST /v1/metrics: an ExportMetricsServiceRequest in the JSON of protobuf, as the OTLP specification has it."""
    _check(handler.path == "/v1/metrics", handler.path)
    _check(handler.headers["Content-Type"] == "application/json", "content type")
    content = _fields(json.loads(text), {"resourceMetrics": list})
    for resource in content["resourceMetrics"]:
        _fields(resource, {"resource": dict, "scopeMetrics": list})
        names = dict(_attributes(_fields(resource["resource"], {"attributes": list})["attributes"]))
        _check(names["service.name"] == "wattribute", names)
        for scope in resource["scopeMetrics"]:
            _fields(scope, {"scope": dict, "metrics": list})
            for metric in scope["metrics"]:
                _metric(server, metric, names["host.name"])
    return 200, b"{}"


def _metric(server, metric, host):
    kind = "sum" if "sum" in metric else "gauge"
    _fields(metric, {"name": str, "unit": str, "description": str, kind: dict})
    expected = {"dataPoints": list}
    if kind == "sum":
        expected |= {"aggregationTemporality": int, "isMonotonic": bool}
        _check((metric["sum"]["aggregationTemporality"], metric["sum"]["isMonotonic"]) == (2, True), "temporality")
    for point in _fields(metric[kind], expected)["dataPoints"]:
        wanted = {"attributes": list, "timeUnixNano": str, "asDouble": float}
        _fields(point, wanted | ({"startTimeUnixNano": str} if kind == "sum" else {}))
        labels = tuple(_attributes(point["attributes"]))
        known = dict(labels)
        said = known.get("host") or known["hw.id"]
        _check(said == host or said.startswith(f"{host}/"), "host")
        _check(int(point.get("startTimeUnixNano", 0)) <= int(point["timeUnixNano"]) < 2**63, "times")
        server.points[metric["name"], labels, int(point["timeUnixNano"])] = point["asDouble"]


def _fields(value, wanted):
    """The JSON object, if it has exactly these fields of these types."""
    _check(value.keys() == wanted.keys(), f"{sorted(value)} instead of {sorted(wanted)}")
    for name, kind in wanted.items():
        _check(type(value[name]) is kind, f"{name} is {type(value[name]).__name__}, not {kind.__name__}")
    return value


def _attributes(attributes):
    for each in attributes:
        _fields(each, {"key": str, "value": dict})
        yield each["key"], _fields(each["value"], {"stringValue": str})["stringValue"]
