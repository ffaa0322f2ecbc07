"""What a run cost, as plain values: per device energy with its bounds and their causes, power, utilisation, carbon.

``summarise`` works on the Recording of ``run`` (or one recovered from a journal); joules come from alignment's curves,
taken at the child's start and end. The result is ``summary.json``, and what ``views.console_run`` prints. No bare 0: a
device whose counter did not move within a short run has ``energy_j`` null and says so.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ..alignment import Energy, energy, examine
from ..carbon.recordings import command_shares
from ..model import Device, Recording, Signal
from ..units import SUFFIXES

FULL_COVERAGE = 0.99
PEAK_S = 0.2  # power from a counter is a mean over at least this long: update times jitter
CPU_SHARE_ERROR, DRAM_SHARE_ERROR = 0.04, 0.16  # of splitting by CPU time (METRION, arXiv 2512.06806)
_CURVE_POINTS = 2000
_TOLD = ("mirrored", "power-ratio", "ended-early")  # of what alignment finds; the rest a summary says in its own words


@dataclass
class _Part:
    """One device on its way into the summary."""

    device: Device
    apart: str
    curve: Energy | None = None
    share: float = 1.0
    share_error: float = 0.0
    notes: list[str] = field(default_factory=list)


def summarise(
    recording: Recording, zone: str | None = None, intensity: float | str | None = None, carbon: bool = True
) -> dict[str, Any]:
    """The summary of a run's recording; raises OptionError for a zone nobody knows."""
    run = recording.metadata.get("run", {})
    begin, end = run.get("start_ticks", 0), run.get("end_ticks", recording.clock.length_ticks)
    checks = examine(recording)
    mirrors = {
        recording.signals[c.signals[1]].device: f"mirrors {recording.signals[c.signals[0]].device}"
        for c in checks
        if c.kind == "mirrored"
    }
    found = (_part(recording, device, mirrors, begin, end) for device in recording.devices)
    parts = [part for part in found if part is not None]
    _keep_estimates_apart(parts)
    scope = recording.metadata.get("scope", "machine")
    rule = _share(parts, command_shares(recording)) if scope == "process" else ""
    devices = [_device(recording, part, begin, end) for part in parts]
    counted = [d for d in devices if not d["apart"] and d["energy_j"] is not None]
    notes = [p.message for p in recording.problems] + [c.message for c in checks if c.warns and c.kind in _TOLD]
    summary = {
        "command": recording.metadata.get("command", []),
        "duration_s": (end - begin) / recording.clock.ticks_per_s,
        "exit_code": run.get("exit_code"),
        "score": recording.metadata.get("score", {}).get("value"),
        "energy_j": _sum(counted, "energy_j"),
        "low_j": _sum(counted, "low_j"),
        "high_j": _sum(counted, "high_j"),
        "mean_w": _sum(counted, "mean_w"),
        "estimated": any(d["estimated"] for d in counted),
        "co2e_g": None,
        "scope": scope,
        "share_rule": rule,
        "busy_mean_w": _busy_mean_w(recording, begin, end, None),
        "devices": devices,
        "cpu_s": run.get("cpu_s"),
        "sampler_cpu_s": run.get("sampler_cpu_s"),
        "max_rss_bytes": run.get("max_rss_bytes"),
        "unseen": [r for r in recording.metadata.get("refused", ()) if r.get("fix")],
        "notes": list(dict.fromkeys(notes)),
    }
    if carbon and summary["energy_j"]:
        summary |= _carbon(recording, [p for p in parts if not p.apart and p.curve], begin, end, zone, intensity)
    return summary


def _keep_estimates_apart(parts: Sequence[_Part]) -> None:
    """A sum is measured or estimated, never a mixture: beside a measurement an estimate is shown but not added."""
    told = [part for part in parts if part.curve is not None and not part.apart]
    if any(not part.curve.signal.estimated for part in told if part.curve):
        for part in told:
            if part.curve and part.curve.signal.estimated:
                part.apart = "an estimate beside measurements"


def _sum(devices: Sequence[Mapping[str, Any]], key: str) -> float | None:
    values = [d[key] for d in devices]
    return sum(values) if values and None not in values else None


# ------------------------------------------------------------------------------------------------------ one device


