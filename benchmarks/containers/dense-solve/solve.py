"""Solves dense systems of linear equations, as HPL does: on a GPU by PyTorch, else by LAPACK through NumPy.

REPEATS systems of SIZE equations; /results/metrics.json has the seconds, GFLOP/s and the scaled residual, which is
of the order of 1 when the answers are right.
"""

import json
import os
import time
from pathlib import Path

import numpy as np


def solver():
    """A function of matrix and right side, and the name of the library that does the work."""
    try:
        import torch
    except ImportError:
        return np.linalg.solve, "numpy"
    if not torch.cuda.is_available():
        return np.linalg.solve, "numpy"

    def solve(matrix, right):
        found = torch.linalg.solve(torch.from_numpy(matrix).cuda(), torch.from_numpy(right).cuda())
        return found.cpu().numpy()

    return solve, "torch"


def scaled_residual(matrix, answer, right):
    """HPL's measure: |Ax − b| / (ε (|A| |x| + |b|) n), in the norm of the greatest row."""
    norm = np.abs(matrix).sum(axis=1).max() * np.abs(answer).max() + np.abs(right).max()
    return float(np.abs(matrix @ answer - right).max() / (np.finfo(np.float64).eps * norm * len(right)))


def main():
    size, repeats = int(os.environ.get("SIZE", "4096")), int(os.environ.get("REPEATS", "10"))
    random = np.random.default_rng(1)
    matrix, right = random.random((size, size)) - 0.5, random.random(size) - 0.5
    solve, library = solver()
    began = time.perf_counter()
    for repeat in range(1, repeats + 1):
        answer = solve(matrix, right)
        print(f"\rsystem {repeat}/{repeats}", end="", flush=True)
    print()
    took = time.perf_counter() - began
    results = {
        "benchmark": "dense-solve",
        "time": took,
        "size": size,
        "gflop_per_s": repeats * (2 / 3 * size**3 + 3 / 2 * size**2) / took / 1e9,
        "scaled_residual": scaled_residual(matrix, answer, right),
        "library": library,
    }
    Path("/results").mkdir(exist_ok=True)
    Path("/results/metrics.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main()
