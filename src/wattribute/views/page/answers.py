"""Attributions in the shape of the page's tabs: books and frames, call paths, process × frame, two side by side.

Nothing is computed here that attribution did not compute: rows are renamed, nested, sorted and cut.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...model import Attribution, Frames
from .. import kinds, names
from .energy import addable
from .facts import KEY_SEPARATOR, key
from .frames import FrameColumns, look

if TYPE_CHECKING:
    import polars as pl

    from .block_sums import BlockSums
    from .tiles import Tiles

MOST_ROWS = 3000  # of the table; the rest, which is smaller, comes as a sum
SMALLEST = 1e-4  # paths below this part of the whole are folded into their parents
MOST_TREES = 64  # devices with a flame graph of their own, the largest
MOST_FRAMES = 30  # columns of the heatmap
MOST_PROCESSES = 512
HEAT_LABEL = 22  # letters above a column
_NUMBERS = ("self_j", "total_j", "self_low_j", "self_high_j", "self_ns", "power_w", "calls")
NO_COMPARISON = "Nothing to compare with: open two recordings, wattribute view A --compare B"


def number(value: Any) -> Any:
    """Convert NaN to null, because JSON has no NaN."""
    return None if value is None or (isinstance(value, float) and not math.isfinite(value)) else value


class Looks:
    """Labels and colours of a recording's frames by name, and by where they ran."""

    def __init__(self, frames: Frames, columns: FrameColumns) -> None:
        self._frames, self._columns = frames, columns
        hashes = np.fromiter(map(hash, frames.name), np.int64, len(frames))
        self._order = np.argsort(hashes, kind="stable")  # 16 bytes per frame, where a dictionary has 150
        self._hashes = hashes[self._order]

    def __call__(self, name: str, of: str) -> dict[str, str]:
        """Label, kind and colours of a frame that a view (``of``) counts; of two frames of one name the first."""
        frame = self._find(name)
        return {"short": names.full(name), **look("other", name)} if frame is None else self.of_frame(frame, of)

    def of_frame(self, frame: int, of: str) -> dict[str, str]:
        """The same by the frame's number."""
        name, table = self._frames.name[frame], self._frames
        kind = kinds.kind(table.paradigm[frame], table.role[frame], name, of)
        return {"short": self._columns.row(frame)[1], **look(kind, name)}

    def _find(self, name: str) -> int | None:
        first, last = (np.searchsorted(self._hashes, hash(name), side) for side in ("left", "right"))
        return next((frame for frame in self._order[first:last].tolist() if self._frames.name[frame] == name), None)


def with_range(row: dict[str, Any], column: str, book: Mapping[str, Any]) -> dict[str, Any]:
    """The row with the error that the device's model states, where nothing closer is known of this column."""
    error = book.get("gain_error") if book.get("estimated") else None
    low, high = (column.replace("_j", f"_{side}_j") for side in ("low", "high"))
    if not error or row.get(column) is None or row.get(low) is not None:
        return row
    return {**row, low: (1 - error) * row[column], high: (1 + error) * row[column]}


def books(attribution: Attribution, labels: Mapping[str, str]) -> list[dict[str, Any]]:
    """Per device: measured = attributed + idle."""
    rows = attribution.devices.to_dicts()
    added = {key(row) for row in addable(rows)}
    out = []
    for row in rows:
        row = with_range(row, "measured_j", row)
        book = {name: number(value) for name, value in row.items()}
        out.append(
            {
                **book,
                "added": key(row) in added,
                "key": key(row),
                "label": labels.get(key(row), names.clean(row["device"])),
            }
        )
    return out


def table(
    attribution: Attribution, labels: Mapping[str, str], looks: Looks, by: str = "frame", device: str = ""
) -> dict[str, Any]:
    """The Table tab, from an attribution by one key over all devices that count, or by device and that key of one."""
    shown = attribution.rows.filter(_of_books([device])) if device else attribution.rows
    devices = {key(book): book for book in attribution.devices.to_dicts()}
    error = {
        "estimated": True,
        "gain_error": model_error([devices[device]] if device in devices else addable(list(devices.values()))),
    }
    rows, rest = [], shown[MOST_ROWS:]
    for row in shown[:MOST_ROWS].to_dicts():
        entry = with_range({name: number(row.get(name)) for name in _NUMBERS}, "self_j", error)
        if by == "frame":
            entry |= {"frame": names.full(row["frame"]), **looks(row["frame"], row["of"])}
        else:
            name = labels.get(key(row), row["device"]) if by == "device" else _place(row, by)
            entry |= {"frame": name, "short": name, **look("other", name)}
        rows.append(entry)
    cut = {"more": len(rest), "more_j": math.fsum(rest["self_j"])}
    return {"devices": books(attribution, labels), "rows": rows, "problems": messages(attribution), **cut}


