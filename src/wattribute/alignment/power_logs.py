"""A profile and power logs of other tools → one recording: ``read`` is the front door's, and knows ``signals``.

A log's clock is laid on the trace's by the first of these that both have:

1. the same boot (or one counts from some boot and the other's readings lie in its time): exact,
2. wall clocks, whose errors add up (one host has one, sure to 1 ms); a log that names no zone of time may be off by
   quarters of an hour: that is corrected,
3. marks: spans of one name in both (a column ``mark`` of a table makes them); their spread is the error.

``offset`` seconds are then added to the log's times; without any of the three the log begins that long after the trace.
How far times may still be off is the signals' ``clock_error_s``, which widens the bounds. A profile without a timeline
(cProfile, folded stacks) gets the log's mean power instead, marked as an estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ..errors import NoDataError
from ..model import Problem, Recording, Signal
from .clock_fit import by_edges
from .energy import energy
from .merge import UNKNOWN_NS, about_clock, shifted

_NS = 1_000_000_000
_ZONE_NS = 900 * _NS  # zones of time differ by quarters of an hour
_MAX_ZONES = 14 * 4  # quarters of an hour: no zone is further from UTC
ONE_CLOCK_NS = 1_000_000  # how far the wall clock of a host may have been moved while both were written


def join(recording: Recording, log: Recording, offset: float | None = None, name: str = "the log") -> Recording:
    """The recording with the readings of a power log on its own timeline; ``name`` is for messages."""
    if not any(len(signal) for signal in log.signals):
        raise NoDataError(f"{name}: no readings in it, so there is nothing to join")
    return _joined(recording, log, offset, name)


@dataclass(frozen=True)
class _Place:
    """Where a log's tick 0 lies on the recording's timeline, how far off that may be, and how it was determined."""

    start_ns: int
    error_ns: int
    how: str


def _joined(recording: Recording, log: Recording, offset: float | None, name: str) -> Recording:
    noticed = list(log.problems)
    same_host = len(hosts := {*recording.hosts(), *(signal.host for signal in log.signals)}) == 1 and "" not in hosts
    log = _on_host(recording, log, name, noticed)
    if recording.metadata.get("timeline"):
        signals = _means(recording, log)
        weights = "self times" if recording.metadata["timeline"] == "none" else "samples"
        how = f"shared out by its {weights}"
        noticed.append(Problem("estimated", f"{name}: the profile has no timeline; mean power was {how}, an estimate"))
    else:
        place = _place(recording, log, offset, name, noticed, same_host)
        signals = [_placed(signal, log, recording, place) for signal in log.signals]
        _check_overlap(recording, signals, name, place)
        if offset is None and place.error_ns:
            signals, seen = by_edges(recording, signals, log.devices, name)
            noticed += seen
        if place.error_ns or "wall" not in place.how:
            error = f", to ±{place.error_ns / 1e6:g} ms" if place.error_ns else ""
            kind = "joined" if place.error_ns < UNKNOWN_NS else "clock"
            noticed.append(Problem(kind, f"{name}: joined by {place.how}{error}"))
    log_keys = {(signal.host, signal.device, signal.name) for signal in signals}
    kept = [signal for signal in recording.signals if (signal.host, signal.device, signal.name) not in log_keys]
    if len(kept) < len(recording.signals):
        noticed.append(Problem("replaced", f"{name}: its readings take the place of the recording's of the same name"))
    devices = {(device.host, device.name): device for device in (*log.devices, *recording.devices)}
    return replace(
        recording,
        signals=(*kept, *signals),
        devices=tuple(devices.values()),
        noticed=(*recording.noticed, *noticed),
        metadata={**recording.metadata, "signals": [*recording.metadata.get("signals", ()), name]},
    )


def _on_host(recording: Recording, log: Recording, name: str, noticed: list[Problem]) -> Recording:
    """Rename the log's host if log and recording have one host each, under different names."""
    mine = set(recording.hosts())
    theirs = {signal.host for signal in log.signals}
    if len(mine) != 1 or len(theirs) != 1 or mine == theirs:
        return log
    (host,), (other,) = mine, theirs
    if host and other:
        noticed.append(Problem("host", f"{name}: its host {other!r} is taken to be {host!r}, where the program ran"))
    return replace(
        log,
        signals=tuple(replace(signal, host=host) for signal in log.signals),
        devices=tuple(replace(device, host=host) for device in log.devices),
    )


