"""The kernels at the bottom: C without Python.h, loaded by ctypes, or its NumPy twin when nothing was compiled.

Kernels take arrays (or objects with array attributes) and return arrays; they know nothing of the packages above.
``WATTRIBUTE_CORE=reference`` forces the twin. ``in_use()`` says which one runs.
"""

from __future__ import annotations

from .library import LIBRARY

if LIBRARY is None:
    from .reference import busy, fold
else:
    from .kernels import busy, fold

__all__ = ["busy", "fold", "in_use"]


def in_use() -> str:
    """``"c"`` or ``"reference"``."""
    return "reference" if LIBRARY is None else "c"
