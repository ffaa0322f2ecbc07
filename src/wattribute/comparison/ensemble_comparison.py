"""Two ensembles as the tables that :mod:`wattribute.comparison.groups` compares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import NoDataError, OptionError
from ..model import Attribution, Problem, Recording
from ..model.constants import IDLE
from ..model.question import split
from .ensemble_rows import EnsembleAttribution, key_list
from .groups import VALUES, Comparison, compare_tables
from .paths import PathLike

if TYPE_CHECKING:
    import polars as pl

    from . import Ensemble

COMMAND = "(command)"
_USUAL_PROBLEMS = frozenset(  # problems that all runs on a machine have, and that change no comparison
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
        "no-energy",
    )
)
_DEVICE_KEYS = ("device", "signal", "of", "host")


def compare(
    a: Ensemble | Recording | PathLike | Iterable[PathLike],
    b: Ensemble | Recording | PathLike | Iterable[PathLike],
    by: str | Sequence[str] = ("frame",),
    confidence: float = 0.95,
    **options: Any,
) -> Comparison:
    """Compare two groups of runs key by key.

    ``a`` and ``b`` are ensembles, recordings, paths or patterns; ``by`` are the keys, ``confidence`` is that of the
    intervals. ``options`` are the keyword arguments of :func:`wattribute.attribute`.
    """
    import polars as pl

    keys = key_list(by)
    if "run" in keys:
        raise OptionError("'run' is what is compared, not a key; use one or more of frame, path, process, device")
    from ..engines.cluster import session

    with session():  # one cluster for the runs of both
        sides, options = _read(a, b, options)
        sides, left_out = (sides, []) if options.get("metric") else _metered_alike(*sides)
        first, second = (_attributed(side, keys, options) for side in sides)
    problems = [*left_out, *_marked(first, second), *_unlike(first, second), *_estimates(first, second)]
    if first.unit != second.unit:
        raise OptionError(f"A is in {first.unit} and B in {second.unit}; compare both in seconds with --quantity time")
    rows = _keyed(first, keys), _keyed(second, keys)
    tables = [*rows, _whole(first), _whole(second)]
    if first.unit == "s":  # known exactly
        same = pl.col("energy_j")
        tables = [table.with_columns(time_s=same, low_j=same, high_j=same) for table in tables]
        problems += [problem for problem in first.problems if problem.kind == "no-energy"][:1]
    per = first.question.per or ""
    of = (first, second, first, second)
    a_rows, b_rows, a_whole, b_whole = (_per_unit(table, side) for table, side in zip(tables, of, strict=True))
    comparison = compare_tables(a_rows, b_rows, a_whole, b_whole, keys, confidence, problems, per, first.unit)
    return replace(comparison, per=per)


def _per_unit(table: pl.DataFrame, side: EnsembleAttribution) -> pl.DataFrame:
    """Energies and times of each run per unit of the work that it did, if one was asked for."""
    import polars as pl

    if side.question.per is None:
        return table
    none = [run for run, part in side.parts.items() if not part.count]
    if none:
        raise NoDataError(f"{none[0]} counted no {side.question.per}: there is nothing to divide its energy by")
    divisors = pl.DataFrame({"run": list(side.parts), "_count": [part.count for part in side.parts.values()]})
    joined = table.join(divisors, on="run", how="left", maintain_order="left")
    return joined.with_columns(pl.col(name) / pl.col("_count") for name in VALUES).drop("_count")


def _read(a: Any, b: Any, options: Mapping[str, Any]) -> tuple[tuple[Ensemble, Ensemble], dict[str, Any]]:
    """Both sides as ensembles, and the options that are left when they are read."""
    from . import Ensemble

    if isinstance(a, Ensemble) and isinstance(b, Ensemble):
        return (a, b), dict(options)
    reading, rest = split(options)

    def ensemble(side: Any) -> Ensemble:
        if isinstance(side, Recording):
            return Ensemble.of({str(side.metadata.get("name", "")): side})
        return side if isinstance(side, Ensemble) else Ensemble.read(side, **reading)

    return (ensemble(a), ensemble(b)), rest


def _metered_alike(a: Ensemble, b: Ensemble) -> tuple[tuple[Ensemble, Ensemble], list[Problem]]:
    """Restrict both sides to the devices that every run has; report those left out."""
    metered = [[_metered_names(run.recording) for run in side.runs] for side in (a, b)]
    known = [names for side in metered for names in side if names]  # a run without any is left out later, with a reason
    common = set.intersection(*known) if known else set()
    if all(names == common for names in known):
        return (a, b), []
    extra = [sorted(set().union(*side) - common) for side in metered]
    left_out = [f"{', '.join(names)} of {name}" for name, names in zip("AB", extra, strict=True) if names]
    if not common:
        raise NoDataError(
            f"the runs have no metered device in common ({' and '.join(left_out)}): nothing can be compared"
        )
    text = f"not metered alike: compares {', '.join(sorted(common))}; leaves out {' and '.join(left_out)}"
    return (_only(a, common), _only(b, common)), [Problem("metrics", text)]


def _metered_names(recording: Recording) -> set[str]:
    """The devices whose meters worked, without the rests that follow from them."""
    from ..engines.middle import metered_devices

    try:
        devices = metered_devices(recording)
    except NoDataError:
        return set()
    return {one.device.name for one in devices if not one.parts and one.entry.why not in ("did not move", "was reset")}


def _only(side: Ensemble, names: set[str]) -> Ensemble:
    runs = []
    for run in side.runs:
        recording = run.recording
        signals = tuple(one for one in recording.signals if one.device in names or not one.device)
        devices = tuple(one for one in recording.devices if one.name in names)
        runs.append(replace(run, recording=replace(recording, signals=signals, devices=devices)))
    return replace(side, runs=tuple(runs))


def _attributed(side: Ensemble, keys: list[str], options: Mapping[str, Any]) -> EnsembleAttribution:
    attribution = _alike(side).attribute(keys, **options)
    if attribution.unit == "s":
        attribution = attribution.as_amounts()
    if "measured_j" not in attribution.devices.columns or attribution.devices["measured_j"].null_count():
        units = sorted(set(attribution.devices["unit"].to_list()))
        raise OptionError(f"compare needs joules, not {' and '.join(units)}; choose an energy metric with --metric RE")
    views = attribution.devices.select("run", "host", "device", "signal")
    if views.is_duplicated().any():
        raise OptionError("compare needs one view of each device; give --of once, with a comma for several words")
    return attribution


def _alike(side: Ensemble) -> Ensemble:
    """Rename all commands to one name, so that two of them can be compared."""
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
    run = part.recording.metadata.get("run")
    if not isinstance(run, Mapping) or "start_ticks" not in run or "end_ticks" not in run:
        return None
    return float(part.recording.clock.seconds(run["end_ticks"] - run["start_ticks"]))


def _marked(a: EnsembleAttribution, b: EnsembleAttribution) -> list[Problem]:
    """Runs that were left out, damaged or metered unlike the others; how sensors are in general is for ``info``.

    A problem of several runs is listed once, with their number.
    """
    runs: dict[Problem, list[tuple[str, str]]] = {}
    for side, name in ((a, "A"), (b, "B")):
        for problem in side.problems:
            if problem.kind not in _USUAL_PROBLEMS:
                run = next((run for run in side.parts if problem.message.startswith(f"{run}: ")), "")
                text = problem.message[len(run) + 2 :] if run else problem.message
                runs.setdefault(Problem(problem.kind, text), []).append((name, run))
    problems = []
    for problem, who in runs.items():
        groups = sorted({name for name, _ in who})
        where = f"group {groups[0]}" if len(groups) == 1 else "both groups"
        run = f"{who[0][1]}: " if len(who) == 1 and who[0][1] else ""
        count = f" ({len(who)} runs)" if len(who) > 1 else ""
        problems.append(Problem(problem.kind, f"{where}: {run}{problem.message}{count}"))
    return problems


def _unlike(a: EnsembleAttribution, b: EnsembleAttribution) -> list[Problem]:
    """Devices that only one side has."""
    problems = []
    for mine, other, name in ((a, b, "A"), (b, a, "B")):
        only = sorted(set(mine.devices["device"].to_list()) - set(other.devices["device"].to_list()))
        if only:
            problems.append(
                Problem("metrics", f"only group {name} has {', '.join(only)}: the sides are not metered alike")
            )
    return problems


def _estimates(*sides: EnsembleAttribution) -> list[Problem]:
    """Devices whose energy a model estimated from time and load."""
    names = dict.fromkeys(row["device"] for side in sides for row in side.devices.to_dicts() if row["estimated"])
    if not names:
        return []
    return [
        Problem("estimated", f"{', '.join(names)}: estimated by a model, not measured; trust the time, not the power")
    ]


def _keyed(side: EnsembleAttribution, keys: Sequence[str]) -> pl.DataFrame:
    """energy_j, time_s and bounds per run and key; idle energy is a separate key."""
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
    devices = side.devices if "signal" in keys else side.devices.filter("counted")
    idle = _idle(devices, keys).filter(pl.col("energy_j") != 0)
    return pl.concat([rows, idle], how="vertical_relaxed").select("run", *keys, *VALUES)


def _idle(devices: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Idle energy under the device's keys; the first of the other keys is ``(idle)``."""
    import polars as pl

    named = [key for key in keys if key not in _DEVICE_KEYS]
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


