"""A profile in the terminal: the books of each device, then functions with a column per device, or the call tree."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from ..files import write_file
from .console import attribution_head, bar, problem_lines
from .fitted_table import FittedTable
from .names import clean, labels
from .numbers import bounded, count, percent, seconds, si, unsure
from .selection import matching

if TYPE_CHECKING:
    import polars as pl

    from ..model import Attribution, Frames
from ..model.constants import IDLE, OTHERS, STATIC
from .terminal import Console

_WIDTH = 160  # where the terminal's width is unknown
_NUMBERS = 106  # columns that bar and numbers take
_DEVICES = 4  # that have a column
_LIBRARY = re.compile(r"^<frozen|[\\/](?:site|dist)-packages[\\/]|[\\/]lib[\\/](?:python|pypy)\d[^\\/]*[\\/]")
_LEAST = 0.01  # a branch of the tree below this part of what the program got is folded away


def show_profile(
    functions: Attribution,
    rows: pl.DataFrame,
    tree: CallTree | None,
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
            _profile(functions, rows, tree, memory, top, bill, _WIDTH)
        )
        write_file(output, text.getvalue())
        return
    console = Console(stderr=output is None, highlight=False)
    if not console.is_terminal:
        console = Console(stderr=output is None, highlight=False, width=_WIDTH)
    console.print(_profile(functions, rows, tree, memory, top, bill, console.width))
    if folder:
        console.print(Text(f"saved: {folder}  (wattribute view, plot flame, attribute --by path)", style="dim"))


def _profile(
    functions: Attribution,
    rows: pl.DataFrame,
    tree: CallTree | None,
    memory: Mapping[str, Sequence[Mapping[str, Any]]],
    top: int,
    bill: str,
    width: int,
) -> RenderableType:
    share_of = ""
    if tree is None and (others := _others(rows)).any():
        share_of = f"{si(float(rows.filter(~others)['self_j'].sum()), 'J')}, what the program itself got"
    parts: list[RenderableType] = [attribution_head(functions, share_of)]
    parts += [Text(bill)] if bill else []
    parts += [Text(), _table(rows, functions, top, width) if tree is None else _tree(tree, functions, top)]
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


def _others(rows: pl.DataFrame) -> pl.Series:
    """Which rows are not the program's."""
    return rows["frame"].is_in([OTHERS, STATIC])


def _table(rows: pl.DataFrame, attribution: Attribution, top: int, width: int) -> FittedTable:
    """Functions by the sum of their devices, shares of what the program itself got, and a column per device."""
    devices = _counted(attribution)
    own, rest = rows.filter(~_others(rows)), rows.filter(_others(rows))
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


@dataclass(frozen=True)
class CallTree:
    """What ``--tree`` prints: rows by call path, below ``root`` if one is given, library frames hidden or not."""

    paths: Attribution
    root: str | None = None
    libraries: bool = False


def _tree(tree: CallTree, functions: Attribution, top: int) -> RenderableType:
    """The call tree by total energy; of each node at most ``top`` branches, none below a hundredth of the program's."""
    devices = _counted(functions)
    whole, idle_j = (sum(device[name] for device in devices) for name in ("measured_j", "idle_j"))
    rows = sorted(tree.paths.rows.to_dicts(), key=lambda row: -row["total_j"])
    own = whole - sum(row["self_j"] for row in rows if row["path"][-1] in (OTHERS, STATIC))
    below: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        below.setdefault(tuple(row["path"][:-1]), []).append(row)
    hidden: set[str] = set() if tree.libraries else _library_frames(functions.recording.frames)
    how = "estimated" if any(device["estimated"] for device in devices) else "measured"
    trunk = Tree(Text(f"{si(whole, 'J')} {how}  {_seen(functions)}"), guide_style="dim")

    def grow(node: Tree, branches: Sequence[Mapping[str, Any]]) -> None:
        kept = [row for row in branches[:top] if whole > 0 and row["total_j"] >= _LEAST * own]
        for row in kept:
            path, name = tuple(row["path"]), row["path"][-1]
            text = Text(f"{si(row['total_j'], 'J'):>8}  {percent(row['total_j'], whole):>6}  ")
            text.append(clean(name), style="bold")
            itself = f"self {si(row['self_j'], 'J')}, " if row["self_ns"] else ""
            text.append(f"  {itself}{seconds(row['total_ns'] / 1e9)}", style="dim")
            inner = below.get(path, [])
            if name in hidden:
                inner, count_ = _leaving(inner, below, hidden)
                text.append(f"  [{count_} frame{'s' * (count_ != 1)} hidden]" if count_ else "", style="dim")
            grow(node.add(text), inner)
        if len(kept) < len(branches) and kept:
            rest = sum(row["total_j"] for row in branches[len(kept) :])
            node.add(Text(f"{si(rest, 'J'):>8}  … {len(branches) - len(kept)} more", style="dim"))

    grow(trunk, below.get((), []) if tree.root is None else _rooted(rows, tree.root))
    if tree.root is None:
        trunk.add(Text(f"{si(idle_j, 'J'):>8}  {percent(idle_j, whole):>6}  {IDLE}", style="dim"))
    return trunk


def _seen(functions: Attribution) -> str:
    """Duration, samples and CPU time: "1.89 s, 1,812 samples, 0.41 s of CPU time"."""
    recording = functions.recording
    begin, end = recording.life
    lasted = recording.clock.length_ticks if begin is None or end is None else end - begin
    words = [seconds(recording.clock.seconds(lasted))]
    if samples := recording.metadata.get("samples"):
        words.append(f"{samples:,} samples")
    cpu_s = recording.metadata.get("run", {}).get("cpu_s")
    return ", ".join([*words, f"{seconds(cpu_s)} of CPU time"] if cpu_s is not None else words)


def _library_frames(frames: Frames) -> set[str]:
    """Names of frames that only Python's own library and installed packages have."""
    own: set[str] = set()
    theirs: set[str] = set()
    for name, file in zip(frames.name, frames.file, strict=True):
        (theirs if _LIBRARY.search(file) else own).add(name)
    return theirs - own


def _leaving(
    rows: Sequence[dict[str, Any]], below: Mapping[tuple[str, ...], list[dict[str, Any]]], hidden: set[str]
) -> tuple[list[dict[str, Any]], int]:
    """Below a library frame: the first rows that are not the library's again, and how many frames are hidden."""
    left, waiting, count_ = [], list(rows), 0
    while waiting:
        row = waiting.pop()
        if row["path"][-1] in hidden:
            count_ += 1
            waiting += below.get(tuple(row["path"]), [])
        else:
            left.append(row)
    return sorted(left, key=lambda row: -row["total_j"]), count_


def _rooted(rows: Sequence[dict[str, Any]], root: str) -> list[dict[str, Any]]:
    """The outermost rows of the functions named, or matched by, ``root``."""
    named = matching({name for row in rows for name in row["path"]}, root)
    return [row for row in rows if row["path"][-1] in named and not named & set(row["path"][:-1])]


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
