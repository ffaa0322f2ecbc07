"""Does ``method="solve"`` keep its word? Simulated counters with a known truth, over many seeds.

A device runs spans that are shorter than its counter's period. Duty cycle, lag, jitter of the counter's updates and of
the work, polling, resolution, noise, spread of power between calls, slow drift, evenly repeating or random work differ
from seed to seed; so does what breaks the method's assumptions: a counter that smears, a tenant nobody sees, a frame
that draws more from some moment on. A chip's power follows its code within microseconds, so the truth is what was
drawn while each span ran. Run it with ``python benchmarks/solve.py [--seeds 300] [--each]``.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from wattribute import Recording, attribute
from wattribute.errors import NoDataError
from wattribute.model import Clock, Device, Frames, Link, Locations, Nodes, Processes, Signal, Spans, SpanTable

PERIOD_S = 0.1
TICKS_PER_S = 10_000_000
STEP_S = PERIOD_S / 200  # of the integration of what the sensor sees
MATTERS = 0.05  # of the energy: frames with less are not judged
BREAKS = ("none", "none", "none", "smears", "tenant", "phase")


@dataclass
class World:
    """One seed's circumstances; times are parts of the counter's period."""

    seed: int
    duty: float = 0.0
    lag: float = 0.0
    poll: float = 0.0
    jitter: float = 0.0
    noise: float = 0.0
    resolution_j: float = 0.0
    spread: float = 0.0
    drift: float = 0.0
    seconds: float = 0.0
    even: bool = False
    wobble: float = 0.0
    breaks: str = "none"
    power_w: np.ndarray = field(default_factory=lambda: np.empty(0))
    generator: np.random.Generator = field(default_factory=np.random.default_rng)

    @classmethod
    def drawn(cls, seed: int) -> World:
        draw = np.random.default_rng(seed)
        return cls(
            seed,
            duty=draw.uniform(0.15, 0.95),
            lag=draw.uniform(0, 1.5),
            poll=float(draw.choice([0.02, 0.05, 0.1, 0.2, 0.5])),
            jitter=float(draw.choice([0, 0.01, 0.03])),
            noise=float(draw.choice([0, 0.005, 0.02])),
            resolution_j=float(draw.choice([0.001, 0.1, 1.0])),
            spread=float(draw.choice([0, 0.05, 0.15])),
            drift=float(draw.choice([0, 0.03, 0.1])),
            seconds=draw.uniform(10, 120),
            even=bool(draw.random() < 0.4),
            wobble=float(draw.choice([0.002, 0.02, 0.1])),
            breaks=str(draw.choice(BREAKS)),
            power_w=draw.uniform(60, 400, int(draw.integers(2, 7))),
            generator=draw,
        )


def work(world: World) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Starts, ends (ticks) and frames of spans, one after another."""
    draw, frames = world.generator, len(world.power_w)
    mean_s = PERIOD_S * 10 ** draw.uniform(-1.3, -0.1, frames)
    count = int(world.seconds / (mean_s.mean() / world.duty)) + frames
    frame = np.arange(count) % frames if world.even else draw.integers(frames, size=count)
    pause_s = mean_s.mean() * (1 / world.duty - 1)
    if world.even:
        length, pause = np.exp(draw.normal(0, world.wobble, (2, count)))
    else:
        length, pause = np.exp(draw.normal(0, 0.3, count)), draw.exponential(size=count)
    lengths, pauses = mean_s[frame] * length, pause_s * pause
    start = np.cumsum(lengths + pauses) - lengths
    ticks = np.round(np.stack([start, start + lengths]) * TICKS_PER_S).astype(np.int64)
    return ticks[0], ticks[1], frame.astype(np.int32)


