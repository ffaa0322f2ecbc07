"""OTLP traces as OpenTelemetry writes them, in the JSON form for files of either form: ``requests(path)``.

A file is JSON (a line per request, as a collector's file exporter writes it, or one document) or protobuf (requests
behind their lengths in four bytes, or one request). ``encode`` and ``decode`` know the messages by their field numbers
in opentelemetry-proto 1.x, so that no other package is needed; fields that are not listed are lost.
"""

from __future__ import annotations

import base64
import binascii
import json
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import FormatError
from ..model import Problem
from ..varint import varint
from .files import MOST, Text, head, opened

_ATTRIBUTES = ("attributes", "KeyValue", True)
_DROPPED = ("droppedAttributesCount", "varint", False)
MESSAGES: dict[str, dict[int, tuple[str, str, bool]]] = {  # message → field → (name, kind, repeated)
    "TracesData": {1: ("resourceSpans", "ResourceSpans", True)},
    "ResourceSpans": {
        1: ("resource", "Resource", False),
        2: ("scopeSpans", "ScopeSpans", True),
        3: ("schemaUrl", "text", False),
    },
    "Resource": {1: _ATTRIBUTES, 2: _DROPPED},
    "ScopeSpans": {1: ("scope", "Scope", False), 2: ("spans", "Span", True), 3: ("schemaUrl", "text", False)},
    "Scope": {1: ("name", "text", False), 2: ("version", "text", False), 3: _ATTRIBUTES, 4: _DROPPED},
    "Span": {
        1: ("traceId", "id", False),
        2: ("spanId", "id", False),
        3: ("traceState", "text", False),
        4: ("parentSpanId", "id", False),
        5: ("name", "text", False),
        6: ("kind", "enum", False),
        7: ("startTimeUnixNano", "fixed64", False),
        8: ("endTimeUnixNano", "fixed64", False),
        9: _ATTRIBUTES,
        10: _DROPPED,
        11: ("events", "Event", True),
        12: ("droppedEventsCount", "varint", False),
        13: ("links", "Link", True),
        14: ("droppedLinksCount", "varint", False),
        15: ("status", "Status", False),
        16: ("flags", "fixed32", False),
    },
    "Event": {1: ("timeUnixNano", "fixed64", False), 2: ("name", "text", False), 3: _ATTRIBUTES, 4: _DROPPED},
    "Link": {
        1: ("traceId", "id", False),
        2: ("spanId", "id", False),
        3: ("traceState", "text", False),
        4: _ATTRIBUTES,
        5: _DROPPED,
        6: ("flags", "fixed32", False),
    },
    "Status": {2: ("message", "text", False), 3: ("code", "enum", False)},
    "KeyValue": {1: ("key", "text", False), 2: ("value", "AnyValue", False)},
    "AnyValue": {
        1: ("stringValue", "text", False),
        2: ("boolValue", "bool", False),
        3: ("intValue", "int64", False),
        4: ("doubleValue", "double", False),
        5: ("arrayValue", "ArrayValue", False),
        6: ("kvlistValue", "KeyValueList", False),
        7: ("bytesValue", "bytes", False),
    },
    "ArrayValue": {1: ("values", "AnyValue", True)},
    "KeyValueList": {1: ("values", "KeyValue", True)},
}
_ENUMS = {"SPAN_KIND_INTERNAL": 1, "SPAN_KIND_SERVER": 2, "SPAN_KIND_CLIENT": 3, "SPAN_KIND_PRODUCER": 4}
_ENUMS |= {"SPAN_KIND_CONSUMER": 5, "STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2}
_WIRE = {"varint": 0, "enum": 0, "bool": 0, "int64": 0, "fixed64": 1, "double": 1, "fixed32": 5}
_DEEPEST = 64  # values inside values
Request = dict[str, Any]


class WireError(ValueError):
    """The bytes are not the message they should be."""


# ------------------------------------------------------------------------------------------------------------- files


def is_json(path: Path) -> bool:
    text = head(path)
    return text.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{" and b'"resourceSpans"' in text


def is_protobuf(path: Path) -> bool:
    """Whether the first request of a file names a trace and a span as OTLP does."""
    start = head(path)
    return bool(_shaped(start) or (len(start) > 4 and _shaped(start[4:]) and _length(start) < MOST))


def _length(data: bytes) -> int:
    return int(struct.unpack_from(">I", data)[0])


def _shaped(data: bytes) -> bool:
    """resource_spans { … scope_spans { … spans { trace_id: 16 bytes, span_id: 8 bytes"""
    if data[:1] != b"\x0a":
        return False
    at = data.find(b"\x0a\x10")
    while at >= 0:
        if data[at + 18 : at + 20] == b"\x12\x08":
            return True
        at = data.find(b"\x0a\x10", at + 1)
    return False


def requests(path: Path, problems: list[Problem]) -> Iterator[Request]:
    """The requests of a file, in their order; what is cut or no request becomes a problem."""
    return _json_requests(path, problems) if is_json(path) else _protobuf_requests(path, problems)


def _json_requests(path: Path, problems: list[Problem]) -> Iterator[Request]:
    text = Text(path)
    damaged, waiting = 0, ""
    for line in text.lines():
        if not line.strip():
            continue
        try:
            request = json.loads(waiting + line)
        except (ValueError, RecursionError):
            if waiting or not damaged:  # a document over several lines, or a line that was cut
                waiting += line + "\n"
                if len(waiting) > MOST:
                    raise FormatError(path, f"holds a request of more than {MOST >> 20} MB") from None
            damaged += 1
            continue
        if waiting:
            waiting, damaged = "", 0
        if isinstance(request, dict):
            yield request
    problems += text.problems
    if damaged:
        yield from _lines_alone(waiting, path, problems)


def _lines_alone(text: str, path: Path, problems: list[Problem]) -> Iterator[Request]:
    """Lines of which the first was cut: each on its own."""
    lost = 0
    for line in text.splitlines():
        try:
            request = json.loads(line)
        except (ValueError, RecursionError):
            lost += 1
            continue
        if isinstance(request, dict):
            yield request
    if lost:
        problems.append(Problem("truncated", f"{path}: {lost} lines are cut or no JSON, and were left out"))


def _protobuf_requests(path: Path, problems: list[Problem]) -> Iterator[Request]:
    with opened(path) as file:
        data = file.read(MOST + 1)
    if len(data) > MOST:
        raise FormatError(path, f"holds more than {MOST >> 20} MB, which is too much for this format")
    pieces = [(0, data)] if _shaped(data) else _framed(data, path, problems)
    for at, piece in pieces:
        try:
            yield decode(piece)
        except WireError as error:
            problems.append(Problem("truncated", f"{path}: the request at byte {at} is cut or damaged ({error})"))


def _framed(data: bytes, path: Path, problems: list[Problem]) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(data):
        length = _length(data[at:])
        if at + 4 + length > len(data):
            break
        yield at + 4, data[at + 4 : at + 4 + length]
        at += 4 + length
    if at < len(data):
        problems.append(Problem("truncated", f"{path}: ends in the middle of a request, at byte {at}"))


# ---------------------------------------------------------------------------------------------------------- protobuf


def decode(data: bytes, message: str = "TracesData", depth: int = 0) -> Request:
    """A message in OTLP's JSON form: ids in hexadecimal digits, 64-bit integers as text."""
    if depth > _DEEPEST:
        raise WireError("nested too deeply")
    fields, content, at = MESSAGES[message], Request(), 0
    while at < len(data):
        tag, at = _varint(data, at)
        raw, at = _field(data, at, tag & 7)
        known = fields.get(tag >> 3)
        if known is None:
            continue
        name, kind, repeated = known
        if _WIRE.get(kind, 2) != tag & 7:
            raise WireError(f"{message}.{name} is not of its kind")
        value = _value(raw, kind, depth)
        if repeated:
            content.setdefault(name, []).append(value)
        else:
            content[name] = value
    return content


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise WireError("an integer is cut")


def _field(data: bytes, at: int, wire: int) -> tuple[Any, int]:
    if wire == 0:
        return _varint(data, at)
    if wire not in (1, 2, 5):
        raise WireError("a field is of an unknown kind")
    size = {1: 8, 5: 4}.get(wire, 0)
    if wire == 2:
        size, at = _varint(data, at)
    if at + size > len(data):
        raise WireError("a field is cut")
    return data[at : at + size], at + size


def _value(raw: Any, kind: str, depth: int) -> Any:
    if kind in MESSAGES:
        return decode(raw, kind, depth + 1)
    if kind == "text":
        return raw.decode("utf-8", "replace")
    if kind == "id":
        return raw.hex()
    if kind == "bytes":
        return base64.b64encode(raw).decode()
    if kind == "fixed64":
        return str(struct.unpack("<Q", raw)[0])
    if kind == "fixed32":
        return struct.unpack("<I", raw)[0]
    if kind == "double":
        return struct.unpack("<d", raw)[0]
    if kind == "int64":
        return str(raw - (1 << 64) if raw >= 1 << 63 else raw)
    return bool(raw) if kind == "bool" else raw


def encode(content: Mapping[str, Any], message: str = "TracesData") -> bytes:
    """The bytes of a message in its JSON form; what is of no use in a field is left out."""
    encoded = bytearray()
    for number, (name, kind, repeated) in MESSAGES[message].items():
        if name not in content:
            continue
        values: Iterable[Any] = content[name] if repeated else (content[name],)
        for value in values if isinstance(values, list | tuple) else ():
            try:
                encoded += _encoded(number, kind, value)
            except (TypeError, ValueError, OverflowError, AttributeError, struct.error, binascii.Error):
                continue
    return bytes(encoded)


def _encoded(number: int, kind: str, value: Any) -> bytes:
    wire = _WIRE.get(kind, 2)
    tag = varint(number << 3 | wire)
    if kind in ("fixed64", "fixed32", "double"):
        form = {"fixed64": "<Q", "fixed32": "<I", "double": "<d"}[kind]
        return tag + struct.pack(form, float(value) if kind == "double" else int(value))
    if wire == 0:
        whole = _ENUMS.get(value, 0) if isinstance(value, str) and kind == "enum" else int(value)
        return tag + varint(whole & (1 << 64) - 1)
    if kind in MESSAGES:
        body = encode(value, kind)
    elif kind == "text":
        body = value.encode("utf-8", "replace")
    else:
        body = id_bytes(value) if kind == "id" else base64.b64decode(value)
    return tag + varint(len(body)) + body


def id_bytes(text: str) -> bytes:
    """The bytes of an id: hexadecimal digits, or base64 as writers that do not know OTLP's own rule have it."""
    return bytes.fromhex(text) if len(text) in (16, 32) else base64.b64decode(text)


def number(value: Any) -> float | None:
    """An attribute's value if it is a finite number."""
    if not isinstance(value, dict):
        return None
    for name in ("intValue", "doubleValue"):
        if name in value and not isinstance(value[name], bool):
            try:
                parsed = float(value[name])
            except (TypeError, ValueError):
                return None
            return parsed if abs(parsed) < 1e300 else None
    return None


def attributes(of: Any) -> dict[str, Any]:
    """The attributes of a resource, span or event: key → value in its JSON form."""
    listed = of.get("attributes") if isinstance(of, dict) else None
    pairs = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return {one["key"]: one.get("value") for one in pairs if isinstance(one.get("key"), str)}
