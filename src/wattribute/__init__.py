"""wattribute: whose joules?

::

    readers | meters → recorders  ⟶  Recording  ⟶  alignment → attribution  ⟶  Attribution  ⟶  carbon → outputs | views

``read(path)`` gives a Recording, ``attribute(recording)`` an Attribution. Names are imported when first used, so
``import wattribute`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # not typing's: programs under a profile import this while they start
if TYPE_CHECKING:
    from typing import Any

    from .alignment.joining import read
    from .alignment.merge import merge
    from .archive import load, save, scan
    from .carbon import emissions
    from .engines import attribute
    from .engines.arkouda import connect
    from .ensemble import Ensemble, compare
    from .errors import WattributeError
    from .integrations.jupyter import load_ipython_extension
    from .model import Attribution, Recording
    from .outputs.experiment import experiment
    from .outputs.monitor import monitor
    from .outputs.profile import functions
    from .outputs.run import run
    from .outputs.sql import sql
    from .outputs.timeseries.send import send
    from .recorders.daemon import images
    from .recorders.profile import profile
    from .recorders.record import record
    from .recorders.regions import region
    from .views import plot
    from .views.description import describe
    from .views.page import view, write_page
    from .views.report import write_report

__version__ = "0.1.0"

_HOME = {
    "Attribution": "model",
    "Ensemble": "ensemble",
    "attribute": "engines",
    "load": "archive",
    "Recording": "model",
    "WattributeError": "errors",
    "compare": "ensemble",
    "connect": "engines.arkouda",
    "describe": "views.description",
    "emissions": "carbon",
    "experiment": "outputs.experiment",
    "functions": "outputs.profile",
    "images": "recorders.daemon",
    "read": "alignment.joining",
    "load_ipython_extension": "integrations.jupyter",
    "merge": "alignment.merge",
    "monitor": "outputs.monitor",
    "record": "recorders.record",
    "profile": "recorders.profile",
    "region": "recorders.regions",
    "run": "outputs.run",
    "save": "archive",
    "scan": "archive",
    "send": "outputs.timeseries.send",
    "sql": "outputs.sql",
    "view": "views.page",
    "write_page": "views.page",
    "write_report": "views.report",
}
_MODULES = {"plot": "views.plot"}
__all__ = [
    "Attribution",
    "Ensemble",
    "Recording",
    "WattributeError",
    "__version__",
    "attribute",
    "compare",
    "connect",
    "describe",
    "emissions",
    "experiment",
    "functions",
    "images",
    "load",
    "load_ipython_extension",
    "merge",
    "monitor",
    "plot",
    "profile",
    "read",
    "record",
    "region",
    "run",
    "save",
    "scan",
    "send",
    "sql",
    "view",
    "write_page",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = import_module(f".{_MODULES[name]}", __name__)
    elif name in _HOME:
        value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    else:
        raise AttributeError(f"module 'wattribute' has no attribute {name!r}")
    globals()[name] = value  # looked up once: a program may mark a region a million times
    return value


def __dir__() -> list[str]:
    return __all__
