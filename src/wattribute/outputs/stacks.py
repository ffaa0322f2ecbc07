"""Call paths with their joules, once for all outputs that draw stacks: speedscope, folded, graphframe, extrap.

The attribution is asked for again by (device, path), independent of its own grouping; idle stands as a path of its own
under each device, so that what a stack viewer sums up is what was measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ..engines import regroup
from ..errors import OptionError
from ..model import Attribution
from ..model.constants import IDLE


@dataclass(frozen=True)
class Stack:
    """One call path of one device; ``device`` says host and view too where there are several."""

    device: str
    frames: tuple[str, ...]
    self_j: float
    total_j: float
    self_s: float = 0.0
    total_s: float = 0.0
    calls: int = 0


@dataclass
class Tree:
    """A node of the call tree."""

    name: str
    self_j: float = 0.0
    total_j: float = 0.0
    self_s: float = 0.0
    total_s: float = 0.0
    calls: int = 0
    children: dict[str, Tree] = field(default_factory=dict)


def stacks(attribution: Attribution) -> list[Stack]:
    """The call paths of every device, largest self energy first, and what was idle.

    Where no energy was metered (``unit`` "s") weights are seconds.
    """
    regrouped = regroup(attribution, ("device", "path"), bounds=False)
    if regrouped.unit not in ("J", "s"):
        units = sorted(set(regrouped.devices["unit"].to_list()))
        raise OptionError(f"stacks are weighted in joules, not {' and '.join(units)}; choose an energy metric")
    regrouped = regrouped.as_amounts()
    label = _labels(regrouped)
    rows = regrouped.rows.select(
        "host", "device", "of", "path", "self_j", "total_j", "self_ns", "total_ns", "calls"
    ).iter_rows()
    paths = [
        Stack(label(host, device, of), tuple(path), self_j, total_j, self_ns / 1e9, total_ns / 1e9, calls or 0)
        for host, device, of, path, self_j, total_j, self_ns, total_ns, calls in rows
    ]
    books = regrouped.devices.filter("counted").select("host", "device", "of", "idle_j").iter_rows()
    idle = [Stack(label(host, device, of), (IDLE,), idle_j, idle_j) for host, device, of, idle_j in books if idle_j > 0]
    return paths + idle


def trees(stacks: list[Stack]) -> list[Tree]:
    """A tree per device whose root is the device itself; its total is what was measured."""
    roots: dict[str, Tree] = {}
    for stack in stacks:
        root = at = roots.setdefault(stack.device, Tree(stack.device))
        for name in stack.frames:
            at = at.children.setdefault(name, Tree(name))
        at.self_j, at.total_j = at.self_j + stack.self_j, at.total_j + stack.total_j
        at.self_s, at.total_s, at.calls = at.self_s + stack.self_s, at.total_s + stack.total_s, at.calls + stack.calls
        if len(stack.frames) == 1:
            root.total_j, root.total_s = root.total_j + stack.total_j, root.total_s + stack.total_s
    return list(roots.values())


def _labels(attribution: Attribution) -> Callable[[str, str, str], str]:
    several_hosts = attribution.devices["host"].n_unique() > 1
    several_views = attribution.devices.select("host", "device").is_duplicated().any()

    def label(host: str, device: str, of: str) -> str:
        return f"{host + ' ' if several_hosts else ''}{device}{' ' + of if several_views else ''}"

    return label