def _part(recording: Recording, device: Device, mirrors: Mapping[str, str], begin: int, end: int) -> _Part | None:
    """A device with the best curve of its energy: its counter, else (none, reset, or too slow to see) its power."""
    signals = [s for s in recording.signals if s.device == device.name and s.host == device.host]
    sources = [s for s in signals if s.unit == "J" and s.kind == "counter"] + [s for s in signals if s.unit == "W"]
    if not sources:
        return None
    part = _Part(device, device.properties.get("apart", "") or mirrors.get(device.name, ""))
    for signal in sources:
        curve = energy(signal, recording.clock)
        part.notes += [problem.message for problem in curve.problems if problem.kind != "stale"]
        if any(problem.kind == "reset" for problem in curve.problems) and signal is not sources[-1]:
            part.notes.append(f"{signal.name} of {device.name} was reset: its power was integrated instead")
            continue
        if curve.between(begin, end).measured > 0:
            part.curve = curve
            return part
    part.notes.append(f"{device.name}: below resolution, its sensor did not move during the run")
    return part


def _device(recording: Recording, part: _Part, begin: int, end: int) -> dict[str, Any]:
    device, duration_s = part.device, (end - begin) / recording.clock.ticks_per_s
    row: dict[str, Any] = {
        "device": device.name,
        "kind": device.kind,
        "energy_j": None,
        "low_j": None,
        "high_j": None,
        "mean_w": None,
        "peak_w": None,
        "estimated": False,
        "apart": part.apart,
        "source": device.properties.get("source", ""),
        "causes": [],
        "notes": part.notes,
    }
    if part.curve is not None:
        inside = part.curve.between(begin, end)
        covered_s = (int(inside.times[-1]) - int(inside.times[0])) / recording.clock.ticks_per_s
        joules = part.share * inside.measured
        coverage = covered_s / duration_s if duration_s else 1.0
        if coverage < FULL_COVERAGE:
            part.notes.append(f"{device.name}: readings cover {coverage:.0%} of the run; the rest is not counted")
        low, high, causes = _bounds(part, begin, end)
        row |= {
            "signal": part.curve.signal.name,
            "energy_j": joules,
            "low_j": low,
            "high_j": high,
            "mean_w": joules / covered_s,
            "peak_w": _peak_w(recording, part, begin, end),
            "estimated": part.curve.signal.estimated,
            "coverage": coverage,
            "share": part.share,
            "causes": causes,
        }
    return row | _gauges(recording, device, begin, end)


def _bounds(part: _Part, begin: int, end: int) -> tuple[float | None, float | None, list[str]]:
    """The least and the most that can have been used between two moments, and why they differ.

    Energy reported in (r0, r1] was used in (r0 − L, r1] (L: latency), so whole intervals inside are sure and those
    that touch are possible. Then the sensor's gain and the split between processes widen both.
    """
    curve, causes = part.curve, []
    assert curve is not None
    signal, latency = curve.signal, curve.latency_ticks
    low = high = curve.between(begin, end).measured
    if curve.bounded:
        r0, r1, rise = curve.times[:-1], curve.times[1:], np.diff(curve.values)
        low = float(rise[(r0 - latency >= begin) & (r1 <= end)].sum())
        high = float(rise[(r1 > begin) & (r0 - latency < end)].sum())
        causes.append("update period")
    elif not signal.gain_error:
        return None, None, ["a gauge between its readings is unknown"]
    if coverage := signal.declared.get("coverage"):
        causes.append(f"sees {coverage:.0%} of the time" if coverage < 1 else "averages over its window")
    if signal.gain_error:
        low, high = low * (1 - signal.gain_error), high * (1 + signal.gain_error)
        causes.append(f"{'model' if signal.estimated else 'gain'} ±{signal.gain_error:.0%}")
    if part.share_error:
        low, high = low * (1 - part.share_error), high * (1 + part.share_error)
        causes.append(f"split between processes ±{part.share_error:.0%}")
    return part.share * low, part.share * high, causes


def _peak_w(recording: Recording, part: _Part, begin: int, end: int) -> float | None:
    """The largest reading of power in the run; without any, the steepest stretch of the energy curve."""
    for signal in recording.signals:
        if signal.device == part.device.name and signal.unit == "W" and signal.kind == "gauge":
            inside = signal.values[(signal.times >= begin) & (signal.times <= end)]
            if len(inside):
                return float(inside.max() * signal.scale) * part.share
    assert part.curve is not None
    begin, end = max(begin, int(part.curve.times[0])), min(end, int(part.curve.times[-1]))  # as the mean: what was seen
    step = max(1, min(recording.clock.ticks(PEAK_S), end - begin))
    grid = np.append(np.arange(begin, end - step + 1, step), end)
    seconds = np.diff(grid) / recording.clock.ticks_per_s
    return float((np.diff(part.curve.at(grid)) / seconds).max()) * part.share if len(seconds) else None


