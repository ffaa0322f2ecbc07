"""Apple: the program ``powermetrics``, whose plist output is parsed as it comes. It never asks for a password.

powermetrics needs root: we run it directly when we are root, else through ``sudo -n``, which fails instead of asking.
Each sample is a mean over the time since the last one, so it stands as a gauge at the middle of that time. "Combined
Power" (CPU + GPU + ANE) is read too but stands apart: its parts are added instead. ``root`` is a program that writes
such output.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..model import Device
from ..plugins import Availability, Channel
from ..readers.powermetrics_samples import KINDS, Sample, parse_plist

if TYPE_CHECKING:
    import subprocess

PERIOD_S = 0.2
_FIX = "sudo visudo -f /etc/sudoers.d/powermetrics   # add: %staff ALL=(root) NOPASSWD: /usr/bin/powermetrics"


class Powermetrics:
    """The meter ``powermetrics``."""

    name = "powermetrics"

    def __init__(self, root: str | None = None, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._program, self._clock = root, clock
        self._running: subprocess.Popen[bytes] | None = None
        self._names: list[str] = []
        self._pending = b""

    def available(self) -> Availability:
        if self._running is not None:
            return Availability(True)
        if self._program is None and sys.platform != "darwin":
            return Availability(False, "powermetrics is a program of macOS")
        import shutil
        import subprocess

        command = [self._program or shutil.which("powermetrics") or "/usr/bin/powermetrics"]
        command += ["--samplers", "cpu_power,gpu_power", "-i", str(int(PERIOD_S * 1000)), "-f", "plist"]
        if self._program is None and os.geteuid() != 0:
            command = ["sudo", "-n", *command]
        try:
            self._running = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        except OSError as error:
            return Availability(False, f"{command[0]}: {error.strerror}")
        assert self._running.stdout is not None
        os.set_blocking(self._running.stdout.fileno(), False)
        for _ in range(100):  # the first sample says what this machine has; it takes a period to come
            time.sleep(0.02)
            samples = self._samples()
            if samples:
                self._names = [name for name in KINDS if name in samples[-1]]
                return Availability(True)
            if self._running.poll() is not None:
                break
        self.close()
        return Availability(False, "powermetrics may be run by root only", _FIX)

    def _samples(self) -> list[Sample]:
        """Return the samples since the last call."""
        assert self._running is not None
        assert self._running.stdout is not None
        try:
            self._pending += os.read(self._running.stdout.fileno(), 1 << 20)
        except BlockingIOError:
            return []
        end = self._pending.rfind(b"</plist>")
        if end < 0:
            return []
        end += len(b"</plist>")
        whole, self._pending = self._pending[:end], self._pending[end:]
        return parse_plist(whole)

    def channels(self) -> Sequence[Channel]:
        from fractions import Fraction

        offered = []
        for name in self._names:
            device = Device(name, KINDS[name], properties={"source": "powermetrics"})
            offered.append(
                Channel("power", "gauge", "W", device, Fraction(1, 1000), latency_s=PERIOD_S, period_s=PERIOD_S)
            )
        return offered

    def read(self) -> Sequence[tuple[int, int | float | None]]:
        now = self._clock()
        samples = self._samples()
        if not samples:
            return [(now, None)] * len(self._names)
        last = samples[-1]
        middle = now - last.elapsed_ns // 2
        return [(middle, last.get(name)) for name in self._names]

    def close(self) -> None:
        if self._running is not None:
            import subprocess
            from contextlib import suppress

            with suppress(PermissionError):
                self._running.kill()  # what is blocked in the sampler, as SIGTERM is, is blocked in it
            if self._running.stdout is not None:
                self._running.stdout.close()  # sudo cannot pass a kill on: what it runs ends with its next word
            with suppress(subprocess.TimeoutExpired):
                self._running.wait(1)
            self._running = None
