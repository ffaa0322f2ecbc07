"""What each lane of the page received: the curves of attribution, per lane and device, ready to be kept with the tiles.

A :class:`PageEnergy` stands between attribution and the tiles: books and E(t) per device, S(t) with bounds per lane
and device, and which frames receive energy. ``save`` and ``load`` keep it in one ``.npz`` beside the bins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...engines import user_curves
from ...engines.middle import curve_bounds, location_masks, metered_devices
from ...errors import NoDataError
from ...model import Attribution, Curve, Intervals, Question, Recording

Energies = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]


@dataclass(frozen=True)
class Use:
    """A lane's use of a device: what it received up to each moment, and which frames it counts."""

    device: int  # a row of PageEnergy.books
    curve: Curve
    keep: npt.NDArray[np.bool_]  # per frame


@dataclass(frozen=True)
class PageEnergy:
    """Books and curves of a recording under one choice of options."""

    books: Sequence[
        Mapping[str, Any]
    ] = ()  # per device: name, host, kind, signal, of, measured_j, attributed_j, idle_j
    burned: Sequence[Curve] = ()  # E(t) per device
    uses: Mapping[int, Sequence[Use]] = field(default_factory=dict)  # location → devices
    busy: dict[int, Intervals] = field(default_factory=dict)  # device → when any of several users was; filled by build
    drawn: Sequence[Curve] = ()  # E(t) per device for pictures of power, without the jitter of late readings
    _sums: dict[Any, Any] = field(default_factory=dict, repr=False)  # lanes often share their curves

    def of(self, location: int, frames: int) -> tuple[npt.NDArray[np.bool_], Energies | None]:
        """Which frames of a lane receive energy, and the lane's S(t): the sum over its devices.

        A device that contains others of the same host (a node's meter) is left out where those are metered too:
        nested meters are never added.
        """
        uses = self.counted_uses(location)
        if not uses:
            return self._mask(
                (np.ones(frames, bool),) if ("all", frames) not in self._sums else (), ("all", frames)
            ), None
        masks = {id(use.keep): use.keep for use in uses}
        keep = self._mask(tuple(masks.values()), tuple(masks))
        same = tuple(id(use.curve.values) for use in uses)
        if same not in self._sums:
            self._sums[same] = summed(uses)
        energies: Energies = self._sums[same]
        return keep, energies

    def _mask(self, masks: Sequence[npt.NDArray[np.bool_]], name: Any) -> npt.NDArray[np.bool_]:
        """Any of these masks, once for all lanes that have the same: there may be 10⁶ frames and 20,000 lanes."""
        if name not in self._sums:
            self._sums[name] = masks[0] if len(masks) == 1 else np.any(masks, axis=0)
        mask: npt.NDArray[np.bool_] = self._sums[name]
        return mask

    def limited(self, location: int) -> list[Use]:
        """A lane's uses that count and have bounds; none where one of them has not."""
        uses = self.counted_uses(location)
        return uses if all(use.curve.edges is not None and len(use.curve.edges) > 1 for use in uses) else []

    def counted_uses(self, location: int) -> list[Use]:
        """A lane's uses whose joules make up the lane's."""
        uses = self.uses.get(location, ())
        added = addable([self.books[use.device] for use in uses])
        return [use for use in uses if self.books[use.device] in added]

    def alone(self, location: int) -> bool:
        """Whether a lane is the only user of all its devices: its gaps are then their idle time."""
        uses = self.counted_uses(location)
        return bool(uses) and all(self.users()[use.device] == 1 for use in uses)

    def apart(self) -> list[int]:
        """The devices that count and whose idle time belongs to no lane: those of several users, or of none."""
        inside = {device for location in self.uses if self.alone(location) for device in self.counted(location)}
        added = {id(book) for book in addable(self.books)}
        books = enumerate(self.books)
        return [i for i, book in books if id(book) in added and i not in inside and book["measured_j"] > 0]

    def idle(self, device: int) -> Curve:
        """What a device spent while none of its users was busy, up to each moment."""
        whole, busy = self.burned[device], self.busy.get(device)
        if busy is None or not len(busy.start):
            return whole
        times = np.unique(
            np.concatenate(
                [whole.times, np.clip(busy.start, *whole.times[[0, -1]]), np.clip(busy.end, *whole.times[[0, -1]])]
            )
        )
        rises = np.diff(np.interp(times, whole.times, whole.values))
        at = np.searchsorted(busy.start, times[:-1], "right") - 1
        rises[(at >= 0) & (times[:-1] < busy.end[at])] = 0.0
        return Curve(times, np.concatenate([[0.0], np.cumsum(rises)]), whole.pieces)

    def users(self) -> list[int]:
        """How many lanes use each device."""
        if "users" not in self._sums:
            count = [0] * len(self.books)
            for uses in self.uses.values():
                for use in uses:
                    count[use.device] += 1
            self._sums["users"] = count
        users: list[int] = self._sums["users"]
        return users

    def counted(self, location: int) -> list[int]:
        """The devices whose joules make up a lane's."""
        return [use.device for use in self.counted_uses(location)]


