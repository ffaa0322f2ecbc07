"""The report block of an earlier tool, so that its published numbers can be compared literally.

Names are cut at 30 characters, and a frame's seconds are the sum of differences of floats, because that is what the
earlier tool printed. Devices without users appear too.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from .._core import reference
from ..engines import user_curves
from ..engines.middle import location_masks
from ..model import Attribution, Recording
from .tables import emit

SUFFIXES: tuple[str, ...] = ()
_NAME = 30


def text(attribution: Attribution) -> str:
    if not {"device", "frame"} <= set(attribution.by):
        from ..errors import OptionError

        raise OptionError("the report is by device and frame; leave out --by")
    unit = "j" if "self_j" in attribution.rows.columns else "value"
    seconds = _seconds(attribution)
    devices = attribution.devices.filter("counted")
    hosts = devices["host"].unique(maintain_order=True).to_list()
    lines: list[str] = []
    for host in hosts:
        if len(hosts) > 1:
            lines.append(f"Node: {host}")
        for device in devices.filter(devices["host"] == host).to_dicts():
            lines += _block(attribution, device, seconds, unit)
    return "\n".join(lines) + "\n"


def _block(
    attribution: Attribution, device: dict[str, Any], seconds: dict[Any, dict[str, float]], unit: str
) -> list[str]:
    name = device["device"].replace(" ", "-")
    symbol = device["unit"]
    key = (device["host"], device["device"], device["of"])
    rows = attribution.rows
    for column, value in zip(("host", "device", "of"), key, strict=True):
        rows = rows.filter(rows[column] == value)
    of = "" if attribution.devices.filter("counted")["of"].n_unique() == 1 else f" ({device['of']})"
    return [
        f"Device: {name}{of}",
        f"   Max Recorded Sample for {name}: {device[f'measured_{unit}']:.6f} {symbol}",
        *(
            f"   {row[f'self_{unit}']:.6f} {symbol}, {row['frame'][:_NAME]}, {seconds[key][row['frame']]!r}s"
            for row in rows.sort(f"self_{unit}", descending=True, maintain_order=True).to_dicts()
        ),
        f"   Total Attributed Metrics for {name}:",
        f"      {device[f'attributed_{unit}']:.6f} {symbol}, Metric: {device['signal']}",
        f"   Idle attribution for {name}: {device[f'idle_{unit}']:.6f} {symbol}",
    ]


def _seconds(attribution: Attribution) -> dict[tuple[str, str, str], dict[str, float]]:
    """(host, device, of) → frame → own seconds, summed as floats."""
    recording = attribution.recording
    names = list(dict.fromkeys(recording.frames.name))
    number = {name: i for i, name in enumerate(names)}
    code = np.array([number[name] for name in recording.frames.name], np.int32)
    question = attribution.question.but(bounds=False, by=("device", "frame"))
    seconds: dict[tuple[str, str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    known: dict[tuple[int, str], Any] = {}
    for device in user_curves(recording, question):
        source = device.source
        for location in source.users:
            if (location, source.of) not in known:
                known[location, source.of] = _own_seconds(recording, location, source.of, code, len(names))
            for frame in np.flatnonzero(known[location, source.of]):
                key = (source.device.host, source.device.name, source.of)
                seconds[key][names[frame]] += float(known[location, source.of][frame])
    return seconds


def _own_seconds(recording: Recording, location: int, of: str, code: Any, frames: int) -> Any:
    row = np.where(location_masks(recording, of)(location), code, -1)
    start, end, which = reference.segments(recording.spans.spans(location), row)["self"]
    rate = float(recording.clock.ticks_per_s)
    return np.bincount(which, weights=end / rate - start / rate, minlength=frames)


def write(attribution: Attribution, target: str, **options: Any) -> None:
    emit(text(attribution), target)