def times(tiles: Tiles, range_: tuple[int, int] | None, by: str, looks: Looks) -> dict[str, Any]:
    """Rows of seconds and calls for a recording in which nothing was metered: innermost time per frame or process."""
    a, b = range_ or (0, tiles.length + 1)
    per_s = tiles.facts["clock"]["ticks_per_s"]
    sums: dict[tuple[str, str], list[int]] = {}
    for lane in tiles.facts["lanes"]:
        held, ticks, calls, _ = tiles.lanes[lane["location"]].sums(a, b)
        of = "kernels" if lane["kind"] == "gpu" else "host"
        host = f"{lane['host']} · " if lane["host"] else ""
        place = f"{host}{tiles.facts['processes'].get(str(lane['process']), '')}"
        for i in np.flatnonzero((ticks > 0) | (calls > 0)).tolist():
            frame = int(held[i])
            name = tiles.frames.name(frame) if by == "frame" else place
            entry = sums.setdefault((name, of if by == "frame" else ""), [0, 0, frame])
            entry[0] += int(ticks[i])
            entry[1] += int(calls[i])
    rows = []
    for (name, of), (ticks, calls, frame) in sorted(sums.items(), key=lambda item: -item[1][0]):
        known = looks.of_frame(frame, of) if by == "frame" else {"short": name, **look("other", name)}
        empty = dict.fromkeys(_NUMBERS)
        rows.append({**empty, "frame": name, "self_ns": ticks / per_s * 1e9, "calls": calls, **known})
    rest = rows[MOST_ROWS:]
    return {
        "rows": rows[:MOST_ROWS],
        "more": len(rest),
        "more_j": 0.0,
        "more_ns": math.fsum(row["self_ns"] for row in rest),
    }


def coarse_table(tiles: Tiles, blocks: BlockSums, range_: tuple[int, int] | None, by: str) -> dict[str, Any]:
    """The Table tab of many spans: frames and roles from blocks of time, devices and processes from curves.

    Calls, totals and bounds are left out.
    """
    a, b = blocks.edges(range_)
    books = tiles.books(a, b)
    joules: dict[Any, float] = {}
    rows: list[dict[str, Any]] = []
    more, more_j = 0, 0.0
    if by in ("frame", "role"):
        found, more_j = blocks.rows(range_)
        more = blocks.smaller_rows
        for frame, of, own, ticks in found:
            name, short, role, *_ = tiles.frames.row(frame)
            if by == "role":
                joules[role] = joules.get(role, 0.0) + own
                continue
            time_s = ticks / tiles.facts["clock"]["ticks_per_s"]
            known = {"frame": name, "short": short, **tiles.frames.look_of(frame, of)}
            rows.append({"self_j": own, "self_ns": 1e9 * time_s, "power_w": ratio(own, time_s), **known})
    elif by == "device":
        joules = {book["label"]: book["attributed_j"] for book in books if book["added"]}
    else:
        lanes = {lane["location"]: lane for lane in tiles.facts["lanes"]}
        for location, device, own in tiles.received(a, b):
            if location in lanes and device in lanes[location]["devices"]:
                lane = lanes[location]
                process = tiles.facts["processes"].get(str(lane["process"]), "")
                name = _place({"host": lane["host"], "process": process}, by)
                joules[name] = joules.get(name, 0.0) + own
    rows += [
        {"self_j": own, "frame": name, "short": name, **look("other", name)} for name, own in joules.items() if own
    ]
    error = {"estimated": True, "gain_error": model_error(addable(books))}
    rows.sort(key=lambda row: -row["self_j"])
    rows, rest = rows[:MOST_ROWS], rows[MOST_ROWS:]
    rows = [with_range(dict.fromkeys(_NUMBERS) | row, "self_j", error) for row in rows]
    cut = {"more": more + len(rest), "more_j": math.fsum([more_j, *(row["self_j"] for row in rest)])}
    return {"devices": books, "rows": rows, "problems": [], **cut}


def _place(row: Mapping[str, Any], by: str) -> str:
    host = f"{row['host']} · " if by == "process" and row.get("host") else ""
    return names.clean(f"{host}{row[by]}")


def model_error(counted: Sequence[Mapping[str, Any]]) -> float:
    """The largest error that the models of these devices state; 0 where one of them is measured."""
    if not counted or not all(book["estimated"] for book in counted):
        return 0.0
    return max(book["gain_error"] or 0.0 for book in counted)


def messages(attribution: Attribution) -> list[str]:
    return list(dict.fromkeys(names.clean(problem.message) for problem in attribution.problems))


