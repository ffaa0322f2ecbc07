"""What a run cost: a :class:`wattribute.model.Summary` of a recording, from the ledger's devices and their curves.

``summarise`` works on the Recording of ``run`` (or one recovered from a journal), between the command's start and end.
The result is ``summary.json``, and what ``views.console_run`` prints. No bare 0: a device whose counter did not move
within a short run has ``energy_j`` null and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..engines.middle import (
    Bill,
    Energy,
    MeteredDevice,
    bill_of,
    device_division,
    examine,
    ledger,
    own_curve,
    scope_of,
    span_bounds,
    undivided_reason,
    used_range,
)
from ..errors import NoDataError
from ..model import Device, DeviceSummary, Problem, Question, Recording, Signal, Summary, counts
from ..model.constants import POWER_SPAN_S
from ..model.coverage import is_partial, unseen
from ..model.stored import give_back
from ..units import SUFFIXES

Life = tuple[int | None, int | None]
SEEN_S = 1.0  # without a reading at the end: the sampler had ended
SHARE_RULE = "by share of busy CPU time, GPUs by utilisation per process: {}"
BILL = ("command_j", "others_j", "static_j")
_CURVE_POINTS = 2000
_CHECKS = (
    "mirrored",
    "power-ratio",
    "ended-early",
)  # findings that a summary repeats


@dataclass
class _Part:
    """One device on its way into the summary."""

    metered: MeteredDevice
    curve: Energy
    bill: Bill | None = None  # None: there was nothing to bill
    own_bill: Bill | None = None  # where only the command's part counts
    shares: tuple[float, float, float] = (1.0, 1.0, 1.0)  # of it: likely, low and high
    notes: list[str] = field(default_factory=list)

    @property
    def device(self) -> Device:
        return self.metered.device

    @property
    def share(self) -> float:
        return self.shares[0]


def summarise(
    recording: Recording, zone: str | None = None, intensity: float | str | None = None, carbon: bool = True
) -> Summary:
    """The summary of a run's recording; raises OptionError for an unknown zone."""
    run = recording.metadata.get("run", {})
    life = recording.life
    begin, end = life[0] or 0, recording.clock.length_ticks if life[1] is None else life[1]
    metered, problems = _metered(recording)
    scope = scope_of(recording, Question())
    devices, rates = [], []
    for one in metered:  # the curve of one at a time is held: those of a day are large
        give_back(recording)
        part = _part(recording, one)
        rates += _share(recording, part, scope == "process")
        devices.append(_device(recording, part, begin, end, life))
        del part
    counted = [device for device in devices if device.counted]
    bill: dict[str, Any] = {name: _sum_known([getattr(device, name) for device in counted]) for name in BILL}
    parts = unseen(recording, ((device.device, device.coverage) for device in devices if not device.apart))
    notes = [*_silent_rank(recording), *(problem.message for problem in (*recording.problems, *problems))]
    notes += [check.message for check in examine(recording) if check.warns and check.kind in _CHECKS]
    give_back(recording)
    summary = Summary(
        command=recording.metadata.get("command", []),
        duration_s=(end - begin) / recording.clock.ticks_per_s,
        exit_code=run.get("exit_code"),
        score=recording.metadata.get("score", {}).get("value"),
        energy_j=_sum([device.energy_j for device in counted]),
        low_j=_sum([device.low_j for device in counted]),
        high_j=None if parts else _sum([device.high_j for device in counted]),
        mean_w=_sum([device.mean_w for device in counted]),
        estimated=any(device.estimated for device in counted),
        partial=bool(parts),
        scope=scope,
        share_rule=SHARE_RULE.format(", ".join(rates) or "not known here") if scope == "process" else "",
        **bill,
        busy_mean_w=_busy_mean_w(recording, begin, end, None),
        devices=devices,
        cpu_s=run.get("cpu_s"),
        sampler_cpu_s=run.get("sampler_cpu_s"),
        max_rss_bytes=run.get("max_rss_bytes"),
        unseen=[refused for refused in recording.metadata.get("refused", ()) if refused.get("fix")],
        notes=list(dict.fromkeys(notes)),
        counts={unit: counts.total(recording, unit, *life) for unit in counts.units(recording)},
    )
    if carbon and summary.energy_j:
        used = [one for one, device in zip(metered, devices, strict=True) if device.counted]
        return _with_carbon(summary, recording, used, parts, begin, end, zone, intensity)
    return summary


