"""The call graph as a picture (own layout) and as Graphviz text; a node's colour is its share of the energy."""

from __future__ import annotations

from typing import Any

from .. import names
from ..kinds import ink
from ..numbers import percent, si
from ..theme import SIZE, WIDTH, Theme
from .canvas import Rows, altair, fitting, fixed, hover, layer
from .graph import Graph, layers

_HEIGHT, _GAP = 36, 34  # of a node, and between two rows of nodes
_CARD = {
    "frame": "frame",
    "total": "total",
    "self": "self",
    "share": "of the frames' energy",
    "exact": "total, exactly",
}


def callgraph(graph: Graph, theme: Theme) -> Any:
    """Boxes from callers (top) to callees, lines as thick as the energy that flows through them."""
    alt = altair()
    rows = layers(graph)
    height = max(1, len(rows)) * (_HEIGHT + _GAP)
    boxes = _boxes(graph, rows, theme)
    x = {"scale": alt.Scale(domain=[0, WIDTH], nice=False), "axis": None}
    y = {"scale": alt.Scale(domain=[0, height], nice=False, reverse=True), "axis": None}
    lines, heads = _lines(graph, {box["name"]: box for box in boxes})
    curves = (
        layer(lines, width=WIDTH, height=height)
        .mark_line(color=theme.muted, opacity=0.55, strokeCap="round")
        .encode(
            x=alt.X("x:Q", **x),
            y=alt.Y("y:Q", **y),
            detail="edge:N",
            order="order:Q",
            strokeWidth=alt.StrokeWidth("width:Q", scale=None, legend=None),
            tooltip=hover(lines, caller="caller", callee="callee", energy="energy"),
        )
    )
    arrows = (
        layer(heads)
        .mark_point(shape="triangle-down", filled=True, size=45, color=theme.muted, opacity=0.9)
        .encode(x=alt.X("x:Q", **x), y=alt.Y("y:Q", **y))
    )
    base = layer(boxes)
    rects = base.mark_rect(cornerRadius=4, stroke=theme.muted, strokeWidth=0.6).encode(
        x=alt.X("x:Q", **x), x2="x2:Q", y=alt.Y("y:Q", **y), y2="y2:Q", color=fixed("ground"),
        tooltip=hover(boxes, **_CARD),
    )  # fmt: skip
    texts = [
        base.mark_text(baseline="middle", fontWeight=weight, fontSize=size).encode(
            x=alt.X("middle:Q", **x), y=alt.Y(f"{at}:Q", **y), text=f"{field}:N", color=fixed("ink")
        )
        for field, at, weight, size in (("label", "upper", 600, SIZE), ("energy", "lower", "normal", SIZE - 1))
    ]
    return alt.layer(curves, arrows, rects, *texts)


def _colour(graph: Graph, name: str, theme: Theme) -> str:
    whole = max(graph.total_j.values(), default=0.0)
    share = graph.total_j[name] / whole if whole else 0.0
    return theme.ramp(share)


def _boxes(graph: Graph, rows: list[list[str]], theme: Theme) -> Rows:
    labels = names.labels(graph.total_j, 40)
    whole = max(graph.total_j.values(), default=0.0)
    boxes: Rows = []
    for i, row in enumerate(rows):
        room = WIDTH / len(row)
        width = min(200.0, room - 10)
        for j, name in enumerate(row):
            middle = room * (j + 0.5)
            top = i * (_HEIGHT + _GAP) + _GAP / 2
            ground = _colour(graph, name, theme)
            label = labels[name] + (" ↻" if name in graph.recursive else "")
            boxes.append(
                {
                    "name": name,
                    "x": middle - width / 2, "x2": middle + width / 2, "middle": middle,
                    "y": top, "y2": top + _HEIGHT, "upper": top + 12, "lower": top + 26,
                    "self_j": graph.self_j[name],
                    "total_j": graph.total_j[name],
                    "label": fitting(label, width - 12),
                    "energy": _energy(graph, name, width),
                    "frame": names.full(name),
                    "total": si(graph.total_j[name], "J"),
                    "self": si(graph.self_j[name], "J"),
                    "share": percent(graph.total_j[name], whole),
                    "exact": f"{graph.total_j[name]:.9g} J",
                    "ground": ground,
                    "ink": ink(ground),
                }
            )  # fmt: skip
    return boxes


