"""Runs with a known truth: a thread that computes, copies and waits, each at its own power, read every millisecond."""

from __future__ import annotations

import numpy as np

from wattribute.model import Recording
from wattribute.testing.simulation import Simulation

NAMES = ("main", "dgemm", "copy", "wait")
MEAN_S = {"dgemm": 0.2, "copy": 0.1, "wait": 0.05}
POWER_W = {"dgemm": 400.0, "copy": 150.0, "wait": 60.0}
MAIN_W, IDLE_W, IDLE_S, OUTER_S = 100.0, 50.0, 0.02, 0.01
READ_EVERY_S = 0.001


def run(seed: int = 0, factor: float = 1.0, spread: float = 0.02, order=NAMES, **about) -> Recording:
    """One run; ``factor`` multiplies the time of dgemm, ``order`` numbers the frames, ``about`` goes to metadata."""
    generator = np.random.default_rng(seed)
    seconds = {name: mean * generator.normal(1, spread) for name, mean in MEAN_S.items()}
    seconds["dgemm"] *= factor
    tasks, at = [], IDLE_S + OUTER_S
    for name, length in seconds.items():
        tasks.append((name, at, at + length, POWER_W[name] * generator.normal(1, spread / 2) - IDLE_W))
        at += length
    tasks.append(("main", IDLE_S, at, MAIN_W - IDLE_W))
    machine = Simulation(at + IDLE_S, name=f"run {seed}", **about)
    machine.frames(*((name, "user", "function") for name in order))
    package = machine.device("package 0", IDLE_W).counter(name="package/energy", read_s=READ_EVERY_S)
    return machine.thread(package, tasks, "rank 0", cores=0.0).run().recording


def runs(first: int, number: int, factor: float = 1.0, **options) -> dict[str, Recording]:
    return {f"r{seed}": run(seed, factor, **options) for seed in range(first, first + number)}
