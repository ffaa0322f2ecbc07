"""Live sources of intensity, by the half hour or hour: Great Britain's regions, Electricity Maps.

Each is a function (web, zone, start, end) → steps that raises WebError for anything it cannot use; :func:`profile`
puts the cache before and after it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from ..errors import OptionError
from .cache import Cache
from .intensity_curve import Profile, Step, checked, parse_time
from .web import Web, WebError

GB_URL = "https://api.carbonintensity.org.uk"
MAPS_URL = "https://api.electricitymaps.com"
TOKEN = "ELECTRICITYMAPS_TOKEN"
_HALF_HOUR_NS, _HOUR_NS = 1800 * 10**9, 3600 * 10**9
_GB_MOST, _MAPS_MOST = timedelta(days=13), timedelta(days=9)  # the servers refuse more than 14 and 10 days at once


def gb(web: Web, zone: str, start_ns: int, end_ns: int) -> list[Step]:
    """Half-hourly intensities of a zone of Great Britain (``zone`` is "GB" or "GB-1" … "GB-17")."""
    base = os.environ.get("WATTRIBUTE_GB_URL", GB_URL).rstrip("/")
    number = "18" if zone == "GB" else zone[3:]
    steps: list[Step] = []
    for low, high in _windows(start_ns, end_ns, _HALF_HOUR_NS, _GB_MOST):
        url = f"{base}/regional/intensity/{low:%Y-%m-%dT%H:%MZ}/{high:%Y-%m-%dT%H:%MZ}/regionid/{number}"
        steps += _understood(_gb_steps, web.json(url))
    return steps


def _gb_steps(answer: Any) -> list[Step]:
    data = answer["data"]
    slots = (data[0] if isinstance(data, list) else data)["data"]
    steps = []
    for slot in slots:
        intensity = slot["intensity"]
        figure = intensity.get("actual")  # regions only have a forecast so far
        if figure is None:
            figure = intensity["forecast"]
        steps.append(Step(parse_time(slot["from"]), parse_time(slot["to"]), checked(float(figure)), "gb"))
    return steps


def electricitymaps(web: Web, zone: str, start_ns: int, end_ns: int) -> list[Step]:
    """Hourly intensities of a zone; the last 24 hours where the token does not allow the past."""
    from urllib.parse import urlencode

    base = os.environ.get("WATTRIBUTE_ELECTRICITYMAPS_URL", MAPS_URL).rstrip("/") + "/v3/carbon-intensity"
    steps: list[Step] = []
    for low, high in _windows(start_ns, end_ns, _HOUR_NS, _MAPS_MOST):
        query = {"zone": zone, "start": f"{low:%Y-%m-%dT%H:%M:%SZ}", "end": f"{high:%Y-%m-%dT%H:%M:%SZ}"}
        try:
            answer = web.json(f"{base}/past-range?{urlencode(query)}", {"auth-token": token()})
        except WebError as error:
            if error.status not in (401, 403, 404):
                raise
            answer = web.json(f"{base}/history?{urlencode({'zone': zone})}", {"auth-token": token()})
        steps += _understood(_maps_steps, answer)
    return steps


def token() -> str:
    """The user's token for Electricity Maps."""
    text = os.environ.get(TOKEN, "").strip()
    if not text:
        raise OptionError(f"Electricity Maps needs a token: set {TOKEN}, or use --intensity yearly")
    return text


def _maps_steps(answer: Any) -> list[Step]:
    points = answer["data"] if "data" in answer else answer["history"]
    steps = []
    for point in points:
        if point["carbonIntensity"] is not None:
            start = parse_time(point["datetime"])
            steps.append(Step(start, start + _HOUR_NS, checked(float(point["carbonIntensity"])), "electricitymaps"))
    return steps


def _understood(steps: Callable[[Any], list[Step]], answer: Any) -> list[Step]:
    try:
        return steps(answer)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise WebError(f"unexpected answer ({type(error).__name__}: {error})") from error


def _windows(start_ns: int, end_ns: int, step_ns: int, most: timedelta) -> list[tuple[datetime, datetime]]:
    """The time between two moments, widened to whole steps, in pieces a server accepts."""
    low, high = start_ns // step_ns * step_ns, -(-end_ns // step_ns) * step_ns
    at, end = (datetime.fromtimestamp(ns // 10**9, timezone.utc) for ns in (low, max(high, low + step_ns)))
    pieces = []
    while at < end:
        pieces.append((at, min(at + most, end)))
        at += most
    return pieces


SOURCES: dict[str, Callable[[Web, str, int, int], list[Step]]] = {"gb": gb, "electricitymaps": electricitymaps}


def profile(
    source: str, zone: str, start_ns: int, end_ns: int, web: Web, cache: Cache, offline: bool
) -> tuple[Profile, Sequence[str]]:
    """Fetch a zone's profile between two moments; missing parts stay gaps, with the reasons."""
    known = Profile.of(cache.load(source, zone, start_ns, end_ns))
    if known.covers(start_ns, end_ns):
        return known, ()
    if offline:
        reason = f"{source} was not asked (offline)"
    else:
        try:
            fresh = SOURCES[source](web, zone, start_ns, end_ns)
        except WebError as error:
            reason = f"{source} could not be asked: {error}"
        else:
            cache.save(source, zone, fresh)
            known = Profile.of([*fresh, *known.steps])  # a free token only knows the last day
            return known, () if known.covers(start_ns, end_ns) else (f"{source} does not cover the whole run",)
    old = Profile.of(cache.load(source, zone, start_ns, end_ns, stale=True))
    return old, (reason, "older answers from the cache are used") if old.steps else (reason,)
