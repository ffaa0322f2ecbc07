"""Two ensembles as the tables that :mod:`wattribute.attribution.compare` compares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..attribution.compare import IDLE, VALUES, Comparison, compare_tables
from ..attribution.options import moment
from ..errors import OptionError
from ..model import Attribution, Problem
from ..sensors import outer
from .paths import PathLike, parted
from .result import EnsembleAttribution, key_list

if TYPE_CHECKING:
    import polars as pl

    from . import Ensemble

COMMAND = "(command)"
_USUAL = frozenset(  # problems that all runs on a machine have, and that change no comparison
    (
        "declared",
        "left-out",
        "stale",
        "counted-once",
        "duplicate",
        "wrap",
        "mirrored",
        "nested",
        "constant",
        "power-ratio",
    )
)
_OF_DEVICES = ("device", "signal", "of", "host")


def compare(
    a: Ensemble | PathLike | Iterable[PathLike],
    b: Ensemble | PathLike | Iterable[PathLike],
    by: str | Sequence[str] = ("frame",),
    confidence: float = 0.95,
    **options: Any,
) -> Comparison:
    """Compare two groups of runs key by key; other keyword arguments are those of :func:`wattribute.attribute`."""
    keys = key_list(by)
    if "run" in keys:
        raise OptionError("'run' is what is compared, not a key; use one or more of frame, path, process, device")
    first, second = _attributed(a, keys, options), _attributed(b, keys, options)
    problems = [*_marked(first, "A"), *_marked(second, "B"), *_unlike(first, second), *_estimates(first, second)]
    rows_a, rows_b = _keyed(first, keys), _keyed(second, keys)
    return compare_tables(rows_a, rows_b, _whole(first, rows_a), _whole(second, rows_b), keys, confidence, problems)


def _attributed(side: Ensemble | PathLike | Iterable[PathLike], keys: list[str], options: Any) -> EnsembleAttribution:
    from . import Ensemble

    if not isinstance(side, Ensemble):
        reading, options = parted(options)
        side = Ensemble.read(side, **reading)
    found = _alike(side).attribute(keys, **options)
    if "measured_j" not in found.devices.columns or found.devices["measured_j"].null_count():
        units = sorted(set(found.devices["unit"].to_list()))
        raise OptionError(f"compare needs joules, not {' and '.join(units)}; choose an energy metric with --metric RE")
    views = found.devices.select("run", "host", "device", "signal")
    if views.is_duplicated().any():
        raise OptionError("compare needs one view of each device; give --of once, with a comma for several words")
    return found


def _alike(side: Ensemble) -> Ensemble:
    """Commands under one name, since two of them shall be compared."""
    runs = []
    for run in side.runs:
        frames = run.recording.frames
        names = [
            COMMAND if what == "command" else name for name, what in zip(frames.name, frames.paradigm, strict=True)
        ]
        runs.append(replace(run, recording=replace(run.recording, frames=replace(frames, name=tuple(names)))))
    return replace(side, runs=tuple(runs))


def _life_s(part: Attribution) -> float | None:
    """How long the command lived, in the recording of one: what was metered before and after is not its energy."""
    told = part.recording.metadata.get("run")
    if not isinstance(told, Mapping) or "start_ticks" not in told or "end_ticks" not in told:
        return None
    return float(part.recording.clock.seconds(told["end_ticks"] - told["start_ticks"]))


def _marked(side: EnsembleAttribution, name: str) -> list[Problem]:
    """Runs that were left out, damaged or metered unlike the others; how sensors are in general is for ``info``."""
    return [Problem(p.kind, f"group {name}: {p.message}") for p in side.problems if p.kind not in _USUAL]


def _unlike(a: EnsembleAttribution, b: EnsembleAttribution) -> list[Problem]:
    """Devices that only one side has."""
    told = []
    for mine, other, name in ((a, b, "A"), (b, a, "B")):
        only = sorted(set(mine.devices["device"].to_list()) - set(other.devices["device"].to_list()))
        if only:
            told.append(Problem("metrics", f"only group {name} has {', '.join(only)}: the sides are not metered alike"))
    return told


def _estimates(*sides: EnsembleAttribution) -> list[Problem]:
    """Devices whose energy a model made up from time and load."""
    names = dict.fromkeys(row["device"] for side in sides for row in side.devices.to_dicts() if row["estimated"])
    if not names:
        return []
    return [
        Problem("estimated", f"{', '.join(names)}: estimated by a model, not measured; trust the time, not the power")
    ]


def _inner(devices: pl.DataFrame) -> pl.DataFrame:
    """Without devices that contain or mirror another one of the same run and host: they would count twice."""
    import polars as pl

    rows = devices.select("run", "host", "device", "kind").rows()
    again = outer([((run, host), name, kind) for run, host, name, kind in rows])
    return devices.filter(~pl.Series(again, dtype=pl.Boolean) & (pl.col("mirrors") == ""))


def _keyed(side: EnsembleAttribution, keys: Sequence[str]) -> pl.DataFrame:
    """energy_j, time_s and bounds per run and key; what was idle is a key of its own."""
    import polars as pl

    covered = pl.when(pl.col("power_w") > 0).then(pl.col("self_j") / pl.col("power_w"))
    rows = side.rows.select(
        "run",
        *(pl.col(key).list.join(" → ") if key == "path" else pl.col(key) for key in keys),
        pl.col("self_j").alias("energy_j"),
        covered.otherwise(pl.col("self_ns") / 1e9).alias("time_s"),
        pl.col("self_low_j").alias("low_j"),
        pl.col("self_high_j").alias("high_j"),
    )
    devices = side.devices if {"device", "signal"} & set(keys) else _inner(side.devices)
    commands = [run for run, part in side.parts.items() if _life_s(part) is not None]
    idle = _idle(devices, keys).filter((pl.col("energy_j") != 0) & ~pl.col("run").is_in(commands))
    return pl.concat([rows, idle], how="vertical_relaxed").select("run", *keys, *VALUES)


def _idle(devices: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """What went to nobody, under the device's own keys; the first of the others says so."""
    import polars as pl

    named = [key for key in keys if key not in _OF_DEVICES]
    words = {key: pl.lit(IDLE if key == named[0] else "").alias(key) for key in named}
    unknown = pl.lit(None, pl.Float64)
    return devices.select(
        "run",
        *(words.get(key, pl.col(key)) for key in keys),
        pl.col("idle_j").alias("energy_j"),
        pl.lit(0.0).alias("time_s"),
        unknown.alias("low_j"),
        unknown.alias("high_j"),
    )


