"""A speedscope file: one profile per device, whose samples are call paths and whose weights are millijoules.

Speedscope knows no unit of energy, so the unit is "none" and the profile's name says mJ. Without energy: seconds.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import Any

from ..files import replacing
from ..model import Attribution
from .stacks import Stack, stacks

SUFFIXES = (".speedscope.json",)
SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def write(attribution: Attribution, target: str, **options: Any) -> None:
    """Write ``*.speedscope.json``; open it at speedscope.app or with ``npx speedscope FILE`` (works offline)."""
    document = profile(attribution)
    with replacing(target) as file:
        file.write(json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", errors="replace"))


def profile(attribution: Attribution) -> dict[str, Any]:
    """The file's content."""
    numbers: dict[str, int] = {}
    devices: dict[str, list[Stack]] = {}
    for stack in stacks(attribution):
        devices.setdefault(stack.device, []).append(stack)
    profiles = [
        _profile(device, stacks_of_device, numbers, attribution.unit) for device, stacks_of_device in devices.items()
    ]
    return {
        "$schema": SCHEMA,
        "exporter": f"wattribute@{version('wattribute')}",
        "name": str(attribution.recording.metadata.get("name", "")) or "energy",
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": name} for name in numbers]},
        "profiles": profiles,
    }


def _profile(device: str, stacks: list[Stack], numbers: dict[str, int], unit: str) -> dict[str, Any]:
    """``numbers`` grows by the frames that are new."""
    kept = [stack for stack in stacks if stack.self_j > 0]
    timed = unit == "s"
    weights = [stack.self_j if timed else 1000 * stack.self_j for stack in kept]
    return {
        "type": "sampled",
        "name": device if timed else f"{device} (energy in mJ)",
        "unit": "seconds" if timed else "none",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": [[numbers.setdefault(name, len(numbers)) for name in stack.frames] for stack in kept],
        "weights": weights,
    }
