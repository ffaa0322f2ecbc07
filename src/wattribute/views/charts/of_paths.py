"""Charts of call paths: flame, icicle, sunburst, call graph."""

from __future__ import annotations

from typing import Any

from ...model import Attribution
from .. import theme as themes
from ..numbers import percent, si
from . import ask
from . import callgraph as drawing
from . import flame as flames
from .canvas import finish, legend
from .graph import Graph, graph
from .tree import Leaf, blocks

_LEAST = 0.001  # of all energy: smaller frames are folded
_DEEPEST = 48


def flame(attribution: Attribution, *, theme: str = "light", downwards: bool = False) -> Any:
    """Call paths with widths in joules, root at the bottom; idle stands beside the roots."""
    look = themes.theme(theme)
    found = ask.with_stacks(attribution)
    leaves = ask.leaves(found)
    shown = blocks(leaves, ask.total(found, "idle"), _LEAST, _DEEPEST)
    rows = flames.block_rows(shown, ask.frame_kinds(found.recording), look)
    return finish(
        [legend((row["kind"] for row in rows), look), flames.flame(rows, look, downwards=downwards)],
        look,
        title=ask.finding(found, _self_by_frame(leaves)),
        subtitle=ask.subtitle(found),
        caption=ask.caption(found, _folded(shown), _too_deep(leaves, _DEEPEST)),
    )


def icicle(attribution: Attribution, *, theme: str = "light") -> Any:
    """A flame graph with the root at the top."""
    return flame(attribution, theme=theme, downwards=True)


def sunburst(attribution: Attribution, *, theme: str = "light", rings: int = 8) -> Any:
    """Call paths as rings around what was measured."""
    look = themes.theme(theme)
    found = ask.with_stacks(attribution)
    leaves = ask.leaves(found)
    shown = blocks(leaves, ask.total(found, "idle"), _LEAST * 3, rings)
    rows = flames.block_rows(shown, ask.frame_kinds(found.recording), look)
    return finish(
        [legend((row["kind"] for row in rows), look), flames.sunburst(rows, look, rings, ask.known(found))],
        look,
        title=ask.finding(found, _self_by_frame(leaves)),
        subtitle=ask.subtitle(found),
        caption=ask.caption(found, _folded(shown, _LEAST * 3), _too_deep(leaves, rings)),
    )


def callgraph(attribution: Attribution, *, theme: str = "light", top: int = 24) -> Any:
    """Who called whom; colour and size of the lines are energy."""
    look = themes.theme(theme)
    found = ask.with_stacks(attribution)
    leaves = ask.leaves(found)
    shown = graph(leaves, top)
    return finish(
        [drawing.callgraph(shown, look)],
        look,
        title=ask.finding(found, _self_by_frame(leaves)),
        subtitle=ask.subtitle(found),
        caption=ask.caption(found, _left_out(shown, ask.total(found, "measured"))),
    )


def dot(attribution: Attribution, *, theme: str = "light", top: int = 60) -> str:
    """The call graph as text for Graphviz."""
    found = ask.with_stacks(attribution)
    leaves = ask.leaves(found)
    return drawing.dot(graph(leaves, top), themes.theme(theme), ask.finding(found, _self_by_frame(leaves)))


def _self_by_frame(leaves: list[Leaf]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for leaf in leaves:
        if leaf.path:
            sums[leaf.path[-1]] = sums.get(leaf.path[-1], 0.0) + leaf.self_j
    return sums


def _folded(shown: list[Any], least: float = _LEAST) -> str:
    merged = [block for block in shown if block.merged]
    if not merged:
        return ""
    number, energy = sum(block.merged for block in merged), sum(block.self_j for block in merged)
    return f"{number} places under {100 * least:g} % are folded into “other” ({si(energy, 'J')} together)."


def _too_deep(leaves: list[Leaf], deepest: int) -> str:
    deep = [leaf for leaf in leaves if len(leaf.path) > deepest]
    if not deep:
        return ""
    energy, levels = sum(leaf.self_j for leaf in deep), max(len(leaf.path) for leaf in deep)
    return f"Levels below {deepest} of {levels} are not drawn; their {si(energy, 'J')} stay with the caller."


def _left_out(shown: Graph, measured: float) -> str:
    if not shown.left_out:
        return ""
    return (
        f"{shown.left_out} smaller frames are not drawn "
        f"({si(shown.left_out_j, 'J')} in themselves, {percent(shown.left_out_j, measured)})."
    )
