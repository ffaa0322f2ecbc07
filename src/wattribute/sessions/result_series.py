"""``timeseries.csv`` and ``.parquet``: a row per device and reading, with the time of day.

Columns: ``timestamp`` (UTC, ISO 8601), ``elapsed_s`` since the start of the run, ``host`` where there are several,
``device``, ``energy_j`` since its first reading, ``power_w``, and the device's other gauges (``utilisation_percent``,
``temperature_c`` …). Rows stand at the readings of the device's energy, or else of its power; other columns hold the
latest reading up to then. A long run is thinned to ``MOST`` rows per device: every reading is in the recording itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..engines.middle import energy
from ..model import Clock, Device, Recording, Signal
from ..units import SUFFIXES

if TYPE_CHECKING:
    import pyarrow as pa

CSV, PARQUET = "timeseries.csv", "timeseries.parquet"
MOST = 20_000  # rows per device
_ONE_POWER = ("power_instant", "power_average")  # fields of which a card has one or both: both are its power


def table(recording: Recording) -> pa.Table:
    """The rows of every device, one device after the other."""
    import pyarrow as pa

    several = len({device.host for device in recording.devices}) > 1
    parts = [_device(recording, device, several) for device in recording.devices]
    columns = list(dict.fromkeys(name for part in parts for name in part))
    lengths = [len(part["device"]) for part in parts]
    types = {"timestamp": pa.timestamp("ns", "UTC"), "host": pa.string(), "device": pa.string()}
    arrays = {}
    for name in columns or ["timestamp", "elapsed_s", "device"]:
        kind = types.get(name, pa.float64())
        pieces = [
            pa.array(part[name], kind, from_pandas=True) if name in part else pa.nulls(length, kind)
            for part, length in zip(parts, lengths, strict=True)
        ]
        arrays[name] = pa.chunked_array(pieces, kind)
    return pa.table(arrays)


def write(recording: Recording, folder: Path) -> None:
    """Both files; in the CSV times are text, which every program reads alike."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    rows = table(recording)
    pa.parquet.write_table(rows, folder / PARQUET)
    stamps = np.datetime_as_string(rows["timestamp"].to_numpy().astype("datetime64[us]"), timezone="UTC")
    shown = rows.set_column(0, "timestamp", pa.array(stamps, pa.string()))
    pa.csv.write_csv(shown, folder / CSV)


def _device(recording: Recording, device: Device, with_host: bool) -> dict[str, Any]:
    signals = [s for s in recording.signals_of(device) if len(s) and s.unit in SUFFIXES]
    leading = next((s for unit in ("J", "W") for s in signals if s.unit == unit), None)
    if leading is None:
        return {"timestamp": [], "elapsed_s": [], "device": []}
    clock = recording.clock
    times = leading.times[:: -(-len(leading) // MOST)]
    begin = recording.metadata.get("run", {}).get("start_ticks", 0)
    columns: dict[str, Any] = {
        "timestamp": (np.asarray(clock.ns(times)) + (clock.epoch_ns or 0)).astype("datetime64[ns]"),
        "elapsed_s": (times - begin) / clock.ticks_per_s,
        **({"host": [device.host] * len(times)} if with_host else {}),
        "device": [device.name] * len(times),
    }
    for signal in signals:
        columns.setdefault(column(signal), _latest(signal, times))
    if "power_w" not in columns:
        columns["power_w"] = _power(leading, clock, times, columns["energy_j"], columns["elapsed_s"])
    return columns


def column(signal: Signal) -> str:
    """What a signal's readings are called: its quantity and unit, as in ``temperature_c``."""
    quantity = signal.name.split()[-1]
    if signal.unit == "J":
        return "energy_j"
    return f"{'power' if quantity in _ONE_POWER else quantity}_{SUFFIXES[signal.unit]}"


def _latest(signal: Signal, times: Any) -> Any:
    """The latest value at each time; none before the first. Counters count from their first reading."""
    at = np.searchsorted(signal.times, times, side="right") - 1
    every = signal.values
    raw = every[np.maximum(at, 0)]
    if signal.kind == "counter":
        steps = np.diff(every, prepend=every[:1]).astype(np.float64)
        raw = np.cumsum(np.where(steps < 0, steps + (signal.wraps_at or 0), steps))[np.maximum(at, 0)]
    values = np.asarray(raw, np.float64) * float(signal.scale)
    return np.where(at >= 0, values, np.nan)


def _power(counter: Signal, clock: Clock, times: Any, energy_j: Any, elapsed_s: Any) -> Any:
    """Watts of a counter; one that repeats its value between updates has used its energy since the update before."""
    curve = energy(counter, clock)
    drawn = curve.drawn
    if drawn is curve:
        return _slope(energy_j, elapsed_s)
    power = _slope(drawn.at(times), elapsed_s)
    return np.where((times > drawn.times[0]) & (times <= drawn.times[-1]), power, np.nan)


def _slope(energy_j: Any, elapsed_s: Any) -> Any:
    """Watts between a row and the one before."""
    seconds = np.diff(elapsed_s, prepend=np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        power = np.diff(energy_j, prepend=np.nan) / seconds
    return np.where(np.isfinite(power), power, np.nan)