def drawn_power(world: World, start: np.ndarray, end: np.ndarray, frame: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Energy drawn so far, on a fine grid: (seconds, joules)."""
    draw = world.generator
    begin, finish = start / TICKS_PER_S, end / TICKS_PER_S
    idle_w = draw.uniform(20, 60)
    wave = 1 + world.drift * np.sin(3 * np.pi * begin / world.seconds)
    power = world.power_w[frame] * np.exp(draw.normal(0, world.spread, len(frame))) * wave
    if world.breaks == "phase":
        power = np.where((frame == 0) & (begin > world.seconds * draw.uniform(0.3, 0.7)), power * 1.5, power)
    grid = np.arange(0, finish[-1] + PERIOD_S, STEP_S)
    extra = np.stack([np.zeros(len(power)), (finish - begin) * (power - idle_w)], axis=1).ravel()
    joules = np.interp(grid, np.stack([begin, finish], axis=1).ravel(), np.cumsum(extra)) + idle_w * grid
    if world.breaks == "tenant":
        turns = np.cumsum(draw.exponential(0.4, int(grid[-1] / 0.2) + 9))
        there = np.searchsorted(turns, grid[:-1]) % 2
        joules = joules + np.append(0, np.cumsum(there * draw.uniform(30, 100) * STEP_S))
    return grid, joules


def counter(world: World, grid: np.ndarray, joules: np.ndarray) -> Signal:
    """What polling the counter gives: late, noisy, in steps."""
    draw = world.generator
    seen = joules
    if world.breaks == "smears":  # a first-order low pass
        keep = np.exp(-STEP_S / (PERIOD_S * draw.uniform(0.2, 1.0)))
        power, out = np.diff(joules), np.empty(len(joules) - 1)
        last = power[0]
        for i, value in enumerate(power.tolist()):
            last = keep * last + (1 - keep) * value
            out[i] = last
        seen = np.append(0, np.cumsum(out))
    steps = PERIOD_S * (1 + draw.normal(0, world.jitter, int(grid[-1] / PERIOD_S) + 20))
    updates = np.cumsum(steps)
    updates = updates[updates < grid[-1]]
    true = np.interp(updates - world.lag * PERIOD_S, grid, seen)
    told = np.cumsum(np.diff(true, prepend=0) * (1 + draw.normal(0, world.noise, len(true))))
    polls = np.arange(updates[0], grid[-1], world.poll * PERIOD_S)
    polls += draw.uniform(0, 0.1 * world.poll * PERIOD_S, len(polls))
    values = np.floor(told[np.searchsorted(updates, polls, side="right") - 1] / world.resolution_j).astype(np.int64)
    times = np.round(polls * TICKS_PER_S).astype(np.int64)
    scale = Fraction(world.resolution_j).limit_denominator(1000)
    return Signal("energy", "counter", "J", times, values, scale, "node", "GPU 0", stale=True)


def simulated(world: World) -> tuple[Recording, np.ndarray]:
    """A recording and the joules each frame truly drew between the first and the last change of the counter."""
    start, end, frame = work(world)
    grid, joules = drawn_power(world, start, end, frame)
    signal = counter(world, grid, joules)
    changes = signal.times[1:][np.diff(signal.values) > 0] / TICKS_PER_S - world.lag * PERIOD_S
    low, high = changes[0], changes[-1]
    at = [np.interp(np.clip(column / TICKS_PER_S, low, high), grid, joules) for column in (start, end)]
    truth = np.bincount(frame, weights=at[1] - at[0], minlength=len(world.power_w))
    none = np.full(len(start), -1, np.int64)
    spans = Spans(start, end, frame, none, np.zeros(len(start), np.int32), np.zeros(len(start), bool))
    recording = Recording(
        clock=Clock(ticks_per_s=TICKS_PER_S),
        frames=Frames.of([(f"frame {i}", "cuda", "kernel") for i in range(len(world.power_w))]),
        nodes=Nodes.of([(0, "node", "node")]),
        processes=Processes.of([(0, "process", "process", 0)]),
        locations=Locations.of([(0, "stream", "gpu", 0)]),
        spans=SpanTable({0: spans}),
        signals=(signal,),
        devices=(Device("GPU 0", "gpu", "node"),),
        topology=(Link("node", "GPU 0", (0,), "simulated"),),
    )
    return recording, truth


@dataclass
class Judged:
    world: World
    refused: str = ""
    errors: np.ndarray = field(default_factory=lambda: np.empty(0))
    linear: np.ndarray = field(default_factory=lambda: np.empty(0))
    covered: np.ndarray = field(default_factory=lambda: np.empty(0))


def judged(seed: int) -> Judged:
    world = World.drawn(seed)
    recording, truth = simulated(world)
    try:
        found = attribute(recording, method="solve")
    except NoDataError as error:
        return Judged(world, str(error).split(": ", 1)[1])
    book = found.devices.to_dicts()[0]
    assert abs(book["attributed_j"] + book["idle_j"] - book["measured_j"]) <= 1e-9 * book["measured_j"]
    matters = truth > MATTERS * truth.sum()

    def column(rows, name: str) -> np.ndarray:
        told = dict(zip(rows["frame"], rows[name], strict=True))
        return np.array([told.get(f"frame {i}", 0.0) for i in np.flatnonzero(matters)])

    truth = truth[matters]
    rows, straight = found.rows, attribute(recording, bounds=False).rows
    inside = (column(rows, "self_low_j") <= truth) & (truth <= column(rows, "self_high_j"))
    errors, linear = (np.abs(column(table, "self_j") / truth - 1) for table in (rows, straight))
    return Judged(world, "", errors, linear, inside)


def report(name: str, some: list[Judged]) -> None:
    answered = [one for one in some if not one.refused]
    if not answered:
        print(f"{name:24s} {len(some):4d} seeds, none answered")
        return
    errors, linear, covered = (
        np.concatenate([getattr(one, part) for one in answered]) for part in ("errors", "linear", "covered")
    )
    print(
        f"{name:24s} {len(some):4d} seeds, {len(answered):3d} answered: error median {np.median(errors):5.1%}, "
        f"9 of 10 below {np.quantile(errors, 0.9):5.1%}, worst {errors.max():5.1%} "
        f"(linear: median {np.median(linear):5.1%}); 95 % intervals hold {covered.mean():.1%}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--each", action="store_true", help="a line per seed")
    options = parser.parse_args()
    results = []
    for seed in range(options.first, options.first + options.seeds):
        results.append(judged(seed))
        if options.each:
            one = results[-1]
            told = one.refused or f"errors {np.round(one.errors, 3)} held {one.covered.astype(int)}"
            print(f"{seed:4d} {one.world.breaks:7s} duty {one.world.duty:.2f} poll {one.world.poll}: {told}")
    report("all", results)
    for word in dict.fromkeys(BREAKS):
        report(f"  breaks: {word}", [one for one in results if one.world.breaks == word])
    for low, high in ((0.15, 0.4), (0.4, 0.7), (0.7, 0.95)):
        report(f"  duty {low} … {high}", [one for one in results if low <= one.world.duty < high])
    reasons = [one.refused.split(";")[0] for one in results if one.refused]
    print("refusals:")
    for words in ("explains", "lag cannot", "smears", "power is known", "negative", "changed"):
        print(f"  {sum(words in reason for reason in reasons):4d} … {words} …")


if __name__ == "__main__":
    main()
