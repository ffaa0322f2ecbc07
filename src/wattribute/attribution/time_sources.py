"""Time as a quantity: every thread and every stream has its own seconds, which are not shared.

The clock of a host's threads (and that of its streams) is a device whose counter rises by one second per second for
each of its users. measured = users × the length of the recording, self = time in spans without callees, idle =
the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ..errors import NoDataError, OptionError
from ..model import Device, Problem, Question, Recording, Signal

KIND = "time"
HOW_TO_ADD = "join a power log (--signals FILE), or measure with `wattribute run`"
_DEVICES = {"cpu": ("threads", ("host",)), "gpu": ("streams", ("kernels", "copies"))}


def clocks(
    recording: Recording, question: Question, there: Sequence[int]
) -> list[tuple[Device, Signal, str, tuple[int, ...]]]:
    """Per host and kind of location: the device, its clock, whose spans count, and its users."""
    if question.method == "solve":
        raise OptionError("method 'solve' estimates power; time is known exactly: leave it out")
    if not there:
        raise NoDataError(f"no spans and no energy in this recording: nothing to attribute; {HOW_TO_ADD}")
    signal = _clock(recording, there)
    words = [word for view in question.views for word in view]
    entries = []
    for host in dict.fromkeys(recording.location_host(row) for row in there):
        for kind, (name, of) in _DEVICES.items():
            counted = [word for word in of if not words or word in words]
            here = (recording.locations.kind[row] == kind and recording.location_host(row) == host for row in there)
            users = tuple(row for row, mine in zip(there, here, strict=True) if mine)
            if users and counted:
                entries.append((Device(name, KIND, host), signal, ",".join(counted), users))
    if not entries:
        raise NoDataError(f"no location has spans of {', '.join(words)}; try another --of")
    return entries


def not_metered(recording: Recording) -> Problem:
    """Report that rows are seconds, and how to get joules."""
    names = ", ".join(dict.fromkeys(signal.name for signal in recording.signals))
    here = f"; metrics here, for --metric RE or --metric-kind RE=counter:uJ: {names}" if names else ""
    return Problem("no-energy", f"no energy was metered, so rows are seconds; for joules {HOW_TO_ADD}{here}")


def _clock(recording: Recording, there: Sequence[int]) -> Signal:
    last = recording.clock.length_ticks
    if last <= 0:
        last = max((int(recording.spans.spans(row).end.max(initial=0)) for row in there), default=0)
    ends = np.array([0, max(1, last)], np.int64)
    return Signal("time", "counter", "s", ends, ends, Fraction(1, recording.clock.ticks_per_s))
