"""Attributions as the page's tabs want them: books and frames, call paths, process × frame, two side by side.

Nothing is computed here that attribution did not compute: rows are renamed, nested, sorted and cut.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ...model import Attribution
from .. import names
from .energy import addable
from .facts import key

MOST_ROWS = 3000  # of the table; the rest, which is smaller, comes as a sum
SMALLEST = 1e-4  # paths below this part of the whole are folded into their parents
MOST_FRAMES = 30  # columns of the heatmap
MOST_PROCESSES = 512
_NUMBERS = ("self_j", "total_j", "self_low_j", "self_high_j", "self_ns", "power_w", "calls")
NO_COMPARISON = "Nothing to compare with: open two recordings, wattribute view A --compare B"


def number(value: Any) -> Any:
    """JSON knows no NaN: what is not a number is null."""
    return None if value is None or (isinstance(value, float) and not math.isfinite(value)) else value


def books(attribution: Attribution, labels: Mapping[str, str]) -> list[dict[str, Any]]:
    """Per device: measured = attributed + idle."""
    rows = attribution.devices.to_dicts()
    added = addable(rows)
    out = []
    for row in rows:
        book = {name: number(value) for name, value in row.items()}
        out.append(
            {**book, "added": row in added, "key": key(row), "label": labels.get(key(row), names.clean(row["device"]))}
        )
    return out


def table(attribution: Attribution, labels: Mapping[str, str]) -> dict[str, Any]:
    """The Table tab, from an attribution by host, device and frame."""
    rows, rest = [], attribution.rows[MOST_ROWS:].to_dicts()
    for row in attribution.rows[:MOST_ROWS].to_dicts():
        entry = {name: number(row.get(name)) for name in _NUMBERS}
        entry |= {"key": key(row), "label": labels.get(key(row), row["device"]), "frame": names.full(row["frame"])}
        rows.append(entry)
    more: dict[str, float] = {}
    for row in rest:
        more[key(row)] = more.get(key(row), 0.0) + row["self_j"]
    cut = {"more": len(rest), "more_j": more}
    return {"devices": books(attribution, labels), "rows": rows, "problems": messages(attribution), **cut}


def messages(attribution: Attribution) -> list[str]:
    return list(dict.fromkeys(names.clean(problem.message) for problem in attribution.problems))


def flame(attributions: Sequence[Attribution], labels: Mapping[str, str]) -> dict[str, Any]:
    """The Flame tab, from attributions by device and path: per book the tree as [name, parent, self, total].

    Each view (``of``) also gets a tree of all its devices that may be added. A book that a later attribution holds
    too is taken from there, where its view is complete.
    """
    roots: dict[str, dict[str, Any]] = {}
    seen: set[str] = set()
    for attribution in reversed(attributions):
        added = addable(attribution.devices.to_dicts())
        alone = {book["of"] for book in added if [other["of"] for other in added].count(book["of"]) < 2}
        together = {key(book): f"all devices · {book['of']}" for book in added if book["of"] not in alone}
        for row in attribution.rows.to_dicts():
            if key(row) in seen:
                continue
            _grow(roots.setdefault(f"{labels.get(key(row), row['device'])} · {row['of']}", _node("all")), row)
            if key(row) in together:
                _grow(roots.setdefault(together[key(row)], _node("all")), row)
        seen |= {key(book) for book in attribution.devices.to_dicts()}
    found = [{"label": label, "nodes": _flatten(root)} for label, root in roots.items() if root["total"] > 0]
    return {"groups": sorted(found, key=lambda group: -group["nodes"][0][3])}


def _grow(root: dict[str, Any], row: Mapping[str, Any]) -> None:
    """Put a row's joules on its path."""
    at = root
    at["total"] += row["self_j"]
    for frame in row["path"]:
        at = at["below"].setdefault(frame, _node(names.full(frame)))
        at["total"] += row["self_j"]
    at["self"] += row["self_j"]


def _node(name: str) -> dict[str, Any]:
    return {"name": name, "self": 0.0, "total": 0.0, "below": {}}


def _flatten(root: dict[str, Any]) -> list[list[Any]]:
    """Depth first, the largest first, without paths too small to see; their joules stay in the totals above them.

    An explicit stack, because call paths may be deeper than Python's.
    """
    out: list[list[Any]] = []
    least = SMALLEST * root["total"]
    todo = [(root, -1)]
    while todo:
        node, parent = todo.pop()
        out.append([node["name"], parent, node["self"], node["total"]])
        at = len(out) - 1
        todo += [
            (child, at)
            for child in sorted(node["below"].values(), key=lambda child: child["total"])
            if child["total"] >= least
        ]
    return out


def heat(attribution: Attribution) -> dict[str, Any]:
    """The Heatmap tab, from an attribution by device, process and frame, over the devices that may be added."""
    added = {key(book) for book in addable(attribution.devices.to_dicts())}
    by_frame: dict[str, float] = {}
    cells: dict[tuple[str, str, str], list[float]] = {}
    for row in attribution.rows.to_dicts():
        if key(row) not in added:
            continue
        by_frame[row["frame"]] = by_frame.get(row["frame"], 0.0) + row["self_j"]
        cell = cells.setdefault((row["host"], row["process"], row["frame"]), [0.0, 0.0])
        cell[0] += row["self_j"]
        cell[1] += row["self_j"] / row["power_w"] if number(row["power_w"]) else 0.0
    ranked = sorted((name for name, joules in by_frame.items() if joules > 0), key=lambda name: -by_frame[name])
    shown, rest = ranked[:MOST_FRAMES], ranked[MOST_FRAMES:]
    places = list(dict.fromkeys((host, process) for host, process, _ in cells))[:MOST_PROCESSES]
    many = len({host for host, _ in places}) > 1
    return {
        "frames": [names.full(name) for name in shown],
        "processes": [
            {"label": names.clean(f"{host} · {process}" if many else process), "process": names.clean(process)}
            for host, process in places
        ],
        "cells": [
            {"process": i, "frame": j, "self_j": cells[place][0], "power_w": _ratio(*cells[place])}
            for i, (host, process) in enumerate(places)
            for j, name in enumerate(shown)
            if (place := (host, process, name)) in cells
        ],
        "more": len(rest),
        "more_j": math.fsum(by_frame[name] for name in rest),
    }


def _ratio(joules: float, seconds: float) -> float | None:
    return joules / seconds if seconds > 0 else None


def compare(left: Mapping[str, Any], right: Mapping[str, Any], sides: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The Compare tab: self joules per frame of two tables, summed over the devices that may be added."""
    sums: dict[str, list[float]] = {}
    for i, answer in enumerate((left, right)):
        added = {book["key"] for book in answer["devices"] if book["added"]}
        small = [
            {"key": of, "frame": "(smaller rows)", "self_j": joules} for of, joules in answer.get("more_j", {}).items()
        ]
        for row in (*answer["rows"], *small):
            if row["key"] in added:
                sums.setdefault(row["frame"], [0.0, 0.0])[i] += row["self_j"]
    rows = [{"frame": frame, "a_j": a, "b_j": b} for frame, (a, b) in sums.items()]
    return {"sides": list(sides), "rows": sorted(rows, key=lambda row: -abs(row["b_j"] - row["a_j"]))}
