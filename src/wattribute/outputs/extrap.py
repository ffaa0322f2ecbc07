"""Extra-P's JSON: energy and time of every call path over runs that differ in a parameter (ranks, size …).

The parameters are the numeric metadata of an ensemble's runs; runs with equal parameters are repetitions. Without
metadata the number of processes serves. Extra-P then fits how the energy of each call path grows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..comparison import EnsembleAttribution
from ..errors import OptionError
from ..files import replacing
from ..model import Answer, Attribution
from .stacks import stacks

SUFFIXES = (".extrap.json",)
SEVERAL_RUNS = True
_METRICS = ("energy_j", "time_s")


def write(attribution: Answer, target: str, parameters: Sequence[str] = (), **options: Any) -> None:
    """Write the measurements of all runs, devices added up."""
    document = measurements(attribution, parameters)
    with replacing(target) as file:
        file.write(json.dumps(document, ensure_ascii=True).encode())


def measurements(attribution: Answer, parameters: Sequence[str] = ()) -> dict[str, Any]:
    """The file's content. A call path that a run did not take used 0 J there."""
    if not isinstance(attribution, EnsembleAttribution):
        raise OptionError("Extra-P needs several runs; give all their paths (wattribute export A B C --to extrap)")
    names, points = _points(attribution, parameters)
    paths_by_run = {run: _by_path(part) for run, part in attribution.parts.items()}
    paths = dict.fromkeys(path for one in paths_by_run.values() for path in one)
    measurements_by_path: dict[str, dict[str, list[dict[str, Any]]]] = {}
    metrics = _METRICS if attribution.unit == "J" else _METRICS[1:]
    for path in paths:
        measurements_by_path[path] = {metric: [] for metric in metrics}
        for point in dict.fromkeys(points.values()):
            runs = [run for run in paths_by_run if points[run] == point]
            for metric in metrics:
                values = [paths_by_run[run].get(path, (0.0, 0.0))[_METRICS.index(metric)] for run in runs]
                measurements_by_path[path][metric].append({"point": list(point), "values": values})
    return {"parameters": names, "measurements": measurements_by_path}


def _by_path(part: Attribution) -> dict[str, tuple[float, float]]:
    """Self energy and self time per call path, over all devices; time is that of the path itself."""
    energy: dict[str, float] = {}
    seconds: dict[str, float] = {}
    for stack in stacks(part):
        path = "->".join(name.replace("->", "→") for name in stack.frames)
        energy[path] = energy.get(path, 0.0) + stack.self_j
        seconds[path] = max(seconds.get(path, 0.0), stack.self_s)
    return {path: (energy[path], seconds[path]) for path in energy}


def _points(
    attribution: EnsembleAttribution, asked: Sequence[str]
) -> tuple[list[str], Mapping[str, tuple[float, ...]]]:
    """Names of the parameters and their values per run."""
    about = attribution.metadata
    known = list(dict.fromkeys(name for one in about.values() for name in one))
    for name in asked:
        if name not in known:
            raise OptionError.unknown("parameter", name, known or ["(the runs have no metadata)"])
    numeric = [name for name in known if all(_is_number(one.get(name)) for one in about.values())]
    wrong = [name for name in asked if name not in numeric]
    if wrong:
        raise OptionError(f"parameter {wrong[0]!r} is not a number in every run")
    names = list(asked) or numeric
    if names:
        points = {run: tuple(float(one[name]) for name in names) for run, one in about.items()}
    else:
        names = ["processes"]
        points = {run: (float(_processes(part)),) for run, part in attribution.parts.items()}
    if len(set(points.values())) < 2:
        raise OptionError(
            f"all runs have the same {' and '.join(names)}; name what differs, e.g. --metadata 'n(?P<nodes>\\d+)'"
        )
    return names, points


def _processes(part: Attribution) -> int:
    return sum(kind == "process" for kind in part.recording.processes.kind)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