# ------------------------------------------------------------------------------------------------------------ clocks


def _place(
    recording: Recording, log: Recording, offset: float | None, name: str, noticed: list[Problem], same_host: bool
) -> _Place:
    place = _by_boot(recording, log) or _by_wall(recording, log, name, noticed, same_host)
    if place is None and offset is None:
        place = _by_marks(recording, log)
        if place is None:
            raise NoDataError(
                f"{name} and the trace have neither a wall clock nor marks in common; say by how many seconds the log "
                "is to be moved, from start to start: --offset 0"
            )
    shift = 0 if offset is None else round(Fraction(offset) * _NS)
    if place is None:
        return _Place(shift - _first_ns(log), 0, f"the offset of {offset:g} s from start to start")
    return replace(place, start_ns=place.start_ns + shift)


def _first_ns(log: Recording) -> int:
    return min(int(log.clock.ns(int(signal.times.min()))) for signal in log.signals if len(signal))


def _by_boot(recording: Recording, log: Recording) -> _Place | None:
    """Place a log by clocks that count from the same boot; where only one states it, their times have to overlap."""
    mine, theirs = about_clock(recording), about_clock(log)
    boots = {str(about.get("boot") or "") for about in (mine, theirs)}
    start = log.clock.ns(log.clock.offset_ticks) - recording.clock.ns(recording.clock.offset_ticks)
    if len(boots) == 1 and "" not in boots:
        return _Place(start, 0, "the clock of one boot")
    since_boot = all(about.get("boot") or about.get("monotonic") for about in (mine, theirs)) and "" in boots
    return _Place(start, 0, "the time since boot") if since_boot and _overlap_ns(recording, log, start) > 0 else None


def _by_wall(recording: Recording, log: Recording, name: str, noticed: list[Problem], same_host: bool) -> _Place | None:
    if recording.clock.epoch_ns is None or log.clock.epoch_ns is None:
        return None
    abouts = [about_clock(recording), about_clock(log)]
    start = log.clock.epoch_ns - recording.clock.epoch_ns
    if any(about.get("zone") == "assumed" for about in abouts) and _overlap_ns(recording, log, start) <= 0:
        shifts = sorted(range(-_MAX_ZONES, _MAX_ZONES + 1), key=abs)
        best = max(shifts, key=lambda k: _overlap_ns(recording, log, start + k * _ZONE_NS))  # the first of equals
        if _overlap_ns(recording, log, start + best * _ZONE_NS) > 0:
            text = f"{name}: names no zone of time; moved by {best / 4:+g} h, where it meets the trace"
            noticed.append(Problem("zone", text))
            start += best * _ZONE_NS
    errors = [about.get("uncertainty_ns") for about in abouts]
    if same_host and not any("zone" in about for about in abouts):
        errors = [0, ONE_CLOCK_NS]  # however wrong that clock is, both are
    return _Place(start, sum(UNKNOWN_NS if error is None else int(error) for error in errors), "wall clocks")


def _by_marks(recording: Recording, log: Recording) -> _Place | None:
    """Place a log by spans of one name in both: pairwise where both have equally many, else by the first of each."""
    theirs = _starts_ns(log, None)
    mine = _starts_ns(recording, set(theirs))
    apart: list[int] = []
    for name in mine:
        here, there = mine[name], theirs[name]
        many = len(here) if len(here) == len(there) else 1
        apart += (here[:many] - there[:many]).tolist()
    if not apart:
        return None
    start = round(float(np.median(apart)))
    spread = max(abs(one - start) for one in apart)
    every = [float(np.median(np.diff(signal.times))) for signal in log.signals if len(signal) > 1]
    row_ns = int(log.clock.ns(round(min(every)))) if every else 0  # a mark is known as well as the row it stands in
    return _Place(start, spread + row_ns, f"{len(apart)} marks ({', '.join(sorted(mine)[:3])})")


