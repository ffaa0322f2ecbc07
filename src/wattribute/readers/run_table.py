"""Tables in which each row is one whole run (codecarbon, Eco2AI) → recordings.

A reader turns lines into rows (:class:`TableRun`); here they become recordings: ``together`` puts all on one timeline,
each run a span, so that ``read`` gives one Recording as for any file; ``alone`` makes a recording of each, for an
ensemble or an experiment. What the file says of a run as a whole (energy, grams, where) stands in the
metadata under ``totals``, in joules and grams.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FormatError
from ..model import (
    Clock,
    Device,
    Frames,
    Link,
    Locations,
    Nodes,
    Problem,
    Processes,
    Recording,
    Signal,
    Spans,
    SpanTable,
)
from ..model.select import select_metrics
from ..plugins import Selection
from ..units import J_PER_KWH
from .files import Text, start
from .times import parse as parse_time

_HEAD_BYTES = 1 << 16
_NAMED_LINES = 5  # of those left out


@dataclass(frozen=True)
class RunEnergy:
    """Energy of one device in a run, and whether a model estimated it."""

    device: str
    kind: str
    energy_kwh: float
    estimated: bool
    power_w: float | None = None  # as the file says it; None: the mean


@dataclass(frozen=True)
class TableRun:
    """One run as its row tells it; times are ns since 1970, in the machine's own zone when the file names none."""

    name: str
    start_ns: int
    duration_s: float
    energy_kwh: float
    co2e_g: float | None
    place: str
    devices: tuple[RunEnergy, ...]
    labels: Mapping[str, str] = field(default_factory=dict)
    about: Mapping[str, str] = field(default_factory=dict)

    @property
    def end_ns(self) -> int:
        return self.start_ns + max(1, round(self.duration_s * 1e9))

    def totals(self) -> dict[str, Any]:
        per_kwh = self.co2e_g / self.energy_kwh if self.co2e_g is not None and self.energy_kwh > 0 else None
        return {
            "duration_s": self.duration_s,
            "energy_j": self.energy_kwh * J_PER_KWH,
            "co2e_g": self.co2e_g,
            "g_per_kwh": per_kwh,
            "place": self.place,
            "estimated": any(d.estimated for d in self.devices if d.energy_kwh > 0),
            "device_j": {d.device: d.energy_kwh * J_PER_KWH for d in self.devices if d.energy_kwh > 0},
            "device_w": {d.device: power for d in self.devices if (power := self._power_w(d)) is not None},
        }

    def _power_w(self, device: RunEnergy) -> float | None:
        if device.energy_kwh <= 0 or device.power_w is not None:
            return device.power_w if device.energy_kwh > 0 else None
        return device.energy_kwh * J_PER_KWH / self.duration_s if self.duration_s > 0 else None


# ------------------------------------------------------------------------------------------------------------- reading


def header(path: Path) -> list[str]:
    """The names of a CSV file's columns; none of what is no readable text."""
    try:
        return next(csv.reader(start(path, _HEAD_BYTES).splitlines()[:1]), [])
    except csv.Error:
        return []


def rows(path: Path, parse: Callable[[Mapping[str, str]], TableRun]) -> tuple[list[TableRun], list[Problem]]:
    """The runs of a file in its order; a line that ``parse`` refuses (ValueError) is left out and reported."""
    runs, bad, text = [], [], Text(path)
    for number, cells in _lines(text):
        try:
            runs.append(parse(cells))
        except ValueError as error:
            bad.append(f"line {number} ({error})")
    problems = text.problems
    if bad:
        more = f" and {len(bad) - _NAMED_LINES} more" if len(bad) > _NAMED_LINES else ""
        problems.append(Problem("left-out", f"{path}: left out: {', '.join(bad[:_NAMED_LINES])}{more}"))
    if not runs:
        raise FormatError(path, "holds no run" + (f": {bad[0]}" if bad else ""))
    return runs, problems


def _lines(text: Text) -> Iterator[tuple[int, dict[str, str]]]:
    reader = csv.DictReader((f"{line}\n" for line in text.lines()), restval="")
    try:
        for line in reader:
            line.pop(None, None)  # cells beyond the header
            yield reader.line_num, line
    except csv.Error as error:
        raise FormatError(text.path, f"line {reader.line_num + 1} is not CSV ({error})") from error


def number(cells: Mapping[str, str], name: str, default: float | None = None) -> float:
    """A cell that is a number and neither negative nor infinite; raises ValueError with the column's name."""
    text = cells.get(name, "").strip()
    if not text and default is not None:
        return default
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{name} is {text[:40]!r}") from None
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"{name} is {text[:40]}")
    return value


