"""Choice of the sensor table's line for each signal of a recording, from the evidence in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..model import Recording, Signal
from ..sensors import Evidence, Line, SensorTable
from ..sensors.table import Triple
from .gauges import seen_period_s

MIN_EQUAL_SHARE = 0.9  # of the readings: power.draw that equals power.draw.instant so often is the same field


def lines(recording: Recording, table: SensorTable) -> dict[int, Line | None]:
    """Row of ``recording.signals`` → its line; only power and energy of devices have one."""
    properties = {(device.host, device.name): device.properties for device in recording.devices}
    siblings: dict[tuple[str, str], list[Signal]] = defaultdict(list)
    rows = [row for row, signal in enumerate(recording.signals) if _meters(signal)]
    for row in rows:
        signal = recording.signals[row]
        siblings[signal.host, signal.device].append(signal)
    by_row: dict[int, Line | None] = {}
    for row in rows:
        signal = recording.signals[row]
        about = properties.get((signal.host, signal.device), {})
        evidence = Evidence(
            signal.name,
            signal.kind,
            str(about.get("model", "")),
            str(about.get("driver", "")),
            _draw(siblings[signal.host, signal.device]),
            seen_period_s(signal, recording.clock) if signal.kind == "gauge" else None,
        )
        by_row[row] = _declared(table.line(evidence), signal)
    return by_row


def _meters(signal: Signal) -> bool:
    """Whether the signal is power or energy measured by a meter."""
    return not signal.estimated and (signal.kind, signal.unit) in (("gauge", "W"), ("counter", "J"), ("delta", "J"))


def _declared(line: Line | None, signal: Signal) -> Line | None:
    """Prefer the window that a meter declares to a line that does not know the card."""
    window = signal.declared.get("window_s")
    if (
        line is None
        or line.origin
        or line.card
        or not isinstance(window, float)
        or line.kind not in ("boxcar", "running mean")
    ):
        return line
    period = signal.declared.get("period_s")
    kind = "running mean" if isinstance(period, float) and window > 1.5 * period else "boxcar"
    return replace(line, kind=kind, window_s=Triple(0.7 * window, window, 1.25 * window))


def _draw(signals: Sequence[Signal]) -> str:
    """Whether power.draw is the fast field or an average, as far as readings of both show it."""
    plain = next((s for s in signals if s.name.endswith(("power.draw", "nvml power"))), None)
    fast = next((s for s in signals if s.name.endswith(("power.draw.instant", "nvml power_instant"))), None)
    if plain is None or fast is None or len(plain) != len(fast) or len(plain) < 2:
        return ""
    if not np.array_equal(plain.times, fast.times):
        return ""
    return "instant" if float(np.mean(plain.values == fast.values)) >= MIN_EQUAL_SHARE else "average"
