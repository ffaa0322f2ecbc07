"""Folded stacks, the text that flame graph programs read: ``device;frame;frame µJ``, one line per call path.

The weight is in whole microjoules (microseconds where no energy was metered), since some programs read integers only.
"""

from __future__ import annotations

from typing import Any

from ..files import replacing
from ..model import Attribution
from .stacks import stacks

SUFFIXES = (".folded",)
_CLEAN = str.maketrans({";": ":", "\n": " ", "\r": " "})  # the characters the format has a use for


def write(attribution: Attribution, target: str, **options: Any) -> None:
    """Write the lines, largest first within what was attributed, then what was idle."""
    weighed = [(stack, round(1e6 * stack.self_j)) for stack in stacks(attribution)]
    with replacing(target) as file:
        for stack, weight in weighed:
            if weight > 0:
                names = ";".join(name.translate(_CLEAN) for name in (stack.device, *stack.frames))
                file.write(f"{names} {weight}\n".encode("utf-8", errors="replace"))
