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

    from .archive import load, scan
    from .carbon import emissions
    from .comparison import Ensemble, compare
    from .engines import attribute
    from .engines.arkouda import connect
    from .errors import WattributeError
    from .integrations.jupyter import load_ipython_extension
    from .model import Attribution, Recording
    from .outputs import write
    from .outputs.timeseries.send import send
    from .reading import merge, read, save
    from .recorders.daemon import images
    from .recorders.profile import profile
    from .recorders.record import record
    from .recorders.regions import count, region
    from .sessions.calibration import calibrate
    from .sessions.experiment import experiment
    from .sessions.monitor import monitor
    from .sessions.profile_table import functions
    from .sessions.run import run
    from .sessions.sql import sql
    from .views import plot
    from .views.description import describe
    from .views.page import view, write_page
    from .views.report import write_report

__version__ = "0.1.0"

_HOME = {
    "Attribution": "model",
    "Ensemble": "comparison",
    "attribute": "engines",
    "load": "archive",
    "Recording": "model",
    "WattributeError": "errors",
    "calibrate": "sessions.calibration",
    "compare": "comparison",
    "connect": "engines.arkouda",
    "count": "recorders.regions",
    "describe": "views.description",
    "emissions": "carbon",
    "experiment": "sessions.experiment",
    "functions": "sessions.profile_table",
    "images": "recorders.daemon",
    "read": "reading",
    "load_ipython_extension": "integrations.jupyter",
    "merge": "reading",
    "monitor": "sessions.monitor",
    "record": "recorders.record",
    "profile": "recorders.profile",
    "region": "recorders.regions",
    "run": "sessions.run",
    "save": "reading",
    "scan": "archive",
    "send": "outputs.timeseries.send",
    "sql": "sessions.sql",
    "view": "views.page",
    "write": "outputs",
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
    "calibrate",
    "compare",
    "connect",
    "count",
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
    "write",
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
