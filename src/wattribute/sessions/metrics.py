"""``metrics.json`` and ``metrics.yml``: what a benchmark's run amounts to, under names that stay.

Made of a run's summary: who and when, the score, energy in J and kWh in all and per device, carbon with its intensity,
zone and time span, and averages over the readings taken while a device was in use. Null is unknown, never 0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ..model import Device, DeviceSummary, Recording, Summary
from ..units import J_PER_KWH, SUFFIXES
from .result_series import column
from .summary import Pool, busy_readings

JSON, YAML = "metrics.json", "metrics.yml"


def metrics(recording: Recording, summary: Summary) -> dict[str, Any]:
    """The metrics of a run, as plain values."""
    metadata, run = recording.metadata, recording.metadata.get("run", {})
    begin, end = run.get("start_ticks", 0), run.get("end_ticks", recording.clock.length_ticks)
    chosen = {(d.host, d.name): _busy(recording, d, begin, end) for d in recording.devices}
    return {
        "benchmark": metadata.get("container", {}).get("image") or metadata.get("name", ""),
        "command": list(summary.command),
        "exit_code": summary.exit_code,
        "score": summary.score,
        "start": iso(recording, begin),
        "end": iso(recording, end),
        "elapsed_s": summary.duration_s,
        "energy_j": summary.energy_j,
        "energy_kwh": _kwh(summary.energy_j),
        "energy_low_j": summary.low_j,
        "energy_high_j": summary.high_j,
        "estimated": summary.estimated,
        "carbon": _carbon(summary, iso(recording, begin), iso(recording, end)),
        "busy_average": {
            name: Pool.mean([of[name] for of in chosen.values() if name in of]) for name in _names(chosen)
        },
        "devices": [_device(recording, row, chosen.get((row.host, row.device), {})) for row in summary.devices],
    }


def write(measures: Mapping[str, Any], folder: Path) -> None:
    """Both files; they say the same."""
    (folder / JSON).write_text(json.dumps(measures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / YAML).write_text("\n".join(_yaml(measures)) + "\n", encoding="utf-8")


def iso(recording: Recording, ticks: int) -> str | None:
    """A moment in UTC, to the microsecond; None if the recording does not know the time of day."""
    if recording.clock.epoch_ns is None:
        return None
    microseconds = (recording.clock.epoch_ns + recording.clock.ns(ticks)) // 1000
    at = datetime.fromtimestamp(microseconds // 10**6, timezone.utc).replace(microsecond=microseconds % 10**6)
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _carbon(summary: Summary, start: str | None, end: str | None) -> dict[str, Any] | None:
    carbon = summary.carbon
    if not carbon:
        return None
    kept = (
        "co2e_g",
        "co2e_low_g",
        "co2e_high_g",
        "low_g",
        "high_g",
        "g_per_kwh",
        "zone",
        "name",
        "assumed",
        "fallback",
    )
    return {name: carbon[name] for name in kept} | {"sources": list(carbon["sources"]), "start": start, "end": end}


def _busy(recording: Recording, device: Device, begin: int, end: int) -> dict[str, Pool]:
    """Readings of the time in which a device was in use, by quantity; without any that would tell, nothing."""
    readings: dict[str, Pool] = {}
    for signal in recording.signals_of(device):
        if signal.kind != "gauge" or signal.unit not in SUFFIXES or signal.unit == "J":
            continue
        name = column(signal)
        values = busy_readings(recording, signal, begin, end) if name not in readings else None
        if values is not None:
            readings[name] = Pool.of(values)
    return readings


def _names(chosen: Mapping[tuple[str, str], Mapping[str, Pool]]) -> list[str]:
    return list(dict.fromkeys(name for of in chosen.values() for name in of))


def _device(recording: Recording, row: DeviceSummary, busy: Mapping[str, Pool]) -> dict[str, Any]:
    properties = next((d.properties for d in recording.devices if (d.host, d.name) == (row.host, row.device)), {})
    kept = ("device", "host", "kind", "energy_j", "low_j", "high_j", "mean_w", "peak_w", "estimated")
    return {
        **{name: getattr(row, name) for name in kept},
        "energy_kwh": _kwh(row.energy_j),
        "added": not row.apart,
        "model": properties.get("model") or None,
        "power_limit_w": _number(properties.get("power_limit_w")),
        "memory_total_bytes": _number(properties.get("memory_bytes")),
        "busy_average": {name: Pool.mean([pool]) for name, pool in busy.items()},
    }


def _kwh(joules: float | None) -> float | None:
    return None if joules is None else joules / J_PER_KWH


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _yaml(value: Any, indent: str = "") -> list[str]:
    """Plain values as YAML, block style; a word is written as JSON writes it, which every YAML reader understands."""
    lines = []
    items = value.items() if isinstance(value, Mapping) else [(None, item) for item in value]
    for name, item in items:
        head = f"{indent}{'-' if name is None else f'{name}:'}"
        if isinstance(item, (Mapping, list)) and item:
            inner = _yaml(item, indent + "  ")
            if name is None:  # "- first: …" on one line with the dash
                lines += [f"{head} {inner[0].lstrip()}", *inner[1:]]
            else:
                lines += [head, *inner]
        else:
            lines.append(f"{head} {_scalar(item)}")
    return lines


def _scalar(value: Any) -> str:
    """JSON, but for exponents: YAML wants a point and a sign in 1.0e-05."""
    text = json.dumps(value, ensure_ascii=False)
    if isinstance(value, float) and "e" in text:
        number, _, exponent = text.partition("e")
        return f"{number}{'' if '.' in number else '.0'}e{int(exponent):+03d}"
    return text
