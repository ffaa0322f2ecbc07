"""Credentials for servers: from the environment or a file that only its owner can read, never from the command line.

::

    WATTRIBUTE_PUSH_USER and WATTRIBUTE_PUSH_PASSWORD, or WATTRIBUTE_PUSH_TOKEN     when one server is pushed to
    a TOML file (--secrets, WATTRIBUTE_PUSH_SECRETS, ~/.config/wattribute/secrets.toml), mode 0600:

        ["metrics.example.org:8086"]
        token = "…"                    # or: user = "…" and password = "…"

What is found stays in memory: it is handed to the pushing process through a pipe, and stands in no recording or spool.
"""

from __future__ import annotations

import base64
import os
import stat
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ...errors import OptionError
from .target import Target

_PREFIX = "WATTRIBUTE_PUSH_"


def headers(
    targets: Sequence[Target], file: str | os.PathLike[str] | None = None, environment: Mapping[str, str] = os.environ
) -> list[dict[str, str]]:
    """The Authorization header of each target, {} where nothing is known; raises OptionError."""
    known = _file(file, environment)
    own = {name: environment[_PREFIX + name.upper()] for name in ("user", "password", "token")
           if environment.get(_PREFIX + name.upper())}  # fmt: skip
    servers = {_server(target) for target in targets}
    if own and len(servers - known.keys()) > 1:
        raise OptionError(
            f"{_PREFIX}* is one secret but there are several servers, and each would see it; name each one's in a file"
        )
    return [_header(target, known.get(_server(target), own)) for target in targets]


def _server(target: Target) -> str:
    return f"{target.host}:{target.port}"


def _header(target: Target, secret: Mapping[str, Any]) -> dict[str, str]:
    values = {name: str(secret[name]).strip() for name in ("user", "password", "token") if name in secret}
    if any(not value.isprintable() for value in values.values()):
        raise OptionError(f"the secret for {_server(target)} has characters that cannot be sent")
    if "token" in values:
        return {"Authorization": f"{'Token' if target.protocol == 'influx2' else 'Bearer'} {values['token']}"}
    if "user" in values or "password" in values:
        pair = f"{values.get('user', '')}:{values.get('password', '')}"
        return {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}
    return {}


def _file(given: str | os.PathLike[str] | None, environment: Mapping[str, str]) -> dict[str, Mapping[str, Any]]:
    """The sections of the file that was named, or of the usual one where it is."""
    named = given or environment.get(_PREFIX + "SECRETS")
    usual = Path(environment.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"), "wattribute", "secrets.toml")
    path = Path(named) if named else usual
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(1 << 20)
    except OSError as error:
        if not named:
            return {}
        raise OptionError(f"{path}: {error.strerror}") from None
    if stat.S_ISREG(mode) and mode & 0o077:
        raise OptionError(f"{path}: others can read the secrets in it; run: chmod 600 {path}")
    tomllib: Any = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        tables: dict[str, Mapping[str, Any]] = tomllib.loads(content.decode())
    except ValueError as error:  # its text may quote a line, so it is not shown
        place = str(error).rpartition("(")[2].rstrip(")")
        raise OptionError(f'{path} is not TOML ({place}); write: ["HOST:PORT"] and below it token = "…"') from None
    if not all(isinstance(section, dict) for section in tables.values()):
        raise OptionError(f'{path}: secrets belong to a server; write ["HOST:PORT"] above them')
    return tables
