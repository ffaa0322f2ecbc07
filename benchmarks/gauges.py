"""Do the ranges of gauges, ``solve`` and ``calibrate`` keep their word? Real GPUs beside a meter, simulated sensors.

``python benchmarks/gauges.py [--seeds 1000] [--jobs 2] [--each] [--publish]`` prints a table: the shared runs of
real cards, the hard and the 95 % ranges over many seeds of a simulator, method solve over seeds of another world, and a
calibration that is carried from one run to another. Misses are counted, not hidden.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import wattribute
from wattribute.errors import WattributeError
from wattribute.testing.sensors import Load, Simulated, recording

RUNS = ("step-A100", "step-3090", "square-3090")
FLOOR_W, CAP_W = 10.0, 600.0
MOST_ASKED = 3  # times as many seeds are asked as have to be answered


# ---------------------------------------------------------------------------------------------------- simulated worlds


@dataclass(frozen=True)
class World:
    """One seed: the spans, the truth of each frame, the recording and the user's sensor file."""

    seed: int
    what: str
    spans: list[tuple[float, float, str]]
    truth: dict[str, float]
    recording: Any
    sensors: str | None
    sensor: Simulated
    load: Load


def draw_sensor(draw: np.random.Generator) -> Simulated:
    kind = str(draw.choice(["boxcar", "boxcar", "running mean", "low pass"]))
    period = float(draw.choice([0.02, 0.05, 0.1]))
    if kind == "boxcar":
        window = period * float(draw.choice([0.25, 0.5, 1.0]))
    elif kind == "running mean":
        window = float(draw.choice([0.3, 0.5, 1.0]))
    else:
        window = float(draw.choice([0.04, 0.1, 0.2]))
    return Simulated(
        kind,
        period,
        window,
        lag_s=float(draw.uniform(0, 0.03)),
        jitter_s=period * float(draw.choice([0, 0.01, 0.05])),
        poll_s=float(draw.choice([0.005, 0.01, 0.02, 0.25])),
        poll_jitter_s=float(draw.choice([0.0, 0.003])),
        gain=float(draw.uniform(0.92, 1.05)),
        offset_w=float(draw.uniform(-4, 4)),
        noise_w=float(draw.choice([0, 0.3])),
        quantum_w=float(draw.choice([0.01, 0.1, 1.0])),
        generator=draw,
    )


def draw_spans(draw: np.random.Generator, seconds: float) -> tuple[str, list[tuple[float, float, str]]]:
    """Long phases, short pulses at an even or a random pace, or a mixture, with rest between."""
    what = str(draw.choice(["phases", "pulses", "random pulses", "mixture"]))
    spans: list[tuple[float, float, str]] = []
    at = 2.5
    pace = float(draw.uniform(0.02, 0.15))
    duty = float(draw.uniform(0.2, 0.8))
    while at < seconds - 2.5:
        phases = what == "phases" or (what == "mixture" and draw.random() < 0.1)
        if phases:
            length, rest = draw.uniform(0.8, 5), draw.choice([0.0, draw.uniform(0.05, 2)])
        elif what == "pulses":
            length, rest = pace * duty, pace * (1 - duty)
        else:
            length, rest = draw.uniform(0.005, 0.15), draw.choice([0.0, draw.uniform(0.001, 0.1)])
        spans.append((at, at + length, str(draw.choice(["a", "b", "c"])) if what != "pulses" else "a"))
        at += length + rest
    return what, spans


def flicker(draw: np.random.Generator, times: np.ndarray) -> np.ndarray:
    """What a span's power does inside: nothing, an even wave or bursts, and a slow drift (as a factor)."""
    middle = (times[:-1] + times[1:]) / 2
    what, depth, pace = (
        str(draw.choice(["even", "bursts", "none", "none"])),
        draw.uniform(0.1, 0.5),
        draw.uniform(0.03, 0.4),
    )
    if what == "even":
        wave = np.where((middle / pace) % 1 < 0.5, 1 + depth, 1 - depth)
    elif what == "bursts":
        edges = np.cumsum(draw.exponential(pace, int(2 * middle[-1] / pace) + 10))
        wave = np.where(np.searchsorted(edges, middle) % 2, 1 + depth, 1 - depth)
    else:
        wave = np.ones(len(middle))
    return wave * (1 + float(draw.choice([0, 0.1])) * (middle / middle[-1] - 0.5))


