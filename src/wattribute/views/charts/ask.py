"""What charts ask of attribution: other groupings, curves of users, and the words for title, subtitle and caption.

No joule is computed here. A chart that needs another grouping has attribution asked again with the same options; a
chart over time takes the curves S(t) that attribution made for each user and reads them at the edges of bins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..._core.reference import evaluate
from ...errors import NoDataError, OptionError
from ...model import Attribution, Curve, Recording, Spans
from ...sensors import outer
from .. import names
from ..kinds import kind, kinds
from ..numbers import percent, si
from .lanes import kept
from .tree import Leaf

if TYPE_CHECKING:
    from ...alignment.energy import Energy
    from ...attribution.join import DeviceCurves

_WEIGHTY = ("missing", "truncated", "corrupt", "empty", "reset", "wrap", "dead", "mirrored", "ended-early")
_ONLY_READING = ("format", "metric_kinds")  # were used when the recording was read


def options(attribution: Attribution) -> dict[str, Any]:
    """The options an attribution was asked with, to ask again."""
    return {name: value for name, value in attribution.options.items() if name not in _ONLY_READING}


def ask(attribution: Attribution, by: Sequence[str], **change: Any) -> Attribution:
    """The same question by other keys; the attribution itself when it already answers it."""
    if tuple(attribution.by) == tuple(by) and not change:
        return check(attribution)
    from ...engines import attribute

    asked = check(attribute(attribution.recording, **{**options(attribution), "by": tuple(by), **change}))
    # whoever took the problems away tells them elsewhere
    return asked if attribution.problems else replace(asked, problems=())


def check(attribution: Attribution) -> Attribution:
    """Energy, and one view of each device: a picture adds things up."""
    devices = attribution.devices
    if "measured_j" not in devices.columns:
        raise OptionError("pictures show energy, and this metric is none; choose another --metric, or use attribute")
    views = devices.group_by("host", "device", "signal").len().get_column("len")
    if len(views) and views.max() != 1:
        raise OptionError("a picture shows one view of a device; give --of once")
    signals = devices.group_by("host", "device").len().get_column("len")
    if len(signals) and signals.max() != 1:
        raise OptionError("a picture shows one signal of a device; narrow --metric")
    return attribution


def with_stacks(attribution: Attribution) -> Attribution:
    """Call paths are those of host threads when there are any and nobody said otherwise."""
    if attribution.options.get("of") is None and has_stacks(attribution.recording):
        try:
            return ask(attribution, ("path",), of="host")
        except NoDataError:
            pass
    return ask(attribution, ("path",))


def has_stacks(recording: Recording) -> bool:
    """Whether a host thread has spans."""
    gone = {missing.location for missing in recording.missing}
    threads = (row for row in recording.spans.locations() if recording.locations.kind[row] == "cpu" and row not in gone)
    return any(recording.locations.events[row] > 0 or len(recording.spans.spans(row)) for row in threads)


def summed(attribution: Attribution) -> list[dict[str, Any]]:
    """The devices whose energies may be added up: none that contains or mirrors another of the same host."""
    devices = attribution.devices.to_dicts()
    again = outer([(device["host"], device["device"], device.get("kind", "")) for device in devices])
    return [device for device, left_out in zip(devices, again, strict=True) if not (left_out or device["mirrors"])]


def total(attribution: Attribution, column: str) -> float:
    return float(sum(device[f"{column}_j"] or 0.0 for device in summed(attribution)))


def known(attribution: Attribution) -> str:
    """ "measured", or "estimated" when no meter said anything, or both."""
    said = [bool(device["estimated"]) for device in summed(attribution)]
    return "measured" if not any(said) else "estimated" if all(said) else "partly estimated"


def metered_j(attribution: Attribution) -> float:
    """What a run used, as its summary says it: measured, or estimated where nothing was measured; never mixed."""
    devices = summed(attribution)
    chosen = [device for device in devices if not device["estimated"]] or devices
    return float(sum(device["measured_j"] or 0.0 for device in chosen))


def frame_kinds(recording: Recording) -> dict[str, str]:
    """The kind of work by frame name; of two frames of one name the first speaks."""
    found: dict[str, str] = {}
    for name, what in zip(recording.frames.name, kinds(recording.frames), strict=True):
        found.setdefault(name, what)
    return found


def leaves(attribution: Attribution) -> list[Leaf]:
    """Call paths with the energy they used themselves."""
    rows = attribution.rows.select("path", "self_j", "calls").iter_rows()
    return [Leaf(tuple(path), energy, calls) for path, energy, calls in rows]


def device_label(attribution: Attribution, host: str, device: str) -> str:
    """The device, with its host where there are several."""
    several = attribution.devices.get_column("host").n_unique() > 1
    return names.clean(f"{host} {device}" if several and host else device)


# ── curves over time ──


def curves(attribution: Attribution) -> list[DeviceCurves]:
    """Per device its joules(t) and each user's S(t)."""
    from ...engines import user_curves

    return user_curves(attribution.recording, **options(attribution))


