"""Targets of points: the addresses that users type, parsed. No NumPy in here: a run waits for this import.

::

    victoria+http://HOST[:8428][/PREFIX][?format=influx|prometheus|csv]
    influx+http://HOST[:8086][/DATABASE][?rp=POLICY&schema=fields|milliwatts]
    influx2+https://HOST[:PORT]/ORG/BUCKET
    otlp+http://HOST[:4318][/PREFIX][?names=semconv|wattribute]

``http`` without a port means the server's usual one, ``https`` 443. Names and passwords are refused here: an address is
seen in process lists, histories and logs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit

from ...errors import OptionError

PORTS = {"victoria": 8428, "influx": 8086, "influx2": 8086, "otlp": 4318}
_OPTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "victoria": {"format": ("influx", "prometheus", "csv")},
    "influx": {"rp": (), "schema": ("fields", "milliwatts")},
    "influx2": {},
    "otlp": {"names": ("semconv", "wattribute")},
}
_DATABASE = "wattribute"
_SECRET = "set WATTRIBUTE_PUSH_USER and WATTRIBUTE_PUSH_PASSWORD, or WATTRIBUTE_PUSH_TOKEN, or name a file in --secrets"


@dataclass(frozen=True)
class Target:
    """A server, and the database or path on it that is written."""

    protocol: str
    tls: bool
    host: str
    port: int
    path: str = ""  # decoded, without slashes at its ends
    options: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def name(self) -> str:
        """The address as a user knows it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        path = f"/{self.path}" if self.path else ""
        return f"{self.protocol}+{'https' if self.tls else 'http'}://{host}:{self.port}{path}"


@dataclass(frozen=True)
class Request:
    """A request to a target."""

    path: str
    type: str  # of the content
    body: bytes  # compressed
    points: int


def parse(text: str) -> Target:
    """Parse an address; raises OptionError."""
    scheme, separator, rest = text.partition("://")
    protocol, _, transport = scheme.partition("+")
    if not separator or transport not in ("http", "https"):
        known = ", ".join(f"{name}+http://…" for name in PORTS)
        raise OptionError(f"{_shown(text)!r} is not an address to push to; known: {known} (or +https)")
    if protocol not in PORTS:
        raise OptionError.unknown("protocol", protocol, PORTS)
    if "@" in rest.split("/")[0].split("?")[0]:
        raise OptionError(f"{_shown(text)}: an address with a name or password in it is seen by others; {_SECRET}")
    try:
        parts = urlsplit(f"{transport}://{rest}")
        port = parts.port
    except ValueError as error:
        raise OptionError(f"{_shown(text)!r} is not an address: {error}") from None
    if not parts.hostname:
        raise OptionError(f"{_shown(text)!r} names no host; write {protocol}+{transport}://HOST:{PORTS[protocol]}")
    path = _path(protocol, unquote(parts.path).strip("/"), text)
    usual = 443 if transport == "https" else PORTS[protocol]
    return Target(protocol, transport == "https", parts.hostname, port or usual, path, options(protocol, parts.query))


def _path(protocol: str, path: str, text: str) -> str:
    if protocol == "influx":
        return path or _DATABASE
    if protocol == "influx2" and len([part for part in path.split("/") if part]) != 2:
        raise OptionError(f"{_shown(text)!r} must name organisation and bucket: influx2+https://HOST/ORG/BUCKET")
    return path


def options(protocol: str, query: str) -> dict[str, str]:
    """What stands behind the question mark of an address, checked."""
    known, given = _OPTIONS[protocol], {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name.lower() in ("token", "password", "user", "username", "u", "p", "auth", "api_key"):
            raise OptionError(f"{name}=… in an address is seen by others; {_SECRET}")
        if name not in known:
            raise OptionError.unknown(f"option of {protocol}", name, known or ("none",))
        if known[name] and value not in known[name]:
            raise OptionError.unknown(name, value, known[name])
        given[name] = value
    return given


def _shown(text: str) -> str:
    """An address for messages, without what may be a secret."""
    before, at, after = text.partition("?")[0].rpartition("@")
    return f"{before.partition('://')[0]}://…@{after}" if at else after