def _gauges(recording: Recording, device: Device, begin: int, end: int) -> dict[str, Any]:
    """Means over the run of what else the device says: utilisation, memory, temperature, clocks."""
    found: dict[str, Any] = {}
    for signal in recording.signals:
        if signal.device != device.name or signal.kind != "gauge" or signal.unit == "W":
            continue
        inside = signal.values[(signal.times >= begin) & (signal.times <= end)]
        if len(inside):
            quantity = signal.name.split()[-1]
            unit = SUFFIXES[signal.unit]
            found[f"{quantity}_{unit}"] = float(inside.mean() * signal.scale)
            found[f"max_{quantity}_{unit}"] = float(inside.max() * signal.scale)
    busy = _busy_mean_w(recording, begin, end, device)
    return found if busy is None else found | {"busy_mean_w": busy}


def _busy_mean_w(recording: Recording, begin: int, end: int, device: Device | None) -> float | None:
    """The mean of the power readings taken while a device was in use (utilisation > 0); None: all devices pooled."""
    chosen = []
    for d in recording.devices if device is None else [device]:
        powers = [s for s in recording.signals if s.device == d.name and s.kind == "gauge" and s.unit == "W"]
        found = busy_readings(recording, powers[0], begin, end) if powers else None
        chosen += [] if found is None else [found]
    pooled = np.concatenate(chosen) if chosen else np.empty(0)
    return float(pooled.mean()) if len(pooled) else None


def busy_readings(recording: Recording, signal: Signal, begin: int, end: int) -> npt.NDArray[np.float64] | None:
    """A gauge's readings of the time in which its device was in use; None if it does not say when it is."""
    gauges = (s for s in recording.signals if s.device == signal.device and s.kind == "gauge")
    use = next((s for s in gauges if s.name.endswith("utilisation")), None)
    if use is None or not len(use):
        return None
    inside = (signal.times >= begin) & (signal.times <= end)
    at = np.searchsorted(use.times, signal.times[inside], side="left" if signal is use else "right")
    busy = use.values[np.clip(at, 0, len(use) - 1)] > 0  # the next one tells of the time before it
    return np.asarray(signal.values[inside][busy] * float(signal.scale), np.float64)


# --------------------------------------------------------------------------------------------------------- the whole


def _share(parts: Sequence[_Part], shares: Mapping[str, float]) -> str:
    """Give each device the command's share of it; the rule in words."""
    told = "unknown here, so all of it is counted"
    for part in parts:
        known = shares.get(part.device.name)
        part.share = 1.0 if known is None else known
        if part.device.kind == "gpu":
            if known is None:
                part.notes.append(f"{part.device.name}: no utilisation by process, so all of it is counted")
        elif known is not None:
            part.share_error = DRAM_SHARE_ERROR if part.device.kind == "dram" else CPU_SHARE_ERROR
            told = f"{known:.1%}"
    return f"CPU, memory and node by share of busy CPU time ({told}); GPUs by share of process utilisation"


def _carbon(
    recording: Recording, parts: Sequence[_Part], begin: int, end: int, zone: str | None, intensity: float | str | None
) -> dict[str, Any]:
    from ..carbon import emissions

    ticks = np.linspace(begin, end, min(_CURVE_POINTS, max(2, (end - begin) // recording.clock.ticks(0.1)))).astype(int)
    joules = sum(part.share * part.curve.at(ticks) for part in parts if part.curve is not None)
    epoch_ns = (recording.clock.epoch_ns or 0) + ticks
    found = emissions((epoch_ns, joules), zone=zone, intensity=intensity)
    told = found.as_dict() | {"estimated": any(part.curve.signal.estimated for part in parts if part.curve)}
    told.pop("slices")
    return {"co2e_g": found.co2e_g, "carbon": told}


# ------------------------------------------------------------------------------------------------------------ repeats

# two-sided 95 % points of Student's t for 1 … 30 degrees of freedom
_T95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


def interval(values: Sequence[float]) -> dict[str, float | None]:
    """Mean, standard deviation and the 95 % confidence interval of the mean (null for fewer than two)."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return {"mean": mean, "std": None, "ci95_low": None, "ci95_high": None}
    std = statistics.stdev(values)
    half = (_T95[len(values) - 2] if len(values) <= len(_T95) + 1 else 1.96) * std / len(values) ** 0.5
    return {"mean": mean, "std": std, "ci95_low": mean - half, "ci95_high": mean + half}


def repeats(summaries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Several runs of one command: mean and confidence interval, and each run."""
    keys = ("duration_s", "energy_j", "mean_w", "co2e_g")
    told = {key: [s[key] for s in summaries if s[key] is not None] for key in keys}
    return {
        "command": summaries[0]["command"],
        "repeats": len(summaries),
        "statistics": {key: interval(values) for key, values in told.items() if values},
        "runs": list(summaries),
    }
