"""Layout of a call graph's boxes and lines: Graphviz's where that is installed, else layers of our own.

A line never crosses a box it does not belong to. In our layout a line that skips rows has a place of its own in each of
them, beside the boxes; lines to one callee share it, and so do lines of one caller to frames that it alone calls.
"""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .graph import Edge, Graph, acyclic, ranks

WIDTH, HEIGHT, GAP, SPACE = 900.0, 50.0, 44.0, 12.0  # of the picture; of a box, between rows, between neighbours
WIDEST, NARROWEST, TRUNK = 190.0, 140.0, 8.0  # of boxes, and of a place that a line has among them
_STEPS, _UPRIGHT = 12, 5.0  # points of a curve, and how long its ends are
_TIMEOUT_S = 20
Point = tuple[float, float]
Place = str | tuple[str, str, int]  # a frame, or the place of a line in a row: ("to", callee, row) and the like
Step = tuple[Place, Place, bool]  # from a row to the next; whether it is drawn upwards


@dataclass(frozen=True)
class Box:
    """The place of a frame: its middle, its top and its width."""

    middle: float
    top: float
    width: float


@dataclass(frozen=True)
class EdgeLine:
    """A stroke from callers towards callees, several of one or of the other; with a head where it ends at a box."""

    points: tuple[Point, ...]
    callers: tuple[str, ...]
    callees: tuple[str, ...]
    energy_j: float
    head: bool


@dataclass(frozen=True)
class Layout:
    boxes: Mapping[str, Box]
    lines: Sequence[EdgeLine]
    height: float


def layout(graph: Graph) -> Layout:
    """Graphviz's layout if it is there and its boxes are wide enough to be read, else ours."""
    return (_of_graphviz(graph) if shutil.which("dot") and graph.edges else None) or layered(graph)


# ── our own ──


def layered(graph: Graph) -> Layout:
    """Callers above callees, at most so many in a row that their boxes can be read."""
    drawings = [_Layers(graph, most) for most in (6, 5, 4, 3)]
    best = next((one for one in drawings if one.width >= NARROWEST), max(drawings, key=lambda one: one.width))
    return best.layout()


