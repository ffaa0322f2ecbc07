"""The folder of tiles of one recording: built once in one pass over its lanes, then opened in milliseconds.

``build`` writes lanes, curves and facts into a fresh folder and renames it into place; :class:`Tiles` answers questions
about a stretch of time (bins or exact spans of lanes, power of devices, one span, one bin). Whose joules they are was
decided by attribution, before (``energy``).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from ..._core import tiles
from ...errors import FormatError, OutputError
from ...files import replacing_folder
from ...model import Curve, Intervals, Recording, Spans
from . import block_sums, energy, watts
from .block_sums import BlockSums
from .cache_folder import VERSION, Permissions
from .energy import PageEnergy
from .frames import FrameColumns
from .lanes import Grid, Lane, LaneFiles, LaneWriter, exact

EXACT_SPANS = 5000  # per view: up to so many spans are drawn one by one
MOST_BINS = 1024  # per lane and view
KEPT_LIMITS = 256  # lanes
MOST_CHILDREN = 256  # of a span whose self has a range
ALL_BINS = 50_000  # per view: its answer stays below 2 MB
_MANIFEST, _TABLE = "tiles.json", "table.json"  # apart, because it is large and not needed for the first picture


def build(
    recording: Recording,
    metered: PageEnergy,
    frames: FrameColumns,
    facts: Mapping[str, Any],
    table: Mapping[str, Any],
    folder: Path,
    fingerprint: str,
    permissions: Permissions,
    progress: Callable[[int, int], None] | None = None,
    views: Callable[[], Sequence[PageEnergy]] | None = None,
) -> None:
    """Write the tiles of a recording to ``folder``; a half-written folder is never seen under that name.

    ``views`` are asked for where there are so many spans that flame graphs and heatmaps are drawn from blocks; without
    them those are of ``metered``.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        with replacing_folder(folder, overwrite=True) as fresh:
            length = _length(recording, metered)
            entries, longest = _write_lanes(recording, metered, fresh, length, progress)
            if longest > length:  # the clock's length was wrong, as in traces that were cut
                length = longest
                entries, _ = _write_lanes(recording, metered, fresh, length, progress)
            rest = energy.save(metered, fresh)
            frames.save(fresh)
            blocks = None
            if sum(entry["spans"] + block_sums.LANE_COST for entry in entries) > block_sums.MANY_SPANS:
                with contextlib.closing(LaneFiles(fresh)) as files:
                    lanes = _open_lanes(files, entries, len(frames), metered)
                    blocks = block_sums.build(
                        lanes, views() if views else [metered], facts, recording.frames, fresh, length
                    )
            manifest = {
                "blocks": blocks,
                "version": VERSION,
                "fingerprint": fingerprint,
                "length_ticks": length,
                "lanes": entries,
                "facts": dict(facts),
                "palette": list(frames.palette),
                **rest,
            }
            (fresh / _TABLE).write_text(json.dumps(table), encoding="utf-8")
            (fresh / _MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
            permissions.apply(fresh)  # the files, before others can see them
        permissions.apply(folder)
    except OutputError as error:
        raise OutputError(f"{error}; XDG_CACHE_HOME may name another disk") from error


def _open_lanes(
    files: LaneFiles, entries: Sequence[dict[str, Any]], frames: int, metered: PageEnergy
) -> dict[int, Lane]:
    return {entry["location"]: Lane(files, entry, *metered.of(entry["location"], frames)) for entry in entries}


def _length(recording: Recording, metered: PageEnergy) -> int:
    ends = [recording.clock.length_ticks, *(int(curve.times[-1]) for curve in metered.burned if len(curve.times))]
    return max(1, *ends)


def _write_lanes(
    recording: Recording, metered: PageEnergy, folder: Path, length: int, progress: Callable[[int, int], None] | None
) -> tuple[list[dict[str, Any]], int]:
    frames = len(recording.frames)
    writer = LaneWriter(folder, Grid.over(length))
    entries, longest = [], 0
    locations = recording.spans.locations()
    try:
        for done, location in enumerate(locations):
            spans = recording.spans.spans(location)
            if len(spans):
                entries.append(writer.add(location, spans, *metered.of(location, frames), metered.limited(location)))
                longest = max(longest, int(spans.end.max()))
                _gather(metered, location, spans)
            if progress:
                progress(done + 1, len(locations))
    finally:
        writer.close()
    return entries, longest


def _gather(metered: PageEnergy, location: int, spans: Spans) -> None:
    """Add when a lane was busy to its devices, whose idle time no lane shows alone."""
    if metered.alone(location):
        return
    for use in metered.uses.get(location, ()):
        start, end = watts.busy_times(spans, use.keep)
        if use.device in metered.busy:
            known = metered.busy[use.device]
            start, end = np.concatenate([known.start, start]), np.concatenate([known.end, end])
            order = np.argsort(start, kind="stable")
            start, end = watts.merged(start[order], end[order])
        metered.busy[use.device] = Intervals(start, end)


def fingerprint_of(folder: Path) -> str | None:
    """What the tiles in this folder were made of, or None when there are none (or of another version)."""
    try:
        manifest = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        return str(manifest["fingerprint"]) if manifest["version"] == VERSION else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


class Tiles:
    """A folder of tiles, open for questions. Times are ticks; pictures are bytes: a JSON header, then arrays."""

    def __init__(self, folder: Path) -> None:
        try:
            manifest = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
            self.facts: dict[str, Any] = manifest["facts"]
            self._table = folder / _TABLE
            self.length = int(manifest["length_ticks"])
            self.metered = energy.load(manifest, folder)
            self.frames = FrameColumns.load(folder, manifest["palette"])
            self._files = LaneFiles(folder)
        except (OSError, ValueError, KeyError) as error:
            raise FormatError(folder, f"these tiles are damaged; delete the folder ({error})") from error
        self._idles: dict[int, Curve] = {}
        self._limits: dict[int, list[watts.Limited]] = {}
        self._members: dict[str, list[int]] = {}
        self._lane_kinds = {lane["location"]: lane["kind"] for lane in self.facts["lanes"]}
        self.entries: list[dict[str, Any]] = manifest["lanes"]
        entries = {entry["location"]: entry for entry in self.entries}
        self.facts["lanes"] = [
            {**lane, "spans": entries[lane["location"]]["spans"], "deepest": entries[lane["location"]]["deepest"]}
            for lane in self.facts["lanes"]
            if lane["location"] in entries  # a location that holds no spans gets no lane
        ]
        self.lanes = _open_lanes(self._files, self.entries, len(self.frames), self.metered)
        self.blocks: BlockSums | None = None
        if manifest["blocks"]:
            self.blocks = BlockSums(folder, manifest["blocks"], self.frames, self.length)

    def table(self) -> dict[str, Any]:
        """The books and frames of the whole recording, as they were when the tiles were made."""
        content: dict[str, Any] = json.loads(self._table.read_text(encoding="utf-8"))
        return content

    def costs_more(self, most: int, a: int, b: int) -> bool:
        """Whether a to b costs more to add up than so many spans, give or take the open ones."""
        counts = (lane.count(a, b) for lane in self.lanes.values())
        return any(cost > most for cost in accumulate(counts, initial=block_sums.LANE_COST * len(self.lanes)))

    def close(self) -> None:
        self._files.close()

    def view(
        self,
        locations: Sequence[int],
        a: int,
        b: int,
        width: int,
        idle: Sequence[int] = (),
        groups: Sequence[str] = (),
    ) -> bytes:
        """What these lanes look like from a to b, on so many pixels, what these devices left idle, and folded groups.

        The lanes with the fewest spans come as exact spans, as long as the view has no more than EXACT_SPANS; the
        others as bins.
        """
        lanes = [self.lanes[location] for location in locations if location in self.lanes]
        counts = {lane.location: lane.count(a, b) for lane in lanes}
        left, few = EXACT_SPANS, set()
        for location in sorted(counts, key=lambda each: counts[each]):
            left -= counts[location]
            if left < 0:
                break
            few.add(location)
        most = max(1, min(MOST_BINS, width, ALL_BINS // max(1, len(lanes))))
        parts: list[dict[str, Any]] = []
        for lane in lanes:
            parts += self._spans(lane, a, b, most) if lane.location in few else self._bins(lane, a, b, most)
        for device in idle:
            parts.append({"device": device, "mode": "idle", "data": watts.steps(self._idle(device), a, b, most)})
        for group in groups:
            parts += self.group(group, a, b, max(1, min(MOST_BINS // 2, width)))
        return pack({"from": a, "to": b}, parts)

    def group(self, name: str, a: int, b: int, most: int) -> list[dict[str, Any]]:
        """The lanes of a host or process as one: the sums of their bins, the frame that fills most, what was idle."""
        locations = self._groups()[name]
        edges = np.linspace(a, b, most + 1)
        width = (b - a) / most
        out, over = np.zeros(most, tiles.BIN), np.zeros(most, watts.OVER)
        spent: dict[int, Any] = {}
        for location in locations:
            lane = self.lanes[location]
            at, wide, bins = lane.bins(a, b, most)
            borders = at + wide * np.arange(len(bins) + 1)
            busy = bins["busy"] * np.float64(wide)
            used, filled = (_resampled(edges, borders, amounts) for amounts in (bins["energy"], busy))
            out["energy"] += used
            out["busy"] += filled
            middle = np.clip(((borders[:-1] + wide / 2 - a) / width).astype(np.int64), 0, most - 1)
            out["calls"] += np.bincount(middle, bins["calls"], most).astype(np.uint32)
            for frame in np.unique(bins["frame"][bins["frame"] >= 0]):
                mine = bins["frame"] == frame
                filled = np.bincount(middle[mine], busy[mine], most)
                spent[int(frame)] = spent[int(frame)] + filled if int(frame) in spent else filled
            if lane.energies is not None and self.metered.alone(location):
                over["idle"] += _rising(np.diff(np.interp(edges, *lane.energies)) - used)
        for device in self._apart_in(name):
            curve = self._idle(device)
            over["idle"] += np.diff(np.interp(edges, curve.times, curve.values))
        out["frame"] = -1
        if spent:
            table = np.stack(list(spent.values()))
            out["frame"] = np.where(table.max(axis=0) > 0, np.array(list(spent))[table.argmax(axis=0)], -1)
        out["busy"] /= width * max(1, len(locations))
        over["low"] = over["high"] = out["energy"]
        gpu = all(self._lane_kinds[location] == "gpu" for location in locations)
        head = {"lane": name, "at": a, "width": width, "gpu": gpu, "lanes": len(locations)}
        metered = any(self.lanes[location].energies is not None for location in locations)
        parts = [{**head, "mode": "bins", "data": out}]
        return [*parts, {"lane": name, "mode": "over", "data": over}] if metered else parts

    def _groups(self) -> dict[str, list[int]]:
        """The lanes of each host ("h0") and each process ("p12")."""
        if not self._members:
            hosts = {host: i for i, host in enumerate(self.facts["hosts"])}
            for lane in self.facts["lanes"]:
                for name in (f"h{hosts[lane['host']]}", f"p{lane['process']}"):
                    self._members.setdefault(name, []).append(lane["location"])
        return self._members

    def _apart_in(self, name: str) -> list[int]:
        """The devices whose idle time has a row of its own, and all of whose users are in a group."""
        count: dict[int, int] = {}
        for location in self._groups()[name]:
            for use in self.metered.uses.get(location, ()):
                count[use.device] = count.get(use.device, 0) + 1
        apart, users = set(self.facts["apart"]), self.metered.users()
        return [device for device, inside in count.items() if device in apart and users[device] == inside]

    def everything(self) -> bytes:
        """All lanes span by span, with their pieces: for the self-contained file of a small recording."""
        most = 1 << 20
        parts = [part for lane in self.lanes.values() for part in self._spans(lane, 0, self.length + 1, most)]
        for device in self.metered.apart():
            data = watts.steps(self._idle(device), 0, self.length, most)
            parts.append({"device": device, "mode": "idle", "data": data})
        return pack({"from": 0, "to": self.length}, parts)

    def whole(self) -> bytes:
        """All lanes as bins, from start to end: for the self-contained file of a large recording."""
        return self.view(list(self.lanes), 0, self.length, MOST_BINS, self.metered.apart())

    def _spans(self, lane: Lane, a: int, b: int, most: int) -> list[dict[str, Any]]:
        """A lane span by span, and as pieces with their energy."""
        drawn, (spans, rows) = exact(lane, a, b), lane.piece(*lane.between(a, b))
        parts = [{"lane": lane.location, "mode": "spans", "data": drawn}]
        if lane.energies is None:
            return parts
        pieces = watts.pieces(spans, rows, lane.keep, lane.energies, a, b, most)
        parts.append({"lane": lane.location, "mode": "pieces", "data": pieces})
        if self.metered.alone(lane.location):
            left = watts.between(pieces, lane.energies, a, b, most)
            parts.append({"lane": lane.location, "mode": "idle", "data": left})
        limited = self._limited(lane)
        band = watts.band(limited, a, b, most) if limited else watts.model_band(pieces, self._model(lane))
        return [*parts, {"lane": lane.location, "mode": "band", "data": band}]

    def _bins(self, lane: Lane, a: int, b: int, most: int) -> list[dict[str, Any]]:
        """A lane as bins, and what each of them left idle and can be."""
        at, wide, bins = lane.bins(a, b, most)
        parts = [{"lane": lane.location, "mode": "bins", "at": at, "width": wide, "data": bins}]
        if lane.energies is not None:
            alone = self.metered.alone(lane.location)
            over = watts.over_bins(at, wide, bins, lane.energies, alone, self._limited(lane), self._model(lane))
            parts.append({"lane": lane.location, "mode": "over", "data": over})
        return parts

    def _limited(self, lane: Lane) -> list[watts.Limited]:
        """A lane's devices with bounds; kept for the lanes on screen, because every zoom step asks for them."""
        if lane.location not in self._limits:
            if len(self._limits) >= KEPT_LIMITS:
                self._limits.clear()
            uses = zip(self.metered.limited(lane.location), lane.limits(), strict=True)
            self._limits[lane.location] = [
                watts.Limited.of(use.curve.edges, pairs, energy.gains(self.metered.books[use.device]))
                for use, pairs in uses
                if use.curve.edges is not None
            ]
        return self._limits.get(lane.location, [])

    def _model(self, lane: Lane) -> watts.Gains:
        """The error of the models that a lane's energy comes from; none where it was measured."""
        books = [self.metered.books[device] for device in self.metered.counted(lane.location)]
        errors = [energy.gains(book) for book in books if book["estimated"]]
        return min((low for low, _ in errors), default=1.0), max((high for _, high in errors), default=1.0)

    def _idle(self, device: int) -> Curve:
        if device not in self._idles:
            if device not in self.facts["apart"]:
                raise KeyError(device)
            self._idles[device] = self.metered.idle(device)
        return self._idles[device]

    def power(self, devices: Sequence[int], a: int, b: int, width: int) -> bytes:
        """Mean, least and greatest power of devices on so many pixels; NaN where nothing was read."""
        bins = max(1, min(MOST_BINS, width, b - a))
        edges = np.linspace(a, b, bins + 1).round().astype(np.int64)
        per_s = self.facts["clock"]["ticks_per_s"]
        curves = self.metered.drawn
        parts = [{"device": i, "mode": "power", "data": power(curves[i], edges, per_s)} for i in devices]
        return pack({"from": a, "to": b, "bins": bins}, parts)

    def whole_power(self, bins: int) -> list[float | None]:
        """Mean power over the whole recording, of the devices that may be added."""
        edges = np.linspace(0, self.length, bins + 1).round().astype(np.int64)
        per_s = self.facts["clock"]["ticks_per_s"]
        curves = zip(self.metered.drawn, self.facts["devices"], strict=True)
        parts = [power(curve, edges, per_s)[:, 0] for curve, book in curves if book["added"]]
        return [float(value) for value in np.nansum(parts, axis=0)] if parts else [None] * bins

    def find(self, frames: Sequence[int], after: int) -> dict[str, Any]:
        """The first span of these frames, in any lane, that starts after a moment."""
        best: dict[str, Any] = {"found": False, "start": self.length + 1}
        for location, lane in self.lanes.items():
            row = lane.first_of(frames, after, best["start"])
            if row is not None:
                spans, _ = lane.piece(row, row + 1)
                best = {"found": True, "lane": location, "start": int(spans.start[-1]), "end": int(spans.end[-1])}
        return best

    def bin(self, location: int, a: int, b: int, top: int = 3) -> dict[str, Any]:
        """The frames that fill a stretch of a lane, longest first, with their joules."""
        lane = self.lanes[location]
        held, ticks, calls, joules = lane.sums(a, b)
        order = np.lexsort((np.arange(len(ticks)), -ticks))[:top]
        metered = lane.energies is not None
        frames = [
            {
                "frame": int(held[i]),
                "ticks": int(ticks[i]),
                "calls": int(calls[i]),
                "self_j": float(joules[i]) if metered and lane.keep[held[i]] else None,
            }
            for i in order
            if ticks[i] or calls[i]
        ]
        whole = {"ticks": int(ticks.sum()), "calls": int(calls.sum()), "frames": int(((ticks > 0) | (calls > 0)).sum())}
        return {"top": frames, "self_j": float(joules.sum()) if metered else None, **whole}

    def burned(self, a: int, b: int) -> list[float]:
        """What each device spent from a to b."""
        return [float(_used(curve, a, b)) for curve in self.metered.burned]

    def received(self, a: int, b: int) -> list[tuple[int, int, float]]:
        """Lane, device and joules of each use from a to b: from the curves, however many spans there are."""
        uses = ((location, use) for location, uses in self.metered.uses.items() for use in uses)
        return [(location, use.device, float(_used(use.curve, a, b))) for location, use in uses]

    def books(self, a: int, b: int) -> list[dict[str, Any]]:
        """Per device: measured = attributed + idle from a to b."""
        out = [
            {**device, "measured_j": joules, "attributed_j": 0.0, "measured_low_j": None, "measured_high_j": None}
            for device, joules in zip(self.facts["devices"], self.burned(a, b), strict=True)
        ]
        for _, device, joules in self.received(a, b):
            out[device]["attributed_j"] += joules
        return [{**book, "idle_j": max(0.0, book["measured_j"] - book["attributed_j"])} for book in out]

    def span(self, location: int, row: int) -> dict[str, Any]:
        """One span in full: joules with bounds per device, self and total, and its share of what was measured."""
        lane = self.lanes[location]
        if not 0 <= row < lane.spans:
            raise KeyError(row)
        spans, _ = lane.piece(row, row + 1)
        start, end, frame = int(spans.start[-1]), int(spans.end[-1]), int(spans.frame[-1])
        began, ended = lane.children(row)
        devices = []
        for use in self.metered.uses.get(location, ()):
            if not use.keep[frame]:
                continue
            total = _used(use.curve, start, end)
            self_j = total - float(np.sum(_used(use.curve, began, ended)))
            book = self.metered.books[use.device]
            down, up = energy.gains(book)
            limits = energy.bounds(use, start, end)
            if limits is None and book["estimated"] and up > 1:
                limits = total, total
            devices.append(
                {
                    "device": use.device,
                    "total_j": total,
                    "self_j": self_j,
                    "low_j": None if limits is None else down * limits[0],
                    "high_j": None if limits is None else up * min(limits[1], book["measured_j"]),
                    **_self_range(use, self_j, limits, (down, up), began, ended),
                    "share": total / book["measured_j"] if book["measured_j"] else None,
                }
            )
        counted = self.metered.counted(location)
        where = {"lane": location, "row": row, "start": start, "end": end, "path": [int(f) for f in spans.frame]}
        return {**where, "devices": devices, "counted": counted, "calls": lane.calls(frame)}


def _self_range(
    use: energy.Use,
    self_j: float,
    limits: tuple[float, float] | None,
    gains: tuple[float, float],
    began: Any,
    ended: Any,
) -> dict[str, float]:
    """The least and the most of a span's self: its own range without what its children can have used."""
    if limits is None or len(began) > MOST_CHILDREN:
        return {}
    low, high = self_j, self_j
    if limits[0] != limits[1]:
        inner = [energy.bounds(use, int(a), int(b)) or (0.0, 0.0) for a, b in zip(began, ended, strict=True)]
        low = limits[0] - sum(most for _, most in inner)
        high = limits[1] - sum(least for least, _ in inner)
    return {"self_low_j": gains[0] * max(0.0, min(low, self_j)), "self_high_j": gains[1] * max(high, self_j)}


def _resampled(edges: Any, borders: Any, amounts: Any) -> Any:
    """Amounts between borders as amounts between edges: each spread evenly, sums kept."""
    return np.diff(np.interp(edges, borders, np.concatenate([[0.0], np.cumsum(amounts)])))


def _rising(amounts: Any) -> Any:
    """Amounts without those below 0, which spreading leaves at the ends of idle time; their sum is kept."""
    running = np.cumsum(amounts)
    return np.diff(np.minimum(np.maximum.accumulate(np.maximum(running, 0.0)), max(0.0, running[-1])), prepend=0.0)


def _used(curve: Curve, start: Any, end: Any) -> Any:
    if not len(curve.times):
        return 0.0 * np.asarray(start)
    return np.interp(end, curve.times, curve.values) - np.interp(start, curve.times, curve.values)


def power(curve: Curve, edges: Any, per_s: float) -> Any:
    """Watts between edges: an array of [mean, least, greatest] per bin, float32."""
    out = np.full((len(edges) - 1, 3), np.nan, np.float32)
    if len(curve.times) < 2:
        return out
    times, values = curve.times, curve.values
    slopes = np.diff(values) / np.diff(times) * per_s
    first, last = max(int(edges[0]), int(times[0])), min(int(edges[-1]), int(times[-1]))
    begin, end = np.clip(edges[:-1], first, None), np.clip(edges[1:], None, last)
    inside = np.flatnonzero(end > begin)
    if not len(inside):
        return out
    begin, end = begin[inside], end[inside]
    out[inside, 0] = (np.interp(end, times, values) - np.interp(begin, times, values)) / (end - begin) * per_s
    low = np.searchsorted(times, begin, "right") - 1
    high = np.searchsorted(times, end, "left")
    # reduceat takes [low, high) pairs; the odd results, between the pairs, are thrown away
    pairs = np.column_stack([low, np.minimum(high, len(slopes))]).ravel()
    padded = np.append(slopes, slopes[-1])
    out[inside, 1] = np.minimum.reduceat(padded, pairs)[::2]
    out[inside, 2] = np.maximum.reduceat(padded, pairs)[::2]
    return out


def pack(header: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> bytes:
    """A JSON header and arrays in one answer: 4 bytes of length, the header padded to 8, then the arrays."""
    blobs, entries, at = [], [], 0
    for part in parts:
        blob = part["data"].tobytes()
        entries.append({**part, "data": at, "size": len(part["data"])})
        blob += bytes(-len(blob) % 8)
        blobs.append(blob)
        at += len(blob)
    text = json.dumps({**header, "parts": entries}).encode()
    text += b" " * (-(len(text) + 4) % 8)
    return len(text).to_bytes(4, "little") + text + b"".join(blobs)
