"""The kernels at the bottom: C without Python.h, loaded by ctypes, or its NumPy twin when nothing was compiled.

Kernels take arrays (or objects with array attributes) and return arrays; they know nothing of the packages above.
``WATTRIBUTE_CORE=reference`` forces the twin, ``WATTRIBUTE_REQUIRE_CORE=1`` makes the absence of the core an error;
otherwise a process that needs it says so once, on stderr. ``in_use()`` says which one runs. ``busy`` and ``fold`` are
imported when first used: ``polling`` serves a process that must start without NumPy.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .kernels import busy, fold

__all__ = ["busy", "fold", "in_use"]
announces = True  # whether a process says that the core is not there; not beside a command, whose stderr it is


def __getattr__(name: str) -> Any:
    if name not in ("busy", "fold"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    home = import_module(".reference" if in_use() == "reference" else ".kernels", __name__)
    globals()[name] = getattr(home, name)
    return globals()[name]


def in_use() -> str:
    """``"c"`` or ``"reference"``."""
    from .library import LIBRARY

    return "reference" if LIBRARY is None else "c"