class Users:
    """Everybody who received energy: label, spans that count, and the joules received up to any moment."""

    def __init__(self, attribution: Attribution) -> None:
        self.attribution, self.recording = attribution, attribution.recording
        self.devices = curves(attribution)
        inner = {(device["host"], device["device"], device["of"]) for device in summed(attribution)}
        self._mine: dict[tuple[str, int], list[DeviceCurves]] = {}
        for found in self.devices:
            source = found.source
            if (source.device.host, source.device.name, source.of) in inner:
                for location in found.split.curves:
                    self._mine.setdefault((source.of, location), []).append(found)

    def __iter__(self) -> Iterator[tuple[str, int]]:
        """(of, location) by host, then as the recording orders them."""
        return iter(sorted(self._mine, key=lambda key: (self.recording.location_host(key[1]), key[1], key[0])))

    def __len__(self) -> int:
        return len(self._mine)

    def received(self, of: str, location: int) -> Callable[[npt.NDArray[np.int64]], npt.NDArray[np.float64]]:
        return partial(_received, [found.split.curves[location] for found in self._mine[of, location]])

    def spans(self, of: str, location: int) -> Spans:
        from ...attribution.join import masks

        return kept(self.recording.spans.spans(location), masks(self.recording, of)(location))

    def label(self, of: str, location: int) -> str:
        """The device of a stream and the stream; the process of a thread and the thread."""
        recording = self.recording
        found = self._mine[of, location]
        name = recording.locations.name[location]
        if recording.locations.kind[location] == "gpu" and len(found) == 1:
            device = found[0].source.device
            label = f"{device_label(self.attribution, device.host, device.name)} · {name}"
        else:
            owner = recording.owner(location)
            process = recording.processes.name[owner] if owner >= 0 else ""
            label = f"{process} · {name}" if process and process != name else name
        return names.clean(label)


