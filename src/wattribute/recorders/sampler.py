"""The sampler: a process of its own that reads meters on the monotonic clock and writes the journal.

Started by ``sampling``, which tells it of the child's start and end. It brackets the child: it reports ready when every
counter stands on a fresh update, and after the end it goes on until every counter has moved once more. In between each
meter is read at twice the rate at which its sensor is seen to change, at most 50 times a second, or as the user asked.
When its master vanishes it closes the journal and ends; if a driver hangs then, a second thread writes what there is.
Imports here are few: the child waits for them.

Waking up is what costs, and code that has gone cold: one wake-up serves every meter that is nearly due, and readings
are only held then; once a second they are looked at and written, all together. In between the compiled core waits and
reads, where a meter offers it ``sources`` (half the cost, or so); other meters, and all without a core, are read here.
"""

from __future__ import annotations

import _thread
import contextlib
import gc
import json
import os
import select
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from .._core.polling import Polling, Row, polling
from ..journal.file import NAME, Journal
from ..journal.layouts import COUNTERS
from ..meters.sources import Sources
from ..plugins import Channel, Meter
from ..units import SUFFIXES
from .accounting import LOOK_NS, Account, account
from .schedule import QUICKEST_NS, SECOND, STEP_NS, MeterSchedule

EDGE_NS = 1_000_000  # how closely a bracket watches
AFTER_NS = 100_000  # the core wakes so punctually that an update may not have come yet; Python is later by itself
START_LIMIT_NS = 200_000_000
END_LIMIT_NS = 300_000_000
FLUSH_NS = SECOND
HUNG_S = 1.0  # a read that takes longer after the master has hung up does not return, however busy the machine is
LATEST_NS = SECOND // 2  # what is to be done once a second waits so long for a wake-up that has another reason


class Control(Protocol):
    """The sampler's line to its master."""

    def wait(self, until_ns: int) -> list[dict[str, Any]] | None:
        """Messages as they come, [] when the time is up, None when the master is gone."""
        ...

    def tell(self, message: dict[str, Any]) -> None: ...


T = TypeVar("T")
Held = tuple[MeterSchedule, Sequence[tuple[int, "int | float | None"]], int]  # readings, and when that was done


class Core:
    """The meters that the compiled core can read, which it does many times while Python sleeps."""

    def __init__(self, plans: Sequence[MeterSchedule], polling: Polling, file: int) -> None:
        self._plans, self._polling, self._file = plans, polling, file
        self._is_polling = False
        for number, plan in enumerate(plans):
            plan.read = partial(self._now, number)

    @classmethod
    def of(cls, plans: Sequence[MeterSchedule], file: int) -> Core | None:
        offered = {plan: getattr(plan.meter, "sources", None) for plan in plans}
        chosen = {
            plan: sources
            for plan, sources in offered.items()
            if isinstance(sources, Sources)
            and sources
            and (hasattr(plan.meter, "readings") or sources.slots == len(plan.channels))
        }
        poller = polling(list(chosen.values()))
        return None if poller is None else cls(list(chosen), poller, file)

    def _now(self, number: int) -> Row:
        return self._made(number, self._polling.read(number))

    def _made(self, number: int, row: Row) -> Row:
        readings = getattr(self._plans[number].meter, "readings", None)
        return row if readings is None else readings(row)

    def poll(self, plans: Sequence[MeterSchedule], latest_ns: int, enough_ns: int) -> list[Held]:
        """Read until Python has something to do: another meter is due, a task, or a message has come."""
        for plan in plans:
            if plan not in self._plans:
                latest_ns, enough_ns = min(latest_ns, plan.due_ns), min(enough_ns, plan.early_ns)
            elif plan.is_new:
                enough_ns = 0
            elif plan.interval_ns < QUICKEST_NS:
                enough_ns = min(enough_ns, plan.due_ns + QUICKEST_NS)
        for plan, meter in zip(self._plans, self._polling.meters, strict=True):
            meter.due_ns, meter.interval_ns = plan.due_ns, plan.interval_ns
        self._is_polling = True
        rows = self._polling.poll(self._file, enough_ns, latest_ns)
        held = [self._held(*row) for row in rows]
        self._is_polling = False
        for plan, meter in zip(self._plans, self._polling.meters, strict=True):
            plan.due_ns = meter.due_ns
        return held

    def _held(self, number: int, row: Row, at: int) -> Held:
        return self._plans[number], self._made(number, row), at

    def unfinished(self) -> list[Held]:
        """What ``poll`` has read so far, where it does not return: the last row is the one that it waits for."""
        return [self._held(*row) for row in self._polling.unfinished()] if self._is_polling else []


