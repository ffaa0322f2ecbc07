"""Attribution → files and servers: one module per format, named as its plug-in; ``write`` finds the one for a target.

An output has a function ``write(attribution, target, **options)`` and says in ``SUFFIXES`` how its files end. It may
say ``SEVERAL_RUNS = True`` if it takes an ensemble, and have ``write_folder`` if ``export`` writes a folder of tables.
"""

from __future__ import annotations

import os
from typing import Any

from ..comparison import EnsembleAttribution
from ..errors import OptionError
from ..model import Answer
from ..plugins import Output, outputs


def write(attribution: Answer, target: str | os.PathLike[str], format: str | None = None, **options: Any) -> None:
    """Write an attribution to a file (``-``: standard output) or server; ``format`` is an output's name.

    Without a format the ending of the target decides (``.json``, ``.csv``, ``.speedscope.json`` …), or its scheme
    (``victoria+http://HOST``).
    """
    name = format or format_of(target)
    output = outputs.get(name)
    check_runs(attribution, name, output)
    output.write(attribution, os.fspath(target), **options)


def check_runs(attribution: Answer, name: str, output: Output) -> None:
    """Raise OptionError for several runs in a format that shows one."""
    if isinstance(attribution, EnsembleAttribution) and not getattr(output, "SEVERAL_RUNS", False):
        raise OptionError(f"{name} shows one run; export the runs one by one")


def format_of(target: str | os.PathLike[str]) -> str:
    """The output whose suffix or scheme a target has; the longest suffix wins."""
    text = os.fspath(target)
    scheme = text.partition(":")[0].partition("+")[0]
    if ":" in text and scheme in outputs.names():
        return scheme
    endings = suffixes()
    match = max((ending for ending in endings if text.lower().endswith(ending)), key=len, default="")
    if not match:
        raise OptionError.unknown("ending of the output", os.path.splitext(text)[1] or text, sorted(endings))
    return endings[match]


def suffixes() -> dict[str, str]:
    """Ending of a file → the output that writes it; the first name has an ending that several declare."""
    endings: dict[str, str] = {}
    for name in outputs.names():
        for suffix in getattr(outputs.get(name), "SUFFIXES", ()):
            endings.setdefault(suffix, name)
    return endings
