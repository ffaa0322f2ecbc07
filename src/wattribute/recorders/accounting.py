"""CPU time of a command with all its children, and of the whole machine, per package where there are several.

The sampler looks every LOOK_NS; ``readers.journal`` makes two clocks of it: the command's and everything else's. Of a
process its own clock is read (nanoseconds), and what it has reaped of its children from /proc; new processes are looked
for once a second, and only those are asked for their parent that were not there before. Of a container the CPU time is
its control group's, which is its own. ``proc`` and ``clock`` stand in for the kernel in tests.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from ..meters.files import number

LOOK_NS = 250_000_000
SCAN_NS = 1_000_000_000
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_BUSY = (1, 2, 3, 6, 7)  # words of a line of /proc/stat: not idle, not waiting, not stolen
# words of /proc/PID/stat behind the name
_PARENT, _OWN, _REAPED, _STARTED, _PROCESSOR = 1, (11, 12), (13, 14), 19, 36


class Account(Protocol):
    """Who counts with a command, and the CPU time of both sides."""

    def members(self, pid: int, now_ns: int) -> set[int]:
        """The processes that count with the command, as far as seen."""
        ...

    def look(self, pid: int, now_ns: int) -> list[list[float]] | None:
        """[[seconds of the command per package], [seconds of the machine per package]] since boot, or None."""
        ...


def process_ns(pid: int) -> int | None:
    """The CPU time of a process with all its threads, without its children; None once it is gone."""
    try:
        return time.clock_gettime_ns((~pid << 3) | 2)  # the kernel's number for the CPU clock of a process
    except OSError:
        return None


class _Stat(NamedTuple):
    """Fields of /proc/PID/stat."""

    parent: int
    own_ns: int
    reaped_ns: int
    started: int
    processor: int


def _stat(path: str) -> _Stat | None:
    try:
        with open(path, "rb", buffering=0) as file:
            words = file.read(1024).rpartition(b")")[2].split()
        own, reaped = (sum(int(words[at]) for at in which) * _TICK_NS for which in (_OWN, _REAPED))
        return _Stat(int(words[_PARENT]), own, reaped, int(words[_STARTED]), int(words[_PROCESSOR]))
    except (OSError, ValueError, IndexError):
        return None


class _Member:
    """A process of the command's family."""

    def __init__(self, about: _Stat) -> None:
        self.parent, self.started = about.parent, about.started
        self.own_ns = 0  # as last seen
        self.reaped_ns = 0
        self.threads: dict[str, int] = {}  # with several packages: CPU time of each thread as last seen


