"""Many runs as a table, and statistics per label: what ``summary`` prints and ``plot history | histogram`` draw.

``experiment(paths)`` reads folders of recordings (``run --experiment``), single recordings, and files of many runs
(codecarbon, Eco2AI). Each run is a plain row; a run that failed, was interrupted or cannot be read is kept and marked,
and stays out of every sum. Units are in the names; grams are those the run reported, or at one intensity when asked.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..comparison.paths import PathLike, expand, names
from ..comparison.repeats import interval
from ..errors import NoDataError, OptionError, WattributeError, names_keywords
from ..model import display
from ..units import J_PER_KWH
from .run import SUMMARY

PLACE = "place"  # not a label of a run, but runs can be grouped by it
EVERYTHING = "all runs"
MEASURES: dict[str, Callable[[RunRow], float | None]] = {  # name of a measure → its value for a row
    "duration_s": lambda run: run.duration_s,
    "energy_j": lambda run: run.energy_j,
    "energy_kwh": lambda run: _over(run.energy_j, J_PER_KWH),
    "mean_w": lambda run: _over(run.energy_j, run.duration_s),
    "co2e_kg": lambda run: _over(run.co2e_g, 1000.0),
    "co2e_g_per_s": lambda run: _over(run.co2e_g, run.duration_s),
}
PER_UNIT: dict[str, Callable[[RunRow, str], float | None]] = {  # the same per unit of work
    "count": lambda run, unit: run.counts.get(unit),
    "energy_j_per_unit": lambda run, unit: _over(run.energy_j, run.counts.get(unit)),
    "co2e_g_per_unit": lambda run, unit: _over(run.co2e_g, run.counts.get(unit)),
    "s_per_unit": lambda run, unit: _over(run.duration_s, run.counts.get(unit)),
}
_SAME = 1.01  # intensities within one per cent are one


@dataclass(frozen=True)
class RunRow:
    """One run; what is not known is None."""

    name: str
    path: str
    labels: Mapping[str, str]
    start_ns: int | None  # since 1970
    duration_s: float | None
    energy_j: float | None
    co2e_g: float | None
    g_per_kwh: float | None
    place: str
    estimated: bool
    left_out: str = ""  # why it counts in no statistics
    counts: Mapping[str, float] = field(default_factory=dict)  # by unit of work
    device_j: Mapping[str, float] = field(default_factory=dict)  # energy by device
    device_w: Mapping[str, float] = field(default_factory=dict)  # power by device, as the tool says it or the mean


@dataclass(frozen=True)
class Experiment:
    """The runs in the order of their start, and what was noticed about all of them."""

    runs: tuple[RunRow, ...]
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()  # no alarms

    @property
    def counted(self) -> tuple[RunRow, ...]:
        return tuple(run for run in self.runs if not run.left_out)

    def keys(self) -> list[str]:
        """The labels that group runs by default: those that differ between them."""
        values: dict[str, set[str | None]] = {}
        for key in dict.fromkeys(key for run in self.runs for key in run.labels):
            values[key] = {run.labels.get(key) for run in self.runs}
        return [key for key, seen in values.items() if len(seen) > 1] or list(values)

    def groups(self, by: Sequence[str] = ()) -> dict[str, list[RunRow]]:
        """Name of a group → its runs that count, in the order in which groups appear."""
        known = dict.fromkeys([*(key for run in self.runs for key in run.labels), PLACE])
        for key in by:
            if key not in known:
                raise OptionError.unknown("label", key, known)
        keys = list(by) or self.keys()
        groups: dict[str, list[RunRow]] = {}
        for run in self.counted:
            values = {**run.labels, PLACE: run.place or "?"}
            name = ", ".join(f"{key}={values.get(key, '–')}" for key in keys) or EVERYTHING
            groups.setdefault(name, []).append(run)
        return groups

    @property
    def devices(self) -> list[str]:
        """The devices of any run whose energy is known apart."""
        return list(dict.fromkeys(device for run in self.runs for device in run.device_j))

    @property
    def units(self) -> list[str]:
        """The units of work that any run counted."""
        return list(dict.fromkeys(unit for run in self.runs for unit in run.counts))

    def summary(self, by: Sequence[str] = (), per: str | None = None) -> dict[str, Any]:
        """Statistics per group, as plain values; with ``per`` also per unit of work."""
        if not self.counted:
            raise NoDataError(f"no run can be counted: {'; '.join(self.notes[:3]) or 'there is none'}")
        if per is not None and per not in self.units:
            if not self.units:
                raise NoDataError(f"no run counted anything, so there is no {per!r} to divide by")
            raise OptionError.unknown("unit of work", per, self.units)
        groups = [_group(name, runs, per) for name, runs in self.groups(by).items()]
        return {
            **({} if per is None else {"per": per}),
            "runs": len(self.runs),
            "counted": len(self.counted),
            "groups": groups,
            "notes": [*self.notes, *self._unlike(by)],
            "remarks": list(self.remarks),
        }

    def _unlike(self, by: Sequence[str]) -> list[str]:
        """Warnings of groups whose own runs differ in their intensity; if none does, of all runs."""
        groups = self.groups(by)
        notes = (
            [f"{name}: {note}" for name, runs in groups.items() for note in _unlike(runs)] if len(groups) > 1 else []
        )
        return notes or _unlike(self.counted)


def _over(value: float | None, by: float | None) -> float | None:
    return value / by if value is not None and by else None


def _group(name: str, runs: Sequence[RunRow], per: str | None) -> dict[str, Any]:
    places = list(dict.fromkeys(run.place for run in runs))
    summary: dict[str, Any] = {"group": name, "n": len(runs), "estimated": any(run.estimated for run in runs)}
    summary["places"] = {place: sum(run.place == place for run in runs) for place in places}
    for measure, of in MEASURES.items():
        values = [value for value in map(of, runs) if value is not None]
        summary[measure] = described(values) if values else None
    for device in dict.fromkeys(device for run in runs for device in run.device_j):
        summary[f"energy_j_{device}"] = described([run.device_j[device] for run in runs if device in run.device_j])
        if powers := [run.device_w[device] for run in runs if device in run.device_w]:
            summary[f"mean_w_{device}"] = described(powers)
    for measure, per_unit in PER_UNIT.items() if per is not None else ():
        values = [value for run in runs if (value := per_unit(run, str(per))) is not None]
        summary[measure] = described(values) if values else None
    return summary


READS_NO_METER = "a rank that reads no meter, because another rank of its node does"


def described(values: Sequence[float]) -> dict[str, Any]:
    """Mean with its interval, median, quartiles (linear, as NumPy and pandas do), extremes and sum."""
    quartiles = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
    return {
        "n": len(values),
        **interval(values).as_dict(),
        "median": quartiles[1],
        "q25": quartiles[0],
        "q75": quartiles[2],
        "min": min(values),
        "max": max(values),
        "sum": sum(values),
    }


def _unlike(runs: Sequence[RunRow]) -> list[str]:
    """A warning when runs emitted at different intensities: their means of emissions compare nothing."""
    grids: dict[str, list[float]] = {}
    for run in runs:
        if run.g_per_kwh is not None:
            grids.setdefault(run.place or "an unnamed place", []).append(run.g_per_kwh)
    figures = [figure for each in grids.values() for figure in each]
    if not figures or max(figures) <= _SAME * min(figures):
        return []
    if len(grids) == 1:
        return [
            f"the intensity differed between runs ({min(figures):.3g} to {max(figures):.3g} g/kWh): means of emissions "
            "mix that in; --zone or --intensity recomputes them at one intensity"
        ]
    parts = [
        f"{len(each)} in {place} ({statistics.fmean(each):.3g} g/kWh)"
        for place, each in sorted(grids.items(), key=lambda pair: len(pair[1]))
    ]
    return [
        f"the runs' locations differ: {', '.join(parts)}; means of emissions compare nothing; "
        "--zone recomputes them at one intensity"
    ]


# ------------------------------------------------------------------------------------------------------------- reading


@names_keywords
def experiment(
    paths: PathLike | Iterable[PathLike], *, zone: str | None = None, intensity: float | str | None = None
) -> Experiment:
    """Read the runs in these folders and files (``paths``); ``zone`` or ``intensity`` recomputes all grams."""
    if zone is not None or intensity is not None:
        from ..carbon import check

        check(zone, intensity)
    sources = expand(paths)
    runs: list[RunRow] = []
    notes: list[str] = []
    remarks: list[str] = []
    for path, name in zip(sources, names(sources), strict=True):
        try:
            rows, read_notes = _rows(path, name)
        except WattributeError as error:
            if len(sources) == 1:
                raise
            rows, read_notes = [_broken(path, name, str(error))], []
        runs += rows
        notes += read_notes
    if zone is not None or intensity is not None:
        runs = [_recomputed(run, zone, intensity) for run in runs]
    silent = [run.name for run in runs if run.left_out == READS_NO_METER]
    notes += [f"{run.name} is left out: {run.left_out}" for run in runs if run.left_out and run.name not in silent]
    unmetered = [run.name for run in runs if run.energy_j is None and not run.left_out]
    if unmetered:
        text = "no energy was metered, so only the time counts; measure with `wattribute run`"
        remarks.append(f"{display.listed(unmetered, 1)}: {text}")
    if silent:
        notes.append(f"{display.listed(silent, 1)}: {READS_NO_METER}; for the whole job: wattribute merge")
    return Experiment(tuple(sorted(runs, key=lambda run: run.start_ns or 0)), tuple(notes), tuple(remarks))


def _broken(path: Path, name: str, why: str) -> RunRow:
    return RunRow(name, str(path), {}, None, None, None, None, None, "", False, why)


def _rows(path: Path, name: str) -> tuple[list[RunRow], list[str]]:
    """The runs at a path: from the JSON of a finished recording where that is enough, else by reading it."""
    try:
        summary = json.loads((path / SUMMARY).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        summary = None
    if isinstance(summary, dict):
        from ..archive import about

        archive = about(path)
        why = "" if archive["state"] == "complete" else "it was not written to the end"
        return [_of_summary(path, name, summary, archive["metadata"], archive["clock"].get("epoch_ns"), why)], []
    return _by_reading(path, name)


def _by_reading(path: Path, name: str) -> tuple[list[RunRow], list[str]]:
    from ..reading import read_runs
    from .summary import summarise

    recordings, left_out = read_runs(path)
    rows = []
    for number, recording in enumerate(recordings, 1):
        own = name if len(recordings) == 1 else f"{name} #{number}"
        totals, metadata = recording.metadata.get("totals"), recording.metadata
        if totals is not None:  # a row of another tool's table: it says what it came to
            rows.append(RunRow(own, str(path), metadata.get("labels", {}), recording.clock.epoch_ns, **totals))
            continue
        why = next((p.message for p in recording.problems if p.kind in ("partial", "cut")), "")
        summary, unmetered = summarise(recording).as_dict(), not recording.signals  # a profile, a trace: time counts
        rows.append(_of_summary(path, own, summary, metadata, recording.clock.epoch_ns, why, unmetered))
    return rows, left_out


def _of_summary(
    path: Path, name: str, summary: Mapping[str, Any], metadata: Mapping[str, Any], epoch_ns: int | None, why: str,
    unmetered: bool = False,
) -> RunRow:  # fmt: skip
    carbon = summary.get("carbon") or {}
    start_ns = None if epoch_ns is None else epoch_ns + metadata.get("run", {}).get("start_ticks", 0)
    if not why and summary["exit_code"]:
        why = f"its exit code is {summary['exit_code']}"
    if not why and not (metadata.get("rank") or {}).get("samples", True):
        why = READS_NO_METER
    if not why and summary["energy_j"] is None and not unmetered:
        why = "its energy is below what the sensors resolve"
    return RunRow(
        name, str(path), metadata.get("labels", {}), start_ns, summary["duration_s"], summary["energy_j"],
        summary["co2e_g"], carbon.get("g_per_kwh"), carbon.get("name", ""), bool(summary["estimated"]), why,
        summary.get("counts", {}), _by_device(summary, "energy_j"), _by_device(summary, "mean_w"),
    )  # fmt: skip


def _by_device(summary: Mapping[str, Any], value: str) -> dict[str, float]:
    """A value of each device that counts; those of one name on several hosts are added."""
    values: dict[str, float] = {}
    for device in summary.get("devices", ()):
        if device.get("counted") and device.get(value) is not None:
            values[device["name"]] = values.get(device["name"], 0.0) + device[value]
    return values


def _recomputed(run: RunRow, zone: str | None, intensity: float | str | None) -> RunRow:
    """The run's grams at another intensity; where that changes during the run, by its power over time."""
    from dataclasses import replace

    from ..carbon import emissions

    if run.energy_j is None or run.duration_s is None:
        return run
    begin_ns = run.start_ns or 0
    curve = ([begin_ns, begin_ns + max(1, round(run.duration_s * 1e9))], [0.0, run.energy_j])
    emitted = emissions(curve, zone=zone, intensity=intensity)
    if len(emitted.slices) > 1 and Path(run.path).is_dir():
        from ..reading import read

        emitted = emissions(read(run.path), zone=zone, intensity=intensity)
    return replace(run, co2e_g=emitted.co2e_g, g_per_kwh=emitted.g_per_kwh, place=emitted.name)


