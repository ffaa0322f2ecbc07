"""Apple: the program ``powermetrics``, whose plist output is parsed as it comes. It never asks for a password.

powermetrics needs root: we run it directly when we are root, else through ``sudo -n``, which fails instead of asking.
Each sample is a mean over the time since the last one, so it stands as a gauge at the middle of that time. "Combined
Power" (CPU + GPU + ANE) is read too but stands apart: its parts are added instead. ``root`` is a program that writes
such output.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..model import Device
from ..plugins import Availability, Channel

if TYPE_CHECKING:
    import subprocess

PERIOD_S = 0.2
_FIX = "sudo visudo -f /etc/sudoers.d/powermetrics   # add: %staff ALL=(root) NOPASSWD: /usr/bin/powermetrics"
_TEXT = re.compile(
    r"^(CPU|GPU|ANE|DRAM|Package|Combined|System) Power(?: \([^)]*\))?:\s*(\d{1,9}(?:\.\d{1,9})?)\s*(mW|W)\s*$"
)
_INTEL = re.compile(r"^Intel energy model derived package power \([^)]*\):\s*(\d{1,9}(?:\.\d{1,9})?)\s*(mW|W)\s*$")
_SAMPLE = re.compile(r"^\*\*\* Sampled system activity \((.*?)\) \((\d{1,9}(?:\.\d{1,9})?)ms elapsed\)")
_MOMENT = "%a %b %d %H:%M:%S %Y %z"  # Wed Nov  1 12:00:00 2023 +0100
_PLIST = {
    "cpu_power": "CPU",
    "gpu_power": "GPU",
    "ane_power": "ANE",
    "dram_power": "DRAM",
    "combined_power": "Combined",
}
KINDS = {
    "CPU": "cpu",
    "GPU": "gpu",
    "ANE": "npu",
    "DRAM": "dram",
    "Package": "cpu",
    "Combined": "soc",
    "System": "node",
}


class Sample(dict[str, int]):
    """Milliwatts by the names of the text output, how long the sample lasted, and when it ended where that is told."""

    elapsed_ns: int = 0
    epoch_ns: int | None = None


def parse_text(text: str) -> list[Sample]:
    """Every sample in text output, as people keep it; the meter itself asks for plist."""
    samples: list[Sample] = []
    for line in text.splitlines():
        line = line.strip()
        if match := _SAMPLE.match(line):
            samples.append(Sample())
            samples[-1].elapsed_ns = round(float(match[2]) * 1e6)
            samples[-1].epoch_ns = _epoch_ns(match[1])
        elif match := _TEXT.match(line):
            if not samples:
                samples.append(Sample())
            samples[-1][match[1]] = _milliwatts(match[2], match[3])
        elif match := _INTEL.match(line):
            if not samples:
                samples.append(Sample())
            samples[-1]["Package"] = _milliwatts(match[1], match[2])
    return [sample for sample in samples if sample]


def _epoch_ns(text: str) -> int | None:
    from datetime import datetime

    try:
        return int(datetime.strptime(text, _MOMENT).timestamp()) * 10**9
    except (ValueError, OverflowError):
        return None


def _milliwatts(number: str, unit: str) -> int:
    return round(float(number) * (1 if unit == "mW" else 1000))


def parse_plist(data: bytes) -> list[Sample]:
    """Every sample of plist output: documents one after the other, parted by NUL; a cut one is left out."""
    import plistlib
    from xml.parsers.expat import ExpatError

    samples = []
    for document in data.split(b"\0"):
        if not document.strip():
            continue
        try:
            content: Any = plistlib.loads(document.strip())
        except (ExpatError, plistlib.InvalidFileException, ValueError, LookupError, AttributeError, TypeError):
            continue
        if not isinstance(content, dict):
            continue
        sample = _plist_sample(content)
        if sample:
            samples.append(sample)
    return samples


def _plist_sample(content: dict[str, Any]) -> Sample:
    import calendar

    sample, processor = Sample(), content.get("processor")
    for key, name in _PLIST.items():
        value = _finite(processor, key)
        if value is not None:
            sample[name] = round(value)
    watts = _finite(processor, "package_watts")
    if watts is not None:
        sample["Package"] = round(watts * 1000)
    sample.elapsed_ns = int(_finite(content, "elapsed_ns") or 0)
    moment: Any = content.get("timestamp")  # without a zone, and in UTC
    sample.epoch_ns = calendar.timegm(moment.timetuple()) * 10**9 if hasattr(moment, "timetuple") else None
    return sample


def _finite(of: Any, key: str) -> float | None:
    """A number that power or a time can be, or None."""
    value = of.get(key) if isinstance(of, dict) else None
    return value if isinstance(value, int | float) and abs(value) < 1e15 else None


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
        """What has come since the last look."""
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
            parts = name == "Combined" and len(self._names) > 1
            properties = {"source": "powermetrics"} | ({"apart": "its parts are listed"} if parts else {})
            device = Device(name, KINDS[name], properties=properties)
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