def _silent_rank(recording: Recording) -> list[str]:
    """That this rank reads no meter, because another rank of its node does."""
    rank = recording.metadata.get("rank") or {}
    if rank.get("samples", True) or recording.signals:
        return []
    return [f"rank {rank['rank']} reads no meter: another rank of its node does; join them with: wattribute merge"]


def _sum(values: Sequence[float | None]) -> float | None:
    """None when one is unknown: a sum of some says nothing."""
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _sum_known(values: Sequence[float | None]) -> float | None:
    """Sum the known values; None if there are none."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


# ------------------------------------------------------------------------------------------------------ one device


def _metered(recording: Recording) -> tuple[list[MeteredDevice], list[Problem]]:
    """Every metered device, in the recording's order, then the rests of nodes; and problems."""
    try:
        metered, problems = ledger(recording)
    except NoDataError:
        return [], []
    order = {(device.host, device.name): at for at, device in enumerate(recording.devices)}
    return sorted(metered, key=lambda one: order.get((one.device.host, one.device.name), len(order))), problems


def _part(recording: Recording, metered: MeteredDevice) -> _Part:
    curve, name = metered.energy(recording), metered.device.name  # signals of several devices have one name
    texts = [problem.message for problem in curve.problems if problem.kind != "stale"]
    return _Part(metered, curve, notes=[text if name in text else f"{name}: {text}" for text in texts])


def _device(recording: Recording, part: _Part, begin: int, end: int, life: Life) -> DeviceSummary:
    device, signal, duration_s = part.device, part.curve.signal, (end - begin) / recording.clock.ticks_per_s
    inside = part.curve.between(*life)
    gauges = {} if part.metered.parts else _gauges(recording, device, begin, end)
    about = DeviceSummary(
        device.name,
        device.kind,
        apart=part.metered.entry.why,
        source=device.properties.get("source", ""),
        host=device.host,
        notes=part.notes,
        gauges=gauges,
    )
    if inside.measured <= 0 and not part.metered.parts:
        last = int(signal.times[-1]) if len(signal.times) else 0
        seen_s = max(0, last - begin) / recording.clock.ticks_per_s
        if (end - last) / recording.clock.ticks_per_s > SEEN_S:  # no reading says that it did not move
            part.notes.append(f"{device.name}: not known, it was read for {seen_s:.3g} s of {duration_s:.3g} s only")
            return replace(about, coverage=seen_s / duration_s if duration_s else 0.0)
        part.notes.append(f"{device.name}: below resolution, its sensor did not move during the run")
        return about
    joules = part.share * inside.measured
    bill: dict[str, Any] = {} if part.bill is None else {name: _known(getattr(part.bill, name)) for name in BILL}
    coverage = part.curve.coverage(begin, end)
    is_cut = is_partial(coverage)
    if is_cut:
        part.notes.append(f"{device.name}: readings cover {coverage:.0%} of the run; the rest is not counted")
    ranges, causes = _ranges(recording, part, life)
    if is_cut:
        ranges |= {"high_j": None, "hard_high_j": None}  # nothing limits what was not seen
    return replace(
        about,
        signal=signal.name,
        energy_j=joules,
        low_j=ranges.get("low_j"),
        high_j=ranges.get("high_j"),
        hard_low_j=ranges.get("hard_low_j"),
        hard_high_j=ranges.get("hard_high_j"),
        mean_w=joules / (coverage * duration_s) if coverage and duration_s else None,
        peak_w=_peak_w(recording, part, begin, end),
        estimated=signal.estimated,
        coverage=coverage,
        share=part.share,
        causes=causes,
        **bill,
    )


