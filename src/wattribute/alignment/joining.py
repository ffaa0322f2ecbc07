"""A profile and power logs of other tools → one recording: ``read`` is the front door's, and knows ``signals``.

A log's clock is laid on the trace's by the first of these that both have:

1. the same boot (or one counts from some boot and the other's readings lie in its time): exact,
2. wall clocks, whose errors add up; a log that names no zone of time may be off by quarters of an hour: that is mended,
3. marks: spans of one name in both (a column ``mark`` of a table makes them); their spread is the error.

``offset`` seconds are then added to the log's times; without any of the three the log begins that long after the trace.
How far times may still be off is the signals' ``clock_error_s``, which widens the bounds. A profile without a timeline
(cProfile, folded stacks) gets the log's mean power instead, marked as an estimate.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import readers
from ..errors import NoDataError, OptionError
from ..model import Problem, Recording, Signal
from ..model.select import select
from .energy import energy
from .merge import UNKNOWN_NS, about_clock, shifted

READING = ("format", "process", "frame", "exclude_frame", "metric_kinds", "signals", "offset")  # choose what is read
JOINING = ("signals", "offset")
Source = Recording | str | os.PathLike[str]
_NS = 1_000_000_000
_ZONE_NS = 900 * _NS  # zones of time differ by quarters of an hour
_ZONES = 14 * 4


def read(
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    signals: Source | Sequence[Source] = (),
    offset: float | None = None,
    **selection: Any,
) -> Recording:
    """Read a trace, archive or profile; ``format`` names a reader, otherwise the content decides.

    ``signals`` are power logs (or other recordings) whose readings are joined to it; ``offset`` seconds are added to
    their times. Other keyword arguments are those of :class:`wattribute.plugins.Selection`.
    """
    found = readers.read(path, format, **selection)
    return join(found, _logs(signals), offset, **_of_logs(selection))


def read_runs(
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    signals: Source | Sequence[Source] = (),
    offset: float | None = None,
    **selection: Any,
) -> tuple[list[Recording], list[str]]:
    """Every run of a path (:func:`wattribute.readers.read_runs`), each with the logs joined to it."""
    found, left_out = readers.read_runs(path, format, **selection)
    return [join(one, _logs(signals), offset, **_of_logs(selection)) for one in found], left_out


def _logs(signals: Source | Sequence[Source]) -> list[Source]:
    return [signals] if isinstance(signals, str | os.PathLike | Recording) else list(signals)


def _of_logs(selection: Mapping[str, Any]) -> dict[str, Any]:
    """What of a selection concerns a log too."""
    return {name: selection[name] for name in ("metric", "metric_kinds", "threads") if name in selection}


def obtained(source: Source, reading: Mapping[str, Any], threads: int | None = None) -> Recording:
    """The recording of a source under reading options: a path is read, a Recording is narrowed and joined."""
    given = {name: value for name, value in reading.items() if value is not None and value != () and value != []}
    if not isinstance(source, Recording):
        return read(source, threads=threads, **given)
    late = sorted({"format", "metric_kinds"} & set(given))
    if late:
        raise OptionError(f"{late[0]} decides how a file is read; give it to wattribute.read, or give a path here")
    logs = _logs(given.pop("signals", ()))
    return join(select(source, **{k: v for k, v in given.items() if k != "offset"}), logs, given.get("offset"))


def join(recording: Recording, logs: Sequence[Source], offset: float | None = None, **selection: Any) -> Recording:
    """The recording with the readings of logs on its own timeline."""
    if offset is not None and not logs:
        raise OptionError("an offset is that of a log's times; name the log with signals=FILE (--signals FILE)")
    if offset is not None and not abs(offset) < 1e9:
        raise OptionError(f"an offset of {offset} s is no time; give seconds, such as 0.25 or -3600")
    for log in logs:
        other = log if isinstance(log, Recording) else readers.read(log, **selection)
        name = str(other.metadata.get("name", "")) if isinstance(log, Recording) else os.fspath(log)
        if not any(len(signal) for signal in other.signals):
            raise NoDataError(f"{name}: no readings in it, so there is nothing to join")
        recording = _joined(recording, other, offset, name or "the log")
    return recording


@dataclass(frozen=True)
class _Place:
    """Where a log's tick 0 lies on the recording's timeline, how far off that may be, and by what it was told."""

    start_ns: int
    error_ns: int
    how: str


def _joined(recording: Recording, log: Recording, offset: float | None, name: str) -> Recording:
    noticed = list(log.problems)
    log = _on_host(recording, log, name, noticed)
    if recording.metadata.get("timeline"):
        signals = _means(recording, log)
        weights = "self times" if recording.metadata["timeline"] == "none" else "samples"
        how = f"shared out by its {weights}"
        noticed.append(Problem("estimated", f"{name}: the profile has no timeline; mean power was {how}, an estimate"))
    else:
        place = _place(recording, log, offset, name, noticed)
        signals = [_placed(signal, log, recording, place) for signal in log.signals]
        _check_overlap(recording, signals, name, place)
        if place.error_ns or "wall" not in place.how:
            error = f", to ±{place.error_ns / 1e6:g} ms" if place.error_ns else ""
            noticed.append(Problem("clock", f"{name}: joined by {place.how}{error}"))
    told = {(signal.host, signal.device, signal.name) for signal in signals}
    kept = [signal for signal in recording.signals if (signal.host, signal.device, signal.name) not in told]
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
    """A log of one host is that of a recording of one host, whatever either calls it."""
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


def _place(recording: Recording, log: Recording, offset: float | None, name: str, noticed: list[Problem]) -> _Place:
    found = _by_boot(recording, log) or _by_wall(recording, log, name, noticed)
    if found is None and offset is None:
        found = _by_marks(recording, log)
        if found is None:
            raise NoDataError(
                f"{name} and the trace have neither a wall clock nor marks in common; say by how many seconds the log "
                "is to be moved, from start to start: --offset 0"
            )
    shift = 0 if offset is None else round(Fraction(offset) * _NS)
    if found is None:
        return _Place(shift - _first_ns(log), 0, f"the offset of {offset:g} s from start to start")
    return replace(found, start_ns=found.start_ns + shift)


def _first_ns(log: Recording) -> int:
    return min(int(log.clock.ns(int(signal.times.min()))) for signal in log.signals if len(signal))


def _by_boot(recording: Recording, log: Recording) -> _Place | None:
    """Clocks that count from the same boot; where only one says so, their times have to meet."""
    mine, theirs = about_clock(recording), about_clock(log)
    boots = {str(about.get("boot") or "") for about in (mine, theirs)}
    start = log.clock.ns(log.clock.offset_ticks) - recording.clock.ns(recording.clock.offset_ticks)
    if len(boots) == 1 and "" not in boots:
        return _Place(start, 0, "the clock of one boot")
    since_boot = all(about.get("boot") or about.get("monotonic") for about in (mine, theirs)) and "" in boots
    return _Place(start, 0, "the time since boot") if since_boot and _overlap_ns(recording, log, start) > 0 else None


def _by_wall(recording: Recording, log: Recording, name: str, noticed: list[Problem]) -> _Place | None:
    if recording.clock.epoch_ns is None or log.clock.epoch_ns is None:
        return None
    abouts = [about_clock(recording), about_clock(log)]
    start = log.clock.epoch_ns - recording.clock.epoch_ns
    if any(about.get("zone") == "assumed" for about in abouts) and _overlap_ns(recording, log, start) <= 0:
        shifts = sorted(range(-_ZONES, _ZONES + 1), key=abs)
        best = max(shifts, key=lambda k: _overlap_ns(recording, log, start + k * _ZONE_NS))  # the first of equals
        if _overlap_ns(recording, log, start + best * _ZONE_NS) > 0:
            text = f"{name}: names no zone of time; moved by {best / 4:+g} h, where it meets the trace"
            noticed.append(Problem("zone", text))
            start += best * _ZONE_NS
    errors = [about.get("uncertainty_ns") for about in abouts]
    return _Place(start, sum(UNKNOWN_NS if error is None else int(error) for error in errors), "wall clocks")


def _by_marks(recording: Recording, log: Recording) -> _Place | None:
    """Spans of one name in both: those that are as many here as there one by one, else the first of each."""
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
    found: dict[str, list[npt.NDArray[np.int64]]] = {}
    if not wanted:
        return {}
    for location in recording.spans.locations():
        spans = recording.spans.spans(location)
        for row in np.intersect1d(wanted, spans.frame).tolist():
            here = spans.start[(spans.frame == row) & ~spans.resumed]
            found.setdefault(recording.frames.name[row], []).append(np.asarray(recording.clock.ns(here)))
    return {name: np.sort(np.concatenate(starts)) for name, starts in found.items()}


def _overlap_ns(recording: Recording, log: Recording, start_ns: int) -> int:
    """How long log and trace run side by side if the log's tick 0 lies there."""
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
    made = []
    for signal in log.signals:
        if not signal.device or (signal.kind, signal.unit) not in (("gauge", "W"), ("counter", "J"), ("delta", "J")):
            continue
        curve = energy(signal, log.clock).between(*_lived(recording, log))
        if len(curve.times) < 2:
            continue
        lasted_s = log.clock.seconds(int(curve.times[-1] - curve.times[0]))
        power_w = curve.measured / (lasted_s if recording.metadata["timeline"] == "none" else length_s)
        made.append(
            Signal(
                *(signal.name, "gauge", "W", np.array([0, length]), np.array([power_w, power_w])),
                host=signal.host,
                device=signal.device,
                estimated=True,
                gain_error=signal.gain_error,
            )
        )
    if not made:
        raise NoDataError("the log has no power or energy of a device, and a profile without a timeline needs one")
    return made


def _lived(recording: Recording, log: Recording) -> tuple[int, int] | tuple[None, None]:
    """When the program ran, in the log's ticks, if wall clocks tell and the log was written meanwhile."""
    mine, theirs = recording.clock.epoch_ns, log.clock.epoch_ns
    if mine is None or theirs is None or _overlap_ns(recording, log, theirs - mine) <= 0:
        return None, None
    begin = round(Fraction((mine - theirs) * log.clock.ticks_per_s, _NS))
    length = recording.clock.ns(recording.clock.length_ticks)
    return begin, begin + round(Fraction(length * log.clock.ticks_per_s, _NS))
