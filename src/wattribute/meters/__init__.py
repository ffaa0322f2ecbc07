"""HARDWARE → readings: one module per meter, named as its plug-in. ``choose`` makes the meters a run will use.

``WATTRIBUTE_METERS`` (``rapl:/path,model``) says which meters a program has, and their roots; without it every plug-in
is tried on the machine's own sensors.

A meter offers channels and reads raw values with their times; recorders turn these into signals. Modules here run in
the sampler's process and import neither NumPy nor anything that is not needed to read.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..errors import MeterError, OptionError, WattributeError
from ..plugins import Availability, Meter, meters

Clock = Callable[[], int]
VARIABLE = "WATTRIBUTE_METERS"


@dataclass(frozen=True)
class MeterRefusal:
    """A meter that cannot be used here, and why."""

    name: str
    availability: Availability


def installed() -> list[str]:
    """The meters to try when none is named: those of ``WATTRIBUTE_METERS``, else every plug-in."""
    specs = _given()
    known = meters.names()
    for spec in specs:
        name = spec.partition(":")[0]
        if name not in known:
            raise OptionError(f"{VARIABLE}: {OptionError.unknown('meter', name, known)}")
    return specs or known


def _given() -> list[str]:
    return [spec for word in os.environ.get(VARIABLE, "").split(",") if (spec := word.strip())]


def make(spec: str, clock: Clock = time.monotonic_ns) -> Meter:
    """The meter called ``name`` or ``name:root``; without a root the one that ``WATTRIBUTE_METERS`` gives it."""
    name, _, root = spec.partition(":")
    root = root or next((given for at, _, given in (word.partition(":") for word in _given()) if at == name), "")
    return meters.get(name)(root or None, clock)  # type: ignore[call-arg]  # a protocol cannot say how it is made


def choose(
    specs: Sequence[str], clock: Clock = time.monotonic_ns, opening: Callable[[str], None] = lambda name: None
) -> tuple[list[Meter], list[MeterRefusal]]:
    """The meters named, or (none named) all that work here; a named one that does not work is an error.

    ``opening`` is called with the name of each before it is opened, and with "" at the end.
    """
    ready: list[Meter] = []
    refused: list[MeterRefusal] = []
    for spec in specs or installed():
        opening(spec)
        try:
            meter = make(spec, clock)
            availability = meter.available()
        except Exception as error:  # of a plug-in, too: the others are there all the same
            if isinstance(error, WattributeError) and specs:
                raise
            if specs:
                raise MeterError(f"meter {spec!r} failed: {error}") from error
            refused.append(MeterRefusal(spec, Availability(False, str(error))))
            continue
        if availability.ok:
            ready.append(meter)
        elif specs:
            raise MeterError(f"meter {spec!r} cannot be used: {explain(availability)}")
        else:
            refused.append(MeterRefusal(spec, availability))
    opening("")
    return ready, refused


def explain(availability: Availability) -> str:
    """Format why a meter is unavailable, and the command that fixes it, as one line."""
    return availability.reason + (f"; run: {availability.fix}" if availability.fix else "")
