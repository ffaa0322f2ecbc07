"""Files of the kernel: counters kept open (one ``pread`` per reading), small texts, CPU time. Shared by the meters."""

from __future__ import annotations

import os
from pathlib import Path


class CounterFile:
    """A file that holds one number (and perhaps more words), read afresh from its start each time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def words(self) -> list[bytes]:
        return os.pread(self._file, 128, 0).split()

    def value(self) -> int | None:
        """The number, or None when the kernel gave none this time."""
        try:
            return int(os.pread(self._file, 64, 0))
        except (OSError, ValueError):
            return None

    def close(self) -> None:
        os.close(self._file)


def text(path: Path) -> str:
    """The content of a small file, or "" when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def number(path: Path) -> int | None:
    try:
        return int(text(path))
    except ValueError:
        return None


class BusyCores:
    """Core-seconds that all processors spent working since boot, where the kernel says so; stolen time was not ours."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        try:
            self._stat: CounterFile | None = CounterFile(proc / "stat")
        except OSError:
            self._stat = None
        self._ticks_per_s = os.sysconf("SC_CLK_TCK")

    def seconds(self) -> float | None:
        try:
            words = self._stat.words() if self._stat else []
            user, nice, system, _idle, _wait, irq, softirq = map(int, words[1:8])
        except (OSError, ValueError):
            return None
        return (user + nice + system + irq + softirq) / self._ticks_per_s

    def close(self) -> None:
        if self._stat:
            self._stat.close()


def busy_core_s(proc: Path = Path("/proc")) -> float | None:
    """The same, asked once."""
    cores = BusyCores(proc)
    busy_s = cores.seconds()
    cores.close()
    return busy_s
