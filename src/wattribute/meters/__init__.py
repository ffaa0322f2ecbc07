"""HARDWARE → readings: one module per meter, named as its plug-in. ``choose`` makes the meters a run will use.

A meter offers channels and reads raw values with their times; recorders turn these into signals. Modules here run in
the sampler's process and import neither NumPy nor anything that is not needed to read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..errors import MeterError, WattributeError
from ..plugins import Availability, Meter, meters

Clock = Callable[[], int]


@dataclass(frozen=True)
class Refused:
    """A meter that cannot be used here, and why."""

    name: str
    availability: Availability


def make(spec: str, clock: Clock = time.monotonic_ns) -> Meter:
    """The meter called ``name`` or ``name:root``."""
    name, _, root = spec.partition(":")
    return meters.get(name)(root or None, clock)  # type: ignore[call-arg]  # a protocol cannot say how it is made


def choose(specs: Sequence[str], clock: Clock = time.monotonic_ns) -> tuple[list[Meter], list[Refused]]:
    """The meters named, or (none named) all that work here; a named one that does not work is an error."""
    ready: list[Meter] = []
    refused: list[Refused] = []
    for spec in specs or meters.names():
        try:
            meter = make(spec, clock)
            availability = meter.available()
        except Exception as error:  # of a plug-in, too: the others are there all the same
            if isinstance(error, WattributeError) and specs:
                raise
            if specs:
                raise MeterError(f"meter {spec!r} failed: {error}") from error
            refused.append(Refused(spec, Availability(False, str(error))))
            continue
        if availability.ok:
            ready.append(meter)
        elif specs:
            raise MeterError(f"meter {spec!r} cannot be used: {told(availability)}")
        else:
            refused.append(Refused(spec, availability))
    return ready, refused


def told(availability: Availability) -> str:
    """Why not, and the command that would mend it, in one line."""
    return availability.reason + (f"; run: {availability.fix}" if availability.fix else "")
