"""Runs with a known truth: a thread that computes, copies and waits, each at its own power, read every millisecond."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tests.recordings import spans
from wattribute.model import Clock, Device, Frames, Link, Locations, Nodes, Processes, Recording, Signal, SpanTable

NAMES = ("main", "dgemm", "copy", "wait")
MEAN_S = {"dgemm": 0.2, "copy": 0.1, "wait": 0.05}
POWER_W = {"dgemm": 400.0, "copy": 150.0, "wait": 60.0}
MAIN_W, IDLE_W, IDLE_S, OUTER_S = 100.0, 50.0, 0.02, 0.01
READ_EVERY = 1_000_000  # ticks of 1 ns


def run(seed: int = 0, factor: float = 1.0, spread: float = 0.02, order=NAMES, **about) -> Recording:
    """One run; ``factor`` multiplies the time of dgemm, ``order`` numbers the frames, ``about`` goes to metadata."""
    generator = np.random.default_rng(seed)
    seconds = {name: mean * generator.normal(1, spread) for name, mean in MEAN_S.items()}
    seconds["dgemm"] *= factor
    number = {name: order.index(name) for name in NAMES}
    at = start = round(IDLE_S * 1e9)
    pieces = [(0, at, IDLE_W), (at, at + round(OUTER_S * 1e9), MAIN_W)]
    at += round(OUTER_S * 1e9)
    inner = []
    for name, length in seconds.items():
        end = at + round(length * 1e9)
        inner.append((at, end, number[name], 0))
        pieces.append((at, end, POWER_W[name] * generator.normal(1, spread / 2)))
        at = end
    pieces.append((at, at + round(IDLE_S * 1e9), IDLE_W))
    length = at + round(IDLE_S * 1e9)
    times = np.append(np.arange(0, length, READ_EVERY), length)
    energy = sum(np.clip(times - a, 0, b - a) * watts / 1e3 for a, b, watts in pieces)  # µJ
    return Recording(
        clock=Clock(length_ticks=length),
        frames=Frames.of([(name, "user", "function") for name in order]),
        nodes=Nodes.of([(0, "n01", "node")]),
        processes=Processes.of([(0, "rank 0", "process", 0)]),
        locations=Locations.of([(0, "main thread", "cpu", 0)]),
        spans=SpanTable({0: spans([(start, at, number["main"], -1), *inner])}),
        signals=(
            Signal(
                "package/energy",
                "counter",
                "J",
                times,
                np.rint(energy).astype(np.int64),
                Fraction(1, 10**6),
                "n01",
                "package 0",
            ),
        ),
        devices=(Device("package 0", "cpu", "n01"),),
        topology=(Link("n01", "package 0", (0,), "made so"),),
        metadata={"name": f"run {seed}", **about},
    )


def runs(first: int, number: int, factor: float = 1.0, **options) -> dict[str, Recording]:
    return {f"r{seed}": run(seed, factor, **options) for seed in range(first, first + number)}
