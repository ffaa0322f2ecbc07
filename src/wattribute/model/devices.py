"""A device. Alone in its module because meters name devices and must start without NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Device:
    """A thing whose energy is metered."""

    name: str  # unique within its host: "GPU 0", "package 0", "node"
    kind: str  # "gpu", "cpu", "dram", "node", "psys", …
    host: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)  # uuid, pci, model …
