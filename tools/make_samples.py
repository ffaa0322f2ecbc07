"""Writes src/wattribute/samples: recordings of made-up machines whose true energy is known, always the same bits."""

from __future__ import annotations

import gzip
import json
import shutil
import sys
from datetime import datetime, timezone
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from examples import make_trace  # noqa: E402
from wattribute import archive  # noqa: E402
from wattribute.samples import FOLDER  # noqa: E402
from wattribute.testing.recordings import RecordingBuilder  # noqa: E402
from wattribute.testing.simulation import Steps  # noqa: E402

EPOCH_NS = 1_790_857_038_000_000_000  # 2026-10-01 11:37:18 UTC
MS = 1_000_000

# a step of training: (CPU operator, kernel, ms of the kernel, W while it runs)
STEP = (
    ("aten::linear", "ampere_sgemm_128x64_tn", 420, 285.0),
    ("aten::relu", "elementwise_kernel<relu>", 160, 170.0),
    ("aten::linear", "ampere_sgemm_64x64_tn", 300, 240.0),
    ("aten::cross_entropy_loss", "softmax_warp_forward", 150, 150.0),
    ("autograd::engine", "ampere_sgemm_128x64_nt", 640, 290.0),
    ("Optimizer.step#Adam", "multi_tensor_apply_kernel<Adam>", 230, 205.0),
)
STEPS, STEP_MS, IDLE_W = 8, 2000, 62.0
LOG_MS, LAG_MS = 100, 3  # a reading is the mean over the time since the last one, a little later

WRAPS_AT_UJ = 262_143_328_850  # as RAPL's counters do
# regions of a run: name, seconds, W of the package, W of the memory
REGIONS = (("load", 2.0, 48.0, 9.0), ("train", 6.5, 118.0, 14.0), ("evaluate", 1.5, 83.0, 8.0))


def write_trace(folder: Path) -> None:
    make_trace.write(str(folder / "trace"))


def write_profile(folder: Path) -> None:
    """A PyTorch profile, and a log of the GPU's power over the same time."""
    events: list[dict[str, Any]] = []
    edges, watts = [0.0], []

    def add(category: str, name: str, start_ms: float, length_ms: float, thread: int, **args: Any) -> None:
        at = {"pid": 0 if category == "kernel" else 4711, "tid": thread, "ts": start_ms * 1000, "dur": length_ms * 1000}
        events.append({"ph": "X", "cat": category, "name": name, **at, "args": args})

    def draw(until_ms: float, power_w: float) -> None:
        if until_ms / 1000 > edges[-1]:
            edges.append(until_ms / 1000)
            watts.append(power_w)

    correlation = 0
    for step in range(STEPS):
        now = 100.0 + step * STEP_MS
        add("user_annotation", f"ProfilerStep#{step}", now, STEP_MS - 1, 4711)
        for operator, kernel, length, power_w in STEP:
            correlation += 1
            add("cpu_op", operator, now, length, 4711)
            add("cuda_runtime", "cudaLaunchKernel", now + 0.1, 0.02, 4711, correlation=correlation)
            add("kernel", kernel, now + 0.2, length - 0.3, 7, device=0, stream=7, correlation=correlation)
            draw(now + 0.2, IDLE_W)
            draw(now + length - 0.1, power_w)
            now += length + 1
    end_ms = 100 + STEPS * STEP_MS + 100
    draw(end_ms, IDLE_W)
    document = {
        "baseTimeNanoseconds": EPOCH_NS,
        "deviceProperties": [{"id": 0, "name": "NVIDIA RTX A5000"}],
        "host_name": "gpu01",
        "traceEvents": events,
    }
    with open(folder / "pytorch.json.gz", "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(json.dumps(document, separators=(",", ":")).encode())
    power = Steps(edges, watts)
    lines = ["timestamp, index, name, power.draw.instant [W], utilization.gpu [%]"]
    for at_ms in range(0, end_ms + 1, LOG_MS):
        moment = datetime.fromtimestamp(EPOCH_NS / 1e9 + at_ms / 1000, timezone.utc)
        end_s = (at_ms - LAG_MS) / 1000
        power_w = float(power.energy_j(end_s) - power.energy_j(end_s - LOG_MS / 1000)) / (LOG_MS / 1000)
        stamp = moment.strftime("%Y/%m/%d %H:%M:%S.%f")[:-3]
        lines.append(f"{stamp}, 0, NVIDIA RTX A5000, {power_w:.2f} W, {99 if power_w > IDLE_W else 0} %")
    (folder / "gpu.csv").write_text("\n".join(lines) + "\n", encoding="ascii")


def write_run(folder: Path) -> None:
    """A recording of ``wattribute run`` on a machine with RAPL: counters in µJ, read every 10 ms, that wrap."""
    ends = np.cumsum([0.0, *(seconds for _, seconds, *_ in REGIONS)])
    length = int(ends[-1] * 1000)
    made = RecordingBuilder(
        1_000_000_000,
        length_ticks=length * MS,
        epoch_ns=EPOCH_NS,
        command=["python", "train.py"],
        exit_code=0,
        zone="FR",
    ).frames(("python train.py", "wattribute", "command"))
    made.host("node07").process("python", 4711)
    rows = [(0, length * MS, "python train.py")]
    for (name, *_), start, end in zip(REGIONS, ends[:-1], ends[1:], strict=True):
        made.frames((name, "user", "region"))
        rows.append((int(start * 1000) * MS, int(end * 1000) * MS, name))
    made.thread(rows)
    times_ms = np.arange(0, length + 1, 10)
    for device, column, before_uj in (("package 0", 2, WRAPS_AT_UJ - 500 * 10**6), ("dram 0", 3, 10**9)):
        power = Steps(ends, [row[column] for row in REGIONS])
        count_uj = np.rint(power.energy_j(times_ms / 1000) * 1e6).astype(np.uint64) + np.uint64(before_uj)
        made.counter(
            device,
            count_uj % np.uint64(WRAPS_AT_UJ),
            times_ms * MS,
            name=f"rapl {device}",
            scale=Fraction(1, 10**6),
            wraps_at=WRAPS_AT_UJ,
        )
    archive.save(made.recording(), folder / "run.watt")


def main(folder: Path) -> None:
    for write in (write_trace, write_profile, write_run):
        write(folder)


if __name__ == "__main__":
    for name in ("trace", "run.watt"):
        shutil.rmtree(FOLDER / name, ignore_errors=True)
    main(FOLDER)