def _ranges(recording: Recording, part: _Part, life: Life) -> tuple[dict[str, float | None], list[str]]:
    """What can have been used between two moments, within 95 % and at all, and why that is a range.

    The ranges are attribution's, gain included; the split between processes widens them.
    """
    ends = used_range(recording, part.metered, part.curve.between(*life), *life, part.own_bill)
    if ends is None:
        return {}, ["a gauge between its readings is unknown"]
    causes = _causes(part, ends.is_read)
    names = ("low_j", "high_j", "hard_low_j", "hard_high_j")
    known = [np.isfinite(ends.high_j)] * 2 + [np.isfinite(ends.hard_high_j)] * 2  # half a range is none
    return {name: getattr(ends, name) if k else None for name, k in zip(names, known, strict=True)}, causes


def _causes(part: _Part, is_read: bool) -> list[str]:
    """Why the energy of a device is a range."""
    signal, causes = part.curve.signal, []
    error = f"±{signal.gain_error or 0.0:.0%}"
    line = part.metered.lines[0] if part.metered.lines else None
    if is_read:
        causes.append("windows, lag and scatter of its readings" if signal.kind == "gauge" else "update period")
    if is_read and line is not None:
        causes.append(f"gain of its sensor, by {line.origin or 'the table'}")
    elif signal.gain_error:
        causes.append(f"{'model' if signal.estimated else 'gain'} {error}")
    if coverage := signal.declared.get("coverage"):
        causes.append(f"sees {coverage:.0%} of the time" if coverage < 1 else "averages over its window")
    _, low, high = part.shares
    if high > low:
        causes.append(f"split between processes by {'utilisation' if part.device.kind == 'gpu' else 'CPU time'}")
    return causes


def _peak_w(recording: Recording, part: _Part, begin: int, end: int) -> float | None:
    """The largest reading of power in the run; without any, the steepest stretch of the energy curve.

    None where that stretch may as well be the counter's jitter: between the readings around it at least the mean has
    to be sure. (Inside a single update nothing is sure, so a slow counter is judged from reading to reading.)
    """
    for signal in () if part.metered.parts else recording.signals_of(part.device):
        if signal.unit == "W" and signal.kind == "gauge":
            inside = signal.values[(signal.times >= begin) & (signal.times <= end)]
            if len(inside):
                return float(inside.max() * signal.scale) * part.share
    if not len(part.curve.times):
        return None
    begin, end = max(begin, int(part.curve.times[0])), min(end, int(part.curve.times[-1]))  # as the mean: what was seen
    step = max(1, min(recording.clock.ticks(POWER_SPAN_S), end - begin))
    grid = np.append(np.arange(begin, end - step + 1, step), end)
    seconds = np.diff(grid) / recording.clock.ticks_per_s
    if not len(seconds):
        return None
    powers = np.diff(part.curve.at(grid)) / seconds
    at = int(powers.argmax())
    times = part.curve.times
    first = int(times[np.searchsorted(times, grid[at], "right") - 1])
    last = int(times[np.searchsorted(times, grid[at + 1])])
    sure = span_bounds(part.curve, first, last)
    sure_w = np.inf if sure is None else sure[0] / ((last - first) / recording.clock.ticks_per_s)
    if len(seconds) > 1 and sure_w <= np.average(powers, weights=seconds):
        return None  # as much as a late update makes of the mean
    return float(powers[at]) * part.share


def _gauges(recording: Recording, device: Device, begin: int, end: int) -> dict[str, float]:
    """Means over the run of what else the device says: utilisation, memory, temperature, clocks."""
    means: dict[str, float] = {}
    for signal in recording.signals_of(device):
        if signal.kind != "gauge" or signal.unit == "W":
            continue
        inside = signal.values[(signal.times >= begin) & (signal.times <= end)]
        if len(inside):
            quantity = signal.name.split()[-1]
            unit = SUFFIXES[signal.unit]
            means[f"{quantity}_{unit}"] = float(inside.mean() * signal.scale)
            means[f"max_{quantity}_{unit}"] = float(inside.max() * signal.scale)
    busy = _busy_mean_w(recording, begin, end, device)
    return means if busy is None else means | {"busy_mean_w": busy}


