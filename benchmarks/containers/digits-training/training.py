"""Trains a classifier of made-up digits by mini-batches, epoch after epoch: on a GPU by PyTorch, else in NumPy.

EPOCHS over 6,000 pictures of 16 × 16 points; /results/metrics.json has the seconds and the accuracy on 1,000 others.
"""

import json
import os
import time
from pathlib import Path

import numpy as np

SIDE, CLASSES, HIDDEN, BATCH, RATE = 16, 10, 128, 100, 0.1


def pictures(random, patterns, count):
    """Noisy, shifted copies of ten patterns, and which pattern each is."""
    kinds = random.integers(0, CLASSES, count)
    shifts = random.integers(-1, 2, (count, 2))
    shifted = np.stack([np.roll(patterns[kind], shift, (0, 1)) for kind, shift in zip(kinds, shifts, strict=True)])
    noisy = shifted + random.normal(scale=0.5, size=shifted.shape)
    return noisy.reshape(count, -1).astype(np.float32), kinds


class NumpyNetwork:
    """One hidden layer of rectifiers, softmax, plain gradient descent."""

    library = "numpy"

    def __init__(self, random):
        self.first = (random.normal(size=(SIDE * SIDE, HIDDEN)) / SIDE).astype(np.float32)
        self.second = (random.normal(size=(HIDDEN, CLASSES)) / HIDDEN**0.5).astype(np.float32)

    def step(self, points, kinds):
        hidden = np.maximum(points @ self.first, 0)
        scores = hidden @ self.second
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        chances[np.arange(len(kinds)), kinds] -= 1
        slope = chances / len(kinds)
        inner = (slope @ self.second.T) * (hidden > 0)
        self.second -= RATE * hidden.T @ slope
        self.first -= RATE * points.T @ inner

    def accuracy(self, points, kinds):
        predicted = (np.maximum(points @ self.first, 0) @ self.second).argmax(axis=1)
        return float((predicted == kinds).mean())


class TorchNetwork:
    """The same on the first GPU."""

    library = "torch"

    def __init__(self, torch):
        self.torch = torch
        layers = torch.nn.Linear(SIDE * SIDE, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, CLASSES)
        self.network = torch.nn.Sequential(*layers).cuda()
        self.optimiser = torch.optim.SGD(self.network.parameters(), RATE)

    def step(self, points, kinds):
        points, kinds = self.torch.from_numpy(points).cuda(), self.torch.from_numpy(kinds).cuda()
        self.optimiser.zero_grad()
        self.torch.nn.functional.cross_entropy(self.network(points), kinds).backward()
        self.optimiser.step()

    def accuracy(self, points, kinds):
        predicted = self.network(self.torch.from_numpy(points).cuda()).argmax(1).cpu().numpy()
        return float((predicted == kinds).mean())


def network(random):
    try:
        import torch
    except ImportError:
        return NumpyNetwork(random)
    return TorchNetwork(torch) if torch.cuda.is_available() else NumpyNetwork(random)


def main():
    epochs, random = int(os.environ.get("EPOCHS", "20")), np.random.default_rng(1)
    patterns = (random.random((CLASSES, SIDE, SIDE)) < 0.3).astype(np.float64)
    points, kinds = pictures(random, patterns, 6000)
    others, truth = pictures(random, patterns, 1000)
    learner = network(random)
    began = time.perf_counter()
    accuracy = learner.accuracy(others, truth)
    for epoch in range(1, epochs + 1):
        order = random.permutation(len(points))
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            learner.step(points[batch], kinds[batch])
        accuracy = learner.accuracy(others, truth)
        print(f"\repoch {epoch}/{epochs} accuracy {accuracy:.3f}", end="", flush=True)
    print()
    took = time.perf_counter() - began
    results = {
        "benchmark": "digits-training",
        "time": took,
        "epochs": epochs,
        "accuracy": accuracy,
        "pictures_per_s": epochs * len(points) / took,
        "library": learner.library,
    }
    Path("/results").mkdir(exist_ok=True)
    Path("/results/metrics.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main()
