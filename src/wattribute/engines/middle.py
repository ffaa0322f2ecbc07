"""Access to alignment and attribution for outputs and views: curves, users, labels, checks.

Re-exported by ``engines``, the only room of the middle that views, outputs, carbon, comparison, sessions and the
command line import from; import-linter checks it.
"""

from __future__ import annotations

from ..alignment.energy import Energy, energy, tidy, unwrapped
from ..alignment.merge import merge
from ..alignment.response import lines as sensor_lines
from ..alignment.sanity import Check, examine
from ..alignment.topology import Topology
from ..attribution.bill import (
    Bill,
    Division,
    bill_curves,
    bill_of,
    divide,
    division_of,
    scope_of,
    undivided_reason,
    usage_of,
)
from ..attribution.calibration import Calibration, calibrate
from ..attribution.clip import SpanWindow as ClippedSpans
from ..attribution.floors import REST, floor_of, utilisation_of
from ..attribution.frame_keys import frame_mask
from ..attribution.join import DeviceCurves
from ..attribution.join import masks as location_masks
from ..attribution.ledger import MeteredDevice, account
from ..attribution.measured import curve_bounds, span_bounds, used_range
from ..attribution.row_selection import location_mask
from ..attribution.select import chosen
from ..attribution.time_sources import HOW_TO_ADD
from ..errors import NoDataError
from ..model import Problem, Question, Recording
from ..sensors import known_lines

__all__ = [
    "HOW_TO_ADD",
    "REST",
    "Bill",
    "Calibration",
    "Check",
    "ClippedSpans",
    "DeviceCurves",
    "Division",
    "Energy",
    "MeteredDevice",
    "Topology",
    "bill_curves",
    "bill_of",
    "calibrate",
    "curve_bounds",
    "device_division",
    "energy",
    "examine",
    "frame_mask",
    "known_division",
    "ledger",
    "location_mask",
    "location_masks",
    "measured_j",
    "merge",
    "metered_devices",
    "own_curve",
    "scope_of",
    "sensor_lines",
    "span_bounds",
    "tidy",
    "undivided_reason",
    "unwrapped",
    "usage_of",
    "used_range",
    "utilisation_of",
]


def ledger(recording: Recording, question: Question | None = None) -> tuple[list[MeteredDevice], list[Problem]]:
    """What was metered, one energy source per device, with each one's entry; rests of nodes behind; and problems."""
    question = question or Question()
    known = sensor_lines(recording, known_lines(question.sensors))
    rows, replaced = chosen(recording, question, known)
    devices, problems = account(recording, rows, question.integrate, known)
    return devices, [*replaced, *problems]


def measured_j(recording: Recording) -> float | None:
    """The joules of the counted devices, of a run those in the life of its command; None where none was metered."""
    try:
        counted = [one for one in metered_devices(recording) if one.entry.counted]
    except NoDataError:
        return None
    return sum(one.energy(recording).between(*recording.life).measured for one in counted) if counted else None


def metered_devices(recording: Recording, question: Question | None = None) -> list[MeteredDevice]:
    """The devices of the ledger."""
    return ledger(recording, question)[0]


def device_division(recording: Recording, device: MeteredDevice, question: Question | None = None) -> Division:
    """How a metered device is divided between the command, other processes and static energy."""
    return division_of(recording, device.device, question or Question(), lambda: device.energy(recording))


def known_division(recording: Recording, device: MeteredDevice) -> Division | None:
    """How a device is divided, without its usage, if its floor does not depend on its readings; else None."""
    floor = floor_of(recording, device.device, (), None, None)
    return None if floor is None else Division(floor)


def own_curve(
    recording: Recording,
    device: MeteredDevice,
    question: Question | None = None,
    begin: int | None = None,
    end: int | None = None,
) -> Energy:
    """The joules(t) of a device that a recording's scope gives to the command: all, or its part of them."""
    whole = device.energy(recording).between(begin, end)
    how = device_division(recording, device, question)
    return whole if how.usage is None else divide(whole, how, recording.clock.ticks_per_s).own
