"""A recording → columns of points: the metrics of each device, with labels and times.

Every device has its energy as a counter of joules that starts at 0 with the run, and its power as a gauge: the power
sensor's readings, else the slope of its energy. What else its sensors say (temperature, utilisation …) comes as gauges
with the sensor's name. One energy source per device; a device whose energy another one includes carries
``apart="true"``, so that sums over ``apart=""`` count nothing twice, and estimates carry ``estimated="true"``. The
bill of a run is a counter of its own, with a ``part`` each for the command, others and static.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...engines.middle import Energy, MeteredDevice, bill_curves, device_division, metered_devices, tidy
from ...errors import NoDataError
from ...model import Device, Question, Recording, Signal
from ...model.constants import COMMAND_SHARE, COMMAND_SLICES, OTHERS, POWER_SPAN_S
from ...model.ledger import UNKNOWN_PLACE
from ...sensors import contains

SLOPE_NS = int(1e9 * POWER_SPAN_S)
_LONGEST = 120  # characters of a label

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Metric:
    """A metric: ``wattribute_<name>_<unit>``, with ``_total`` when it counts."""

    name: str
    unit: str
    kind: str  # "counter" or "gauge"
    symbol: str  # the unit as UCUM writes it, for OTLP
    help: str

    @property
    def family(self) -> str:
        return f"wattribute_{self.name}_{self.unit}"

    @property
    def field(self) -> str:
        """Its name without the prefix, as a field of Influx."""
        return f"{self.name}_{self.unit}{'_total' if self.kind == 'counter' else ''}"


ENERGY = Metric("energy", "joules", "counter", "J", "Energy used since the run began.")
POWER = Metric("power", "watts", "gauge", "W", "Power now: the sensor's reading, or the slope of its energy counter.")
_OTHERS = {
    "°C": (Metric("temperature", "celsius", "gauge", "Cel", "Temperature."), 1.0),
    "%": (Metric("utilisation", "ratio", "gauge", "1", "Share of the time or capacity in use."), 0.01),
    "B": (Metric("memory", "bytes", "gauge", "By", "Memory in use."), 1.0),
    "Hz": (Metric("clock", "hertz", "gauge", "Hz", "Clock frequency."), 1.0),
}
BILL = Metric("bill", "joules", "counter", "J", "Energy of the run by whose it is: part is command, others or static.")
PROCESS_POWER = Metric(
    "process_power",
    "watts",
    "gauge",
    "W",
    "Power of CPUs and memory above rest, by CPU time, of processes of one name.",
)
STATIC_POWER = Metric(
    "static_power", "watts", "gauge", "W", "Power at rest of the devices that count, where it is known."
)
METRICS = (ENERGY, POWER, BILL, PROCESS_POWER, STATIC_POWER, *(metric for metric, _ in _OTHERS.values()))
_PART_LABELS = {OTHERS: "others"}


@dataclass(frozen=True)
class Series:
    """Points of one metric under one set of labels, in the order of time."""

    metric: Metric
    labels: Labels  # sorted by name; no empty values
    times_ns: Ints  # since the epoch
    values: Floats
    start_ns: int  # when the counter was 0
    inside: str = ""  # the device that includes this one; "": its host

    def __len__(self) -> int:
        return len(self.times_ns)

    def thinned(self, step_ns: int) -> Series:
        """The last point of every ``step_ns``: for protocols whose times are coarser than ours."""
        times_ns, values = last_of_each(self.times_ns, self.values, step_ns)
        return self if len(times_ns) == len(self) else replace(self, times_ns=times_ns, values=values)


MONITOR = "wattribute monitor"  # the source of what was not a run


@dataclass(frozen=True)
class SeriesRule:
    """How one signal becomes one series."""

    row: int  # of Recording.signals
    metric: Metric
    labels: Labels
    rule: str  # "total": its energy so far; "slope": the power that means; "value": the reading itself
    device: MeteredDevice | None = None  # whose energy or power it is
    factor: float = 1.0  # of a value, from the signal's unit to the metric's
    inside: str = ""  # see Series


def tracks(recording: Recording, epoch_ns: int) -> list[SeriesRule]:
    """The rules for the series of a recording that began at ``epoch_ns``."""
    common = {"run": run_name(recording.metadata, epoch_ns), "zone": str(recording.metadata.get("zone") or "")}
    rules: list[SeriesRule] = []
    try:
        metered = metered_devices(recording)
    except NoDataError:  # temperatures alone are worth sending
        metered = []
    rests = [one for one in metered if one.parts]  # no series of their own: the node's meter counts, its parts do not
    wholes, parts = {one.row for one in rests}, {row for one in rests for row in one.parts}
    for one in metered:
        if one.parts:
            continue
        row, device, signal = one.row, one.device, recording.signals[one.row]
        counted = row in wholes or (one.entry.counted and row not in parts)
        apart = "" if counted else "true"
        labels = _labels(device, common | {"apart": apart, "estimated": "true" if signal.estimated else ""})
        inside = _around(device, [other.device for other in metered])
        rules.append(SeriesRule(row, ENERGY, labels, "total", one, inside=inside))
        power = _power_row(recording, signal)
        if power is None:
            rules.append(SeriesRule(row, POWER, labels, "slope", one, inside=inside))
        else:
            scale = float(recording.signals[power].scale)
            rules.append(SeriesRule(power, POWER, labels, "value", one, scale, inside))
    rules += _others(recording, common)
    unique: dict[tuple[str, Labels], SeriesRule] = {}
    for track in rules:  # two sensors of one name on one device have the same labels: the first one speaks
        unique.setdefault((track.metric.name, track.labels), track)
    return list(unique.values())


def _around(device: Device, others: Sequence[Device]) -> str:
    """The part of the host that includes this one (a core's package): of several that of the same number."""

    def numbers(name: str) -> list[str]:
        return re.findall(r"\d+", name)[:1]

    here = (one for one in others if one.host == device.host and one.kind not in ("node", *UNKNOWN_PLACE))
    outer = [one for one in here if contains(one.kind, device.kind)]
    outer.sort(key=lambda one: numbers(one.name) != numbers(device.name))
    return clean(outer[0].name) if outer else ""


def _power_row(recording: Recording, source: Signal) -> int | None:
    """The device's power sensor, of the same trustworthiness as its energy; the first one is the most direct."""
    for row, signal in enumerate(recording.signals):
        same = (signal.host, signal.device, signal.estimated) == (source.host, source.device, source.estimated)
        if same and signal.unit == "W" and signal.kind == "gauge" and len(signal):
            return row
    return None


def _others(recording: Recording, common: Mapping[str, str]) -> Iterator[SeriesRule]:
    devices = {(device.host, device.name): device for device in recording.devices}
    for row, signal in enumerate(recording.signals):
        device = devices.get((signal.host, signal.device))
        if signal.name in (COMMAND_SHARE, COMMAND_SLICES):
            continue  # what was made of them is the bill
        if device is not None and signal.kind == "gauge" and signal.unit in _OTHERS and len(signal):
            metric, factor = _OTHERS[signal.unit]
            labels = _labels(device, {**common, "sensor": signal.name})
            yield SeriesRule(row, metric, labels, "value", factor=factor * float(signal.scale))


def _labels(device: Device, more: Mapping[str, str]) -> Labels:
    labels = {"device": device.name, "kind": device.kind, "host": device.host, **more}
    cleaned = {name: clean(value) for name, value in labels.items()}
    return tuple(sorted((name, value) for name, value in cleaned.items() if value))


def clean(text: str) -> str:
    """A label's value that every protocol can carry: no control characters, no backslash, not endless."""
    text = re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]", " ", text.replace("\\", "/"))
    return " ".join(text.split())[:_LONGEST].strip()


