"""A hatchet (and thicket) GraphFrame as the JSON that ``hatchet.GraphFrame.from_literal`` takes.

::

    gf = hatchet.GraphFrame.from_literal(json.load(open("run.hatchet.json")))

Roots are devices. Columns: ``energy_j``, ``time_s`` and their inclusive twins in hatchet's spelling ``… (inc)``, calls.
"""

from __future__ import annotations

import json
from typing import Any

from ..errors import OutputError
from ..files import replacing
from ..model import Attribution
from .stacks import Tree, stacks, trees

SUFFIXES = (".hatchet.json",)


def write(attribution: Attribution, target: str, **options: Any) -> None:
    """Write the literal as JSON."""
    nodes = literal(attribution)
    try:
        text = json.dumps(nodes, ensure_ascii=False, separators=(",", ":"))
    except RecursionError as error:
        raise OutputError(f"{target}: call paths are too deep for a nested file; export to folded instead") from error
    with replacing(target) as file:
        file.write(text.encode("utf-8", errors="replace"))


def literal(attribution: Attribution) -> list[dict[str, Any]]:
    """The nested dictionaries of ``GraphFrame.from_literal``."""
    return [_dictionary(tree, "device", attribution.unit) for tree in trees(stacks(attribution))]


def _dictionary(tree: Tree, kind: str, unit: str) -> dict[str, Any]:
    """A node and what is below it, without recursion: call paths may be deep."""
    top = _node(tree, kind, unit)
    waiting = [(tree, top)]
    while waiting:
        node, parent = waiting.pop()
        for child in node.children.values():
            below = _node(child, "function", unit)
            parent["children"].append(below)
            waiting.append((child, below))
    return top


def _node(tree: Tree, kind: str, unit: str) -> dict[str, Any]:
    energy = {"energy_j": tree.self_j, "energy_j (inc)": tree.total_j} if unit == "J" else {}
    return {
        "frame": {"name": tree.name, "type": kind},
        "metrics": {
            **energy,
            "time_s": tree.self_s,
            "time_s (inc)": tree.total_s,
            "calls": tree.calls,
        },
        "children": [],
    }
