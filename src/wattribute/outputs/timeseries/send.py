"""A finished recording → a server, with its true times: ``wattribute.send`` and ``export RECORDING --to URL``.

Points are the same every time, so a transfer that was broken off can simply be repeated. The plug-ins "victoria",
"influx", "influx2", "otlp" and "openmetrics" are this module: the address says which.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ...backoff import Backoff
from ...errors import NoDataError, OptionError, OutputError, names_keywords
from ...reading import as_recording
from . import target as targets

if TYPE_CHECKING:
    from ...model import Attribution, Recording
    from .client import Client
    from .series import Series
    from .target import Request

FILES = ("openmetrics:", "influx:")  # what stands before a file in place of an address
TRIES = 5
_PAUSE_S = 0.5


@names_keywords
def send(
    recording: Recording | str | os.PathLike[str],
    to: str,
    *,
    start: str | int | None = None,
    secrets: str | os.PathLike[str] | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Send all that was metered to a server, or write it to a file, and return the number of points.

    Files are ``openmetrics:FILE`` and ``influx:FILE``, line protocol (``influx:FILE?schema=milliwatts``).
    ``start`` is the wall clock at the beginning of a recording that has none; ``secrets`` a file that only its owner
    can read. ``sleep`` waits between attempts. Raises OptionError for a wrong address and OutputError for a server that
    does not take it.
    """
    target = None if to.startswith(FILES) else targets.parse(to)
    recording = as_recording(recording)
    epoch_ns = _epoch_ns(recording, start)
    from .series import bill_series, points, series

    all_series = [*series(recording, epoch_ns), *bill_series(recording, epoch_ns)]
    if not all_series:
        raise NoDataError("there is no energy, power or other reading of a device to send")
    if target is None:
        _write(all_series, to)
        return points(all_series)
    from .client import Client
    from .protocols import requests
    from .secrets import headers

    client = Client(target, headers([target], secrets)[0])
    try:
        for request in requests(all_series, target):
            _post(client, request, sleep)
    finally:
        client.close()
    return points(all_series)


def write(attribution: Attribution, target: str, **options: Any) -> None:
    """Send the recording behind an attribution; the ``write`` of the output plug-ins."""
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

    backoff = Backoff(_PAUSE_S)
    for attempt in range(1, TRIES + 1):
        try:
            client.post(request)
            return
        except SendError as error:
            if not error.again or attempt == TRIES:
                raise OutputError(f"{client.target.name}: {error}") from error
            sleep(backoff.pause_s(error.wait_s))


def _write(series: list[Series], to: str) -> None:
    from ...files import replacing

    protocol, _, path = to.partition(":")
    if protocol == "openmetrics":
        from .openmetrics import pieces as encode
    else:
        from .protocols import line_protocol_pieces

        path, _, query = path.partition("?")
        encode = partial(line_protocol_pieces, options=targets.options(protocol, query))
    if not path:
        raise OptionError(
            f"{protocol}: needs a file, as in --to {protocol}:run.{'lp' if protocol == 'influx' else 'om'}"
        )
    with replacing(path) as file:
        for piece in encode(series):
            file.write(piece.encode())
