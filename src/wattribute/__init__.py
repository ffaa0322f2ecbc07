"""wattribute: whose joules?

::

    readers | meters → recorders  ⟶  Recording  ⟶  alignment → attribution  ⟶  Attribution  ⟶  carbon → outputs | views

``read(path)`` gives a Recording, ``attribute(recording)`` an Attribution. Names are imported when first used, so
``import wattribute`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .archive import load, save, scan
    from .errors import WattributeError
    from .model import Attribution, Recording
    from .readers import read

__version__ = "0.1.0"

_HOME = {
    "Attribution": "model",
    "load": "archive",
    "Recording": "model",
    "WattributeError": "errors",
    "read": "readers",
    "save": "archive",
    "scan": "archive",
}
__all__ = ["Attribution", "Recording", "WattributeError", "__version__", "load", "read", "save", "scan"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'wattribute' has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
