"""An Attribution: whose joules. Tables as Polars frames, and the recording they came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

    from .recording import Problem, Recording


@dataclass(frozen=True)
class Attribution:
    """Energy given to spans.

    ``devices``: one row per (device, signal, host, of): measured_j, attributed_j, idle_j, coverage, unit, estimated …
    ``rows``: the keys of ``by``, then self_j, total_j, their bounds, self_ns, total_ns, covered_ns, power_w, calls
    (``*_value`` and ``unit`` instead of ``*_j`` for a metric that is not energy), sorted by self energy, largest first.
    """

    recording: Recording
    devices: pl.DataFrame
    rows: pl.DataFrame
    by: Sequence[str] = ("device", "frame")
    method: str = "linear"
    share: str = "even"
    problems: Sequence[Problem] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
