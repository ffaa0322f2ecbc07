"""What each lane of the page received: the curves of attribution, per lane and device, ready to be kept with the tiles.

A :class:`Metered` is the middle between attribution and the tiles: books and E(t) per device, S(t) with bounds per lane
and device, and which frames receive energy. ``save`` and ``load`` keep it in one ``.npz`` beside the bins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...alignment.energy import energy
from ...attribution.options import checked
from ...attribution.select import chosen, keep
from ...engines import user_curves
from ...errors import NoDataError
from ...model import Attribution, Curve, Intervals, Recording
from ...sensors import outer

Energies = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]


@dataclass(frozen=True)
class Use:
    """A lane's use of a device: what it received up to each moment, and which frames it counts."""

    device: int  # a row of Metered.books
    curve: Curve
    keep: npt.NDArray[np.bool_]  # per frame


@dataclass(frozen=True)
class Metered:
    """Books and curves of a recording under one choice of options."""

    books: Sequence[
        Mapping[str, Any]
    ] = ()  # per device: name, host, kind, signal, of, measured_j, attributed_j, idle_j
    burned: Sequence[Curve] = ()  # E(t) per device
    uses: Mapping[int, Sequence[Use]] = field(default_factory=dict)  # location → devices
    _sums: dict[tuple[int, ...], Energies] = field(default_factory=dict, repr=False)  # lanes often share their curves

    def of(self, location: int, frames: int) -> tuple[npt.NDArray[np.bool_], Energies | None]:
        """Which frames of a lane receive energy, and the lane's S(t): the sum over its devices.

        A device that contains others of the same host (a node's meter) is left out where those are metered too:
        nested meters are never added.
        """
        uses = self._counted(location)
        if not uses:
            return np.ones(frames, bool), None
        keep = np.any([use.keep for use in uses], axis=0)
        if len(uses) == 1:
            return keep, (uses[0].curve.times, uses[0].curve.values)
        same = tuple(id(use.curve.values) for use in uses)
        if same not in self._sums:
            times = np.unique(np.concatenate([use.curve.times for use in uses]))
            values = sum(np.interp(times, use.curve.times, use.curve.values) for use in uses)
            self._sums[same] = times, np.asarray(values, np.float64)
        return keep, self._sums[same]

    def _counted(self, location: int) -> list[Use]:
        uses = self.uses.get(location, ())
        added = addable([self.books[use.device] for use in uses])
        return [use for use in uses if self.books[use.device] in added]

    def counted(self, location: int) -> list[int]:
        """The devices whose joules make up a lane's."""
        return [use.device for use in self._counted(location)]


def addable(books: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The books that may be added up: no device twice, and none that contains or mirrors others of its host."""
    first = list({(book["host"], book["device"]): book for book in reversed(books)}.values())[::-1]
    again = outer([(book["host"], book["device"], book["kind"]) for book in first])
    return [book for book, left_out in zip(first, again, strict=True) if not (left_out or book["mirrors"])]


def bounds(use: Use, start: int, end: int) -> tuple[float, float] | None:
    """The least and the most a span [start, end) can have used: readings it covers, and readings it touches."""
    curve = use.curve
    if curve.edges is None or curve.low is None or curve.high is None:
        return None
    left, right = curve.edges[:-1] - curve.latency_ticks, curve.edges[1:]
    touched = (left < end) & (right > start) if end > start else np.zeros(len(left), bool)
    covered = touched & (start <= left) & (right <= end)
    return float(curve.low[covered].sum()), float(curve.high[touched].sum())


def metered(recording: Recording, attribution: Attribution | None, options: Mapping[str, Any]) -> Metered:
    """The curves behind an attribution; where nobody used what was metered, the devices' curves alone."""
    if attribution is None:
        return _unused(recording, options)
    books, burned = [], []
    uses: dict[int, list[Use]] = {}
    for i, found in enumerate(user_curves(recording, **options)):
        whole = found.energy
        books.append(next(book for book in attribution.devices.to_dicts() if _same(book, found.source)))
        burned.append(Curve(whole.times, whole.values, whole.pieces))
        for location, curve in found.split.curves.items():
            kind = recording.locations.kind[location]
            uses.setdefault(location, []).append(Use(i, curve, keep(recording, found.source.of, kind)))
    return Metered(books, burned, uses)


def _unused(recording: Recording, options: Mapping[str, Any]) -> Metered:
    given = {name: value for name, value in options.items() if name in ("metric", "integrate")}
    try:
        rows, _ = chosen(recording, checked(**given))
    except NoDataError:
        return Metered()
    books, burned = [], []
    for row, device in rows:
        signal = recording.signals[row]
        curve = energy(signal, recording.clock)
        names = {"device": device.name, "host": device.host, "kind": device.kind, "signal": signal.name, "of": "nobody"}
        sums = {"measured_j": curve.measured, "attributed_j": 0.0, "idle_j": curve.measured, "coverage": None}
        books.append({**names, **sums, "unit": curve.unit, "estimated": signal.estimated, "mirrors": ""})
        burned.append(Curve(curve.times, curve.values, curve.pieces))
    return Metered(books, burned)


def _same(book: Mapping[str, Any], source: Any) -> bool:
    names = (source.device.host, source.device.name, source.signal.name, source.of)
    return (book["host"], book["device"], book["signal"], book["of"]) == names


_FIELDS = ("times", "values", "edges", "low", "high")


def save(metered: Metered, path: Path) -> dict[str, Any]:
    """Write the arrays to ``path`` (.npz), each array once; returns the rest, for the manifest."""
    arrays: dict[str, Any] = {}
    seen: dict[int, str] = {}

    def put(array: Any) -> str | None:
        if array is None:
            return None
        if id(array) not in seen:
            seen[id(array)] = f"a{len(seen)}"
            arrays[seen[id(array)]] = array
        return seen[id(array)]

    def pack(curve: Curve) -> dict[str, Any]:
        names = {name: put(getattr(curve, name)) for name in _FIELDS}
        return {**names, "from": put(curve.pieces.start), "to": put(curve.pieces.end), "latency": curve.latency_ticks}

    rest = {
        "books": [dict(book) for book in metered.books],
        "burned": [pack(curve) for curve in metered.burned],
        "uses": {
            str(location): [{"device": use.device, "keep": put(use.keep), **pack(use.curve)} for use in uses]
            for location, uses in metered.uses.items()
        },
    }
    np.savez(path, allow_pickle=False, **arrays)
    return rest


def load(rest: Mapping[str, Any], path: Path) -> Metered:
    """What ``save`` wrote."""
    with np.load(path, allow_pickle=False) as arrays:
        kept = {name: arrays[name] for name in arrays.files}

    def unpack(entry: Mapping[str, Any]) -> Curve:
        columns: dict[str, Any] = {name: None if entry[name] is None else kept[entry[name]] for name in _FIELDS}
        pieces = Intervals(kept[entry["from"]], kept[entry["to"]])
        return Curve(**columns, pieces=pieces, latency_ticks=entry["latency"])

    uses = {
        int(location): [Use(entry["device"], unpack(entry), kept[entry["keep"]]) for entry in entries]
        for location, entries in rest["uses"].items()
    }
    return Metered(rest["books"], [unpack(entry) for entry in rest["burned"]], uses)
