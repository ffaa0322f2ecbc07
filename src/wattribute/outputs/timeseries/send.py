"""A finished recording → a server, with its true times: ``wattribute.send`` and ``export RECORDING --to URL``.

Points are the same every time, so a transfer that was broken off can simply be repeated. The plug-ins "victoria",
"influx", "influx2", "otlp" and "openmetrics" are this module: the address says which.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...errors import NoDataError, OptionError, OutputError
from . import target as targets

if TYPE_CHECKING:
    from ...model import Attribution, Recording
    from .client import Client
    from .target import Request

FILE = "openmetrics:"
TRIES = 5
_PAUSE_S = 0.5


def send(
    recording: Recording,
    to: str,
    *,
    start: str | int | None = None,
    secrets: str | os.PathLike[str] | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Send all that was metered to a server (or write it to ``openmetrics:FILE``); gives the number of points.

    ``start`` is the wall clock at the beginning of a recording that has none; ``secrets`` a file that only its owner
    can read. Raises OptionError for a wrong address and OutputError for a server that does not take it.
    """
    target = None if to.startswith(FILE) else targets.parse(to)
    epoch_ns = _epoch_ns(recording, start)
    from .series import points, series

    told = list(series(recording, epoch_ns))
    if not told:
        raise NoDataError("there is no energy, power or other reading of a device to send")
    if target is None:
        _write(told, to.removeprefix(FILE))
        return points(told)
    from .client import Client
    from .protocols import requests
    from .secrets import headers

    client = Client(target, headers([target], secrets)[0])
    try:
        for request in requests(told, target):
            _post(client, request, sleep)
    finally:
        client.close()
    return points(told)


def write(attribution: Attribution, target: str, **options: Any) -> None:
    """The output plug-ins: the recording behind an attribution."""
    send(attribution.recording, target, **options)


def _epoch_ns(recording: Recording, start: str | int | None) -> int:
    from ...carbon.recordings import moment

    if start is not None:
        return moment(start)
    if recording.clock.epoch_ns is None:
        raise OptionError("this recording has no wall clock; say when it began: --start 2024-09-04T14:00Z")
    return recording.clock.epoch_ns


def _post(client: Client, request: Request, sleep: Callable[[float], None]) -> None:
    from .client import SendError

    pause_s = _PAUSE_S
    for attempt in range(1, TRIES + 1):
        try:
            client.post(request)
            return
        except SendError as error:
            if not error.again or attempt == TRIES:
                raise OutputError(f"{client.target.name}: {error}") from error
            sleep(max(pause_s, min(error.wait_s, 30.0)))
            pause_s *= 2


def _write(told: list[Any], path: str) -> None:
    from ..files import replacing
    from .openmetrics import pieces

    if not path:
        raise OptionError("openmetrics: needs a file: --to openmetrics:run.om")
    with replacing("/dev/stdout" if path == "-" else path) as file:
        for piece in pieces(told):
            file.write(piece.encode())