def _energy(graph: Graph, name: str, width: float) -> str:
    total, own = si(graph.total_j[name], "J"), si(graph.self_j[name], "J")
    return f"{total} · self {own}" if width >= 140 else total


def _lines(graph: Graph, boxes: dict[str, dict[str, Any]]) -> tuple[Rows, Rows]:
    """Each edge as points of a smooth curve, and its arrow head."""
    most = max(graph.edges.values(), default=0.0) or 1.0
    lines: Rows = []
    heads: Rows = []
    for number, ((a, b), energy) in enumerate(sorted(graph.edges.items(), key=lambda item: item[1])):
        x0, y0, x1, y1 = boxes[a]["middle"], boxes[a]["y2"], boxes[b]["middle"], boxes[b]["y"] - 3
        bend = max(24.0, abs(y1 - y0) * 0.45)
        # an edge over several rows, or upwards, goes round the boxes between
        side = 0.0 if 0 <= y1 - y0 <= _GAP else (150.0 + 8 * (number % 6)) * (-1 if number % 2 else 1)
        for step in range(17):
            t = step / 16
            k = ((1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2, t**3)
            lines.append(
                {
                    "edge": number, "order": step,
                    "x": (k[0] + k[1]) * x0 + (k[2] + k[3]) * x1 + (k[1] + k[2]) * side,
                    "y": k[0] * y0 + k[1] * (y0 + bend) + k[2] * (y1 - bend) + k[3] * y1,
                    "width": 0.8 + 5.2 * energy / most,
                    "caller": names.full(a), "callee": names.full(b), "energy": si(energy, "J"),
                }
            )  # fmt: skip
        heads.append({"x": x1, "y": y1 - 1})
    return lines, heads


def dot(graph: Graph, theme: Theme, title: str) -> str:
    """The graph as Graphviz text."""
    labels = names.labels(graph.total_j, 60)
    number = {name: i for i, name in enumerate(graph.total_j)}
    most = max(graph.edges.values(), default=0.0) or 1.0
    out = [
        "digraph wattribute {",
        f"  graph [label={_quote(title)}, labelloc=t, fontname=Helvetica, bgcolor={_quote(theme.ground)}, "
        f"fontcolor={_quote(theme.text)}];",
        "  node [shape=box, style=\"filled,rounded\", fontname=Helvetica, fontsize=10];",
        f"  edge [color={_quote(theme.muted)}, fontname=Helvetica, fontsize=9, fontcolor={_quote(theme.muted)}];",
    ]  # fmt: skip
    for name, i in number.items():
        ground = _colour(graph, name, theme)
        text = f"{labels[name]}\n{si(graph.total_j[name], 'J')} · self {si(graph.self_j[name], 'J')}"
        out.append(
            f"  n{i} [label={_quote(text)}, tooltip={_quote(names.full(name))}, "
            f"fillcolor={_quote(ground)}, fontcolor={_quote(ink(ground))}];"
        )
    for (a, b), energy in sorted(graph.edges.items(), key=lambda item: -item[1]):
        width = 0.6 + 4.4 * energy / most
        out.append(f"  n{number[a]} -> n{number[b]} [label={_quote(si(energy, 'J'))}, penwidth={width:.2f}];")
    out += [f"  n{number[name]} -> n{number[name]};" for name in sorted(graph.recursive)]
    return "\n".join([*out, "}", ""])


def _quote(text: str) -> str:
    """A Graphviz string: backslashes and quotes are users' text, a line break is ours."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