def _whole(side: EnsembleAttribution, keyed: pl.DataFrame) -> pl.DataFrame:
    """The measured energy of each run and how long it was metered; of a command's run, what it used while it lived."""
    import polars as pl

    lives = {run: _life_s(part) for run, part in side.parts.items()}
    sums = (
        _inner(side.devices)
        .group_by("run", maintain_order=True)
        .agg(pl.col("measured_j", "attributed_j").sum(), pl.col("bounded").all())
    )
    lived = pl.Series("lived", [lives[run] is not None for run in sums["run"]], dtype=pl.Boolean)
    times = [lives[run] or _metered_s(side.parts[run]) for run in sums["run"]]
    bounds = keyed.group_by("run").agg(
        pl.when(pl.col(n).null_count() == 0).then(pl.col(n).sum()) for n in ("low_j", "high_j")
    )
    measured = pl.when("bounded").then("measured_j")
    return (
        sums.with_columns(lived, pl.Series("time_s", times, dtype=pl.Float64))
        .join(bounds, "run", how="left")
        .select(
            "run",
            pl.when("lived").then("attributed_j").otherwise("measured_j").alias("energy_j"),
            "time_s",
            pl.when("lived").then("low_j").otherwise(measured).alias("low_j"),
            pl.when("lived").then(pl.min_horizontal("high_j", "measured_j")).otherwise(measured).alias("high_j"),
        )
    )


def _metered_s(part: Attribution) -> float:
    """Seconds from the first to the last reading that counted."""
    recording, names = part.recording, set(part.devices["signal"].to_list())
    used = [signal.times for signal in recording.signals if signal.name in names and len(signal)]
    if not used:
        return 0.0
    first, last = min(int(times.min()) for times in used), max(int(times.max()) for times in used)
    begin, end = (moment(part.options.get(name), recording.clock) for name in ("begin", "end"))
    first, last = max(first, first if begin is None else begin), min(last, last if end is None else end)
    return max(0.0, float(recording.clock.seconds(last - first)))
