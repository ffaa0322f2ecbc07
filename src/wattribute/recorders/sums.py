"""What may be added up: devices inside other ones, and estimates of what a sensor measured.

Said here once, without NumPy, for recordings (``build``) and for what is shown while meters are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..model import Device


def measured_too(measured: Iterable[str]) -> set[str]:
    """The kinds of devices that need no estimate when these kinds are measured."""
    kinds = set(measured)
    if "node" in kinds:  # it includes them
        kinds |= {"cpu", "dram"}
    if "cpu" in kinds:  # AMD has no DRAM counter; an estimate beside a measurement would look like one
        kinds.add("dram")
    return kinds


def apart(devices: Sequence[Device]) -> dict[str, str]:
    """Device name → why its energy is not added to that of the others, whoever metered it (property ``meter``)."""
    whole_node = any(d.kind == "node" for d in devices)
    module = any(d.properties.get("scope") == "module" for d in devices)
    by_library = {d.kind for d in devices if d.properties["meter"] in ("nvml", "amdsmi", "rapl")}
    found = {}
    for device in devices:
        hwmon = device.properties["meter"] == "hwmon"
        if own := device.properties.get("apart"):
            found[device.name] = own
        elif whole_node and device.kind != "node":
            found[device.name] = "inside the node"
        elif hwmon and module and device.kind == "cpu":
            found[device.name] = "the GPU's counter sees the module"
        elif hwmon and device.kind in by_library:
            found[device.name] = "metered by another sensor"
    return found