def _received(curves: Sequence[Curve], ticks: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    out = np.zeros(len(ticks))
    for curve in curves:
        out += evaluate(curve, ticks)
    return out


def whole_curve(attribution: Attribution) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Ticks and the joules measured up to then, over the devices that may be added."""
    inner = {(device["host"], device["device"]) for device in summed(attribution)}
    energies = [c.energy for c in curves(attribution) if (c.source.device.host, c.source.device.name) in inner]
    times = np.unique(np.concatenate([energy.times for energy in energies])) if energies else np.empty(0, np.int64)
    return times, np.sum([energy.at(times) for energy in energies], axis=0) if energies else np.empty(0)


def metered(recording: Recording, metric: str | None) -> list[tuple[str, Energy]]:
    """The devices and their joules(t), whether or not anybody used them."""
    from ...alignment.energy import energy
    from ...attribution.options import checked
    from ...attribution.select import chosen

    rows, _ = chosen(recording, checked(metric=metric))
    several = len({device.host for _, device in rows}) > 1
    found = [(device, energy(recording.signals[row], recording.clock)) for row, device in rows]
    if any(curve.unit != "J" for _, curve in found):
        raise OptionError("power is drawn of energy and power metrics; choose another --metric, or `plot panels`")
    label = [f"{device.host} {device.name}" if several and device.host else device.name for device, _ in found]
    return [(names.clean(text), curve) for text, (_, curve) in zip(label, found, strict=True)]


def window(attribution: Attribution) -> tuple[int, int]:
    """What time the pictures show, in ticks: what was asked for, else the whole recording."""
    from ...attribution.options import moment

    recording = attribution.recording
    clock = recording.clock
    begin = moment(attribution.options.get("begin"), clock)
    end = moment(attribution.options.get("end"), clock)
    first, last = extent(recording)
    first, last = first if begin is None else begin, last if end is None else end
    return (first, last) if last > first else (first, first + 1)


def extent(recording: Recording) -> tuple[int, int]:
    """From the recording's start to its end; readings may lie a little outside."""
    ends = [int(t) for signal in recording.signals if len(signal) for t in (signal.times.min(), signal.times.max())]
    first = min([0, *ends]) if recording.clock.length_ticks else min(ends, default=0)
    return first, max([recording.clock.length_ticks, *ends])


# ── words ──


def run_name(recording: Recording) -> str:
    """What the run is called: its name, else the folder it came from."""
    name = str(recording.metadata.get("name") or "")
    source = str(recording.metadata.get("source") or "").rstrip("/")
    if not name or name == "traces":
        parts = [part for part in source.split("/") if part and part not in ("traces.otf2", ".")]
        name = parts[-1] if parts else name
    return names.clean(name) if name else "this run"


def subtitle(attribution: Attribution) -> str:
    """Method, shares, sensors, whose spans, run."""
    signals = sorted({re.sub(r"\d+$", "N", name) for name in attribution.devices.get_column("signal").to_list()})
    sensors = names.clean(signals[0]) if len(signals) == 1 else f"{len(attribution.devices)} sensors"
    of = ", ".join(sorted(set(attribution.devices.get_column("of").to_list())))
    shares = f"{attribution.share} shares" + (" (double counting on purpose)" if attribution.share == "full" else "")
    return f"{run_name(attribution.recording)} · {sensors} · energy of {of} · {attribution.method}, {shares}"


def caption(attribution: Attribution, *more: str) -> list[str]:
    """Idle, coverage, what was merged, problems."""
    measured, idle = total(attribution, "measured"), total(attribution, "idle")
    coverage = [value for value in attribution.devices.get_column("coverage").to_list() if value is not None]
    first = f"{si(measured, 'J')} {known(attribution)}, {si(idle, 'J')} of it idle ({percent(idle, measured)})."
    if coverage and min(coverage) < 0.995:
        first += f" Readings cover {100 * min(coverage):.0f} % of the spans' time at worst."
    if attribution.devices.get_column("estimated").any():
        first += " Outlined or dashed: estimated by a model, not measured."
    sentences = [first, *more]
    weighty = sorted(attribution.problems, key=lambda problem: problem.kind not in _WEIGHTY)
    problems = [problem.message for problem in weighty]
    if problems:
        shown = names.shorten(names.clean(problems[0]), 150)
        rest = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        sentences.append(f"Noticed: {shown}{rest}.")
    return sentences


def whose(attribution: Attribution) -> str:
    """ "GPU energy" when only GPUs were metered, else "energy"."""
    found = {device.get("kind") for device in summed(attribution)}
    return "GPU energy" if found == {"gpu"} else "CPU energy" if found == {"cpu"} else "energy"


def finding(attribution: Attribution, energies: dict[str, float]) -> str:
    """The title: who used most."""
    measured = total(attribution, "measured")
    if not energies or measured <= 0 or max(energies.values()) <= 0:
        return f"{si(measured, 'J')} {known(attribution)}, none of it in spans"
    most = max(energies, key=lambda name: energies[name])
    share = percent(energies[most], measured)
    return f"{names.shorten(names.plain(most), 60)}: {share} of the {whose(attribution)}"


def by_frame(attribution: Attribution) -> dict[str, float]:
    """Self energy by frame name over the devices that may be added."""
    rows = ask(attribution, ("frame",)).rows
    return {name: float(energy) for name, energy in rows.select("frame", "self_j").iter_rows()}


def books(attribution: Attribution) -> list[tuple[str, dict[str, float], float, bool]]:
    """(label, joules by kind of work, idle, estimated) of each device."""
    table = ask(attribution, ("device", "frame", "paradigm", "role"))
    by_kind: dict[tuple[str, str, str], dict[str, float]] = {}
    columns = ("host", "device", "of", "frame", "paradigm", "role", "self_j")
    for host, device, of, frame, paradigm, role, energy in table.rows.select(columns).iter_rows():
        kinds_ = by_kind.setdefault((host, device, of), {})
        what = kind(paradigm, role, frame)
        kinds_[what] = kinds_.get(what, 0.0) + energy
    return [
        (
            device_label(table, row["host"], row["device"]),
            by_kind.get((row["host"], row["device"], row["of"]), {}),
            float(row["idle_j"] or 0.0),
            bool(row["estimated"]),
        )
        for row in table.devices.to_dicts()
    ]