def _starts_ns(recording: Recording, names: set[str] | None) -> dict[str, npt.NDArray[np.int64]]:
    """Frame's name → when its spans begin, ascending."""
    wanted = [row for row, name in enumerate(recording.frames.name) if names is None or name in names]
    by_frame: dict[str, list[npt.NDArray[np.int64]]] = {}
    if not wanted:
        return {}
    for location in recording.spans.locations():
        spans = recording.spans.spans(location)
        for row in np.intersect1d(wanted, spans.frame).tolist():
            here = spans.start[(spans.frame == row) & ~spans.resumed]
            by_frame.setdefault(recording.frames.name[row], []).append(np.asarray(recording.clock.ns(here)))
    return {name: np.sort(np.concatenate(starts)) for name, starts in by_frame.items()}


def _overlap_ns(recording: Recording, log: Recording, start_ns: int) -> int:
    """How long log and trace overlap if the log's tick 0 lies there."""
    times = [signal.times for signal in log.signals if len(signal)]
    first = start_ns + int(log.clock.ns(min(int(t.min()) for t in times)))
    last = start_ns + int(log.clock.ns(max(int(t.max()) for t in times)))
    return min(last, int(recording.clock.ns(recording.clock.length_ticks))) - max(first, 0)


def _placed(signal: Signal, log: Recording, recording: Recording, place: _Place) -> Signal:
    rate = recording.clock.ticks_per_s
    scale = Fraction(rate, log.clock.ticks_per_s)
    start = round(Fraction(place.start_ns * rate, _NS))
    error = place.error_ns / _NS or None
    return replace(signal, times=shifted(signal.times, scale, start), location=-1, clock_error_s=error)


def _check_overlap(recording: Recording, signals: Sequence[Signal], name: str, place: _Place) -> None:
    first = min(int(signal.times.min()) for signal in signals if len(signal))
    last = max(int(signal.times.max()) for signal in signals if len(signal))
    if last > 0 and first < recording.clock.length_ticks:
        return
    seconds = recording.clock.seconds
    gap = f"ends {seconds(-last):.6g} s before it begins" if last <= 0 else ""
    gap = gap or f"begins {seconds(first - recording.clock.length_ticks):.6g} s after it ends"
    raise NoDataError(f"{name} does not overlap the trace (by {place.how}): it {gap}; --offset S moves the log")


# ------------------------------------------------------------------------------------------------ without a timeline


def _means(recording: Recording, log: Recording) -> list[Signal]:
    """Each energy signal as its mean power over the profile's length; of counted samples as all of its energy."""
    length = max(recording.clock.length_ticks, 1)
    length_s = recording.clock.seconds(length)
    means = []
    for signal in log.signals:
        if not signal.device or (signal.kind, signal.unit) not in (("gauge", "W"), ("counter", "J"), ("delta", "J")):
            continue
        curve = energy(signal, log.clock).between(*_lived(recording, log))
        if len(curve.times) < 2:
            continue
        lasted_s = log.clock.seconds(int(curve.times[-1] - curve.times[0]))
        power_w = curve.measured / (lasted_s if recording.metadata["timeline"] == "none" else length_s)
        means.append(
            Signal(
                *(signal.name, "gauge", "W", np.array([0, length]), np.array([power_w, power_w])),
                host=signal.host,
                device=signal.device,
                estimated=True,
                gain_error=signal.gain_error,
            )
        )
    if not means:
        raise NoDataError("the log has no power or energy of a device, and a profile without a timeline needs one")
    return means


def _lived(recording: Recording, log: Recording) -> tuple[int, int] | tuple[None, None]:
    """When the program ran, in the log's ticks; needs wall clocks and a log that was written meanwhile."""
    mine, theirs = recording.clock.epoch_ns, log.clock.epoch_ns
    if mine is None or theirs is None or _overlap_ns(recording, log, theirs - mine) <= 0:
        return None, None
    begin = round(Fraction((mine - theirs) * log.clock.ticks_per_s, _NS))
    length = recording.clock.ns(recording.clock.length_ticks)
    return begin, begin + round(Fraction(length * log.clock.ticks_per_s, _NS))
