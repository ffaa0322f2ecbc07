"""RAPL through ``perf_event_open``: 64-bit, accumulated by the kernel, the way with the lowest latency.

Used by ``rapl``; knows nothing of powercap. The kernel describes its PMU "power" under
``<sys>/bus/event_source/devices/power``: event codes, exact scales, and one CPU per package (or die) to read on.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from ..journal.layouts import PERF_ADDRESS as ADDRESS
from .files import text

_SYSCALLS = {"x86_64": 298, "aarch64": 241, "ppc64le": 319, "riscv64": 241, "s390x": 331}
_CLOSE_ON_EXEC = 8
_ATTRIBUTES = struct.Struct("=IIQQQQQIIQ")  # type, size, config, then zeros: perf_event_attr, first published size (64)


@dataclass(frozen=True)
class Event:
    """One RAPL domain on one CPU."""

    domain: str  # "pkg", "ram", "psys", "cores", "gpu"
    package: str  # "0", or "0 die 1"
    cpu: int
    kind: int
    config: int
    scale: Fraction

    @property
    def address(self) -> str:
        """What another process opens the same counter by, see ``open_counter``."""
        return f"{ADDRESS}{self.kind}:{self.config}:{self.cpu}"


def events(sys: Path) -> list[Event]:
    """List the energy events that the kernel offers, without opening any."""
    pmu = sys / "bus/event_source/devices/power"
    kind = text(pmu / "type")
    if not kind.isdigit():
        return []
    available = []
    cpus = _cpus(text(pmu / "cpumask"))
    for file in sorted((pmu / "events").glob("energy-*")):
        if "." in file.name:
            continue
        domain = file.name.removeprefix("energy-")
        config = text(file).partition("=")[2]
        scale = Fraction(text(file.with_name(file.name + ".scale")) or "1")
        for cpu in cpus[:1] if domain == "psys" else cpus:
            available.append(Event(domain, _package(sys, cpu), cpu, int(kind), int(config or "0", 0), scale))
    return available


def _cpus(mask: str) -> list[int]:
    """CPU numbers of "0,16" or "0-1"."""
    cpus: list[int] = []
    for part in filter(None, mask.split(",")):
        first, _, last = part.partition("-")
        cpus += range(int(first), int(last or first) + 1)
    return cpus or [0]


def _package(sys: Path, cpu: int) -> str:
    topology = sys / f"devices/system/cpu/cpu{cpu}/topology"
    package, die = text(topology / "physical_package_id") or "0", text(topology / "die_id") or "0"
    return package if die == "0" else f"{package} die {die}"


def open_counter(address: str) -> PerfCounter:
    """Open the counter at the address of an event; it counts from 0 on. Raises OSError."""
    kind, config, cpu = map(int, address.removeprefix(ADDRESS).split(":"))
    return PerfCounter(Event("", "", cpu, kind, config, Fraction(1)))


class PerfCounter:
    """An open event, a source of ``sources``; raises OSError (EACCES, ENOENT, EINVAL …) when the kernel refuses it."""

    def __init__(self, event: Event) -> None:
        number = _SYSCALLS.get(os.uname().machine)
        if number is None:
            raise OSError(38, f"perf_event_open is not known on {os.uname().machine}")
        attributes = _ATTRIBUTES.pack(event.kind, _ATTRIBUTES.size, event.config, 0, 0, 0, 0, 0, 0, 0)
        library = ctypes.CDLL(None, use_errno=True)
        self.file = library.syscall(number, attributes, -1, event.cpu, -1, _CLOSE_ON_EXEC)
        if self.file < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))

    def read(self) -> int | None:
        try:
            data = os.read(self.file, 8)
        except OSError:
            return None
        return int.from_bytes(data, sys.byteorder) if len(data) == 8 else None  # less: the event is in error

    def close(self) -> None:
        os.close(self.file)
