"""Fits a small neural network to a made-up function, in NumPy; the same work whatever the machine.

STEPS of gradient descent (Adam) on 2,048 points of 16 dimensions; /results/metrics.json has the seconds and the loss.
"""

import json
import os
import time
from pathlib import Path

import numpy as np

POINTS, WIDTH, HIDDEN = 2048, 16, 64
RATE, DECAY_1, DECAY_2 = 3e-3, 0.9, 0.999


def data(random):
    points = random.normal(size=(POINTS, WIDTH))
    return points, (np.sin(points[:, :4].sum(axis=1)) + 0.1 * (points**2).mean(axis=1))[:, None]


def gradients(weights, points, truth):
    """The mean squared error and its gradient, by hand: one hidden layer of tanh."""
    first, bias, second, offset = weights
    hidden = np.tanh(points @ first + bias)
    error = hidden @ second + offset - truth
    slope = 2 * error / len(points)
    inner = (slope @ second.T) * (1 - hidden**2)
    found = points.T @ inner, inner.sum(axis=0), hidden.T @ slope, slope.sum(axis=0)
    return float((error**2).mean()), found


def main():
    steps, random = int(os.environ.get("STEPS", "10000")), np.random.default_rng(1)
    points, truth = data(random)
    weights = [random.normal(size=(WIDTH, HIDDEN)) / WIDTH**0.5, np.zeros(HIDDEN),
               random.normal(size=(HIDDEN, 1)) / HIDDEN**0.5, np.zeros(1)]  # fmt: skip
    means, squares = [np.zeros_like(w) for w in weights], [np.zeros_like(w) for w in weights]
    began = time.perf_counter()
    first_loss = loss = None
    for step in range(1, steps + 1):
        loss, found = gradients(weights, points, truth)
        first_loss = loss if first_loss is None else first_loss
        for w, m, s, g in zip(weights, means, squares, found, strict=True):
            m += (1 - DECAY_1) * (g - m)
            s += (1 - DECAY_2) * (g * g - s)
            w -= RATE * (m / (1 - DECAY_1**step)) / (np.sqrt(s / (1 - DECAY_2**step)) + 1e-8)
        if step % max(1, steps // 100) == 0 or step == steps:
            print(f"\rstep {step}/{steps} loss {loss:.5f}", end="", flush=True)
    print()
    took = time.perf_counter() - began
    results = {
        "benchmark": "synthetic-regression",
        "time": took,
        "steps": steps,
        "loss": loss,
        "first_loss": first_loss,
    }
    Path("/results").mkdir(exist_ok=True)
    Path("/results/metrics.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main()
