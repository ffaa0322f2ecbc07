"""When one meter is due, and what its counters have done so far: the part of ``sampler`` that is about one meter.

Its rules for the next reading stand a second time in ``_core/poll.c``, which follows them without Python.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..plugins import Meter

SECOND = 1_000_000_000
QUICKEST_NS = 20_000_000  # 50 Hz: a Python loop costs 0.4 % of a core there and 5 % at 1 kHz
SLOWEST_NS = SECOND
STEP_NS = 2_000_000  # readings at least this frequent are timed by the counter's updates
_RENEWED_PERIODS = 1.25  # its updates are not quite regular
CHANGES = 8  # that tell a sensor's period


class MeterSchedule:
    """One meter: when it is due, and what its counters have done so far."""

    def __init__(self, number: int, meter: Meter, interval_s: float | None) -> None:
        self.number, self.meter, self.read = number, meter, meter.read
        self.channels = list(meter.channels())
        self.energy = [i for i, c in enumerate(self.channels) if c.unit in ("J", "W")]
        self.counters = [i for i in self.energy if self.channels[i].kind == "counter"]
        self.others: list[int] = []  # what else is shown live: utilisation, memory, temperature
        periods = [c.period_s for i, c in enumerate(self.channels) if i in self.energy and c.period_s]
        self.period_s = max(periods, default=0.1)
        unknown = [i for i in self.counters if not self.channels[i].period_s]
        self._learns = set(unknown) if interval_s is None else set()  # counters whose period is to be found
        self.is_new = bool(self._learns)  # it has not been found yet
        half = 0.0 if unknown else min(periods, default=0.0) / 2
        self.interval_ns = int(interval_s * SECOND) if interval_s is not None else max(QUICKEST_NS, int(half * SECOND))
        self.due_ns = 0
        self.last: list[tuple[int, int | float | None]] = [(0, None)] * len(self.channels)
        self.changed_ns: list[int] = [0] * len(self.channels)  # when a counter was last seen to move …
        self.moved_after_ns: list[int] = [0] * len(self.channels)  # … which it did after this moment
        self._delays_ns = [
            int(max(0.0, c.latency_s - c.period_s) * SECOND)
            if c.kind == "counter" and c.latency_s and c.period_s
            else 0
            for c in self.channels
        ]
        counted = {self.channels[i].device.name for i in self.counters}
        self._last_updates_ns = [  # after which a gauge that speaks for its device was renewed, however equal its value
            int(_RENEWED_PERIODS * c.period_s * SECOND)
            if c.kind == "gauge" and c.period_s and c.device.name not in counted
            else 0
            for c in self.channels
        ]
        # since the child's start: what a counter counted; of a gauge, twice its integral over ns
        self.used: list[int | float] = [0] * len(self.channels)
        self._spacings: list[int] = []

    def take(self, readings: Sequence[tuple[int, int | float | None]], now_ns: int) -> None:
        """Note what has changed, and learn the sensor's period from it."""
        for i in self.energy:
            at, value = readings[i]
            if value is None:
                continue
            before_at, before = self.last[i]
            self.last[i] = at, value
            if self.channels[i].kind != "counter":
                self.changed_ns[i] = self.moved_after_ns[i] = at
                if before is not None:
                    self.used[i] += (before + value) * (at - before_at)
            elif before is not None and value != before:
                if self.changed_ns[i] and i in self._learns:
                    self._spacings.append(now_ns - self.changed_ns[i])
                self.changed_ns[i], self.moved_after_ns[i] = now_ns, before_at
                step = value - before
                self.used[i] += step if step > 0 else max(0, step + (self.channels[i].wraps_at or 0))
        for i in self.others:
            if readings[i][1] is not None:
                self.last[i] = readings[i]
        if self._learns and len(self._spacings) >= CHANGES * len(self._learns):
            half = sorted(self._spacings)[len(self._spacings) // 2] // 2
            self.interval_ns = min(max(half, QUICKEST_NS), SLOWEST_NS)
            self.is_new = False
            self._spacings.clear()

    @property
    def early_ns(self) -> int:
        """From when on a wake-up reads it: sooner than planned, if that spares another (not what keeps a step)."""
        return self.due_ns - (self.interval_ns // 2 if self.interval_ns > STEP_NS else 0)

    def schedule(self, now_ns: int) -> None:
        """The next reading, in step with the earlier ones; a late one does not make it early, that would cost more."""
        behind_ns = now_ns + self.interval_ns // 2 - (self.due_ns + self.interval_ns)
        self.due_ns += self.interval_ns * (1 + max(0, -(-behind_ns // self.interval_ns)))

    def waiting(self, since_ns: int, ends: bool) -> bool:
        """Whether an energy channel has surely not moved since then (at the end: of those that ever did).

        A change was made after the reading before the one that showed it; only if that one came after ``since_ns``, the
        change did. A sensor whose readings are late by more than its period is waited for so much longer. At the end
        (``ends``) a gauge is waited for until it was renewed: its readings speak of the time before an update.
        """
        return any(
            self.moved_after_ns[i] < since_ns + self._delays_ns[i] + (self._last_updates_ns[i] if ends else 0)
            and (self.changed_ns[i] > 0 or not ends)
            for i in self.energy
        )
