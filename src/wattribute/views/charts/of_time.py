"""Charts over time: power, timeline, node, panels, memory, carbon."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import NoDataError, OptionError
from ...model import Attribution, Clock, Recording, Signal
from .. import names
from .. import theme as themes
from ..kinds import kinds
from ..numbers import count, percent, seconds, si
from . import ask
from . import carbon as grams
from . import power as powers
from . import signals as lines
from . import timeline as gantt
from .behind import behind
from .canvas import Rows, finish, legend, time_axis, time_unit
from .lanes import bars

if TYPE_CHECKING:
    from ...carbon import Emissions

_AREAS = 12  # devices drawn as areas; more become rows of colour
_MARKS = 6000  # bars of a timeline before lanes are binned
_LANES = 48
_YEAR_NS = 31_557_600 * 10**9  # later than a year after 1970: a wall clock, not time since the start


def power(attribution: Attribution, *, theme: str = "light", top: int = 64) -> Any:
    """Power of each device over time, with what ran on it behind."""
    look = themes.theme(theme)
    found = ask.check(attribution)
    users, ends = ask.Users(found), ask.window(found)
    tracks = [_track(found, device) for device in users.devices]
    shown = _largest(tracks, top)
    per_s, _ = time_unit(found.recording.clock.seconds(ends[1] - ends[0]))
    grounds = [behind(users, users.devices[i], ends, per_s) for i in shown] if len(shown) <= _AREAS else []
    parts = _power_parts(tracks, shown, grounds, found.recording.clock, ends, look)
    said = f"{_binned(tracks)} {_not_drawn(tracks, shown)}".strip()
    return finish(parts, look, title=_power_title(tracks), subtitle=ask.subtitle(found),
                  caption=ask.caption(found, said))  # fmt: skip


def bare_power(recording: Recording, *, metric: str | None = None, because: str = "", theme: str = "light",
               top: int = 64) -> Any:  # fmt: skip
    """Power of each device of a recording in which nobody used it: no spans, or none while it was read."""
    look = themes.theme(theme)
    tracks = [
        powers.track(label, energy.times, energy.values, recording.clock, estimated=energy.signal.estimated)
        for label, energy in ask.metered(recording, metric)
    ]
    shown, ends = _largest(tracks, top), ask.extent(recording)
    parts = _power_parts(
        tracks, shown, [], recording.clock, ends if ends[1] > ends[0] else (ends[0], ends[0] + 1), look
    )
    said = [because, f"{_binned(tracks)} {_not_drawn(tracks, shown)}".strip()]
    return finish(parts, look, title=_power_title(tracks), subtitle=ask.run_name(recording), caption=said)


def _largest(tracks: Sequence[powers.Track], top: int) -> list[int]:
    """The tracks to draw, in their order: the largest of those that measured anything."""
    live = [i for i, track in enumerate(tracks) if float(track.energy_j.sum()) > 0] or list(range(len(tracks)))
    return sorted(sorted(live, key=lambda i: -float(tracks[i].energy_j.sum()))[:top])


def _power_parts(
    tracks: Sequence[powers.Track], shown: Sequence[int], grounds: Sequence[Rows], clock: Clock, ends: tuple[int, int],
    look: themes.Theme,
) -> list[Any]:  # fmt: skip
    window = clock.seconds(ends[0]), clock.seconds(ends[1])
    per_s, unit = time_unit(window[1] - window[0])
    most = max((float(track.high_w.max(initial=0.0)) for track in tracks), default=0.0)
    if len(shown) > _AREAS:
        return powers.carpet([tracks[i] for i in shown], look, window, per_s, most, unit)
    axes = [None] * (len(shown) - 1) + [time_axis(unit)]
    if any(grounds):
        most *= 1.3  # room for the names of what ran, the same on all
    parts = [
        powers.area(tracks[i], look, window, per_s, most, axis=axis, behind=ground)
        for i, axis, ground in zip(shown, axes, grounds or [[]] * len(shown), strict=True)
    ]
    present = {row["kind"] for ground in grounds for row in ground}
    return [legend(present, look), *parts] if present else parts


def _track(found: Attribution, device: Any) -> powers.Track:
    source, energy = device.source, device.energy
    label = ask.device_label(found, source.device.host, source.device.name)
    return powers.track(label, energy.times, energy.values, found.recording.clock, estimated=source.signal.estimated)


def _binned(tracks: Sequence[powers.Track]) -> str:
    if not any(track.binned for track in tracks):
        return ""
    return "Power is the mean of bins that keep the energy; a band is the least and greatest power inside."


def _not_drawn(tracks: Sequence[powers.Track], shown: Sequence[int]) -> str:
    """What happened to the devices that are not in the picture."""
    rest = [float(track.energy_j.sum()) for i, track in enumerate(tracks) if i not in set(shown)]
    silent, small = sum(energy == 0 for energy in rest), sum(energy > 0 for energy in rest)
    said = f"{small} devices with less energy ({si(sum(rest), 'J')}) are not drawn." if small else ""
    return f"{said} {silent} devices measured nothing and are not drawn.".strip() if silent else said


def _power_title(tracks: Sequence[powers.Track]) -> str:
    sums = {track.label: float(track.energy_j.sum()) for track in tracks}
    if not sums or max(sums.values()) <= 0:
        return "No energy was measured"
    most = max(sums, key=lambda label: sums[label])
    if len(sums) == 1:
        return f"{most}: {si(sums[most], 'J')} measured"
    return f"{most} used most: {si(sums[most], 'J')} of {si(sum(sums.values()), 'J')}"


def timeline(attribution: Attribution, *, theme: str = "light", colour: str = "kind", top: int = _LANES) -> Any:
    """Spans per device and stream (or per thread), joules on hover."""
    look = themes.theme(theme)
    found = ask.check(attribution)
    parts, said, sums = _lanes(found, look, colour, top)
    return finish(parts, look, title=ask.finding(found, sums), subtitle=ask.subtitle(found),
                  caption=ask.caption(found, *said))  # fmt: skip


def _lanes(
    found: Attribution, look: themes.Theme, colour: str, top: int
) -> tuple[list[Any], list[str], dict[str, float]]:
    """The timeline's parts, what was merged in them, and self energy by frame."""
    if colour not in gantt.COLOURS:
        raise OptionError.unknown("colour", colour, gantt.COLOURS)
    every, spans = lanes_of(found)
    filled = [lane for lane in every if len(lane.bars)] or every[:1]
    recording, ends = found.recording, ask.window(found)
    shown, merged = gantt.crowd(filled, top, ends, len(recording.frames))
    per_s, unit = time_unit(recording.clock.seconds(ends[1] - ends[0]))
    words = gantt.Words((*recording.frames.name, "other lanes"), (*kinds(recording.frames), "other"))
    chart = gantt.timeline(shown, words, recording.clock, ends, per_s, unit, look, colour)
    present = {words.kind[int(frame)] for lane in shown for frame in np.unique(lane.bars.frame)}
    said = []
    if any(lane.bars.binned for lane in shown):
        said.append(
            f"{count(spans)} spans in bins that keep their energy; a bin shows its busiest frame, paler where idle."
        )
    if len(filled) < len(every):
        said.append(f"{len(every) - len(filled)} lanes without such spans are not drawn.")
    if merged:
        said.append(f"{merged} lanes with less energy are one bar, “other”.")
    parts = [legend(present, look), chart] if colour == "kind" and present else [chart]
    if colour != "kind":
        parts.append(gantt.scale(shown, recording.clock, colour, look))
    return parts, said, ask.by_frame(found)


