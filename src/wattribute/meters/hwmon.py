"""hwmon: power and energy sensors that drivers publish under /sys/class/hwmon, NVIDIA Grace's among them.

Grace (ACPI power meters) names its sensors "Module Power Socket 0" (Grace and Hopper), "Grace Power Socket 0" (inside
it), "CPU Power Socket 0" and "SysIO Power Socket 0" (inside Grace): only Grace's own is added to a run's total. Sensors
whose place in the machine is unknown are shown apart. ``root`` is the hwmon folder.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

from ..model import Device
from ..plugins import Availability, Channel
from .files import CounterFile, WordSum, number, text
from .sources import Row, Sources

MICRO = Fraction(1, 10**6)
_SENSOR = re.compile(r"(power|energy)(\d+)_(input|average)$")
_GRACE = re.compile(r"(Module|Grace|CPU|SysIO) Power Socket (\d+)")
_GRACE_PARTS = {
    "Module": ("module", "it sees Grace and the GPU"),
    "Grace": ("cpu", ""),
    "CPU": ("cpu", "inside Grace"),
    "SysIO": ("io", "inside Grace"),
}
_GPU_CHIPS = ("amdgpu", "xe", "i915", "nouveau")


class Hwmon:
    """The meter ``hwmon``."""

    name = "hwmon"

    def __init__(self, root: str | None = None, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._root = Path(root or "/sys/class/hwmon")
        self.sources = Sources(clock)
        self._channels: list[Channel] = []

    def available(self) -> Availability:
        if self.sources:
            return Availability(True)
        denied = ""
        for chip in sorted(self._root.glob("hwmon*"), key=lambda path: (len(path.name), path.name)):
            for path in _sensors(chip):
                try:
                    words = WordSum(CounterFile(path))
                except OSError:
                    denied = str(path)
                    continue
                if words.read() is None:  # the driver lists a sensor that the board does not have
                    words.close()
                    continue
                self.sources.add(words)
                self._channels.append(_channel(chip, path))
        if self.sources:
            return Availability(True)
        if denied:
            return Availability(False, f"{denied} may be read by root only", f"sudo chmod a+r {denied}")
        return Availability(False, f"no power or energy sensor in {self._root}")

    def channels(self) -> Sequence[Channel]:
        return self._channels

    def read(self) -> Row:
        return self.sources.read()

    def close(self) -> None:
        self.sources.close()
        self._channels = []


def _sensors(chip: Path) -> list[Path]:
    """One file per sensor: ``_input`` if there is one, else ``_average``; older drivers keep them under device/."""
    chosen: dict[tuple[str, int], Path] = {}
    for folder in (chip / "device", chip):
        for path in folder.glob("*_*"):
            match = _SENSOR.match(path.name)
            if match and (match[3] == "input" or (match[1], int(match[2])) not in chosen):
                chosen[match[1], int(match[2])] = path
    return [chosen[key] for key in sorted(chosen)]


def _channel(chip: Path, path: Path) -> Channel:
    quantity, index, _ = _SENSOR.match(path.name).groups()  # type: ignore[union-attr]  # _sensors matched it
    driver = text(chip / "name") or text(chip / "device/name") or chip.name
    label = text(path.with_name(f"{quantity}{index}_label")) or text(path.with_name(f"{quantity}{index}_oem_info"))
    name, kind, apart = _place(driver, label, chip.name, index)
    interval_ms = number(path.with_name(f"{quantity}{index}_average_interval"))
    period_s = interval_ms / 1e3 if interval_ms else None
    properties = {"source": f"hwmon {driver} {label}".strip()} | ({"apart": apart} if apart else {})
    kind_of_signal, unit = ("counter", "J") if quantity == "energy" else ("gauge", "W")
    return Channel(
        quantity, kind_of_signal, unit, Device(name, kind, properties=properties), MICRO, latency_s=period_s,
        period_s=period_s or 0.1, declared={"file": str(path)},
    )  # fmt: skip


def _place(driver: str, label: str, chip: str, index: str) -> tuple[str, str, str]:
    """(name, kind, why apart) of the device behind a sensor."""
    grace = _GRACE.search(label)
    if grace:
        kind, apart = _GRACE_PARTS[grace[1]]
        return f"{grace[1]} {grace[2]}", kind, apart
    if driver == "amd_energy":
        socket = label.startswith("Esocket")
        return label, "cpu", "" if socket else "inside its socket"
    if driver in _GPU_CHIPS:
        return f"{driver} {chip.removeprefix('hwmon')}", "gpu", ""
    return f"{driver} {chip.removeprefix('hwmon')}.{index}", "board", "its place in the machine is unknown"
