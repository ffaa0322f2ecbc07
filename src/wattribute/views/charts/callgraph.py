"""The call graph as a picture and as Graphviz text; the colour of a box is its share of the energy."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ...model import Attribution, Recording
from ...plugins import chart
from .. import names
from ..kinds import ink
from ..numbers import amount, count, percent
from ..theme import SIZE, WIDTH, Theme
from ..theme import theme as theme_of
from .canvas import Rows, altair, finish, fixed, hover, layer, pixels
from .captions import caption, finding, subtitle
from .graph import Edge, Graph, graph
from .launches import launched
from .layout import HEIGHT, EdgeLine, Layout, Point, layout
from .tables import with_stacks
from .totals import total
from .tree import rooted, self_by_frame

_LETTER = 6.7  # pixels that a letter of a label takes
_CARD = {
    "frame": "frame",
    "total": "total",
    "self": "self",
    "share": "of the frames' energy",
    "calls": "calls",
    "exact": "total, exactly",
}


def dot(attribution: Attribution, *, theme: str = "light", top: int = 60, root: str | None = None) -> str:
    """The call graph as text for Graphviz."""
    by_path = with_stacks(attribution, ("path",))
    used = rooted(launched(by_path, unknown=True), root)
    return _dot_text(
        _measured(graph(used, top, by_path.unit), by_path),
        theme_of(theme),
        finding(by_path, self_by_frame(used)),
    )


@chart(
    "callgraph",
    about="who called whom, colour = energy (.dot for Graphviz)",
    needs="stacks",
    by=("path",),
    files={"dot": dot},
)
def callgraph(attribution: Attribution, *, theme: str = "light", top: int = 24, root: str | None = None) -> Any:
    """Who called whom; colour and size of the lines are energy."""
    look = theme_of(theme)
    by_path = with_stacks(attribution, ("path",))
    used = rooted(launched(by_path, unknown=True), root)
    shown = _measured(graph(used, top, by_path.unit), by_path)
    return finish(
        [_picture(shown, look)],
        look,
        title=finding(by_path, self_by_frame(used)),
        subtitle=subtitle(by_path),
        caption=caption(by_path, _left_out(shown)),
    )


def _measured(graph: Graph, attribution: Attribution) -> Graph:
    """The graph with what its shares are of, and the calls that were counted."""
    shown = replace(graph, measured_j=total(attribution, "measured"))
    return _with_exact_calls(shown, attribution.recording)


def _with_exact_calls(graph: Graph, recording: Recording) -> Graph:
    """The numbers of calls that statistics of a profiler give, which paths made of them only estimate."""
    functions, callers = (recording.metadata.get(name) for name in ("functions", "callers"))
    if not functions or callers is None:
        return graph
    calls = dict.fromkeys(graph.total_j, 0)
    for _, _, name, _, count_, *_ in functions:
        if name in calls:
            calls[name] += count_
    between: dict[tuple[str, str], int] = {}
    for caller, callee, _, count_, *_ in callers:
        edge = functions[caller][2], functions[callee][2]
        between[edge] = between.get(edge, 0) + count_
    exact = {edge: between.get(edge, graph.edge_calls.get(edge, 0)) for edge in graph.edges}
    return replace(graph, calls=calls, edge_calls=exact)


def _left_out(shown: Graph) -> str:
    if not shown.left_out:
        return ""
    return (
        f"{shown.left_out} smaller frames are not drawn "
        f"({amount(shown.left_out_j, shown.unit)} in themselves, {percent(shown.left_out_j, shown.measured_j)})."
    )


def _picture(graph: Graph, theme: Theme) -> Any:
    """Boxes from callers (top) to callees, lines as thick as the energy that flows through them."""
    alt = altair()
    places = layout(graph)
    boxes, (lines, heads) = _boxes(graph, places, theme), _lines(graph, places)
    x = {"scale": alt.Scale(domain=[0, WIDTH], nice=False), "axis": None}
    y = {"scale": alt.Scale(domain=[0, max(places.height, 1.0)], nice=False, reverse=True), "axis": None}
    curves = layer(lines, width=WIDTH, height=places.height).mark_line(
        color=theme.muted, opacity=0.55, strokeCap="round", strokeJoin="round"
    ).encode(
        x=alt.X("x:Q", **x), y=alt.Y("y:Q", **y), detail=alt.Detail("edge:N"), order=alt.Order("order:Q"),
        strokeWidth=alt.StrokeWidth("width:Q", scale=None, legend=None),
        tooltip=hover(lines, caller="caller", callee="callee", energy="energy"),
    )  # fmt: skip
    arrows = layer(heads).mark_point(filled=True, size=45, color=theme.muted, opacity=0.9).encode(
        x=alt.X("x:Q", **x), y=alt.Y("y:Q", **y), shape=alt.Shape("shape:N", scale=None, legend=None)
    )  # fmt: skip
    base = layer(boxes)
    rects = base.mark_rect(cornerRadius=4, stroke=theme.muted, strokeWidth=0.6).encode(
        x=alt.X("x:Q", **x), x2=alt.X2("x2:Q"), y=alt.Y("y:Q", **y), y2=alt.Y2("y2:Q"), color=fixed("ground"),
        tooltip=hover(boxes, **_CARD),
    )  # fmt: skip
    texts = [
        base.mark_text(baseline="middle", fontWeight=weight, fontSize=size).encode(
            x=alt.X("middle:Q", **x), y=alt.Y(f"{at}:Q", **y), text=f"{field}:N", color=fixed("ink")
        )
        for field, at, weight, size in (
            ("label", "upper", 600, SIZE),
            ("energy", "lower", "normal", SIZE - 1),
            ("shares", "lowest", "normal", SIZE - 2),
        )
    ]
    words = [
        layer([head for head in heads if head["side"] == side and head["words"]])
        .mark_text(align=side, baseline="bottom", dx=7 if side == "left" else -7, dy=-2, fontSize=SIZE - 3,
                   color=theme.muted, **halo)
        .encode(x=alt.X("x:Q", **x), y=alt.Y("y:Q", **y), text=alt.Text("words:N"))
        for halo in ({"stroke": theme.ground, "strokeWidth": 3}, {})  # a line behind words does not cross them
        for side in ("left", "right")
    ]  # fmt: skip
    return alt.layer(curves, arrows, rects, *texts, *words)


def _colour(graph: Graph, name: str, theme: Theme) -> str:
    whole = max(graph.total_j.values(), default=0.0)
    return theme.ramp(graph.total_j[name] / whole if whole else 0.0)


def _boxes(graph: Graph, places: Layout, theme: Theme) -> Rows:
    room = min((box.width for box in places.boxes.values()), default=0.0) - 10
    labels = names.labels(graph.total_j, max(8, int(room / _LETTER)))
    boxes: Rows = []
    for name, box in places.boxes.items():
        ground = _colour(graph, name, theme)
        boxes.append(
            {
                "name": name,
                "x": box.middle - box.width / 2, "x2": box.middle + box.width / 2, "middle": box.middle,
                "y": box.top, "y2": box.top + HEIGHT, "upper": box.top + 12, "lower": box.top + 26,
                "lowest": box.top + 40,
                "self_j": graph.self_j[name],
                "total_j": graph.total_j[name],
                "label": labels[name] + (" ↻" if name in graph.recursive else ""),
                "energy": _energy(graph, name, box.width),
                "shares": _shares(graph, name),
                "calls": count(graph.calls[name]) if graph.calls.get(name) else "–",
                "frame": names.full(name),
                "total": amount(graph.total_j[name], graph.unit),
                "self": amount(graph.self_j[name], graph.unit),
                "share": percent(graph.total_j[name], graph.measured_j),
                "exact": f"{graph.total_j[name]:.9g} {graph.unit}",
                "ground": ground,
                "ink": ink(ground),
            }
        )  # fmt: skip
    return boxes


def _energy(graph: Graph, name: str, width: float) -> str:
    total, own = amount(graph.total_j[name], graph.unit), amount(graph.self_j[name], graph.unit)
    return f"{total} · self {own}" if width >= 140 else total


def _shares(graph: Graph, name: str) -> str:
    """Percentages of total and self, and the calls: "62 % · self 3.1 % · 4,593×"."""
    whole, own = (percent(each[name], graph.measured_j) for each in (graph.total_j, graph.self_j))
    words = f"{whole} · self {own}"
    return words + (f" · {count(graph.calls[name])}×" if graph.calls.get(name) else "")


def _edge_words(graph: Graph, edges: Iterable[Edge], energy_j: float) -> str:
    """What a line carries: its share of all that was measured, and the calls where they are known."""
    calls = sum(graph.edge_calls.get(edge, 0) for edge in edges)
    whole = percent(energy_j, graph.measured_j)
    return whole + (f" · {count(calls)}×" if calls else "")


def _lines(graph: Graph, places: Layout) -> tuple[Rows, Rows]:
    """The strokes as rows of points, and the heads of arrows with the words beside them."""
    most = max(graph.edges.values(), default=0.0) or 1.0
    lines: Rows = []
    heads: Rows = []
    ends_at: dict[Point, list[EdgeLine]] = {}
    for number, line in enumerate(sorted(places.lines, key=lambda line: line.energy_j)):
        caller, callee = (
            names.full(ends[0]) if len(ends) == 1 else f"{len(ends)} frames" for ends in (line.callers, line.callees)
        )
        about = {
            "edge": number, "width": 0.8 + 5.2 * min(1.0, line.energy_j / most), "caller": caller,
            "callee": callee, "energy": amount(line.energy_j, graph.unit),
        }  # fmt: skip
        lines += [about | {"order": i, "x": x, "y": y} for i, (x, y) in enumerate(line.points)]
        if line.head:
            ends_at.setdefault(line.points[-1], []).append(line)
    groups = sorted(ends_at.values(), key=lambda group: -sum(line.energy_j for line in group))
    for group in groups:  # lines that end at one point have one head, and words where they do not come from
        edges = {(a, b) for line in group for a in line.callers for b in line.callees}
        words = _edge_words(graph, edges, sum(line.energy_j for line in group))
        from_right = group[-1].points[0][0] > group[-1].points[-1][0] + 2
        heads.append(_head(*group[-1].points[-2:]) | {"words": words, "side": "right" if from_right else "left"})
    return lines, _with_room(heads, places)


def _with_room(heads: Rows, places: Layout) -> Rows:
    """The heads, without the words that would stand on a box or on others; lines of more energy come first."""
    taken = [
        (box.middle - box.width / 2, box.top, box.middle + box.width / 2, box.top + HEIGHT)
        for box in places.boxes.values()
    ]
    taken += [(head["x"] - 4, head["y"] - 4, head["x"] + 4, head["y"] + 4) for head in heads]
    out: Rows = []
    for head in heads:
        wide = pixels(head["words"], SIZE - 3)
        left = head["x"] + 7 if head["side"] == "left" else head["x"] - 7 - wide
        place = (left, head["y"] - 2 - SIZE, left + wide, head["y"] - 2)
        free = not any(place[0] < c and a < place[2] and place[1] < d and b < place[3] for a, b, c, d in taken)
        taken += [place] if free else []
        out.append(head if free else head | {"words": ""})
    return out


def _head(before: Point, end: Point) -> dict[str, Any]:
    """An arrow's head before the box, in the direction of the last step."""
    x, y = end[0] - before[0], end[1] - before[1]
    if abs(x) > abs(y):
        return {"x": end[0] - math.copysign(4, x), "y": end[1], "shape": f"triangle-{'right' if x > 0 else 'left'}"}
    return {"x": end[0], "y": end[1] - math.copysign(4, y), "shape": f"triangle-{'down' if y >= 0 else 'up'}"}


def _dot_text(graph: Graph, theme: Theme, title: str) -> str:
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
        amounts = f"{amount(graph.total_j[name], graph.unit)} · self {amount(graph.self_j[name], graph.unit)}"
        text = f"{labels[name]}\n{amounts}\n{_shares(graph, name)}"
        out.append(
            f"  n{i} [label={_quote(text)}, tooltip={_quote(names.full(name))}, "
            f"fillcolor={_quote(ground)}, fontcolor={_quote(ink(ground))}];"
        )
    for (a, b), energy in sorted(graph.edges.items(), key=lambda item: -item[1]):
        width = 0.6 + 4.4 * energy / most
        words = f"{amount(energy, graph.unit)}\n{_edge_words(graph, [(a, b)], energy)}"
        out.append(f"  n{number[a]} -> n{number[b]} [label={_quote(words)}, penwidth={width:.2f}];")
    out += [f"  n{number[name]} -> n{number[name]};" for name in sorted(graph.recursive)]
    return "\n".join([*out, "}", ""])


def _quote(text: str) -> str:
    """A Graphviz string: backslashes and quotes are users' text, a line break is ours."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
