"""A profile in the terminal: the books of each device, then functions with a column per device, or the call tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from ..files import write_file
from .console import attribution_head, bar, problem_lines
from .fitted_table import FittedTable
from .names import clean, labels
from .numbers import bounded, count, percent, seconds, si, unsure

if TYPE_CHECKING:
    import polars as pl

    from ..model import Attribution
from ..model.constants import IDLE, OTHERS, STATIC

_WIDTH = 160  # where the terminal's width is unknown
_NUMBERS = 106  # columns that bar and numbers take
_DEVICES = 4  # that have a column
_LEAST = 0.01  # a branch of the tree below this part of the device is folded away


def show_profile(
    functions: Attribution,
    rows: pl.DataFrame,
    paths: Attribution | None,
    memory: Mapping[str, Sequence[Mapping[str, Any]]],
    top: int,
    bill: str = "",
    folder: str = "",
    output: Path | None = None,
) -> None:
    """Print to stderr, for standard output is the program's, or to ``output`` ("-": standard output).

    ``rows`` are those of :func:`wattribute.sessions.profile_table.function_table`, ``bill`` is a line above them;
    ``memory`` are lines and their bytes under a heading.
    """
    if output is not None and str(output) != "-":
        text = StringIO()
        Console(file=text, highlight=False, width=_WIDTH, no_color=True).print(
            _profile(functions, rows, paths, memory, top, bill, _WIDTH)
        )
        write_file(output, text.getvalue())
        return
    console = Console(stderr=output is None, highlight=False)
    if not console.is_terminal:
        console = Console(stderr=output is None, highlight=False, width=_WIDTH)
    console.print(_profile(functions, rows, paths, memory, top, bill, console.width))
    if folder:
        console.print(Text(f"saved: {folder}  (wattribute view, plot flame, attribute --by path)", style="dim"))


def _profile(
    functions: Attribution,
    rows: pl.DataFrame,
    paths: Attribution | None,
    memory: Mapping[str, Sequence[Mapping[str, Any]]],
    top: int,
    bill: str,
    width: int,
) -> RenderableType:
    parts: list[RenderableType] = [attribution_head(functions)]
    parts += [Text(bill)] if bill else []
    parts += [Text(), _table(rows, functions, top, width) if paths is None else _tree(paths, functions, top)]
    for heading, lines in memory.items():
        if lines:
            parts += [Text(), _memory(heading, lines, width)]
    return Group(*parts, problem_lines(functions))


def _counted(attribution: Attribution) -> list[dict[str, Any]]:
    """The devices that rows add up."""
    devices = attribution.devices.to_dicts()
    return [device for device in devices if device["counted"]] or devices


def _where(row: Mapping[str, Any]) -> str:
    """The file's last two parts and the line: enough to find it, short enough to read."""
    file = str(row["file"])
    if not file:
        return "–"
    short = "/".join(Path(file).parts[-2:]) if "/" in file else file
    return f"{clean(short)}:{row['line']}"


def _table(rows: pl.DataFrame, attribution: Attribution, top: int, width: int) -> FittedTable:
    """Functions by the sum of their devices, shares of what the program itself got, and a column per device."""
    devices = _counted(attribution)
    is_own = ~rows["frame"].is_in([OTHERS, STATIC])
    own, rest = rows.filter(is_own), rows.filter(~is_own)
    shown, whole = own.head(top).to_dicts(), float(own["self_j"].sum())
    named = [name for name in rows.columns if name in {device["device"] for device in devices}][:_DEVICES]
    several = len(named) > 1
    error = devices[0]["gain_error"] if all(device["estimated"] for device in devices) else None
    room = max(24, (width - _NUMBERS - 10 * len(named) * several) // 2)
    names = labels((row["frame"] for row in shown), room)
    places = labels((_where(row) for row in shown), room)
    table = FittedTable(drop=("power", "cpu", "with callees", "where", "calls", "total", "wall"))
    for name in ("function", "where", ""):
        table.add_column(name, no_wrap=True)
    each = [clean(name) for name in named if several]
    for name in ("self", "share", *each, "total", "wall", "with callees", "cpu", "power", "calls"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in shown:
        ends = (row["self_low_j"], row["self_high_j"])
        if error and None in ends:  # a model's error is the error of its rows
            ends = (row["self_j"] * (1 - error), row["self_j"] * (1 + error))
        has_self = bool(row["self_ns"])
        table.add_row(
            Text(names[row["frame"]]),
            Text(places[_where(row)], style="dim"),
            bar(row["self_j"], whole, "user"),
            bounded(row["self_j"], *ends) if has_self else "–",
            percent(row["self_j"], whole) if has_self else "–",
            *(si(row[name], "J") if has_self else "–" for name in named if several),
            si(row["total_j"], "J"),
            seconds(row["self_ns"] / 1e9) if has_self else "–",
            seconds(row["total_ns"] / 1e9),
            seconds(row["self_cpu_s"]) if has_self else "–",
            si(row["power_w"], "W"),
            count(row["calls"]),
            style="dim" if unsure(row["self_j"], *ends) else "",
        )
    if len(own) > len(shown):
        more = float(own.tail(len(own) - len(shown))["self_j"].sum())
        table.add_row(
            Text(f"… and {len(own) - len(shown):,} more", style="dim"), "", "", si(more, "J"), percent(more, whole)
        )
    for row in rest.to_dicts():
        cells = [si(row[name], "J") for name in named if several]
        table.add_row(Text(row["frame"]), "", "", si(row["self_j"], "J"), "", *cells, style="dim")
    return table


def _tree(attribution: Attribution, functions: Attribution, top: int) -> RenderableType:
    """The call tree by total energy; of each node at most ``top`` branches, none below a hundredth of the whole."""
    devices = _counted(functions)
    whole, idle_j = (sum(device[name] for device in devices) for name in ("measured_j", "idle_j"))
    rows = sorted(attribution.rows.to_dicts(), key=lambda row: -row["total_j"])
    below: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        below.setdefault(tuple(row["path"][:-1]), []).append(row)
    how = "estimated" if any(device["estimated"] for device in devices) else "measured"
    root = Tree(Text(f"{si(whole, 'J')} {how}"), guide_style="dim")

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
    root.add(Text(f"{si(idle_j, 'J'):>8}  {percent(idle_j, whole):>6}  {IDLE}", style="dim"))
    return root


def _memory(heading: str, lines: Sequence[Mapping[str, Any]], width: int) -> FittedTable:
    room = max(24, (width - 34) // 2)
    are_counted = "allocations" in lines[0]
    names = labels((row["frame"] for row in lines), room)
    table = FittedTable(drop=("allocations",))
    for name in (heading, "where"):
        table.add_column(name, no_wrap=True)
    for name in ("bytes", "allocations") if are_counted else ("bytes",):
        table.add_column(name, justify="right", no_wrap=True)
    for row in lines:
        counted = [count(row["allocations"])] if are_counted else []
        table.add_row(Text(names[row["frame"]]), Text(_where(row), style="dim"), si(row["bytes"], "B"), *counted)
    return table