def flame(attributions: Sequence[Attribution], labels: Mapping[str, str], looks: Looks) -> dict[str, Any]:
    """The Flame tab, from attributions by device and path: per book the tree as rows.

    A row is [name, parent, self, total, its least, its most].
    Each view (``of``) also gets a tree of all its devices that may be added; of many devices only the largest have a
    tree of their own. A book that a later attribution holds too is taken from there, where its view is complete.
    """
    import polars as pl

    roots: dict[str, dict[str, Any]] = {}
    seen: set[str] = set()
    more = 0
    for attribution in reversed(attributions):
        books = {key(book): book for book in attribution.devices.to_dicts()}
        added = addable(list(books.values()))
        rows = attribution.rows.with_columns(_book_key().alias("book")).filter(~pl.col("book").is_in(list(seen)))
        totals = rows.group_by("book", maintain_order=True).agg(pl.col("self_j").sum())
        largest = totals.sort("self_j", descending=True, maintain_order=True)["book"][:MOST_TREES].to_list()
        more += len(totals) - len(largest)
        for own in rows.filter(pl.col("book").is_in(largest)).partition_by("book", maintain_order=True):
            first = own.row(0, named=True)
            _grow_all(roots, f"{labels.get(first['book'], first['device'])} · {first['of']}", own)
        for of in dict.fromkeys(book["of"] for book in added):
            together = [key(book) for book in added if book["of"] == of]
            if len(together) > 1:
                _grow_all(roots, f"all devices · {of}", _by_path(rows.filter(pl.col("book").is_in(together))))
        seen |= set(books)
    groups = [
        {
            "label": label,
            "nodes": (nodes := flatten(root)),
            "looks": _looks(root, nodes, label.rpartition(" · ")[2], looks),
        }
        for label, root in roots.items()
        if root["total"] > 0
    ]
    return {"groups": sorted(groups, key=lambda group: -group["nodes"][0][3]), "more": more}