def _whole(side: EnsembleAttribution) -> pl.DataFrame:
    """The measured energy of each run and how long it was metered; of a command's run, what it used while it lived."""
    import polars as pl

    lives = {run: _life_s(part) for run, part in side.parts.items()}
    ends = (pl.col(f"measured_{end}_j") for end in ("low", "high"))
    sums = (
        side.devices.filter("counted")
        .group_by("run", maintain_order=True)
        .agg(
            pl.col("measured_j").sum(),
            pl.col("bounded").all(),
            *(pl.when(end.null_count() == 0).then(end.sum()) for end in ends),
        )
    )
    lived = pl.Series("lived", [lives[run] is not None for run in sums["run"]], dtype=pl.Boolean)
    times = [lives[run] or _metered_s(side.parts[run]) for run in sums["run"]]
    measured = pl.when("bounded").then("measured_j")
    return sums.with_columns(lived, pl.Series("time_s", times, dtype=pl.Float64)).select(
        "run",
        pl.col("measured_j").alias("energy_j"),
        "time_s",
        *(
            pl.when("lived").then(f"measured_{end}_j").otherwise(measured).alias(f"{end}_j")  # an end may cut a reading
            for end in ("low", "high")
        ),
    )


def _metered_s(part: Attribution) -> float:
    """Seconds from the first to the last reading that counted."""
    recording, names = part.recording, set(part.devices["signal"].to_list())
    used = [signal.times for signal in recording.signals if signal.name in names and len(signal)]
    if not used:
        return 0.0
    first, last = min(int(times.min()) for times in used), max(int(times.max()) for times in used)
    begin, end = recording.clock.moment(part.question.begin), recording.clock.moment(part.question.end)
    first, last = max(first, first if begin is None else begin), min(last, last if end is None else end)
    return max(0.0, float(recording.clock.seconds(last - first)))