class _Layers:
    """The rows of a graph: frames, and the places of lines that pass by."""

    def __init__(self, graph: Graph, most: int) -> None:
        self.graph = graph
        down = acyclic(graph)
        self.row = _rows_of(graph, down, most)
        self.upwards = sorted(set(graph.edges) - set(down))
        self.calls = Counter(callee for _, callee in graph.edges)
        self.steps: dict[Step, dict[Edge, float]] = defaultdict(dict)
        for edge in [*down, *self.upwards]:
            for upper, lower in pairwise(self._way(edge)):
                self.steps[upper, lower, edge in self.upwards][edge] = graph.edges[edge]
        self.rows = self._ordered()
        self.width = min((_room(row) for row in self.rows), default=WIDEST)

    def _way(self, edge: Edge) -> list[Place]:
        """The places of an edge from its upper to its lower end."""
        upper, lower = edge
        line = ("to", lower) if self.calls[lower] > 1 else ("from", upper)
        if edge in self.upwards:
            upper, lower, line = lower, upper, ("up", f"{upper}\0{lower}")
        return [upper, *((*line, row) for row in range(self.row[upper] + 1, self.row[lower])), lower]

    def _neighbours(self) -> tuple[dict[Place, list[Place]], dict[Place, list[Place]]]:
        above: dict[Place, list[Place]] = defaultdict(list)
        below: dict[Place, list[Place]] = defaultdict(list)
        for upper, lower, _ in self.steps:
            above[lower].append(upper)
            below[upper].append(lower)
        return above, below

    def _ordered(self) -> list[list[Place]]:
        """The rows in the order, of those tried, in which the fewest lines cross."""
        rows: list[list[Place]] = [[] for _ in range(max(self.row.values(), default=-1) + 1)]
        for name in self.graph.total_j:  # by energy, so that the order is stable
            rows[self.row[name]].append(name)
        for place in dict.fromkeys(place for step in self.steps for place in step[:2] if not isinstance(place, str)):
            rows[place[2]].append(place)
        above, below = self._neighbours()
        best, fewest = [list(row) for row in rows], self._crossings(rows)
        for sweep in range(12):
            neighbours = above if sweep % 2 == 0 else below
            for row in rows if sweep % 2 == 0 else reversed(rows):
                at = {place: (i + 0.5) / len(other) for other in rows for i, place in enumerate(other)}
                row.sort(key=lambda place: _mean([at[n] for n in neighbours[place]], at[place]))
            crossings = self._crossings(rows)
            if crossings < fewest:
                best, fewest = [list(row) for row in rows], crossings
        return best

    def _crossings(self, rows: Sequence[Sequence[Place]]) -> int:
        at = {place: i for row in rows for i, place in enumerate(row)}
        of_row = {place: i for i, row in enumerate(rows) for place in row}
        between: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for upper, lower, _ in self.steps:
            between[of_row[upper]].append((at[upper], at[lower]))
        return sum(
            (a[0] - b[0]) * (a[1] - b[1]) < 0
            for steps in between.values()
            for i, a in enumerate(steps)
            for b in steps[:i]
        )

    def _middles(self) -> dict[Place, float]:
        """The x of every place: as near to its neighbours as the others of its row let it be."""
        above, below = self._neighbours()
        x: dict[Place, float] = {}
        for row in self.rows:
            x |= dict(zip(row, _apart([WIDTH / 2] * len(row), self._widths(row)), strict=True))
        for sweep in range(8):
            neighbours = above if sweep % 2 == 0 else below
            for row in self.rows if sweep % 2 == 0 else reversed(self.rows):
                wanted = [_mean([x[n] for n in neighbours[place]], x[place]) for place in row]
                x |= dict(zip(row, _apart(wanted, self._widths(row)), strict=True))
        return x

    def _widths(self, row: Sequence[Place]) -> list[float]:
        return [self.width if isinstance(place, str) else TRUNK for place in row]

    def layout(self) -> Layout:
        x, pitch = self._middles(), HEIGHT + GAP
        top = {place: i * pitch + GAP / 2 for i, row in enumerate(self.rows) for place in row}
        boxes = {name: Box(x[name], top[name], self.width) for name in self.graph.total_j}
        lines = []
        for (upper, lower, up), edges in self.steps.items():
            # beside the way down of the same two
            start, end = (x[place] + (2 * TRUNK if up and isinstance(place, str) else 0.0) for place in (upper, lower))
            points = _curve((start, top[upper] + HEIGHT), (end, top[lower]))
            if not isinstance(lower, str):
                points.append((end, top[lower] + HEIGHT))
            callers, callees = (tuple(dict.fromkeys(names)) for names in zip(*edges, strict=True))
            head = isinstance(upper if up else lower, str)
            lines.append(EdgeLine(tuple(points[::-1] if up else points), callers, callees, sum(edges.values()), head))
        return Layout(boxes, lines, len(self.rows) * pitch)