class Sampler:
    """Loop that reads meters until the master orders the end."""

    def __init__(
        self,
        meters: Sequence[Meter],
        journal: Journal,
        control: Control,
        clock: Callable[[], int] = time.monotonic_ns,
        interval_s: float | None = None,
        live_s: float | None = None,
        account: Account | None = None,  # of the child's CPU time, and of who counts with it on GPUs
        file: int | None = None,  # where the master's messages come in, for the core to wait at; None: no core
    ) -> None:
        self._plans = [MeterSchedule(number, meter, interval_s) for number, meter in enumerate(meters)]
        self._core = None if file is None else Core.of(self._plans, file)
        self._journal, self._control, self._clock = journal, control, clock
        self._live_ns = int(live_s * SECOND) if live_s else None
        for plan in self._plans if live_s else ():
            plan.others = [i for i, c in enumerate(plan.channels) if c.kind == "gauge" and i not in plan.energy]
        self._account, self._pid = account, 0
        self._family: set[int] = set()  # the processes that count with the child's, as far as seen
        self._held: list[Held] = []
        self._flush_at = self._live_at = self._share_at = self._look_at = 0
        self._problems: list[str] = []
        self._turn = _thread.allocate_lock()  # held except while a meter is asked
        self._turn.acquire()
        self._asked, self._asks = 0, 0  # the meter that was asked last, and how many were so far
        self._cpu_before_s = self.cpu_s = 0.0  # used before the child ran, and by sampling while it did

    def run(self) -> None:
        """The whole life: bracket, report, sample, bracket."""
        self._bracket(self._clock(), START_LIMIT_NS, ends=False)
        for plan in self._plans:
            self._fall_in_step(plan)
        self._control.tell({"ready": self._clock()})
        self._flush_at = self._clock() + FLUSH_NS
        self._cpu_before_s = time.process_time()
        ended_ns = self._sample()
        self.cpu_s = time.process_time() - self._cpu_before_s
        if ended_ns is None:
            self._journal.event({"abandoned": self._clock()})
        else:
            self._bracket(ended_ns, END_LIMIT_NS, ends=True)
        self._journal.flush()

    def _sample(self) -> int | None:
        """Read what is due until the end; return its time, or None if the master is gone."""
        while True:
            due = self._flush_at + LATEST_NS
            for plan in self._plans:
                if plan.due_ns < due:
                    due = plan.due_ns
            if self._core is not None:
                poll = partial(self._core.poll, self._plans, self._flush_at + LATEST_NS, self._next_task_ns())
                self._held += self._ask(0, poll)
            messages = self._control.wait(due)
            if messages is None:
                self._settle()
                return None
            for message in messages:
                self._journal.event(message)
                if "start" in message:
                    self._pid = message.get("pid", 0)
                    self._begin()
                    self._look(self._clock())
                if "end" in message:
                    for plan in self._plans:
                        self._read(plan)
                    self._look(self._clock())
                    if self._live_ns:
                        self._tell(self._clock())  # how it ended
                    return int(message.get("until", message["end"]))
            now = self._clock()
            for plan in self._plans if now >= due else ():
                if plan.early_ns <= now:
                    self._hold(plan)
                    plan.schedule(now)
            if any(plan.is_new or plan.interval_ns < QUICKEST_NS for plan in self._plans):
                self._settle()  # hundreds held would make the next ones late
            if now >= self._next_task_ns():
                self._housekeeping(now)

    def _next_task_ns(self) -> int:
        """When something is to be done beside reading."""
        task_ns = self._flush_at
        if self._live_ns and self._live_at < task_ns:
            task_ns = self._live_at
        if self._account and self._pid and self._look_at < task_ns:
            task_ns = self._look_at
        return task_ns

    def _housekeeping(self, now: int) -> None:
        if now >= self._flush_at:
            self._settle()
            self._journal.flush()
            self._flush_at = now + FLUSH_NS
        if self._live_ns and now >= self._live_at:
            self._live_at = now + self._live_ns
            self._tell(now)
        if self._account and self._pid and now >= self._look_at:
            self._look(now)

    def _look(self, now: int) -> None:
        """Note the CPU time of the child and of the machine, and once a second the child's part of each GPU."""
        if not (self._account and self._pid):
            return
        self._look_at = now + LOOK_NS
        seconds = self._account.look(self._pid, now)
        if seconds is not None:
            self._journal.event({"cpu_s": seconds, "at": now})
        sharing = [plan for plan in self._plans if hasattr(plan.meter, "process_shares")]
        if sharing and now >= self._share_at:
            self._share_at = now + SECOND
            self._family |= self._account.members(self._pid, now)  # drivers tell of those that have just ended, too
            for plan in sharing:
                event: dict[str, Any] = {"at": now}
                for name, key in (("process_shares", "shares"), ("slice_shares", "slices")):
                    if shares := getattr(plan.meter, name, None):
                        event[key] = self._ask(plan.number, partial(shares, self._family))
                self._journal.event(event)

    def _hold(self, plan: MeterSchedule) -> None:
        """Read a meter, and leave what follows from it for ``_settle``."""
        try:
            readings = self._ask(plan.number, plan.read)
        except Exception as error:  # a plug-in's bug must not end the recording of the others
            self._leave_out(plan, error)
            return
        self._held.append((plan, readings, self._clock()))

    def _ask(self, number: int, call: Callable[[], T]) -> T:
        """Ask a meter, or the core, whose driver may hang: meanwhile ``rescue`` has its turn."""
        self._asked, self._asks = number, self._asks + 1
        self._turn.release()
        try:
            return call()
        finally:
            self._turn.acquire()

    @property
    def asks(self) -> int:
        """How often meters were asked so far: one that hangs keeps it as it is."""
        return self._asks

    def rescue(self) -> bool:
        """Write what was read before a meter that does not return, from another thread; False if none is being asked.

        The first thread does not go on afterwards, should its meter return.
        """
        if not self._turn.acquire(blocking=False):
            return False
        unfinished = [] if self._core is None else self._core.unfinished()
        hung = unfinished[-1][0] if unfinished else self._plans[self._asked]
        self._held += unfinished
        self._settle()
        while messages := self._control.wait(0):
            for message in messages:
                self._journal.event(message)
        problem = f"meter {hung.meter.name} did not answer any more: its driver hangs, and nothing was read after that"
        self._journal.event({"problem": problem})
        self._journal.flush()
        self.cpu_s = time.process_time() - self._cpu_before_s
        return True

    def _leave_out(self, plan: MeterSchedule, error: Exception) -> None:
        """Stop reading a meter; its earlier readings count."""
        self._problems.append(f"meter {plan.meter.name} failed and was left out: {error!r}")
        self._journal.event({"problem": self._problems[-1]})
        plan.due_ns = sys.maxsize
        plan.energy = []

    def _settle(self) -> None:
        held, self._held = self._held, []
        for plan, readings, at in held:
            if plan.due_ns == sys.maxsize:
                continue
            try:
                self._journal.readings(plan.number, readings)
                plan.take(readings, at)
            except Exception as error:  # not what its channels promise
                self._leave_out(plan, error)

    def _tell(self, now: int) -> None:
        self._settle()
        self._control.tell({"live": self._status(), "at": now, "problems": self._problems})

    def _read(self, plan: MeterSchedule) -> None:
        self._hold(plan)
        self._settle()

    def _bracket(self, since_ns: int, limit_ns: int, ends: bool) -> None:
        """Watch closely until every energy channel has moved after ``since_ns``, two periods at most."""
        for plan in self._plans:
            self._read(plan)
        while True:
            now = self._clock()
            open_plans = [
                plan
                for plan in self._plans
                if plan.waiting(since_ns, ends) and now < since_ns + min(limit_ns, int(2 * plan.period_s * SECOND))
            ]
            if not open_plans:
                return
            if self._control.wait(now + EDGE_NS) is None and not ends:
                return
            for plan in open_plans:
                self._read(plan)

    def _fall_in_step(self, plan: MeterSchedule) -> None:
        """Let readings that are about as frequent as a counter's updates come right after them.

        At any other phase each would show what was used up to half an interval or more ago, always the same.
        """
        limit_ns = self._clock() + 3 * STEP_NS
        since_ns = max((plan.changed_ns[i] for i in plan.counters), default=0)
        while plan.interval_ns <= STEP_NS and plan.counters and self._clock() < limit_ns:
            self._read(plan)
            edge_ns = max(plan.changed_ns[i] for i in plan.counters)
            if edge_ns > since_ns:
                plan.due_ns = edge_ns + plan.interval_ns + (0 if self._core is None else AFTER_NS)
                return

    def _begin(self) -> None:
        for plan in self._plans:
            self._read(plan)
            plan.used = [0] * len(plan.channels)
        self._journal.flush()  # that a child runs is worth more than a second's readings

    def _status(self) -> list[dict[str, Any]]:
        """For live views: per device the energy since the child's start (as known at ``counted_at``), the power now,
        and what else it says; joules, watts and the units in the names."""
        rows: dict[str, dict[str, Any]] = {}
        for plan in self._plans:
            for i in (*plan.energy, *plan.others):
                channel, (at, value) = plan.channels[i], plan.last[i]
                if value is None:
                    continue
                row = rows.setdefault(channel.device.name, {"device": channel.device.name, "at": at})
                if i in plan.others:
                    row[f"{channel.name}_{SUFFIXES.get(channel.unit, channel.unit)}"] = float(value * channel.scale)
                    continue
                row["estimated"] = channel.estimated
                gauge = channel.kind == "gauge"
                if gauge:
                    row.setdefault("power_w", float(value * channel.scale))
                if self._pid and "energy_j" not in row:
                    row["energy_j"] = float(plan.used[i] * channel.scale) / (2 * SECOND if gauge else 1)
                    row["counted_at"] = at if gauge else plan.changed_ns[i]
        return list(rows.values())