def _busy_mean_w(recording: Recording, begin: int, end: int, device: Device | None) -> float | None:
    """The mean of the power readings taken while a device was in use (utilisation > 0); None: all devices pooled."""
    chosen = []
    for d in recording.devices if device is None else [device]:
        powers = [s for s in recording.signals_of(d) if s.kind == "gauge" and s.unit == "W"]
        readings = busy_readings(recording, powers[0], begin, end) if powers else None
        chosen += [] if readings is None else [Pool.of(readings)]
    return Pool.mean(chosen)


class Pool(NamedTuple):
    """Sum and number of readings; those of several signals have one mean."""

    total: float
    number: int

    @classmethod
    def of(cls, readings: npt.NDArray[np.float64]) -> Pool:
        return cls(float(readings.sum()), len(readings))

    @staticmethod
    def mean(pools: Sequence[Pool]) -> float | None:
        """The mean of all readings together; None where there are none."""
        number = sum(pool.number for pool in pools)
        return sum(pool.total for pool in pools) / number if number else None


def busy_readings(recording: Recording, signal: Signal, begin: int, end: int) -> npt.NDArray[np.float64] | None:
    """A gauge's readings of the time in which its device was in use; None if it does not say when it is."""
    gauges = (s for s in recording.signals_on(signal.host) if s.device == signal.device and s.kind == "gauge")
    use = next((s for s in gauges if s.name.endswith("utilisation")), None)
    if use is None or not len(use):
        return None
    times = signal.times
    inside = (times >= begin) & (times <= end)
    at = np.searchsorted(use.times, times[inside], side="left" if signal is use else "right")
    busy = (use.values > 0)[np.clip(at, 0, len(use) - 1)]  # the next one tells of the time before it
    return np.asarray(signal.values[inside][busy] * float(signal.scale), np.float64)


# --------------------------------------------------------------------------------------------------------- the whole


def _share(recording: Recording, part: _Part, is_own: bool) -> list[str]:
    """Bill a device; where only the command's part counts, set its shares and return the likely one in words."""
    how = device_division(recording, part.metered, Question(scope="process"))
    inside = part.curve.between(*recording.life)
    if inside.measured <= 0:
        return []
    part.bill = bill = bill_of(inside, how, recording.clock.ticks_per_s)
    if not is_own:
        return []
    if how.usage is None:
        part.notes.append(undivided_reason(part.device))
        return []
    if (reason := how.static_reason(part.device)) is not None:
        part.notes.append(reason)
    part.own_bill, part.shares = bill, bill.shares(inside.measured)
    return [f"{part.device.name} {part.share:.1%}"]


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _with_carbon(
    summary: Summary,
    recording: Recording,
    metered: Sequence[MeteredDevice],
    parts: tuple[str, ...],
    begin: int,
    end: int,
    zone: str | None,
    intensity: float | str | None,
) -> Summary:
    from ..carbon import emissions

    ticks = np.linspace(begin, end, min(_CURVE_POINTS, max(2, (end - begin) // recording.clock.ticks(0.1)))).astype(int)
    joules = sum(own_curve(recording, one, None, *recording.life).at(ticks) for one in metered)
    epoch_ns = (recording.clock.epoch_ns or 0) + recording.clock.ns(ticks)
    emitted = emissions((epoch_ns, joules), zone=zone, intensity=intensity)
    emitted = replace(
        emitted,
        estimated=summary.estimated,
        scope=summary.scope,
        unseen=parts,
        energy_low_j=summary.low_j,
        energy_high_j=summary.high_j,
    )
    carbon = emitted.as_dict()
    carbon.pop("slices")
    return replace(summary, co2e_g=emitted.co2e_g, carbon=carbon)
