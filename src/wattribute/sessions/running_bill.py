"""The bill of a run while it runs: the points of ``bill_series``, as soon as they are certain.

A reading interval is divided once the clocks of the command and of others were read after it. The bill of a device
whose floor may still be found in the recording, and of the rest of a node, is certain at the end: ``finish`` takes it
from the whole journal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..engines.middle import Division, Energy, MeteredDevice, bill_curves, known_division, usage_of
from ..model import Intervals, Recording, Signal
from ..outputs.timeseries.series import (
    BILL,
    Floats,
    Ints,
    Labels,
    Series,
    bill_labels,
    bill_series,
    devices_with_bill,
    last_of_each,
)
from ..readers.journal import Accounts

_MOST_PENDING = 100_000  # readings of a device whose users are not known yet; beyond that every second one is dropped


@dataclass
class _Account:
    """A device whose bill is running: readings that are not divided yet, the first of which is the last divided one."""

    device: MeteredDevice
    how: Division
    times: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    totals: Floats = field(default_factory=lambda: np.empty(0))
    sums_j: dict[str, float] = field(default_factory=dict)
    held: dict[str, tuple[Ints, Floats]] = field(default_factory=dict)  # points of the tenth that is not over

    def take(self, times: Ints, totals: Floats) -> None:
        self.times, self.totals = np.concatenate([self.times, times]), np.concatenate([self.totals, totals])
        if len(self.times) > _MOST_PENDING:
            kept = np.union1d(np.arange(0, len(self.times), 2), len(self.times) - 1)
            self.times, self.totals = self.times[kept], self.totals[kept]


class RunningBill:
    """Fed with the energy of devices and with events; gives the points that are certain by then."""

    def __init__(self, recording: Recording) -> None:
        self._recording = replace(recording, clock=replace(recording.clock, length_ticks=0))
        self._epoch_ns = recording.clock.epoch_ns or 0
        self._clocks: dict[tuple[str, str], Signal] = {}
        self._start: int | None = None
        self._end: int | None = None
        host = next((device.host for device in recording.devices), "")
        self._accounts = Accounts(host, recording.clock)
        self._devices: dict[int, _Account] = {}
        for one in devices_with_bill(recording):
            how = None if one.parts else known_division(recording, one)
            if how is not None:
                self._devices[one.row] = _Account(one, how)

    def feed(
        self, energy: Mapping[int, tuple[Ints, Floats]], events: Sequence[Mapping[str, Any]], last: bool
    ) -> Iterator[Series]:
        """The points that are certain now; ``energy`` has new ones (ns since the epoch, joules) by row of signal."""
        if not self._devices:  # the whole bill comes at the end
            return
        for event in events:
            self._start = event.get("start", self._start)
            self._end = event.get("end", self._end)
        for signal in self._accounts.signals(events, last):
            self._clocks[signal.name, signal.device] = _joined(self._clocks.get((signal.name, signal.device)), signal)
        for row, account in self._devices.items():
            if row in energy:
                account.take(energy[row][0] - self._epoch_ns, energy[row][1])
            if self._start is not None:
                yield from self._divided(account, last)
        self._forget()

    def finish(self, recording: Recording) -> Iterator[Series]:
        """The points of the finished recording that were not certain before."""
        running = {self._labels(account, part) for account in self._devices.values() for part in account.sums_j}
        return (each for each in bill_series(recording, self._epoch_ns) if each.labels not in running)

    def _labels(self, account: _Account, part: str) -> Labels:
        estimated = self._recording.signals[account.device.row].estimated
        return bill_labels(self._recording, account.device.device, part, estimated, self._epoch_ns)

    def _divided(self, account: _Account, last: bool) -> Iterator[Series]:
        usage = usage_of(replace(self._recording, signals=tuple(self._clocks.values())), account.device.device)
        known = len(account.times)
        if not last:
            known = 0 if usage is None else int(np.searchsorted(account.times, usage.times[-1]))
        curve = self._curve(account, known)
        if len(curve.times) < 2 and not last:
            return
        parts = bill_curves(curve, replace(account.how, usage=usage), self._recording.clock.ticks_per_s)
        if len(curve.times) < 2:
            parts = dict.fromkeys(account.held, curve)
        account.times, account.totals = account.times[max(known - 1, 0) :], account.totals[max(known - 1, 0) :]
        for part, own in parts.items() if len(parts) > 1 else ():
            is_first, before = part not in account.sums_j, account.sums_j.get(part, 0.0)
            times, values = own.times[0 if is_first else 1 :], own.values[0 if is_first else 1 :] + before
            account.sums_j[part] = before + own.measured
            if part in account.held:
                times, values = (np.concatenate(pair) for pair in zip(account.held[part], (times, values), strict=True))
            times_ns, values = last_of_each(times + self._epoch_ns, values)
            if not last:  # the last tenth may not be over
                account.held[part] = times_ns[-1:] - self._epoch_ns, values[-1:]
                times_ns, values = times_ns[:-1], values[:-1]
            if len(times_ns):
                yield Series(BILL, self._labels(account, part), times_ns, values, self._epoch_ns)

    def _curve(self, account: _Account, known: int) -> Energy:
        """The energy in the first ``known`` readings that lies in the command's life."""
        times, totals = account.times[:known], account.totals[:known]
        offset = self._recording.clock.offset_ticks
        signal = self._recording.signals[account.device.row]
        latency = self._recording.clock.ticks(signal.latency_s) if signal.latency_s else 0
        rises = np.diff(totals)
        curve = Energy(
            signal, "J", times, totals - totals[:1], Intervals(times[:1], times[-1:]), rises, rises, False, latency
        )
        return curve.between(*(None if at is None else at - offset for at in (self._start, self._end)))

    def _forget(self) -> None:
        """Let go of what no interval to come asks for."""
        undivided = [account.times[0] for account in self._devices.values() if len(account.times)]
        reach = max((self._recording.clock.ticks(s.latency_s or 0.0) for s in self._recording.signals), default=0)
        oldest = min(undivided, default=0) - reach
        for key, signal in self._clocks.items():
            first = max(int(np.searchsorted(signal.times, oldest)) - 1, 0)
            self._clocks[key] = replace(signal, times=signal.times[first:], values=signal.values[first:])


def _joined(before: Signal | None, after: Signal) -> Signal:
    if before is None:
        return after
    times = np.concatenate([before.times, after.times])
    return replace(after, times=times, values=np.concatenate([before.values, after.values]))