# ------------------------------------------------------------------------------------------------------ the process


class Pipes:
    """Control over standard input and output: a line of JSON each way."""

    def __init__(self) -> None:
        self._pending = b""
        self._poll = select.poll()
        self._poll.register(0, select.POLLIN)

    def wait(self, until_ns: int) -> list[dict[str, Any]] | None:
        left_ns = until_ns - time.monotonic_ns()
        if left_ns > STEP_NS:  # cheaper than select, and up to a millisecond late
            is_silent = not self._poll.poll(left_ns // 1_000_000 + 1)
        else:
            is_silent = not select.select([0], [], [], max(0, left_ns) / SECOND)[0]
        if is_silent:
            return []
        received = os.read(0, 65536)
        if not received:
            return None
        *lines, self._pending = (self._pending + received).split(b"\n")
        return [json.loads(line) for line in lines]

    def tell(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError):  # the master is gone; the next wait says so
            os.write(1, json.dumps(message).encode() + b"\n")


def main(opens_all: bool) -> None:
    """Entry point of the process; its order names the folder, the meters, and what to note beside them.

    With ``opens_all`` it opens every meter there is before the order comes.
    """
    from .._core.shared import opened
    from ..errors import WattributeError
    from ..meters import choose

    gc.disable()  # nothing here makes cycles, and a collection in the wrong moment delays a reading
    chosen = None
    control = Pipes()

    def opening(name: str) -> None:
        control.tell({"opening": name})  # if its driver hangs, the master knows whose

    if opens_all:
        with contextlib.suppress(WattributeError):  # the order's own attempt says what is wrong
            chosen = choose((), opening=opening)
    line = sys.stdin.buffer.readline()
    order = json.loads(line or "null")
    if chosen is not None and (order is None or order["meters"] != []):  # opened in vain
        for meter in chosen[0]:
            meter.close()
        chosen = None
    if order is None:
        return  # our master ended without one
    try:
        if chosen is None:
            chosen = choose(order["meters"], opening=opening) if order["meters"] is not None else ([], [])
        meters, refused = chosen
        opened()  # raises if the core is required and not there
        journal = Journal(Path(order["folder"]) / NAME if order["folder"] else None)
    except (WattributeError, OSError) as error:
        control.tell({"error": str(error)})
        return
    about = order["about"] | {
        "monotonic_ns": time.monotonic_ns(),
        "epoch_ns": time.time_ns(),
        "meters": [{"name": m.name, "channels": [plain(c) for c in m.channels()]} for m in meters],
        "refused": [{"meter": r.name, "reason": r.availability.reason, "fix": r.availability.fix} for r in refused],
    }
    journal.about(about, [m.channels() for m in meters])
    for meter in meters:
        for problem in getattr(meter, "problems", ()):
            journal.event({"problem": problem})
    journal.flush()
    if order["folder"]:
        _offer_counters(Path(order["folder"]) / "regions", meters)
    if order["live_s"]:
        control.tell({"about": about})
    sampler = Sampler(
        meters, journal, control, interval_s=order["interval_s"], live_s=order["live_s"],
        account=account(order["shares"]), file=0,
    )  # fmt: skip
    _thread.start_new_thread(_rescue, (sampler, control, journal))
    sampler.run()
    _report(sampler, control, journal)
    for meter in meters:
        meter.close()


def _report(sampler: Sampler, control: Control, journal: Journal, hung: bool = False) -> None:
    """The last message, and what of the journal did not reach its file."""
    rest = journal.unwritten()
    control.tell({"done": sampler.cpu_s, "rest": len(rest), "failure": journal.failure, "hung": hung})
    while rest:
        rest = rest[os.write(1, rest) :]


def _rescue(sampler: Sampler, control: Control, journal: Journal) -> None:
    """Wait (asleep) until the master hangs up; if a meter hangs then, save what was read, and end the process."""
    line = select.poll()
    line.register(0, 0)  # no message wakes it
    line.poll()
    asks = -1
    while asks != sampler.asks or not sampler.rescue():
        asks = sampler.asks
        time.sleep(HUNG_S)
    _report(sampler, control, journal, hung=True)
    os._exit(0)


def _offer_counters(folder: Path, meters: Sequence[Meter]) -> None:
    """Name the counters that move far more often than they are read here: programs read them where regions begin."""
    quick = [
        channel.declared["file"]
        for meter in meters
        for channel in meter.channels()
        if "file" in channel.declared and channel.kind == "counter" and (channel.period_s or 1) * SECOND < QUICKEST_NS
    ]
    if quick:
        with contextlib.suppress(OSError):  # a full disk, or a folder of another's making: the edges go without
            (folder / COUNTERS).write_text("\n".join(quick) + "\n", encoding="utf-8")


def plain(channel: Channel) -> dict[str, Any]:
    """A channel as JSON."""
    device = channel.device
    return {
        **{name: getattr(channel, name) for name in _PLAIN},
        "scale": str(channel.scale),
        "device": {"name": device.name, "kind": device.kind, "properties": dict(device.properties)},
    }


_PLAIN = ("name", "kind", "unit", "wraps_at", "latency_s", "period_s", "estimated", "gain_error", "declared", "whole")
