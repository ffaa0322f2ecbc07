"""Call paths as blocks: the tree of frames laid out along joules, for flame, icicle and sunburst.

Every joule that comes in is in exactly one block's ``self_j``: small frames are folded into a block that says how many
they were, levels below the deepest drawn stay in their ancestor, idle is a block of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from ..selection import matching

FOLDED = "other"
IDLE = "idle"


@dataclass(frozen=True)
class Leaf:
    """What one call path used by itself."""

    path: tuple[str, ...]
    self_j: float
    calls: int = 0


@dataclass
class _Node:
    self_j: float = 0.0
    total_j: float = 0.0
    calls: int = 0
    children: dict[str, _Node] = field(default_factory=dict)

    def count(self) -> int:
        """The frames below, this one included."""
        counted, waiting = 0, [self]
        while waiting:
            counted += 1
            waiting.extend(waiting.pop().children.values())
        return counted


@dataclass(frozen=True)
class Block:
    """One frame at one place in the tree; ``start_j`` to ``end_j`` is its total, laid beside its siblings."""

    path: tuple[str, ...]
    depth: int
    start_j: float
    end_j: float
    self_j: float
    calls: int
    merged: int = 0  # how many frames were folded into this block
    idle: bool = False

    @property
    def name(self) -> str:
        if self.idle:
            return IDLE
        return f"{FOLDED} ({self.merged} frames)" if self.merged else self.path[-1]

    @property
    def total_j(self) -> float:
        return self.end_j - self.start_j


def _grow(leaves: Iterable[Leaf], deepest: int) -> _Node:
    root = _Node()
    for leaf in leaves:
        at = root
        for name in leaf.path[:deepest]:
            at = at.children.setdefault(name, _Node())
        at.self_j += max(0.0, leaf.self_j)
        at.calls += leaf.calls if len(leaf.path) <= deepest else 0
    order, waiting = [], [root]
    while waiting:  # without recursion: real stacks are thousands deep
        node = waiting.pop()
        order.append(node)
        waiting.extend(node.children.values())
    for node in reversed(order):
        node.total_j = node.self_j + sum(child.total_j for child in node.children.values())
    return root


def blocks(leaves: Iterable[Leaf], idle_j: float = 0.0, least: float = 0.001, deepest: int = 48) -> list[Block]:
    """The blocks of a tree, parents before children, siblings by energy; those under ``least`` of all are folded."""
    root = _grow(leaves, deepest)
    whole = root.total_j + idle_j
    out: list[Block] = []
    waiting: list[tuple[_Node, tuple[str, ...], float]] = [(root, (), 0.0)]
    while waiting:
        node, path, at = waiting.pop()
        small: list[_Node] = []
        for name, child in sorted(node.children.items(), key=lambda item: (-item[1].total_j, item[0])):
            if child.total_j < least * whole or child.total_j == 0:
                small.append(child)
                continue
            out.append(Block((*path, name), len(path), at, at + child.total_j, child.self_j, child.calls))
            waiting.append((child, (*path, name), at))
            at += child.total_j
        folded_j = sum(child.total_j for child in small)
        if folded_j > 0:
            merged = sum(child.count() for child in small)
            calls = sum(child.calls for child in small)
            out.append(Block(path, len(path), at, at + folded_j, folded_j, calls, merged=merged))
    if idle_j > 0:
        out.append(Block((), 0, root.total_j, whole, idle_j, 0, idle=True))
    return out


def rooted(leaves: list[Leaf], root: str | None) -> list[Leaf]:
    """The call paths below the frames whose name is (or, a regular expression, matches) ``root``, which begin there."""
    if root is None:
        return leaves
    chosen = matching({name for leaf in leaves for name in leaf.path}, root)
    roots = []
    for leaf in leaves:
        at = next((i for i, name in enumerate(leaf.path) if name in chosen), None)
        if at is not None:
            roots.append(replace(leaf, path=leaf.path[at:]))
    return roots


def self_by_frame(leaves: list[Leaf]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for leaf in leaves:
        if leaf.path:
            sums[leaf.path[-1]] = sums.get(leaf.path[-1], 0.0) + leaf.self_j
    return sums