def moment_ns(cells: Mapping[str, str], name: str) -> int:
    """A cell that is a date and time; without a zone it is taken for this machine's."""
    text = cells.get(name, "").strip()
    parsed = parse_time(text)
    if parsed is None or abs(parsed[0]) >= 2**62:
        raise ValueError(f"{name} is {text[:40]!r}, not a date of our time")
    return parsed[0]


# ---------------------------------------------------------------------------------------------------------- recordings


def alone(path: Path, row: TableRun, format: str, selection: Selection) -> Recording:
    """The recording of one run, with the intensity by which its grams were computed."""
    totals = row.totals()
    about = {"labels": dict(row.labels), **row.about, "totals": totals, "intensity": totals["g_per_kwh"]}
    return _recording(path, [row], format, about, (), selection)


def together(
    path: Path, rows: Sequence[TableRun], format: str, problems: Sequence[Problem], selection: Selection
) -> Recording:
    """All runs on one timeline."""
    if len(rows) == 1:
        return replace(alone(path, rows[0], format, selection), noticed=tuple(problems))
    return _recording(path, rows, format, {"runs": len(rows)}, problems, selection)


def _recording(
    path: Path,
    rows: Sequence[TableRun],
    format: str,
    about: Mapping[str, Any],
    problems: Sequence[Problem],
    selection: Selection,
) -> Recording:
    rows = sorted(rows, key=lambda row: row.start_ns)
    first, last = rows[0].start_ns, max(row.end_ns for row in rows)
    names = list(dict.fromkeys(row.name for row in rows))
    lanes = _lanes(rows)
    devices = list(dict.fromkeys((d.device, d.kind) for row in rows for d in row.devices if d.energy_kwh > 0))
    links = [Link("", name, tuple(range(len(lanes))), "each row is a run on this machine") for name, _ in devices]
    recording = Recording(
        clock=Clock(length_ticks=last - first, epoch_ns=first),
        frames=Frames.of([(name, "command", "function") for name in names]),
        nodes=Nodes.of([(0, "", "node")]),
        processes=Processes.of([(0, path.stem, "process", 0)]),
        locations=Locations.of([(at, "runs" if at == 0 else f"runs {at + 1}", "cpu", 0) for at in range(len(lanes))]),
        spans=SpanTable({at: _spans(lane, names, first) for at, lane in enumerate(lanes)}),
        signals=tuple(_signal(name, rows, first, format) for name, _ in devices),
        devices=tuple(Device(name, kind, properties={"source": format}) for name, kind in devices),
        topology=tuple(links),
        noticed=tuple(problems),
        metadata={"name": path.name, "source": str(path), "format": format, **about},
    )
    s = selection
    return select_metrics(recording, s.metric)


def _lanes(rows: Sequence[TableRun]) -> list[list[TableRun]]:
    """Runs that overlap apart: a location runs one span at a time."""
    lanes: list[list[TableRun]] = []
    for row in rows:
        free = next((lane for lane in lanes if lane[-1].end_ns <= row.start_ns), None)
        if free is None:
            lanes.append([row])
        else:
            free.append(row)
    return lanes


def _ids(lane: Sequence[TableRun]) -> set[int]:
    return {id(row) for row in lane}


def _spans(lane: Sequence[TableRun], names: Sequence[str], first: int) -> Spans:
    rank = {name: at for at, name in enumerate(names)}
    count = len(lane)
    return Spans(
        np.array([row.start_ns - first for row in lane], np.int64),
        np.array([row.end_ns - first for row in lane], np.int64),
        np.array([rank[row.name] for row in lane], np.int32),
        np.full(count, -1, np.int64),
        np.zeros(count, np.int32),
        np.zeros(count, np.bool_),
    )


def _signal(device: str, rows: Sequence[TableRun], first: int, format: str) -> Signal:
    """The energy of a device between the starts and ends of runs, in kWh as the file has it: even during each run."""
    own = [(row, d) for row in rows for d in row.devices if d.device == device]
    lanes = [[(row, d) for row, d in own if id(row) in at] for at in map(_ids, _lanes([row for row, _ in own]))]
    times = np.unique([at - first for row, _ in own for at in (row.start_ns, row.end_ns)]).astype(np.int64)
    so_far = np.zeros(len(times))
    for lane in lanes:  # those of a lane follow one another, so each lane's curve rises
        sums = np.cumsum([0.0, *(d.energy_kwh for _, d in lane)])
        edges = [at - first for row, _ in lane for at in (row.start_ns, row.end_ns)]
        so_far += np.interp(times, edges, np.repeat(sums, 2)[1:-1])
    rises = np.maximum(np.diff(so_far, prepend=0.0), 0.0)
    return Signal(
        f"{format} {device} energy", "delta", "J", times, rises, scale=Fraction(J_PER_KWH), device=device,
        estimated=any(d.estimated for _, d in own), declared={"unit": "kWh", "mode": "one sum per run"},
    )  # fmt: skip
