"""Joules of call paths, and of frames per process, in blocks of time: flame graph and heatmap of a large recording.

Made with the tiles, by the same walk over innermost spans, so the sums of all blocks are those of attribution. A range
of time is answered from the blocks that it covers most, without reading a span. What is too small to be kept is folded:
paths into their callers, frames and processes into one sum of the others; no joule is lost.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._core import tiles
from ...model import Frames, Spans
from .answers import MOST_FRAMES, MOST_PROCESSES, MOST_ROWS, MOST_TREES, flatten, heat_labels, model_error, node, ratio
from .energy import PageEnergy, Use, addable, summed
from .facts import key, labels
from .frames import FrameColumns
from .lanes import Lane

MANY_SPANS = 1_000_000  # in a range of time: more are drawn from blocks
LANE_COST = 500  # spans: what attribution of a lane costs besides its spans
BLOCKS = 128
MOST_PATHS = 4096  # of all devices; the rest, which is smaller, is in the totals of its callers
HEAT_FRAMES = 2 * MOST_FRAMES  # the largest of a range are among the largest of all
_FILE = "blocks.npz"
_Table = npt.NDArray[np.int64]


class CallPaths:
    """Call paths, numbered as they are met: 0 is that of no frame; a caller stands before what it calls."""

    def __init__(self, frames: int) -> None:
        self._first = np.zeros(frames, np.int32)  # the path of a frame that nothing called
        self._below: dict[int, int] = {}  # caller and frame → path
        self.frame, self.parent, self._depth = array("q", [-1]), array("q", [-1]), array("q", [-1])

    def __len__(self) -> int:
        return len(self.frame)

    def number(self, spans: Spans) -> npt.NDArray[np.int32]:
        """The path of each span."""
        out = np.zeros(len(spans), np.int32)
        for depth, rows in _levels(spans.depth):
            frames = spans.frame[rows]
            if depth == 0:
                for frame in np.unique(frames[self._first[frames] == 0]).tolist():
                    self._first[frame] = self._add(frame, 0, 0)
                out[rows] = self._first[frames]
                continue
            keys, which = np.unique(out[spans.parent[rows]].astype(np.int64) << 32 | frames, return_inverse=True)
            out[rows] = np.array([self._of(each, depth) for each in keys.tolist()], np.int32)[which]
        return out

    def _of(self, name: int, depth: int) -> int:
        known = self._below.get(name)
        if known is None:
            known = self._below[name] = self._add(name & 0xFFFFFFFF, name >> 32, depth)
        return known

    def _add(self, frame: int, parent: int, depth: int) -> int:
        self.frame.append(frame)
        self.parent.append(parent)
        self._depth.append(depth)
        return len(self.frame) - 1

    def fold(self, self_j: npt.NDArray[np.float64], most: int) -> tuple[_Table, npt.NDArray[np.int32]]:
        """The paths of most joules, ascending, and a label for every path.

        The label of ``kept[i]`` is 2·i; a path that is not kept has 2·i + 1 of its nearest caller that is.
        """
        parent, depth = (np.frombuffer(column, np.int64) for column in (self.parent, self._depth))
        total, levels = self_j.copy(), list(_levels(depth[1:]))
        for _, rows in reversed(levels):
            np.add.at(total, parent[rows + 1], total[rows + 1])
        largest = np.lexsort((np.arange(len(total)), -total))[: most + 1]  # of equals the caller stands before
        kept = np.union1d([0], largest[total[largest] > 0])
        label = np.zeros(len(total), np.int32)
        place = np.full(len(total), -1, np.int64)
        place[kept] = np.arange(len(kept))
        label[0] = 1
        for _, rows in levels:
            above = label[parent[rows + 1]]
            label[rows + 1] = np.where(place[rows + 1] >= 0, 2 * place[rows + 1], above | 1)
        return kept, label


def _levels(depth: Any) -> Iterator[tuple[int, Any]]:
    """Each depth that occurs, from the top, and its rows."""
    if not len(depth) or not depth.any():
        if len(depth):
            yield 0, np.arange(len(depth))
        return
    order = np.argsort(depth, kind="stable")
    found, begin = np.unique(depth[order], return_index=True)
    yield from zip(found.tolist(), np.split(order, begin[1:]), strict=True)


@dataclass(frozen=True)
class _Tree:
    """A flame graph: its name, whose view it is, the error of its models, and what each lane used."""

    label: str
    of: str
    error: float
    uses: dict[int, list[Use]]


def _trees(metered: PageEnergy, named: Mapping[str, str], taken: set[str]) -> tuple[list[_Tree], int]:
    """The flame graphs of a view, as ``answers.flame`` has them; and how many devices have none of their own."""
    books = [(i, book) for i, book in enumerate(metered.books) if key(book) not in taken]
    added = {id(book) for book in addable(metered.books)}
    by_device: dict[int, dict[int, list[Use]]] = {}
    for location, uses in metered.uses.items():
        for use in uses:
            by_device.setdefault(use.device, {}).setdefault(location, []).append(use)
    out = []
    for of in dict.fromkeys(book["of"] for _, book in books):
        together = [(i, book) for i, book in books if book["of"] == of and id(book) in added]
        members: dict[int, list[Use]] = {}
        for i, _ in together:
            for location, uses in by_device.get(i, {}).items():
                members.setdefault(location, []).extend(uses)
        if len(together) > 1:
            out.append(_Tree(f"all devices · {of}", of, model_error([book for _, book in together]), members))
    used = sorted((pair for pair in books if pair[0] in by_device), key=lambda pair: -pair[1]["attributed_j"])
    own: dict[str, _Tree] = {}
    for i, book in used[:MOST_TREES]:
        label = f"{named.get(key(book), book['device'])} · {book['of']}"
        same = own.setdefault(label, _Tree(label, book["of"], model_error([book]), {}))
        for location, uses in by_device[i].items():
            same.uses.setdefault(location, []).extend(uses)
    return out + list(own.values()), max(0, len(used) - MOST_TREES)


class _Spans:
    """The spans of lanes, with frames of one name as one, and their call paths."""

    def __init__(self, lanes: Mapping[int, Lane], frames: Frames, length: int) -> None:
        self.lanes, self.length = lanes, length
        self._frame = _first_of_name(frames)
        self.paths = CallPaths(len(frames))

    def read(self, location: int, uses: Sequence[Use]) -> tuple[Spans, npt.NDArray[np.bool_]]:
        """A lane, and which of its spans receive energy."""
        spans = self.lanes[location].whole()
        masks = list({id(use.keep): use.keep for use in uses}.values())
        receives = np.any([mask[spans.frame] for mask in masks], axis=0)
        return replace(spans, frame=self._frame[spans.frame]), receives

    def totals(self, views: Sequence[PageEnergy]) -> list[npt.NDArray[np.float64]]:
        """Number all call paths; what each received itself, per view."""
        out = []
        for view in views:
            energy, covered, keep = np.zeros((1, 1 << 12)), np.zeros((1, 1 << 12), np.int64), np.zeros(0, bool)
            for location in self.lanes:
                uses = view.counted_uses(location) or view.uses.get(location, ())
                if not uses:
                    continue
                spans, receives = self.read(location, uses)
                path = self.paths.number(spans)
                while len(self.paths) > energy.shape[1]:
                    energy = np.concatenate([energy, np.zeros_like(energy)], axis=1)
                    covered = np.zeros(energy.shape, np.int64)
                if len(keep) != energy.shape[1]:
                    keep = np.ones(energy.shape[1], bool)
                    keep[0] = False
                labelled = replace(spans, frame=np.where(receives, path, 0))
                tiles.add_blocks(labelled, keep, summed(uses), 0, self.length + 1, covered, energy)
            out.append(energy[0])
        count = len(self.paths)
        return [np.pad(each[:count], (0, max(0, count - len(each)))) for each in out]


def _first_of_name(frames: Frames) -> npt.NDArray[np.int32]:
    """For each frame the first one of its name; by hashes, because a dictionary of 10⁶ names is large."""
    hashes = np.fromiter(map(hash, frames.name), np.int64, len(frames))
    _, first, which = np.unique(hashes, return_index=True, return_inverse=True)
    out = first[which].astype(np.int32)
    for frame in np.flatnonzero(out != np.arange(len(out))).tolist():
        if frames.name[frame] != frames.name[out[frame]]:
            out[frame] = frame  # two names of one hash
    return out


def build(
    lanes: Mapping[int, Lane],
    views: Sequence[PageEnergy],
    facts: Mapping[str, Any],
    frames: Frames,
    folder: Path,
    length: int,
) -> dict[str, Any]:
    """Write the blocks of a recording beside its lanes; returns the rest, for the manifest.

    The first of ``views`` is that of the page; those after it have flame graphs of their own.
    """
    width = -(-(length + 1) // BLOCKS)
    source = _Spans(lanes, frames, length)
    joules = source.totals(views)
    kept, label = source.paths.fold(np.sum(joules, axis=0), MOST_PATHS)
    trees: list[_Tree] = []
    more, taken = 0, set[str]()
    for view in reversed(views):  # a book that a later view holds too is complete there
        found, without = _trees(view, labels(facts["devices"]), taken)
        trees, more = trees + found, more + without
        taken |= {key(book) for book in view.books}
    arrays = {
        "frame": np.frombuffer(source.paths.frame, np.int64)[kept],
        "parent": np.searchsorted(kept, np.frombuffer(source.paths.parent, np.int64)[kept], "right") - 1,
    }
    keep = _all_but_last(2 * len(kept) + 1)
    energy, covered = np.zeros((BLOCKS, len(keep))), np.zeros((BLOCKS, len(keep)), np.int64)
    for i, tree in enumerate(trees):
        energy[:] = 0.0
        for location in lanes.keys() & tree.uses.keys():
            spans, receives = source.read(location, tree.uses[location])
            named = replace(spans, frame=np.where(receives, label[source.paths.number(spans)], len(keep) - 1))
            tiles.add_blocks(named, keep, summed(tree.uses[location]), 0, width, covered, energy)
        arrays[f"at{i}"] = np.flatnonzero(energy)
        arrays[f"self{i}"] = energy.ravel()[arrays[f"at{i}"]]
    frame = np.frombuffer(source.paths.frame, np.int64)
    by_frame = np.bincount(frame[1:], joules[0][1:], len(frames))
    order = np.lexsort((np.arange(len(by_frame)), -by_frame))
    order = order[by_frame[order] > 0]
    rows = _FrameSums(order[:MOST_ROWS], len(by_frame), width)
    heat = _heat(source, views[0], facts, order, width, rows, arrays)
    named_rows = {"frames": rows.frames.tolist(), "more": len(order) - len(rows.frames), "of": rows.save(arrays)}
    np.savez(folder / _FILE, **arrays)  # type: ignore[arg-type]
    named_trees = [{"label": tree.label, "of": tree.of, "error": tree.error} for tree in trees]
    return {"width": width, "trees": named_trees, "more": more, "heat": heat, "rows": named_rows}


class _FrameSums:
    """Joules and ticks per block and frame, of the largest frames and of all others together, for each view."""

    def __init__(self, frames: npt.NDArray[np.int64], count: int, width: int) -> None:
        self.frames, self.count, self._width = frames, count, width
        self._column = _columns(frames, count)
        self._keep = _all_but_last(len(frames) + 2)
        self._sums: dict[str, tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]] = {}

    def add(self, spans: Spans, receives: npt.NDArray[np.bool_], uses: Sequence[Use], of: Sequence[str]) -> None:
        """Add a lane; ``of`` is the view of each of its uses."""
        shape = BLOCKS, len(self._keep)
        named = replace(spans, frame=np.where(receives, self._column[spans.frame], shape[1] - 1))
        for view in dict.fromkeys(of):
            if view not in self._sums:
                self._sums[view] = np.zeros(shape, np.int64), np.zeros(shape)
            some = [use for use, own in zip(uses, of, strict=True) if own == view]
            tiles.add_blocks(named, self._keep, summed(some), 0, self._width, *self._sums[view])

    def save(self, arrays: dict[str, Any]) -> list[str]:
        """Put the sums into arrays; returns the views."""
        for i, (covered, energy) in enumerate(self._sums.values()):
            arrays[f"rows_at{i}"] = at = np.flatnonzero(energy)
            arrays[f"rows_self{i}"], arrays[f"rows_covered{i}"] = energy.ravel()[at], covered.ravel()[at]
        return list(self._sums)


def _columns(frames: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int32]:
    """The column of each of ``count`` frames: a number for those listed, the next one for all others."""
    column = np.full(count, len(frames), np.int32)
    column[frames] = np.arange(len(frames))
    return column


def _all_but_last(size: int) -> npt.NDArray[np.bool_]:
    """Which columns receive energy: the last is that of spans that do not."""
    keep = np.ones(size, bool)
    keep[-1] = False
    return keep


def _heat(
    source: _Spans,
    view: PageEnergy,
    facts: Mapping[str, Any],
    order: npt.NDArray[np.int64],
    width: int,
    rows: _FrameSums,
    arrays: dict[str, Any],
) -> dict[str, Any]:
    """Joules and seconds per process, block and frame: of the largest, and of all others together; and ``rows``."""
    frames = order[:HEAT_FRAMES]
    column = _columns(frames, rows.count)
    spent: dict[int, float] = {}
    for lane in facts["lanes"]:
        location = lane["location"]
        if location in source.lanes and view.counted_uses(location):
            joules = float(source.lanes[location].bins(0, source.length + 1, 1)[2]["energy"].sum())
            spent[lane["process"]] = spent.get(lane["process"], 0.0) + joules
    processes = sorted(spent, key=lambda process: -spent[process])
    row = {process: min(i, MOST_PROCESSES) for i, process in enumerate(processes)}
    keep = _all_but_last(len(frames) + 2)
    energy = np.zeros((min(len(processes), MOST_PROCESSES + 1), BLOCKS, len(keep)))
    covered = np.zeros(energy.shape, np.int64)
    host = {}
    for lane in facts["lanes"]:
        location, uses = lane["location"], view.counted_uses(lane["location"])
        if location not in source.lanes or not uses:
            continue
        spans, receives = source.read(location, uses)
        named = replace(spans, frame=np.where(receives, column[spans.frame], len(keep) - 1))
        at = row[lane["process"]]
        host[lane["process"]] = lane["host"]
        tiles.add_blocks(named, keep, summed(uses), 0, width, covered[at], energy[at])
        rows.add(spans, receives, uses, [view.books[use.device]["of"] for use in uses])
    arrays["heat_at"] = np.flatnonzero(energy)
    arrays["heat_self"] = energy.ravel()[arrays["heat_at"]]
    arrays["heat_covered"] = covered.ravel()[arrays["heat_at"]]
    shown = processes[:MOST_PROCESSES]
    return {
        "frames": frames.tolist(),
        "more": max(0, len(order) - len(frames)),
        "processes": [[host[process], facts["processes"].get(str(process), "")] for process in shown],
        "more_processes": len(processes) - len(shown),
        "error": model_error(addable(view.books)),
    }


class BlockSums:
    """The blocks of a folder of tiles; read when they are first asked for."""

    def __init__(self, folder: Path, manifest: Mapping[str, Any], frames: FrameColumns, length: int) -> None:
        self._path, self._manifest, self._frames = folder / _FILE, manifest, frames
        self._width, self._length = int(manifest["width"]), length

    @cached_property
    def _arrays(self) -> dict[str, Any]:
        with np.load(self._path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}

    def _blocks(self, range_: tuple[int, int] | None) -> tuple[int, int]:
        """The blocks whose edges are nearest to a range, at least one."""
        if range_ is None:
            return 0, BLOCKS
        first = min(BLOCKS - 1, round(range_[0] / self._width))
        return first, max(first + 1, min(BLOCKS, round(range_[1] / self._width)))

    def edges(self, range_: tuple[int, int] | None) -> tuple[int, int]:
        """The time that is drawn for a range, in ticks."""
        first, last = self._blocks(range_)
        return first * self._width, min(self._length, last * self._width)

    def flame(self, range_: tuple[int, int] | None) -> dict[str, Any]:
        """The Flame tab of a range, as ``answers.flame`` has it."""
        first, last = self._blocks(range_)
        arrays = self._arrays
        size, groups = 2 * len(arrays["frame"]) + 1, []
        for i, tree in enumerate(self._manifest["trees"]):
            begin, end = np.searchsorted(arrays[f"at{i}"], [first * size, last * size])
            sums = np.bincount(arrays[f"at{i}"][begin:end] % size, arrays[f"self{i}"][begin:end], size)
            if sums.any():
                groups.append(self._group(tree, sums[0:-1:2], sums[1::2]))
        return {"groups": sorted(groups, key=lambda group: -group["nodes"][0][3]), "more": self._manifest["more"]}

    def _group(self, tree: Mapping[str, Any], self_j: Any, folded_j: Any) -> dict[str, Any]:
        parent, total = self._arrays["parent"].tolist(), (self_j + folded_j).tolist()
        for i in range(len(total) - 1, 0, -1):  # callers stand before what they call
            if total[i]:
                total[parent[i]] += total[i]
        nodes, looks = {0: node("all") | {"self": float(self_j[0]), "total": total[0]}}, {}
        for i, frame in enumerate(self._arrays["frame"].tolist()):
            if not i or total[i] <= 0:
                continue
            name, short = self._frames.row(frame)[:2]
            looks[name] = {"short": short, **self._frames.look_of(frame, tree["of"])}
            nodes[i] = node(name) | {"self": float(self_j[i]), "total": total[i]}
            if tree["error"]:
                nodes[i] |= {"low": (1 - tree["error"]) * total[i], "high": (1 + tree["error"]) * total[i]}
            nodes[parent[i]]["below"][i] = nodes[i]
        rows = flatten(nodes[0])
        shown = {row[0] for row in rows}
        return {"label": tree["label"], "nodes": rows, "looks": {name: looks[name] for name in looks.keys() & shown}}

    def rows(self, range_: tuple[int, int] | None) -> tuple[list[tuple[int, str, float, int]], float]:
        """Frame, view, joules and ticks that were metered of each row of a range, and the joules of smaller ones."""
        first, last = self._blocks(range_)
        known, arrays = self._manifest["rows"], self._arrays
        size, out, rest = len(known["frames"]) + 2, [], 0.0
        for i, of in enumerate(known["of"]):
            begin, end = np.searchsorted(arrays[f"rows_at{i}"], [first * size, last * size])
            at = arrays[f"rows_at{i}"][begin:end] % size
            joules, ticks = (
                np.bincount(at, arrays[f"rows_{name}{i}"][begin:end], size) for name in ("self", "covered")
            )
            listed = np.flatnonzero(joules[:-2])
            out += [(known["frames"][j], of, float(joules[j]), int(ticks[j])) for j in listed.tolist()]
            rest += float(joules[-2])
        return sorted(out, key=lambda row: -row[2]), rest

    @property
    def smaller_rows(self) -> int:
        """How many frames have no row of their own."""
        return int(self._manifest["rows"]["more"])

    def heat(self, range_: tuple[int, int] | None, per_s: float) -> dict[str, Any]:
        """The Heatmap tab of a range, as ``answers.heat`` has it."""
        first, last = self._blocks(range_)
        known, arrays = self._manifest["heat"], self._arrays
        count, size = len(known["frames"]), len(known["frames"]) + 2
        rows = len(known["processes"]) + bool(known["more_processes"])
        block = arrays["heat_at"] // size % BLOCKS
        inside = (block >= first) & (block < last)
        at = arrays["heat_at"][inside]
        cell = at // (size * BLOCKS) * size + at % size
        joules = np.bincount(cell, arrays["heat_self"][inside], rows * size).reshape(rows, size)
        seconds = np.bincount(cell, arrays["heat_covered"][inside], rows * size).reshape(rows, size) / per_s
        by_frame = joules[:, :count].sum(axis=0)
        order = np.lexsort((np.arange(count), -by_frame))[:MOST_FRAMES]
        order = order[by_frame[order] > 0]
        drawn = joules[: len(known["processes"])][:, order]
        shown = [self._frames.row(known["frames"][i])[0] for i in order]
        error, places = known["error"], known["processes"]
        cells = []
        for i, j in np.argwhere(drawn > 0).tolist():
            value, time = float(drawn[i, j]), float(seconds[i, order[j]])
            around = {"self_low_j": (1 - error) * value, "self_high_j": (1 + error) * value} if error else {}
            cells.append({"process": i, "frame": j, "self_j": value, "power_w": ratio(value, time), **around})
        return {
            **heat_labels(shown, places),
            "cells": cells,
            "more": known["more"] + int((by_frame > 0).sum()) - len(order),
            "more_j": float(np.delete(joules, order, axis=1).sum()),
            "more_processes": known["more_processes"],
            "more_processes_j": float(joules[len(places) :, order].sum()),
        }
