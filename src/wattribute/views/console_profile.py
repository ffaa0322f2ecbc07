"""A profile in the terminal: the books of each device, then its functions with where they stand, or its call tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from .console import attribution_head, bar, problem_lines, self_bounds
from .names import clean, labels
from .numbers import bounded, count, percent, seconds, si

if TYPE_CHECKING:
    from ..model import Attribution

_WIDTH = 160  # when nobody says how wide the terminal is
_NUMBERS = 92  # columns that bar and numbers take
_LEAST = 0.01  # a branch of the tree below this part of the device is folded away


def show_profile(
    functions: Attribution,
    paths: Attribution | None,
    memory: Mapping[str, Sequence[Mapping[str, Any]]],
    top: int,
    folder: str = "",
) -> None:
    """Print to stderr: standard output is the program's. ``memory`` are lines and their bytes under a heading."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        console = Console(stderr=True, highlight=False, width=_WIDTH)
    parts = [attribution_head(functions)]
    for device in functions.devices.to_dicts():
        title = Text.assemble((clean(device["device"]), "bold"), " estimated" if device["estimated"] else "")
        parts += [Text(), title]
        if paths is not None:
            parts.append(_tree(paths, device, top))
        else:
            parts.append(_table(_of(functions, device), device, top, console.width))
    for heading, lines in memory.items():
        if lines:
            parts += [Text(), _memory(heading, lines, console.width)]
    console.print(Group(*parts, problem_lines(functions)))
    if folder:
        console.print(Text(f"saved: {folder}  (wattribute view, plot flame, attribute --by path)", style="dim"))


def _of(found: Attribution, device: Mapping[str, Any]) -> Any:
    rows = found.rows
    for key in ("host", "device", "of"):
        rows = rows.filter(rows[key] == device[key])
    return rows


def _where(row: Mapping[str, Any]) -> str:
    """The file's last two parts and the line: enough to find it, short enough to read."""
    file = str(row["file"])
    if not file:
        return "–"
    short = "/".join(Path(file).parts[-2:]) if "/" in file else file
    return f"{clean(short)}:{row['line']}"


def _table(rows: Any, device: Mapping[str, Any], top: int, width: int) -> Table:
    shown, whole = rows.head(top).to_dicts(), device["measured_j"]
    room = max(14, (width - _NUMBERS) // 2)
    names = labels((row["frame"] for row in shown), room)
    places = labels((_where(row) for row in shown), room)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("function", "where", ""):
        table.add_column(name, no_wrap=True)
    for name in ("self", "share", "total", "wall", "cpu", "power", "calls"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in shown:
        table.add_row(
            Text(names[row["frame"]]),
            Text(places[_where(row)], style="dim"),
            bar(row["self_j"], whole, "user"),
            bounded(row["self_j"], *self_bounds(row, device)) if row["self_ns"] else "–",
            percent(row["self_j"], whole) if row["self_ns"] else "–",
            si(row["total_j"], "J"),
            seconds(row["self_ns"] / 1e9) if row["self_ns"] else "–",
            seconds(row["self_cpu_s"]) if row["self_ns"] else "–",
            si(row["power_w"], "W"),
            "–" if row["calls"] is None else count(row["calls"]),
        )
    if len(rows) > len(shown):
        rest = rows.tail(len(rows) - len(shown))["self_j"].sum()
        more = Text(f"… and {len(rows) - len(shown):,} more", style="dim")
        table.add_row(more, "", "", si(rest, "J"), percent(rest, whole))
    return table


def _tree(found: Attribution, device: Mapping[str, Any], top: int) -> RenderableType:
    """The call tree by total energy; of each node at most ``top`` branches, none below a hundredth of the device."""
    whole = device["measured_j"]
    rows = sorted(_of(found, device).to_dicts(), key=lambda row: -row["total_j"])
    below: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        below.setdefault(tuple(row["path"][:-1]), []).append(row)
    root = Tree(Text(si(whole, "J") + " measured"), guide_style="dim")

    def grow(node: Tree, path: tuple[str, ...]) -> None:
        branches = below.get(path, [])
        kept = [row for row in branches[:top] if whole > 0 and row["total_j"] >= _LEAST * whole]
        for row in kept:
            text = Text(f"{si(row['total_j'], 'J'):>8}  {percent(row['total_j'], whole):>6}  ")
            text.append(clean(row["path"][-1]), style="bold")
            own = f"self {si(row['self_j'], 'J')}, " if row["self_ns"] else ""
            text.append(f"  {own}{seconds(row['total_ns'] / 1e9)}", style="dim")
            grow(node.add(text), (*path, row["path"][-1]))
        if len(kept) < len(branches) and kept:
            rest = sum(row["total_j"] for row in branches[len(kept) :])
            node.add(Text(f"{si(rest, 'J'):>8}  … {len(branches) - len(kept)} more", style="dim"))

    grow(root, ())
    idle = f"{si(device['idle_j'], 'J'):>8}  {percent(device['idle_j'], whole):>6}  (idle)"
    root.add(Text(idle, style="dim"))
    return root


def _memory(heading: str, lines: Sequence[Mapping[str, Any]], width: int) -> Table:
    room = max(14, (width - 34) // 2)
    are_counted = "allocations" in lines[0]
    names = labels((row["frame"] for row in lines), room)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in (heading, "where"):
        table.add_column(name, no_wrap=True)
    for name in ("bytes", "allocations") if are_counted else ("bytes",):
        table.add_column(name, justify="right", no_wrap=True)
    for row in lines:
        counted = [count(row["allocations"])] if are_counted else []
        table.add_row(Text(names[row["frame"]]), Text(_where(row), style="dim"), si(row["bytes"], "B"), *counted)
    return table