def run_name(metadata: Mapping[str, Any], epoch_ns: int) -> str:
    """The program and when it began, as in "train.py 2026-01-31T12:00:00.250Z"; its arguments stay private.

    A monitor is no run: it is begun again after every reboot, and its series go on.
    """
    if metadata.get("source") == MONITOR:
        return "monitor"
    command = [str(word) for word in metadata.get("command") or ()]
    program = Path(command[0]).name if command else str(metadata.get("name") or "recording")
    if program.startswith("python") and len(command) > 1 and not command[1].startswith("-"):
        program = Path(command[1]).name
    began_ms = int((metadata.get("clock") or {}).get("epoch_ns", epoch_ns)) // 1_000_000
    began = datetime.fromtimestamp(began_ms // 1000, timezone.utc)
    return f"{program[:60]} {began:%Y-%m-%dT%H:%M:%S}.{began_ms % 1000:03d}Z"


def series(recording: Recording, epoch_ns: int) -> Iterator[Series]:
    """All series of a finished recording whose clock began at ``epoch_ns``."""
    for track in tracks(recording, epoch_ns):
        signal = recording.signals[track.row]
        if track.rule == "value" or track.device is None:
            times, raw = tidy(signal)
            values = raw.astype(np.float64) * track.factor
        else:
            curve = _as_read(track.device.energy(recording))
            times, values = curve.times, curve.values
        times_ns = recording.clock.ns(times) + epoch_ns
        if track.rule == "slope":
            times_ns, values = slopes(*last_of_each(times_ns, values))
        if len(times_ns):
            yield Series(track.metric, track.labels, times_ns, values, epoch_ns, track.inside)


def _as_read(curve: Energy) -> Energy:
    """The curve of what was read, without what its counter had not counted yet."""
    return curve if curve.read is None else replace(curve, values=curve.read)


def devices_with_bill(recording: Recording) -> list[MeteredDevice]:
    """The devices that have a bill: those that count, rests of nodes among them."""
    try:
        return [one for one in metered_devices(recording) if one.entry.counted]
    except NoDataError:
        return []


def bill_labels(recording: Recording, device: Device, part: str, estimated: bool, epoch_ns: int) -> Labels:
    """The labels of a part of a device's bill."""
    common = {"run": run_name(recording.metadata, epoch_ns), "zone": str(recording.metadata.get("zone") or "")}
    more = {"part": _PART_LABELS.get(part, part), "estimated": "true" if estimated else ""}
    return _labels(device, common | more)


def bill_series(recording: Recording, epoch_ns: int) -> Iterator[Series]:
    """The energy of each device that counts, divided between the command, other processes and static; nothing where
    the recording does not tell any of them apart."""
    for one in devices_with_bill(recording):
        how = device_division(recording, one, Question(scope="process"))
        curve = _as_read(one.energy(recording)).between(*recording.life)
        parts = bill_curves(curve, how, recording.clock.ticks_per_s)
        for name, part in parts.items() if len(parts) > 1 else ():
            times_ns, values = last_of_each(recording.clock.ns(part.times) + epoch_ns, part.values)
            labels = bill_labels(recording, one.device, name, curve.signal.estimated, epoch_ns)
            yield Series(BILL, labels, times_ns, values, epoch_ns)


def last_of_each(times_ns: Ints, totals: Floats, step_ns: int = SLOPE_NS) -> tuple[Ints, Floats]:
    """The last point in every tenth of a second (or other step) of the wall clock, whichever batches they came in."""
    step = times_ns // step_ns
    last = np.append(step[1:] != step[:-1], True)[: len(step)]
    return times_ns[last], totals[last]


def slopes(times_ns: Ints, totals: Floats) -> tuple[Ints, Floats]:
    """The mean power between points, stamped with the later one."""
    return times_ns[1:], np.diff(totals) / (np.diff(times_ns) / 1e9)


def chunks(series: Iterable[Series], most: int) -> Iterator[list[Series]]:
    """Series cut into lists of at most ``most`` points."""
    chunk: list[Series] = []
    room = most
    for whole in series:
        at = 0
        while at < len(whole):
            part = replace(whole, times_ns=whole.times_ns[at : at + room], values=whole.values[at : at + room])
            chunk.append(part)
            at, room = at + len(part), room - len(part)
            if not room:
                yield chunk
                chunk, room = [], most
    if chunk:
        yield chunk


def points(series: Sequence[Series]) -> int:
    return sum(map(len, series))
