"""Files of the kernel: counters kept open (one ``pread`` per reading), small texts, CPU time. Shared by the meters."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


class CounterFile:
    """A file that holds one number (and perhaps more words), read afresh from its start each time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def words(self) -> list[bytes]:
        return os.pread(self.file, 128, 0).split()

    def value(self) -> int | None:
        """The number, or None when the kernel gave none this time."""
        try:
            return int(os.pread(self.file, 64, 0))
        except (OSError, ValueError):
            return None

    def close(self) -> None:
        """Close it; a second time does nothing, since the number may be another file's by then."""
        if self.file >= 0:
            os.close(self.file)
            self.file = -1


@dataclass
class WordSum:
    """The sum of some words of such a file, most often of its only one: a source (see ``sources``)."""

    file: CounterFile
    numbers: Sequence[int] = (0,)

    def read(self) -> int | None:
        try:
            words = self.file.words()
            return sum(int(words[number]) for number in self.numbers)
        except (OSError, ValueError, IndexError):
            return None

    def close(self) -> None:
        self.file.close()


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
            self.ticks: WordSum | None = WordSum(CounterFile(proc / "stat"), (1, 2, 3, 6, 7))  # not idle, not waiting
        except OSError:
            self.ticks = None
        self.ticks_per_s = os.sysconf("SC_CLK_TCK")

    def seconds(self) -> float | None:
        ticks = self.ticks.read() if self.ticks else None
        return None if ticks is None else ticks / self.ticks_per_s

    def close(self) -> None:
        if self.ticks:
            self.ticks.close()


def busy_core_s(proc: Path = Path("/proc")) -> float | None:
    """The same, asked once."""
    cores = BusyCores(proc)
    busy_s = cores.seconds()
    cores.close()
    return busy_s