def run_table(experiment: Experiment) -> Any:
    """A Polars frame with a row per run, those that are left out too; a column per label."""
    import polars as pl

    keys = dict.fromkeys(key for run in experiment.runs for key in run.labels)
    columns: dict[str, list[Any]] = {"run": [run.name for run in experiment.runs]}
    columns |= {f"label_{key}": [run.labels.get(key) for run in experiment.runs] for key in keys}
    columns["start"] = [_iso(run.start_ns) for run in experiment.runs]
    columns |= {measure: [of(run) for run in experiment.runs] for measure, of in MEASURES.items()}
    columns |= {
        f"energy_j_{device}": [run.device_j.get(device) for run in experiment.runs] for device in experiment.devices
    }
    columns |= {
        f"mean_w_{device}": [run.device_w.get(device) for run in experiment.runs] for device in experiment.devices
    }
    columns |= {f"count_{unit}": [run.counts.get(unit) for run in experiment.runs] for unit in experiment.units}
    for name in ("g_per_kwh", "place", "estimated", "left_out", "path"):
        columns[name] = [getattr(run, name) for run in experiment.runs]
    return pl.DataFrame(columns, strict=False)


def _iso(start_ns: int | None) -> str | None:
    from datetime import datetime, timezone

    if start_ns is None:
        return None
    return datetime.fromtimestamp(start_ns / 1e9, timezone.utc).isoformat(timespec="milliseconds")
