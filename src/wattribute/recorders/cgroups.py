"""The control group of a container: the CPU time and memory of all that runs in it, and its processes (v1 and v2).

A group vanishes with its last process, so its counters have to be read while it lives: ``Usage`` keeps the last values.
``mountinfo`` says where the kernel mounts what; ``root`` stands in for "/" in tests.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable
from pathlib import Path

from ..meters.files import CounterFile, number, text

POLL_S = 0.02  # CPU time used after the last look is lost, so look often; a look costs 10 us


def folder(pid: int, controller: str, root: Path = Path("/")) -> Path | None:
    """The folder of the group that a process belongs to, in the hierarchy (v1) that has a controller, or in v2's."""
    try:
        lines = (root / "proc" / str(pid) / "cgroup").read_text().splitlines()
        mounts = (root / "proc" / "self" / "mountinfo").read_text().splitlines()
    except OSError:
        return None
    groups = [line.split(":", 2) for line in lines if line.count(":") >= 2]
    old = next((path for _, controllers, path in groups if controller in controllers.split(",")), None)
    new = next((path for number, controllers, path in groups if number == "0" and not controllers), None)
    for path, kind in ((old, "cgroup"), (new, "cgroup2")):
        if path is None:
            continue
        for top, mounted in _mounts(mounts, kind, controller):
            inner = os.path.relpath(path, top) if path.startswith(top) else path.lstrip("/")
            group = root / mounted.lstrip("/") / inner
            if inner not in ("", ".") and group.is_dir():  # every process is in the top group
                return group
    return None


def _mounts(lines: Iterable[str], kind: str, controller: str) -> list[tuple[str, str]]:
    """(which group is its top, where) of every mount of a hierarchy; names have octal escapes."""
    mounts = []
    for line in lines:
        left, _, right = line.partition(" - ")
        fields, options = left.split(" "), right.split(" ")
        if options[0] == kind and (kind == "cgroup2" or controller in options[-1].split(",")):
            top, mounted = (re.sub(r"\\(\d{3})", lambda m: chr(int(m[1], 8)), text) for text in fields[3:5])
            mounts.append((top, mounted))
    return mounts


def members(pid: int, root: Path = Path("/")) -> list[int]:
    """All processes in the group of a process and in the groups below; the process alone if they cannot be read."""
    top = folder(pid, "cpuacct", root)
    pids = {pid}
    for place in () if top is None else (top, *(path for path in top.rglob("*") if path.is_dir())):
        try:
            pids.update(int(line) for line in (place / "cgroup.procs").read_text().split())
        except (OSError, ValueError):
            continue
    return sorted(pids)


def cpu_s(pid: int, root: Path = Path("/")) -> float | None:
    """The CPU time of the group of a process so far; None where it is not its own, or is gone."""
    group = folder(pid, "cpuacct", root)
    if group is None:
        return None
    old = number(group / "cpuacct.usage")  # ns; v2: "usage_usec N" comes first in cpu.stat
    if old is not None:
        return old / 1e9
    words = text(group / "cpu.stat").split()
    return int(words[1]) / 1e6 if len(words) > 1 and words[1].isdigit() else None


class Usage:
    """CPU time and peak memory of a process's group, watched by a thread from ``start`` to ``stop``."""

    def __init__(self, pid: int, root: Path = Path("/")) -> None:
        self.cpu_s: float | None = None
        self.max_rss_bytes = 0
        self._cpu: CounterFile | None = None
        self._ns_per_unit, self._memory = 1, Path("/nonexistent")
        group, memory = folder(pid, "cpuacct", root), folder(pid, "memory", root)
        if group is not None:
            old = (group / "cpuacct.usage").exists()
            self._ns_per_unit = 1 if old else 1000  # v2: "usage_usec N" comes first in cpu.stat
            try:
                self._cpu = CounterFile(group / ("cpuacct.usage" if old else "cpu.stat"))
            except OSError:
                self._cpu = None
        if memory is not None:
            names = ("memory.max_usage_in_bytes", "memory.peak", "memory.current")
            self._memory = next((memory / name for name in names if (memory / name).exists()), self._memory)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _cpu_s(self) -> float | None:
        try:
            words = [] if self._cpu is None else self._cpu.words()
            return int(words[0 if self._ns_per_unit == 1 else 1]) * self._ns_per_unit / 1e9 if words else None
        except (OSError, ValueError, IndexError):
            return None  # the group is gone

    def look(self) -> None:
        now_s = self._cpu_s()
        if now_s is not None:
            self.cpu_s = now_s
            self.max_rss_bytes = max(self.max_rss_bytes, number(self._memory) or 0)

    def _watch(self) -> None:
        while not self._stop.is_set():
            self.look()
            self._stop.wait(POLL_S)

    def start(self) -> Usage:
        self._thread.start()
        return self

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        if self._cpu is not None:
            self._cpu.close()
