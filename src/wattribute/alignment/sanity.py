"""Sanity checks of sensors: stale, dead, mirrored, nested, ended early, counter against power.

``examine`` looks at all signals of a recording; ``info`` shows what it finds and ``attribute`` passes on what touches
the chosen signals. Nothing here changes a number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product
from typing import Any

import numpy as np
import numpy.typing as npt

from ..model import Clock, Problem, Recording, Signal
from ..model.counts import is_count
from ..model.recording import median_step
from ..model.stored import StoredSignal
from ..sensors import contains
from .energy import Energy, energy, is_stale
from .mirrors import repeated

_EARLY_READINGS = 10  # missing at the end, in units of the signal's own spacing …
_EARLY_PART = 0.05  # … and this part of the longest signal
_MIN_READINGS_FOR_SPACING = 10  # readings, before their spacing means anything
_MIN_READINGS_FOR_MIRRORS = 3  # readings, before equal increments mean anything
_MAX_POWER_RATIO_ERROR = 0.10  # integrated power may differ from counted energy by this part


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


class Signals(tuple[Signal, ...]):
    """Signals of a recording whose ``survey`` was made where their readings are."""

    checks: tuple[Check, ...] | None

    def __new__(cls, signals: Iterable[Signal], checks: Iterable[Check] | None = None) -> Signals:
        instance = super().__new__(cls, signals)
        instance.checks = None if checks is None else tuple(checks)
        return instance


def examine(recording: Recording) -> list[Check]:
    """All findings, in the order of the signals."""
    known = _known(recording)
    checks = survey(recording) if known is None else list(known)
    return sorted(checks + _ended_early(recording), key=lambda check: check.signals)


def survey(recording: Recording) -> list[Check]:
    """Check the signals of one host, which needs no signals of other hosts."""
    signals = recording.signals
    alone = [check for row in range(len(signals)) for check in _alone(signals, row, recording.clock)]
    return [*alone, *mirrored(recording), *_nested(recording), *_power_ratios(recording)]


def renumbered(check: Check, rows: Sequence[int]) -> Check:
    """A finding about signals that have other rows in the whole recording."""
    return replace(check, signals=tuple(rows[row] for row in check.signals))


def _known(recording: Recording) -> tuple[Check, ...] | None:
    return recording.signals.checks if isinstance(recording.signals, Signals) else None


def _ended_early(recording: Recording) -> list[Check]:
    """Signals that end long before the last reading of the recording."""
    filled = [(row, signal) for row, signal in enumerate(recording.signals) if len(signal)]
    extents = [(row, *signal.extent) for row, signal in filled if not is_count(signal)]  # work ends when it is done
    begins = min((first for _, first, _, _ in extents), default=0)
    ends = max((last for _, _, last, _ in extents), default=0)
    checks = []
    for row, *_ in extents:
        signal = recording.signals[row]
        if short := missing_ticks(signal, begins, ends):
            seconds = short / recording.clock.ticks_per_s
            device = "" if signal.device in signal.name else f"{signal.device}, "  # that the driver has lost, maybe
            text = f"{device}{_title(signal)}: ends {seconds:.3g} s before the last reading of the recording"
            checks.append(Check("ended-early", text, (row,)))
    return checks


def missing_ticks(signal: Signal, begins: int, ends: int) -> int:
    """How long before ``ends`` a signal ends; 0 where that is no more than a few of its readings."""
    _, last, spacing = signal.extent
    short = ends - last
    many = short > _EARLY_READINGS * spacing and short > _EARLY_PART * (ends - begins)
    return short if many and len(signal) >= _MIN_READINGS_FOR_SPACING else 0


def _title(signal: Signal) -> str:
    return f"{signal.name} on {signal.host}" if signal.host else signal.name


def _alone(signals: Sequence[Signal], row: int, clock: Clock) -> list[Check]:
    """Check one signal by itself."""
    signal = signals[row]
    checks = []
    values = signal.values
    if len(signal) >= 2 and signal.kind == "counter":
        moved = values[1:] != values[:-1]
        if not moved.any():
            checks.append(Check("dead", f"{_title(signal)}: the counter never moved", (row,)))
        elif is_stale(signal, np.asarray(signal.times), values):
            spacing_ms = 1e3 * median_step(signal.times[1:][moved]) / clock.ticks_per_s
            text = f"{_title(signal)}: changes only every {spacing_ms:.3g} ms although read more often"
            checks.append(Check("stale", text, (row,)))
    elif len(signal) >= _MIN_READINGS_FOR_SPACING and signal.kind == "gauge" and not (values != values[0]).any():
        checks.append(Check("constant", f"{_title(signal)}: never changed", (row,), warns=False))
    if (signal.kind, signal.unit) == ("gauge", "W") and (below := int((values < 0).sum())):
        text = f"{_title(signal)}: {below:,} of {len(signal):,} readings are below 0 W; they count as they are"
        checks.append(Check("negative", text, (row,)))
    return checks


def mirrored(recording: Recording) -> list[Check]:
    """Counters of one host whose increments are equal; cards of different ids are no mirrors."""
    known_checks = _known(recording)
    if known_checks is not None:
        return [check for check in known_checks if check.kind == "mirrored"]
    signals = recording.signals
    ids = {(d.host, d.name): d.properties.get("uuid") or d.properties.get("pci", "") for d in recording.devices}
    alike: dict[tuple[str, str, int], list[int]] = defaultdict(list)
    for row, signal in enumerate(signals):
        if signal.kind == "counter" and len(signal) >= _MIN_READINGS_FOR_MIRRORS:
            alike[signal.host, signal.unit, len(signal)].append(row)
    pairs = []
    for rows in (rows for rows in alike.values() if len(rows) > 1):
        steps = _Steps([signals[row] for row in rows])
        in_files = any(isinstance(signals[row], StoredSignal) for row in rows)
        firsts = repeated(steps if in_files else list(steps))
        pairs += [(rows[at], row) for row, at in zip(rows, firsts, strict=True) if at is not None]
    checks = []
    for first, row in sorted(pairs, key=lambda pair: pair[1]):
        signal = signals[row]
        cards = {ids.get((one.host, one.device), "") for one in (signals[first], signal)}
        if len(cards) == 2 and "" not in cards:
            continue
        text = f"{_title(signal)}: mirrors {signals[first].name} (equal increments); count only one of them"
        checks.append(Check("mirrored", text, (first, row)))
    return checks


class _Steps(Sequence[npt.NDArray[np.float64]]):
    """The increments of counters, made when they are asked for."""

    def __init__(self, signals: Sequence[Signal]) -> None:
        self._signals = signals

    def __len__(self) -> int:
        return len(self._signals)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[one] for one in range(len(self))[at]]
        signal = self._signals[at]
        return np.diff(signal.values).astype(np.float64) * float(signal.scale)


def _nested(recording: Recording) -> list[Check]:
    """Devices of one host of which one contains the other."""
    kinds = {(device.host, device.name): device.kind for device in recording.devices}
    checks = []
    metered: dict[str, dict[str, int]] = defaultdict(dict)  # host → device → its first signal
    for row, signal in enumerate(recording.signals):
        if signal.device and signal.unit in ("J", "W") and len(signal):
            metered[signal.host].setdefault(signal.device, row)
    for host, devices in metered.items():
        by_kind: dict[str, list[str]] = defaultdict(list)
        for device in devices:
            by_kind[kinds.get((host, device), "")].append(device)
        for of_outer, of_inner in permutations(by_kind, 2):
            if contains(of_outer, of_inner):
                for outer, inner in product(by_kind[of_outer], by_kind[of_inner]):
                    text = f"{outer} on {host}: contains {inner}; never add the two"
                    checks.append(Check("nested", text, (devices[outer], devices[inner]), warns=False))
    return checks


def _power_ratios(recording: Recording) -> list[Check]:
    """Integrated power over counted energy of the same device, in the time both cover."""
    by_device: dict[tuple[str, str], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row, signal in enumerate(recording.signals):
        if signal.device and len(signal) >= 2 and (signal.kind, signal.unit) in (("counter", "J"), ("gauge", "W")):
            by_device[signal.host, signal.device][signal.kind].append(row)
    checks = []
    for (host, device), kinds in by_device.items():
        if not (kinds["counter"] and kinds["gauge"]):
            continue
        curves = {row: energy(recording.signals[row], recording.clock) for rows in kinds.values() for row in rows}
        for counter in kinds["counter"]:
            for gauge in kinds["gauge"]:
                rows = (counter, gauge)
                ratio = _ratio(curves[counter], curves[gauge])
                if ratio is not None:
                    text = f"{device} on {host}: integrated power is {ratio:.4f} of the counter"
                    checks.append(
                        Check("power-ratio", text, rows, ratio, warns=abs(ratio - 1) > _MAX_POWER_RATIO_ERROR)
                    )
    return checks


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