def summed(uses: Sequence[Use]) -> Energies:
    """S(t) of several uses of a lane together."""
    if len(uses) == 1:
        return uses[0].curve.times, uses[0].curve.values
    times = np.unique(np.concatenate([use.curve.times for use in uses]))
    values = sum(np.interp(times, use.curve.times, use.curve.values) for use in uses)
    return times, np.asarray(values, np.float64)


def addable(books: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The books that count, each device once (the first of its views)."""
    first = list({(book["host"], book["device"]): book for book in reversed(books)}.values())[::-1]
    return [book for book in first if book["counted"]]


def gains(book: Mapping[str, Any]) -> tuple[float, float]:
    """How far a sensor's gain widens a range: factors of its low and its high end."""
    measured = book["measured_j"]
    ends = (book.get("measured_low_j"), book.get("measured_high_j"))
    if measured and all(end is not None for end in ends):
        return min(1.0, ends[0] / measured), max(1.0, ends[1] / measured)
    error = book.get("gain_error") or 0.0
    return 1 - error, 1 + error


def bounds(use: Use, start: int, end: int) -> tuple[float, float] | None:
    """The least and the most a span [start, end) can have used."""
    return None if use.curve.edges is None else curve_bounds(use.curve, start, end)


def metered(recording: Recording, attribution: Attribution | None, question: Question) -> PageEnergy:
    """The curves behind an attribution; the devices' curves alone where no device was used."""
    if attribution is None:
        return _unused(recording, question)
    books, burned, drawn = [], [], []
    uses: dict[int, list[Use]] = {}
    known = {
        (book["host"], book["device"], book["signal"], book["of"]): book for book in attribution.devices.to_dicts()
    }
    for i, device in enumerate(user_curves(recording, question)):
        mask_of = location_masks(recording, device.source.of)
        whole, shown = device.energy, device.energy.drawn
        drawn.append(Curve(shown.times, shown.values, shown.pieces))
        source = device.source
        books.append(known[source.device.host, source.device.name, source.signal.name, source.of])
        burned.append(Curve(whole.times, whole.values, whole.pieces))
        for location, curve in device.split.curves.items():
            uses.setdefault(location, []).append(Use(i, curve, mask_of(location)))
    return PageEnergy(books, burned, uses, drawn=drawn)


def _unused(recording: Recording, question: Question) -> PageEnergy:
    try:
        rows = metered_devices(recording, question)
    except NoDataError:
        return PageEnergy()
    books, burned, drawn = [], [], []
    for one in rows:
        device, signal = one.device, recording.signals[one.row]
        curve = one.energy(recording)
        names = {"device": device.name, "host": device.host, "kind": device.kind, "signal": signal.name, "of": "nobody"}
        sums = {"measured_j": curve.measured, "attributed_j": 0.0, "idle_j": curve.measured, "coverage": None}
        books.append(
            {
                **names,
                **sums,
                "unit": curve.unit,
                "estimated": signal.estimated,
                "counted": one.entry.counted,
                "why": one.entry.why,
            }
        )
        burned.append(Curve(curve.times, curve.values, curve.pieces))
        drawn.append(Curve(curve.drawn.times, curve.drawn.values, curve.drawn.pieces))
    return PageEnergy(books, burned, drawn=drawn)


_FIELDS = ("times", "values", "edges", "low", "high")


def save(metered: PageEnergy, path: Path) -> dict[str, Any]:
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
        "drawn": [pack(curve) for curve in metered.drawn],
        "busy": {str(device): [put(each.start), put(each.end)] for device, each in metered.busy.items()},
        "uses": {
            str(location): [{"device": use.device, "keep": put(use.keep), **pack(use.curve)} for use in uses]
            for location, uses in metered.uses.items()
        },
    }
    np.savez(path, **arrays)
    return rest


def load(rest: Mapping[str, Any], path: Path) -> PageEnergy:
    """Load what ``save`` wrote."""
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
    busy = {int(device): Intervals(kept[start], kept[end]) for device, (start, end) in rest["busy"].items()}
    burned, drawn = ([unpack(entry) for entry in rest[name]] for name in ("burned", "drawn"))
    return PageEnergy(rest["books"], burned, uses, busy, drawn)
