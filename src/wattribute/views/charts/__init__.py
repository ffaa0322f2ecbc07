"""Charts: a file for each, named as the chart, that makes it with ``plugins.chart``; ``views.plot`` is their front.

::

    chart function      asks attribution (``tables``, ``curves``), reduces to what can be shown, says what was merged
            ↓ rows of plain dicts, which hold all the numbers; nothing is summed by Vega
    marks over rows     (``canvas``: title, axes, hover cards, caption; ``captions``: the words)

Charts of others come by entry points of the group ``wattribute.charts``.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from ...errors import OptionError
from ...plugins import Chart
from ...plugins import charts as installed


def get(name: str) -> Chart[Any]:
    """The chart of this name, ours or a plug-in's."""
    if name in _files():
        own = getattr(import_module(f".{name}", __name__), name, None)
        if isinstance(own, Chart):
            return own
    if name in installed.names():
        loaded = installed.get(name)
        if not isinstance(loaded, Chart):
            raise OptionError(f"chart {name!r} is not made with wattribute.plugins.chart")
        return loaded
    raise OptionError.unknown("kind of chart", name, [chart.name for chart in every()])


def every() -> list[Chart[Any]]:
    """All charts by name; a plug-in that cannot be loaded is left out."""
    charts: dict[str, Chart[Any]] = {}
    for name in installed.names():
        try:
            charts[name] = get(name)
        except (OptionError, ImportError):
            continue
    for name in _files():
        chart = getattr(import_module(f".{name}", __name__), name, None)
        if isinstance(chart, Chart):
            charts[name] = chart
    return [charts[name] for name in sorted(charts)]


def _files() -> list[str]:
    names = os.listdir(os.path.dirname(__file__))
    return [name.removesuffix(".py") for name in names if name.endswith(".py") and name != "__init__.py"]