class FamilyAccount:
    """A process and all that descend from it, by /proc."""

    def __init__(
        self,
        proc: str = "/proc",
        packages: Mapping[int, int] | None = None,
        clock: Callable[[int], int | None] = process_ns,
        without: int = 0,
    ) -> None:
        """``without`` is a process that does not count, nor what descends from it: a program's own sampler."""
        self._proc, self._clock = proc, clock
        self.packages = machine_packages() if packages is None else dict(packages)  # processor → package
        self.count = max(self.packages.values(), default=0) + 1
        self._family: dict[int, _Member] = {}
        self._strangers = {without}
        self._scan_at = 0
        self._spent_ns = [0] * self.count  # of each package
        self._known_ns = 0  # what of it was given to a package already
        self._gone_ns = 0  # of members that ended and were reaped by a stranger, as last seen

    def members(self, pid: int, now_ns: int) -> set[int]:
        if now_ns >= self._scan_at or pid not in self._family:
            self._scan_at = now_ns + SCAN_NS
            self._scan(pid)
        return set(self._family)

    def _scan(self, pid: int) -> None:
        try:
            present = {int(entry) for entry in os.listdir(self._proc) if entry.isdigit()}
        except OSError:
            present = {pid}
        self._strangers &= present
        unknown = {}
        for other in present - self._strangers - self._family.keys():
            about = _stat(f"{self._proc}/{other}/stat")
            if about is not None:
                unknown[other] = about
        if pid in unknown:
            self._family[pid] = _Member(unknown.pop(pid))
        grown = True
        while grown and unknown:
            children = [other for other, about in unknown.items() if about.parent in self._family]
            for child in children:
                self._family[child] = _Member(unknown.pop(child))
            grown = bool(children)
        self._strangers |= unknown.keys()

    def look(self, pid: int, now_ns: int) -> list[list[float]] | None:
        machine = machine_s(self._proc, self.packages, self.count)
        if machine is None:
            return None
        self.members(pid, now_ns)
        whole_ns, threads = 0, [0] * self.count
        for one, member in list(self._family.items()):
            about = _stat(f"{self._proc}/{one}/stat")
            own_ns = None if about is None or about.started != member.started else self._clock(one)
            if about is None or own_ns is None:
                self._leave(one, member)
                continue
            if self.count > 1:
                self._count_threads(one, member, threads)
            member.own_ns = own_ns
            member.reaped_ns = max(member.reaped_ns, about.reaped_ns)
            member.parent = about.parent
        whole_ns = self._gone_ns + sum(member.own_ns + member.reaped_ns for member in self._family.values())
        self._share(max(whole_ns - self._known_ns, 0), threads)
        return [[ns / 1e9 for ns in self._spent_ns], machine]

    def _leave(self, pid: int, member: _Member) -> None:
        """A process is gone: a parent in the family has its time with that of its children by now, or never will."""
        del self._family[pid]
        if member.parent not in self._family:
            self._gone_ns += member.own_ns + member.reaped_ns

    def _count_threads(self, pid: int, member: _Member, packages: list[int]) -> None:
        """Add what each thread spent since the last look to the package it is on."""
        folder = f"{self._proc}/{pid}/task"
        try:
            names = os.listdir(folder)
        except OSError:
            names = []
        for name in names:
            one = _stat(f"{folder}/{name}/stat")
            if one is not None:
                spent = max(one.own_ns - member.threads.get(name, 0), 0)
                member.threads[name] = one.own_ns
                packages[self.packages.get(one.processor, 0)] += spent

    def _share(self, spent_ns: int, threads: list[int]) -> None:
        """Give the packages what was spent since the last look, as the threads did."""
        self._known_ns += spent_ns
        parts = next(some for some in (threads, list(self._spent_ns), [1] * self.count) if sum(some))
        for package, part in enumerate(parts):
            self._spent_ns[package] += spent_ns * part // sum(parts)


def descendants(pid: int) -> set[int]:
    """A process and all that descend from it."""
    return FamilyAccount(packages={}).members(pid, 0)


class GroupAccount:
    """The control group of a container: it is the command's own, so its CPU time is the command's."""

    def __init__(self, proc: str = "/proc") -> None:
        self._proc = proc

    def members(self, pid: int, now_ns: int) -> set[int]:
        from .cgroups import members

        return set(members(pid))

    def look(self, pid: int, now_ns: int) -> list[list[float]] | None:
        from .cgroups import cpu_s

        own, machine = cpu_s(pid), machine_s(self._proc, {}, 1)
        return None if own is None or machine is None else [[own], machine]


def account(whose: str) -> Account | None:
    """Make the account of a "family" (without this process) or of a control "group"; None for "" (no account)."""
    if whose == "group":
        return GroupAccount()
    return FamilyAccount(without=os.getpid()) if whose else None


def machine_s(proc: str, packages: Mapping[int, int], count: int) -> list[float] | None:
    """Core-seconds that all processors spent working since boot, per package; None where the kernel does not say."""
    try:
        with open(f"{proc}/stat", "rb", buffering=0) as file:
            text = file.read(128 if count == 1 else 1 << 16)
        if count == 1:
            return [_busy_s(text.split())]
        busy = [0.0] * count
        for line in text.splitlines()[1:]:
            if not line.startswith(b"cpu"):
                break
            words = line.split()
            busy[packages.get(int(words[0][3:]), 0)] += _busy_s(words)
    except (OSError, ValueError, IndexError):
        return None
    return busy


def _busy_s(words: list[bytes]) -> float:
    return sum(int(words[at]) for at in _BUSY) * _TICK_NS / 1e9


def machine_packages(root: Path = Path("/sys/devices/system/cpu")) -> dict[int, int]:
    """Processor → its package, numbered from 0; nothing on a machine of one package."""
    packages = {}
    for folder in root.glob("cpu[0-9]*"):
        package = number(folder / "topology" / "physical_package_id")
        if package is not None:
            packages[int(folder.name[3:])] = package
    names = sorted(set(packages.values()))
    return {processor: names.index(package) for processor, package in packages.items()} if len(names) > 1 else {}


def reserved_part() -> float:
    """Share of the machine's CPUs that this process, and so the command, may use."""
    whole = os.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else whole
    return min(1.0, allowed / whole)