def _by_path(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of equal paths as one; a range is unknown where one of them is."""
    import polars as pl

    ends = [pl.col(name) for name in ("total_low_j", "total_high_j") if name in rows.columns]
    sums = [pl.when(end.null_count() == 0).then(end.sum()) for end in ends]
    grouped = rows.group_by(pl.col("path").list.join(KEY_SEPARATOR).alias("joined"), maintain_order=True)
    return grouped.agg(pl.col("path").first(), pl.col("self_j").sum(), *sums)


def _grow_all(roots: dict[str, dict[str, Any]], label: str, rows: pl.DataFrame) -> None:
    """Put rows on their paths; those of one frame that are too small to see are only counted, as there may be 10⁶."""
    import polars as pl

    root = roots.setdefault(label, node("all"))
    columns = [name for name in ("path", "self_j", "total_low_j", "total_high_j") if name in rows.columns]
    length, least = pl.col("path").list.len(), SMALLEST * float(rows["self_j"].sum())
    is_small = (length == 1) & (pl.col("self_j") < least)
    for row in rows.select(columns).filter(~is_small).iter_rows(named=True):
        _grow(root, row)
    small = rows.select(columns).filter(is_small).with_columns(pl.col("path").list.first().alias("first"))
    is_above = pl.col("first").is_in(list(root["below"]))  # of the paths that are drawn
    for row in small.filter(is_above).iter_rows(named=True):
        _grow(root, row)
    root["total"] += float(small.filter(~is_above)["self_j"].sum())


def _looks(root: dict[str, Any], nodes: Sequence[Sequence[Any]], of: str, looks: Looks) -> dict[str, dict[str, str]]:
    """The looks of the frames of a flame graph, by full name."""
    shown = {row[0] for row in nodes}
    out: dict[str, dict[str, str]] = {}
    todo = [root]
    while todo:
        for frame, node in todo.pop()["below"].items():
            if node["name"] in shown:
                out.setdefault(node["name"], looks(frame, of))
                todo.append(node)
    return out


def _grow(root: dict[str, Any], row: Mapping[str, Any]) -> None:
    """Put a row's joules on its path."""
    at = root
    at["total"] += row["self_j"]
    for frame in row["path"]:
        at = at["below"].setdefault(frame, node(names.full(frame)))
        at["total"] += row["self_j"]
    at["self"] += row["self_j"]
    for side in ("low", "high"):
        _add_end(at, side, row.get(f"total_{side}_j"))


def _add_end(sums: dict[str, Any], side: str, end: float | None) -> None:
    """Add an end of a range to a sum of such; the sum is unknown where one of them is."""
    known = sums.get(side, 0.0)
    sums[side] = None if end is None or known is None else known + end


def node(name: str) -> dict[str, Any]:
    return {"name": name, "self": 0.0, "total": 0.0, "below": {}}


def flatten(root: dict[str, Any]) -> list[list[Any]]:
    """Depth first, the largest first, without paths too small to see; their joules stay in the totals above them.

    An explicit stack, because call paths may be deeper than Python's.
    """
    out: list[list[Any]] = []
    least = SMALLEST * root["total"]
    todo = [(root, -1)]
    while todo:
        node, parent = todo.pop()
        out.append([node["name"], parent, node["self"], node["total"], node.get("low"), node.get("high")])
        at = len(out) - 1
        todo += [
            (child, at)
            for child in sorted(node["below"].values(), key=lambda child: child["total"])
            if child["total"] >= least
        ]
    return out


def heat(attribution: Attribution, looks: Looks) -> dict[str, Any]:
    """The Heatmap tab, from an attribution by device, process and frame, over the devices that may be added."""
    import polars as pl

    rows = attribution.rows.filter(_of_books([key(book) for book in addable(attribution.devices.to_dicts())]))
    by_frame = rows.group_by("frame", maintain_order=True).agg(pl.col("self_j").sum()).filter(pl.col("self_j") > 0)
    by_frame = by_frame.sort("self_j", descending=True, maintain_order=True)
    shown, rest = by_frame["frame"][:MOST_FRAMES].to_list(), by_frame["self_j"][MOST_FRAMES:]
    places = rows.select("host", "process").unique(maintain_order=True).head(MOST_PROCESSES)
    cells: dict[tuple[str, str, str], list[float]] = {}
    ranges: dict[tuple[str, str, str], dict[str, Any]] = {}
    drawn = rows.filter(pl.col("frame").is_in(shown)).join(places, on=["host", "process"], how="semi")
    for row in drawn.iter_rows(named=True):
        place = (row["host"], row["process"], row["frame"])
        cell = cells.setdefault(place, [0.0, 0.0])
        for side in ("low", "high"):
            _add_end(ranges.setdefault(place, {}), f"self_{side}_j", row.get(f"self_{side}_j"))
        cell[0] += row["self_j"]
        cell[1] += row["self_j"] / row["power_w"] if number(row["power_w"]) else 0.0
    beyond = rows.join(places, on=["host", "process"], how="anti")
    return {
        **heat_labels(shown, places.rows()),
        "cells": [
            {"process": i, "frame": j, "self_j": cells[place][0], "power_w": ratio(*cells[place]), **ranges[place]}
            for i, (host, process) in enumerate(places.iter_rows())
            for j, name in enumerate(shown)
            if (place := (host, process, name)) in cells
        ],
        "more": len(rest),
        "more_j": math.fsum(rest),
        "more_processes": beyond.select("host", "process").n_unique() if len(beyond) else 0,
        "more_processes_j": math.fsum(beyond.filter(pl.col("frame").is_in(shown))["self_j"]),
    }


def heat_labels(frames: Sequence[str], places: Sequence[Sequence[str]]) -> dict[str, Any]:
    """What stands above the columns and beside the rows (host and process) of a heatmap."""
    many = len({host for host, _ in places}) > 1
    return {
        "frames": [names.full(name) for name in frames],
        "short": list(names.labels(frames, HEAT_LABEL).values()),
        "processes": [
            {"label": names.clean(f"{host} · {process}" if many else process), "process": names.clean(process)}
            for host, process in places
        ],
    }


def _of_books(keys: Sequence[str]) -> pl.Expr:
    """The rows of these books, by their keys."""

    return _book_key().is_in(list(keys))


def _book_key() -> pl.Expr:
    """The key of a row's book, as ``key`` has it."""
    import polars as pl

    return pl.concat_str("host", "device", "of", separator=KEY_SEPARATOR)


def ratio(joules: float, seconds: float) -> float | None:
    return joules / seconds if seconds > 0 else None


def compare(left: Mapping[str, Any], right: Mapping[str, Any], sides: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The Compare tab: self joules per frame of two tables, summed over the devices that may be added."""
    sums: dict[str, list[float]] = {}
    ranges: dict[str, dict[str, Any]] = {}
    short: dict[str, str] = {}
    for i, answer in enumerate((left, right)):
        small = [{"frame": "(smaller rows)", "self_j": answer["more_j"]}] if answer.get("more") else []
        for row in (*answer["rows"], *small):
            sums.setdefault(row["frame"], [0.0, 0.0])[i] += row["self_j"]
            for side in ("low", "high"):
                _add_end(ranges.setdefault(row["frame"], {}), f"{'ab'[i]}_{side}_j", row.get(f"self_{side}_j"))
            short.setdefault(row["frame"], row.get("short", row["frame"]))
    rows = [
        {"frame": frame, "short": short[frame], "a_j": a, "b_j": b, **ranges[frame]} for frame, (a, b) in sums.items()
    ]
    return {"sides": list(sides), "rows": sorted(rows, key=lambda row: -abs(row["b_j"] - row["a_j"]))}