def draw_world(seed: int, folder: Path) -> World:
    draw = np.random.default_rng(seed)
    seconds = float(draw.uniform(12, 25))
    what, spans = draw_spans(draw, seconds)
    watts = {name: float(draw.uniform(60, 420)) for name in "abc"}
    idle = float(draw.uniform(20, 120))
    spread = float(draw.choice([0, 0.1]))
    drawn = [
        (s, e, watts[name] * float(np.clip(1 + spread * draw.standard_normal(), 0.6, 1.4))) for s, e, name in spans
    ]
    load = Load.of_spans(
        drawn, idle, 0.0, spans[-1][1] + 3, ramp_s=float(draw.choice([0, 0.005, 0.02])),
        noise=float(draw.choice([0, 0.05])), generator=draw,
    )  # fmt: skip
    load = Load(load.times, np.clip(load.watts * flicker(draw, load.times), FLOOR_W, CAP_W))
    sensor = draw_sensor(draw)
    times, readings = sensor.readings(load)
    truth = {name: 0.0 for _, _, name in spans}
    for start, end, name in spans:
        truth[name] += float(load.between(start, end))
    made = recording(spans, [("simulated power", times, readings)])
    file = folder / "sensor.toml"
    file.write_text(sensor_file(sensor, draw), "utf-8")
    return World(seed, f"{sensor.kind}, {what}", spans, truth, made, str(file), sensor, load)


def sensor_file(sensor: Simulated, draw: np.random.Generator) -> str:
    """What a user knows: each quantity within limits that contain it, wherever in them it lies."""

    def within(value: float, width: float, least: float | None = None) -> list[float]:
        at = draw.uniform(0.05, 0.95)
        low, high = value - at * width, value + (1 - at) * width
        low = low if least is None else max(low, least)
        return [low, (low + high) / 2, high]

    tight = float(draw.choice([0.1, 0.4]))
    rows = {
        "field": "simulated",
        "kind": sensor.kind,
        "period_s": within(sensor.period_s, 0.04 * sensor.period_s),
        "window_s": within(sensor.window_s, tight * sensor.window_s),
        "lag_s": within(sensor.lag_s, 0.02),
        "gain": within(sensor.gain, 0.06),
        "offset_w": within(sensor.offset_w, 3.0),
        "floor_w": FLOOR_W,
        "cap_w": CAP_W,
        "source": "simulated",
    }
    return "[[sensor]]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in rows.items())


@dataclass
class Score:
    """Ranges that were asked for, those that hold, and how wide they are."""

    asked: int = 0
    held: int = 0
    hard: int = 0
    widths: list[float] | None = None

    def add(self, truth: float, row: dict[str, Any]) -> tuple[bool, bool]:
        soft = row["self_low_j"] <= truth <= row["self_high_j"]
        hard = row["self_hard_low_j"] <= truth <= row["self_hard_high_j"]
        self.asked += 1
        self.held += soft
        self.hard += hard
        self.widths = [*(self.widths or []), (row["self_high_j"] - row["self_low_j"]) / 2 / truth]
        return soft, hard


def ranges_of(seed: int) -> tuple[World, list[dict[str, Any]]]:
    with tempfile.TemporaryDirectory() as folder:
        world = draw_world(seed, Path(folder))
        rows = wattribute.attribute(world.recording, sensors=world.sensors).rows.to_dicts()
    return replace(world, recording=None), rows


def simulated_ranges(seeds: Iterable[tuple[World, list[dict[str, Any]]]], each: bool) -> list[str]:
    total, kinds = Score(), {}
    count = seeds_soft = seeds_hard = 0
    for world, rows in seeds:
        good = [True, True]
        for row in rows:
            truth = world.truth[row["frame"]]
            one = kinds.setdefault(world.what, Score()).add(truth, row)
            total.add(truth, row)
            good = [good[0] and one[0], good[1] and one[1]]
            if each and not all(one):
                print(
                    f"seed {world.seed} {world.what} {row['frame']}: truth {truth:.1f}, 95 % {row['self_low_j']:.1f} … "
                    f"{row['self_high_j']:.1f}, hard {row['self_hard_low_j']:.1f} … {row['self_hard_high_j']:.1f}; "
                    f"{world.sensor}"
                )
        count += 1
        seeds_soft += good[0]
        seeds_hard += good[1]
    lines = [
        f"| {what} | {score.asked} | {score.held / score.asked:.1%} | {score.hard / score.asked:.1%} "
        f"| ±{np.median(score.widths or [0]):.0%} |"
        for what, score in sorted(kinds.items())
    ]
    head = [
        "| sensor, load | rows | 95 % range holds | hard range holds | median half-width |",
        "|---|---|---|---|---|",
    ]
    last = (
        f"| all {count} seeds | {total.asked} | {total.held / total.asked:.1%} of rows, {seeds_soft / count:.1%} of "
        f"seeds | {total.hard / total.asked:.1%} of rows, {seeds_hard} of {count} seeds "
        f"| ±{np.median(total.widths or [0]):.0%} |"
    )
    return [*head, *lines, last]


