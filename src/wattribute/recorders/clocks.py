"""What this machine's clocks say, and how far the wall clock may be off: noted in recordings, used by ``merge``."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import Any

_BOOT = "/proc/sys/kernel/random/boot_id"


def stamp() -> dict[str, Any]:
    """Both clocks at one moment, the kernel's boot, and the wall clock's greatest error (None: unknown).

    Recordings of one boot share a monotonic clock and can be joined exactly; others by their wall clocks.
    """
    boot = ""
    with suppress(OSError), open(_BOOT) as file:
        boot = file.read().strip()
    width_ns, monotonic_ns, epoch_ns = both()
    error_ns = wall_clock_error_ns()
    return {
        "host": os.uname().nodename,
        "boot": boot,
        "monotonic_ns": monotonic_ns,
        "epoch_ns": epoch_ns,
        "uncertainty_ns": None if error_ns is None else error_ns + width_ns,
    }


def both() -> tuple[int, int, int]:
    """Both clocks at one moment: (how long the look took, monotonic ns, epoch ns); of five looks the quickest."""
    return min((_pair() for _ in range(5)), key=lambda pair: pair[0])


def _pair() -> tuple[int, int, int]:
    before = time.monotonic_ns()
    epoch = time.time_ns()
    after = time.monotonic_ns()
    return after - before, (before + after) // 2, epoch


def wall_clock_error_ns() -> int | None:
    """The greatest error of the wall clock as the kernel and its time daemon see it; None without a time daemon."""
    import ctypes

    maxerror, status, unsynchronised = 3, 40, 0x40  # long number 3 and the int at byte 40 of struct timex, 64-bit Linux
    buffer = (ctypes.c_long * 32)()
    try:
        state = ctypes.CDLL(None, use_errno=True).adjtimex(buffer)
    except (OSError, AttributeError):
        return None
    flags = ctypes.c_int.from_buffer(buffer, status).value
    if state < 0 or flags & unsynchronised:
        return None
    return int(buffer[maxerror]) * 1000
