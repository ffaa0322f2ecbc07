"""The folder of tiles of one recording: built once in one pass over its lanes, then opened in milliseconds.

``build`` writes lanes, curves and facts into a fresh folder and renames it into place; :class:`Tiles` answers questions
about a stretch of time (bins or exact spans of lanes, power of devices, one span, one bin). Whose joules they are was
decided by attribution, before (``energy``).
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import FormatError, OutputError, WattributeError
from ...model import Curve, Recording
from . import energy
from .energy import Metered, addable
from .lanes import Files, Grid, Lane, Writer, exact

VERSION = 5  # of the folder's layout: another one is made anew
EXACT_SPANS = 5000  # per view: up to so many spans are drawn one by one
MOST_BINS = 1024  # per lane and view: 64 lanes stay below 2 MB
_MANIFEST, _TABLE = "tiles.json", "table.json"  # apart, because it is large and not needed for the first picture


def build(
    recording: Recording,
    metered: Metered,
    facts: Mapping[str, Any],
    table: Mapping[str, Any],
    folder: Path,
    fingerprint: str,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Write the tiles of a recording to ``folder``; a half-written folder is never seen under that name."""
    fresh = folder.with_name(f"{folder.name}.{os.getpid()}.part")
    try:
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        length = _length(recording, metered)
        entries, longest = _write_lanes(recording, metered, fresh, length, progress)
        if longest > length:  # the clock's length was wrong, as in traces that were cut
            length = longest
            entries, _ = _write_lanes(recording, metered, fresh, length, progress)
        rest = energy.save(metered, fresh / "curves.npz")
        manifest = {
            "version": VERSION,
            "fingerprint": fingerprint,
            "length_ticks": length,
            "lanes": entries,
            "facts": dict(facts),
            **rest,
        }
        (fresh / _TABLE).write_text(json.dumps(table), encoding="utf-8")
        (fresh / _MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        fresh.rename(folder)
    except WattributeError:  # of reading: some are OSErrors too
        raise
    except OSError as error:
        raise OutputError(
            f"cannot write tiles to {folder}: {error.strerror}; XDG_CACHE_HOME may name another disk"
        ) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _length(recording: Recording, metered: Metered) -> int:
    ends = [recording.clock.length_ticks, *(int(curve.times[-1]) for curve in metered.burned if len(curve.times))]
    return max(1, *ends)


def _write_lanes(
    recording: Recording, metered: Metered, folder: Path, length: int, progress: Callable[[int, int], None] | None
) -> tuple[list[dict[str, Any]], int]:
    frames = len(recording.frames)
    writer = Writer(folder, Grid.over(length), frames)
    entries, longest = [], 0
    locations = recording.spans.locations()
    try:
        for done, location in enumerate(locations):
            spans = recording.spans.spans(location)
            if len(spans):
                entries.append(writer.add(location, spans, *metered.of(location, frames)))
                longest = max(longest, int(spans.end.max()))
            if progress:
                progress(done + 1, len(locations))
    finally:
        writer.close()
    return entries, longest


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
            self.metered = energy.load(manifest, folder / "curves.npz")
            self._files = Files(folder)
        except (OSError, ValueError, KeyError) as error:
            raise FormatError(folder, f"these tiles are damaged; delete the folder ({error})") from error
        self.entries: list[dict[str, Any]] = manifest["lanes"]
        found = {entry["location"]: entry for entry in self.entries}
        self.facts["lanes"] = [
            {**lane, "spans": found[lane["location"]]["spans"], "deepest": found[lane["location"]]["deepest"]}
            for lane in self.facts["lanes"]
            if lane["location"] in found  # a location that holds no spans gets no lane
        ]
        frames = len(self.facts["frames"])
        self.lanes = {
            entry["location"]: Lane(self._files, entry, frames, *self.metered.of(entry["location"], frames))
            for entry in self.entries
        }

    def table(self) -> dict[str, Any]:
        """The books and frames of the whole recording, as they were when the tiles were made."""
        found: dict[str, Any] = json.loads(self._table.read_text(encoding="utf-8"))
        return found

    def close(self) -> None:
        self._files.close()

    def view(self, locations: Sequence[int], a: int, b: int, width: int) -> bytes:
        """What these lanes look like from a to b, on so many pixels.

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
        most = max(1, min(MOST_BINS, width))
        return pack({"from": a, "to": b}, [_part(lane, a, b, most, lane.location in few) for lane in lanes])

    def power(self, devices: Sequence[int], a: int, b: int, width: int) -> bytes:
        """Mean, least and greatest power of devices on so many pixels; NaN where nothing was read."""
        bins = max(1, min(MOST_BINS, width, b - a))
        edges = np.linspace(a, b, bins + 1).round().astype(np.int64)
        per_s = self.facts["clock"]["ticks_per_s"]
        curves = self.metered.burned
        parts = [{"device": i, "mode": "power", "data": power(curves[i], edges, per_s)} for i in devices]
        return pack({"from": a, "to": b, "bins": bins}, parts)

    def whole_power(self, bins: int) -> list[float | None]:
        """Mean power over the whole recording, of the devices that may be added."""
        edges = np.linspace(0, self.length, bins + 1).round().astype(np.int64)
        per_s = self.facts["clock"]["ticks_per_s"]
        added = addable(self.facts["devices"])
        curves = zip(self.metered.burned, self.facts["devices"], strict=True)
        parts = [power(curve, edges, per_s)[:, 0] for curve, book in curves if book in added]
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
        ticks, calls, joules = lane.sums(a, b)
        order = np.lexsort((np.arange(len(ticks)), -ticks))[:top]
        metered = lane.energies is not None
        frames = [
            {
                "frame": int(i),
                "ticks": int(ticks[i]),
                "calls": int(calls[i]),
                "self_j": float(joules[i]) if metered and lane.keep[i] else None,
            }
            for i in order
            if ticks[i] or calls[i]
        ]
        whole = {"ticks": int(ticks.sum()), "calls": int(calls.sum()), "frames": int(((ticks > 0) | (calls > 0)).sum())}
        return {"top": frames, "self_j": float(joules.sum()) if metered else None, **whole}

    def books(self, a: int, b: int) -> list[dict[str, Any]]:
        """What each device burned from a to b, for a recording in which nobody used any."""
        burned = [float(_used(curve, a, b)) for curve in self.metered.burned]
        return [
            {**device, "measured_j": joules, "attributed_j": 0.0, "idle_j": joules}
            for device, joules in zip(self.facts["devices"], burned, strict=True)
        ]

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
            limits = energy.bounds(use, start, end)
            measured = self.metered.books[use.device]["measured_j"]
            devices.append(
                {
                    "device": use.device,
                    "total_j": total,
                    "self_j": self_j,
                    "low_j": None if limits is None else limits[0],
                    "high_j": None if limits is None else min(limits[1], measured),
                    "share": total / measured if measured else None,
                }
            )
        counted = self.metered.counted(location)
        where = {"lane": location, "row": row, "start": start, "end": end, "path": [int(f) for f in spans.frame]}
        return {**where, "devices": devices, "counted": counted}


def _part(lane: Lane, a: int, b: int, most: int, as_spans: bool) -> dict[str, Any]:
    if as_spans:
        return {"lane": lane.location, "mode": "spans", "data": exact(lane, a, b)}
    at, wide, bins = lane.bins(a, b, most)
    return {"lane": lane.location, "mode": "bins", "at": at, "width": wide, "data": bins}


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