# ---------------------------------------------------------------------------------------------------------- real cards


def real_runs(folder: Path, **options: Any) -> list[str]:
    os.environ["TZ"] = "Europe/London"
    time.tzset()
    lines = [
        "| run | phase | meter | value | 95 % range | holds | hard range | holds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for run in RUNS:
        truth = json.loads((folder / run / "truth.json").read_text())["energy_j"]
        found = wattribute.attribute(folder / run / "spans.csv", signals=folder / run / "smi.csv", **options)
        for row in sorted(found.rows.iter_rows(named=True), key=lambda row: str(row["frame"])):
            want = truth[row["frame"]]
            low, high, hard_low, hard_high = (row[f"self_{end}_j"] for end in ("low", "high", "hard_low", "hard_high"))
            half = (high - low) / (high + low)
            held = ["yes" if low <= want <= high else "NO", "yes" if hard_low <= want <= hard_high else "NO"]
            lines.append(
                f"| {run} | {row['frame']} | {want:.0f} J | {row['self_j']:.0f} J "
                f"| {low:.0f} … {high:.0f} J (±{half:.0%}) | {held[0]} "
                f"| {hard_low:.0f} … {hard_high:.0f} J | {held[1]} |"
            )
    return lines


# --------------------------------------------------------------------------------------------------------------- solve


def draw_short(seed: int, folder: Path) -> World:
    """Spans shorter than the sensor's window or period, at an even or an uneven pace."""
    draw = np.random.default_rng(10_000 + seed)
    seconds = float(draw.uniform(10, 60))
    even, names = draw.random() < 0.35, ["a", "b", "c"][: int(draw.integers(1, 4))]
    pace, duty = float(draw.uniform(0.03, 0.25)), float(draw.uniform(0.25, 0.8))
    period = float(draw.choice([0.02, 0.05, 0.1]))
    window = period * float(draw.choice([0.25, 0.5, 1.0])) if draw.random() < 0.85 else period * 3
    if draw.random() < 0.12:  # in step with the window, so that every one sees the same mixture
        even, names, window = True, names[:1], max(window, period)
        pace = window / int(draw.integers(1, 3)) * float(draw.choice([1.0, 1.001]))
    spans: list[tuple[float, float, str]] = []
    at = 2.0
    while at < seconds - 1:
        name = names[len(spans) % len(names)] if even else str(draw.choice(names))
        length = pace * duty * (1 if even else float(draw.uniform(0.5, 1.8)))
        rest = pace * (1 - duty) * (1 if even else float(draw.uniform(0.2, 2)))
        spans.append((at, at + length, name))
        at += length + rest
    watts = {name: float(draw.uniform(100, 420)) for name in names}
    spread = float(draw.choice([0, 0.05, 0.1]))
    drawn = [
        (s, e, watts[name] * float(np.clip(1 + spread * draw.standard_normal(), 0.6, 1.4))) for s, e, name in spans
    ]
    idle = float(draw.uniform(20, 100))
    ramp = float(draw.choice([0, 0.003, 0.01]))
    load = Load.of_spans(drawn, idle, 0.0, spans[-1][1] + 2, ramp_s=ramp, step_s=0.0005)
    load = Load(load.times, np.clip(load.watts, FLOOR_W, CAP_W))
    sensor = Simulated(
        "boxcar" if window <= period else "running mean", period, window, lag_s=float(draw.uniform(0, 0.02)),
        jitter_s=period * float(draw.choice([0, 0.02])), poll_s=float(draw.choice([0.005, 0.01])),
        gain=float(draw.uniform(0.94, 1.02)), offset_w=float(draw.uniform(-2, 2)), noise_w=float(draw.choice([0, 0.5])),
        quantum_w=float(draw.choice([0.01, 0.1])), generator=draw,
    )  # fmt: skip
    times, readings = sensor.readings(load)
    truth = dict.fromkeys(names, 0.0)
    for start, end, name in spans:
        truth[name] += float(load.between(start, end))
    rows = {
        "field": "simulated", "kind": sensor.kind, "period_s": period,
        "window_s": _around(draw, window, 0.1 * window), "lag_s": _around(draw, sensor.lag_s, 0.012),
        "gain": _around(draw, sensor.gain, 0.03), "offset_w": _around(draw, sensor.offset_w, 2.0),
        "floor_w": FLOOR_W, "cap_w": CAP_W, "source": "simulated",
    }  # fmt: skip
    file = folder / "short.toml"
    file.write_text(
        "[[sensor]]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in rows.items()), "utf-8"
    )
    made = recording(spans, [("simulated power", times, readings)])
    return World(
        seed, f"{'even' if even else 'uneven'}, ramp {ramp * 1e3:g} ms", spans, truth, made, str(file), sensor, load
    )


def _around(draw: np.random.Generator, value: float, width: float) -> list[float]:
    """Limits that contain a value, which lies anywhere in them but for 2.5 % of the draws on each side."""
    at = float(np.clip(draw.normal(0.5, 0.2), 0.02, 0.98))
    return [value - at * width, value + (0.5 - at) * width, value + (1 - at) * width]


def best_error(world: World) -> float:
    """The relative standard error of least squares that know window and lag, of the worst frame."""
    sensor, load = world.sensor, world.load
    sensor = Simulated(**{**sensor.__dict__, "generator": np.random.default_rng(1)})
    moments, values = sensor.updates(load)
    until = moments - sensor.lag_s
    busy = (until - sensor.window_s > world.spans[0][0]) & (
        until < world.spans[-1][1]
    )  # rest before and after tells less
    until, values = until[busy], values[busy]
    names = list(world.truth)
    columns = []
    for name in names:
        starts, ends = (np.array([s[i] for s in world.spans if s[2] == name]) for i in (0, 1))
        edges = np.sort(np.concatenate([starts, ends]))
        spent = np.concatenate(
            [[0.0], np.cumsum(np.where(np.arange(len(edges)) % 2 == 0, np.diff(edges, append=edges[-1]), 0))]
        )

        def before(at: np.ndarray, edges: np.ndarray = edges, spent: np.ndarray = spent) -> np.ndarray:
            j = np.searchsorted(edges, at, side="right")
            return spent[j - (j % 2)] + np.where(j % 2 == 1, at - edges[np.maximum(j - 1, 0)], 0.0)

        columns.append((before(until) - before(until - sensor.window_s)) / sensor.window_s)
    matrix = np.stack([*columns, 1 - np.sum(columns, axis=0)], axis=1)
    power, *_ = np.linalg.lstsq(matrix, values, rcond=1e-8)
    residual = values - matrix @ power
    inverse = np.linalg.pinv(matrix.T @ matrix, rcond=1e-8)
    variance = max(float(residual @ residual) / max(len(values) - matrix.shape[1], 1), 0.01)
    error = np.sqrt(np.maximum(np.diag(inverse), 0) * variance)[:-1]
    rank = np.linalg.matrix_rank(matrix, tol=1e-3 * np.sqrt(len(values)))
    return float(np.inf) if rank < matrix.shape[1] else float((error / np.maximum(power[:-1], 1.0)).max())


def solved(seed: int) -> tuple[World, float, str, list[dict[str, Any]]]:
    """A world, the error of the best estimate of it, why solve refuses it, else its rows."""
    with tempfile.TemporaryDirectory() as folder:
        world = draw_short(seed, Path(folder))
        best, slim = best_error(world), replace(world, recording=None)
        try:
            found = wattribute.attribute(world.recording, sensors=world.sensors, method="solve")
        except WattributeError as error:
            return slim, best, str(error).split(": ", 1)[1], []
    return slim, best, "", found.rows.to_dicts()


def simulated_solve(
    seeds: Iterable[tuple[World, float, str, list[dict[str, Any]]]], wanted: int, each: bool
) -> list[str]:
    """Seeds until so many are answered."""
    counts: Counter[str] = Counter()
    errors: list[float] = []
    halves: list[float] = []
    covered: list[bool] = []
    for world, best, refused, rows in seeds:
        kind = "informative" if best < 0.05 else "undetermined" if best > 0.5 else "between"
        counts[kind] += 1
        counts["asked"] += 1
        if refused:
            counts["refused: " + refused[:34]] += 1
            continue
        counts["answered"] += 1
        counts[f"answered, {kind}"] += 1
        for row in rows:
            truth = world.truth[row["frame"]]
            if truth < 0.05 * sum(world.truth.values()):
                continue
            good = row["self_low_j"] <= truth <= row["self_high_j"]
            covered.append(good)
            errors.append(abs(row["self_j"] - truth) / truth)
            halves.append((row["self_high_j"] - row["self_low_j"]) / 2 / truth)
            if each and not good:
                print(
                    f"solve seed {world.seed} {world.what} {row['frame']}: truth {truth:.1f}, {row['self_j']:.1f} "
                    f"({row['self_low_j']:.1f} … {row['self_high_j']:.1f}), best {best:.1%}, {world.sensor}"
                )
        if counts["answered"] == wanted:
            break
    share = counts["answered, informative"] / max(counts["informative"], 1)
    return [
        "| what | figure |",
        "|---|---|",
        f"| seeds asked, answered | {counts['asked']}, {counts['answered']} |",
        f"| intervals that hold the truth | {np.mean(covered):.1%} of {len(covered)} |",
        f"| median error | {np.median(errors):.1%} (90 %: {np.percentile(errors, 90):.1%}) |",
        f"| median half-width | {np.median(halves):.1%} |",
        f"| answered of the informative seeds | {share:.0%} of {counts['informative']} |",
        f"| answered of the undetermined seeds | {counts['answered, undetermined']} of {counts['undetermined']} |",
        *(f"| {name} | {count} |" for name, count in counts.most_common() if name.startswith("refused")),
    ]


# ------------------------------------------------------------------------------------------------------------ calibrate


def carried_over(folder: Path) -> list[str]:
    """Calibrated on one run of a card beside a meter, asked for the energy of another run of it."""
    os.environ["TZ"] = "Europe/London"
    time.tzset()
    step, square = folder / "step-3090", folder / "square-3090"
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "sensor.toml"
        made = wattribute.calibrate(
            step / "spans.csv", signals=step / "smi.csv", meter=step / "meter.csv.gz", output=file
        )
        found = wattribute.attribute(square / "spans.csv", signals=square / "smi.csv", sensors=file)
    truth = sum(json.loads((square / "truth.json").read_text())["energy_j"].values())
    total = float(found.rows["self_j"].sum())
    return [
        f"step-3090 beside its meter: {made.summary}",
        "",
        f"square-3090, on + off: meter {truth:.0f} J, wattribute {total:.0f} J ({total / truth - 1:+.1%})",
    ]


def published(page: str, lines: Sequence[str]) -> str:
    """The page with these tables and sentences in place of those that begin alike."""
    blocks = [block.split("\n") for block in page.split("\n\n")]
    for new in ("\n".join(lines)).split("\n\n"):
        first = new.split("\n")[0]
        begins = first if first.startswith("|") else first.partition(":")[0] + ":"
        blocks = [new.split("\n") if block[0].startswith(begins) else block for block in blocks]
    return "\n\n".join("\n".join(block) for block in blocks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--truth", type=Path, default=Path(__file__).parents[2] / "shared" / "truth-gpu")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--each", action="store_true", help="print every miss")
    parser.add_argument("--only", choices=["ranges", "solve", "real"])
    parser.add_argument("--publish", action="store_true", help="put the tables into docs/sensors.md")
    given = parser.parse_args()
    page = Path(__file__).parents[1] / "docs" / "sensors.md"

    def show(title: str, lines: Sequence[str]) -> None:
        print("\n".join(["", title, "", *lines]), flush=True)
        if given.publish:
            page.write_text(published(page.read_text("utf-8"), lines).rstrip("\n") + "\n", "utf-8")

    if (not given.only or given.only == "real") and given.truth.is_dir():
        show("Real cards beside a meter", real_runs(given.truth))
        show("Calibrated on one run, asked about another", carried_over(given.truth))
    with ProcessPoolExecutor(given.jobs, multiprocessing.get_context("spawn")) as pool:
        first, last = given.first, given.first + given.seeds
        if not given.only or given.only == "ranges":
            lines = simulated_ranges(pool.map(ranges_of, range(first, last), chunksize=5), given.each)
            show("Simulated sensors: ranges", lines)
        if not given.only or given.only == "solve":
            asked = pool.map(solved, range(first, first + MOST_ASKED * given.seeds), chunksize=5)
            lines = simulated_solve(asked, given.seeds, given.each)
            show("Simulated sensors: method solve", lines)
        pool.shutdown(cancel_futures=True)


if __name__ == "__main__":
    main()
