"""What looks wrong with sensors: stale, dead, mirrored, nested, ended early, counter against power.

``examine`` looks at all signals of a recording; ``info`` shows what it finds and ``attribute`` passes on what touches
the chosen signals. Nothing here changes a number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import numpy.typing as npt

from ..model import Clock, Problem, Recording, Signal
from ..sensors import contains
from .energy import Energy, energy, is_stale

_EARLY_READINGS = 10  # missing at the end, in units of the signal's own spacing …
_EARLY_PART = 0.05  # … and this part of the longest signal
_MANY = 10  # readings, before their spacing means anything
_FEW = 3  # readings, before equal increments mean anything
_ROUNDING, _CLOSE, _MOSTLY, _MULTIPLES = 1e-6, 1e-3, 0.5, 10
_DISAGREE = 0.10


@dataclass(frozen=True)
class Check:
    """A finding about one or two signals; ``ratio`` is integrated power over counter."""

    kind: str  # "stale", "dead", "constant", "mirrored", "nested", "negative", "ended-early", "power-ratio"
    message: str
    signals: tuple[int, ...]  # rows of Recording.signals
    ratio: float | None = None
    warns: bool = True

    def problem(self) -> Problem:
        return Problem(self.kind, self.message)


def examine(recording: Recording) -> list[Check]:
    """All findings, in the order of the signals."""
    signals = recording.signals
    begins = min((int(signal.times[0]) for signal in signals if len(signal)), default=0)
    ends = max((int(signal.times[-1]) for signal in signals if len(signal)), default=0)
    alone = [check for row in range(len(signals)) for check in _alone(signals, row, recording.clock, begins, ends)]
    together = [*mirrored(recording), *_nested(recording), *_power_ratios(recording)]
    return sorted(alone + together, key=lambda check: check.signals)


def _title(signal: Signal) -> str:
    return f"{signal.name} on {signal.host}" if signal.host else signal.name


def _alone(signals: Sequence[Signal], row: int, clock: Clock, begins: int, ends: int) -> list[Check]:
    """What can be said of one signal; ``begins`` and ``ends`` are the first and last reading of the recording."""
    signal = signals[row]
    found = []
    if len(signal) >= 2 and signal.kind == "counter":
        moved = signal.values[1:] != signal.values[:-1]
        if not moved.any():
            found.append(Check("dead", f"{_title(signal)}: the counter never moved", (row,)))
        elif is_stale(signal, np.asarray(signal.times), signal.values):
            spacing_ms = 1e3 * float(np.median(np.diff(signal.times[1:][moved]))) / clock.ticks_per_s
            text = f"{_title(signal)}: changes only every {spacing_ms:.3g} ms although read more often"
            found.append(Check("stale", text, (row,)))
    elif len(signal) >= _MANY and signal.kind == "gauge" and not (signal.values != signal.values[0]).any():
        found.append(Check("constant", f"{_title(signal)}: never changed", (row,), warns=False))
    if (signal.kind, signal.unit) == ("gauge", "W") and (below := int((signal.values < 0).sum())):
        text = f"{_title(signal)}: {below:,} of {len(signal):,} readings are below 0 W; they count as they are"
        found.append(Check("negative", text, (row,)))
    if len(signal) >= _MANY:
        short = ends - int(signal.times[-1])
        if short > _EARLY_READINGS * np.median(np.diff(signal.times)) and short > _EARLY_PART * (ends - begins):
            text = f"{_title(signal)}: ends {short / clock.ticks_per_s:.3g} s before the last reading of the recording"
            found.append(Check("ended-early", text, (row,)))
    return found


def mirrored(recording: Recording) -> list[Check]:
    """Counters of one host whose increments are equal; cards of different ids are no mirrors."""
    signals = recording.signals
    ids = {(d.host, d.name): d.properties.get("uuid") or d.properties.get("pci", "") for d in recording.devices}
    originals: dict[tuple[str, str, int], list[tuple[int, npt.NDArray[np.float64], float]]] = defaultdict(list)
    found = []
    for row, signal in enumerate(signals):
        if signal.kind != "counter" or len(signal) < _FEW:
            continue
        steps = np.diff(signal.values).astype(np.float64) * float(signal.scale)
        known, whole = originals[signal.host, signal.unit, len(signal)], float(steps.sum())
        near = ((at, other) for at, other, sum_ in known if not abs(sum_ - whole) > _CLOSE * abs(sum_))  # mostly none
        first = next((at for at, other in near if _same(other, steps)), None)
        if first is None:
            known.append((row, steps, whole))
            continue
        cards = {ids.get((one.host, one.device), "") for one in (signals[first], signal)}
        if len(cards) == 2 and "" not in cards:
            continue
        text = f"{_title(signal)}: mirrors {signals[first].name} (equal increments); count only one of them"
        found.append(Check("mirrored", text, (first, row)))
    return found


def _same(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> bool:
    """Equal increments (whose sums are close) but for the rounding of floats, and for those that one sensor got a
    reading later.

    Small multiples of a counter's resolution are equal by chance, so that without larger ones all have to be.
    """
    moved = (a != 0) | (b != 0)
    if not moved.any():
        return False
    equal = np.abs(a - b) <= _ROUNDING * np.maximum(np.abs(a), np.abs(b))
    apart = np.diff(np.sort(np.append(a, 0.0)))
    noise = _ROUNDING * float(np.abs(a).max())
    telling = np.minimum(a, b) > _MULTIPLES * float(apart[apart > noise].min(initial=np.inf))
    if telling.sum() < _MANY:
        return bool(equal[moved].all())
    return bool(equal[telling].mean() >= _MOSTLY)


def _nested(recording: Recording) -> list[Check]:
    """Devices of one host of which one contains the other."""
    kinds = {(device.host, device.name): device.kind for device in recording.devices}
    found = []
    metered: dict[str, dict[str, int]] = defaultdict(dict)  # host → device → its first signal
    for row, signal in enumerate(recording.signals):
        if signal.device and signal.unit in ("J", "W") and len(signal):
            metered[signal.host].setdefault(signal.device, row)
    for host, devices in metered.items():
        for outer, inner in permutations(devices, 2):
            if contains(kinds.get((host, outer), ""), kinds.get((host, inner), "")):
                text = f"{outer} on {host}: contains {inner}; never add the two"
                found.append(Check("nested", text, (devices[outer], devices[inner]), warns=False))
    return found


def _power_ratios(recording: Recording) -> list[Check]:
    """Integrated power over counted energy of the same device, in the time both cover."""
    by_device: dict[tuple[str, str], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row, signal in enumerate(recording.signals):
        if signal.device and len(signal) >= 2 and (signal.kind, signal.unit) in (("counter", "J"), ("gauge", "W")):
            by_device[signal.host, signal.device][signal.kind].append(row)
    found = []
    for (host, device), kinds in by_device.items():
        for counter in kinds["counter"]:
            for gauge in kinds["gauge"]:
                rows = (counter, gauge)
                counted, integrated = (energy(recording.signals[row], recording.clock) for row in rows)
                ratio = _ratio(counted, integrated)
                if ratio is not None:
                    text = f"{device} on {host}: integrated power is {ratio:.4f} of the counter"
                    found.append(Check("power-ratio", text, rows, ratio, warns=abs(ratio - 1) > _DISAGREE))
    return found


def _ratio(counted: Energy, integrated: Energy) -> float | None:
    if not len(counted.times) or not len(integrated.times):
        return None
    begin = max(int(counted.times[0]), int(integrated.times[0]))
    end = min(int(counted.times[-1]), int(integrated.times[-1]))
    if end <= begin:
        return None
    used, power = (float(np.diff(curve.at([begin, end]))[0]) for curve in (counted, integrated))
    return power / used if used > 0 else None


def concerning(checks: Sequence[Check], rows: Sequence[int]) -> list[Problem]:
    """What warns about these signals; of a pair both have to be chosen, but for power against counter."""
    chosen = set(rows)
    return [
        check.problem()
        for check in checks
        if check.warns
        and (chosen.issuperset(check.signals) or (check.kind == "power-ratio" and chosen & {*check.signals}))
    ]
