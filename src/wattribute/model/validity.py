"""Whether content from a file makes a sound Recording: types of fields, and numbers that point into its tables.

Loaders of our own formats use it; a recording that passes can be attributed, shown and saved without a traceback.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from .recording import KINDS, Recording

T = TypeVar("T")
_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "bool": (bool,),
    "float": (int, float),
    "Fraction": (Fraction,),
    "int | None": (int, type(None)),
    "float | None": (int, float, type(None)),
    "str | None": (str, type(None)),
}
_MAX_TICKS = 2**62  # ticks: sums of two still fit


def typed(kind: type[T], content: Mapping[str, Any]) -> T:
    """A value of this dataclass from its fields; raises TypeError or ValueError for one of another type."""
    _check_types(kind, content)
    return kind(**content)


def _check_types(kind: type, content: Mapping[str, Any]) -> None:
    for each in fields(kind):
        if each.name not in content:
            continue
        value, wanted = content[each.name], str(each.type)
        if wanted.startswith("Mapping"):
            fits = isinstance(value, Mapping) and (
                wanted != "Mapping[str, str]" or all(isinstance(text, str) for text in value.values())
            )
        else:
            known = _TYPES.get(wanted)
            fits = known is None or (isinstance(value, known) and (bool in known or not isinstance(value, bool)))
        if not fits:
            raise TypeError(f"{kind.__name__}.{each.name} is {value!r:.50}, expected {wanted}")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{kind.__name__}.{each.name} is {value}")
        if isinstance(value, int) and abs(value) > 2**64:
            raise ValueError(f"{kind.__name__}.{each.name} is too large")


def check(recording: Recording) -> None:
    """Raise ValueError for a recording whose parts do not fit together."""
    for one in (recording.clock, *recording.signals, *recording.devices, *recording.topology):
        _check_types(type(one), vars(one))
    clock, run = recording.clock, recording.metadata.get("run", {})
    _require(0 < clock.ticks_per_s <= 10**12, f"a clock of {clock.ticks_per_s} ticks per second")
    _require(abs(clock.offset_ticks) < _MAX_TICKS and 0 <= clock.length_ticks < _MAX_TICKS, "a clock that never ends")
    _require(clock.epoch_ns is None or abs(clock.epoch_ns) < _MAX_TICKS, f"a wall clock of {clock.epoch_ns} ns")
    _require(isinstance(run, Mapping), "metadata whose run is no object")
    for name in ("start_ticks", "end_ticks"):
        value = run.get(name)
        fits = value is None or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < _MAX_TICKS)
        _require(fits, f"a run whose {name} is {value!r:.50}")
    command = recording.metadata.get("command", [])
    fits = isinstance(command, list) and all(isinstance(word, str) for word in command)
    _require(fits, "a command that is no list of words")
    nodes, processes, locations = len(recording.nodes), len(recording.processes), len(recording.locations)
    _point(recording.nodes.parent, nodes, "nodes")
    _require(bool((recording.nodes.parent < np.arange(nodes)).all()) or _has_roots(recording), "nodes in a circle")
    _point(recording.processes.node, nodes, "nodes")
    _point(recording.processes.creator, processes, "processes")
    _point(recording.locations.process, processes, "processes")
    _point(np.array(recording.spans.locations(), np.int64), locations, "locations")
    for properties in recording.nodes.properties:
        fits = isinstance(properties, Mapping) and all(isinstance(text, str) for text in properties.values())
        _require(fits, "a node whose properties are no texts")
    for signal in recording.signals:
        _require(signal.kind in KINDS, f"a signal of kind {signal.kind!r:.50}")
        _require(signal.scale > 0 and 1e-30 < float(signal.scale) < 1e30, f"a signal of scale {signal.scale}")
        _require(-1 <= signal.location < max(locations, 1), f"a signal of location {signal.location}")
        _require(signal.wraps_at is None or signal.wraps_at > 0, f"a counter that wraps at {signal.wraps_at}")
        for name in ("latency_s", "gain_error", "clock_error_s"):
            value = getattr(signal, name)
            _require(value is None or 0 <= value < 1e6, f"a signal whose {name} is {value}")
        times = signal.times
        if len(times):
            extent = max(abs(int(times.min())), abs(int(times.max())))
            _require(extent <= _MAX_TICKS, "readings at impossible times")
    for link in recording.topology:
        _point(np.array(link.locations, np.int64), locations, "locations")


def _require(fits: bool, what: str) -> None:
    if not fits:
        raise ValueError(what)


def _point(rows: Any, count: int, what: str) -> None:
    if len(rows) and (int(rows.min()) < -1 or int(rows.max()) >= count):
        raise ValueError(f"a row points to one of {count} {what} that does not exist")


def _has_roots(recording: Recording) -> bool:
    """Whether every node's ancestors end at a root."""
    parent, at = recording.nodes.parent, np.arange(len(recording.nodes))
    for _ in range(len(at)):
        at = np.where(at >= 0, parent[at], -1)
    return bool((at < 0).all())