def lanes_of(found: Attribution) -> tuple[list[gantt.Lane], int]:
    """A lane per user with its bars, binned where there are too many spans to see; and the number of spans."""
    users, ends = ask.Users(found), ask.window(found)
    limit = max(40, _MARKS // max(1, len(users)))
    out, number = [], 0
    for of, location in users:
        spans = users.spans(of, location)
        number += len(spans)
        levels = int(spans.depth.max()) + 1 if len(spans) else 1
        bins = int(np.clip(limit // min(levels, 24), 60, 450))
        made = bars(spans, users.received(of, location), ends, limit, bins)
        out.append(gantt.Lane(users.label(of, location), found.recording.location_host(location), made))
    return out, number


def node(attribution: Attribution, *, theme: str = "light", colour: str = "kind", top: int = 32) -> Any:
    """Device power above the lanes of ranks, on one time axis; of host threads when they have spans."""
    look = themes.theme(theme)
    found = ask.check(attribution)
    if found.options.get("of") is None and ask.has_stacks(found.recording):
        found = ask.ask(found, ("device", "frame"), of="host")
    clock, ends = found.recording.clock, ask.window(found)
    window = clock.seconds(ends[0]), clock.seconds(ends[1])
    per_s, unit = time_unit(window[1] - window[0])
    tracks = [_track(found, device) for device in ask.curves(found)]
    tracks = [track for track in tracks if float(track.energy_j.sum()) > 0] or tracks
    most = max((float(track.high_w.max(initial=0.0)) for track in tracks), default=0.0)
    if len(tracks) > 6:
        above = powers.carpet(tracks, look, window, per_s, most, unit)
    else:
        above = [powers.area(track, look, window, per_s, most, height=44) for track in tracks]
    below, said, sums = _lanes(found, look, colour, top)
    return finish([*above, *below], look, title=ask.finding(found, sums), subtitle=ask.subtitle(found),
                  caption=ask.caption(found, _binned(tracks), *said))  # fmt: skip


def _recording(source: Attribution | Recording) -> Recording:
    return source if isinstance(source, Recording) else source.recording


def panels(source: Attribution | Recording, *, theme: str = "light") -> Any:
    """Utilisation, power, temperature, memory and clocks, a panel each and a line per device."""
    return _panels(_recording(source), themes.theme(theme), dict(lines.PANELS), "utilisation, power or temperature")


def memory(source: Attribution | Recording, *, theme: str = "light") -> Any:
    """Memory over time."""
    return _panels(_recording(source), themes.theme(theme), {"B": "memory"}, "memory")


def _panels(recording: Recording, look: themes.Theme, wanted: dict[str, str], what: str) -> Any:
    clock, ends = recording.clock, ask.extent(recording)
    found = {unit: _series(recording, unit) for unit in wanted}
    found = {unit: series for unit, series in found.items() if series}
    if not found:
        listed = ", ".join(sorted({signal.name for signal in recording.signals})[:8]) or "none"
        raise NoDataError(f"no signal of {what} in this recording (signals: {listed})")
    window = clock.seconds(ends[0]), clock.seconds(ends[1])
    per_s, unit = time_unit(window[1] - window[0])
    parts, peaks = [], []
    for i, (of_unit, series) in enumerate(found.items()):
        last = i == len(found) - 1
        height = 110 if len(found) > 1 else 260
        parts.append(lines.panel(wanted[of_unit], of_unit, series, look, window, per_s, unit if last else None, height))
        most = max(series, key=lambda one: float(one.high.max(initial=-np.inf)))
        peaks.append(f"{wanted[of_unit]} at most {si(float(most.high.max(initial=0.0)), of_unit)} ({most.label})")
    readings = sum(one.readings for series in found.values() for one in series)
    return finish(parts, look, title=f"{peaks[0][0].upper()}{peaks[0][1:]}",
                  subtitle=f"{ask.run_name(recording)} · {seconds(window[1] - window[0])}",
                  caption=[f"{'; '.join(peaks[1:])}." if peaks[1:] else "", f"{count(readings)} readings; where there "
                           "are more than can be seen, a line is the mean of a bin and the band its range."],
                  spacing=28)  # fmt: skip


def _series(recording: Recording, unit: str) -> list[lines.Series]:
    """The gauges of a unit; power is the slope of energy where only energy was read."""
    found = [signal for signal in recording.signals if _is_level(signal, unit)]
    if found or unit != "W":
        labels = _signal_labels(recording, found)
        short = names.labels(_telling(labels), 25).values()
        given = zip(labels, found, short, strict=True)
        return [lines.series(label, signal, recording.clock, text) for label, signal, text in given]
    try:
        metered = ask.metered(recording, None)
    except NoDataError:
        return []
    tracks = [powers.track(label, energy.times, energy.values, recording.clock) for label, energy in metered]
    return [
        lines.Series(track.label, track.start_s, track.mean_w, track.low_w, track.high_w, float(track.end_s[-1]),
                     len(track.start_s) + 1, track.label)
        for track in tracks
        if len(track.start_s)
    ]  # fmt: skip


def _is_level(signal: Signal, unit: str) -> bool:
    return signal.unit == unit and signal.kind == "gauge" and len(signal) > 0


def _signal_labels(recording: Recording, signals: Sequence[Signal]) -> list[str]:
    """Device and what is read there; who recorded it where that repeats; the host where there are several."""
    hosts = {signal.host for signal in signals}
    devices = [(signal.host, signal.device) for signal in signals]
    out = []
    for signal in signals:
        core = re.sub(r"^A?\d*\w*:::|:?device=\d+", "", signal.name) or signal.name
        alone = devices.count((signal.host, signal.device)) == 1
        label = signal.device if signal.device and alone else f"{signal.device} {core}".strip()
        out.append(names.clean(f"{signal.host} {label}" if len(hosts) > 1 and signal.host else label))
    for who in (_process_of, _location_of):  # as much as it takes to tell them apart
        repeated = {label for label in out if out.count(label) > 1}
        out = [
            names.clean(f"{label} {who(recording, signal)}") if label in repeated else label
            for label, signal in zip(out, signals, strict=True)
        ]
    seen: dict[str, int] = {}
    for i, label in enumerate(out):
        seen[label] = seen.get(label, 0) + 1
        out[i] = label if seen[label] == 1 else f"{label} #{seen[label]}"
    return out


def _telling(labels: Sequence[str]) -> list[str]:
    """Labels too long without the words that all of them share; as they are where that would make two alike."""
    if all(names.columns(label) <= 25 for label in labels):
        return list(labels)
    words = [label.split() for label in labels]
    common = set.intersection(*map(set, words)) if len(words) > 1 else set()
    short = [" ".join(word for word in each if word not in common) for each in words]
    return short if len(set(short)) == len(labels) and all(short) else list(labels)


def _process_of(recording: Recording, signal: Signal) -> str:
    process = int(recording.locations.process[signal.location]) if signal.location >= 0 else -1
    return recording.processes.name[process] if process >= 0 else ""


def _location_of(recording: Recording, signal: Signal) -> str:
    return recording.locations.name[signal.location] if signal.location >= 0 else ""


def carbon(attribution: Attribution, emissions: Emissions, *, theme: str = "light") -> Any:
    """Emissions as they add up, and the intensity of the electricity."""
    look = themes.theme(theme)
    wall_clock = bool(emissions.slices) and emissions.slices[0].start_ns > _YEAR_NS
    per_s, unit = time_unit(emissions.duration_s)
    rows = grams.rows_of(emissions.slices, wall_clock, per_s)
    times, joules = ask.whole_curve(attribution)
    so_far = grams.grown(emissions.slices, attribution.recording.clock.ns(times), joules, wall_clock, per_s)
    title = f"{si(emissions.co2e_g, 'g')} CO2e from {si(emissions.energy_j, 'J')} at {emissions.g_per_kwh:.3g} g/kWh"
    place = f"{emissions.name} ({emissions.zone})" if emissions.name else emissions.zone
    said = [f"Sources: {'; '.join(emissions.sources)}."]
    if emissions.assumed:
        low, high = si(emissions.low_g, "g"), si(emissions.high_g, "g")
        said.append(f"No zone was given: the world average is assumed; by country it would be {low} to {high}.")
    if emissions.embodied_g:
        whole = emissions.total_g
        said.append(
            f"Making the hardware adds {si(emissions.embodied_g, 'g')} ({percent(emissions.embodied_g, whole)})."
        )
    said += [f"Noticed: {problem}." for problem in emissions.problems[:2]]
    subtitle = f"{ask.run_name(attribution.recording)} · {place} · PUE {emissions.pue:g}"
    return finish(grams.carbon(rows, so_far, look, wall_clock, unit), look, title=title, subtitle=subtitle,
                  caption=[names.clean(sentence) for sentence in said], spacing=28)  # fmt: skip
