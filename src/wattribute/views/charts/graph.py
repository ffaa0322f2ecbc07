"""Who called whom: the call graph of call paths, pruned by energy; ``layout`` says where its boxes and lines stand.

A frame is one node for all of its callers. A joule spent in a call path counts once for every frame on the path (that
frame's total, recursion counted once) and once for every caller → callee step.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from .tree import Leaf

Edge = tuple[str, str]
_LEAST, _ALWAYS = 0.0005, 10  # frames with less than this share are left out, but for the first few


@dataclass(frozen=True)
class Graph:
    """Nodes with their energies, edges with theirs; ``left_out`` nodes were too small to show."""

    self_j: dict[str, float]
    total_j: dict[str, float]
    edges: dict[Edge, float]
    left_out: int
    left_out_j: float  # self energy of the nodes that are not shown
    recursive: frozenset[str]
    unit: str = "J"
    calls: dict[str, int] = field(default_factory=dict)
    edge_calls: dict[Edge, int] = field(default_factory=dict)
    measured_j: float = 0.0  # shares are of it, as in the title


def graph(leaves: Iterable[Leaf], top: int = 24, unit: str = "J") -> Graph:
    """The graph of the ``top`` frames by total energy; a step over a frame that is left out joins its neighbours."""
    leaves = list(leaves)
    self_j: dict[str, float] = {}
    total_j: dict[str, float] = {}
    calls: dict[str, int] = {}
    for leaf in leaves:
        if leaf.path:
            calls[leaf.path[-1]] = calls.get(leaf.path[-1], 0) + leaf.calls
            self_j[leaf.path[-1]] = self_j.get(leaf.path[-1], 0.0) + leaf.self_j
        for name in dict.fromkeys(leaf.path):
            total_j[name] = total_j.get(name, 0.0) + leaf.self_j
    order = sorted(total_j, key=lambda name: (-total_j[name], name))[:top]
    least = _LEAST * total_j[order[0]] if order else 0.0
    kept = [name for i, name in enumerate(order) if i < _ALWAYS or total_j[name] >= least]
    shown = set(kept)
    edges: dict[Edge, float] = {}
    edge_calls: dict[Edge, int] = {}
    recursive: set[str] = set()
    for leaf in leaves:
        visible = [name for name in leaf.path if name in shown]
        if len(visible) > 1 and leaf.path[-1] in shown:  # who called the last frame of the path
            last = visible[-2], visible[-1]
            edge_calls[last] = edge_calls.get(last, 0) + leaf.calls
        steps = dict.fromkeys(pairwise(visible))
        recursive.update(a for a, b in steps if a == b)
        for step in steps:
            if step[0] != step[1]:
                edges[step] = edges.get(step, 0.0) + leaf.self_j
    rest = [name for name in total_j if name not in shown]
    return Graph(
        {name: self_j.get(name, 0.0) for name in kept},
        {name: total_j[name] for name in kept},
        edges,
        len(rest),
        sum(self_j.get(name, 0.0) for name in rest),
        frozenset(recursive),
        unit,
        {name: calls.get(name, 0) for name in kept},
        edge_calls,
    )


def acyclic(graph: Graph) -> list[Edge]:
    """The edges without those that close a cycle, found by walking the heaviest first."""
    out: dict[str, list[str]] = {name: [] for name in graph.total_j}
    for (a, b), _ in sorted(graph.edges.items(), key=lambda item: (-item[1], item[0])):
        out[a].append(b)
    state: dict[str, int] = {}
    kept: list[Edge] = []
    called = {b for _, b in graph.edges}
    for root in sorted(graph.total_j, key=lambda name: (name in called, -graph.total_j[name])):
        if root in state:
            continue
        state[root] = 1
        stack = [(root, iter(out[root]))]
        while stack:
            name, rest = stack[-1]
            child = next(rest, None)
            if child is None:
                state[name] = 2
                stack.pop()
            elif state.get(child) != 1:  # 1: still open, so the edge would close a cycle
                kept.append((name, child))
                if child not in state:
                    state[child] = 1
                    stack.append((child, iter(out[child])))
    return kept


def ranks(graph: Graph, edges: Iterable[Edge]) -> dict[str, int]:
    """The longest way from a root to each frame along edges without cycles."""
    below: dict[str, list[str]] = {name: [] for name in graph.total_j}
    waiting = dict.fromkeys(graph.total_j, 0)
    for a, b in edges:
        below[a].append(b)
        waiting[b] += 1
    rank = dict.fromkeys(graph.total_j, 0)
    ready = [name for name, callers in waiting.items() if not callers]
    while ready:
        name = ready.pop()
        for callee in below[name]:
            rank[callee] = max(rank[callee], rank[name] + 1)
            waiting[callee] -= 1
            if not waiting[callee]:
                ready.append(callee)
    return rank
