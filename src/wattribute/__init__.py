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
    from .alignment.merge import merge
    from .archive import load, save, scan
    from .carbon import emissions
    from .engines import attribute
    from .ensemble import Ensemble, compare
    from .errors import WattributeError
    from .model import Attribution, Recording
    from .outputs.sql import sql
    from .readers import read
    from .recorders.regions import region
    from .views.description import describe
    from .views.page import view, write_page

__version__ = "0.1.0"

_HOME = {
    "Attribution": "model",
    "Ensemble": "ensemble",
    "attribute": "engines",
    "load": "archive",
    "Recording": "model",
    "WattributeError": "errors",
    "compare": "ensemble",
    "describe": "views.description",
    "emissions": "carbon",
    "read": "readers",
    "merge": "alignment.merge",
    "region": "recorders.regions",
    "save": "archive",
    "scan": "archive",
    "sql": "outputs.sql",
    "view": "views.page",
    "write_page": "views.page",
}
__all__ = [
    "Attribution",
    "Ensemble",
    "Recording",
    "WattributeError",
    "__version__",
    "attribute",
    "compare",
    "describe",
    "emissions",
    "load",
    "merge",
    "read",
    "region",
    "save",
    "scan",
    "sql",
    "view",
    "write_page",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'wattribute' has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value  # looked up once: a program may mark a region a million times
    return value


def __dir__() -> list[str]:
    return __all__
