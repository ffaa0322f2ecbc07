"""Emissions of a recording, an attribution or a plain curve; grams for every row of an attribution.

What is summed for a whole recording is decided here once: one energy source per device, and never a device whose
energy another one includes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..alignment import Energy, energy, examine
from ..attribution.options import checked
from ..attribution.select import chosen
from ..errors import OptionError
from ..model import Attribution, Device, Recording
from ..sensors import contains
from ..units import J_PER_KWH
from .grams import Emissions, Site, Slice, of_curve
from .intensity import World
from .profile import parse_time

if TYPE_CHECKING:
    import polars as pl

Pair = tuple[npt.ArrayLike, npt.ArrayLike]
_MOST_SLICES = 200  # attributed one by one; beyond that a row carries the run's mean intensity


def emissions(
    energy: Recording | Attribution | Pair,
    *,
    zone: str | None = None,
    intensity: float | str | None = None,
    site: Site | None = None,
    start: str | int | None = None,
    outside: World | None = None,
) -> Emissions:
    """What a run emitted. ``energy`` is a recording, an attribution, or (ns since the epoch, joules used so far).

    ``zone`` is a code or name (`wattribute zones`); ``intensity`` a number (g/kWh), a table's path, "yearly", "gb" or
    "electricitymaps"; ``start`` the wall clock at the beginning of a recording that has none.
    """
    given: dict[str, Any] = {"zone": zone, "intensity": intensity, "site": site, "outside": outside}
    if isinstance(energy, tuple):
        return of_curve(*energy, **given)
    recording = energy.recording if isinstance(energy, Attribution) else energy
    # an attribution shares out all that was metered; of a recording only that counts which is the command's
    scope = "machine" if isinstance(energy, Attribution) else recording.metadata.get("scope", "machine")
    times_ns, joules = curve(recording, command_shares(recording) if scope == "process" else {})
    epoch_ns = recording.clock.epoch_ns if start is None else moment(start)
    found = of_curve(times_ns + (epoch_ns or 0), joules, wall_clock=epoch_ns is not None, **given)
    return replace(found, estimated=any(part.signal.estimated for _, part in counted(recording)), scope=scope)


def moment(start: str | int) -> int:
    try:
        return parse_time(start)
    except ValueError:
        raise OptionError(f"{start!r} is not a time; give one like 2024-09-04T14:00Z") from None


def command_shares(recording: Recording) -> dict[str, float]:
    """The part of each device that was used by the command of ``run``: by CPU time, GPUs by utilisation per process.

    A device is absent when nobody knows; all of it is then counted.
    """
    run = recording.metadata.get("run", {})
    busy_s, shares = run.get("busy_s"), dict(run.get("shares", {}))
    if busy_s and run.get("cpu_s") is not None:
        cpu = min(1.0, run["cpu_s"] / busy_s)
        shares |= {device.name: cpu for device in recording.devices if device.kind != "gpu"}
    return shares


def curve(
    recording: Recording, shares: Mapping[str, float] | None = None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """The energy of all that was metered so far, at every reading: ns since the recording's start, joules.

    Of a recording of ``run`` it is the child's life, as in its summary; of each device its share, where one is given.
    """
    given = shares or {}
    weighted = [(given.get(device.name, 1.0), found) for device, found in counted(recording)]
    parts = [part for _, part in weighted]
    run = recording.metadata.get("run", {})
    times = np.unique(np.concatenate([part.times for part in parts]))
    begin, end = run.get("start_ticks", times[0]), run.get("end_ticks", times[-1])
    times = np.unique(np.concatenate([np.clip(times, begin, end), [begin, end]])).astype(np.int64)
    joules = sum((share * part.at(times) for share, part in weighted), np.zeros(len(times)))
    return recording.clock.ns(times), joules


def counted(recording: Recording) -> list[tuple[Device, Energy]]:
    """The devices whose energies add up to the recording's, each with its curve.

    Left out is what another device includes (a package's cores, all that is in a metered node; psys where packages are
    metered), what mirrors another counter, and estimates beside measurements. The whole is asked for here, so a node's
    meter counts and its parts do not; sums per frame go the other way (:func:`~wattribute.sensors.outer`).
    """
    rows, _ = chosen(recording, checked())
    mirrors = {check.signals[1] for check in examine(recording) if check.kind == "mirrored"}
    kinds = {(device.host, device.kind) for _, device in rows}
    kept = [
        (row, device)
        for row, device in rows
        if not _included(device, kinds) and not (row in mirrors and not device.properties.get("uuid"))
    ]
    measured = [(row, device) for row, device in kept if not recording.signals[row].estimated]
    return [(device, energy(recording.signals[row], recording.clock)) for row, device in measured or kept]


def _included(device: Device, kinds: set[tuple[str, str]]) -> bool:
    here = {kind for host, kind in kinds if host == device.host}
    if device.properties.get("apart"):
        return True
    if device.kind == "psys":
        return bool({"cpu", "node"} & here)
    return any(contains(outer, device.kind) for outer in here - {"psys"})


def with_emissions(
    attribution: Attribution,
    *,
    zone: str | None = None,
    intensity: float | str | None = None,
    site: Site | None = None,
    start: str | int | None = None,
    outside: World | None = None,
) -> tuple[Attribution, Emissions]:
    """The attribution with a column ``co2e_g`` in rows and devices, and the emissions of the whole run.

    Rows get self energy × the intensity of the moment: every slice of time is attributed on its own.
    """
    if "self_j" not in attribution.rows.columns:
        raise OptionError("grams need joules: attribute an energy metric, not another one")
    whole = emissions(attribution, zone=zone, intensity=intensity, site=site, start=start, outside=outside)
    slices = [part for part in whole.slices if part.end_ns > part.start_ns]
    if len(slices) <= 1 or len(slices) > _MOST_SLICES or attribution.method != "linear":
        grams_per_j = whole.g_per_kwh * whole.pue / J_PER_KWH
        return _scaled(attribution, grams_per_j), whole
    return _sliced(attribution, slices, whole), whole


def _scaled(attribution: Attribution, grams_per_j: float) -> Attribution:
    import polars as pl

    return replace(
        attribution,
        rows=attribution.rows.with_columns(co2e_g=pl.col("self_j") * grams_per_j),
        devices=attribution.devices.with_columns(co2e_g=pl.col("measured_j") * grams_per_j),
    )


def _sliced(attribution: Attribution, slices: Sequence[Slice], whole: Emissions) -> Attribution:
    from ..engines import attribute

    origin = slices[0].start_ns - _first_ns(attribution.recording)
    options = {**attribution.options, "by": attribution.by, "bounds": False}
    rows: list[pl.DataFrame] = []
    devices: list[pl.DataFrame] = []
    for part in slices:
        options |= {"begin": (part.start_ns - origin) / 1e9, "end": (part.end_ns - origin) / 1e9}
        piece = _scaled(attribute(attribution.recording, **options), part.g_per_kwh * whole.pue / J_PER_KWH)
        rows.append(piece.rows)
        devices.append(piece.devices)
    return replace(
        attribution,
        rows=_with_grams(attribution.rows, rows, _keys(attribution.rows)),
        devices=_with_grams(attribution.devices, devices, ["device", "signal", "host", "of"]),
    )


def _first_ns(recording: Recording) -> int:
    return int(curve(recording)[0][0])


def _keys(rows: pl.DataFrame) -> list[str]:
    return rows.columns[: rows.columns.index("self_j")]


def _with_grams(table: pl.DataFrame, pieces: Sequence[pl.DataFrame], keys: list[str]) -> pl.DataFrame:
    import polars as pl

    keys = [key for key in keys if key in table.columns]
    grams = pl.concat([piece.select(*keys, "co2e_g") for piece in pieces]).group_by(keys).agg(pl.col("co2e_g").sum())
    joined = table.join(grams, on=keys, how="left", nulls_equal=True, maintain_order="left")
    return joined.with_columns(pl.col("co2e_g").fill_null(0.0))
