"""Emissions of a recording, an attribution or a plain curve; grams for every row of an attribution.

What is summed for a whole recording is what the ledger counts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..engines import attribute
from ..engines.middle import (
    Energy,
    MeteredDevice,
    bill_of,
    device_division,
    metered_devices,
    own_curve,
    scope_of,
    used_range,
)
from ..errors import NoDataError, OptionError, names_keywords
from ..model import Attribution, Question, Recording
from ..model.coverage import unseen
from ..reading import as_recording
from ..units import J_PER_KWH
from .grams import Emissions, Site, Slice, of_curve, of_energy
from .intensity import World
from .intensity_curve import parse_time

if TYPE_CHECKING:
    import polars as pl

Pair = tuple[npt.ArrayLike, npt.ArrayLike]
_TOTAL = "_total_co2e_g"  # a row's grams with those of its callees, until they are divided by its count
_MOST_SLICES = 200  # attributed one by one; beyond that a row carries the run's mean intensity


@names_keywords
def emissions(
    energy: Recording | Attribution | Pair | str | os.PathLike[str],
    *,
    zone: str | None = None,
    intensity: float | str | None = None,
    site: Site | None = None,
    start: str | int | None = None,
    outside: World | None = None,
) -> Emissions:
    """Compute the emissions of a run.

    ``energy`` is a recording or its path, an attribution, or (ns since the epoch, joules used so far). ``zone`` is a
    code or name (`wattribute zones`); ``intensity`` a number (g/kWh), a table's path, "yearly", "gb" or
    "electricitymaps"; ``start`` the wall clock at the beginning of a recording that has none. ``site`` adds PUE, price,
    water and hardware; ``outside`` is where clock, cache and servers come from (tests pass their own).
    """
    given: dict[str, Any] = {"zone": zone, "intensity": intensity, "site": site, "outside": outside}
    if isinstance(energy, tuple):
        return of_curve(*energy, **given)
    if isinstance(energy, str | os.PathLike):
        energy = as_recording(energy)
    if not isinstance(energy, Recording | Attribution):
        raise OptionError(
            "emissions are those of one run; of an ensemble ask each run: emissions(ensemble.parts[name])"
        )
    if isinstance(energy, Attribution):
        return of_recording(energy.recording, energy.question, start, given)
    return of_recording(energy, Question(), start, given)


def of_recording(
    recording: Recording, question: Question, start: str | int | None, given: Mapping[str, Any]
) -> Emissions:
    """The emissions of what a question asks about; ``given`` as :func:`emissions` takes it."""
    if given.get("zone") is None and given.get("intensity") is None:
        given = {**given, **recorded_place(recording)}
    scope = scope_of(recording, question)
    devices = counted(recording, question)
    begin, end = _ends(recording, question, devices)
    epoch_ns = recording.clock.epoch_ns if start is None else moment(start)

    def joules(ns: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        ticks = begin + np.rint(ns * (recording.clock.ticks_per_s / 1e9)).astype(np.int64)
        ticks[-1] = end
        own = (own_curve(recording, one, question, begin, end).at(ticks) for one, _ in devices)
        return sum(own, np.zeros(len(ticks)))

    first_ns, last_ns = (recording.clock.ns(tick) + (epoch_ns or 0) for tick in (begin, end))
    total = of_energy(joules, first_ns, last_ns, wall_clock=epoch_ns is not None, **given)
    low, high = energy_range(recording, question, devices)
    window = (None, None) if None in recording.life else question.window(recording)
    parts = unseen(recording, ((one.device.name, part.coverage(*window)) for one, part in devices))
    return replace(
        total,
        estimated=any(part.signal.estimated for _, part in devices),
        scope=scope,
        unseen=parts,
        energy_low_j=low,
        energy_high_j=None if parts else high,  # nothing limits what was not seen
    )


def energy_range(
    recording: Recording, question: Question, devices: Sequence[tuple[MeteredDevice, Energy]]
) -> tuple[float | None, float | None]:
    """The least and the most that the devices that count can have used; (None, None) where one of them has no range.

    In the scope of a process it is the command's part, by the range of its share.
    """
    window, low, high = question.window(recording), 0.0, 0.0
    for one, curve in devices:
        inside, how = curve.between(*window), device_division(recording, one, question)
        is_split = how.usage is not None and inside.measured > 0
        bill = bill_of(inside, how, recording.clock.ticks_per_s) if is_split else None
        ends = used_range(recording, one, inside, *window, bill)
        if ends is None or not np.isfinite((ends.low_j, ends.high_j)).all():  # half a range is none
            return None, None
        low, high = low + ends.low_j, high + ends.high_j
    return low, high


def recorded_place(recording: Recording) -> dict[str, Any]:
    """The zone and intensity that a recording was made with; a table that is gone is not asked for again."""
    intensity = recording.metadata.get("intensity")
    if isinstance(intensity, str) and intensity.endswith((".csv", ".parquet")) and not Path(intensity).exists():
        intensity = None
    return {"zone": recording.metadata.get("zone"), "intensity": intensity}


def moment(start: str | int) -> int:
    try:
        return parse_time(start)
    except ValueError:
        raise OptionError(f"{start!r} is not a time; give one like 2024-09-04T14:00Z") from None


def _ends(recording: Recording, question: Question, devices: Sequence[tuple[MeteredDevice, Energy]]) -> tuple[int, int]:
    """From where to where emissions are computed, in ticks: of a run the child's life, else all that was metered."""
    times = [part.times for _, part in devices if len(part.times)]
    if not times:
        raise NoDataError("no device counts: `wattribute attribute` says why for each of them")
    first, last = question.window(recording)
    begin = min(int(some[0]) for some in times) if first is None else first
    return begin, max(max(int(some[-1]) for some in times) if last is None else last, begin)


