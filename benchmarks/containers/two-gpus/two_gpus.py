"""Multiplies matrices on every GPU in sight at once, a process each, the second at half duty.

So two cards of one machine show different power, and each card's joules can be told apart. PyTorch or CuPy drive the
GPUs; without either, or without a GPU, two processes do it in NumPy and say so. /results/metrics.json has the seconds
and each worker's operations per second.
"""

import json
import multiprocessing
import os
import time
from pathlib import Path


def library():
    """(name, how many GPUs, matrix maker, wait until done) of what can drive a GPU here."""
    try:
        import torch

        if torch.cuda.is_available():

            def make(size, index):
                return torch.rand(size, size, device=f"cuda:{index}")

            return "torch", torch.cuda.device_count(), make, torch.cuda.synchronize
    except ImportError:
        pass
    try:
        import cupy

        def make(size, index):
            cupy.cuda.Device(index).use()
            return cupy.random.rand(size, size, dtype=cupy.float32)

        return "cupy", cupy.cuda.runtime.getDeviceCount(), make, lambda: cupy.cuda.Stream.null.synchronize()
    except Exception:  # not installed, or no driver
        pass
    import numpy

    return "numpy", 0, lambda size, index: numpy.random.default_rng(index).random((size, size), "f4"), lambda: None


def work(index, size, seconds, told):
    name, _, make, finish = library()
    matrix, done, began = make(size, index), 0, time.perf_counter()
    while (now := time.perf_counter() - began) < seconds:
        if index % 2 and now % 1.0 >= 0.5:  # every second worker rests half of each second
            time.sleep(0.01)
            continue
        matrix @ matrix
        finish()
        done += 1
    took = time.perf_counter() - began
    told.put({"worker": index, "library": name, "operations_per_s": 2.0 * size**3 * done / took})


def main():
    seconds = float(os.environ.get("SECONDS_LONG", "30"))
    context = multiprocessing.get_context("spawn")
    name, gpus, _, _ = library()
    size = int(os.environ.get("SIZE", "8192")) if gpus else 256
    print(f"{gpus} GPUs by {name}" if gpus else "no GPU (was --gpus given?): two processes in NumPy", flush=True)
    told, began = context.Queue(), time.perf_counter()
    workers = [context.Process(target=work, args=(i, size, seconds, told)) for i in range(gpus or 2)]
    for worker in workers:
        worker.start()
    found = sorted((told.get(timeout=seconds + 300) for _ in workers), key=lambda one: one["worker"])
    for worker in workers:
        worker.join()
    results = {"benchmark": "two-gpus", "time": time.perf_counter() - began, "workers": found}
    Path("/results").mkdir(exist_ok=True)
    Path("/results/metrics.json").write_text(json.dumps(results))
    print(json.dumps(results))


if __name__ == "__main__":
    main()