def _rows_of(graph: Graph, down: Sequence[Edge], most: int) -> dict[str, int]:
    """The row of each frame: its rank, ranks with more than ``most`` frames cut into several rows, largest first."""
    rank = ranks(graph, down)
    members: dict[int, list[str]] = defaultdict(list)
    for name in graph.total_j:
        members[rank[name]].append(name)
    rows: dict[str, int] = {}
    first = 0
    for level in sorted(members):
        rows |= {name: first + i // most for i, name in enumerate(members[level])}
        first += -(-len(members[level]) // most)
    return rows


def _room(row: Sequence[Place]) -> float:
    """How wide the boxes of a row may be."""
    boxes = sum(isinstance(place, str) for place in row)
    lines = len(row) - boxes
    free = WIDTH - lines * TRUNK - (boxes + lines - 1) * SPACE
    return min(WIDEST, free / boxes) if boxes else WIDEST


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _apart(wanted: Sequence[float], widths: Sequence[float]) -> list[float]:
    """Middles nearest to those wanted (least squares) that keep the order, their distances and the picture's width."""
    if not wanted:
        return []
    offset = [0.0]
    for left, right in pairwise(widths):
        offset.append(offset[-1] + (left + right) / 2 + SPACE)
    blocks: list[tuple[float, int]] = []  # (sum, count) of neighbours that touch
    for value, shift in zip(wanted, offset, strict=True):
        blocks.append((value - shift, 1))
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] >= blocks[-1][0] / blocks[-1][1]:
            (a, n), (b, m) = blocks[-2:]
            blocks[-2:] = [(a + b, n + m)]
    low, high = widths[0] / 2, WIDTH - widths[-1] / 2 - offset[-1]
    if high < low:
        low = high = (low + high) / 2
    placed = [min(max(total / count, low), high) for total, count in blocks for _ in range(count)]
    return [at + shift for at, shift in zip(placed, offset, strict=True)]


def _curve(start: Point, end: Point) -> list[Point]:
    """From a lower edge down to an upper one, upright at both ends: it stays between the two."""
    (x0, y0), (x1, y1) = start, end
    top, bottom = y0 + _UPRIGHT, y1 - _UPRIGHT
    out = [start]
    for step in range(_STEPS + 1):
        t = step / _STEPS
        across, along = t * t * (3 - 2 * t), 1.5 * t * (1 - t) ** 2 + 1.5 * t * t * (1 - t) + t**3
        out.append((x0 + (x1 - x0) * across, top + (bottom - top) * along))
    return [*out, end]


# ── Graphviz's ──


def _of_graphviz(graph: Graph) -> Layout | None:
    """What ``dot`` makes of the graph, squeezed to the picture's width; None if it fails or would be too narrow."""
    number = {name: i for i, name in enumerate(graph.total_j)}
    text = [f"digraph {{ graph [nodesep={SPACE / 72:.3f}, ranksep={GAP / 72:.3f}];"]
    text.append(f'node [shape=box, fixedsize=true, width={WIDEST / 72:.4f}, height={HEIGHT / 72:.4f}, label=""];')
    text += [f"n{i};" for i in number.values()]
    weight = max(graph.edges.values(), default=0.0) or 1.0
    text += [f"n{number[a]} -> n{number[b]} [weight={1 + round(9 * j / weight)}];" for (a, b), j in graph.edges.items()]
    try:
        done = subprocess.run(
            ["dot", "-Tplain"],
            input="\n".join([*text, "}"]),
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    words = [line.split() for line in done.stdout.splitlines()]
    size = next((list(map(float, line[2:4])) for line in words if line[:1] == ["graph"]), None)
    if size is None:
        return None
    squeeze = min(1.0, WIDTH / (size[0] * 72))
    if squeeze * WIDEST < NARROWEST:
        return None
    left = (WIDTH - size[0] * 72 * squeeze) / 2
    names = list(number)

    def point(x: str, y: str) -> Point:
        return left + float(x) * 72 * squeeze, (size[1] - float(y)) * 72 + GAP / 2

    boxes, lines = {}, []
    for line in words:
        if line[:1] == ["node"]:
            middle, centre = point(line[2], line[3])
            boxes[names[int(line[1][1:])]] = Box(middle, centre - HEIGHT / 2, WIDEST * squeeze)
        elif line[:1] == ["edge"]:
            edge = names[int(line[1][1:])], names[int(line[2][1:])]
            count = int(line[3])
            knots = [point(x, y) for x, y in zip(line[4 : 4 + 2 * count : 2], line[5 : 5 + 2 * count : 2], strict=True)]
            points = (*_spline(knots), _border(knots[-1], boxes[edge[1]]))  # the spline ends where the head begins
            lines.append(EdgeLine(points, edge[:1], edge[1:], graph.edges[edge], True))
    return Layout(boxes, lines, size[1] * 72 + GAP) if len(boxes) == len(number) else None


def _border(point: Point, box: Box) -> Point:
    """The point of a box's border that is nearest to a point outside."""
    left, right = box.middle - box.width / 2, box.middle + box.width / 2
    return min(max(point[0], left), right), min(max(point[1], box.top), box.top + HEIGHT)


def _spline(knots: Sequence[Point]) -> list[Point]:
    """Points along the Bézier curves of three knots each."""
    out = [knots[0]]
    for at in range(0, len(knots) - 3, 3):
        four = knots[at : at + 4]
        for step in range(1, _STEPS + 1):
            t = step / _STEPS
            k = ((1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2, t**3)
            out.append(
                (
                    sum(w * p[0] for w, p in zip(k, four, strict=True)),
                    sum(w * p[1] for w, p in zip(k, four, strict=True)),
                )
            )
    return out