def counted(recording: Recording, question: Question | None = None) -> list[tuple[MeteredDevice, Energy]]:
    """The devices that the ledger counts, each with its curve, as a question's sensors and integration make it."""
    devices = metered_devices(recording, (question or Question()).metering)
    return [(one, one.energy(recording)) for one in devices if one.entry.counted]


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

    Rows get self energy × the intensity of the moment: every slice of time is attributed on its own. With a unit of
    work they also get ``co2e_g_per_unit`` (total grams over ``count``) and its range, that of energy and intensity.
    """
    if "self_j" not in attribution.rows.columns:
        raise OptionError("grams need joules: attribute an energy metric, not another one")
    whole = emissions(attribution, zone=zone, intensity=intensity, site=site, start=start, outside=outside)
    slices = [part for part in whole.slices if part.end_ns > part.start_ns]
    if len(slices) <= 1 or len(slices) > _MOST_SLICES or attribution.question.method != "linear":
        with_grams = _scaled(attribution, whole.g_per_kwh * whole.pue / J_PER_KWH)
    else:
        with_grams = _sliced(attribution, slices, whole)
    return replace(with_grams, rows=_per_unit(with_grams.rows, whole).drop(_TOTAL)), whole


def _per_unit(rows: pl.DataFrame, whole: Emissions) -> pl.DataFrame:
    """The rows with grams per unit of work, if there is one."""
    import polars as pl

    if "count" not in rows.columns:
        return rows
    grams = pl.when(pl.col("count") > 0).then(pl.col(_TOTAL) / pl.col("count"))
    ends = {
        f"co2e_g_per_unit_{end}": grams * (pl.col(f"j_per_unit_{end}") / pl.col("j_per_unit")).fill_nan(None) * factor
        for end, factor in zip(("low", "high"), whole.spread, strict=True)
    }
    return rows.with_columns(co2e_g_per_unit=grams, **ends)


def _scaled(attribution: Attribution, grams_per_j: float) -> Attribution:
    import polars as pl

    return replace(
        attribution,
        rows=attribution.rows.with_columns(
            (pl.col(of) * grams_per_j).alias(name) for name, of in (("co2e_g", "self_j"), (_TOTAL, "total_j"))
        ),
        devices=attribution.devices.with_columns(co2e_g=pl.col("measured_j") * grams_per_j),
    )


def _sliced(attribution: Attribution, slices: Sequence[Slice], whole: Emissions) -> Attribution:
    recording, question = attribution.recording, attribution.question
    origin = slices[0].start_ns - recording.clock.ns(_ends(recording, question, counted(recording, question))[0])
    question = attribution.question.but(bounds=False, per=None)
    rows: list[pl.DataFrame] = []
    devices: list[pl.DataFrame] = []
    for part in slices:
        within = question.but(begin=(part.start_ns - origin) / 1e9, end=(part.end_ns - origin) / 1e9)
        piece = attribute(attribution.recording, within, engine=attribution.engine)
        piece = _scaled(piece, part.g_per_kwh * whole.pue / J_PER_KWH)
        rows.append(piece.rows)
        devices.append(piece.devices)
    return replace(
        attribution,
        rows=_with_grams(attribution.rows, rows, _keys(attribution.rows)),
        devices=_with_grams(attribution.devices, devices, ["device", "signal", "host", "of"]),
    )


def _keys(rows: pl.DataFrame) -> list[str]:
    return rows.columns[: rows.columns.index("self_j")]


def _with_grams(table: pl.DataFrame, pieces: Sequence[pl.DataFrame], keys: list[str]) -> pl.DataFrame:
    import polars as pl

    keys = [key for key in keys if key in table.columns]
    names = [name for name in ("co2e_g", _TOTAL) if name in pieces[0].columns]
    grams = pl.concat([piece.select(*keys, *names) for piece in pieces]).group_by(keys).agg(pl.col(names).sum())
    joined = table.join(grams, on=keys, how="left", nulls_equal=True, maintain_order="left")
    return joined.with_columns(pl.col(names).fill_null(0.0))
